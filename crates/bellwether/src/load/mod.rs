//! Datasets for other programs: their columns and their rows, batch by batch, with nothing written.
//!
//! A [`Dataset`] is a published version, or one that is built from an archive while it is read. Both give the same rows
//! in the same columns. A [`Selection`] of columns and rows is applied while reading, or refused: a column or a name that
//! the dataset does not have is an error; dates without rows select nothing. `[checks]` are those of a run or a build:
//! they are not repeated here. A version that may be wide is found by [`Published`]: each of its matrices is a dataset,
//! with a column of dates and a column per ticker.
//!
//! ```no_run
//! use bellwether::load::Selection;
//! use bellwether::project::Project;
//!
//! let selection = Selection { tickers: Some(["XOM".parse().unwrap()].into()), ..Selection::default() };
//! let dataset = Project::find()?.dataset("demo")?.select(selection)?;
//! for batch in dataset.batches()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod built;
pub mod file;
mod names;
pub mod now;
mod published;
#[cfg(feature = "query")]
pub mod query;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use polars::prelude::DataFrame;

use self::built::Built;
use crate::columns::compact;
use crate::error::{Error, Result};
use crate::export::PublishedReader;
use crate::frames;
use crate::plan::{ColumnNames, Plan, RowKind};
use crate::process::cancel::CancellationToken;
use crate::project::Project;
use crate::run::PriceInput;

pub use self::published::Published;
pub use crate::export::Selection;
pub use crate::plan::AdHoc;

/// A dataset to read: published, or built from an archive.
#[derive(Clone, Debug)]
pub struct Dataset(DatasetOrigin);

#[derive(Clone, Debug)]
enum DatasetOrigin {
    Published(Arc<PublishedReader>),
    Built(Arc<Built>),
}

impl Project {
    /// A published version of a dataset of the project: `NAME` for the latest, `NAME/VERSION`, or `NAME/builds/VERSION`.
    ///
    /// # Errors
    ///
    /// Those of [`Dataset::find`].
    pub fn dataset(&self, name: &str) -> Result<Dataset> {
        Dataset::find(&self.data().join("datasets"), name)
    }

    /// The dataset of a definition of the project, by its name or path, from the project's archive: as of an instant, if
    /// that is asked for.
    ///
    /// # Errors
    ///
    /// When the definition does not exist or has problems, and those of [`Dataset::from_archive`].
    pub fn dataset_from_archive(&self, name_or_path: &str, ad_hoc: &AdHoc) -> Result<Dataset> {
        Dataset::from_archive(Plan::find(name_or_path, self)?, &self.data().join("archive"), ad_hoc)
    }
}

impl Dataset {
    /// A published version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// When it does not exist, is wide (see [`Published`]), or has a record that cannot be read.
    pub fn find(datasets: &Path, name: &str) -> Result<Self> {
        PublishedReader::find(datasets, name)?.select(Selection::default()).map(Self::of_version)
    }

    /// The dataset of a plan from an archive. It is built each time it is read.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn from_archive(plan: Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        Built::of(plan, archive, ad_hoc).map(Self::of_plan)
    }

    /// A part of it. As far as the files allow, nothing else is read. A matrix has a column per ticker, so selecting
    /// tickers selects columns.
    ///
    /// # Errors
    ///
    /// When there is no such column, when rows are selected by a column that the dataset does not have, and when it has no
    /// rows of a ticker, sector, period or regime.
    pub fn select(&self, selection: Selection) -> Result<Self> {
        let named = selection.clone();
        let selected = match &self.0 {
            DatasetOrigin::Published(reading) => {
                PublishedReader::clone(reading).select(selection).map(Self::of_version)?
            }
            DatasetOrigin::Built(built) => Built::clone(built).select(selection).map(Self::of_plan)?,
        };
        self.check_names(&named).map(|()| selected)
    }

    /// The same dataset, read until a token is cancelled; reading it then fails with
    /// [`ErrorKind::Interrupted`](crate::error::ErrorKind).
    pub fn until(&self, stop: CancellationToken) -> Self {
        match &self.0 {
            DatasetOrigin::Published(reading) => Self::of_version(PublishedReader::clone(reading).until(stop)),
            DatasetOrigin::Built(built) => Self::of_plan(Built::clone(built).until(stop)),
        }
    }

    /// The same dataset with other prices than those of its definition; those of a published version are in its files.
    #[must_use]
    pub fn with_prices(self, prices: PriceInput) -> Self {
        match self.0 {
            DatasetOrigin::Published(_) => self,
            DatasetOrigin::Built(built) => Self::of_plan(Built::clone(&built).with_prices(prices)),
        }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        match &self.0 {
            DatasetOrigin::Published(reading) => reading.selected_schema(),
            DatasetOrigin::Built(built) => built.selected_schema(),
        }
    }

    /// The rows, batch by batch. A dataset that is larger than memory can be read.
    ///
    /// # Errors
    ///
    /// When a file of the dataset is missing. Later errors are items of the reader.
    pub fn batches(&self) -> Result<Batches> {
        Ok(Batches::new(self.schema(), self.rows()?))
    }

    /// All rows as a frame of Polars.
    ///
    /// # Errors
    ///
    /// Any error of reading or building the dataset.
    ///
    /// ```no_run
    /// use bellwether::load::Dataset;
    ///
    /// let frame = Dataset::find("output/datasets".as_ref(), "demo")?.frame()?;
    /// println!("{frame}");
    /// # Ok::<(), bellwether::error::Error>(())
    /// ```
    pub fn frame(&self) -> Result<DataFrame> {
        let batches = self.rows()?.collect::<Result<Vec<_>>>()?;
        frames::frame_of(&self.schema(), &batches)
    }

    /// Number of rows. A part, and a dataset that is built as it is read, are counted batch by batch.
    ///
    /// # Errors
    ///
    /// As those of [`batches`](Self::batches) and its items.
    pub fn count(&self) -> Result<u64> {
        if let Some(count) = self.known_count() {
            return Ok(count);
        }
        let mut count = 0;
        for batch in self.rows()? {
            count += batch?.num_rows() as u64;
        }
        Ok(count)
    }

    /// Number of rows, if a record says it.
    pub fn known_count(&self) -> Option<u64> {
        match &self.0 {
            DatasetOrigin::Published(reading) if reading.is_whole() => Some(reading.record.rows),
            _ => None,
        }
    }

    /// The same rows; of a published dataset of which all are selected, at least this many of the last.
    pub fn ending(&self, rows: usize) -> Self {
        match &self.0 {
            DatasetOrigin::Published(reading) => {
                Self(DatasetOrigin::Published(Arc::new(PublishedReader::clone(reading).ending(rows))))
            }
            DatasetOrigin::Built(_) => self.clone(),
        }
    }

    /// All columns, selected or not.
    fn schema_of_all(&self) -> SchemaRef {
        match &self.0 {
            DatasetOrigin::Published(reading) => Arc::clone(reading.schema()),
            DatasetOrigin::Built(built) => built.schema(),
        }
    }

    /// What its columns are called.
    pub fn names(&self) -> &ColumnNames {
        match &self.0 {
            DatasetOrigin::Published(reading) => reading.names(),
            DatasetOrigin::Built(built) => built.names(),
        }
    }

    /// The part of it that was selected.
    fn selection(&self) -> &Selection {
        match &self.0 {
            DatasetOrigin::Published(reading) => reading.selection(),
            DatasetOrigin::Built(built) => built.selection(),
        }
    }

    fn rows(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        Ok(match &self.0 {
            DatasetOrigin::Published(reading) => Box::new(reading.rows()?),
            DatasetOrigin::Built(built) => Box::new(built.rows()),
        })
    }

    fn of_version(reading: PublishedReader) -> Self {
        Self(DatasetOrigin::Published(Arc::new(reading)))
    }

    fn of_plan(built: Built) -> Self {
        Self(DatasetOrigin::Built(Arc::new(built)))
    }
}

impl Dataset {
    /// The articles about the tickers of a plan, known as of an instant, or now: their values, when each was first seen, and
    /// how often it was revised. They are the rows of a dataset of news, with the plan's naive dates; articles that are
    /// repeated exactly are all there.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn articles(plan: &Plan, archive: &Path, as_of: Option<DateTime<Utc>>) -> Result<Self> {
        let plan = Plan { dataset: plan.dataset.of_articles(), ..plan.clone() };
        Self::from_archive(plan, archive, &AdHoc { as_of, ..AdHoc::default() })
    }

    /// Every value that the signals of a plan had, whatever they said, with from when and until when it was known: the rows
    /// of a dataset of all vintages.
    ///
    /// # Errors
    ///
    /// When the plan has no signals, and those of [`Dataset::from_archive`].
    pub fn history(plan: &Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        if plan.dataset.rows == RowKind::Article {
            let what = format!("`{}` has no signals whose values have a history", plan.name);
            return Err(Error::usage(what, "name a definition that has signals"));
        }
        let plan = Plan { dataset: plan.dataset.of_observations(), ..plan.clone() };
        Self::from_archive(plan, archive, ad_hoc)
    }
}

/// The rows of a dataset, batch by batch. A dictionary has only the names that occur in its batch, since frame
/// libraries turn them into categories. An error is an [`ArrowError::ExternalError`] with an
/// [`Error`] inside.
pub struct Batches {
    schema: SchemaRef,
    rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
}

impl Batches {
    pub(super) fn new(schema: SchemaRef, rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>) -> Self {
        Self { schema, rows }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.next()?;
        Some(rows.map_err(|error| ArrowError::ExternalError(Box::new(error))).and_then(|rows| compact(&rows)))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Batches").field("schema", &self.schema).finish_non_exhaustive()
    }
}
