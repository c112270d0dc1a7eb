//! The columns of a dataset that are not features: their names, types, order and meaning.

use std::sync::LazyLock;

use arrow::datatypes::{DataType, Field};

use crate::definition::Added;
use crate::interface::Period;
use crate::tables;

/// What a row of a dataset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A signal.
    Signal,
    /// An article.
    Article,
    /// A value that a signal had.
    Observation,
}

impl RowKind {
    /// The columns that every dataset of the kind has, in the order they are written.
    pub fn base(self) -> &'static [Column] {
        match self {
            Self::Signal => &Column::BASE,
            Self::Article => &Column::OF_ARTICLES,
            Self::Observation => &Column::OF_OBSERVATIONS,
        }
    }

    /// Whether rows can have a column.
    pub(super) fn can_have(self, column: Column) -> bool {
        match self {
            Self::Signal => true,
            Self::Article => !matches!(column, Column::KnownAt | Column::TradableAt | Column::EntryAt),
            // When a value was known is what the rows say.
            Self::Observation => matches!(
                column,
                Column::Sector | Column::SectorLatest | Column::FirstObservedAt | Column::Backfilled | Column::Id
            ),
        }
    }

    /// The key columns, which identify a row.
    pub fn key(self) -> &'static [Column] {
        match self {
            Self::Signal => &Column::KEY,
            Self::Article => &Column::KEY_OF_ARTICLES,
            Self::Observation => &Column::KEY_OF_OBSERVATIONS,
        }
    }
}

/// A column of a long dataset that is not a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The symbol.
    Ticker,
    /// The naive date of the signal.
    Date,
    /// The horizon.
    Period,
    /// The market regime.
    Regime,
    /// Buy or sell.
    Signal,
    /// The confidence.
    Confidence,
    /// When the signal was first seen.
    FirstObservedAt,
    /// When its value was seen.
    ObservedAt,
    /// How often it was revised since it was first seen.
    Revisions,
    /// Whether it was first seen long after its date.
    Backfilled,
    /// When everything in the row had been seen.
    KnownAt,
    /// When a session first opened or closed after that; or if it was backfilled, after its date plus the lag.
    TradableAt,
    /// The operation that gave it.
    Source,
    /// Until when the vendor told of the series.
    WatchedUntil,
    /// Whether the row rests on claims.
    Claimed,
    /// The sector that listed the ticker when the row was first seen.
    Sector,
    /// The sector that lists the ticker now.
    SectorLatest,
    /// What the ticker stood for then.
    Id,
    /// From when on a value was known.
    KnownFrom,
    /// Until when it was known.
    KnownUntil,
    /// The headline of an article.
    Title,
    /// The address of an article.
    Link,
    /// The number of articles with the same date, title and address before it.
    Copy,
    /// The confidence of a signal, negative for a sell; the score of an article.
    Score,
    /// The session at whose close the signal is entered.
    EntryAt,
    /// The session at whose close a position ends, by its horizon.
    ExitAt(Period),
    /// The return between the two.
    Return(Period),
}

impl Column {
    /// The columns that every dataset of signals has, in the order they are written.
    pub const BASE: [Self; 7] =
        [Self::Ticker, Self::Date, Self::Period, Self::Regime, Self::Signal, Self::Confidence, Self::Score];

    /// The key columns, which identify a signal.
    pub const KEY: [Self; 4] = [Self::Ticker, Self::Date, Self::Period, Self::Regime];

    /// The columns that every dataset of articles has, in the order they are written.
    pub const OF_ARTICLES: [Self; 9] = [
        Self::Ticker,
        Self::Date,
        Self::Title,
        Self::Link,
        Self::Copy,
        Self::Score,
        Self::FirstObservedAt,
        Self::ObservedAt,
        Self::Revisions,
    ];

    /// The key columns, which identify an article.
    pub const KEY_OF_ARTICLES: [Self; 5] = [Self::Ticker, Self::Date, Self::Title, Self::Link, Self::Copy];

    /// The columns that every dataset of all vintages has, in the order they are written.
    pub const OF_OBSERVATIONS: [Self; 9] = [
        Self::Ticker,
        Self::Date,
        Self::Period,
        Self::Regime,
        Self::KnownFrom,
        Self::KnownUntil,
        Self::Signal,
        Self::Confidence,
        Self::Score,
    ];

    /// The key columns, which identify a value that a signal had.
    pub const KEY_OF_OBSERVATIONS: [Self; 5] = [Self::Ticker, Self::Date, Self::Period, Self::Regime, Self::KnownFrom];

    /// The columns of a closed set of names.
    pub const CHOICES: [Self; 4] = [Self::Period, Self::Regime, Self::Signal, Self::Source];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Whether many rows have the same value, so that each may have a folder.
    pub(super) fn is_of_few(self) -> bool {
        self.spec().is_of_few
    }

    /// What it means in a row of a kind.
    pub fn meaning(self, rows: RowKind) -> Meaning {
        let (mut spec, of_articles) = (self.spec(), rows == RowKind::Article);
        match self {
            Self::Date if of_articles => spec.what = "the date of the article, on the clock of `[dates]`",
            Self::Score if of_articles => {
                spec = Spec {
                    what: "the score of the article",
                    null: Some("the vendor gave none"),
                    example: "0.41",
                    ..spec
                }
            }
            _ => {}
        }
        let mut what = spec.what.replace("{it}", if of_articles { "the article" } else { "the signal" });
        if let Self::ExitAt(horizon) = self {
            what = what.replace("{horizon}", horizon.as_str());
        }
        Meaning { what, unit: spec.unit, null: spec.null, example: spec.example }
    }

    /// What there is to say of it.
    fn spec(self) -> Spec {
        match self {
            Self::Ticker => column("ticker", text, "the symbol, as the vendor spells it", "XOM").of_few(),
            Self::Date => {
                let what = "the date that the vendor gives the signal, on the clock of `[dates]`";
                column("date", tables::date, what, "2026-11-24T00:00:00").of_few()
            }
            Self::Period => {
                column("period", tables::choice, "the horizon: days (`5d`) or calendar months (`1m`)", "5d").of_few()
            }
            Self::Regime => {
                column("regime", tables::choice, "the market regime that the signal is for", "neutral").of_few()
            }
            Self::Signal => column("signal", tables::choice, "`buy` or `sell`; in matrices 1 and -1", "buy").of_few(),
            Self::Confidence => {
                let what = "how sure the vendor is; not a probability unless the vendor says so";
                column("confidence", real, what, "0.6664").in_unit(SCALE)
            }
            Self::FirstObservedAt => {
                let what = "when an answer had {it} for the first time; you could not have known it before";
                column("first_observed_at", tables::instant, what, "2026-11-24T21:30:04.118203Z")
            }
            Self::ObservedAt => {
                let what = "when an answer had the row's values for the first time; later than `first_observed_at` if they \
                            were revised";
                column("observed_at", tables::instant, what, "2026-11-24T21:30:04.118203Z")
            }
            Self::Revisions => {
                let what = "how often {it} was changed, withdrawn or listed again since it was first observed";
                column("revisions", whole, what, "0").in_unit("changes").of_few()
            }
            Self::Backfilled => {
                let what = "whether the row, or the news that its features need, was first seen later than `live_within` \
                            after its date, so that the vendor may have known better";
                column("backfilled", flag, what, "false").of_few()
            }
            Self::Claimed => {
                let what = "whether the row rests on an imported file, which nobody witnessed: added by \
                            `[archive] claimed` or `--include claimed`";
                column("claimed", flag, what, "false").of_few()
            }
            Self::KnownAt => {
                let what = "when everything in the row had been seen: {it}, and that its news had been asked for";
                column("known_at", tables::instant, what, "2026-11-24T21:30:09.402117Z")
            }
            Self::TradableAt => {
                let what = "when a session first opened or closed, as `trade_at` says, after `known_at`; if the row was \
                            backfilled, after the time when the signal is made plus the lag, which is an assumption";
                column("tradable_at", tables::instant, what, "2026-11-25T14:30:00.000000Z")
                    .null_if("`[calendar]` does not tell of that day")
            }
            Self::Source => {
                let what = "the operation that returned the row's values";
                column("source", tables::choice, what, "signals-history-all").of_few()
            }
            Self::WatchedUntil => {
                let what =
                    "when the last answer listed the series, or no longer did; nothing is known of it after that";
                column("watched_until", tables::instant, what, "2026-11-24T21:30:04.118203Z")
            }
            Self::Sector => {
                column("sector", text, "the sector of the ticker when the row was first observed", "energy")
                    .null_if("no sector had listed the ticker by then")
                    .of_few()
            }
            Self::SectorLatest => {
                column("sector_latest", text, "the sector of the ticker as of the build's instant", "energy")
                    .null_if("no sector has listed the ticker")
                    .of_few()
            }
            Self::Id => {
                let what = "what the ticker stood for on the date, as the file of `[identity]` says: the same for a security \
                            under several tickers; the ticker itself if the file does not name it";
                column("id", text, what, "XOM").null_if("the file names the ticker, but not for that day").of_few()
            }
            Self::KnownFrom => {
                let what = "when an answer had the value for the first time, or again after another one";
                column("known_from", tables::instant, what, "2026-11-24T21:30:04.118203Z")
            }
            Self::KnownUntil => {
                let what = "when an answer had another value, or no longer listed the signal";
                column("known_until", tables::instant, what, "2026-11-25T21:30:03.902118Z")
                    .null_if("the value is still known")
            }
            Self::Title => column("title", text, "the headline", "Exxon raises its dividend"),
            Self::Link => column("link", text, "the address of the article", "https://news.example.com/1"),
            Self::Copy => {
                column("copy", whole, "0, 1, … for articles with the same date, title and address", "0").of_few()
            }
            Self::Score => {
                let what = "the confidence, negative for a sell: what ranks, factors and matrices use";
                column("score", real, what, "-0.6664").null_if("the signal has no direction").in_unit(SCALE)
            }
            Self::EntryAt => {
                let what = "the session at whose close the signal can be entered: the first after the day on which the row \
                            was known; if it was backfilled, by assumption the `lag` of `[labels]` after its date";
                column("entry_at", tables::date, what, "2026-11-25T00:00:00")
                    .null_if("the sessions begin after the date, or end before it")
            }
            Self::ExitAt(horizon) => {
                let what = "a label, which looks ahead: the session at whose close a position ends, {horizon} after \
                            `entry_at`, or that of the last close of a name that was delisted";
                column(&LABELS[horizon.index()][0], tables::date, what, "2026-12-03T00:00:00")
                    .null_if("the prices end before it")
            }
            Self::Return(horizon) => {
                let what = "a label, which looks ahead: the return from the close of `entry_at` to that of the exit";
                column(&LABELS[horizon.index()][1], real, what, "0.0123").null_if("one of the two closes is missing")
            }
        }
    }

    pub(super) fn field(self) -> Field {
        let spec = self.spec();
        Field::new(spec.name, (spec.data_type)(), spec.null.is_some())
    }
}

/// The unit of scores.
pub(super) const SCALE: &str = "the vendor's scale";

/// What there is to say of a column. Where its meaning depends on the row, that is the one of a signal.
#[derive(Clone, Copy)]
struct Spec {
    name: &'static str,
    data_type: fn() -> DataType,
    /// Whether many rows have the same value.
    is_of_few: bool,
    /// What it holds: `{it}` is the signal or the article.
    what: &'static str,
    unit: Option<&'static str>,
    null: Option<&'static str>,
    example: &'static str,
}

fn column(name: &'static str, data_type: fn() -> DataType, what: &'static str, example: &'static str) -> Spec {
    Spec { name, data_type, is_of_few: false, what, unit: None, null: None, example }
}

impl Spec {
    fn of_few(self) -> Self {
        Self { is_of_few: true, ..self }
    }

    fn in_unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    fn null_if(self, null: &'static str) -> Self {
        Self { null: Some(null), ..self }
    }
}

fn text() -> DataType {
    DataType::Utf8
}

fn whole() -> DataType {
    DataType::Int32
}

fn real() -> DataType {
    DataType::Float64
}

fn flag() -> DataType {
    DataType::Boolean
}

impl From<Added> for Column {
    fn from(added: Added) -> Self {
        match added {
            Added::Sector => Self::Sector,
            Added::SectorLatest => Self::SectorLatest,
            Added::FirstObservedAt => Self::FirstObservedAt,
            Added::ObservedAt => Self::ObservedAt,
            Added::Revisions => Self::Revisions,
            Added::Backfilled => Self::Backfilled,
            Added::KnownAt => Self::KnownAt,
            Added::TradableAt => Self::TradableAt,
            Added::EntryAt => Self::EntryAt,
            Added::Source => Self::Source,
            Added::WatchedUntil => Self::WatchedUntil,
            Added::Id => Self::Id,
        }
    }
}

/// The names of the columns of each horizon: the end of a position, and its return.
static LABELS: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| {
    Period::all().map(|horizon| [format!("exit_at_{horizon}"), format!("return_{horizon}")]).collect()
});

/// Whether a column looks ahead by design, by its own name.
pub fn is_label(own: &str) -> bool {
    LABELS.iter().any(|names| names.iter().any(|name| name == own))
}

/// What a column means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What it holds.
    pub what: String,
    /// Its unit; none if it has none.
    pub unit: Option<&'static str>,
    /// When it is null; none if it never is.
    pub null: Option<&'static str>,
    /// A value, as CSV has it.
    pub example: &'static str,
}

/// A column's type in plain words.
pub fn describe(field: &Field) -> String {
    let name = match field.data_type() {
        DataType::Utf8 => "text",
        DataType::Dictionary(_, _) => "text (dictionary)",
        DataType::Timestamp(_, Some(_)) => "timestamp, microseconds, UTC",
        DataType::Boolean => "true or false",
        DataType::Timestamp(_, None) => "timestamp, microseconds, no time zone",
        DataType::Int32 => "32-bit integer",
        DataType::Int64 => "64-bit integer",
        DataType::Float64 => "64-bit float",
        other => return other.to_string(),
    };
    if field.is_nullable() { format!("{name}, may be null") } else { name.to_owned() }
}
