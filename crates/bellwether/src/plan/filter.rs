//! The signals that a dataset selects of those that are fetched.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;

use chrono::{NaiveDate, NaiveTime};

use super::Validator;
use crate::definition::{Confidence, DatasetKind, Definition, HistoryForm, List, TickerList, Tickers};
use crate::interface::{Period, Regime, Sector, Signal, Ticker};
use crate::time::Clock;
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

/// The values of a list; none if it was not given.
type Typed<T> = Option<List<T>>;

impl Validator<'_> {
    /// The filter of a definition, which may only name fetched data.
    pub(super) fn filter(&mut self) -> Filter {
        let (section, signals) = (&self.definition.filter, &self.definition.signals);
        let today = Clock::System.now().date_naive();
        let [from, to] = [section.from, section.to].map(|typed| typed.map(|day| day.counted_from(today)));
        if let (Some(first), Some(end)) = (from, to)
            && first >= end
        {
            let hint = "`to` is exclusive: choose a day after `from`";
            self.object("filter.to", format!("empty date range: {first} to {end}"), hint);
        }
        // Invalid values of `[signals]` were removed, so that it may seem to fetch less than it does.
        if !self.flawed.contains("signals") {
            match self.kind() {
                DatasetKind::News => self.check_news(),
                DatasetKind::Joined | DatasetKind::Signals => self.check_fetched(),
            }
        }
        let filter = Filter {
            tickers: self.selected("ticker", "filter.tickers", &section.tickers),
            sectors: self.selected("sector", "filter.sectors", &section.sectors),
            periods: self.selected("period", "filter.periods", &section.periods),
            regimes: self.selected("regime", "filter.regimes", &section.regimes),
            pairs: None,
            signals: section.signal.map(|signal| BTreeSet::from([signal])),
            min_confidence: section.min_confidence,
            from,
            to,
            universe: section.universe.as_ref().and_then(|file| self.universe(file)),
        };
        if self.form() != HistoryForm::Batched {
            return filter;
        }
        // A batch has all tickers, and the service decides on its periods and regimes.
        let named = self.listed_tickers().filter(|_| signals.sectors.is_none());
        let tickers = named.map(|(_, tickers)| tickers.iter().cloned().collect());
        let (periods, regimes) = (values(&signals.periods), values(&signals.regimes));
        filter.and(Filter { tickers, periods, regimes, pairs: self.named_pairs(), ..Filter::default() })
    }

    fn selected<T: Ord + Clone + Display>(&mut self, what: &str, key: &str, typed: &Typed<T>) -> Option<BTreeSet<T>> {
        self.distinct(what, key, typed.as_ref()).map(BTreeSet::from_iter)
    }

    /// The members that a file lists.
    fn universe(&mut self, file: &str) -> Option<Universe> {
        let read = Universe::read(&self.root.join(file));
        if let Err(error) = &read {
            let hint = "name a CSV file with a line per ticker and membership: `ticker`, `from` and `to`, with dates such as \
                        `2022-06-09`; `to` is the last day, and empty for a member of today";
            self.object("filter.universe", format!("`{file}` does not list members: {error}"), hint);
        }
        read.ok()
    }

    /// Reports filters on data that is not fetched: they could never match.
    fn check_fetched(&mut self) {
        let (section, signals) = (&self.definition.filter, &self.definition.signals);
        let pairs = self.named_pairs();
        let (of_periods, of_regimes) = if pairs.is_some() { ("pairs", "pairs") } else { ("periods", "regimes") };
        let (mut periods, mut regimes) = (values(&signals.periods), values(&signals.regimes));
        if let Some(pairs) = &pairs {
            periods = periods.or(Some(pairs.iter().map(|pair| pair.0).collect()));
            regimes = regimes.or(Some(pairs.iter().map(|pair| pair.1).collect()));
        } else if self.form() != HistoryForm::Batched {
            periods = periods.or(Some(BTreeSet::from([Period::default()])));
            regimes = regimes.or(Some(BTreeSet::from([Regime::default()])));
        }
        self.check_each(["signals", of_periods, "period"], "filter.periods", &section.periods, periods.as_ref());
        self.check_each(["signals", of_regimes, "regime"], "filter.regimes", &section.regimes, regimes.as_ref());
        if let (Some(pairs), Some(periods), Some(regimes)) = (&pairs, &section.periods, &section.regimes)
            && !pairs.iter().any(|(period, regime)| periods.contains(period) && regimes.contains(regime))
        {
            let what = "no pair of `pairs` has one of these periods and one of these regimes";
            let hint = "remove `periods` or `regimes` from `[filter]`, or add the pair to `[signals]`";
            self.object("filter.regimes", what, hint);
        }
        if let Some(named) = self.named_tickers().filter(|_| signals.sectors.is_none()) {
            let named = named.iter().cloned().collect();
            self.check_each(["signals", "tickers", "ticker"], "filter.tickers", &section.tickers, Some(&named));
        }
        let sectors = values(&signals.sectors);
        self.check_each(["signals", "sectors", "sector"], "filter.sectors", &section.sectors, sectors.as_ref());
        self.check_excluded();
    }

    /// Reports tickers that are left out before the filter.
    fn check_excluded(&mut self) {
        let excluded = self.definition.signals.exclude.as_deref().unwrap_or_default();
        for (index, ticker) in self.definition.filter.tickers.iter().flat_map(|typed| typed.iter()).enumerate() {
            if excluded.contains(ticker) {
                let what = format!("`exclude` in `[signals]` leaves out ticker `{ticker}`");
                self.object(&format!("filter.tickers.{index}"), what, "remove it from `[filter]`, or from `exclude`");
            }
        }
    }

    /// Reports filters on news that is not fetched.
    fn check_news(&mut self) {
        let Definition { filter, signals, sentiment, .. } = self.definition;
        self.check_excluded();
        let section = if sentiment.tickers.is_some() { "sentiment" } else { "signals" };
        match sentiment.tickers.as_ref().or(signals.tickers.as_ref()) {
            Some(Tickers::Written(fetched)) => {
                let fetched = fetched.iter().cloned().collect();
                self.check_each([section, "tickers", "ticker"], "filter.tickers", &filter.tickers, Some(&fetched));
            }
            Some(Tickers::Known(TickerList::Available)) => {}
            _ => {
                let fetched = values(&signals.sectors);
                self.check_each(["signals", "sectors", "sector"], "filter.sectors", &filter.sectors, fetched.as_ref());
            }
        }
    }

    /// Reports values that a key of a section, which names what is fetched, does not have.
    fn check_each<T: Ord + Display>(
        &mut self,
        [section, fetching, what]: [&str; 3],
        key: &str,
        typed: &Typed<T>,
        fetched: Option<&BTreeSet<T>>,
    ) {
        let Some(fetched) = fetched else { return };
        for (index, value) in typed.iter().flat_map(|typed| typed.iter()).enumerate() {
            if !fetched.contains(value) {
                let hint = format!("add it to `{fetching}` in `[{section}]`, or remove it from `[filter]`");
                let what = format!("`[{section}]` does not fetch {what} `{value}`");
                self.object(&format!("{key}.{index}"), what, hint);
            }
        }
    }
}

fn values<T: Ord + Clone>(typed: &Typed<T>) -> Option<BTreeSet<T>> {
    typed.as_ref().map(|typed| typed.iter().cloned().collect())
}
