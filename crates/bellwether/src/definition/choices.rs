//! The enumerations of a definition.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::values::{List, Refusal, TextOrList, parsed_from_text};
use crate::interface::{Ticker, Unknown, closed_set};
use crate::text::problem::{nearest, suggestion};

/// An enumeration with its spellings.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[doc = $meaning:literal])+ $variant:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $meaning])+ $variant,)+
        }

        impl $name {
            /// Every choice, in the order they are offered.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its spelling.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = Refusal;

            fn from_str(text: &str) -> Result<Self, Refusal> {
                Self::ALL.iter().copied().find(|choice| choice.as_str() == text).ok_or_else(|| {
                    let spellings: Vec<&str> = Self::ALL.iter().map(|choice| choice.as_str()).collect();
                    format!("unknown {} `{text}`\n{}", $what, suggestion(text, &spellings, "choose one of"))
                })
            }
        }

        parsed_from_text!($name, closed_set([$(($text, concat!($($meaning),+).trim_start().to_owned())),+]));

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

choice! {
    /// A service by name.
    Service, "service":
    /// The built-in demo service, in-process, with no key and no network.
    Demo = "demo",
}

choice! {
    /// Whose clock is right where two differ.
    TrustedClock, "clock":
    /// The service's: a run stops, since this machine's would date what arrives wrongly.
    Service = "service",
    /// This machine's: the service's clock is wrong.
    Ours = "ours",
}

choice! {
    /// What has one signal at most.
    DatesPer, "value":
    /// Each date.
    Date = "date",
    /// Each day: the last of the day counts.
    Day = "day",
}

choice! {
    /// The order of a list of articles.
    ListOrder, "order":
    /// The newest comes first.
    NewestFirst = "newest first",
    /// The oldest comes first.
    OldestFirst = "oldest first",
}

choice! {
    /// How to count articles with the same date, title, link and score.
    Duplicates, "value":
    /// Once.
    Once = "once",
    /// Each article.
    Keep = "keep",
}

choice! {
    /// The operation to fetch signals from.
    HistoryForm, "form of history":
    /// `signals-history-all`, sector by sector.
    Sector = "sector",
    /// `signals-history-batched-all`, everything in one answer.
    Batched = "batched",
    /// `signals-history/{ticker}`, ticker by ticker.
    Ticker = "ticker",
    /// `signals/{ticker}`: no history, the latest signal of each ticker.
    Latest = "latest",
}

choice! {
    /// A list of tickers by name.
    TickerList, "list of tickers":
    /// The tickers of the signals.
    Signals = "signals",
    /// The tickers that the service lists as available.
    Available = "available",
}

/// Which tickers: `"available"`, `["AAPL", "BRK.B"]`, or `"AAPL"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TextOrList")]
pub(crate) enum Tickers {
    /// A list by name.
    Known(TickerList),
    /// An explicit list.
    Written(List<Ticker>),
}

impl TryFrom<TextOrList> for Tickers {
    type Error = Refusal;

    fn try_from(typed: TextOrList) -> Result<Self, Refusal> {
        match typed {
            TextOrList::Text(text) => {
                // Tickers may have any letters: a text close to the name of a list is taken for a typo.
                let is_list = nearest(&text, TickerList::ALL.iter().map(|list| list.as_str())).is_some();
                match text.parse() {
                    Ok(ticker) if !is_list => Ok(Self::Written(List(vec![ticker]))),
                    _ => text.parse().map(Self::Known),
                }
            }
            TextOrList::List(texts) => {
                let tickers = texts.iter().map(|text| text.parse()).collect::<Result<_, Unknown>>();
                tickers
                    .map(|tickers| Self::Written(List(tickers)))
                    .map_err(|unknown| format!("{unknown}\n{}", unknown.hint))
            }
        }
    }
}

impl JsonSchema for Tickers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Tickers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<TickerList>();
        let ticker = generator.subschema_for::<Ticker>();
        json_schema!({ "anyOf": [list, ticker, { "type": "array", "items": ticker, "minItems": 1 }] })
    }
}

choice! {
    /// What to do about a finding.
    OnFinding, "action":
    /// The run fails and publishes nothing.
    Fail = "fail",
    /// The version is published all the same, with a note.
    Warn = "warn",
}

choice! {
    /// A file format.
    Format, "format":
    /// Apache Parquet, zstd.
    Parquet = "parquet",
    /// RFC 4180 text with a header.
    Csv = "csv",
    /// The same, compressed by gzip.
    CsvGz = "csv.gz",
    /// The same, compressed by Zstandard.
    CsvZst = "csv.zst",
    /// Arrow IPC, as Feather version 2.
    Arrow = "arrow",
}

impl Format {
    /// The format of a file by its name, which ends like the format is spelled.
    pub fn of_file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = |format: &Self| name.strip_suffix(format.as_str());
        Self::ALL.iter().copied().find(|format| stem(format).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.')))
    }

    /// Whether it is text, compressed or not.
    pub fn is_csv(self) -> bool {
        matches!(self, Self::Csv | Self::CsvGz | Self::CsvZst)
    }
}

choice! {
    /// The shape of a dataset.
    Layout, "layout":
    /// One row per signal.
    Long = "long",
    /// One matrix of dates and tickers for each period, regime and value.
    Wide = "wide",
}

choice! {
    /// A statistic of the scores in a window.
    Statistic, "statistic":
    /// The number of articles.
    Count = "count",
    /// The mean of their scores.
    Mean = "mean",
    /// The lowest score.
    Min = "min",
    /// The highest score.
    Max = "max",
    /// The sample standard deviation of their scores, of two or more.
    Std = "std",
    /// The sum of their scores.
    Sum = "sum",
    /// The median of their scores.
    Median = "median",
    /// The mean of their scores, in which an article counts less the older it is.
    Decay = "decay",
    /// The score and date of the newest article, whatever its age.
    Last = "last",
    /// The age of the newest article in days, at the signal.
    DaysSince = "days_since",
}

choice! {
    /// Which news can be joined to a signal.
    Availability, "availability":
    /// News whose date is old enough.
    Dated = "dated",
    /// News that had also been observed by then, as of then.
    Observed = "observed",
}

choice! {
    /// A source of features.
    NewsSource, "source of features":
    /// Scored articles.
    Articles = "articles",
    /// The summary of each ticker, as it was observed.
    Summary = "summary",
    /// Historical sentiment.
    Historical = "historical",
}

choice! {
    /// Which observation of a signal to use.
    Vintage, "vintage":
    /// The last one, as revised.
    Latest = "latest",
    /// The first one, as it was first published.
    First = "first",
}

choice! {
    /// Which observations of a signal a dataset has.
    Vintages, "vintage":
    /// The last one, as revised.
    Latest = "latest",
    /// The first one, as it was first published.
    First = "first",
    /// Each one, with when it was known.
    All = "all",
}

choice! {
    /// What a dataset has a row for.
    DatasetKind, "kind of dataset":
    /// Each signal, with features of the news.
    Joined = "joined",
    /// Each signal; no news is fetched.
    Signals = "signals",
    /// Each article; no signals are fetched.
    News = "news",
}

choice! {
    /// A column that a dataset has on request.
    Added, "column":
    /// The sector that listed the ticker when the row was first seen.
    Sector = "sector",
    /// The sector that lists the ticker now.
    SectorLatest = "sector_latest",
    /// When the row was first seen.
    FirstObservedAt = "first_observed_at",
    /// When its value was seen.
    ObservedAt = "observed_at",
    /// How often it was revised since it was first seen.
    Revisions = "revisions",
    /// Whether it was first seen long after its date.
    Backfilled = "backfilled",
    /// When everything in it had been seen.
    KnownAt = "known_at",
    /// When it could first be traded on.
    TradableAt = "tradable_at",
    /// The session at whose close it could be entered.
    EntryAt = "entry_at",
    /// The operation that gave it.
    Source = "source",
    /// Until when the vendor told of its series.
    WatchedUntil = "watched_until",
    /// The id that the ticker had then.
    Id = "id",
}

choice! {
    /// The compression of Parquet pages.
    Compression, "compression":
    /// Zstandard, with a level from 1 to 22.
    Zstd = "zstd",
    /// Snappy.
    Snappy = "snappy",
    /// No compression.
    None = "none",
}

choice! {
    /// Sessions that are built in.
    Exchange, "exchange":
    /// The New York Stock Exchange.
    Xnys = "XNYS",
    /// Each Monday to Friday, at unknown hours.
    Weekdays = "weekdays",
}

choice! {
    /// At which end of a session something can be traded.
    TradeAt, "time to trade":
    /// When it opens.
    Open = "open",
    /// When it closes.
    Close = "close",
    /// At either.
    Either = "either",
}
