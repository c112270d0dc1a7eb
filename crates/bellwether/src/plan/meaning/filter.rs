//! The filter of a plan: `[filter]`, which may only name fetched data.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use super::Validator;
use super::kinds::kind_of;
use super::signals::{form_of, named_pairs, named_tickers};
use crate::definition::{
    DatasetKind, Definition, FilterSection, HistoryForm, List, Placed, SignalsSection, TickerList, Tickers,
};
use crate::interface::{Period, Regime, Ticker};
use crate::plan::Filter;
use crate::text::problem::Problem;
use crate::time::Clock;
use crate::universe::Universe;

/// The values of a list; none if it was not given.
type Typed<T> = Option<Placed<List<T>>>;

impl Validator {
    /// The filter of a definition.
    pub(super) fn filter(&mut self, definition: &Definition, root: &Path) -> Filter {
        let (section, signals) = (&*definition.filter, &*definition.signals);
        let FilterSection { tickers, sectors, periods, regimes, signal, min_confidence, from, to, universe } = section;
        let today = Clock::System.now().date_naive();
        let days = [from, to].map(|typed| typed.as_ref().map(|day| day.counted_from(today)));
        if let (Some(to), [Some(first), Some(end)]) = (to, days)
            && first >= end
        {
            let problem = Problem::new(format!("empty date range: {first} to {end}"), to.span());
            self.object(problem.with_hint("`to` is exclusive: choose a day after `from`"));
        }
        // Invalid values of `[signals]` were removed, so that it may seem to fetch less than it does.
        if !self.flawed.contains("signals") {
            match kind_of(definition) {
                DatasetKind::News => self.outside_of_news(definition),
                DatasetKind::Joined | DatasetKind::Signals => self.outside(section, signals),
            }
        }
        let filter = Filter {
            tickers: self.distinct("ticker", tickers.as_ref()).map(BTreeSet::from_iter),
            sectors: self.distinct("sector", sectors.as_ref()).map(BTreeSet::from_iter),
            periods: self.distinct("period", periods.as_ref()).map(BTreeSet::from_iter),
            regimes: self.distinct("regime", regimes.as_ref()).map(BTreeSet::from_iter),
            pairs: None,
            signals: signal.as_deref().map(|signal| BTreeSet::from([*signal])),
            min_confidence: min_confidence.as_deref().copied(),
            from: days[0],
            to: days[1],
            universe: universe.as_ref().and_then(|file| self.universe(file, root)),
        };
        let named = match kind_of(definition) {
            DatasetKind::News => named_news(definition),
            DatasetKind::Joined | DatasetKind::Signals => named_tickers(signals),
        };
        // A batch has all tickers.
        let is_selection = signals.sectors.is_none() && form_of(signals) == HistoryForm::Batched;
        let named = named.filter(|_| is_selection).map(|tickers| tickers.iter().cloned().collect());
        filter.and(of_batch(signals)).and(Filter { tickers: named, ..Filter::default() })
    }

    /// The members that a file lists.
    fn universe(&mut self, file: &Placed<String>, root: &Path) -> Option<Universe> {
        let read = Universe::read(&root.join(file.as_str()));
        read.map_err(|error| {
            let problem = Problem::new(format!("`{}` does not list members: {error}", file.as_str()), file.span());
            self.object(problem.with_hint(
                "name a CSV file with a line per ticker and membership: `ticker`, `from` and `to`, with dates such as \
                 `2022-06-09`; `to` is the last day, and empty for a member of today",
            ));
        })
        .ok()
    }

    /// Reports filters on data that is not fetched: they could never match.
    fn outside(&mut self, section: &FilterSection, signals: &SignalsSection) {
        let FilterSection { tickers, sectors, periods, regimes, .. } = section;
        let form = form_of(signals);
        let default = (form != HistoryForm::Batched).then_some(());
        let pairs = named_pairs(signals);
        let [of_periods, of_regimes] = if pairs.is_some() { ["pairs"; 2] } else { ["periods", "regimes"] };
        let of_pairs = pairs.as_ref().map(|pairs| pairs.iter().map(|pair| pair.0).collect());
        let fetched = values(&signals.periods).or(of_pairs).or(default.map(|()| BTreeSet::from([Period::default()])));
        self.check_each(["signals", of_periods, "period"], periods, fetched.as_ref());
        let of_pairs = pairs.as_ref().map(|pairs| pairs.iter().map(|pair| pair.1).collect());
        let fetched = values(&signals.regimes).or(of_pairs).or(default.map(|()| BTreeSet::from([Regime::default()])));
        self.check_each(["signals", of_regimes, "regime"], regimes, fetched.as_ref());
        self.check_pairs(section, pairs.as_ref());
        if let Some(named) = named_tickers(signals).filter(|_| signals.sectors.is_none()) {
            self.check_each(["signals", "tickers", "ticker"], tickers, Some(&named.iter().cloned().collect()));
        }
        if let Some(fetched) = values(&signals.sectors) {
            self.check_each(["signals", "sectors", "sector"], sectors, Some(&fetched));
        }
        self.check_excluded(section, signals);
    }

    /// Reports periods and regimes that each are fetched, but not together.
    fn check_pairs(&mut self, section: &FilterSection, pairs: Option<&BTreeSet<(Period, Regime)>>) {
        let (Some(pairs), Some(periods), Some(regimes)) = (pairs, &section.periods, &section.regimes) else { return };
        let is_taken = |(period, regime): &(Period, Regime)| {
            periods.iter().any(|typed| **typed == *period) && regimes.iter().any(|typed| **typed == *regime)
        };
        if !pairs.iter().any(is_taken) {
            let problem =
                Problem::new("no pair of `pairs` has one of these periods and one of these regimes", regimes.span());
            self.object(
                problem.with_hint("remove `periods` or `regimes` from `[filter]`, or add the pair to `[signals]`"),
            );
        }
    }

    /// Reports tickers that are left out before the filter.
    fn check_excluded(&mut self, section: &FilterSection, signals: &SignalsSection) {
        let Some(excluded) = values(&signals.exclude) else { return };
        for ticker in section.tickers.iter().flat_map(|typed| typed.iter()).filter(|it| excluded.contains(&***it)) {
            let problem =
                Problem::new(format!("`exclude` in `[signals]` leaves out ticker `{}`", **ticker), ticker.span());
            self.object(problem.with_hint("remove it from `[filter]`, or from `exclude`"));
        }
    }

    /// Reports filters on news that is not fetched.
    fn outside_of_news(&mut self, definition: &Definition) {
        let (section, signals) = (&definition.filter, &definition.signals);
        self.check_excluded(section, signals);
        let (place, typed) = match &definition.sentiment.tickers {
            Some(typed) => ("sentiment", Some(typed)),
            None => ("signals", signals.tickers.as_ref()),
        };
        match typed.map(|typed| &**typed) {
            Some(Tickers::Written(fetched)) => {
                let fetched: BTreeSet<Ticker> = fetched.iter().cloned().collect();
                self.check_each([place, "tickers", "ticker"], &section.tickers, Some(&fetched));
            }
            Some(Tickers::Known(TickerList::Available)) => {}
            _ => {
                let fetched = values(&signals.sectors);
                self.check_each(["signals", "sectors", "sector"], &section.sectors, fetched.as_ref());
            }
        }
    }

    /// Reports values that a key of a section, which names what is fetched, does not have.
    fn check_each<T: Ord + Display>(
        &mut self,
        [section, key, what]: [&str; 3],
        typed: &Typed<T>,
        fetched: Option<&BTreeSet<T>>,
    ) {
        let Some(fetched) = fetched else { return };
        for value in typed.iter().flat_map(|typed| typed.iter()).filter(|value| !fetched.contains(&***value)) {
            let problem = Problem::new(format!("`[{section}]` does not fetch {what} `{}`", **value), value.span());
            self.object(problem.with_hint(format!("add it to `{key}` in `[{section}]`, or remove it from `[filter]`")));
        }
    }
}

/// The filter on a batch, whose content the service decides: the periods and regimes of the definition, or its pairs, or
/// all if it has none.
fn of_batch(signals: &SignalsSection) -> Filter {
    match form_of(signals) {
        HistoryForm::Batched => {
            let (periods, regimes) = (values(&signals.periods), values(&signals.regimes));
            Filter { periods, regimes, pairs: named_pairs(signals), ..Filter::default() }
        }
        HistoryForm::Sector | HistoryForm::Ticker | HistoryForm::Latest => Filter::default(),
    }
}

/// The tickers that a dataset of news names.
fn named_news(definition: &Definition) -> Option<&[Ticker]> {
    match definition.sentiment.tickers.as_deref() {
        Some(Tickers::Written(tickers)) => Some(tickers),
        Some(Tickers::Known(TickerList::Available)) => None,
        Some(Tickers::Known(TickerList::Signals)) | None => named_tickers(&definition.signals),
    }
}

fn values<T: Ord + Clone>(typed: &Typed<T>) -> Option<BTreeSet<T>> {
    typed.as_ref().map(|typed| typed.iter().map(|value| (**value).clone()).collect())
}
