//! The columns of a slab as numbers: tickers counted in their order, closed sets by the rank of their spelling, dates as
//! naive timestamps.
//!
//! Numbers sort as their spellings do, and are what the join is quick with.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType,
};

use super::naive;
use crate::interface::{Period, Regime, Signal};
use crate::plan::NaiveRule;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A day, counted from 1970.
pub(super) type Day = i32;

/// The day of a naive timestamp.
pub(super) fn day(micros: i64) -> Day {
    micros.div_euclid(MICROS_PER_DAY) as Day
}

/// The tickers seen so far. Slabs come in the order of their tickers, so codes sort as symbols do.
#[derive(Debug, Default)]
pub(super) struct Tickers {
    names: Vec<String>,
    codes: HashMap<String, i32>,
}

impl Tickers {
    /// The symbols, by code.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    fn code(&mut self, name: &str) -> i32 {
        if let Some(&code) = self.codes.get(name) {
            return code;
        }
        let code = self.names.len() as i32;
        self.names.push(name.to_owned());
        self.codes.insert(name.to_owned(), code);
        code
    }
}

/// A closed set whose spellings can be ranked.
pub(super) trait Ranked: Copy + 'static {
    fn spellings() -> Vec<&'static str>;
}

impl Ranked for Period {
    fn spellings() -> Vec<&'static str> {
        ranked(Self::all().map(Self::as_str))
    }
}

impl Ranked for Regime {
    fn spellings() -> Vec<&'static str> {
        ranked(Self::ALL.map(Self::as_str))
    }
}

impl Ranked for Signal {
    fn spellings() -> Vec<&'static str> {
        ranked(Self::ALL.map(Self::as_str))
    }
}

fn ranked(spellings: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let mut spellings: Vec<&str> = spellings.into_iter().collect();
    spellings.sort_unstable();
    spellings
}

/// The signals of a slab, a column each.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) tickers: Vec<i32>,
    pub(super) dates: Vec<i64>,
    pub(super) periods: Vec<i32>,
    pub(super) regimes: Vec<i32>,
    pub(super) signals: Vec<i32>,
    pub(super) confidences: Vec<f64>,
}

impl Signals {
    /// The signals of a slab, their dates naive by a rule.
    pub(super) fn of(batch: &RecordBatch, rule: NaiveRule, tickers: &mut Tickers) -> Self {
        let dates = column(batch, "date").as_primitive::<TimestampMicrosecondType>();
        let offsets = column(batch, "utc_offset_minutes").as_primitive::<Int16Type>();
        Self {
            tickers: decoded::<Int32Type>(column(batch, "ticker"), |name| tickers.code(name)),
            dates: naive::dates(dates, offsets, rule),
            periods: ranks::<Period>(column(batch, "period")),
            regimes: ranks::<Regime>(column(batch, "regime")),
            signals: ranks::<Signal>(column(batch, "signal")),
            confidences: column(batch, "confidence").as_primitive::<Float64Type>().values().to_vec(),
        }
    }

    /// The ticker and day of each row.
    pub(super) fn cells(&self) -> impl Iterator<Item = (i32, Day)> {
        self.tickers.iter().zip(&self.dates).map(|(&ticker, &date)| (ticker, day(date)))
    }

    /// Every ticker and day that has a signal, once, in order.
    pub(super) fn keys(&self) -> Vec<(i32, Day)> {
        let mut keys: Vec<(i32, Day)> = self.cells().collect();
        // A day's signals of one series stand alone, those of the other series far away: drop neighbours, sort the rest.
        keys.dedup();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// One article, as far as features need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Article {
    pub(super) ticker: i32,
    pub(super) date: i64,
    /// How many articles of its date were known before it.
    pub(super) place: i32,
    pub(super) score: Option<f64>,
}

/// The articles of a slab: by ticker, then from the first known to the last.
#[derive(Debug)]
pub(super) struct Articles(pub(super) Vec<Article>);

impl Articles {
    pub(super) fn of(batch: &RecordBatch, tickers: &mut Tickers) -> Self {
        let codes = decoded::<Int32Type>(column(batch, "ticker"), |name| tickers.code(name));
        let dates = column(batch, "date").as_primitive::<TimestampMicrosecondType>();
        let places = column(batch, "place").as_primitive::<Int32Type>();
        let scores = column(batch, "score").as_primitive::<Float64Type>();
        let of_row = |(row, ticker): (usize, i32)| Article {
            ticker,
            date: dates.value(row),
            place: places.value(row),
            score: scores.is_valid(row).then(|| scores.value(row)),
        };
        let mut articles: Vec<Article> = codes.into_iter().enumerate().map(of_row).collect();
        articles.sort_unstable_by_key(|article| (article.ticker, article.date, article.place));
        Self(articles)
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).expect("a slab has the columns that it declares")
}

fn ranks<T: Ranked>(column: &ArrayRef) -> Vec<i32> {
    let spellings = T::spellings();
    decoded::<Int8Type>(column, |name| {
        spellings.binary_search(&name).expect("the archive holds known spellings only") as i32
    })
}

/// Each row's code, found once for each entry of the dictionary.
fn decoded<K: ArrowDictionaryKeyType>(column: &ArrayRef, mut code: impl FnMut(&str) -> i32) -> Vec<i32> {
    let dictionary = column.as_dictionary::<K>();
    let names = dictionary.values().as_string::<i32>();
    let mut codes: Vec<Option<i32>> = vec![None; names.len()];
    let of_key = |key: &K::Native| {
        let place = key.as_usize();
        *codes[place].get_or_insert_with(|| code(names.value(place)))
    };
    dictionary.keys().values().iter().map(of_key).collect()
}
