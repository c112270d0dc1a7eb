//! A plan: what a definition means.
//!
//! Every default is filled in and every combination is possible: whoever holds a [`Plan`] need not ask whether something
//! was typed. It says which requests are made, how dates become naive, which features each signal is given, and the
//! exact columns of the dataset that comes out, before anything is fetched.

mod columns;
mod meaning;
mod request;

use std::path::PathBuf;

use arrow::datatypes::SchemaRef;
use url::Url;

pub use crate::definition::{Cron, Days, Format, NaiveRule, Statistic, Zone};
pub use columns::{Column, Feature, describe};
pub use request::Request;

use crate::definition::Found;
use crate::error::Result;
use crate::interface::Endpoint;
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
    /// The requests that are known beforehand, in order.
    pub requests: Vec<Request>,
    /// What is asked for every ticker that those requests name.
    pub of_each_ticker: Vec<Endpoint>,
    /// How a date with an offset becomes one without.
    pub dates: NaiveRule,
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

/// The dataset: its columns, its features, its order.
#[derive(Clone, Debug)]
pub struct DatasetPlan {
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
