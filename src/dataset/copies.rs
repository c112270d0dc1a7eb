//! Tells articles apart that have the same date under a rule other than UTC.
//!
//! The archive's `copy` numbers the articles of a ticker that share a recorded date, a title and a link. Two recorded dates
//! may be the same on a clock: midnight in two offsets, or an hour that a clock repeats. The numbers of the later one then
//! continue those of the earlier one. Filters do not change the numbers.

use std::collections::{HashMap, VecDeque};

use arrow::array::{Array, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

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
    pub(super) fn of(&mut self, cells: &RecordBatch, dates: &[i64]) -> Result<Int32Array, ArrowError> {
        let column = |name: &str| cells.column_by_name(name).expect("known articles have the column");
        let texts = ["title", "link"].map(|name| column(name).clone());
        let fields = texts.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let texts = RowConverter::new(fields)?.convert_columns(&texts)?;
        let kept = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let copies = column("copy").as_primitive::<Int32Type>().values();
        let tickers = column("ticker").as_dictionary::<Int32Type>();
        let names = tickers.values().as_string::<i32>();
        let number = |row: usize| {
            let ticker = names.value(tickers.keys().value(row) as usize);
            if self.ticker != ticker {
                *self = Self { ticker: ticker.to_owned(), ..Self::default() };
            }
            self.number((dates[row], texts.row(row).as_ref().into()), kept[row], copies[row])
        };
        Ok((0..cells.num_rows()).map(number).collect())
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
