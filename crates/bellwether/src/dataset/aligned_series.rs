//! Tickers whose series all have the same dates, as is usual.
//!
//! Their rows need no sorting: by date, period and regime, the first row of each series comes first, then the second of
//! each, and so on. All rows of a date share their features.

use std::ops::Range;

use super::keys::Limit;
use super::slab_columns::SlabSignals;
use crate::plan::Column;

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

/// The layout of signals.
#[derive(Debug)]
pub(super) enum Arrangement {
    /// Aligned series, in order of their tickers.
    Aligned(Vec<AlignedSeries>),
    /// Anything else.
    Any,
}

impl Arrangement {
    /// The layout of signals, given the columns to sort by.
    pub(super) fn of(signals: &SlabSignals, sort: &[Column]) -> Self {
        align(signals, sort).map_or(Self::Any, Self::Aligned)
    }

    /// The cells to compute features for, and the limits of each if there are any: one per date for aligned series,
    /// otherwise one per row.
    pub(super) fn cells(&self, signals: &SlabSignals) -> (Vec<i64>, Vec<Limit>) {
        fn of(rows: impl Iterator<Item = usize> + Clone, signals: &SlabSignals) -> (Vec<i64>, Vec<Limit>) {
            let cells = rows.clone().map(|row| signals.cell(row)).collect();
            let limits =
                if signals.limits.is_empty() { Vec::new() } else { rows.map(|row| signals.limits[row]).collect() };
            (cells, limits)
        }
        match self {
            Self::Aligned(aligned) => of(dates(aligned).map(|(row, _)| row), signals),
            Self::Any => of(0..signals.dates.len(), signals),
        }
    }
}

/// The aligned series of all tickers, if all series are aligned and to be sorted that way.
fn align(signals: &SlabSignals, sort: &[Column]) -> Option<Vec<AlignedSeries>> {
    if !sort.starts_with(&ORDER) {
        return None;
    }
    let mut aligned = Vec::new();
    let (mut row, mut before) = (0, None);
    while let Some(&ticker) = signals.tickers.get(row) {
        // Two ranges of one ticker would be mixed.
        if before >= Some(ticker) {
            return None;
        }
        before = Some(ticker);
        let rows = signals.tickers[row..].iter().take_while(|&&other| other == ticker).count();
        aligned.push(of_ticker(signals, row..row + rows)?);
        row += rows;
    }
    Some(aligned)
}

/// The series of one ticker, if they are aligned.
fn of_ticker(signals: &SlabSignals, rows: Range<usize>) -> Option<AlignedSeries> {
    let key = |row: usize| (signals.periods[row], signals.regimes[row]);
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
            && are_all(&signals.periods[start..][..dates], period)
            && are_all(&signals.regimes[start..][..dates], regime)
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

fn are_all<T: Copy + PartialEq>(codes: &[T], code: T) -> bool {
    codes.iter().all(|&one| one == code)
}

/// Reorders a column of aligned series.
pub(super) fn reorder<T: Clone>(values: Vec<T>, aligned: &[AlignedSeries]) -> Vec<T> {
    if aligned.iter().all(|of_ticker| of_ticker.series.len() == 1) {
        return values;
    }
    let mut ordered = Vec::with_capacity(values.len());
    for AlignedSeries { series, dates } in aligned {
        let of_series: Vec<&[T]> = series.iter().map(|&start| &values[start..][..*dates]).collect();
        for date in 0..*dates {
            ordered.extend(of_series.iter().map(|values| values[date].clone()));
        }
    }
    ordered
}

/// One row of each date of each ticker, and the number of rows of that date.
pub(super) fn dates(aligned: &[AlignedSeries]) -> impl Iterator<Item = (usize, usize)> + Clone {
    let dates_of = |of_ticker: &AlignedSeries| {
        let (first, count) = (of_ticker.series[0], of_ticker.series.len());
        (first..first + of_ticker.dates).map(move |row| (row, count))
    };
    aligned.iter().flat_map(dates_of)
}

#[cfg(test)]
mod tests {
    use super::{AlignedSeries, ORDER, align, dates, reorder};
    use crate::dataset::keys::Limit;
    use crate::dataset::slab_columns::SlabSignals;
    use crate::plan::Column;

    fn signals(rows: &[(i32, i8, i8, i64)]) -> SlabSignals {
        SlabSignals {
            tickers: rows.iter().map(|row| row.0).collect(),
            dates: rows.iter().map(|row| row.3).collect(),
            periods: rows.iter().map(|row| row.1).collect(),
            regimes: rows.iter().map(|row| row.2).collect(),
            signals: vec![0; rows.len()],
            confidences: vec![0.0; rows.len()],
            limits: Vec::new(),
            lineage: Vec::new(),
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
        assert_eq!(reorder((0..rows.len() as u32).collect(), &aligned), expected);
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
}
