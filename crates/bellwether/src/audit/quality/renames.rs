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
use crate::archive::History;
use crate::audit::observed::ObservedColumns;
use crate::audit::subject::{Subject, day};
use crate::error::Result;
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::tables::{SeriesKey, Table};
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

impl Rename {
    /// It as a finding: the first date of the other, the last of the one, the dates that both have, and the share of them
    /// with the same signal.
    pub(super) fn finding(&self) -> Finding {
        let micros = |date: NaiveDate| date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        let (table, ticker) = (Some(Table::Signals), self.ticker.clone());
        Finding {
            kind: "rename",
            key: Some(SeriesKey { table, ticker, period: Some(self.period), regime: Some(self.regime) }),
            date: Some(micros(self.begins)),
            until: Some(micros(self.ends)),
            count: Some(self.overlap),
            value: Some(self.equal as f64 / self.overlap as f64),
            what: Some(self.successor.to_string()),
            ..Finding::default()
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
    (distinct.len() >= 3).then(|| hasher.finish())
}

/// By ticker: its last date, the number of signals of its longest series, and the last weeks of that series, each by its last
/// date and its hash.
pub(super) type Ends = HashMap<Ticker, (i64, usize, Vec<(i64, u64)>)>;

/// Takes the end of a series.
pub(super) fn add_end(ends: &mut Ends, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
    let Some((pair, signals)) = signals(subject, history, observed) else { return };
    let Some((last, ..)) = signals.last() else { return };
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

/// Tickers that ended, each with one that has a week of its series.
pub(super) type Candidates = BTreeSet<(Ticker, (Ticker, Pair))>;

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
    let Some((pair, signals)) = signals(subject, history, observed) else { return };
    let Some((last, ..)) = signals.last() else { return };
    for week in signals.windows(WEEK) {
        let Some(of_date) = last_weeks.get(&week[WEEK - 1].0) else { continue };
        for (ticker, end) in hash_of(pair, week).and_then(|hash| of_date.get(&hash)).into_iter().flatten() {
            if end + LATE < *last && *ticker != history.key.ticker {
                found.insert((ticker.clone(), (history.key.ticker.clone(), pair)));
            }
        }
    }
}

/// The candidates whose histories are the same, in ticker order.
pub(super) fn compare(candidates: &Candidates, subject: &Subject) -> Result<Vec<Rename>> {
    let mut pairs: Vec<&(Ticker, (Ticker, Pair))> = Vec::new();
    for candidate in candidates {
        if pairs.iter().rev().take_while(|(ticker, _)| *ticker == candidate.0).count() < 3 {
            pairs.push(candidate);
        }
    }
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let both =
        |(ticker, (successor, pair)): &&(Ticker, (Ticker, Pair))| [(ticker.clone(), *pair), (successor.clone(), *pair)];
    let wanted: HashSet<(Ticker, Pair)> = pairs.iter().flat_map(both).collect();
    let mut series = HashMap::new();
    subject.each_piece(
        |view| view.observations(Table::Signals),
        |histories, observed| {
            let mut found = Vec::new();
            for history in histories.series.iter().filter(|history| subject.has(&history.key)) {
                let pair = history.key.period.zip(history.key.regime);
                if let Some(key) =
                    pair.map(|pair| (history.key.ticker.clone(), pair)).filter(|key| wanted.contains(key))
                {
                    found.extend(signals(subject, history, observed).map(|(_, signals)| (key, signals)));
                }
            }
            Ok(found)
        },
        |found| {
            series.extend(found);
            Ok(())
        },
    )?;
    let mut renames = Vec::new();
    for (ticker, (successor, pair)) in pairs {
        let signals = |ticker: &Ticker| series.get(&(ticker.clone(), *pair));
        if let (Some(old), Some(new)) = (signals(ticker), signals(successor)) {
            renames.extend(rename(subject, [ticker, successor], *pair, [old, new]));
        }
    }
    Ok(renames)
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
    // A vendor also rewrites its past.
    if overlap < 20 || (equal as f64) < 0.9 * overlap as f64 {
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
        id: subject.identity.shared_id(ticker, successor).map(str::to_owned),
    })
}
