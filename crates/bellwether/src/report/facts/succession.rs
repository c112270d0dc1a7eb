//! How the signals of a series follow one another.
//!
//! Counted row by row, with eight bytes per series. Dates must ascend within a series; series may come in any order.

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
#[derive(Debug)]
pub(super) struct Succession {
    /// By ticker and pair.
    series: Vec<Vec<LastSignal>>,
    /// For each signal and the index of its confidence, how many sells and buys follow it.
    next: Box<[[u64; 2]; Last::COUNT]>,
}

/// The signals of one series so far.
#[derive(Clone, Copy, Debug, Default)]
struct LastSignal {
    last: Last,
    flipped: u32,
}

/// The last signal of a series: nothing, or the index of its confidence and whether it is a buy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last(u16);

impl Last {
    /// Number of different ones.
    const COUNT: usize = 2 + Place::COUNT * 2;

    fn of(place: Place, is_buy: bool) -> Self {
        Self(2 + place.number() * 2 + u16::from(is_buy))
    }

    fn all() -> impl Iterator<Item = (Place, bool)> {
        (0..Place::COUNT as u16).flat_map(|number| [false, true].map(|is_buy| (Place::of(number), is_buy)))
    }

    fn flips_to(self, is_buy: bool) -> bool {
        self != Self::default() && (self.0 % 2 == 1) != is_buy
    }
}

/// The signals of one ticker so far.
pub(super) struct TickerSuccession<'a> {
    series: &'a mut [LastSignal],
    next: &'a mut [[u64; 2]; Last::COUNT],
}

impl TickerSuccession<'_> {
    /// Counts a signal of a pair.
    #[inline]
    pub(super) fn count(&mut self, pair: u8, place: Place, is_buy: bool) {
        let LastSignal { last, flipped } = &mut self.series[usize::from(pair)];
        self.next[usize::from(last.0)][usize::from(is_buy)] += 1;
        *flipped += u32::from(last.flips_to(is_buy));
        *last = Last::of(place, is_buy);
    }
}

impl Default for Succession {
    fn default() -> Self {
        Self { series: Vec::new(), next: Box::new([[0; 2]; Last::COUNT]) }
    }
}

impl Succession {
    /// A ticker, for signals of the first `pairs` pairs.
    pub(super) fn ticker(&mut self, ticker: usize, pairs: u8) -> TickerSuccession<'_> {
        let pairs = usize::from(pairs);
        if ticker >= self.series.len() {
            self.series.resize(ticker + 1, Vec::new());
        }
        let series = &mut self.series[ticker];
        if pairs > series.len() {
            series.resize(pairs, LastSignal::default());
        }
        TickerSuccession { series, next: &mut self.next }
    }

    /// The flips of a ticker, given the number of its signals.
    pub(super) fn of_ticker(&self, ticker: usize, signals: u64) -> Flips {
        flips(self.series.get(ticker).into_iter().flatten(), signals)
    }

    /// The flips of a pair, given the number of its signals.
    pub(super) fn of_pair(&self, pair: usize, signals: u64) -> Flips {
        flips(self.series.iter().filter_map(|of_ticker| of_ticker.get(pair)), signals)
    }

    pub(super) fn into_persistence(self) -> Persistence {
        let mut persistence = Persistence::default();
        for (place, is_buy) in Last::all() {
            let next = self.next[usize::from(Last::of(place, is_buy).0)];
            persistence.followed.count_many_at(place, next[0] + next[1]);
            persistence.same.count_many_at(place, next[usize::from(is_buy)]);
        }
        persistence
    }
}

/// The flips of some series, given the number of their signals: the last one of each has no successor.
fn flips<'a>(series: impl Iterator<Item = &'a LastSignal>, signals: u64) -> Flips {
    let begun = series.filter(|series| series.last != Last::default());
    let (count, flipped) = begun.fold((0, 0), |(count, sum), series| (count + 1, sum + u64::from(series.flipped)));
    Flips { followed: signals - count, flipped }
}
