//! The check for tickers and series that disappeared or appeared since the previous version.
//!
//! Only what both versions asked for is compared: a definition that asks for more does not make the universe grow, and one
//! that asks for another sector as well is still warned when tickers of the first one are gone.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Check, CheckOutcome, Checking, Listing};
use crate::archive::View;
use crate::error::Result;
use crate::interface::{Period, Regime, Ticker};
use crate::plan::{Plan, Request, RequestList, TickerSource};
use crate::run::names::{in_words, list};
use crate::run::scope::archived_scope;
use crate::tables::SeriesKey;
use crate::text::human::{count_of, group_digits, percent};

/// Tickers with a period and a regime each.
type Universe = BTreeSet<SeriesKey>;

impl Checking<'_> {
    /// Compares the series with those of the previous version.
    pub(super) fn universe(&self, now: Listing, outcome: &mut CheckOutcome) -> Result<()> {
        let Some((before, plan)) = self.before.and_then(|before| Some((&before.recorded, before.plan.as_ref()?)))
        else {
            return Ok(());
        };
        let Some(asked) = AskedByBoth::of(plan, self.plan) else { return Ok(()) };
        let earlier = View::of(self.view.archive().clone(), before.as_of);
        // The archive may be another one.
        let Ok(scope) = archived_scope(plan, &earlier) else { return Ok(()) };
        let listed = asked.universe(earlier.listing(&scope.requests)?);
        let filter = plan.dataset.filter.clone().and(self.scope.filter.clone());
        let sectors = if filter.sectors.is_some() { self.view.sectors(Some(self.scope))? } else { HashMap::new() };
        let kept = |universe: Universe| -> Universe {
            // The sector of a ticker may be unknown.
            let is_of_sector = |ticker: &Ticker| match &filter.sectors {
                Some(wanted) => sectors.get(ticker).is_some_and(|sector| wanted.contains(sector)),
                None => true,
            };
            let is_excluded = |ticker: &Ticker| plan.excluded.contains(ticker) || self.scope.excluded.contains(ticker);
            let is_taken = |SeriesKey { ticker, period, regime, .. }: &SeriesKey| {
                filter.takes(ticker, *period, *regime) && is_of_sector(ticker) && !is_excluded(ticker)
            };
            universe.into_iter().filter(is_taken).collect()
        };
        let (listed, now) = (kept(listed), kept(asked.universe(now)));
        if listed.is_empty() {
            return Ok(());
        }
        let (version, share) = (before.version.as_str(), self.plan.checks.universe);
        let (before, after) = (tickers(&listed), tickers(&now));
        let mut found = above(["ticker", "tickers"], (&before, version), &after, share, Ticker::to_string);
        // If tickers appeared or disappeared, so did their series.
        if found.is_empty() {
            found = above(["series"; 2], (&listed, version), &now, share, in_words);
        }
        outcome.failed.extend(found.into_iter().map(|found| (Check::Universe, found)));
        Ok(())
    }
}

/// What two plans both ask for.
enum AskedByBoth {
    /// Everything.
    All,
    /// What these requests list.
    Requests(HashSet<String>),
    /// These tickers, or all, with these pairs.
    Series(Option<BTreeSet<Ticker>>, Vec<(Period, Regime)>),
}

impl AskedByBoth {
    /// None if they cannot be compared.
    fn of(before: &Plan, now: &Plan) -> Option<Self> {
        if before.alternatives == now.alternatives && before.further == now.further {
            return Some(Self::All);
        }
        match (&before.alternatives.first()?.list, &now.alternatives.first()?.list) {
            (RequestList::Listed(asked), RequestList::Listed(asked_now)) => {
                let words = |requests: &[Request], further: &[Request]| -> HashSet<String> {
                    requests.iter().chain(further).map(ToString::to_string).collect()
                };
                let (mut asked, asked_now) = (words(asked, &before.further), words(asked_now, &now.further));
                asked.retain(|request| asked_now.contains(request));
                Some(Self::Requests(asked))
            }
            (RequestList::EachTicker(tickers, pairs), RequestList::EachTicker(tickers_now, pairs_now)) => {
                let tickers = match (tickers, tickers_now) {
                    (TickerSource::Listed(before), TickerSource::Listed(now)) => {
                        Some(before.iter().filter(|ticker| now.contains(ticker)).cloned().collect())
                    }
                    (before, now) if before == now => None,
                    _ => return None,
                };
                let pairs: Vec<_> = pairs.iter().filter(|pair| pairs_now.contains(pair)).copied().collect();
                (!pairs.is_empty()).then_some(Self::Series(tickers, pairs))
            }
            _ => None,
        }
    }

    /// The series among some listed ones.
    fn universe(&self, listing: Listing) -> Universe {
        match self {
            Self::All => listing.into_values().flatten().collect(),
            Self::Requests(requests) => {
                let asked = listing.into_iter().filter(|(request, _)| requests.contains(request));
                asked.flat_map(|(_, series)| series).collect()
            }
            Self::Series(tickers, pairs) => {
                let is_asked = |key: &SeriesKey| {
                    let is_pair = key.period.zip(key.regime).is_some_and(|pair| pairs.contains(&pair));
                    is_pair && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
                };
                listing.into_values().flatten().filter(is_asked).collect()
            }
        }
    }
}

fn tickers(universe: &Universe) -> BTreeSet<Ticker> {
    universe.iter().map(|key| key.ticker.clone()).collect()
}

/// Messages on items of the previous version that disappeared, if above a share of them, and on items that appeared, if above a
/// share of the new ones. What they are is given in singular and plural.
fn above<T: Ord>(
    [one, many]: [&str; 2],
    (before, version): (&BTreeSet<T>, &str),
    now: &BTreeSet<T>,
    share: f64,
    name: impl Fn(&T) -> String,
) -> Vec<String> {
    let gone: Vec<&T> = before.difference(now).collect();
    let new: Vec<&T> = now.difference(before).collect();
    let mut messages = Vec::new();
    for (how, shifted, all) in [("disappeared", gone, before.len()), ("appeared", new, now.len())] {
        if shifted.len() as f64 > all as f64 * share {
            let (some, all) = (group_digits(shifted.len() as u64), count_of(all as u64, one, many));
            let (share, names) = (percent(share), list(shifted.iter().map(|it| name(it))));
            messages
                .push(format!("{some} of {all} {how} since version `{version}`, above the limit of {share}: {names}"));
        }
    }
    messages
}
