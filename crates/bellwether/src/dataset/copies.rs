//! Tells articles apart that have the same date under a rule other than UTC.
//!
//! The archive's `copy` numbers the articles of a ticker that share a recorded date, a title and a link. Two recorded dates
//! may be the same on a clock: midnight in two offsets, or an hour that a clock repeats. The numbers of the later one then
//! continue those of the earlier one. Filters do not change the numbers.

use std::collections::{HashMap, VecDeque};

use arrow::array::{Array, AsArray, Int32Array, RecordBatch};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::tables::TypedRows;

/// The most that two recorded dates differ by if they are the same on a clock: offsets go up to a day.
const FARTHEST: i64 = 2 * 24 * 60 * 60 * 1_000_000;

/// A naive date, and the title and link as bytes.
type Article = (i64, Box<[u8]>);

/// The numbers of an article.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The latest of its recorded dates.
    kept: i64,
    /// The number of its first copy at that date.
    first: i32,
    /// The number of its next copy at another date.
    next: i32,
}

/// The articles of the last days of a ticker.
#[derive(Debug, Default)]
pub(super) struct Copies {
    ticker: String,
    numbers: HashMap<Article, Numbers>,
    /// The same articles by recorded date.
    recent: VecDeque<(i64, Article)>,
}

impl Copies {
    /// The numbers of known articles, which come in the order of their cells, with their naive dates.
    pub(super) fn number_all(&mut self, cells: &RecordBatch, dates: &[i64]) -> Result<Int32Array, ArrowError> {
        let cells = TypedRows(cells);
        let texts = ["title", "link"].map(|name| cells.column(name).clone());
        let fields = texts.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let texts = RowConverter::new(fields)?.convert_columns(&texts)?;
        let kept = cells.instants("date").values();
        let copies = cells.whole("copy").values();
        let tickers = cells.symbols("ticker");
        let names = tickers.values().as_string::<i32>();
        let number = |row: usize| {
            let ticker = names.value(tickers.keys().value(row) as usize);
            if self.ticker != ticker {
                *self = Self { ticker: ticker.to_owned(), ..Self::default() };
            }
            self.number((dates[row], texts.row(row).as_ref().into()), kept[row], copies[row])
        };
        Ok((0..kept.len()).map(number).collect())
    }

    fn number(&mut self, article: Article, kept: i64, copy: i32) -> i32 {
        while let Some((date, old)) = self.recent.pop_front_if(|(date, _)| kept - *date > FARTHEST) {
            if self.numbers.get(&old).is_some_and(|numbers| numbers.kept == date) {
                self.numbers.remove(&old);
            }
        }
        let known = self.numbers.get(&article).copied();
        let first = match known {
            Some(numbers) if numbers.kept == kept => numbers.first,
            Some(numbers) => numbers.next,
            None => 0,
        };
        if known.is_none_or(|numbers| numbers.kept != kept) {
            self.recent.push_back((kept, article.clone()));
        }
        let number = first + copy;
        self.numbers.insert(article, Numbers { kept, first, next: number + 1 });
        number
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};

    use super::Copies;
    use crate::tables::symbol_runs;

    const TWO_DAYS: i64 = 172_800_000_000;

    #[test]
    fn copies_at_a_later_recorded_date_continue_those_of_the_earlier_one() {
        // Recorded dates with the archive's copies, and the numbers of articles that have one date on a clock.
        for (seen, expected) in [
            (&[(0, 0), (0, 1), (0, 2)][..], &[0, 1, 2][..]),
            (&[(0, 0), (0, 1), (5, 0), (5, 1)], &[0, 1, 2, 3]),
            (&[(0, 0), (5, 0), (9, 0), (9, 1)], &[0, 1, 2, 3]),
            // The filter left some out.
            (&[(0, 1), (0, 3), (5, 0), (5, 2)], &[1, 3, 4, 6]),
            // No offset makes one date of two that are further apart.
            (&[(0, 0), (TWO_DAYS, 0), (TWO_DAYS + 1, 0)], &[0, 1, 2]),
            (&[(0, 0), (TWO_DAYS + 1, 0)], &[0, 0]),
        ] {
            let mut copies = Copies::default();
            let numbers: Vec<i32> =
                seen.iter().map(|&(kept, copy)| copies.number((7, b"title".as_slice().into()), kept, copy)).collect();
            assert_eq!(numbers, expected, "{seen:?}");
        }
    }

    #[test]
    fn only_articles_of_one_ticker_date_title_and_link_share_numbers() {
        let rows = [
            ("A", 0, "x", "l"),
            ("A", 1, "x", "l"),
            ("A", 1, "y", "l"),
            ("A", 1, "x", "m"),
            ("A", 2, "x", "l"),
            ("B", 0, "x", "l"),
            ("B", 1, "x", "l"),
        ];
        let columns: [(&str, ArrayRef); 5] = [
            ("ticker", symbol_runs(rows.iter().map(|row| (row.0, 1)))),
            ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(|row| row.1)))),
            ("title", Arc::new(StringArray::from_iter_values(rows.map(|row| row.2)))),
            ("link", Arc::new(StringArray::from_iter_values(rows.map(|row| row.3)))),
            ("copy", Arc::new(Int32Array::from(vec![0; rows.len()]))),
        ];
        let cells = RecordBatch::try_from_iter(columns).unwrap();
        let numbers = |dates: &[i64]| Copies::default().number_all(&cells, dates).unwrap().values().to_vec();
        assert_eq!(numbers(&[0; 7]), [0, 1, 0, 0, 2, 0, 1], "all have one date on the clock");
        assert_eq!(numbers(&[0, 0, 0, 0, 1, 0, 1]), [0, 1, 0, 0, 0, 0, 0], "the last of each has another");
    }

    #[test]
    fn articles_of_long_ago_take_no_memory() {
        let mut copies = Copies::default();
        for day in 0..1_000 {
            for kept in [day * TWO_DAYS / 2, day * TWO_DAYS / 2 + 1] {
                copies.number((day, b"title".as_slice().into()), kept, 0);
            }
        }
        assert!(copies.numbers.len() <= 3 && copies.recent.len() <= 6, "{}", copies.numbers.len());
    }
}
