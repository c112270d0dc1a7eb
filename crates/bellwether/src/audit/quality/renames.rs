//! Tickers that end where another goes on with the same history: suspected renames.
//!
//! Nothing but the values says so. The first pass keeps the last weeks of each ticker, each as a hash of five successive
//! signals of its longest series. The second looks for the weeks of tickers that have ended in the series of others, at the
//! same dates. Only pairs that share a week are then compared signal by signal. So the cost does not grow with the number of
//! pairs of tickers, and little is held of each.
//!
//! Weeks whose signals are mostly equal say nothing, and two tickers that both go on are never a rename.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use crate::archive::History;
use crate::audit::subject::{ObservedColumns, Subject, day};
use crate::error::Result;
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::tables::Table;
use crate::time::MICROS_PER_DAY;

/// The signals of a week.
const WEEK: usize = 5;

/// The other ticker goes on for more than so many days: some sessions late is not an end.
const LATE: i64 = 7 * MICROS_PER_DAY;

/// A ticker that ends where another goes on with the same history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rename {
    /// The ticker that ends.
    pub ticker: Ticker,
    /// The one that goes on.
    pub successor: Ticker,
    /// The horizon of the series that are compared.
    pub period: Period,
    /// Their market regime.
    pub regime: Regime,
    /// The last date of the first.
    #[schemars(with = "String")]
    pub ends: NaiveDate,
    /// The first date of the other.
    #[schemars(with = "String")]
    pub begins: NaiveDate,
    /// The dates that both have.
    pub overlap: u64,
    /// Those of them on which both have the same signal and confidence.
    pub equal: u64,
    /// The id that the file of `[identity]` gives both; none if it does not, or there is none.
    pub id: Option<String>,
}

/// A period and a regime.
type Pair = (Period, Regime);

/// A signal as it stands: its date as written, in microseconds; its direction, and the bits of its confidence.
type StandingSignal = (i64, Option<&'static str>, Option<u64>);

/// The signals of a series in scope.
fn signals(subject: &Subject, history: &History, observed: &ObservedColumns<'_>) -> Vec<StandingSignal> {
    let signal = |row: usize| {
        let date = observed.written_date(row).filter(|_| subject.has_date(observed, row))?;
        let value = observed.value(row);
        Some((date, value.signal.map(Signal::as_str), value.number.map(f64::to_bits)))
    };
    observed.known_rows(history).filter_map(signal).collect()
}

fn pair_of(history: &History) -> Option<Pair> {
    history.key.period.zip(history.key.regime)
}

/// The hash of a week of a series; none if its signals are mostly equal.
fn hash_of(pair: Pair, week: &[StandingSignal]) -> Option<u64> {
    let distinct: HashSet<_> = week.iter().map(|(_, signal, confidence)| (signal, confidence)).collect();
    let mut hasher = DefaultHasher::new();
    (pair.0.as_str(), pair.1.as_str(), week).hash(&mut hasher);
    (distinct.len() >= 3).then(|| hasher.finish())
}

/// By ticker: its last date, the number of signals of its longest series, and the last weeks of that series, each by its last
/// date and its hash.
pub(super) type Ends = HashMap<Ticker, (i64, usize, Vec<(i64, u64)>)>;

/// Takes the end of a series.
pub(super) fn add_end(ends: &mut Ends, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
    let signals = signals(subject, history, observed);
    let (Some((last, ..)), Some(pair)) = (signals.last(), pair_of(history)) else { return };
    let (end, longest, weeks) = ends.entry(history.key.ticker.clone()).or_insert((*last, 0, Vec::new()));
    *end = (*last).max(*end);
    if signals.len() > *longest {
        *longest = signals.len();
        let whole = signals.rchunks_exact(WEEK).take(4);
        *weeks = whole.filter_map(|week| Some((week.last()?.0, hash_of(pair, week)?))).collect();
    }
}

/// The last weeks of the tickers that ended before the others: by their last date and their hash, each ticker with its end.
pub(super) type LastWeeks = HashMap<i64, HashMap<u64, Vec<(Ticker, i64)>>>;

/// The last weeks of the tickers that ended before the others.
pub(super) fn last_weeks(ends: Ends) -> LastWeeks {
    let newest = ends.values().map(|(end, ..)| *end).max().unwrap_or_default();
    let mut all = LastWeeks::new();
    for (ticker, (end, _, weeks)) in ends.into_iter().filter(|(_, (end, ..))| end + LATE < newest) {
        for (date, hash) in weeks {
            all.entry(date).or_default().entry(hash).or_default().push((ticker.clone(), end));
        }
    }
    all
}

/// Tickers that ended, each with one that has a week of its series, and the pair of these.
pub(super) type Candidates = BTreeSet<(Ticker, Ticker, Pair)>;

/// Looks for the last weeks of others in a series that goes on.
pub(super) fn look(
    last_weeks: &LastWeeks,
    subject: &Subject,
    history: &History,
    observed: &ObservedColumns<'_>,
    found: &mut Candidates,
) {
    if last_weeks.is_empty() {
        return;
    }
    let signals = signals(subject, history, observed);
    let (Some((last, ..)), Some(pair)) = (signals.last(), pair_of(history)) else { return };
    for week in signals.windows(WEEK) {
        let Some(of_date) = last_weeks.get(&week[WEEK - 1].0) else { continue };
        for (ticker, end) in hash_of(pair, week).and_then(|hash| of_date.get(&hash)).into_iter().flatten() {
            if end + LATE < *last && *ticker != history.key.ticker {
                found.insert((ticker.clone(), history.key.ticker.clone(), pair));
            }
        }
    }
}

/// The candidates whose histories are the same, in ticker order.
pub(super) fn compare(candidates: &Candidates, subject: &Subject) -> Result<Vec<Rename>> {
    let mut wanted: HashSet<(&Ticker, Pair)> = HashSet::new();
    let mut compared: Vec<(&Ticker, &Ticker, Pair)> = Vec::new();
    for (ticker, successor, pair) in candidates {
        if compared.iter().rev().take_while(|(one, ..)| *one == ticker).count() < 3 {
            compared.push((ticker, successor, *pair));
            wanted.extend([(ticker, *pair), (successor, *pair)]);
        }
    }
    let mut series = HashMap::new();
    if !wanted.is_empty() {
        subject.each_piece(
            |view| view.observations(Table::Signals),
            |histories, observed| {
                let mut found = Vec::new();
                for history in subject.series(histories) {
                    let ticker = &history.key.ticker;
                    if let Some(pair) = pair_of(history).filter(|pair| wanted.contains(&(ticker, *pair))) {
                        found.push(((ticker.clone(), pair), signals(subject, history, observed)));
                    }
                }
                Ok(found)
            },
            |found| {
                series.extend(found);
                Ok(())
            },
        )?;
    }
    let mut renames = Vec::new();
    for (ticker, successor, pair) in compared {
        let of = |ticker: &Ticker| series.get(&(ticker.clone(), pair)).map_or(&[][..], Vec::as_slice);
        let (old, new) = (of(ticker), of(successor));
        let later: HashMap<i64, &StandingSignal> = new.iter().map(|signal| (signal.0, signal)).collect();
        let both = || old.iter().filter_map(|signal| Some((signal, *later.get(&signal.0)?)));
        let (overlap, equal) = (both().count(), both().filter(|(one, other)| one == other).count());
        // A vendor also rewrites its past.
        if overlap >= 20
            && equal as f64 >= 0.9 * overlap as f64
            && let (Some(last), Some(first)) = (old.last(), new.first())
        {
            renames.push(Rename {
                ticker: ticker.clone(),
                successor: successor.clone(),
                period: pair.0,
                regime: pair.1,
                ends: day(last.0),
                begins: day(first.0),
                overlap: overlap as u64,
                equal: equal as u64,
                id: subject.identity.shared_id(ticker, successor).map(str::to_owned),
            });
        }
    }
    Ok(renames)
}
