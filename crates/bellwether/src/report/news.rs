//! The articles about a dataset's tickers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate};

use super::histogram::Histogram;
use crate::facts::is_drawn;
use crate::plan::Duplicates;

/// How many of the lowest and highest scores are shown with their headlines, and how many of the last of a ticker.
const HEADLINES: usize = 4;
const LATEST: usize = 3;

/// Articles about a dataset's tickers, dated from its first day to its last, with their latest known scores. Exact
/// duplicates count as the dataset counts them.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Number of articles.
    pub articles: u64,
    /// Articles without a score.
    pub unscored: u64,
    /// The last articles about each of the dataset's tickers; none of a ticker without any.
    pub tickers: HashMap<String, Vec<Headline>>,
    /// Articles per day from 1900 to 2099, for days that have any.
    pub days: BTreeMap<NaiveDate, u64>,
    /// Their scores.
    pub scores: Histogram,
    /// Lowest scores, lowest first.
    pub lowest: Vec<Headline>,
    /// Highest scores, highest first.
    pub highest: Vec<Headline>,
}

/// An article.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// Its score, if it has one.
    pub score: Option<f64>,
    /// The ticker it is about.
    pub ticker: String,
    /// Its date.
    pub date: NaiveDate,
    /// Its title, as the vendor wrote it.
    pub title: String,
    /// Its link, as the vendor wrote it.
    pub link: String,
}

impl News {
    /// The same, with tickers that have no articles yet.
    pub(crate) fn new<'a>(tickers: impl Iterator<Item = &'a String>) -> Self {
        Self { tickers: tickers.map(|ticker| (ticker.clone(), Vec::new())).collect(), ..Self::default() }
    }

    /// Counts some articles, which come ticker by ticker, by date, and have naive dates.
    pub(crate) fn take(&mut self, articles: &RecordBatch, days: &RangeInclusive<NaiveDate>, duplicates: Duplicates) {
        let column = |name: &str| articles.column_by_name(name).expect("articles have the columns of their table");
        let symbols = column("ticker").as_dictionary::<Int32Type>();
        let names = symbols.values().as_string::<i32>();
        let dates = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let scores = column("score").as_primitive::<Float64Type>();
        let (titles, links) = (column("title").as_string::<i32>(), column("link").as_string::<i32>());
        let repeats = column("repeats").as_primitive::<Int32Type>().values();
        for row in (0..articles.num_rows()).filter(|row| duplicates == Duplicates::Keep || repeats[*row] == 0) {
            let name = names.value(symbols.keys().value(row) as usize);
            let date = DateTime::from_timestamp_micros(dates[row]).map(|date| date.date_naive());
            let Some(date) = date.filter(|date| days.contains(date)) else { continue };
            let Some(latest) = self.tickers.get_mut(name) else { continue };
            self.articles += 1;
            if is_drawn(date.to_epoch_days().into()) {
                *self.days.entry(date).or_default() += 1;
            }
            let score = scores.is_valid(row).then(|| scores.value(row));
            let (title, link) = (titles.value(row).to_owned(), links.value(row).to_owned());
            let headline = Headline { score, ticker: name.to_owned(), date, title, link };
            if latest.len() == LATEST {
                latest.remove(0);
            }
            match score {
                Some(score) => {
                    self.scores.add(score);
                    insert_extreme(&mut self.lowest, &headline, Ordering::Less);
                    insert_extreme(&mut self.highest, &headline, Ordering::Greater);
                }
                None => self.unscored += 1,
            }
            latest.push(headline);
        }
    }

    /// The number of tickers with articles.
    pub fn reached(&self) -> u64 {
        self.tickers.values().filter(|latest| !latest.is_empty()).count() as u64
    }
}

/// Inserts an article into a list of extremes if it belongs there. On a tie, the first one stays.
fn insert_extreme(list: &mut Vec<Headline>, headline: &Headline, further: Ordering) {
    let score = headline.score.unwrap_or_default();
    let index = list.partition_point(|other| score.total_cmp(&other.score.unwrap_or_default()) != further);
    if index < HEADLINES {
        list.insert(index, headline.clone());
        list.truncate(HEADLINES);
    }
}
