//! The columns of a dataset: their names, types and order.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::definition::{Days, Statistic};
use crate::tables;

/// A column that every long dataset has.
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
}

impl Column {
    /// Every such column, in the order they are written.
    pub const ALL: [Self; 6] = [Self::Ticker, Self::Date, Self::Period, Self::Regime, Self::Signal, Self::Confidence];

    /// The columns that together name a row.
    pub const KEY: [Self; 4] = [Self::Ticker, Self::Date, Self::Period, Self::Regime];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ticker => "ticker",
            Self::Date => "date",
            Self::Period => "period",
            Self::Regime => "regime",
            Self::Signal => "signal",
            Self::Confidence => "confidence",
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Ticker => DataType::Utf8,
            Self::Date => tables::date(),
            Self::Period | Self::Regime | Self::Signal => tables::choice(),
            Self::Confidence => DataType::Float64,
        }
    }
}

/// A feature: a statistic of the news in a window, or of the last article before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// How many articles.
    Count(Days),
    /// The mean score.
    Mean(Days),
    /// The lowest score.
    Min(Days),
    /// The highest score.
    Max(Days),
    /// The score of the last article.
    LastScore,
    /// The date of the last article.
    LastDate,
}

impl Feature {
    /// The features of some windows and statistics: window by window, then the last article.
    pub(super) fn of(windows: &[Days], statistics: &[Statistic]) -> Vec<Self> {
        let in_window = |days: Days| {
            statistics.iter().filter_map(move |statistic| match statistic {
                Statistic::Count => Some(Self::Count(days)),
                Statistic::Mean => Some(Self::Mean(days)),
                Statistic::Min => Some(Self::Min(days)),
                Statistic::Max => Some(Self::Max(days)),
                Statistic::Last => None,
            })
        };
        let last = statistics.contains(&Statistic::Last).then_some([Self::LastScore, Self::LastDate]);
        windows.iter().flat_map(|&days| in_window(days)).chain(last.into_iter().flatten()).collect()
    }

    fn field(self) -> Field {
        let (data_type, nullable) = match self {
            // No article in a window is a count of zero and a mean of nothing.
            Self::Count(_) => (DataType::Int32, false),
            Self::Mean(_) | Self::Min(_) | Self::Max(_) | Self::LastScore => (DataType::Float64, true),
            Self::LastDate => (tables::date(), true),
        };
        Field::new(self.to_string(), data_type, nullable)
    }
}

/// The name of the feature's column.
impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(days) => write!(formatter, "news_count_{days}"),
            Self::Mean(days) => write!(formatter, "news_mean_{days}"),
            Self::Min(days) => write!(formatter, "news_min_{days}"),
            Self::Max(days) => write!(formatter, "news_max_{days}"),
            Self::LastScore => formatter.write_str("news_last_score"),
            Self::LastDate => formatter.write_str("news_last_date"),
        }
    }
}

/// The columns of a long dataset.
pub(super) fn long(features: &[Feature]) -> SchemaRef {
    let own = Column::ALL.iter().map(|column| Field::new(column.name(), column.data_type(), false));
    let of_news = features.iter().map(|feature| feature.field());
    Arc::new(Schema::new(own.chain(of_news).collect::<Vec<_>>()))
}

/// A column's type in words that do not depend on a library.
pub fn describe(field: &Field) -> String {
    let name = match field.data_type() {
        DataType::Utf8 => "text",
        DataType::Dictionary(_, _) => "text (dictionary)",
        DataType::Timestamp(_, None) => "timestamp, microseconds, no time zone",
        DataType::Int32 => "32-bit integer",
        DataType::Float64 => "64-bit float",
        other => return other.to_string(),
    };
    if field.is_nullable() { format!("{name}, may be null") } else { name.to_owned() }
}
