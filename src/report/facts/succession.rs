//! How the signals of a series follow one another.
//!
//! Counted row by row, with two bytes per series. Dates must ascend within a series; series may come in any order.

use serde::{Deserialize, Serialize};

use super::histogram::{Histogram, Place};

/// How often a signal is followed by its opposite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u64, u64)", from = "(u64, u64)")]
pub struct Flips {
    /// Signals with a successor in their series.
    pub followed: u64,
    /// Those whose successor is the opposite signal.
    pub flipped: u64,
}

impl From<Flips> for (u64, u64) {
    fn from(flips: Flips) -> Self {
        (flips.followed, flips.flipped)
    }
}

impl From<(u64, u64)> for Flips {
    fn from((followed, flipped): (u64, u64)) -> Self {
        Self { followed, flipped }
    }
}

impl std::iter::Sum for Flips {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            followed: sum.followed + one.followed,
            flipped: sum.flipped + one.flipped,
        })
    }
}

impl Flips {
    fn count(&mut self, is_flip: bool) {
        self.followed += 1;
        self.flipped += u64::from(is_flip);
    }

    /// Share of signals followed by their opposite; `None` if none has a successor.
    pub fn share(self) -> Option<f64> {
        (self.followed > 0).then(|| self.flipped as f64 / self.followed as f64)
    }
}

/// Signals by confidence, and whether the next one of their series is the same.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Persistence {
    /// Confidences of signals with a successor in their series.
    pub followed: Histogram,
    /// Confidences of signals whose successor is the same signal.
    pub same: Histogram,
}

/// The signals of series so far.
#[derive(Debug, Default)]
pub(super) struct Succession {
    /// By ticker and pair, the last signal.
    last: Vec<Vec<Last>>,
    of_tickers: Vec<Flips>,
    of_pairs: Vec<Flips>,
    persistence: Persistence,
}

/// The last signal of a series, in two bytes: nothing, or the place of its confidence and whether it is a buy.
#[derive(Clone, Copy, Debug, Default)]
struct Last(u16);

impl Last {
    fn of(place: Place, is_buy: bool) -> Self {
        Self(1 + place.number() * 2 + u16::from(is_buy))
    }

    fn get(self) -> Option<(Place, bool)> {
        let code = self.0.checked_sub(1)?;
        Some((Place::of(code / 2), code % 2 == 1))
    }
}

impl Succession {
    /// Counts a signal of a ticker and a pair.
    #[inline]
    pub(super) fn count(&mut self, (ticker, pair): (usize, u8), place: Place, is_buy: bool) {
        let pair = usize::from(pair);
        if ticker >= self.last.len() {
            self.last.resize(ticker + 1, Vec::new());
            self.of_tickers.resize(ticker + 1, Flips::default());
        }
        if pair >= self.of_pairs.len() {
            self.of_pairs.resize(pair + 1, Flips::default());
        }
        let of_ticker = &mut self.last[ticker];
        if pair >= of_ticker.len() {
            of_ticker.resize(pair + 1, Last::default());
        }
        let last = std::mem::replace(&mut of_ticker[pair], Last::of(place, is_buy));
        if let Some((before, was_buy)) = last.get() {
            let is_flip = was_buy != is_buy;
            self.of_pairs[pair].count(is_flip);
            self.of_tickers[ticker].count(is_flip);
            self.persistence.followed.count_at(before);
            if !is_flip {
                self.persistence.same.count_at(before);
            }
        }
    }

    /// The flips of a ticker.
    pub(super) fn of_ticker(&self, ticker: usize) -> Flips {
        self.of_tickers.get(ticker).copied().unwrap_or_default()
    }

    /// The flips of a pair.
    pub(super) fn of_pair(&self, pair: usize) -> Flips {
        self.of_pairs.get(pair).copied().unwrap_or_default()
    }

    pub(super) fn into_persistence(self) -> Persistence {
        self.persistence
    }
}
