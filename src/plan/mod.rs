//! A plan: what a definition means.
//!
//! Every default is filled in and every combination is possible: whoever holds a [`Plan`] need not ask whether something
//! was typed. It says which requests are made, how dates become naive, which features each signal is given, and the
//! exact columns of the dataset that comes out, before anything is fetched.

mod columns;
mod meaning;
mod request;

use std::path::PathBuf;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use url::Url;

pub use crate::definition::{Cron, Days, Format, NaiveRule, Statistic, Zone};
pub use columns::{Column, Feature, describe};
pub use request::Request;

use crate::definition::Found;
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::secret::KeySource;

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
    /// The share of records that may be set aside.
    pub max_reject_share: f64,
    /// Whether fields that the interface does not know are kept.
    pub keep_extra: bool,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// The formats to write it in; at least one, none twice.
    pub formats: Vec<Format>,
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
#[derive(Clone, Debug)]
pub struct Way {
    /// The operation whose answers make the dataset.
    pub endpoint: Endpoint,
    /// What is asked of it.
    pub asked: Asked,
}

/// What is asked of an operation.
#[derive(Clone, Debug)]
pub enum Asked {
    /// These requests, in order.
    Listed(Vec<Request>),
    /// Each ticker of a list with each period and regime.
    EachTicker(Tickers, Vec<(Period, Regime)>),
}

/// Where a list of tickers comes from.
#[derive(Clone, Debug)]
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

/// The dataset: its dates, its features, its columns, its order.
#[derive(Clone, Debug)]
pub struct DatasetPlan {
    /// How a date with an offset becomes one without.
    pub dates: NaiveRule,
    /// How many days an article must be older than a signal.
    pub lag: Days,
    /// The features of the news, in the order of their columns.
    pub features: Vec<Feature>,
    /// The columns, exactly as they are written.
    pub schema: SchemaRef,
    /// The columns that order the rows; together they tell any two rows apart.
    pub sort: Vec<Column>,
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
