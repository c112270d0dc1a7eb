//! What each column of a dataset means: the words of `check --json` and of the page of columns.

use super::{Column, DatasetPlan, Decay, Feature, Reference, RowKind};
use crate::definition::{Days, Statistic};

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

impl Meaning {
    pub(crate) fn always(what: &str, example: &'static str) -> Self {
        Self { what: what.to_owned(), unit: None, null: None, example }
    }

    pub(crate) fn unless(null: &'static str, what: impl Into<String>, example: &'static str) -> Self {
        Self { what: what.into(), unit: None, null: Some(null), example }
    }

    pub(crate) fn in_unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

impl DatasetPlan {
    /// What a column means, by the name that it is written under.
    pub fn meaning(&self, name: &str) -> Option<Meaning> {
        let own = self.written.names().own(name);
        let column = self.columns.iter().find(|column| column.name() == own);
        let feature = || self.features.iter().find(|feature| feature.to_string() == own);
        column.map(|column| column.meaning(self.rows)).or_else(|| feature().map(Feature::meaning))
    }
}

impl Column {
    /// What it means in a row of a kind.
    pub fn meaning(self, rows: RowKind) -> Meaning {
        let it = match rows {
            RowKind::Signal => "the signal",
            RowKind::Article => "the article",
            RowKind::Observation => "the signal",
        };
        match (self, rows) {
            (Self::Ticker, _) => Meaning::always("the symbol, as the vendor spells it", "XOM"),
            (Self::Date, RowKind::Signal | RowKind::Observation) => Meaning::always(
                "the date that the vendor gives the signal, on the clock of `[dates]`",
                "2026-11-24T00:00:00",
            ),
            (Self::Date, RowKind::Article) => {
                Meaning::always("the date of the article, on the clock of `[dates]`", "2026-11-24T00:00:00")
            }
            (Self::Period, _) => Meaning::always("the horizon: days (`5d`) or calendar months (`1m`)", "5d"),
            (Self::Regime, _) => Meaning::always("the market regime that the signal is for", "neutral"),
            (Self::Signal, _) => Meaning::always("`buy` or `sell`; in matrices 1 and -1", "buy"),
            (Self::Confidence, _) => {
                Meaning::always("how sure the vendor is; not a probability unless the vendor says so", "0.6664")
                    .in_unit(SCALE)
            }
            (Self::FirstObservedAt, _) => Meaning::always(
                &format!("when an answer had {it} for the first time; you could not have known it before"),
                "2026-11-24T21:30:04.118203Z",
            ),
            (Self::ObservedAt, _) => Meaning::always(
                "when an answer had the row's values for the first time; later than `first_observed_at` if they were revised",
                "2026-11-24T21:30:04.118203Z",
            ),
            (Self::Revisions, _) => Meaning::always(
                &format!("how often {it} was changed, withdrawn or listed again since it was first observed"),
                "0",
            )
            .in_unit("changes"),
            (Self::Backfilled, _) => Meaning::always(
                "whether the row, or the news that its features need, was first seen later than `live_within` after its date, \
                     so that the vendor may have known better",
                "false",
            ),
            (Self::Claimed, _) => Meaning::always(
                "whether the row rests on an imported file, which nobody witnessed: added by `[archive] claimed` or \
                 `--include claimed`",
                "false",
            ),
            (Self::KnownAt, _) => Meaning::always(
                &format!("when everything in the row had been seen: {it}, and that its news had been asked for"),
                "2026-11-24T21:30:09.402117Z",
            ),
            (Self::TradableAt, _) => Meaning::unless(
                "`[calendar]` does not tell of that day",
                "when a session first opened or closed, as `trade_at` says, after `known_at`; if the row was backfilled, after \
                 the time when the signal is made plus the lag, which is an assumption",
                "2026-11-25T14:30:00.000000Z",
            ),
            (Self::Source, _) => Meaning::always("the operation that returned the row's values", "signals-history-all"),
            (Self::WatchedUntil, _) => Meaning::always(
                "when the last answer listed the series, or no longer did; nothing is known of it after that",
                "2026-11-24T21:30:04.118203Z",
            ),
            (Self::Sector, _) => Meaning::unless(
                "no sector had listed the ticker by then",
                "the sector of the ticker when the row was first observed",
                "energy",
            ),
            (Self::SectorLatest, _) => Meaning::unless(
                "no sector has listed the ticker",
                "the sector of the ticker as of the build's instant",
                "energy",
            ),
            (Self::Id, _) => Meaning::unless(
                "the file names the ticker, but not for that day",
                "what the ticker stood for on the date, as the file of `[identity]` says: the same for a security under \
                 several tickers; the ticker itself if the file does not name it",
                "XOM",
            ),
            (Self::KnownFrom, _) => Meaning::always(
                "when an answer had the value for the first time, or again after another one",
                "2026-11-24T21:30:04.118203Z",
            ),
            (Self::KnownUntil, _) => Meaning::unless(
                "the value is still known",
                "when an answer had another value, or no longer listed the signal",
                "2026-11-25T21:30:03.902118Z",
            ),
            (Self::Title, _) => Meaning::always("the headline", "Exxon raises its dividend"),
            (Self::Link, _) => Meaning::always("the address of the article", "https://news.example.com/1"),
            (Self::Copy, _) => Meaning::always("0, 1, … for articles with the same date, title and address", "0"),
            (Self::Score, RowKind::Signal | RowKind::Observation) => Meaning::unless(
                "the signal has no direction",
                "the confidence, negative for a sell: what ranks, factors and matrices use",
                "-0.6664",
            )
            .in_unit(SCALE),
            (Self::EntryAt, _) => Meaning::unless(
                "the sessions begin after the date, or end before it",
                "the session at whose close the signal can be entered: the first after the day on which the row was known; if it \
                 was backfilled, by assumption the `lag` of `[labels]` after its date",
                "2026-11-25T00:00:00",
            ),
            (Self::ExitAt(horizon), _) => Meaning::unless(
                "the prices end before it",
                format!(
                    "a label, which looks ahead: the session at whose close a position ends, {horizon} after `entry_at`, or that \
                     of the last close of a name that was delisted"
                ),
                "2026-12-03T00:00:00",
            ),
            (Self::Return(_), _) => Meaning::unless(
                "one of the two closes is missing",
                "a label, which looks ahead: the return from the close of `entry_at` to that of the exit",
                "0.0123",
            ),
            (Self::Score, RowKind::Article) => {
                Meaning::unless("the vendor gave none", "the score of the article", "0.41").in_unit(SCALE)
            }
        }
    }
}

/// When nothing can be said of a window.
const UNKNOWN: &str = "the answers do not tell of the whole window";

/// The unit of scores.
const SCALE: &str = "the vendor's scale";

/// When a statistic of a window has no value.
const NO_SCORE: &str = "`news_count` is null, or no article in the window has a score";

/// The same of one that sums them.
const NO_SUM: &str =
    "`news_count` is null, or no article in the window has a score, or one has a score of nine billion or more";

impl Feature {
    /// What it means.
    pub fn meaning(&self) -> Meaning {
        let of_scores = |what: &str, days: &Days, example| {
            let days = days.count();
            let is_sum = matches!(self, Self::Window(Statistic::Mean | Statistic::Sum, _));
            Meaning::unless(
                if is_sum { NO_SUM } else { NO_SCORE },
                format!("the {what} of the articles in the {days} days that end `lag` before the date"),
                example,
            )
            .in_unit(SCALE)
        };
        match self {
            Self::Window(Statistic::Count, days) => Meaning::unless(
                UNKNOWN,
                format!(
                    "how many articles are dated in the {} days that end `lag` before the date, with or without a score",
                    days.count()
                ),
                "3",
            )
            .in_unit("articles"),
            Self::Window(Statistic::Mean, days) => of_scores("mean score", days, "-0.039"),
            Self::Window(Statistic::Min, days) => of_scores("lowest score", days, "-0.62"),
            Self::Window(Statistic::Max, days) => of_scores("highest score", days, "0.41"),
            Self::Window(Statistic::Std, days) => Meaning::unless(
                "`news_count` is null, or fewer than two articles in the window have a score, or one has a score of a million or more",
                format!(
                    "the sample standard deviation of the scores in the {} days that end `lag` before the date",
                    days.count()
                ),
                "0.27",
            )
            .in_unit(SCALE),
            Self::Window(Statistic::Sum, days) => of_scores("sum of the scores", days, "-0.12"),
            Self::Window(Statistic::Median, days) => of_scores("median score", days, "-0.04"),
            Self::Window(Statistic::Decay | Statistic::Last | Statistic::DaysSince, _) => {
                unreachable!("the statistics of no single window are features of their own")
            }
            Self::Decay(Decay { half_life, window }) => Meaning::unless(
                "`news_mean` is null, or all articles with a score are older than 20 half-lives",
                format!(
                    "the mean score of the articles in the {} days that end `lag` before the date, in which an article counts \
                     half as much for each {} days that it is older than the last of these days",
                    window.count(),
                    half_life.count()
                ),
                "-0.051",
            )
            .in_unit(SCALE),
            Self::LastScore => Meaning::unless(
                "no article is known by then, or the last one has no score",
                "the score of the last article `lag` before the date or earlier, however old",
                "0.41",
            )
            .in_unit(SCALE),
            Self::LastDate => Meaning::unless(
                "no article is known by then",
                "the date of the last article `lag` before the date or earlier, however old",
                "2026-11-23T00:00:00",
            ),
            Self::DaysSince => Meaning::unless(
                "no article is known by then",
                "how much older the last article is than the signal",
                "1",
            )
            .in_unit("calendar days"),
            Self::Summary(reference) => {
                let which = match reference {
                    Reference::Low => "lowest-scoring article",
                    Reference::High => "highest-scoring article",
                    Reference::Avg => "article that represents the average",
                };
                Meaning::unless(
                    "no summary had been observed by then, or it has no such number",
                    format!("the score of the {which} in the last summary observed `lag` before the date or earlier"),
                    "0.12",
                )
                .in_unit(SCALE)
            }
            Self::SummaryDaysSince => Meaning::unless(
                "no summary had been observed by then",
                "how long before the signal the last summary was observed",
                "1",
            )
            .in_unit("calendar days"),
            Self::Historical(field) => Meaning::unless(
                "no record is known by then, or it has no such number",
                format!("`{field}` of the last record of historical sentiment `lag` before the date or earlier"),
                "0.12",
            )
            .in_unit("the vendor's"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_column_says_when_it_is_null_if_it_can_be() {
        let mut features = Feature::of_articles(&[Days::new(7)], Statistic::ALL, &[Days::new(3)]);
        features.extend([
            Feature::Summary(Reference::Avg),
            Feature::SummaryDaysSince,
            Feature::Historical(Arc::from("score")),
        ]);
        for feature in features {
            assert_eq!(feature.meaning().null.is_some(), feature.field().is_nullable(), "{feature}");
        }
        for rows in [RowKind::Signal, RowKind::Article] {
            for column in rows.base() {
                assert_eq!(column.meaning(rows).null.is_some(), column.is_nullable(), "{}", column.name());
            }
        }
    }
}
