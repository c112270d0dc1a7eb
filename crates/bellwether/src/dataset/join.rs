//! Puts the rows of a slab in order, each with the index of its features: aligned series by their positions, everything
//! else by sorting.
//!
//! Rows are sorted by columns that become integers, which compare like their values, packed into as few words as hold them. Most
//! orders fit into one word of few bits, which is radix-sorted together with the row numbers, without comparisons.
//!
//! Tickers whose series all have the same dates are usual. Their rows need no sorting: by date, period and regime, the first
//! row of each series comes first, then the second of each, and so on. All rows of a date share their features.

use std::ops::Range;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::Float64Type;
use arrow::error::ArrowError;

use super::keys::{CellKeys, Limit};
use super::signals::SlabSignals;
use crate::plan::{Column, DatasetPlan};
use crate::time::MICROS_PER_DAY;

/// Consecutive rows of one ticker and date.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) ticker: i32,
    pub(super) date: i64,
    /// The index of their features.
    pub(super) index: u32,
    /// Number of rows.
    pub(super) rows: usize,
}

/// A column with a value per row.
type OwnColumn = (Column, ArrayRef);

/// The rows of a slab in the order of the plan: groups with the same ticker, date and features, and the columns with a value
/// per row.
pub(super) fn join(
    signals: SlabSignals,
    aligned: Option<&[AlignedSeries]>,
    cells: &[i64],
    keyed: &CellKeys,
    plan: &DatasetPlan,
) -> Result<(Vec<Segment>, Vec<OwnColumn>), ArrowError> {
    let mut segments: Vec<Segment> = Vec::new();
    let order = match aligned {
        Some(aligned) => {
            segments.extend(dates(aligned).zip(&keyed.of_cells).map(|((row, rows), &index)| Segment {
                ticker: signals.tickers[row],
                date: signals.dates[row],
                index,
                rows,
            }));
            order_of_aligned(aligned)
        }
        None => {
            let order = order(&signals, cells, keyed, plan);
            for row in order.iter().map(|&row| row as usize) {
                let (ticker, date, index) = (signals.tickers[row], signals.dates[row], keyed.of_cells[row]);
                match segments.last_mut() {
                    Some(last) if (last.ticker, last.date, last.index) == (ticker, date, index) => last.rows += 1,
                    _ => segments.push(Segment { ticker, date, index, rows: 1 }),
                }
            }
            Some(order)
        }
    };
    let mut own = signals.own;
    if let Some(order) = order.map(UInt32Array::from) {
        for (_, values) in &mut own {
            *values = take(values, &order, None)?;
        }
    }
    Ok((segments, own))
}

/// The rows in the order of the plan, given the cell of each and the index of its features.
fn order(signals: &SlabSignals, cells: &[i64], keyed: &CellKeys, plan: &DatasetPlan) -> Vec<u32> {
    let mut order = RowOrder::new(signals.dates.len());
    let mut columns = plan.sort.iter().rev().peekable();
    while let Some(&column) = columns.next() {
        match column {
            Column::Ticker => order.before(signals.tickers.iter().map(|&code| code as u64)),
            Column::Date => {
                // Most dates are whole days.
                order.before(signals.dates.iter().map(|&date| date.rem_euclid(MICROS_PER_DAY) as u64));
                // Where each ticker and day has one key, the indices of the keys are the order of both, in few numbers.
                if keyed.are_of_days && columns.next_if_eq(&&Column::Ticker).is_some() {
                    order.before(keyed.of_cells.iter().map(|&index| u64::from(index)));
                } else {
                    order.before(cells.iter().map(|&cell| cell as u32 as u64));
                }
            }
            Column::Period | Column::Regime | Column::Signal => {
                order.before(signals.codes(column).iter().map(|&code| code as u64));
            }
            _ => {
                // Of the other columns, a dataset is sorted by its numbers alone.
                let values = signals.column(column).and_then(|values| values.as_primitive_opt::<Float64Type>());
                if let Some(values) = values {
                    order.before(values.values().iter().map(|&value| real(value)));
                }
            }
        }
    }
    order.rows()
}

/// The series of one ticker, which have the same dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AlignedSeries {
    /// First row of each series, by period and regime.
    series: Vec<usize>,
    /// Number of dates.
    dates: usize,
}

/// The columns that order aligned series; any further ones make no difference.
const ORDER: [Column; 4] = [Column::Ticker, Column::Date, Column::Period, Column::Regime];

/// The cells to compute features for, and the limits of each if there are any: one per date for aligned series, otherwise one per
/// row.
pub(super) fn cells(signals: &SlabSignals, aligned: Option<&[AlignedSeries]>) -> (Vec<i64>, Vec<Limit>) {
    let Some(aligned) = aligned else {
        return ((0..signals.dates.len()).map(|row| signals.cell(row)).collect(), signals.limits.clone());
    };
    let rows = dates(aligned).map(|(row, _)| row);
    let limits = rows.clone().filter_map(|row| signals.limits.get(row).copied()).collect();
    (rows.map(|row| signals.cell(row)).collect(), limits)
}

/// The aligned series of all tickers, if all series are aligned and to be sorted that way.
pub(super) fn align(signals: &SlabSignals, sort: &[Column]) -> Option<Vec<AlignedSeries>> {
    if !sort.starts_with(&ORDER) {
        return None;
    }
    let (periods, regimes) = (signals.codes(Column::Period), signals.codes(Column::Regime));
    let mut aligned = Vec::new();
    let (mut row, mut before) = (0, None);
    while let Some(&ticker) = signals.tickers.get(row) {
        // Two ranges of one ticker would be mixed.
        if before >= Some(ticker) {
            return None;
        }
        before = Some(ticker);
        let rows = signals.tickers[row..].iter().take_while(|&&other| other == ticker).count();
        aligned.push(align_ticker(signals, (periods, regimes), row..row + rows)?);
        row += rows;
    }
    Some(aligned)
}

/// The series of one ticker, if they are aligned.
fn align_ticker(
    signals: &SlabSignals,
    (periods, regimes): (&[i8], &[i8]),
    rows: Range<usize>,
) -> Option<AlignedSeries> {
    let key = |row: usize| (periods[row], regimes[row]);
    let first = key(rows.start);
    let dates = rows.clone().take_while(|&row| key(row) == first).count();
    let wanted = &signals.dates[rows.start..][..dates];
    if !rows.len().is_multiple_of(dates) || !wanted.is_sorted_by(|one, next| one < next) {
        return None;
    }
    let mut series: Vec<usize> = rows.clone().step_by(dates).collect();
    let is_alike = |&start: &usize| {
        let (period, regime) = key(start);
        signals.dates[start..][..dates] == *wanted
            // Signals of one date that know different news share no features.
            && limits(signals, start..start + dates) == limits(signals, rows.start..rows.start + dates)
            && periods[start..][..dates].iter().all(|&one| one == period)
            && regimes[start..][..dates].iter().all(|&one| one == regime)
    };
    // The archive sorts periods by length, not as text.
    series.sort_by_key(|&start| key(start));
    let are_apart = series.is_sorted_by(|&one, &next| key(one) < key(next));
    (are_apart && series.iter().all(is_alike)).then_some(AlignedSeries { series, dates })
}

/// The limits of some rows, if there are any.
fn limits(signals: &SlabSignals, rows: Range<usize>) -> &[Limit] {
    if signals.limits.is_empty() { &[] } else { &signals.limits[rows] }
}

/// The rows of aligned series in order; none if they are in order already.
fn order_of_aligned(aligned: &[AlignedSeries]) -> Option<Vec<u32>> {
    if aligned.iter().all(|of_ticker| of_ticker.series.len() == 1) {
        return None;
    }
    let mut order = Vec::with_capacity(aligned.iter().map(|of_ticker| of_ticker.series.len() * of_ticker.dates).sum());
    for AlignedSeries { series, dates } in aligned {
        for date in 0..*dates {
            order.extend(series.iter().map(|&start| (start + date) as u32));
        }
    }
    Some(order)
}

/// One row of each date of each ticker, and the number of rows of that date.
fn dates(aligned: &[AlignedSeries]) -> impl Iterator<Item = (usize, usize)> + Clone {
    let dates_of = |of_ticker: &AlignedSeries| {
        let (first, count) = (of_ticker.series[0], of_ticker.series.len());
        (first..first + of_ticker.dates).map(move |row| (row, count))
    };
    aligned.iter().flat_map(dates_of)
}

/// Bits per digit: small enough for the fastest caches, and two digits are enough for most orders.
const DIGIT: u32 = 11;

/// The columns to sort by, most significant first.
#[derive(Debug)]
pub(crate) struct RowOrder {
    rows: usize,
    /// Packed columns, least significant first.
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    bits: u32,
    values: Vec<u64>,
}

impl RowOrder {
    /// An order of some rows without any columns yet.
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows, words: Vec::new() }
    }

    /// Adds a column that is more significant than those added so far.
    pub(crate) fn before(&mut self, numbers: impl Iterator<Item = u64> + Clone) {
        let (least, most) =
            numbers.clone().fold((u64::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
        if least >= most {
            // It has the same value in every row.
            return;
        }
        let bits = u64::BITS - (most - least).leading_zeros();
        let numbers = numbers.map(|number| number - least);
        match self.words.last_mut() {
            Some(word) if word.bits + bits <= u64::BITS => {
                word.values.iter_mut().zip(numbers).for_each(|(value, number)| *value |= number << word.bits);
                word.bits += bits;
            }
            _ => self.words.push(Word { bits, values: numbers.collect() }),
        }
    }

    /// The rows in order. The sort is stable.
    pub(crate) fn rows(self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.rows as u32).collect();
        for Word { bits, values } in self.words {
            if bits <= u32::BITS {
                let mut keyed: Vec<u64> =
                    rows.iter().map(|&row| (values[row as usize] << u32::BITS) | u64::from(row)).collect();
                sort_by_digits(&mut keyed, bits);
                rows.iter_mut().zip(keyed).for_each(|(row, key)| *row = key as u32);
            } else {
                let mut keyed: Vec<(u64, u32)> = rows.iter().map(|&row| (values[row as usize], row)).collect();
                keyed.sort_by_key(|&(value, _)| value);
                rows.iter_mut().zip(keyed).for_each(|(row, (_, now))| *row = now);
            }
        }
        rows
    }
}

/// A stable sort by the lowest bits of the upper half of each number.
fn sort_by_digits(keyed: &mut Vec<u64>, bits: u32) {
    let mut sorted = vec![0; keyed.len()];
    for shift in (0..bits).step_by(DIGIT as usize).map(|shift| shift + u32::BITS) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
        let mut indices = vec![0_usize; 1 << DIGIT];
        keyed.iter().for_each(|&key| indices[digit(key)] += 1);
        let mut next = 0;
        for index in &mut indices {
            next += std::mem::replace(index, next);
        }
        for &key in &*keyed {
            let index = &mut indices[digit(key)];
            sorted[*index] = key;
            *index += 1;
        }
        std::mem::swap(keyed, &mut sorted);
    }
}

/// Maps a float to an unsigned number with the same order; both zeros are equal.
fn real(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int8Array;

    use super::{AlignedSeries, ORDER, RowOrder, align, dates, order_of_aligned, real};
    use crate::dataset::keys::Limit;
    use crate::dataset::signals::SlabSignals;
    use crate::plan::Column;
    use crate::tables::choices;

    fn signals(rows: &[(i32, i8, i8, i64)]) -> SlabSignals {
        let names = ["a", "b", "c", "d", "e"];
        let codes =
            |code: fn(&(i32, i8, i8, i64)) -> i8| choices(Int8Array::from_iter_values(rows.iter().map(code)), names);
        SlabSignals {
            tickers: rows.iter().map(|row| row.0).collect(),
            dates: rows.iter().map(|row| row.3).collect(),
            limits: Vec::new(),
            own: vec![(Column::Period, codes(|row| row.1)), (Column::Regime, codes(|row| row.2))],
        }
    }

    #[test]
    fn ordering_aligned_series_gives_the_same_order_as_sorting() {
        let mut rows = Vec::new();
        for (ticker, dates) in [(0, &[3, 5, 8][..]), (2, &[1]), (3, &[-4, -2, 0, 9])] {
            for (period, regime) in [(4, 0), (1, 2), (1, 0)] {
                rows.extend(dates.iter().map(|&date| (ticker, period, regime, date)));
            }
        }
        let aligned = align(&signals(&rows), &ORDER).unwrap();
        assert_eq!(aligned[1], AlignedSeries { series: vec![11, 10, 9], dates: 1 });
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|&row| {
            let (ticker, period, regime, date) = rows[row as usize];
            (ticker, date, period, regime)
        });
        assert_eq!(order_of_aligned(&aligned), Some(expected));
        let found: Vec<_> = dates(&aligned).map(|(row, count)| (rows[row].0, rows[row].3, count)).collect();
        assert_eq!(found.len(), 8);
        assert_eq!((found[0], found[3], found[7]), ((0, 3, 3), (2, 1, 3), (3, 9, 3)));
    }

    #[test]
    fn unaligned_series_are_left_to_the_general_sort() {
        let whole = [(0, 0, 0, 1), (0, 0, 0, 2), (0, 1, 0, 1), (0, 1, 0, 2)];
        assert!(align(&signals(&whole), &ORDER).is_some());
        assert!(align(&signals(&whole), &[Column::Date, Column::Ticker]).is_none());
        assert_eq!(align(&signals(&[]), &ORDER), Some(Vec::new()));
        // A date is missing at the end or within, the dates are others, they go backwards or stand still, a series comes
        // twice or in two parts, or tickers come in another order or twice.
        for rows in [
            &whole[..3],
            &[whole[0], whole[1], whole[3]],
            &[whole[0], whole[2], whole[3]],
            &[whole[0], whole[1], (0, 1, 0, 1), (0, 1, 0, 3)],
            &[whole[1], whole[0]],
            &[whole[0], whole[0]],
            &[whole[0], whole[1], whole[0], whole[1]],
            &[whole[0], whole[2], whole[3], whole[1]],
            &[(1, 0, 0, 1), (0, 0, 0, 1)],
            &[(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1)],
        ] {
            assert_eq!(align(&signals(rows), &ORDER), None, "{rows:?}");
        }
    }

    #[test]
    fn series_whose_signals_of_one_date_know_different_news_are_not_aligned() {
        let mut signals =
            signals(&[(0, 0, 0, 1), (0, 0, 0, 2), (0, 1, 0, 1), (0, 1, 0, 2), (0, 2, 0, 1), (0, 2, 0, 2)]);
        let limit = |seen_by: i64| Limit { seen_by, ..Limit::NONE };
        signals.limits = [7, 8, 7, 8, 7, 8].map(limit).into();
        assert!(align(&signals, &ORDER).is_some(), "each date has one limit");
        for other in 2..6 {
            signals.limits = [7, 8, 7, 8, 7, 8].map(limit).into();
            signals.limits[other] = limit(9);
            assert!(align(&signals, &ORDER).is_none(), "{other}");
        }
    }

    #[test]
    fn rows_are_ordered_by_the_first_column_that_differs() {
        let tickers = [1_u64, 0, 1, 0, 1, 0];
        let dates = [5_i64, -7, i64::MIN, i64::MAX, 5, -7];
        let scores = [0.5, -0.0, 1e300, 2.0, -0.25, 0.0];
        let mut order = RowOrder::new(6);
        order.before(scores.iter().map(|&score| real(score)));
        order.before(dates.iter().map(|&date| date as u64 ^ (1 << 63)));
        order.before(tickers.iter().copied());
        assert_eq!(order.rows(), [1, 5, 3, 2, 4, 0]);
    }

    #[test]
    fn keys_of_several_words_keep_the_order() {
        let mut state = 9_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let rows: Vec<[u64; 5]> = (0..2000)
            .map(|_| [random(3), random(4) << 60, random(2), random(5).wrapping_mul(1 << 62 | 1), random(4)])
            .collect();
        let mut order = RowOrder::new(rows.len());
        for column in (0..5).rev() {
            order.before(rows.iter().map(move |row| row[column]));
        }
        let mut expected: Vec<u32> = (0..2000).collect();
        expected.sort_by_key(|&row| rows[row as usize]);
        assert_eq!(order.rows(), expected);
    }

    #[test]
    fn zero_rows_are_ordered() {
        let mut order = RowOrder::new(0);
        order.before([].into_iter());
        assert!(order.rows().is_empty());
    }
}
