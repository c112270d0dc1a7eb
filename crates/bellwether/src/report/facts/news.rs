//! Counts the articles about a dataset's tickers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};

use super::calendar::is_drawn;
use super::{Facts, Histogram, record};
use crate::plan::Duplicates;

/// How many of the lowest and highest scores are shown with their headlines.
const HEADLINES: usize = 4;

/// Articles about a dataset's tickers, dated from its first day to its last, with their latest known scores. Exact
/// duplicates count as the dataset counts them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct News {
    /// Number of articles.
    pub articles: u64,
    /// Articles without a score.
    pub unscored: u64,
    /// The tickers they are about.
    pub tickers: BTreeSet<String>,
    /// Articles per day from 1900 to 2099, for days that have any.
    #[serde(with = "record::count_by_day")]
    pub days: BTreeMap<NaiveDate, u64>,
    /// Their scores.
    pub scores: Histogram,
    /// Lowest scores, lowest first.
    pub lowest: Vec<Headline>,
    /// Highest scores, highest first.
    pub highest: Vec<Headline>,
}

/// An article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Its score.
    pub score: f64,
    /// The ticker it is about.
    pub ticker: String,
    /// Its date.
    pub date: NaiveDate,
    /// Its title, as the vendor wrote it.
    pub title: String,
    /// Its link, as the vendor wrote it.
    pub link: String,
}

/// Counts the articles about a dataset's tickers.
#[derive(Debug)]
pub struct NewsTally<'a> {
    tickers: HashSet<&'a str>,
    /// The first day and the last; none if there are no rows.
    days: Option<RangeInclusive<NaiveDate>>,
    duplicates: Duplicates,
    news: News,
}

impl<'a> NewsTally<'a> {
    /// Starts counting those of a dataset with some facts.
    pub fn of(facts: &'a Facts, duplicates: Duplicates) -> Self {
        let tickers = facts.tickers.iter().map(|ticker| ticker.name.as_str()).collect();
        Self { tickers, days: facts.bounds().map(|(first, last)| first..=last), duplicates, news: News::default() }
    }

    /// Counts some articles, which come in order and have naive dates.
    pub fn count(&mut self, articles: &RecordBatch) {
        if let Some(days) = &self.days {
            let repeats = articles.column_by_name("repeats").expect("articles have the columns of their table");
            let repeats = repeats.as_primitive::<Int32Type>().values();
            let counts = |row: usize| self.duplicates == Duplicates::Keep || repeats[row] == 0;
            self.news.count(articles, &self.tickers, days, counts);
        }
    }

    /// What was counted.
    pub fn finish(self) -> News {
        self.news
    }
}

impl News {
    fn count(
        &mut self,
        articles: &RecordBatch,
        tickers: &HashSet<&str>,
        days: &RangeInclusive<NaiveDate>,
        counts: impl Fn(usize) -> bool,
    ) {
        let column = |name: &str| articles.column_by_name(name).expect("articles have the columns of their table");
        let symbols = column("ticker").as_dictionary::<Int32Type>();
        let names = symbols.values().as_string::<i32>();
        let dates = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let scores = column("score").as_primitive::<Float64Type>();
        let (titles, links) = (column("title").as_string::<i32>(), column("link").as_string::<i32>());
        // Articles come grouped by ticker.
        let (mut last, mut is_asked, mut is_known) = (None, false, false);
        let mut of_days: HashMap<NaiveDate, u64> = HashMap::new();
        for row in (0..articles.num_rows()).filter(|row| counts(*row)) {
            let key = symbols.keys().value(row) as usize;
            let name = names.value(key);
            if last.replace(key) != Some(key) {
                (is_asked, is_known) = (tickers.contains(name), self.tickers.contains(name));
            }
            let date = DateTime::from_timestamp_micros(dates[row]).map(|date| date.date_naive());
            let Some(date) = date.filter(|date| is_asked && days.contains(date)) else { continue };
            if !is_known {
                self.tickers.insert(name.to_owned());
                is_known = true;
            }
            self.articles += 1;
            if is_drawn(date) {
                *of_days.entry(date).or_default() += 1;
            }
            if scores.is_null(row) {
                self.unscored += 1;
                continue;
            }
            let score = scores.value(row);
            self.scores.add(score);
            let headline = || Headline {
                score,
                ticker: name.to_owned(),
                date,
                title: titles.value(row).to_owned(),
                link: links.value(row).to_owned(),
            };
            insert_extreme(&mut self.lowest, score, Ordering::Less, headline);
            insert_extreme(&mut self.highest, score, Ordering::Greater, headline);
        }
        of_days.into_iter().for_each(|(date, count)| *self.days.entry(date).or_default() += count);
    }
}

/// Inserts an article into a list of extremes if it belongs there. On a tie, the first one stays.
fn insert_extreme(list: &mut Vec<Headline>, score: f64, further: Ordering, headline: impl Fn() -> Headline) {
    let index = list.partition_point(|other| score.total_cmp(&other.score) != further);
    if index < HEADLINES {
        list.insert(index, headline());
        list.truncate(HEADLINES);
    }
}
