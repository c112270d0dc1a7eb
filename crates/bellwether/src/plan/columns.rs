//! The columns of a dataset: their names, types and order.

use std::fmt;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::definition::{Added, Days, Statistic};
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

    /// The column of a choice.
    pub(super) fn of(added: Added) -> Self {
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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ticker => "ticker",
            Self::Date => "date",
            Self::Period => "period",
            Self::Regime => "regime",
            Self::Signal => "signal",
            Self::Confidence => "confidence",
            Self::FirstObservedAt => "first_observed_at",
            Self::ObservedAt => "observed_at",
            Self::Revisions => "revisions",
            Self::Backfilled => "backfilled",
            Self::KnownAt => "known_at",
            Self::TradableAt => "tradable_at",
            Self::Source => "source",
            Self::WatchedUntil => "watched_until",
            Self::Claimed => "claimed",
            Self::Sector => "sector",
            Self::SectorLatest => "sector_latest",
            Self::Id => "id",
            Self::KnownFrom => "known_from",
            Self::KnownUntil => "known_until",
            Self::Title => "title",
            Self::Link => "link",
            Self::Copy => "copy",
            Self::Score => "score",
            Self::EntryAt => "entry_at",
            Self::ExitAt(horizon) => &LABELS[horizon.index()][0],
            Self::Return(horizon) => &LABELS[horizon.index()][1],
        }
    }

    /// Whether many rows have the same value, so that each may have a folder.
    pub(super) fn is_of_few(self) -> bool {
        match self {
            Self::Ticker | Self::Id | Self::Date | Self::Period | Self::Regime | Self::Signal | Self::Source => true,
            Self::Sector | Self::SectorLatest | Self::Backfilled | Self::Claimed | Self::Revisions | Self::Copy => true,
            Self::Confidence | Self::Score | Self::Title | Self::Link => false,
            Self::FirstObservedAt | Self::ObservedAt | Self::WatchedUntil | Self::KnownAt | Self::TradableAt => false,
            Self::EntryAt | Self::ExitAt(_) | Self::Return(_) | Self::KnownFrom | Self::KnownUntil => false,
        }
    }

    /// Whether a row may have none: a ticker that no sector lists, an article without a score, a day that no calendar tells
    /// of, or on which no id belongs to the ticker; a value that is still known. (Each signal is a buy or a sell, so each has
    /// a score.)
    pub(super) fn is_nullable(self) -> bool {
        let is_label = matches!(self, Self::EntryAt | Self::ExitAt(_) | Self::Return(_));
        let is_open = matches!(self, Self::TradableAt | Self::KnownUntil);
        is_label || is_open || matches!(self, Self::Sector | Self::SectorLatest | Self::Id | Self::Score)
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Ticker | Self::Sector | Self::SectorLatest | Self::Id | Self::Title | Self::Link => DataType::Utf8,
            Self::Date | Self::EntryAt | Self::ExitAt(_) => tables::date(),
            Self::Period | Self::Regime | Self::Signal | Self::Source => tables::choice(),
            Self::Confidence | Self::Score | Self::Return(_) => DataType::Float64,
            Self::FirstObservedAt | Self::ObservedAt | Self::WatchedUntil | Self::KnownAt | Self::TradableAt => {
                tables::instant()
            }
            Self::KnownFrom | Self::KnownUntil => tables::instant(),
            Self::Revisions | Self::Copy => DataType::Int32,
            Self::Backfilled | Self::Claimed => DataType::Boolean,
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

/// One of the three articles of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// The lowest-scoring one.
    Low,
    /// The highest-scoring one.
    High,
    /// The one that represents the average.
    Avg,
}

impl Reference {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Low, Self::High, Self::Avg];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Avg => "avg",
        }
    }
}

/// A mean of a window in which an article of its last day counts whole, and an older one half as much for each half-life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// The half-life.
    pub half_life: Days,
    /// The window.
    pub window: Days,
}

impl Decay {
    /// What an article of the last day counts.
    const WHOLE: f64 = 1e12;

    /// Articles that are older than so many half-lives do not count. The others count at least a millionth, to six digits.
    const HALVINGS: f64 = 20.0;

    /// What an article counts that is so many days older than the last day of the window, for each day of it, in
    /// trillionths.
    pub fn weights(self) -> Vec<i64> {
        let halvings = |age: i32| f64::from(age) / f64::from(self.half_life.count());
        let counted = (0..self.window.count()).map(halvings).take_while(|halvings| *halvings <= Self::HALVINGS);
        counted.map(|halvings| (Self::WHOLE * (-halvings).exp2()).round() as i64).collect()
    }
}

/// A feature: a number computed from the news known when a signal was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feature {
    /// A statistic of the articles in a window, or of their scores.
    Window(Statistic, Days),
    /// The mean of the scores, each of which counts less the older its article is.
    Decay(Decay),
    /// The score of the last article.
    LastScore,
    /// The date of the last article.
    LastDate,
    /// The age of the last article in days, at the signal.
    DaysSince,
    /// A score of the last summary.
    Summary(Reference),
    /// How many days before the signal the last summary was seen.
    SummaryDaysSince,
    /// A field of the last record of historical sentiment.
    Historical(Arc<str>),
}

impl Feature {
    /// The features of some windows and statistics: window by window, then the last article.
    pub(super) fn of_articles(windows: &[Days], statistics: &[Statistic], half_lives: &[Days]) -> Vec<Self> {
        let in_window = |window: Days| {
            statistics.iter().flat_map(move |&statistic| match statistic {
                Statistic::Decay => {
                    half_lives.iter().map(|&half_life| Self::Decay(Decay { half_life, window })).collect()
                }
                Statistic::Last | Statistic::DaysSince => Vec::new(),
                of_window => vec![Self::Window(of_window, window)],
            })
        };
        let mut features: Vec<Self> = windows.iter().flat_map(|&days| in_window(days)).collect();
        if statistics.contains(&Statistic::Last) {
            features.extend([Self::LastScore, Self::LastDate]);
        }
        if statistics.contains(&Statistic::DaysSince) {
            features.push(Self::DaysSince);
        }
        features
    }

    /// The number of articles in a window.
    pub fn count(window: Days) -> Self {
        Self::Window(Statistic::Count, window)
    }

    /// Its window, if it has one.
    pub fn window(&self) -> Option<Days> {
        match self {
            Self::Window(_, days) | Self::Decay(Decay { window: days, .. }) => Some(*days),
            _ => None,
        }
    }

    pub(super) fn field(&self) -> Field {
        let data_type = match self {
            // Without articles in a window the count is zero and the mean is null; both are if it is unknown.
            Self::Window(Statistic::Count, _) | Self::DaysSince | Self::SummaryDaysSince => DataType::Int32,
            Self::LastDate => tables::date(),
            _ => DataType::Float64,
        };
        Field::new(self.to_string(), data_type, true)
    }
}

/// The name of the feature's column.
impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(statistic, days) => write!(formatter, "news_{statistic}_{days}"),
            Self::Decay(Decay { half_life, window }) => write!(formatter, "news_decay_{half_life}_{window}"),
            Self::LastScore => formatter.write_str("news_last_score"),
            Self::LastDate => formatter.write_str("news_last_date"),
            Self::DaysSince => formatter.write_str("news_days_since"),
            Self::Summary(reference) => write!(formatter, "summary_{}_score", reference.as_str()),
            Self::SummaryDaysSince => formatter.write_str("summary_days_since"),
            Self::Historical(field) => write!(formatter, "historical_{field}"),
        }
    }
}

/// The columns of a long dataset: those that it always has, the features, and those that were added.
pub(super) fn long(columns: &[Column], features: &[Feature], kind: RowKind) -> SchemaRef {
    let own = |columns: &[Column]| -> Vec<Field> {
        let field = |column: &Column| Field::new(column.name(), column.data_type(), column.is_nullable());
        columns.iter().map(field).collect()
    };
    let (base, added) = columns.split_at(kind.base().len());
    let fields = own(base).into_iter().chain(features.iter().map(Feature::field)).chain(own(added));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
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

#[cfg(test)]
mod tests {
    use super::Decay;
    use crate::definition::Days;

    #[test]
    fn an_article_counts_half_as_much_for_each_half_life_up_to_the_twentieth() {
        let weights =
            |half_life, window| Decay { half_life: Days::new(half_life), window: Days::new(window) }.weights();
        let days = weights(1, 120);
        assert_eq!(
            (days.len(), days[0], days[1], days[13], days[20]),
            (21, 1_000_000_000_000, 500_000_000_000, 122_070_313, 953_674)
        );
        assert_eq!((weights(3, 120).len(), weights(3, 7).len()), (61, 7));
    }
}
