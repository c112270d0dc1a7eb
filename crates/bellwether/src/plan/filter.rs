//! The signals that a dataset selects of those that are fetched.

use std::collections::BTreeSet;
use std::ops::Range;

use chrono::{NaiveDate, NaiveTime};

use crate::definition::Confidence;
use crate::interface::{Period, Regime, Sector, Signal, Ticker};
use crate::universe::Universe;

/// A filter on signals. A field that is none accepts all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their tickers.
    pub tickers: Option<BTreeSet<Ticker>>,
    /// The sectors of their tickers.
    pub sectors: Option<BTreeSet<Sector>>,
    /// Their horizons.
    pub periods: Option<BTreeSet<Period>>,
    /// Their market regimes.
    pub regimes: Option<BTreeSet<Regime>>,
    /// Their horizons with their regimes.
    pub pairs: Option<BTreeSet<(Period, Regime)>>,
    /// What they say.
    pub signals: Option<BTreeSet<Signal>>,
    /// Their least confidence.
    pub min_confidence: Option<Confidence>,
    /// The first day.
    pub from: Option<NaiveDate>,
    /// The day after the last.
    pub to: Option<NaiveDate>,
    /// The tickers that count on each day.
    pub universe: Option<Universe>,
}

impl Filter {
    /// The filter that accepts what both accept.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn both<T: Ord + Clone>(one: Option<BTreeSet<T>>, other: Option<BTreeSet<T>>) -> Option<BTreeSet<T>> {
            match (one, other) {
                (Some(one), Some(other)) => Some(&one & &other),
                (one, other) => one.or(other),
            }
        }
        let least = [self.min_confidence, other.min_confidence].into_iter().flatten();
        Self {
            tickers: both(self.tickers, other.tickers),
            sectors: both(self.sectors, other.sectors),
            periods: both(self.periods, other.periods),
            regimes: both(self.regimes, other.regimes),
            pairs: both(self.pairs, other.pairs),
            signals: both(self.signals, other.signals),
            min_confidence: least.reduce(|one, other| if one < other { other } else { one }),
            from: self.from.max(other.from),
            to: [self.to, other.to].into_iter().flatten().min(),
            universe: self.universe.or(other.universe),
        }
    }

    /// Whether it accepts a series, apart from the sector of its ticker.
    pub fn takes(&self, ticker: &Ticker, period: Option<Period>, regime: Option<Regime>) -> bool {
        let Self { tickers, periods, regimes, pairs, universe, .. } = self;
        let is_pair = |pairs: &BTreeSet<_>| period.zip(regime).is_some_and(|pair| pairs.contains(&pair));
        tickers.as_ref().is_none_or(|tickers| tickers.contains(ticker))
            && universe.as_ref().is_none_or(|universe| !universe.spans(ticker).is_empty())
            && periods.as_ref().is_none_or(|periods| period.is_some_and(|period| periods.contains(&period)))
            && regimes.as_ref().is_none_or(|regimes| regime.is_some_and(|regime| regimes.contains(&regime)))
            && pairs.as_ref().is_none_or(is_pair)
    }

    /// The naive dates that it accepts, in microseconds since 1970.
    pub fn dates(&self) -> Range<i64> {
        let micros = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        self.from.map_or(i64::MIN, micros)..self.to.map_or(i64::MAX, micros)
    }

    /// Whether a ticker counts on a date, in naive microseconds.
    pub fn has_member(&self, ticker: &Ticker, date: i64) -> bool {
        self.universe.as_ref().is_none_or(|universe| universe.spans(ticker).iter().any(|span| span.contains(&date)))
    }

    /// Whether it selects rows by what they say.
    pub fn is_by_value(&self) -> bool {
        self.signals.is_some() || self.min_confidence.is_some()
    }

    /// Whether it accepts what a row says.
    pub fn takes_value(&self, signal: Signal, confidence: f64) -> bool {
        self.signals.as_ref().is_none_or(|signals| signals.contains(&signal))
            && self.min_confidence.is_none_or(|least| confidence >= least.value())
    }
}
