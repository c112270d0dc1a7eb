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

use super::Finding;
use crate::archive::{History, StoredObservations};
use crate::audit::observed::ObservedColumns;
use crate::audit::subject::{Subject, day};
use crate::error::Result;
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::process::in_order::in_order;
use crate::tables::{SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// The signals of a week.
const WEEK: usize = 5;

/// The weeks that are kept of each ticker.
const WEEKS: usize = 4;

/// A week has at least so many different signals.
const FEWEST_VALUES: usize = 3;

/// The other ticker goes on for more than so many days: some sessions late is not an end.
const LATE: i64 = 7 * MICROS_PER_DAY;

/// The fewest dates that two tickers must share.
const FEWEST_SHARED: u64 = 20;

/// The share of them with the same signal, since a vendor also rewrites its past.
const LEAST_EQUAL: f64 = 0.9;

/// The most successors of a ticker that are compared with it.
const MOST_SUCCESSORS: usize = 3;

/// Pairs of tickers that are compared at once.
const AT_ONCE: usize = 1_000;

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

impl Rename {
    /// It as a finding: the first date of the other, the last of the one, the dates that both have, and the share of them
    /// with the same signal.
    pub(super) fn finding(&self) -> Finding {
        let micros = |date: NaiveDate| date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        let (table, ticker) = (Some(Table::Signals), self.ticker.clone());
        Finding {
            key: Some(SeriesKey { table, ticker, period: Some(self.period), regime: Some(self.regime) }),
            date: Some(micros(self.begins)),
            until: Some(micros(self.ends)),
            count: Some(self.overlap),
            value: Some(self.equal as f64 / self.overlap as f64),
            what: Some(self.successor.to_string()),
            ..Finding::new("rename")
        }
    }
}

/// A period and a regime.
type Pair = (Period, Regime);

/// A signal as it stands: its date as written, in microseconds; its direction, and the bits of its confidence.
type StandingSignal = (i64, Option<&'static str>, Option<u64>);

/// The signals of a series in scope; none of other tables.
fn signals(
    subject: &Subject,
    history: &History,
    observed: &ObservedColumns<'_>,
) -> Option<(Pair, Vec<StandingSignal>)> {
    let pair = (history.key.period?, history.key.regime?);
    let signal = |row: usize| {
        let date = observed.written_date(row).filter(|_| subject.has_date(observed, row))?;
        let value = observed.value(row);
        Some((date, value.signal.map(Signal::as_str), value.number.map(f64::to_bits)))
    };
    Some((pair, observed.known_rows(history).filter_map(signal).collect()))
}

/// The hash of a week of a series; none if its signals are mostly equal.
fn hash_of(pair: Pair, week: &[StandingSignal]) -> Option<u64> {
    let distinct: HashSet<_> = week.iter().map(|(_, signal, confidence)| (signal, confidence)).collect();
    let mut hasher = DefaultHasher::new();
    (pair.0.as_str(), pair.1.as_str(), week).hash(&mut hasher);
    (distinct.len() >= FEWEST_VALUES).then(|| hasher.finish())
}

/// The end of a ticker: its last date, the number of signals of its longest series, and the last weeks of that series, each
/// by its last date and its hash.
type End = (i64, usize, Vec<(i64, u64)>);

/// The ends of all tickers.
#[derive(Debug, Default)]
pub(super) struct Ends(HashMap<Ticker, End>);

impl Ends {
    /// Takes the end of a series.
    pub(super) fn add(&mut self, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
        let Some((pair, signals)) = signals(subject, history, observed) else { return };
        let Some((last, ..)) = signals.last() else { return };
        let (end, longest, weeks) = self.0.entry(history.key.ticker.clone()).or_insert((*last, 0, Vec::new()));
        *end = (*last).max(*end);
        if signals.len() > *longest {
            *longest = signals.len();
            let whole = signals.rchunks_exact(WEEK).take(WEEKS);
            *weeks = whole.filter_map(|week| Some((week.last()?.0, hash_of(pair, week)?))).collect();
        }
    }

    /// Takes the ends of other tickers.
    pub(super) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The tickers that ended before the others.
    pub(super) fn early_ends(self) -> Ended {
        let newest = self.0.values().map(|(end, ..)| *end).max().unwrap_or_default();
        let mut ended = Ended::default();
        for (ticker, (end, _, weeks)) in self.0 {
            if end + LATE < newest {
                for (date, hash) in weeks {
                    ended.weeks.entry(date).or_default().push((hash, ended.tickers.len()));
                }
                ended.tickers.push((ticker, end));
            }
        }
        ended
    }
}

/// The tickers that ended before the others.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Each with its last date.
    tickers: Vec<(Ticker, i64)>,
    /// By last date, the hashes of their last weeks, with the indices of the tickers.
    weeks: HashMap<i64, Vec<(u64, usize)>>,
}

/// By the index of a ticker that ended, those with a week of its series.
#[derive(Debug, Default)]
pub(super) struct Candidates(HashMap<usize, BTreeSet<(Ticker, Pair)>>);

impl Candidates {
    fn add(&mut self, ended: usize, successor: (Ticker, Pair)) {
        let all = self.0.entry(ended).or_default();
        all.insert(successor);
        if all.len() > MOST_SUCCESSORS {
            all.pop_last();
        }
    }

    /// Takes those of other tickers.
    pub(super) fn merge(&mut self, other: Self) {
        for (ended, successors) in other.0 {
            successors.into_iter().for_each(|successor| self.add(ended, successor));
        }
    }
}

impl Ended {
    /// Looks for the weeks of these tickers in the series of another that goes on.
    pub(super) fn look(
        &self,
        subject: &Subject,
        history: &History,
        observed: &ObservedColumns<'_>,
        found: &mut Candidates,
    ) {
        if self.weeks.is_empty() {
            return;
        }
        let Some((pair, signals)) = signals(subject, history, observed) else { return };
        let Some((last, ..)) = signals.last() else { return };
        for week in signals.windows(WEEK) {
            let Some(weeks) = self.weeks.get(&week[WEEK - 1].0) else { continue };
            let Some(hash) = hash_of(pair, week) else { continue };
            for (_, ended) in weeks.iter().filter(|(other, _)| *other == hash) {
                let (ticker, end) = &self.tickers[*ended];
                if end + LATE < *last && *ticker != history.key.ticker {
                    found.add(*ended, (history.key.ticker.clone(), pair));
                }
            }
        }
    }

    /// The candidates whose histories are the same, in ticker order.
    pub(super) fn compare(&self, candidates: Candidates, subject: &Subject) -> Result<Vec<Rename>> {
        let mut pairs = Vec::new();
        for (ended, successors) in candidates.0 {
            pairs.extend(successors.into_iter().map(|successor| (self.tickers[ended].0.clone(), successor)));
        }
        pairs.sort_unstable();
        let mut renames = Vec::new();
        for pairs in pairs.chunks(AT_ONCE) {
            let both = |(ticker, (successor, pair)): &(Ticker, (Ticker, Pair))| {
                [ticker, successor].map(|ticker| (ticker.clone(), *pair))
            };
            let wanted: HashSet<(Ticker, Pair)> = pairs.iter().flat_map(both).collect();
            let mut series = HashMap::new();
            let read = |piece: StoredObservations| {
                let histories = piece.histories()?;
                let observed = ObservedColumns::of(&histories);
                let mut found = Vec::new();
                for history in histories.series.iter().filter(|history| subject.has(&history.key)) {
                    if let (Some(period), Some(regime)) = (history.key.period, history.key.regime)
                        && let key = (history.key.ticker.clone(), (period, regime))
                        && wanted.contains(&key)
                    {
                        found.extend(signals(subject, history, &observed).map(|(_, signals)| (key, signals)));
                    }
                }
                Ok(found)
            };
            in_order(
                || subject.view().observations(Table::Signals),
                read,
                |found| {
                    series.extend(found);
                    Ok(())
                },
            )?;
            for (ticker, (successor, pair)) in pairs {
                let signals = |ticker: &Ticker| series.get(&(ticker.clone(), *pair));
                if let (Some(old), Some(new)) = (signals(ticker), signals(successor)) {
                    renames.extend(rename(subject, [ticker, successor], *pair, [old, new]));
                }
            }
        }
        Ok(renames)
    }
}

/// Two tickers with the same history of a pair, if it is the same.
fn rename(
    subject: &Subject,
    [ticker, successor]: [&Ticker; 2],
    (period, regime): Pair,
    [old, new]: [&Vec<StandingSignal>; 2],
) -> Option<Rename> {
    let later: HashMap<i64, &StandingSignal> = new.iter().map(|signal| (signal.0, signal)).collect();
    let (mut overlap, mut equal) = (0, 0);
    for signal in old {
        if let Some(other) = later.get(&signal.0) {
            overlap += 1;
            equal += u64::from(*other == signal);
        }
    }
    if overlap < FEWEST_SHARED || (equal as f64) < LEAST_EQUAL * overlap as f64 {
        return None;
    }
    Some(Rename {
        ticker: ticker.clone(),
        successor: successor.clone(),
        period,
        regime,
        ends: day(old.last()?.0),
        begins: day(new.first()?.0),
        overlap,
        equal,
        id: subject.identity().shared_id(ticker, successor).map(str::to_owned),
    })
}
