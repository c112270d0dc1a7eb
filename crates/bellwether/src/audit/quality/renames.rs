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

use super::day;
use super::findings::{Finding, FindingKind};
use crate::archive::{Histories, History, StoredObservations};
use crate::audit::observed::ObservedColumns;
use crate::audit::subject::{self, Subject};
use crate::error::Result;
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::process::in_order::in_order;
use crate::tables::{SeriesKey, Table};

/// The signals of a week.
const WEEK: usize = 5;

/// The weeks that are kept of each ticker.
const WEEKS: usize = 4;

/// A week has at least so many different signals.
const FEWEST_VALUES: usize = 3;

/// The other ticker goes on for more than so many days: some sessions late is not an end.
const LATE: i64 = 7;

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
    /// The rename as a finding.
    pub(super) fn finding<'a>(&'a self, key: &'a SeriesKey) -> Finding<'a> {
        let micros = |date: NaiveDate| date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        Finding {
            date: Some(micros(self.begins)),
            until: Some(micros(self.ends)),
            count: Some(self.overlap),
            value: Some(self.equal as f64 / self.overlap as f64),
            what: Some(self.successor.as_str()),
            ..Finding::of_series(FindingKind::Rename, key)
        }
    }

    /// The series that ends.
    pub(super) fn key(&self) -> SeriesKey {
        SeriesKey {
            table: Some(Table::Signals),
            ticker: self.ticker.clone(),
            period: Some(self.period),
            regime: Some(self.regime),
        }
    }
}

/// A signal as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StandingSignal {
    /// Its date as written, in microseconds.
    date: i64,
    signal: Option<&'static str>,
    /// The bits of its confidence.
    confidence: Option<u64>,
}

/// A period and a regime.
type Pair = (Period, Regime);

/// The signals of a series in scope; none of other tables.
fn cells(subject: &Subject, history: &History, observed: &ObservedColumns<'_>) -> Option<(Pair, Vec<StandingSignal>)> {
    let pair = (history.key.period?, history.key.regime?);
    let cell = |row: usize| {
        let date = observed.written_date(row).filter(|_| subject.has_date(observed, row))?;
        let value = observed.value(row);
        Some(StandingSignal {
            date,
            signal: value.signal.map(Signal::as_str),
            confidence: value.number.map(f64::to_bits),
        })
    };
    Some((pair, observed.known_rows(history).filter_map(cell).collect()))
}

/// The hash of a week of a series; none if its signals are mostly equal.
fn hash_of(pair: Pair, week: &[StandingSignal]) -> Option<u64> {
    let distinct: HashSet<_> = week.iter().map(|cell| (cell.signal, cell.confidence)).collect();
    if distinct.len() < FEWEST_VALUES {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (pair.0.as_str(), pair.1.as_str(), week).hash(&mut hasher);
    Some(hasher.finish())
}

/// The end of a ticker.
#[derive(Debug)]
struct End {
    /// Its last day.
    last: i64,
    /// Its longest series, and the number of its signals.
    longest: (usize, Pair),
    /// The last weeks of that series: the date of the last signal of each, and its hash.
    weeks: Vec<(i64, u64)>,
}

/// The ends of all tickers.
#[derive(Debug, Default)]
pub(super) struct Ends(HashMap<Ticker, End>);

impl Ends {
    /// Takes the end of a series.
    pub(super) fn add(&mut self, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
        let Some((pair, cells)) = cells(subject, history, observed) else { return };
        let Some(last) = cells.last().map(|cell| day(cell.date)) else { return };
        let before = self.0.get(&history.key.ticker);
        let last = before.map_or(last, |end| end.last.max(last));
        let is_longest = before.is_none_or(|end| end.longest.0 < cells.len());
        if is_longest {
            let whole = cells.rchunks_exact(WEEK).take(WEEKS);
            let weeks = whole.filter_map(|week| Some((week.last()?.date, hash_of(pair, week)?))).collect();
            self.0.insert(history.key.ticker.clone(), End { last, longest: (cells.len(), pair), weeks });
        } else if let Some(end) = self.0.get_mut(&history.key.ticker) {
            end.last = last;
        }
    }

    /// Takes the ends of other tickers.
    pub(super) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The tickers that ended before the others.
    pub(super) fn early_ends(self) -> Ended {
        let newest = self.0.values().map(|end| end.last).max().unwrap_or_default();
        let mut ended = Ended::default();
        for (ticker, end) in self.0.into_iter().filter(|(_, end)| end.last + LATE < newest) {
            let index = ended.tickers.len();
            for week in end.weeks {
                ended.dates.insert(week.0);
                ended.weeks.entry(week).or_default().push(index);
            }
            ended.tickers.push((ticker, end.last));
        }
        ended
    }
}

/// The tickers that ended before the others, by their last weeks.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Each with its last day.
    tickers: Vec<(Ticker, i64)>,
    weeks: HashMap<(i64, u64), Vec<usize>>,
    /// The dates of the last signals of weeks.
    dates: BTreeSet<i64>,
}

/// A ticker that ended, and one that has a week of its series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    ticker: Ticker,
    successor: Ticker,
    pair: Pair,
}

/// The pairs of tickers that share a week, by the index of the ticker that ended.
#[derive(Debug, Default)]
pub(super) struct Candidates(HashMap<usize, BTreeSet<Candidate>>);

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
        let Some((pair, cells)) = cells(subject, history, observed) else { return };
        let Some(last) = cells.last().map(|cell| day(cell.date)) else { return };
        let mut dates = self.dates.iter().peekable();
        for (index, cell) in cells.iter().enumerate().skip(WEEK - 1) {
            while dates.next_if(|date| **date < cell.date).is_some() {}
            if dates.peek() != Some(&&cell.date) {
                continue;
            }
            let Some(hash) = hash_of(pair, &cells[index + 1 - WEEK..=index]) else { continue };
            for &ended in self.weeks.get(&(cell.date, hash)).into_iter().flatten() {
                let (ticker, end) = &self.tickers[ended];
                if *end + LATE < last && *ticker != history.key.ticker {
                    let successor = history.key.ticker.clone();
                    found.add(ended, Candidate { ticker: ticker.clone(), successor, pair });
                }
            }
        }
    }
}

impl Candidates {
    fn add(&mut self, ended: usize, candidate: Candidate) {
        let all = self.0.entry(ended).or_default();
        all.insert(candidate);
        if all.len() > MOST_SUCCESSORS {
            all.pop_last();
        }
    }

    /// Takes those of other tickers.
    pub(super) fn merge(&mut self, other: Self) {
        for (ended, candidates) in other.0 {
            candidates.into_iter().for_each(|candidate| self.add(ended, candidate));
        }
    }

    /// Those whose histories are the same, in ticker order.
    pub(super) fn compare(self, subject: &Subject) -> Result<Vec<Rename>> {
        let mut candidates: Vec<Candidate> = self.0.into_values().flatten().collect();
        candidates.sort_unstable();
        let mut renames = Vec::new();
        for candidates in candidates.chunks(AT_ONCE) {
            let series = SeriesSignals::read(subject, candidates)?;
            renames.extend(candidates.iter().filter_map(|candidate| series.compare(candidate)));
        }
        for rename in &mut renames {
            rename.id = subject.identity().shared_id(&rename.ticker, &rename.successor).map(str::to_owned);
        }
        Ok(renames)
    }
}

/// The signals of some series.
struct SeriesSignals(HashMap<(Ticker, Pair), Vec<StandingSignal>>);

impl SeriesSignals {
    fn read(subject: &Subject, candidates: &[Candidate]) -> Result<Self> {
        let both = |candidate: &Candidate| {
            [&candidate.ticker, &candidate.successor].map(|ticker| (ticker.clone(), candidate.pair))
        };
        let wanted: HashSet<(Ticker, Pair)> = candidates.iter().flat_map(both).collect();
        let wanted_of = |histories: &Histories| {
            let observed = ObservedColumns::of(histories);
            let in_scope = histories.series.iter().filter(|history| subject.has(&history.key));
            let of = |history: &History| {
                let pair = (history.key.period?, history.key.regime?);
                let key = Some((history.key.ticker.clone(), pair)).filter(|key| wanted.contains(key))?;
                Some((key, cells(subject, history, &observed)?.1))
            };
            in_scope.filter_map(of).collect::<Vec<_>>()
        };
        let mut found = HashMap::new();
        in_order(
            || subject.view().observations(Table::Signals),
            |piece: StoredObservations| Ok(wanted_of(&piece.histories()?)),
            |series| {
                found.extend(series);
                Ok(())
            },
        )?;
        Ok(Self(found))
    }

    fn compare(&self, candidate: &Candidate) -> Option<Rename> {
        let Candidate { ticker, successor, pair } = candidate;
        let cells = |ticker: &Ticker| self.0.get(&(ticker.clone(), *pair));
        let (old, new) = (cells(ticker)?, cells(successor)?);
        let later: HashMap<i64, &StandingSignal> = new.iter().map(|cell| (cell.date, cell)).collect();
        let shared = old.iter().filter_map(|cell| Some(*later.get(&cell.date)? == cell));
        let (overlap, equal) =
            shared.fold((0_u64, 0_u64), |(all, equal), is_equal| (all + 1, equal + u64::from(is_equal)));
        let is_same = overlap >= FEWEST_SHARED && equal as f64 >= LEAST_EQUAL * overlap as f64;
        is_same.then_some(())?;
        Some(Rename {
            ticker: ticker.clone(),
            successor: successor.clone(),
            period: pair.0,
            regime: pair.1,
            ends: subject::day(old.last()?.date),
            begins: subject::day(new.first()?.date),
            overlap,
            equal,
            id: None,
        })
    }
}
