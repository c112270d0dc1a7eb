//! Keys of feature rows: a ticker and a day, and if days alone do not decide, the limits of what is known. Tickers are numbered.

use std::collections::HashMap;

use super::naive::{Day, Moment};
use crate::interface::Ticker;

/// Up to when a signal uses what became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Limit {
    /// When it was made: news that became known later is not used; [`Moment::END`] if the day alone decides.
    pub(super) made: Moment,
    /// The instant by which something must have been seen: when the run was sealed that first saw the signal;
    /// [`i64::MAX`] if it makes no difference.
    pub(super) seen_by: i64,
}

impl Limit {
    /// No limit.
    pub(super) const NONE: Self = Self { made: Moment::END, seen_by: i64::MAX };
}

/// What the features of some signals depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NewsKey {
    pub(super) ticker: i32,
    pub(super) day: Day,
    pub(super) limit: Limit,
}

/// The keys of some cells, each a ticker and a day.
#[derive(Debug)]
pub(super) struct CellKeys {
    /// Distinct keys, sorted.
    pub(super) keys: Vec<NewsKey>,
    /// The index of each cell's key.
    pub(super) of_cells: Vec<u32>,
    /// Whether each ticker and day has a single key.
    pub(super) are_of_days: bool,
}

impl CellKeys {
    /// The keys of cells for which days alone decide.
    pub(super) fn of_days(cells: &[i64]) -> Self {
        if cells.is_sorted_by(|one, next| one < next) {
            let keys = cells.iter().map(|&cell| key(cell, Limit::NONE)).collect();
            return Self { keys, of_cells: (0..cells.len() as u32).collect(), are_of_days: true };
        }
        let mut distinct = cells.to_vec();
        // A stable sort merges the runs that series are.
        distinct.sort();
        distinct.dedup();
        let of_cells = places(cells, &distinct);
        let keys = distinct.into_iter().map(|cell| key(cell, Limit::NONE)).collect();
        Self { keys, of_cells, are_of_days: true }
    }

    /// The keys of cells with limits.
    pub(super) fn with_limits(cells: &[i64], limits: &[Limit]) -> Self {
        let of_cells: Vec<NewsKey> = cells.iter().zip(limits).map(|(&cell, &limit)| key(cell, limit)).collect();
        let mut keys = of_cells.clone();
        keys.sort_unstable();
        keys.dedup();
        let index_of = |key: &NewsKey| keys.partition_point(|other| other < key) as u32;
        let of_cells = of_cells.iter().map(index_of).collect();
        Self { keys, of_cells, are_of_days: false }
    }
}

/// Ticker and day packed into one sortable number.
pub(super) fn cell((ticker, day): (i32, Day)) -> i64 {
    (i64::from(ticker) << 32) | i64::from((day ^ i32::MIN) as u32)
}

/// The tickers seen so far. Slabs come in ticker order, so codes sort like tickers.
#[derive(Debug, Default)]
pub(super) struct TickerCodes {
    /// The tickers, by code.
    pub(super) names: Vec<String>,
    parsed: Vec<Option<Ticker>>,
    codes: HashMap<String, i32>,
}

impl TickerCodes {
    /// The ticker of a code, if its name is one.
    pub(super) fn ticker(&self, code: i32) -> Option<&Ticker> {
        self.parsed[code as usize].as_ref()
    }

    pub(super) fn code(&mut self, name: &str) -> i32 {
        if let Some(&code) = self.codes.get(name) {
            return code;
        }
        let code = self.names.len() as i32;
        self.names.push(name.to_owned());
        self.parsed.push(name.parse().ok());
        self.codes.insert(name.to_owned(), code);
        code
    }
}

fn key(cell: i64, limit: Limit) -> NewsKey {
    NewsKey { ticker: (cell >> 32) as i32, day: cell as u32 as i32 ^ i32::MIN, limit }
}

/// The index of each cell among the distinct ones.
fn places(cells: &[i64], distinct: &[i64]) -> Vec<u32> {
    let mut index = 0;
    let of_cell = |&wanted: &i64| {
        // A series and the distinct cells are both in date order, so only the start of each series is searched for.
        if distinct.get(index).is_none_or(|&cell| cell > wanted) {
            index = distinct.partition_point(|&cell| cell < wanted);
        }
        while distinct.get(index).is_some_and(|&cell| cell < wanted) {
            index += 1;
        }
        index as u32
    };
    cells.iter().map(of_cell).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CellKeys, Limit, cell};
    use crate::dataset::naive::{Day, Moment};

    /// The cells of some series, each in date order: a day may come twice, be left out, or lie before 1970.
    fn cells(random: &mut impl FnMut(u64) -> u64) -> Vec<(i32, Day)> {
        let mut cells = Vec::new();
        for _ in 0..random(6) {
            let (ticker, mut day) = (random(4) as i32, random(40) as Day - 20);
            for _ in 0..random(30) {
                cells.push((ticker, day));
                day += random(4) as Day;
            }
        }
        cells
    }

    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 5_u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn each_cell_has_its_ticker_and_day_among_the_sorted_keys() {
        let mut random = random();
        for round in 0..2_000 {
            let mut cells = cells(&mut random);
            if random(3) == 0 {
                cells.sort();
            }
            let packed: Vec<i64> = cells.iter().copied().map(cell).collect();
            let CellKeys { keys, of_cells, are_of_days } = CellKeys::of_days(&packed);
            let found: Vec<_> = keys.iter().map(|key| (key.ticker, key.day)).collect();
            let distinct: BTreeSet<_> = cells.iter().copied().collect();
            assert_eq!(found, distinct.into_iter().collect::<Vec<_>>(), "round {round}: {cells:?}");
            assert!(are_of_days && keys.iter().all(|key| key.limit == Limit::NONE));
            let of_cells: Vec<_> = of_cells.iter().map(|&index| found[index as usize]).collect();
            assert_eq!(of_cells, cells, "round {round}");
        }
    }

    #[test]
    fn cells_with_other_limits_have_other_keys() {
        let mut random = random();
        let early = Limit { seen_by: 7, ..Limit::NONE };
        let late = Limit { seen_by: 8, ..Limit::NONE };
        assert!(early < late && late < Limit { made: Moment::END, seen_by: i64::MAX });
        for round in 0..500 {
            let cells = cells(&mut random);
            let limits: Vec<Limit> = cells.iter().map(|_| [early, late, Limit::NONE][random(3) as usize]).collect();
            let packed: Vec<i64> = cells.iter().copied().map(cell).collect();
            let CellKeys { keys, of_cells, are_of_days } = CellKeys::with_limits(&packed, &limits);
            let found: Vec<_> = keys.iter().map(|key| ((key.ticker, key.day), key.limit)).collect();
            let expected: Vec<_> = cells.into_iter().zip(limits).collect();
            let distinct: BTreeSet<_> = expected.iter().copied().collect();
            assert_eq!(found, distinct.into_iter().collect::<Vec<_>>(), "round {round}");
            assert!(!are_of_days);
            let of_cells: Vec<_> = of_cells.iter().map(|&index| found[index as usize]).collect();
            assert_eq!(of_cells, expected, "round {round}");
        }
    }
}
