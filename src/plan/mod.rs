//! A plan: what a definition means.
//!
//! Every default is filled in and every combination is possible: whoever holds a [`Plan`] need not ask whether
//! something was typed. It says which requests are made, how dates become naive, which features each signal is given,
//! and the exact columns of the dataset that comes out, before anything is fetched.

mod ad_hoc;
mod columns;
mod fingerprint;
mod meaning;
mod request;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use chrono::NaiveDate;
use url::Url;

pub use crate::definition::{
    Availability, Cron, Days, Duplicates, Format, Lag, NaiveRule, OnMissing, Statistic, Vintage, Zone,
};
pub use ad_hoc::AdHoc;
pub use columns::{Column, Feature, Reference, describe};
pub use request::Request;

use crate::definition::Found;
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Sector, Ticker};
use crate::key_source::KeySource;

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The definition's name, which is the dataset's.
    pub name: String,
    /// What the dataset is, in a line.
    pub description: Option<String>,
    /// The definition's file.
    pub path: PathBuf,
    /// The definition's text, which goes into the dataset's record.
    pub text: String,
    /// Whom to ask.
    pub source: Source,
    /// How to get the signals: the first way that the service still has is taken.
    pub ways: Vec<Way>,
    /// What is asked for each ticker beside its signals.
    pub of_each_ticker: Vec<Endpoint>,
    /// The tickers that it is asked for.
    pub news_tickers: Tickers,
    /// How hard the service is pressed.
    pub manners: Manners,
    /// The share of the records, and of the series, of an operation that may be rejected.
    pub max_reject_share: f64,
    /// What must hold of the data before it is published.
    pub checks: Checks,
    /// Whether fields that the interface does not know are kept.
    pub keep_extra: bool,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// The files that it is written to.
    pub files: FilesPlan,
    /// When a scheduler should run it.
    pub schedule: Option<Schedule>,
}

/// Whom to ask.
#[derive(Clone, Debug)]
pub enum Source {
    /// The built-in service.
    Demo,
    /// A service elsewhere.
    Remote(Box<Remote>),
}

/// A service elsewhere.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The base address of the signals.
    pub base_url: Url,
    /// The base address of news and sentiment.
    pub sentiment_base_url: Url,
    /// Where the key is.
    pub key: KeySource,
}

/// A way to get the signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The operation whose answers make the dataset.
    pub endpoint: Endpoint,
    /// What is asked of it.
    pub asked: Asked,
}

/// What is asked of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// These requests, in order.
    Listed(Vec<Request>),
    /// Each ticker of a list with each period and regime.
    EachTicker(Tickers, Vec<(Period, Regime)>),
}

/// Where a list of tickers comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tickers {
    /// It was written by hand.
    Written(Vec<Ticker>),
    /// The service says which are available.
    Available,
    /// The answers to these requests name them.
    NamedBy(Vec<Request>),
    /// The signals name them.
    Signals,
}

/// What must hold of the data before it is published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// What to do where something that the definition names has no data.
    pub missing: OnMissing,
    /// The share of the tickers, and of the series, that may vanish or appear since the version before.
    pub universe: f64,
}

/// How hard the service is pressed.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// How many requests are under way at once.
    pub connections: usize,
    /// How many requests a host is sent in a second; none where there is no limit.
    pub per_second: Option<u16>,
    /// How long the service may be silent in the middle of an answer.
    pub stall: Duration,
    /// How long a run goes on asking again.
    pub patience: Duration,
}

/// The dataset: which signals, their features, its columns, its order.
#[derive(Clone, Debug)]
pub struct DatasetPlan {
    /// How a date with an offset becomes one without.
    pub dates: NaiveRule,
    /// How much older than a signal the news must be that serves it.
    pub lag: Lag,
    /// Which news serves a signal.
    pub availability: Availability,
    /// How articles count that are listed more than once.
    pub duplicates: Duplicates,
    /// The features of the news, in the order of their columns.
    pub features: Vec<Feature>,
    /// The columns that are not features: those that every dataset has, then where a signal comes from.
    pub columns: Vec<Column>,
    /// All columns of a long dataset, exactly as they are written.
    pub schema: SchemaRef,
    /// The columns that order the rows; together they tell any two rows apart.
    pub sort: Vec<Column>,
    /// Which of the signals that the definition asks for.
    pub filter: Filter,
    /// Which observation of a signal is taken.
    pub vintage: Vintage,
    /// A signal that was first seen later than this after its date is backfilled.
    pub live_within: Days,
    /// Rows or matrices.
    pub shape: Shape,
}

impl DatasetPlan {
    /// What is allowed and deserves a second look.
    pub fn warnings(&self) -> Vec<String> {
        let is_same_day = self.lag == Lag::Calendar(Days::new(0)) && !self.features.is_empty();
        let text = "with `lag = \"0d\"` a signal without a time uses all news of its own day, even later news: use `1d` unless signals \
                    are made at the end of their day";
        is_same_day.then(|| text.to_owned()).into_iter().collect()
    }

    /// The windows of its features, in their order.
    pub fn windows(&self) -> Vec<Days> {
        let mut windows: Vec<Days> = Vec::new();
        for days in self.features.iter().filter_map(Feature::window) {
            if !windows.contains(&days) {
                windows.push(days);
            }
        }
        windows
    }

    /// The plan of the same signals with nothing but the count of the articles in each window.
    #[must_use]
    pub fn of_counts(&self) -> Self {
        let features: Vec<Feature> = self.windows().into_iter().map(Feature::Count).collect();
        let schema = columns::long(&Column::BASE, &features);
        Self { columns: Column::BASE.to_vec(), schema, features, sort: Column::KEY.to_vec(), ..self.clone() }
    }
}

/// What a dataset looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A row for each signal.
    Long,
    /// A matrix of dates and tickers for each period, regime, and one of these columns.
    Wide(Vec<String>),
}

/// Which signals are taken. What is none takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their tickers.
    pub tickers: Option<BTreeSet<Ticker>>,
    /// The sectors of their tickers.
    pub sectors: Option<BTreeSet<Sector>>,
    /// Their horizons.
    pub periods: Option<BTreeSet<Period>>,
    /// Their market regimes.
    pub regimes: Option<BTreeSet<Regime>>,
    /// The first day.
    pub from: Option<NaiveDate>,
    /// The day after the last.
    pub to: Option<NaiveDate>,
}

impl Filter {
    /// Takes what both take.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn both<T: Ord + Clone>(one: Option<BTreeSet<T>>, other: Option<BTreeSet<T>>) -> Option<BTreeSet<T>> {
            match (one, other) {
                (Some(one), Some(other)) => Some(&one & &other),
                (one, other) => one.or(other),
            }
        }
        Self {
            tickers: both(self.tickers, other.tickers),
            sectors: both(self.sectors, other.sectors),
            periods: both(self.periods, other.periods),
            regimes: both(self.regimes, other.regimes),
            from: self.from.max(other.from),
            to: [self.to, other.to].into_iter().flatten().min(),
        }
    }
}

/// The files that a dataset is written to.
#[derive(Clone, Debug)]
pub struct FilesPlan {
    /// Their formats; at least one, none twice.
    pub formats: Vec<Format>,
    /// How Parquet is compressed.
    pub codec: Codec,
    /// The rows of a row group of Parquet.
    pub row_group_rows: usize,
    /// The columns whose values are folders.
    pub partition_by: Vec<Column>,
    /// What is kept from a spreadsheet that reads CSV.
    pub guard: Guard,
    /// How many versions are kept.
    pub keep: usize,
}

/// How the pages of a Parquet file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Zstandard, with its level.
    Zstd(u8),
    /// Snappy.
    Snappy,
    /// Not at all.
    None,
}

/// What is kept from a spreadsheet that reads CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    None,
    /// Texts that it would take for a formula.
    Formulas,
}

/// When a scheduler should run a definition.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The five fields.
    pub cron: Cron,
    /// The zone that the hours are told in.
    pub timezone: Zone,
}

impl Way {
    /// The requests of the way, once its tickers are known.
    pub fn requests(&self, tickers: &[Ticker]) -> Vec<Request> {
        match &self.asked {
            Asked::Listed(requests) => requests.clone(),
            Asked::EachTicker(_, pairs) => {
                let of_ticker = |ticker: &Ticker| {
                    let of_pair = |&(period, regime)| Request::of_series(self.endpoint, ticker.clone(), period, regime);
                    pairs.iter().map(of_pair).collect::<Vec<_>>()
                };
                tickers.iter().flat_map(of_ticker).collect()
            }
        }
    }
}

impl Plan {
    /// Finds a definition by name or path, and says what it means.
    ///
    /// # Errors
    ///
    /// When it is not there, cannot be read, or is not right.
    pub fn find(name_or_path: &str) -> Result<Self> {
        Self::of(crate::definition::find(name_or_path)?)
    }

    /// What a definition means.
    ///
    /// # Errors
    ///
    /// Everything in it that cannot be read or does not go together, each with its place.
    pub fn of(found: Found) -> Result<Self> {
        meaning::of(found)
    }
}
