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

pub mod file;
pub mod now;
mod published;
#[cfg(feature = "query")]
pub mod query;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use arrow::array::{AsArray, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use polars::prelude::DataFrame;

use crate::archive::{Scope, View};
use crate::columns::compact;
use crate::dataset::join_failed;
use crate::disk::file::FileError;
use crate::error::{Error, Result};
use crate::export::{PublishedReader, is_of_news};
use crate::facts::Facts;
use crate::frames;
use crate::interface::{Period, Regime, Sector, Ticker};
use crate::plan::{Column, ColumnNames, Plan, RowKind};
use crate::process::cancel::CancellationToken;
use crate::project::Project;
use crate::run::{Builder, Control, PriceInput, absent_sector, absent_tickers, archived_scope, scratch, view_of_build};
use crate::time::Clock;

pub use self::published::Published;
pub use crate::export::Selection;
pub use crate::plan::AdHoc;

/// A dataset to read: published, or built from an archive.
#[derive(Clone, Debug)]
pub struct Dataset(Origin);

#[derive(Clone, Debug)]
enum Origin {
    Published(Arc<PublishedReader>),
    Built(Arc<Built>),
}

type Pairs = BTreeSet<(Period, Regime)>;

/// The inputs of a dataset that is built while it is read.
#[derive(Clone, Debug)]
struct Built {
    plan: Plan,
    view: View,
    scope: Scope,
    selection: Selection,
    /// The prices of its labels.
    prices: PriceInput,
    /// Cancels reading it.
    stop: CancellationToken,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

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
    pub fn from_archive(mut plan: Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        ad_hoc.apply(&mut plan)?;
        let stop = CancellationToken::new();
        let view = view_of_build(&plan, archive, ad_hoc, &stop)?;
        let scope = archived_scope(&plan, &view)?;
        let (selection, prices) = (Selection::default(), PriceInput::OfDefinition);
        Ok(Self::of_plan(Built { plan, view, scope, selection, prices, stop }))
    }

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

    fn of_version(reader: PublishedReader) -> Self {
        Self(Origin::Published(Arc::new(reader)))
    }

    fn of_plan(built: Built) -> Self {
        Self(Origin::Built(Arc::new(built)))
    }

    /// A part of it. As far as the files allow, nothing else is read. A matrix has a column per ticker, so selecting
    /// tickers selects columns.
    ///
    /// # Errors
    ///
    /// When there is no such column, when rows are selected by a column that the dataset does not have, and when it has no
    /// rows of a ticker, sector, period or regime.
    pub fn select(&self, selection: Selection) -> Result<Self> {
        let selected = match &self.0 {
            Origin::Published(reader) => Self::of_version(PublishedReader::clone(reader).select(selection.clone())?),
            Origin::Built(built) => {
                selection.check(self.schema_of_all(), self.names())?;
                Self::of_plan(Built { selection: selection.clone(), ..Built::clone(built) })
            }
        };
        self.check_names(&selection)?;
        Ok(selected)
    }

    /// The same dataset, read until a token is cancelled; reading it then fails with
    /// [`ErrorKind::Interrupted`](crate::error::ErrorKind).
    pub fn until(&self, stop: CancellationToken) -> Self {
        match &self.0 {
            Origin::Published(reader) => Self::of_version(PublishedReader::clone(reader).until(stop)),
            Origin::Built(built) => Self::of_plan(Built { stop, ..Built::clone(built) }),
        }
    }

    /// The same dataset with other prices than those of its definition; those of a published version are in its files.
    #[must_use]
    pub fn with_prices(self, prices: PriceInput) -> Self {
        match self.0 {
            Origin::Published(_) => self,
            Origin::Built(built) => Self::of_plan(Built { prices, ..Built::clone(&built) }),
        }
    }

    /// The same rows; of a published dataset of which all are selected, at least this many of the last.
    pub fn ending(&self, rows: usize) -> Self {
        match &self.0 {
            Origin::Published(reader) => Self::of_version(PublishedReader::clone(reader).ending(rows)),
            Origin::Built(_) => self.clone(),
        }
    }

    /// All columns, selected or not.
    fn schema_of_all(&self) -> &SchemaRef {
        match &self.0 {
            Origin::Published(reader) => reader.schema(),
            Origin::Built(built) => built.plan.dataset.written.schema(),
        }
    }

    /// What its columns are called.
    pub fn names(&self) -> &ColumnNames {
        match &self.0 {
            Origin::Published(reader) => reader.names(),
            Origin::Built(built) => built.plan.dataset.written.names(),
        }
    }

    /// The part of it that was selected.
    fn selection(&self) -> &Selection {
        match &self.0 {
            Origin::Published(reader) => reader.selection(),
            Origin::Built(built) => &built.selection,
        }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.selection().schema(self.schema_of_all()).expect("the columns were found when they were selected")
    }

    /// The rows, batch by batch. A dataset that is larger than memory can be read. A dictionary has only the names that occur
    /// in its batch, since frame libraries turn them into categories.
    ///
    /// # Errors
    ///
    /// When a file of the dataset is missing. Later errors are items of the reader: an [`ArrowError::ExternalError`] with an
    /// [`Error`] inside.
    pub fn batches(&self) -> Result<impl RecordBatchReader + Send + use<>> {
        let rows = self.rows()?.map(|rows| {
            rows.map_err(|error| ArrowError::ExternalError(Box::new(error))).and_then(|rows| compact(&rows))
        });
        Ok(RecordBatchIterator::new(rows, self.schema()))
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
        frames::frame_of(&self.schema(), &self.rows()?.collect::<Result<Vec<_>>>()?)
    }

    /// Number of rows. A part, and a dataset that is built as it is read, are counted batch by batch.
    ///
    /// # Errors
    ///
    /// As those of [`batches`](Self::batches) and its items.
    pub fn count(&self) -> Result<u64> {
        match self.known_count() {
            Some(count) => Ok(count),
            None => self.rows()?.map(|batch| batch.map(|batch| batch.num_rows() as u64)).sum(),
        }
    }

    /// Number of rows, if a record says it.
    pub fn known_count(&self) -> Option<u64> {
        match &self.0 {
            Origin::Published(reader) if reader.is_whole() => Some(reader.record.rows),
            _ => None,
        }
    }

    fn rows(&self) -> Result<Batches> {
        match &self.0 {
            Origin::Published(reader) => Ok(Box::new(reader.rows()?)),
            Origin::Built(built) => built.rows(),
        }
    }

    /// The tickers that it has rows of, whichever are selected.
    ///
    /// # Errors
    ///
    /// When its record or the archive cannot be read.
    pub fn tickers(&self) -> Result<BTreeSet<Ticker>> {
        Ok(self.names_of_rows()?.0)
    }

    /// The tickers, and the pairs of period and regime, that it has rows of, whichever are selected.
    fn names_of_rows(&self) -> Result<(BTreeSet<Ticker>, Pairs)> {
        match &self.0 {
            Origin::Published(reader) => {
                let facts = Facts::from_json(&reader.facts()?);
                let facts = facts.map_err(|source| FileError::damage(reader.folder(), source))?;
                let tickers = facts.tickers.iter().filter_map(|name| name.parse().ok()).collect();
                Ok((tickers, facts.pairs.into_iter().collect()))
            }
            Origin::Built(built) => {
                let series = built.view.members(&built.scope)?;
                let pairs = series.iter().filter_map(|key| key.period.zip(key.regime)).collect();
                Ok((series.into_iter().map(|key| key.ticker).collect(), pairs))
            }
        }
    }

    /// The sectors in the rows. No facts tell them, so a version is read.
    fn sectors(&self) -> Result<BTreeSet<Sector>> {
        let reader = match &self.0 {
            Origin::Published(reader) => PublishedReader::clone(reader),
            Origin::Built(built) => {
                let series = built.view.members(&built.scope)?;
                let tickers: HashSet<Ticker> = series.into_iter().map(|key| key.ticker).collect();
                return built.view.sectors_ever(&built.scope, &tickers);
            }
        };
        let column = self.names().of(Column::Sector.name()).to_owned();
        let mut sectors = BTreeSet::new();
        for batch in reader.select(Selection { columns: Some(vec![column]), ..Selection::default() })?.rows()? {
            let texts = cast(batch?.column(0), &DataType::Utf8).map_err(Error::frame)?;
            let found: BTreeSet<&str> = texts.as_string::<i32>().iter().flatten().collect();
            sectors.extend(found.into_iter().filter_map(|name| name.parse().ok()));
        }
        Ok(sectors)
    }

    /// Refuses names that it has no rows of.
    fn check_names(&self, selection: &Selection) -> Result<()> {
        let Selection { tickers, sectors, periods, regimes, .. } = selection;
        if tickers.is_some() || periods.is_some() || regimes.is_some() {
            let (known, pairs) = self.names_of_rows()?;
            let absent: Vec<&Ticker> = tickers.iter().flatten().filter(|ticker| !known.contains(*ticker)).collect();
            if !absent.is_empty() {
                let is_of_news = is_of_news(self.schema_of_all(), self.names());
                let what = if is_of_news { "no articles" } else { "no signals" };
                let what = absent_tickers(what, &absent, known.iter());
                return Err(Error::usage(what, "correct the ticker, or leave it out"));
            }
            refuse_absent("period", periods.as_ref(), pairs.iter().map(|(period, _)| *period))?;
            refuse_absent("regime", regimes.as_ref(), pairs.iter().map(|(_, regime)| *regime))?;
        }
        let Some(sectors) = sectors else { return Ok(()) };
        let known = self.sectors()?;
        let Some(sector) = sectors.iter().find(|sector| !known.contains(*sector)) else { return Ok(()) };
        Err(Error::usage(absent_sector(sector, known), "correct the sector, or leave it out"))
    }
}

/// Refuses periods or regimes that are not known.
fn refuse_absent<T: Ord + Display>(
    what: &str,
    named: Option<&BTreeSet<T>>,
    known: impl Iterator<Item = T>,
) -> Result<()> {
    let known: BTreeSet<T> = known.collect();
    let Some(other) = named.and_then(|named| named.difference(&known).next()) else { return Ok(()) };
    let all: Vec<String> = known.iter().map(|value| format!("`{value}`")).collect();
    let hint = format!("the {what}s of the dataset are {}", all.join(", "));
    Err(Error::usage(format!("no signals for {what} `{other}`"), hint))
}

impl Built {
    /// The rows, built on another thread, two batches ahead.
    fn rows(&self) -> Result<Batches> {
        let (send, receive) = mpsc::sync_channel(2);
        let stop = self.stop.child_token();
        let built = Self { view: self.view.until(&stop), stop: stop.clone(), ..self.clone() };
        let builder = thread::Builder::new().spawn(move || {
            if let Err(error) = built.build(&send) {
                // This fails if the reader was dropped.
                let _ = send.send(Err(error));
            }
        });
        let (mut builder, stop_when_dropped) = (Some(builder.map_err(Error::start)?), stop.drop_guard());
        Ok(Box::new(std::iter::from_fn(move || {
            let _ = &stop_when_dropped;
            if let Ok(rows) = receive.recv() {
                return Some(rows);
            }
            // If the thread panicked, rows are missing.
            let panic = builder.take()?.join().err()?;
            Some(Err(Error::of_panic(&*panic)))
        })))
    }

    fn build(mut self, send: &mpsc::SyncSender<Result<RecordBatch>>) -> Result<()> {
        self.plan.dataset.filter = std::mem::take(&mut self.plan.dataset.filter).and(self.selection.filter());
        self.scope.filter = self.plan.dataset.filter.clone();
        let Self { plan, view, scope, selection, prices, stop } = self;
        let control = Control { stop, ..Control::default() };
        let work = Builder { prices, ..Builder::new(Arc::new(plan), view, scope, &control) };
        let deliver = |rows: crate::columns::Rows| {
            let written = &work.plan.dataset.written;
            let part = written.part(&rows).flat().and_then(|rows| selection.part(&rows, written.names()));
            send.send(Ok(part.map_err(join_failed)?)).map_err(|_| Error::interruption())
        };
        work.rows(&work.plan.dataset, scratch(Clock::System), None, deliver).map(|_| ())
    }
}
