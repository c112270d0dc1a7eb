//! A definition as typed, with the place of every value.
//!
//! Everything here is optional, since defaults belong to the plan. Values are typed (a [`Period`] is a period), but
//! combinations are not checked: whether a base address goes with a service, or a sort key names a column, is up to the
//! plan. The types are the only description of the format: the reader, the list of known keys and the JSON Schema all
//! come from them.

mod addresses;
mod changes;
mod choices;
mod cron;
mod find;
mod reader;
mod times;
mod values;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::interface::{Period, Regime, Sector, Signal, Ticker};

pub(crate) use addresses::Address;
pub use addresses::{BaseUrl, Hook, HookUrl, StoreKind, StoreUrl};
pub use changes::{ChangedKey, changed_keys};
pub(crate) use choices::Tickers;
pub use choices::{
    Added, Availability, Compression, DatasetKind, DatesPer, Duplicates, Exchange, Format, HistoryForm, Layout,
    ListOrder, NewsSource, OnFinding, Service, Statistic, TickerList, TradeAt, TrustedClock, Vintage, Vintages,
};
pub use cron::Cron;
pub use find::{DefinitionFile, catalog, find, names, path_of, read, text_of, unusable_name};
pub(crate) use reader::ParsedDefinition;
pub(crate) use times::clock_instants;
pub use times::{
    CalendarDay, CatchUp, DayCount, Days, NaiveRule, OpeningHours, RelativeDay, TimeOfDay, TimeSpan, Zone,
};
pub use values::Confidence;
pub(crate) use values::{List, Pair, Share};

/// A Bellwether pipeline: what to fetch from the service, and the dataset to build from it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(title = "Bellwether definition")]
pub(crate) struct Definition {
    /// A one-line description of the dataset.
    #[schemars(example = &"Signals of two sectors")]
    pub description: Option<String>,
    /// The service, and the API key for it.
    pub source: SourceSection,
    /// The signals to fetch.
    pub signals: SignalsSection,
    /// The news and sentiment to fetch.
    pub sentiment: SentimentSection,
    /// Which part of the archive counts.
    pub archive: ArchiveSection,
    /// What the dataset has a row for, and its columns.
    pub dataset: DatasetSection,
    /// How to handle rejected records and unknown fields.
    pub rejects: RejectsSection,
    /// How to convert dates with an offset to naive dates.
    pub dates: DatesSection,
    /// The trading days. Default: those of the New York Stock Exchange.
    pub calendar: CalendarSection,
    /// Which tickers are the same security over time.
    pub identity: IdentitySection,
    /// The news features to join to each signal.
    pub join: JoinSection,
    /// The checks that must pass before a version is published.
    pub checks: ChecksSection,
    /// The signals to include in the dataset. Default: all signals that the definition fetches.
    pub filter: FilterSection,
    /// The closing prices that `bellwether audit skill` measures signals against.
    pub prices: PricesSection,
    /// What to measure beside each signal: returns from the first close at which it could be entered. Default: none.
    pub labels: Option<LabelsSection>,
    /// The files to write.
    pub output: OutputSection,
    /// The object store that keeps the archive and the datasets. Default: none, only the local folder.
    pub store: Option<StoreSection>,
    /// When a scheduler should run the definition.
    pub schedule: Option<ScheduleSection>,
    /// What to call after a run.
    pub hooks: HooksSection,
}

/// The service, and the API key for it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct SourceSection {
    /// The name of the service and of its archive. Definitions with the same name share what they know. Default:
    /// made from `base_url`, or `demo`. An address from the environment always makes the name.
    #[schemars(example = &"acme")]
    pub name: Option<String>,
    /// A service by name: `demo` is built in and needs no API key.
    pub service: Option<Service>,
    /// The first run of the demo service begins with this many runs of earlier days, four weeks apart, so that the archive
    /// knows what its vendor rewrote since: 0 to 12. Default: 0.
    #[schemars(range(max = 12))]
    pub earlier_runs: Option<u8>,
    /// The base address of the signals operations, or the variable of the environment that holds it: `"$VENDOR_URL"`.
    /// Default: `BELLWETHER_BASE_URL`.
    pub base_url: Option<Address>,
    /// The base address of the sentiment operations, or the variable that holds it. Default:
    /// `BELLWETHER_SENTIMENT_BASE_URL`.
    pub sentiment_base_url: Option<Address>,
    /// A file whose first line is the API key. A relative path is below the project's root.
    #[schemars(example = &"vendor.key")]
    pub api_key_file: Option<String>,
    /// A command, with its arguments, that prints the API key.
    #[schemars(example = ["pass", "show", "signals"])]
    pub api_key_command: Option<List<String>>,
    /// How the key is sent: `{ header = "X-API-Key" }` or `{ query = "apikey" }`. Default: `{ query = "api_key" }`.
    #[schemars(extend("examples" = [{ "header": "X-API-Key" }]))]
    pub key: Option<KeyPlace>,
    /// Further parameters of every request: `{ tenant = "7" }`. Default: none.
    #[schemars(extend("examples" = [{ "tenant": "7" }]))]
    pub query: Option<BTreeMap<String, String>>,
    /// Other paths of operations, below the base address: `signals-history-all = "v2/history"`. The ticker takes the place of
    /// `{ticker}`, or follows the path. Default: none.
    #[schemars(extend("examples" = [{ "signals-history-all": "v2/history" }]))]
    pub paths: Option<BTreeMap<String, String>>,
    /// The member of an object that holds the answer, where the service wraps it: `"data"`, or several that may. Default:
    /// answers are as the interface says.
    #[schemars(example = &"data")]
    pub unwrap: Option<List<String>>,
    /// The names that the service has for fields: `confidence = "probability"`. Default: those of the interface.
    #[schemars(extend("examples" = [{ "confidence": "probability" }]))]
    pub fields: Option<BTreeMap<String, String>>,
    /// The names that tickers have among news, if they are others: `"BRK.B" = "BRK-B"`. Default: the same.
    #[schemars(extend("examples" = [{ "BRK.B": "BRK-B" }]))]
    pub tickers: Option<BTreeMap<Ticker, Ticker>>,
    /// Whose clock is right where the service's differs from this machine's: `service`, which stops a run, or `ours`.
    /// Default: `service`.
    pub clock: Option<TrustedClock>,
    /// The number of concurrent requests, 1 to 64. Default: 8.
    #[schemars(range(min = 1, max = 64))]
    pub connections: Option<u8>,
    /// The maximum number of requests per second to a host. Default: 25, or unlimited if the service is on this
    /// machine.
    #[schemars(range(min = 1))]
    pub requests_per_second: Option<u16>,
    /// Give up on an answer that sends nothing for this long, or less than 1 KiB per second afterwards. Default: `30s`.
    pub stall: Option<TimeSpan>,
    /// How long a run keeps retrying before it gives up and leaves the rest to be resumed. Default: `15m`.
    pub patience: Option<TimeSpan>,
}

/// Where the key is in a request: one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct KeyPlace {
    /// In a header of this name: `X-API-Key`.
    pub header: Option<String>,
    /// In a parameter of this name: `apikey`.
    pub query: Option<String>,
}

/// The signals to fetch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct SignalsSection {
    /// The operation to fetch signals from. Default: `ticker` if only `tickers` are given, or else `sector`.
    pub history: Option<HistoryForm>,
    /// The sectors to fetch.
    pub sectors: Option<List<Sector>>,
    /// The tickers to fetch: a list, or `"available"`. With `sectors`, these beside those of the sectors; `[filter]` narrows.
    /// Default: the tickers of the sectors.
    pub tickers: Option<Tickers>,
    /// The tickers to leave out, of those that are fetched otherwise. Default: none.
    pub exclude: Option<List<Ticker>>,
    /// The horizons to fetch. Default: `["15d"]`, or with `history = "batched"` all horizons in the batch.
    pub periods: Option<List<Period>>,
    /// The market regimes to fetch. Default: `["neutral"]`, or with `history = "batched"` all regimes in the batch.
    pub regimes: Option<List<Regime>>,
    /// The horizons and regimes to fetch, pair by pair: `["5d bull", "1m neutral"]`. Default: each of `periods` with each
    /// of `regimes`.
    pub pairs: Option<List<Pair>>,
    /// Whether each history has every signal that it ever had. If so, a run withdraws signals that are no longer listed
    /// however old they are; if not, those from the oldest listed date on. Default: false.
    pub complete: Option<bool>,
    /// Confidences that differ by less than this share of them are the same, and no revision: up to 0.01. Some services
    /// compute each answer anew, or with few digits. Default: 1e-9.
    #[schemars(range(min = 0.0, max = 0.01))]
    pub tolerance: Option<f64>,
    /// When a signal is made whose date has no time, or is written as midnight: `"16:00 America/New_York"`. Default: at the
    /// end of its day, or with an offset at that midnight.
    pub made_at: Option<TimeOfDay>,
}

/// The news and sentiment to fetch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct SentimentSection {
    /// Whether to fetch scored news articles. Default: true.
    pub articles: Option<bool>,
    /// Whether to fetch the sentiment summary of each ticker. Default: false.
    pub summary: Option<bool>,
    /// Whether to fetch the historical sentiment of each ticker. Default: false.
    pub historical: Option<bool>,
    /// The tickers to fetch: a list, `"available"`, or `"signals"` for the tickers of the signals. Default:
    /// `"signals"`.
    pub tickers: Option<Tickers>,
    /// The order in which articles are listed: `newest first` or `oldest first`. It tells which article of a day is the
    /// last. Default: as each list itself shows.
    pub order: Option<ListOrder>,
    /// How to count articles with the same date, title, link and score: `once`, or `keep` to count each. Default:
    /// `once`.
    pub duplicates: Option<Duplicates>,
    /// Whether the service lists every article that it ever had. If it may cut its lists off, a window that does not
    /// begin after the day of the oldest article ever listed is null, since there may have been more. If it does, a
    /// run also withdraws articles that are no longer listed however old they are. Default: false.
    pub complete: Option<bool>,
    /// How long after its date something is known that has one: `15m` for news that reaches you a quarter of an hour
    /// late. Default: none.
    pub delay: Option<TimeSpan>,
}

/// Which part of the archive counts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct ArchiveSection {
    /// Whether claims count, which `bellwether import` makes of files that were saved before the first run. If so, a column
    /// `claimed` marks the rows that rest on them. `--include claimed` does the same for one command. Default: false.
    pub claimed: Option<bool>,
}

/// What the dataset has a row for, and its columns.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct DatasetSection {
    /// `joined` for a row per signal with features of the news, `signals` for signals without news, or `news` for a row
    /// per article. Data that a kind does not use is not fetched. Default: `joined`.
    pub kind: Option<DatasetKind>,
    /// The columns, in this order. Default: all, without those to be added.
    #[schemars(example = ["date", "ticker"])]
    pub columns: Option<List<String>>,
    /// Columns to add: `sector` (when the row was first seen; a dataset of `sectors` has it anyway), `sector_latest`, `first_observed_at`, `observed_at`, `revisions`, `backfilled`, `known_at`, `tradable_at`, `entry_at`, `source`, `watched_until`, `id`. Default: none.
    #[schemars(extend("examples" = ["known_at", "tradable_at", "id"]))]
    pub add: Option<List<Added>>,
    /// The license of the dataset, which `dataset.json` and `bellwether cite` repeat: `CC-BY-4.0`, or the address of its
    /// text. Default: none.
    #[schemars(example = &"CC-BY-4.0")]
    pub license: Option<String>,
    /// New column names: `ticker = "asset"`. All other keys use the columns' own names. Default:
    /// none.
    #[schemars(extend("examples" = [{ "ticker": "asset" }]))]
    pub rename: Option<BTreeMap<String, String>>,
}

/// Returns beside each signal, for the training of models. They look ahead by design.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct LabelsSection {
    /// The horizons: `["5d", "1m"]`. A day is a session of the prices. Each adds the columns `exit_at_5d` and `return_5d`, after
    /// `entry_at`. Prices are those of `[prices]`, or the demo's.
    pub horizons: Option<List<Period>>,
    /// How many sessions after its date a backfilled signal is entered: 1 is the next close, 0 that of its own date, which a
    /// signal may know. One that was seen live is entered at the first close after that. Default: 1.
    pub lag: Option<u8>,
}

/// How to handle rejected records and unknown fields.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct RejectsSection {
    /// The maximum share of an operation's records, and of its series, that may be rejected, 0 to 1. Above it the run
    /// fails. Default: 0.01.
    pub max_share: Option<Share>,
    /// Whether to archive unknown fields, as JSON. They are counted in any case. Default: false.
    pub keep_extra: Option<bool>,
}

/// How to convert dates with an offset to naive dates, for signals, articles and historical sentiment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct DatesSection {
    /// The clock of naive dates: `utc`, a time zone such as `America/New_York`, or `wall` for the local time as
    /// written. A date without an offset is assumed to be on that clock. If two signals of a series get the same date,
    /// the earlier one is kept. Default: `utc`.
    pub naive: Option<NaiveRule>,
    /// What has one signal of a series at most: `date`, or `day` where the service stamps signals with the time at which it
    /// made them. Then the last of a day counts, with the day on the clock of `naive` as its date, and the archive keeps no
    /// time of day. Default: `date`.
    pub per: Option<DatesPer>,
}

/// The trading days, which `max_age`, `live_within`, `status`, `audit quality` and a `lag` in trading days count, and the
/// hours that `tradable_at` needs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct CalendarSection {
    /// Sessions that are built in: `XNYS` for those of the New York Stock Exchange, with its holidays and early closes, or
    /// `weekdays` for each Monday to Friday. Default: `XNYS`, unless one of the next three says otherwise.
    pub exchange: Option<Exchange>,
    /// Instead: a CSV file with a line per session: `date`, and `open` and `close` with an offset. A relative path is below the
    /// project's root. Before its first and after its last session, trading days are Monday to Friday.
    #[schemars(example = &"sessions.csv")]
    pub sessions: Option<String>,
    /// Instead: when the market opens and closes, Monday to Friday: `"09:30-16:00 America/New_York"`.
    pub hours: Option<OpeningHours>,
    /// Instead: the days from Monday to Friday on which there is no session.
    pub holidays: Option<List<CalendarDay>>,
    /// When `tradable_at` may be: at the `open` of a session, at its `close`, or at `either`. Default: `either`.
    pub trade_at: Option<TradeAt>,
}

/// Which tickers are the same security over time: a column `id` says so, and `bellwether audit skill` follows a return from
/// one ticker to the next.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct IdentitySection {
    /// A CSV file with the columns `ticker`, `from`, `to` and `id`: a line for the days, from the first to the last, on which
    /// a ticker stands for what the id names; without `from` or `to`, all days before or after. A relative path is below the
    /// project's root. Other tickers are their own id. Default: none, every ticker is.
    #[schemars(example = &"identity.csv")]
    pub file: Option<String>,
}

/// The news features to join to each signal.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct JoinSection {
    /// How long before a signal's date an article must be dated: calendar days (`1d`), or trading days (`1 trading
    /// day`), which are those of `[calendar]`, or without it the dates of all signals that the definition fetches, as far
    /// as they had been seen by then. An article is never used for a signal that was made before it: an article without an
    /// offset is known at the end of its day, and a signal without an offset or a time is made at the end of its day,
    /// unless `made_at` says when. Default: `1d`.
    pub lag: Option<DayCount>,
    /// When an article is known: `dated`, from its date on, or `observed`, also not before it was first seen, and not
    /// after the signal was. Default: `dated`.
    pub availability: Option<Availability>,
    /// The sources of features. Default: `["articles"]`.
    pub sources: Option<List<NewsSource>>,
    /// The windows of articles, in calendar days. They end at the signal's date minus the lag. Default: `["1d", "7d",
    /// "30d"]`.
    pub windows: Option<List<Days>>,
    /// The statistics of the scores in a window. `count` includes articles without a score; a `mean` is exact to half a
    /// billionth, and `std`, `sum` and `decay` round each score to nine decimals. `decay` is a mean in which an article
    /// counts half as much for each half-life that it is older than the last day of the window. Default: `["count", "mean", "min", "max", "last"]`.
    pub stats: Option<List<Statistic>>,
    /// The half-lives of `decay`, in calendar days: a column for each of them and each window. Required with `decay`.
    pub half_lives: Option<List<Days>>,
    /// The numeric fields of historical sentiment to join, for the source `historical`.
    #[schemars(example = &"score")]
    pub historical: Option<List<String>>,
}

/// The checks that must pass before a version is published. If a check fails, nothing is published, `latest` is
/// unchanged, the archive keeps what was fetched, and the exit code is 4.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct ChecksSection {
    /// What to do if a sector, ticker or operation that the definition names has no data: `fail`, or `warn` to publish
    /// without it. Default: `fail`.
    pub missing: Option<OnFinding>,
    /// The maximum share of tickers, and of series, that may disappear or appear since the previous version, 0 to 1; 1
    /// allows all. A history without signals counts as gone. Only what that version requested as well is compared.
    /// Default: 0.2.
    pub universe: Option<Share>,
    /// How old the newest date may be: trading days (`2 trading days`) or calendar days (`3d`). Trading days are those
    /// of `[calendar]`. Friday's signals are 0 trading days old on Sunday. Default: not checked; `bellwether status` calls
    /// data older than 2 trading days stale.
    pub max_age: Option<DayCount>,
    /// What to do if the newest date lies more than a week in the future, or before that of the previous version: `fail`
    /// or `warn`. Default: `fail`.
    pub dates: Option<OnFinding>,
    /// The maximum share of the signals, and of the articles, known to the previous version that may have been revised
    /// or withdrawn since, 0 to 1; 1 allows all. Default: 0.2.
    pub rewritten: Option<Share>,
    /// The same for a single series: the signals of a ticker, period and regime, or the articles of a ticker, if it had
    /// 20 or more. Default: 0.5.
    pub rewritten_series: Option<Share>,
}

/// The signals to include in the dataset.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct FilterSection {
    /// Only these tickers.
    pub tickers: Option<List<Ticker>>,
    /// Only tickers in these sectors; a ticker that left its sector still counts in it.
    pub sectors: Option<List<Sector>>,
    /// Only these horizons.
    pub periods: Option<List<Period>>,
    /// Only these market regimes.
    pub regimes: Option<List<Regime>>,
    /// Only signals to `buy`, or to `sell`.
    pub signal: Option<Signal>,
    /// Only signals with at least this confidence, on the scale of the column `confidence`: `0.6`, or `60` if the service
    /// gives percentages.
    pub min_confidence: Option<Confidence>,
    /// Only dates from this day on: `2024-01-01`, or counted back from the day of the run, `-2y`, `-6m` or `-90d`.
    pub from: Option<RelativeDay>,
    /// Only dates before this day, in the same forms.
    pub to: Option<RelativeDay>,
    /// Only tickers that were members on the date of the row: a CSV file with a line per ticker and membership, in the columns
    /// `ticker`, `from` and `to`, the last day, which is empty for a member of today. A relative path is below the project's
    /// root. Default: all tickers.
    #[schemars(example = &"members.csv")]
    pub universe: Option<String>,
}

/// The closing prices that `bellwether audit skill` measures signals against.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct PricesSection {
    /// A Parquet or CSV file with a row per ticker and date, or a list of them; `*` in the name of a file stands for any
    /// characters. A relative path is below the project's root. `--prices` takes precedence.
    #[schemars(example = &"prices.parquet")]
    pub file: Option<List<String>>,
    /// The names of its columns, where they are not `ticker`, `date` and `close`: `close = "adj_close"`. Default: none.
    #[schemars(extend("examples" = [{ "close": "adj_close" }]))]
    pub columns: Option<BTreeMap<String, String>>,
    /// Whether closes are adjusted for splits and dividends. Without it returns over a split are wrong, and the audit says
    /// so. Default: not known.
    pub adjusted: Option<bool>,
}

impl PricesSection {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.is_none() && self.columns.is_none() && self.adjusted.is_none()
    }
}

/// The files to write.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct OutputSection {
    /// The file format, or a list of them; `csv.gz` and `csv.zst` are compressed. Default: `parquet`.
    pub format: Option<List<Format>>,
    /// `long` for one row per signal, or `wide` for one matrix of dates and tickers per period, regime and value.
    /// Default: `long`.
    pub layout: Option<Layout>,
    /// The sort order of the rows. Default: `["ticker", "date", "period", "regime"]`.
    #[schemars(example = &"date")]
    pub sort: Option<List<String>>,
    /// The columns to write as matrices, for `layout = "wide"`. Default: `["signal", "confidence"]`.
    #[schemars(example = &"signal")]
    pub values: Option<List<String>>,
    /// Which observation of a signal to use: `latest` (as revised) or `first` (as first published, with the news that was
    /// known then). `all`, for `kind = "signals"`, has a row for each value, `known_from` and `known_until`. Default: `latest`.
    pub vintage: Option<Vintages>,
    /// How long after its date a signal must have been first seen, and its news asked for, not to be backfilled: trading
    /// days (`1 trading day`) or calendar days (`3d`). `bellwether audit skill` takes signals that are not for published.
    /// Default: `2 trading days`.
    pub live_within: Option<DayCount>,
    /// The columns to partition by, as Hive-style folders; or `ticker` alone, as a file for each:
    /// `tickers/XOM.parquet`. Default: none.
    #[schemars(example = &"ticker")]
    pub partition_by: Option<List<String>>,
    /// The columns that pandas takes as the index of Parquet files: `["date", "ticker"]`. Other readers see columns. Default:
    /// none; for matrices, their dates.
    #[schemars(example = ["date", "ticker"])]
    pub index: Option<List<String>>,
    /// The compression of Parquet. Default: `zstd`.
    pub compression: Option<Compression>,
    /// The zstd level, 1 to 22. Default: 3.
    #[schemars(range(min = 1, max = 22))]
    pub level: Option<u8>,
    /// The number of rows per Parquet row group, 1000 or more. Default: 262144.
    #[schemars(range(min = 1000))]
    pub row_group_rows: Option<u32>,
    /// Whether to prefix CSV text that a spreadsheet would read as a formula with `'`. Default: false.
    pub csv_guard: Option<bool>,
    /// How many versions of the dataset to keep. Default: 5.
    #[schemars(range(min = 1))]
    pub keep: Option<u16>,
    /// Whether a run or build draws its report, as `bellwether report` does on demand: `reports/NAME.html` in the data
    /// folder. Default: false.
    pub report: Option<bool>,
}

/// The object store that keeps the archive and the datasets. The local folder is its cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct StoreSection {
    /// Its address: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`.
    /// Credentials come from the environment, a profile or the instance. `--store` and `BELLWETHER_STORE` take
    /// precedence.
    #[schemars(required)]
    pub url: Option<StoreUrl>,
}

/// When a scheduler should run the definition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ScheduleSection {
    /// A cron expression: minute, hour, day of month, month, day of week, with names such as `MON-FRI`, or `@daily`;
    /// with six fields, the first is the second.
    #[schemars(required)]
    pub cron: Option<Cron>,
    /// The time zone of the cron expression. A time that the clock skips in spring is due right after the gap; one that
    /// it repeats in autumn is due once, the first time. If every hour is named, as by `*`, real hours count: nothing is
    /// due for skipped ones, and repeated ones count again. Default: UTC.
    #[serde(default)]
    pub timezone: Option<Zone>,
    /// How late a run may start. If the scheduler was down at a due time, or still busy with the previous run, the
    /// newest missed time is run once, unless it is older than this; `0s` skips missed times. Waiting for other
    /// definitions (`--jobs`) makes a run late, not missed. Default: `1d`.
    #[serde(default)]
    pub catch_up: Option<CatchUp>,
    /// Keep retrying a temporary failure (exit code 75) until this long after the due time, or until the next run is
    /// due: then the run has failed. It never ends a run. Default: `2h`.
    #[serde(default)]
    pub deadline: Option<TimeSpan>,
    /// The time before the first retry. It doubles with each retry, up to 15 minutes. Default: `1m`.
    #[serde(default)]
    pub retry_after: Option<TimeSpan>,
}

/// What to call after a run. A hook gets the record of the run as JSON: a command on its standard input, an address by
/// POST. It never gets the API key, and its failure is reported but does not change the outcome of the run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(crate) struct HooksSection {
    /// After a version was published: a command as a list (`["logger", "published"]`, without a shell, run in the project's
    /// root), or an address.
    pub on_success: Option<Hook>,
    /// After a run failed, or ran out of retries.
    pub on_failure: Option<Hook>,
    /// After a temporary failure (exit code 75).
    pub on_later: Option<Hook>,
    /// URL to ping after each success, for a service that raises an alarm when it is not called.
    pub ping: Option<HookUrl>,
    /// How long a hook may take. Default: `30s`.
    pub timeout: Option<TimeSpan>,
}

/// The JSON Schema of a definition.
pub fn json_schema() -> Schema {
    let transform = RecursiveTransform(without_null);
    let generator = SchemaSettings::draft2020_12().with_transform(transform).into_generator();
    let mut schema = generator.into_root_schema_for::<Definition>();
    schema.insert("$id".to_owned(), concat!("urn:bellwether:definition:", env!("CARGO_PKG_VERSION")).into());
    schema
}

/// TOML has no null: an optional value is described by its type alone.
fn without_null(schema: &mut Schema) {
    let null = serde_json::json!({ "type": "null" });
    if schema.get("default").is_some_and(|default| default.is_null()) {
        schema.remove("default");
    }
    if let Some(alternatives) = schema.get_mut("anyOf").and_then(|any| any.as_array_mut()) {
        alternatives.retain(|alternative| *alternative != null);
        if let [only] = alternatives.as_slice() {
            let only = only.as_object().cloned().unwrap_or_default();
            schema.remove("anyOf");
            only.into_iter().for_each(|(key, value)| drop(schema.insert(key, value)));
        }
    }
    if let Some(types) = schema.get_mut("type").and_then(|types| types.as_array_mut()) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
}
