//! The ground truth of a rewritten past: the cells that differ from an earlier day.
//!
//! Values are only revised. No cell is withdrawn while it is within the five years or the list, and none of an earlier
//! day is added later. The summary and the daily sentiment are computed from the scores and follow them; the legacy
//! operations are never revised.

use bellwether_interface::{Period, Regime, Ticker};
use chrono::NaiveDate;

use crate::companies::{self, Company};
use crate::prediction::{Model, Outlook, Prediction};
use crate::revision::{LONGEST_DELAY, Revision};
use crate::universe::Universe;

/// The rewrites between an earlier day and a universe's today, of all cells or a selection.
///
/// Covers the cells that both days have. There are none if the earlier day is not before today.
#[derive(Clone, Debug)]
pub struct UniverseRewrites<'u> {
    universe: &'u Universe,
    earlier: NaiveDate,
    companies: Vec<&'static Company>,
    periods: Vec<Period>,
    regimes: Vec<Regime>,
}

/// A signal that was rewritten.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalRewrite {
    /// The symbol.
    pub ticker: Ticker,
    /// The period of the series.
    pub period: Period,
    /// The regime of the series.
    pub regime: Regime,
    /// The date of the cell.
    pub date: NaiveDate,
    /// The earlier value.
    pub before: Prediction,
    /// The new value.
    pub after: Prediction,
}

/// The score of an article that was rewritten.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRewrite {
    /// The symbol.
    pub ticker: Ticker,
    /// The date of the article.
    pub date: NaiveDate,
    /// The URL of the article, which is unique.
    pub link: String,
    /// The earlier value.
    pub before: f64,
    /// The new value.
    pub after: f64,
}

impl Universe {
    /// The cells that differ from the universe of the same seed at an earlier day.
    pub fn rewrites(&self, earlier: NaiveDate) -> UniverseRewrites<'_> {
        let companies = companies::all().iter().collect();
        let (periods, regimes) = (Period::all().collect(), Regime::ALL.to_vec());
        UniverseRewrites { universe: self, earlier, companies, periods, regimes }
    }
}

impl<'u> UniverseRewrites<'u> {
    /// Only those of some tickers. Unknown tickers are ignored.
    #[must_use]
    pub fn of_tickers(mut self, tickers: &[Ticker]) -> Self {
        self.companies.retain(|company| tickers.contains(&company.ticker));
        self
    }

    /// Only those of some periods. Scores have no period and stay.
    #[must_use]
    pub fn of_periods(mut self, periods: &[Period]) -> Self {
        self.periods.retain(|period| periods.contains(period));
        self
    }

    /// Only those of some regimes. Scores have no regime and stay.
    #[must_use]
    pub fn of_regimes(mut self, regimes: &[Regime]) -> Self {
        self.regimes.retain(|regime| regimes.contains(regime));
        self
    }

    /// The rewritten signals, by ticker, period, regime and date.
    pub fn signals(&self) -> impl Iterator<Item = SignalRewrite> {
        let kinds = self.periods.iter().flat_map(|&period| self.regimes.iter().map(move |&regime| (period, regime)));
        let series = self.companies.iter().flat_map(move |&company| kinds.clone().map(move |kind| (company, kind)));
        series.flat_map(move |(company, (period, regime))| {
            let series = self.universe.series(company, Outlook { model: Model::Current, period, regime });
            let dates = self.dates().iter().filter(move |date| self.is_between(series.revision(**date)));
            dates.map(move |&date| SignalRewrite {
                ticker: company.ticker.clone(),
                period,
                regime,
                date,
                before: series.get(date, self.earlier),
                after: series.get(date, self.universe.today()),
            })
        })
    }

    /// The rewritten scores of articles, by ticker and then newest first.
    pub fn scores(&self) -> impl Iterator<Item = ScoreRewrite> {
        // The list of a later day starts no earlier, so the earlier list had every article up to its day.
        let articles = self.companies.iter().flat_map(|company| self.universe.articles(company));
        let known = articles.filter(|article| article.date <= self.earlier);
        known.filter(|article| self.is_between(article.revision())).map(|article| ScoreRewrite {
            ticker: article.company.ticker.clone(),
            date: article.date,
            link: article.link(),
            before: article.score(self.earlier),
            after: article.score(self.universe.today()),
        })
    }

    /// The dates that both universes have and that may have revisions after the earlier day.
    fn dates(&self) -> &'u [NaiveDate] {
        let days = self.universe.trading_days();
        let oldest = self.earlier.checked_sub_days(LONGEST_DELAY).unwrap_or(NaiveDate::MIN);
        let begin = days.partition_point(|&date| date <= oldest);
        let end = days.partition_point(|&date| date <= self.earlier);
        &days[begin..end]
    }

    fn is_between(&self, revision: Option<Revision>) -> bool {
        revision.is_some_and(|revision| !revision.shows(self.earlier) && revision.shows(self.universe.today()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use chrono::NaiveDate;

    use super::{Model, Outlook, Period, Prediction, Regime, Ticker, Universe};
    use crate::companies::{self, Company};

    type Series = (&'static Company, Period, Regime);

    fn universe(year: i32, month: u32, day: u32) -> Universe {
        Universe::new(9, NaiveDate::from_ymd_opt(year, month, day).unwrap())
    }

    /// All cells of a universe.
    fn histories(universe: &Universe, series: &[Series]) -> BTreeMap<(Ticker, Period, Regime, NaiveDate), Prediction> {
        let cells = series.iter().flat_map(|&(company, period, regime)| {
            let series = universe.series(company, Outlook { model: Model::Current, period, regime });
            let days = universe.trading_days().iter();
            days.map(move |&date| ((company.ticker.clone(), period, regime, date), series.get(date, universe.today())))
        });
        cells.collect()
    }

    #[test]
    fn rewritten_signals_are_the_difference_of_two_universes() {
        let companies: Vec<_> = ["AAPL", "BRK.B", "XOM", "ZTS"].into_iter().filter_map(companies::find).collect();
        let tickers: Vec<Ticker> = companies.iter().map(|company| company.ticker.clone()).collect();
        let periods: Vec<Period> = ["1d", "15d", "30d", "6m"].iter().map(|text| text.parse().unwrap()).collect();
        let regimes = [Regime::Neutral, Regime::Bull];
        let kinds = periods.iter().flat_map(|&period| regimes.map(|regime| (period, regime)));
        let series: Vec<Series> =
            kinds.flat_map(|(period, regime)| companies.iter().map(move |&c| (c, period, regime))).collect();

        let later = universe(2026, 11, 20);
        let after = histories(&later, &series);
        // A day, a month, a year, almost all of the window, and a weekend.
        for (year, month, day) in [(2026, 11, 19), (2026, 10, 20), (2025, 11, 20), (2022, 1, 3), (2026, 11, 15)] {
            let earlier = universe(year, month, day);
            let before = histories(&earlier, &series);
            let differing: BTreeMap<_, _> = before
                .iter()
                .filter_map(|(cell, value)| Some((cell.clone(), (*value, *after.get(cell)?))))
                .filter(|(_, (before, after))| before != after)
                .collect();

            let rewrites =
                later.rewrites(earlier.today()).of_tickers(&tickers).of_periods(&periods).of_regimes(&regimes);
            let listed: Vec<_> = rewrites.signals().collect();
            let found: BTreeMap<_, _> = listed
                .iter()
                .map(|found| {
                    ((found.ticker.clone(), found.period, found.regime, found.date), (found.before, found.after))
                })
                .collect();
            assert_eq!(found.len(), listed.len(), "a cell is listed twice");
            assert_eq!(found, differing, "since {}", earlier.today());
        }
    }

    #[test]
    fn rewritten_scores_are_the_difference_of_two_lists() {
        let later = universe(2026, 11, 20);
        let scores = |universe: &Universe| -> BTreeMap<String, f64> {
            let articles = companies::all().iter().flat_map(|company| universe.articles(company));
            articles.map(|article| (article.link(), article.score(universe.today()))).collect()
        };
        let after = scores(&later);
        for (month, day) in [(11, 19), (10, 20), (1, 2)] {
            let earlier = universe(2026, month, day);
            let before = scores(&earlier);
            let differing: BTreeSet<&String> = before
                .iter()
                .filter(|(link, score)| after.get(*link).is_some_and(|after| after != *score))
                .map(|(link, _)| link)
                .collect();

            let found: Vec<_> = later.rewrites(earlier.today()).scores().collect();
            assert_eq!(found.iter().map(|found| &found.link).collect::<BTreeSet<_>>(), differing);
            assert_eq!(found.len(), differing.len());
            for found in &found {
                assert_eq!((before[&found.link], after[&found.link]), (found.before, found.after));
            }
            assert!(!found.is_empty() || day == 19);
        }
    }

    #[test]
    fn the_same_or_an_earlier_day_rewrites_nothing() {
        let universe = universe(2026, 11, 20);
        for day in [20, 21] {
            let rewrites = universe.rewrites(NaiveDate::from_ymd_opt(2026, 11, day).unwrap());
            assert_eq!(rewrites.of_regimes(&[Regime::Bear]).signals().count(), 0);
        }
    }
}
