//! The features of a dataset: numbers computed from the news known when a signal was made.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::columns::{Column, Meaning, RowKind, SCALE};
use crate::definition::{Days, Statistic};
use crate::tables;

/// When a statistic of a window has no value.
const NO_SCORE: &str = "`news_count` is null, or no article in the window has a score";

/// When nothing can be said of the last article.
const NO_ARTICLE: &str = "no article is known by then";

/// When a statistic that sums the scores of a window has no value.
const NO_SUM: &str =
    "`news_count` is null, or no article in the window has a score, or one has a score of nine billion or more";

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
        let mut features = Vec::new();
        for &window in windows {
            for &statistic in statistics {
                match statistic {
                    Statistic::Decay => {
                        features.extend(half_lives.iter().map(|&half_life| Self::Decay(Decay { half_life, window })));
                    }
                    Statistic::Last | Statistic::DaysSince => {}
                    of_window => features.push(Self::Window(of_window, window)),
                }
            }
        }
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

    fn field(&self) -> Field {
        let data_type = match self {
            Self::Window(Statistic::Count, _) | Self::DaysSince | Self::SummaryDaysSince => DataType::Int32,
            Self::LastDate => tables::date(),
            _ => DataType::Float64,
        };
        // Without articles in a window the count is zero and the mean is null; both are if it is unknown.
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

impl Feature {
    /// What it means.
    pub fn meaning(&self) -> Meaning {
        let days = self.window().map_or(0, Days::count);
        let window = format!("in the {days} days that end `lag` before the date");
        let of_scores = |what: &str| format!("the {what} of the articles {window}");
        let (what, unit, null, example) = match self {
            Self::Window(Statistic::Count, _) => {
                let what = format!("how many articles are dated {window}, with or without a score");
                (what, Some("articles"), "the answers do not tell of the whole window", "3")
            }
            Self::Window(Statistic::Mean, _) => (of_scores("mean score"), Some(SCALE), NO_SUM, "-0.039"),
            Self::Window(Statistic::Min, _) => (of_scores("lowest score"), Some(SCALE), NO_SCORE, "-0.62"),
            Self::Window(Statistic::Max, _) => (of_scores("highest score"), Some(SCALE), NO_SCORE, "0.41"),
            Self::Window(Statistic::Std, _) => {
                let null = "`news_count` is null, or fewer than two articles in the window have a score, or one has a score of a \
                            million or more";
                (format!("the sample standard deviation of the scores {window}"), Some(SCALE), null, "0.27")
            }
            Self::Window(Statistic::Sum, _) => (of_scores("sum of the scores"), Some(SCALE), NO_SUM, "-0.12"),
            Self::Window(Statistic::Median, _) => (of_scores("median score"), Some(SCALE), NO_SCORE, "-0.04"),
            Self::Window(Statistic::Decay | Statistic::Last | Statistic::DaysSince, _) => {
                unreachable!("the statistics of no single window are features of their own")
            }
            Self::Decay(Decay { half_life, .. }) => {
                let what = format!(
                    "{}, in which an article counts half as much for each {} days that it is older than the last of these days",
                    of_scores("mean score"),
                    half_life.count()
                );
                let null = "`news_mean` is null, or all articles with a score are older than 20 half-lives";
                (what, Some(SCALE), null, "-0.051")
            }
            Self::LastScore => {
                let what = "the score of the last article `lag` before the date or earlier, however old";
                let null = "no article is known by then, or the last one has no score";
                (what.to_owned(), Some(SCALE), null, "0.41")
            }
            Self::LastDate => {
                let what = "the date of the last article `lag` before the date or earlier, however old";
                (what.to_owned(), None, NO_ARTICLE, "2026-11-23T00:00:00")
            }
            Self::DaysSince => {
                let what = "how much older the last article is than the signal";
                (what.to_owned(), Some("calendar days"), NO_ARTICLE, "1")
            }
            Self::Summary(reference) => {
                let which = match reference {
                    Reference::Low => "lowest-scoring article",
                    Reference::High => "highest-scoring article",
                    Reference::Avg => "article that represents the average",
                };
                let what =
                    format!("the score of the {which} in the last summary observed `lag` before the date or earlier");
                (what, Some(SCALE), "no summary had been observed by then, or it has no such number", "0.12")
            }
            Self::SummaryDaysSince => {
                let what = "how long before the signal the last summary was observed";
                (what.to_owned(), Some("calendar days"), "no summary had been observed by then", "1")
            }
            Self::Historical(field) => {
                let what =
                    format!("`{field}` of the last record of historical sentiment `lag` before the date or earlier");
                (what, Some("the vendor's"), "no record is known by then, or it has no such number", "0.12")
            }
        };
        Meaning { what, unit, null: Some(null), example }
    }
}

/// The columns of a long dataset: those that it always has, the features, and those that were added.
pub(super) fn long(columns: &[Column], features: &[Feature], kind: RowKind) -> SchemaRef {
    let (base, added) = columns.split_at(kind.base().len());
    let own = base.iter().map(|column| column.field());
    let fields = own.chain(features.iter().map(Feature::field)).chain(added.iter().map(|column| column.field()));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
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
