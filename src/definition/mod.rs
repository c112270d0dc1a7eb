//! A definition: what a person typed, with the places where it was typed.
//!
//! Everything here may be missing, for a default belongs to the plan, not to the file. Values are typed (a [`Period`] is
//! a period), but combinations are not judged: whether a base address goes with a service, or a sort key names a column,
//! is for the plan to say, which knows what the definition means. The types are the only description of the format: the
//! reader, the list of known keys and the JSON Schema all come from them.

mod choices;
mod cron;
mod find;
mod one_or_more;
mod placed;
mod reader;
mod tickers;
mod values;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::interface::{Period, Regime, Sector, Ticker};

pub use choices::{
    Availability, Compression, Duplicates, Format, HistoryForm, Layout, Lineage, NewsSource, OnMissing, Service,
    Statistic, TickerList, Vintage,
};
pub use cron::Cron;
pub use find::{FOLDER, Found, find};
pub use one_or_more::OneOrMore;
pub use placed::Placed;
pub use reader::Reading;
pub use tickers::Tickers;
pub use values::{BaseUrl, CalendarDay, Days, Lag, NaiveRule, Span, Zone};

/// A pipeline of Bellwether: what to ask the service for, and the dataset to make of it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(title = "Bellwether definition")]
pub struct Definition {
    /// What the dataset is, in a line.
    pub description: Option<String>,
    /// Where the service is and how to be let in.
    pub source: Placed<SourceSection>,
    /// Which histories of signals to fetch.
    pub signals: Placed<SignalsSection>,
    /// Which news and sentiment to fetch for the tickers of those histories.
    pub sentiment: Placed<SentimentSection>,
    /// What becomes of records that cannot be typed, and of fields that nobody knows.
    pub rejects: Placed<RejectsSection>,
    /// How dates with an offset become dates without one.
    pub dates: Placed<DatesSection>,
    /// Which features of the news each signal is given.
    pub join: Placed<JoinSection>,
    /// What must hold before a version is published.
    pub checks: Placed<ChecksSection>,
    /// Which of the signals in the archive go into the dataset. Default: all that the definition asks for.
    pub filter: Placed<FilterSection>,
    /// The files to write.
    pub output: Placed<OutputSection>,
    /// When a scheduler should run it.
    pub schedule: Option<Placed<ScheduleSection>>,
}

/// Where the service is and how to be let in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SourceSection {
    /// A service by name: `demo` is built in and needs no key.
    pub service: Option<Placed<Service>>,
    /// The base address of the signals.
    pub base_url: Option<Placed<BaseUrl>>,
    /// The base address of news and sentiment.
    pub sentiment_base_url: Option<Placed<BaseUrl>>,
    /// A file whose first line is the key.
    pub api_key_file: Option<Placed<String>>,
    /// A command, with its arguments, that prints the key.
    pub api_key_command: Option<Placed<Vec<String>>>,
    /// How many requests are under way at once, 1 to 64. Default: 8.
    pub connections: Option<Placed<u8>>,
    /// How many requests a host is sent in a second, at most. Default: 25, and no limit on this machine.
    pub requests_per_second: Option<Placed<u16>>,
    /// How long an answer may stand still; one that takes longer must bring 1 KiB a second. Default: `30s`.
    pub stall: Option<Placed<Span>>,
    /// How long a run goes on asking again before it leaves the rest for later. Default: `15m`.
    pub patience: Option<Placed<Span>>,
}

/// Which histories of signals to fetch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SignalsSection {
    /// The operation to ask. Default: `sector`.
    pub history: Option<Placed<HistoryForm>>,
    /// The sectors whose tickers are asked for.
    pub sectors: Option<Placed<Vec<Placed<Sector>>>>,
    /// The tickers, for `history = "ticker"` and `"latest"`: a list, or `"available"`. Default: those of the sectors.
    pub tickers: Option<Placed<Tickers>>,
    /// The horizons. Default: `["15d"]`; with `history = "batched"`, all that the batch has.
    pub periods: Option<Placed<Vec<Placed<Period>>>>,
    /// The market regimes. Default: `["neutral"]`; with `history = "batched"`, all that the batch has.
    pub regimes: Option<Placed<Vec<Placed<Regime>>>>,
}

/// Which news and sentiment to fetch for the tickers of the histories.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SentimentSection {
    /// Scored news articles. Default: true.
    pub articles: Option<Placed<bool>>,
    /// The summary of each ticker. Default: false.
    pub summary: Option<Placed<bool>>,
    /// The historical sentiment of each ticker, kept in the archive. Default: false.
    pub historical: Option<Placed<bool>>,
    /// The tickers: a list, `"signals"` or `"available"`. Default: `"signals"`, those that the signals named.
    pub tickers: Option<Placed<Tickers>>,
    /// `once`: articles with the same date, title, link and score count as one; `keep`: each one counts. Default: `once`.
    pub duplicates: Option<Placed<Duplicates>>,
}

/// What becomes of records that cannot be typed, and of fields that nobody knows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RejectsSection {
    /// The share of the records, and of the series, of an operation that may be rejected before the run fails, 0 to 1.
    /// Default: 0.01.
    pub max_share: Option<Placed<f64>>,
    /// Whether fields that the interface does not know are kept, as JSON. Default: false; they are counted in any case.
    pub keep_extra: Option<Placed<bool>>,
}

/// How dates with an offset become dates without one, for signals, articles and historical sentiment alike.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct DatesSection {
    /// `utc`: the instant in UTC; `wall`: the clock face as written; or a zone such as `America/New_York`. A date without
    /// an offset is taken to be on that clock. Of two signals of a series that get one date the earlier one is kept.
    /// Default: `utc`.
    pub naive: Option<Placed<NaiveRule>>,
}

/// Which features of the news each signal is given.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct JoinSection {
    /// How many days before a signal's date an article must be dated: days, or `1 trading day`, counted by all signals that
    /// the definition asks for. An article is never used for a signal that was made before it: one without an offset is
    /// known at the end of its day, and a signal without an offset or a time is made at the end of its day.
    /// Default: `1d`, strictly before.
    pub lag: Option<Placed<Lag>>,
    /// `dated`: an article is known from its date on; `observed`: and not before it was seen. Default: `dated`.
    pub availability: Option<Placed<Availability>>,
    /// Where features come from. Default: `["articles"]`.
    pub sources: Option<Placed<Vec<Placed<NewsSource>>>>,
    /// The windows, in calendar days that end at the signal's date minus the lag. Default: `["1d", "7d", "30d"]`.
    pub windows: Option<Placed<Vec<Placed<Days>>>>,
    /// What to say of the scores in a window: `count` counts articles without a score too, `mean` and `std` round each
    /// score to nine decimals. Default: `["count", "mean", "min", "max", "last"]`.
    pub stats: Option<Placed<Vec<Placed<Statistic>>>>,
    /// The numeric fields of historical sentiment to take, for the source `historical`.
    pub historical: Option<Placed<Vec<Placed<String>>>>,
}

/// What must hold before a version is published. If a check fails nothing is published, `latest` is unchanged, the archive
/// keeps what was fetched, and the exit code is 4.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ChecksSection {
    /// What to do if a sector, ticker or operation that the definition names has no data: `fail`, or `warn` and publish
    /// without it. Default: `fail`.
    pub missing: Option<Placed<OnMissing>>,
    /// The share of tickers, and of series, that may disappear or appear since the version before, 0 to 1; 1 allows all. A
    /// history without signals counts as gone. Not checked if that version asked for other signals. Default: 0.2.
    pub universe: Option<Placed<f64>>,
}

/// Which of the signals in the archive go into the dataset.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct FilterSection {
    /// Only these tickers.
    pub tickers: Option<Placed<Vec<Placed<Ticker>>>>,
    /// Only tickers of these sectors.
    pub sectors: Option<Placed<Vec<Placed<Sector>>>>,
    /// Only these horizons.
    pub periods: Option<Placed<Vec<Placed<Period>>>>,
    /// Only these market regimes.
    pub regimes: Option<Placed<Vec<Placed<Regime>>>>,
    /// Only dates from this day on.
    pub from: Option<Placed<CalendarDay>>,
    /// Only dates before this day.
    pub to: Option<Placed<CalendarDay>>,
}

/// The files to write.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct OutputSection {
    /// One format, or several. Default: `parquet`.
    pub format: Option<Placed<OneOrMore<Format>>>,
    /// `long`: one row per signal; `wide`: one matrix of dates and tickers per period, regime and value. Default: `long`.
    pub layout: Option<Placed<Layout>>,
    /// The order of the rows. Default: `["ticker", "date", "period", "regime"]`.
    pub sort: Option<Placed<Vec<Placed<String>>>>,
    /// Columns that say where a signal comes from. Default: none.
    pub columns: Option<Placed<Vec<Placed<Lineage>>>>,
    /// The columns that become matrices, for `layout = "wide"`. Default: `["signal", "confidence"]`.
    pub values: Option<Placed<Vec<Placed<String>>>>,
    /// Which observation of a signal is taken. Default: `latest`.
    pub vintage: Option<Placed<Vintage>>,
    /// A signal that was first seen later than this after its date is backfilled. Default: `3d`.
    pub live_within: Option<Placed<Days>>,
    /// Folders by the values of these columns, as Hive names them. Default: none.
    pub partition_by: Option<Placed<Vec<Placed<String>>>>,
    /// How Parquet is compressed. Default: `zstd`.
    pub compression: Option<Placed<Compression>>,
    /// The level of zstd, 1 to 22. Default: 3.
    pub level: Option<Placed<u8>>,
    /// The rows of a row group of Parquet. Default: 262144.
    pub row_group_rows: Option<Placed<u32>>,
    /// Whether texts in CSV that a spreadsheet would take for a formula are kept from it by a `'`. Default: false.
    pub csv_guard: Option<Placed<bool>>,
    /// How many versions of the dataset are kept. Default: 5.
    pub keep: Option<Placed<u16>>,
}

/// When a scheduler should run it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ScheduleSection {
    /// Five fields: minute, hour, day of month, month, day of week.
    #[serde(default)]
    pub cron: Option<Placed<Cron>>,
    /// The zone that the hours are told in. Default: UTC.
    #[serde(default)]
    pub timezone: Option<Placed<Zone>>,
}

impl Definition {
    /// The JSON Schema of a definition.
    pub fn json_schema() -> Schema {
        let transform = RecursiveTransform(without_null);
        SchemaSettings::draft2020_12().with_transform(transform).into_generator().into_root_schema_for::<Self>()
    }
}

/// TOML has no null: what may be missing is written as what it is when it is there.
fn without_null(schema: &mut Schema) {
    let null = serde_json::json!({ "type": "null" });
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
