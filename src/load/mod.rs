//! Datasets for other programs: their columns and their rows, batch by batch, with nothing written.
//!
//! A [`Dataset`] is a published version, or one that is built from an archive while it is read. Both give the same rows
//! in the same columns. A [`Selection`] of columns, tickers and dates is applied while reading. A name that the dataset
//! does not have is an error; dates without rows select nothing. `[checks]` are those of a run or a build: they are not
//! repeated here. A version that may be wide is found by [`Published`]: each of its matrices is a dataset, with a
//! column of dates and a column per ticker.
//!
//! ```no_run
//! use bellwether::load::{Dataset, Selection};
//!
//! let selection = Selection { tickers: Some(["XOM".parse().unwrap()].into()), ..Selection::default() };
//! let dataset = Dataset::published("output/datasets".as_ref(), "demo")?.select(selection)?;
//! for batch in dataset.batches()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod articles;
mod batches;
mod built;
#[cfg(feature = "polars")]
mod frame;
mod wide;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub use self::articles::Articles;
pub use self::batches::Batches;
use self::built::Built;
use crate::cancel::CancellationToken;
use crate::error::{Error, Result};
pub use crate::export::Selection;
use crate::export::{AnyReader, PublishedReader};
use crate::file::FileError;
use crate::interface::Ticker;
pub use crate::plan::AdHoc;
use crate::plan::{ColumnNames, Plan};
use crate::report::facts::Facts;
use crate::run::absent_tickers;

/// A published version, long or wide.
///
/// ```no_run
/// use bellwether::load::Published;
///
/// match Published::find("output/datasets".as_ref(), "demo")? {
///     Published::Long(dataset) => println!("{} columns", dataset.schema().fields().len()),
///     Published::Wide(matrices) => {
///         for (name, matrix) in &matrices {
///             println!("{name}: {} tickers", matrix.schema().fields().len() - 1);
///         }
///     }
/// }
/// # Ok::<(), bellwether::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Published {
    /// A row for each signal.
    Long(Dataset),
    /// A matrix for each period, regime and value, by name: `5d-bull/confidence`.
    Wide(BTreeMap<String, Dataset>),
}

impl Published {
    /// A version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// When it does not exist, or has a record or a file that cannot be read.
    pub fn find(datasets: &Path, name: &str) -> Result<Self> {
        let dataset = |reading: PublishedReader| reading.select(Selection::default()).map(Dataset::of_version);
        match AnyReader::find(datasets, name)? {
            AnyReader::Long(reading) => dataset(*reading).map(Self::Long),
            AnyReader::Wide(matrices) => {
                let matrices = matrices.into_iter().map(|(name, reading)| Ok((name, dataset(reading)?)));
                matrices.collect::<Result<_>>().map(Self::Wide)
            }
        }
    }
}

/// A dataset to read: published, or built from an archive.
#[derive(Clone, Debug)]
pub struct Dataset(Origin);

#[derive(Clone, Debug)]
enum Origin {
    Published(Arc<PublishedReader>),
    Built(Arc<Built>),
}

impl Dataset {
    /// A published version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// When it does not exist, is wide (see [`Published`]), or has a record that cannot be read.
    pub fn published(datasets: &Path, name: &str) -> Result<Self> {
        PublishedReader::find(datasets, name)?.select(Selection::default()).map(Self::of_version)
    }

    /// The dataset of a plan from an archive. It is built each time it is read.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn built(plan: Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        Built::of(plan, archive, ad_hoc).map(Self::of_plan)
    }

    /// A part of it. As far as the files allow, nothing else is read. A matrix has a column per ticker, so selecting
    /// tickers selects columns.
    ///
    /// # Errors
    ///
    /// When there is no such column, or the dataset has no signals of a ticker.
    pub fn select(&self, selection: Selection) -> Result<Self> {
        if let Some(tickers) = &selection.tickers {
            self.check(tickers)?;
        }
        match &self.0 {
            Origin::Published(reading) => PublishedReader::clone(reading).select(selection).map(Self::of_version),
            Origin::Built(built) => Built::clone(built).select(selection).map(Self::of_plan),
        }
    }

    /// The same dataset, read until a token is cancelled; reading it then fails with
    /// [`ErrorKind::Interrupted`](crate::error::ErrorKind).
    pub fn until(&self, stop: CancellationToken) -> Self {
        match &self.0 {
            Origin::Published(reading) => Self::of_version(PublishedReader::clone(reading).until(stop)),
            Origin::Built(built) => Self::of_plan(Built::clone(built).until(stop)),
        }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        match &self.0 {
            Origin::Published(reading) => reading.selected(),
            Origin::Built(built) => built.selected(),
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

    /// What its columns are called.
    pub fn names(&self) -> &ColumnNames {
        match &self.0 {
            Origin::Published(reading) => reading.names(),
            Origin::Built(built) => built.names(),
        }
    }

    /// The part of it that was selected.
    fn selection(&self) -> &Selection {
        match &self.0 {
            Origin::Published(reading) => reading.selection(),
            Origin::Built(built) => built.selection(),
        }
    }

    /// Checks that it has signals of some tickers.
    fn check(&self, tickers: &BTreeSet<Ticker>) -> Result<()> {
        let known = match &self.0 {
            Origin::Published(reading) => {
                let facts = Facts::from_json(&reading.facts()?);
                let facts = facts.map_err(|source| FileError::damaged(reading.folder(), source))?;
                facts.tickers.into_iter().filter_map(|of| of.name.parse().ok()).collect()
            }
            Origin::Built(built) => built.tickers()?,
        };
        let absent: Vec<&Ticker> = tickers.difference(&known).collect();
        if absent.is_empty() {
            return Ok(());
        }
        let what = absent_tickers("no signals", &absent, known.iter());
        Err(Error::usage(what, "correct the ticker, or leave it out"))
    }

    fn rows(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        Ok(match &self.0 {
            Origin::Published(reading) => Box::new(reading.rows()?),
            Origin::Built(built) => Box::new(built.rows()),
        })
    }

    fn of_version(reading: PublishedReader) -> Self {
        Self(Origin::Published(Arc::new(reading)))
    }

    fn of_plan(built: Built) -> Self {
        Self(Origin::Built(Arc::new(built)))
    }
}
