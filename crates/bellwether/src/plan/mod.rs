//! A plan: what a definition means.
//!
//! Every default is filled in and every combination is valid: users of a [`Plan`] never see whether something was
//! typed. It has the requests to make, the rule for dates, the features to join, and the exact columns of the dataset,
//! before anything is fetched.

mod ad_hoc;
mod columns;
mod dataset;
mod dictionary;
mod filter;
mod meaning;
mod request;
mod service;
mod wording;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

pub use crate::columns::csv::FormulaGuard;
pub use crate::definition::{
    Added, Availability, Confidence, Cron, DayCount, Days, Duplicates, Format, Hook, HookUrl, NaiveRule, OnFinding,
    Statistic, StoreKind, StoreUrl, TimeOfDay, TradeAt, Vintage, Zone,
};
pub use ad_hoc::{AdHoc, PinnedVersion};
pub use columns::{Column, Decay, Feature, Reference, RowKind, describe, is_label};
pub use dataset::{DatasetPlan, Labels, Shape};
pub use dictionary::Meaning;
pub use filter::Filter;
pub use request::Request;
pub use service::ServiceIdentity;
pub use written::{ColumnNames, WrittenColumns};

use crate::definition::DefinitionFile;
use crate::error::Result;
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::key::source::KeySource;
use crate::project::Project;
use crate::tables::{Conventions, SeriesKey};
use crate::trust::{self, Author};

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The definition's name, which is the dataset's.
    pub name: String,
    /// A one-line description of the dataset.
    pub description: Option<String>,
    /// What others may use the dataset for, if the definition states it.
    pub license: Option<String>,
    /// The definition's file.
    pub path: PathBuf,
    /// The definition's text, which goes into the dataset's record.
    pub text: String,
    /// Who wrote it.
    pub author: Author,
    /// The folder that its relative paths are below.
    pub root: PathBuf,
    /// The service.
    pub source: Source,
    /// Whose data it is.
    pub service: ServiceIdentity,
    /// Whether the definition names the service itself.
    pub names_service: bool,
    /// The variables of the environment that its addresses come from.
    pub address_variables: Vec<String>,
    /// How to get the signals: the first way that the service offers is used.
    pub alternatives: Vec<OperationRequests>,
    /// The requests for the tickers that are named beside sectors.
    pub further: Vec<Request>,
    /// The tickers whose signals are left out.
    pub excluded: BTreeSet<Ticker>,
    /// The other operations to request for each ticker.
    pub of_each_ticker: Vec<Endpoint>,
    /// The tickers of those requests.
    pub news_tickers: TickerSource,
    /// Concurrency, rate and patience.
    pub limits: RequestLimits,
    /// The maximum share of an operation's records, and of its series, that may be rejected.
    pub max_reject_share: f64,
    /// The checks that must pass before publishing.
    pub checks: Checks,
    /// What the answers mean.
    pub conventions: Conventions,
    /// Whether claims count.
    pub claims: Claims,
    /// Whether to archive unknown fields.
    pub keep_extra: bool,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// The prices that its signals are measured against.
    pub prices: PricesPlan,
    /// The files that it is written to.
    pub files: FilesPlan,
    /// The object store that keeps the archive and the datasets.
    pub store: Option<StoreUrl>,
    /// When a scheduler should run it.
    pub schedule: Option<Schedule>,
    /// What to call after a run.
    pub hooks: Hooks,
}

/// Whether claims count: what was imported from earlier downloads, and nobody witnessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claims {
    /// They are not read.
    #[default]
    LeftOut,
    /// They count from before the first run, and a column marks the rows that rest on them.
    Included,
}

/// The service.
#[derive(Clone, Debug)]
pub enum Source {
    /// The built-in service. Its first run begins with runs of earlier days.
    Demo {
        /// How many.
        earlier_runs: u8,
    },
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
    /// The source of the API key.
    pub key: KeySource,
    /// How it is asked.
    pub asking: Asking,
}

/// How a service is asked, where that differs from the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The header that the key is sent in; none for the query.
    pub key_header: Option<String>,
    /// The parameter of the query that the key is sent in, if not `api_key`.
    pub key_parameter: Option<String>,
    /// Further parameters of every request.
    pub query: Vec<(String, String)>,
    /// Other paths of operations, below the base address.
    pub paths: BTreeMap<Endpoint, String>,
    /// The names of fields that the service writes otherwise: those of the interface, and its own.
    pub fields: BTreeMap<String, String>,
    /// The members that may hold an answer.
    pub unwrap: Vec<String>,
    /// The tickers that have another name among news.
    pub news_tickers: BTreeMap<Ticker, Ticker>,
    /// Whether this machine's clock counts where that of the service differs.
    pub trusts_own_clock: bool,
}

/// A way to get the signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRequests {
    /// The operation that returns them.
    pub endpoint: Endpoint,
    /// The requests.
    pub list: RequestList,
    /// The tickers that have no request of their own, whatever the list.
    pub excluded: BTreeSet<Ticker>,
}

/// The requests of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestList {
    /// These requests, in order.
    Listed(Vec<Request>),
    /// Each ticker of a list with each period and regime; alone if there are none.
    EachTicker(TickerSource, Vec<(Period, Regime)>),
}

/// Where a list of tickers comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TickerSource {
    /// The definition lists them.
    Listed(Vec<Ticker>),
    /// The service lists them as available.
    Available,
    /// The answers to these requests name them.
    NamedBy(Vec<Request>),
    /// The signals name them.
    Signals,
}

impl TickerSource {
    /// The requests whose answers name the tickers; none if they are listed or follow the signals.
    pub fn listing(&self) -> Vec<Request> {
        match self {
            Self::Listed(_) | Self::Signals => Vec::new(),
            Self::Available => vec![Request::bare(Endpoint::TickersAvailable)],
            Self::NamedBy(requests) => requests.clone(),
        }
    }
}

/// The checks that must pass before publishing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// What to do if something that the definition names has no data.
    pub missing: OnFinding,
    /// The maximum share of tickers, and of series, that may disappear or appear since the previous version.
    pub universe: f64,
    /// How old the newest date may be.
    pub max_age: Option<DayCount>,
    /// What to do if the newest date lies in the future or goes back.
    pub dates: OnFinding,
    /// The maximum share of known signals, and of articles, that may be rewritten since the previous version.
    pub rewritten: f64,
    /// The same of a single series.
    pub rewritten_series: f64,
}

/// Limits on the requests to the service.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The number of concurrent requests.
    pub connections: usize,
    /// The maximum number of requests per second to a host; none for no limit.
    pub per_second: Option<u16>,
    /// How long an answer may stall.
    pub stall: Duration,
    /// How long a run keeps retrying.
    pub patience: Duration,
}

/// The files that a dataset is written to.
#[derive(Clone, Debug)]
pub struct FilesPlan {
    /// Their formats: at least one, without duplicates.
    pub formats: Vec<Format>,
    /// The compression of Parquet.
    pub codec: Codec,
    /// The number of rows per Parquet row group.
    pub row_group_rows: usize,
    /// The partition columns. `ticker` alone is a file for each, without folders.
    pub partition_by: Vec<Column>,
    /// The columns that pandas takes as the index.
    pub index: Vec<Column>,
    /// What CSV hides from spreadsheets.
    pub guard: FormulaGuard,
    /// How many versions to keep.
    pub keep: usize,
    /// Whether a run draws its report.
    pub report: bool,
}

/// The compression of Parquet pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Zstandard, with its level.
    Zstd(u8),
    /// Snappy.
    Snappy,
    /// No compression.
    None,
}

/// The prices that signals are measured against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PricesPlan {
    /// Their files, which may have a `*` in their names; none if they are named when it is measured.
    pub files: Vec<PathBuf>,
    /// The columns of the files.
    pub columns: PriceColumns,
    /// Whether they are adjusted for splits and dividends; none if it is not said.
    pub adjusted: Option<bool>,
}

/// The names of the columns of a file of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceColumns {
    /// The tickers.
    pub ticker: String,
    /// The dates of the sessions.
    pub date: String,
    /// The closes.
    pub close: String,
}

impl Default for PriceColumns {
    fn default() -> Self {
        let [ticker, date, close] = ["ticker", "date", "close"].map(str::to_owned);
        Self { ticker, date, close }
    }
}

/// When a scheduler should run a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The expression.
    pub cron: Cron,
    /// The time zone of the expression.
    pub timezone: Zone,
    /// How late a run may start.
    pub catch_up: Duration,
    /// How long after its due time a run is retried.
    pub deadline: Duration,
    /// The time before the first retry.
    pub retry_after: Duration,
}

/// What to call after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// After a version was published.
    pub on_success: Option<Hook>,
    /// After a run failed, or ran out of retries.
    pub on_failure: Option<Hook>,
    /// After a temporary failure.
    pub on_later: Option<Hook>,
    /// The address to GET after each success.
    pub ping: Option<HookUrl>,
    /// How long each may take.
    pub timeout: Duration,
}

impl Hooks {
    /// Whether there is nothing to call.
    pub fn is_empty(&self) -> bool {
        let Self { on_success, on_failure, on_later, ping, timeout: _ } = self;
        [on_success, on_failure, on_later].iter().all(|hook| hook.is_none()) && ping.is_none()
    }
}

impl OperationRequests {
    /// The requests of the way, once its tickers are known.
    pub fn requests(&self, tickers: &[Ticker]) -> Vec<Request> {
        match &self.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(_, pairs) => {
                let of_ticker = |ticker: &Ticker| {
                    if pairs.is_empty() {
                        return vec![Request::of_ticker(self.endpoint, ticker.clone())];
                    }
                    let of_pair = |&(period, regime)| Request::of_series(self.endpoint, ticker.clone(), period, regime);
                    pairs.iter().map(of_pair).collect::<Vec<_>>()
                };
                tickers.iter().filter(|ticker| !self.excluded.contains(*ticker)).flat_map(of_ticker).collect()
            }
        }
    }

    /// Whether each ticker in its answer has its own period and regime.
    pub(crate) fn is_batch(&self) -> bool {
        matches!(self.endpoint, Endpoint::SignalsHistoryBatchedAll | Endpoint::SignalsHistoryBatched)
    }

    /// The requests in place of a batch: for what it had of each ticker, as far as a filter takes it.
    pub(crate) fn requests_of<'k>(&self, series: impl Iterator<Item = &'k SeriesKey>, filter: &Filter) -> Vec<Request> {
        let is_taken = |key: &&SeriesKey| {
            !self.excluded.contains(&key.ticker) && filter.takes(&key.ticker, key.period, key.regime)
        };
        let of =
            |key: &SeriesKey| Some(Request::of_series(self.endpoint, key.ticker.clone(), key.period?, key.regime?));
        series.filter(is_taken).filter_map(of).collect()
    }
}

impl Plan {
    /// Finds a definition by its name in a project, or by its path, and makes its plan. A relative path to the API key
    /// or to prices is below the project's root.
    ///
    /// # Errors
    ///
    /// When it does not exist, cannot be read, or has problems.
    pub fn find(name_or_path: &str, project: &Project) -> Result<Self> {
        Self::of(crate::definition::find(name_or_path, &project.definitions())?.below(project.root()))
    }

    /// Makes the plan of a definition.
    ///
    /// # Errors
    ///
    /// All problems of the definition, each with its place.
    pub fn of(found: DefinitionFile) -> Result<Self> {
        meaning::of(found)
    }

    /// Fails unless the definition may run commands, and use keys and stores.
    ///
    /// # Errors
    ///
    /// If somebody whom the user does not trust could have written it.
    pub fn require_trust(&self) -> Result<()> {
        trust::require(self.author, &self.path)
    }

    /// The same plan with the claims of its service, and a column that marks the rows that rest on them.
    #[must_use]
    pub fn with_claims(self) -> Self {
        match self.claims {
            Claims::Included => self,
            Claims::LeftOut => {
                Self { claims: Claims::Included, dataset: self.dataset.with_columns([Column::Claimed]), ..self }
            }
        }
    }

    /// The definition's store, if it has one.
    ///
    /// # Errors
    ///
    /// As [`require_trust`](Self::require_trust), if it has one.
    pub fn trusted_store(&self) -> Result<Option<&StoreUrl>> {
        self.store.as_ref().map(|store| self.require_trust().map(|()| store)).transpose()
    }
}
