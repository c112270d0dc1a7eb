//! How often pairs of period and regime have the same signal for a ticker and a date.
//!
//! Signals of one ticker and date are counted as one pattern: which pairs have a signal, and which of those are buys.
//! Rows of a ticker and date must be contiguous.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The most pairs that are compared, a bit for each.
pub(super) const MOST_PAIRS: u8 = 12;

/// The most patterns; few sets of pairs occur, each with 4,096 patterns at most.
const MOST_PATTERNS: usize = 1 << 16;

/// How often two pairs agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Their places in [`Facts::pairs`](super::Facts::pairs), in order.
    pub pairs: [usize; 2],
    /// Tickers and dates for which both have a signal.
    pub both: u64,
    /// Those where both signals are the same.
    pub same: u64,
}

/// The patterns so far.
#[derive(Debug)]
pub(super) struct Patterns {
    /// `None` once there were too many.
    counts: Option<HashMap<Pattern, u64>>,
    /// The ticker and date of the current rows.
    at: (usize, i64),
    current: Pattern,
}

/// The pairs that have a signal, and those with a buy; a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Pattern {
    present: u16,
    buys: u16,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { counts: Some(HashMap::new()), at: (usize::MAX, 0), current: Pattern::default() }
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
        let current = std::mem::take(&mut self.current);
        let Some(counts) = self.counts.as_mut().filter(|_| current.present.count_ones() > 1) else { return };
        *counts.entry(current).or_default() += 1;
        if counts.len() > MOST_PATTERNS {
            self.counts = None;
        }
    }

    /// How often any two of the given pairs agree; `None` if there are too many pairs.
    pub(super) fn finish(mut self, numbers: &[u8]) -> Option<Vec<Agreement>> {
        self.flush();
        let counts = self.counts?;
        let mut agreements = Vec::new();
        for (place, one) in numbers.iter().enumerate() {
            for (other_place, other) in numbers.iter().enumerate().skip(place + 1) {
                let has = |bits: u16, pair: &u8| bits >> pair & 1;
                let both = counts.iter().filter(|(it, _)| has(it.present, one) & has(it.present, other) == 1);
                let (mut all, mut same) = (0, 0);
                for (pattern, count) in both {
                    all += count;
                    same += count * u64::from(has(pattern.buys, one) == has(pattern.buys, other));
                }
                agreements.push(Agreement { pairs: [place, other_place], both: all, same });
            }
        }
        Some(agreements)
    }
}
