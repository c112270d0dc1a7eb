//! Tickers whose series all have the same dates, one series after another, as answers mostly have them.
//!
//! Their rows need no sorting: by date, period and regime the first row of each series comes first, then the second of
//! each, and so on. And the features of a date are those of so many rows as there are series.

use std::ops::Range;

use super::codes::Signals;
use crate::plan::Column;

/// The signals of one ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Their first row.
    start: usize,
    /// How many dates there are.
    dates: usize,
    /// How many series there are.
    series: usize,
}

/// The columns that the rows of blocks are ordered by; those that come after them decide nothing.
const ORDER: [Column; 4] = [Column::Ticker, Column::Date, Column::Period, Column::Regime];

/// How the rows of signals stand.
#[derive(Debug)]
pub(super) enum Arrangement {
    /// In blocks, and wanted in their order.
    Blocks(Vec<Block>),
    /// In some other way.
    Any,
}

impl Arrangement {
    /// That of signals which are wanted in an order.
    pub(super) fn of(signals: &Signals, sort: &[Column]) -> Self {
        blocks(signals, sort).map_or(Self::Any, Self::Blocks)
    }

    /// The cells whose features are asked for: of blocks one for each date, else that of each row.
    pub(super) fn cells(&self, signals: &Signals) -> Vec<i64> {
        match self {
            Self::Blocks(blocks) => dates(blocks).map(|(row, _)| signals.cell(row)).collect(),
            Self::Any => (0..signals.dates.len()).map(|row| signals.cell(row)).collect(),
        }
    }
}

/// The signals as blocks, where all are in blocks and wanted in their order.
fn blocks(signals: &Signals, sort: &[Column]) -> Option<Vec<Block>> {
    if !sort.starts_with(&ORDER) {
        return None;
    }
    let key = |row: usize| Some((*signals.tickers.get(row)?, signals.periods[row], signals.regimes[row]));
    let mut blocks: Vec<Block> = Vec::new();
    let (mut row, mut before) = (0, None);
    while let Some(first) = key(row) {
        // The series comes after those before it, and is its own: two of one key would be mixed.
        if before >= Some(first) {
            return None;
        }
        before = Some(first);
        let known = blocks.last().filter(|block| signals.tickers[block.start] == first.0).copied();
        let dates = match known {
            Some(block) => block.dates,
            None => 1 + (row + 1..).take_while(|&next| key(next) == Some(first)).count(),
        };
        let end = row + dates;
        if !(are_all(&signals.tickers, row..end, first.0)
            && are_all(&signals.periods, row..end, first.1)
            && are_all(&signals.regimes, row..end, first.2))
        {
            return None;
        }
        let own = &signals.dates[row..end];
        match known {
            Some(block) if signals.dates[block.start..][..dates] == *own => {
                blocks.last_mut().expect("it is the one that is known").series += 1;
            }
            None if own.is_sorted_by(|one, next| one < next) => blocks.push(Block { start: row, dates, series: 1 }),
            _ => return None,
        }
        row = end;
    }
    Some(blocks)
}

/// Whether there are so many rows, of one code.
fn are_all<T: Copy + PartialEq>(codes: &[T], rows: Range<usize>, code: T) -> bool {
    codes.get(rows).is_some_and(|codes| codes.iter().all(|&one| one == code))
}

/// What the rows have in a column, in order.
pub(super) fn ordered<T: Copy>(values: Vec<T>, blocks: &[Block]) -> Vec<T> {
    if blocks.iter().all(|block| block.series == 1) {
        return values;
    }
    let mut ordered = Vec::with_capacity(values.len());
    for &Block { start, dates, series } in blocks {
        let of_series: Vec<&[T]> = values[start..][..dates * series].chunks_exact(dates).collect();
        for date in 0..dates {
            ordered.extend(of_series.iter().map(|values| values[date]));
        }
    }
    ordered
}

/// For each date of each ticker one of its rows, and how many there are.
pub(super) fn dates(blocks: &[Block]) -> impl Iterator<Item = (usize, usize)> {
    blocks.iter().flat_map(|&Block { start, dates, series }| (start..start + dates).map(move |row| (row, series)))
}

#[cfg(test)]
mod tests {
    use super::{Block, ORDER, blocks, dates, ordered};
    use crate::dataset::codes::Signals;
    use crate::plan::Column;

    fn signals(rows: &[(i32, i8, i8, i64)]) -> Signals {
        Signals {
            tickers: rows.iter().map(|row| row.0).collect(),
            dates: rows.iter().map(|row| row.3).collect(),
            periods: rows.iter().map(|row| row.1).collect(),
            regimes: rows.iter().map(|row| row.2).collect(),
            signals: vec![0; rows.len()],
            confidences: vec![0.0; rows.len()],
            lineage: Vec::new(),
        }
    }

    #[test]
    fn rows_of_blocks_are_ordered_as_sorting_orders_them() {
        let mut rows = Vec::new();
        for (ticker, dates) in [(0, &[3, 5, 8][..]), (2, &[1]), (3, &[-4, -2, 0, 9])] {
            for (period, regime) in [(1, 0), (1, 2), (4, 0)] {
                rows.extend(dates.iter().map(|&date| (ticker, period, regime, date)));
            }
        }
        let blocks = blocks(&signals(&rows), &ORDER).unwrap();
        assert_eq!(blocks[1], Block { start: 9, dates: 1, series: 3 });
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|&row| {
            let (ticker, period, regime, date) = rows[row as usize];
            (ticker, date, period, regime)
        });
        assert_eq!(ordered((0..rows.len() as u32).collect(), &blocks), expected);
        let found: Vec<_> = dates(&blocks).map(|(row, count)| (rows[row].0, rows[row].3, count)).collect();
        assert_eq!(found.len(), 8);
        assert_eq!((found[0], found[3], found[7]), ((0, 3, 3), (2, 1, 3), (3, 9, 3)));
    }

    #[test]
    fn what_is_in_no_blocks_is_left_to_others() {
        let whole = [(0, 0, 0, 1), (0, 0, 0, 2), (0, 1, 0, 1), (0, 1, 0, 2)];
        assert!(blocks(&signals(&whole), &ORDER).is_some());
        assert!(blocks(&signals(&whole), &[Column::Date, Column::Ticker]).is_none());
        assert_eq!(blocks(&signals(&[]), &ORDER), Some(Vec::new()));
        // A date is missing at the end or within, the dates are others, they go backwards or stand still, series come
        // in another order or twice, or tickers do.
        for rows in [
            &whole[..3],
            &[whole[0], whole[1], whole[3]],
            &[whole[0], whole[2], whole[3]],
            &[whole[0], whole[1], (0, 1, 0, 1), (0, 1, 0, 3)],
            &[whole[1], whole[0]],
            &[whole[0], whole[0]],
            &[whole[2], whole[3], whole[0], whole[1]],
            &[whole[0], whole[1], whole[0], whole[1]],
            &[(1, 0, 0, 1), (0, 0, 0, 1)],
            &[(1, 0, 0, 1), (0, 0, 0, 1), (1, 1, 0, 1)],
        ] {
            assert_eq!(blocks(&signals(rows), &ORDER), None, "{rows:?}");
        }
    }
}
