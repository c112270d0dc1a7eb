//! How often pairs of period and regime have the same signal for a ticker and a date.
//!
//! Signals of one ticker and date are counted as one pattern: which pairs have a signal, and which of those are buys.
//! Rows of a ticker and date must be contiguous.

use bellwether_statistics::PairedAnswers;
use serde::{Deserialize, Serialize};

/// The most pairs that are compared, a bit for each.
pub(super) const MOST_PAIRS: u8 = 12;

/// Sets of pairs that fit into their bits.
const SETS: usize = 1 << MOST_PAIRS;

/// The most sets that are counted, each with its own counters; few usually occur.
const MOST_SETS: usize = 256;

/// How often two pairs agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Their indices in [`Facts::pairs`](super::Facts::pairs), in order.
    pub pairs: [usize; 2],
    /// Tickers and dates for which both have a signal.
    pub both: u64,
    /// Those where both signals are the same.
    pub same: u64,
    /// Those where each signal is a buy; none in the facts of earlier programs.
    #[serde(default)]
    pub buys: Option<[u64; 2]>,
}

impl Agreement {
    /// How often they agree, and would by chance; `None` if that was not counted.
    pub(in crate::report) fn answers(&self) -> Option<PairedAnswers> {
        Some(PairedAnswers { both: self.both, same: self.same, yes: self.buys? })
    }

    /// The share that agrees; `None` without signals of both.
    pub fn rate(&self) -> Option<f64> {
        (self.both > 0).then(|| self.same as f64 / self.both as f64)
    }

    /// The share that chance gives; `None` if that was not counted.
    pub fn by_chance(&self) -> Option<f64> {
        self.answers()?.by_chance()
    }

    /// Agreement beyond chance; `None` if that was not counted, or if chance explains everything.
    pub fn kappa(&self) -> Option<f64> {
        self.answers()?.kappa()
    }
}

/// The patterns so far.
#[derive(Debug)]
pub(super) struct Patterns {
    /// By the set of pairs that have a signal: a counter for each set of buys, and none before the first. `None` once
    /// there were too many sets.
    counts: Option<Vec<Vec<u64>>>,
    /// Sets that have counters.
    sets: usize,
    /// The ticker and date of the current rows.
    at: (usize, i64),
    current: Pattern,
}

/// The pairs that have a signal, and those with a buy; a bit for each.
#[derive(Clone, Copy, Debug, Default)]
struct Pattern {
    present: u16,
    buys: u16,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { counts: Some(vec![Vec::new(); SETS]), sets: 0, at: (usize::MAX, 0), current: Pattern::default() }
    }
}

impl Patterns {
    /// Begins or continues the rows of a ticker and a date.
    pub(super) fn begin(&mut self, ticker: usize, date: i64) {
        if self.at != (ticker, date) {
            self.flush();
            self.at = (ticker, date);
        }
    }

    /// Counts a signal of the ticker and the date.
    #[inline]
    pub(super) fn count(&mut self, pair: u8, is_buy: bool) {
        if pair < MOST_PAIRS {
            self.current.present |= 1 << pair;
            self.current.buys |= u16::from(is_buy) << pair;
        } else {
            self.counts = None;
        }
    }

    fn flush(&mut self) {
        let Pattern { present, buys } = std::mem::take(&mut self.current);
        let Some(counts) = self.counts.as_mut().filter(|_| present.count_ones() > 1) else { return };
        let of_set = &mut counts[usize::from(present)];
        if of_set.is_empty() {
            of_set.resize(SETS, 0);
            self.sets += 1;
        }
        of_set[usize::from(buys)] += 1;
        if self.sets > MOST_SETS {
            self.counts = None;
        }
    }

    /// How often any two of the given pairs agree; `None` if there are too many pairs.
    pub(super) fn finish(mut self, numbers: &[u8]) -> Option<Vec<Agreement>> {
        self.flush();
        let counts = self.counts?;
        let mut agreements = Vec::new();
        for (index, one) in numbers.iter().enumerate() {
            for (other_place, other) in numbers.iter().enumerate().skip(index + 1) {
                let has = |bits: usize, pair: &u8| bits >> pair & 1;
                let both = counts.iter().enumerate().filter(|(set, _)| has(*set, one) & has(*set, other) == 1);
                let (mut all, mut same, mut of_each) = (0, 0, [0, 0]);
                for (buys, count) in both.flat_map(|(_, of_set)| of_set.iter().enumerate()) {
                    let [one, other] = [one, other].map(|pair| has(buys, pair) as u64);
                    all += count;
                    same += count * u64::from(one == other);
                    of_each = [of_each[0] + count * one, of_each[1] + count * other];
                }
                agreements.push(Agreement { pairs: [index, other_place], both: all, same, buys: Some(of_each) });
            }
        }
        Some(agreements)
    }
}
