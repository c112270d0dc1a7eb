//! Counts the articles about the tickers of a dataset.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::calendar::is_drawn;
use super::{Facts, Histogram, record};
use crate::archive::{Asked, View};
use crate::error::Result;
use crate::plan::Vintage;
use crate::tables::Table;

/// How many of the highest and of the lowest scores are told with their headlines.
const TOLD: usize = 4;

/// The articles about the tickers of a dataset that are dated from its first day to its last, as they were known last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct News {
    /// How many there are.
    pub articles: u64,
    /// How many have no score.
    pub unscored: u64,
    /// The tickers that they are about.
    pub tickers: BTreeSet<String>,
    /// How many there are of each day of 1900 to 2099 that has any.
    #[serde(with = "record::count_by_day")]
    pub days: BTreeMap<NaiveDate, u64>,
    /// Their scores.
    pub scores: Histogram,
    /// Those with the lowest scores, the lowest first.
    pub lowest: Vec<Headline>,
    /// Those with the highest scores, the highest first.
    pub highest: Vec<Headline>,
}

/// An article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Its score.
    pub score: f64,
    /// The ticker that it is about.
    pub ticker: String,
    /// Its date.
    #[serde(with = "record::day")]
    pub date: NaiveDate,
    /// Its title, as the vendor wrote it.
    pub title: String,
    /// Its address, as the vendor wrote it.
    pub link: String,
}

impl News {
    /// The articles of a view that are about the tickers of a dataset.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read.
    pub fn of(view: &View, facts: &Facts) -> Result<Self> {
        let mut news = Self::default();
        let Some((first, last)) = facts.bounds() else { return Ok(news) };
        let tickers: HashSet<&str> = facts.tickers.iter().map(|ticker| ticker.name.as_str()).collect();
        // When a cell was first seen makes no difference here.
        let asked = Asked { vintage: Vintage::Latest, live_within: TimeDelta::zero() };
        for articles in view.cells(Table::Articles, asked)? {
            news.count(&articles?, &tickers, first..=last);
        }
        Ok(news)
    }

    fn count(&mut self, articles: &RecordBatch, tickers: &HashSet<&str>, days: std::ops::RangeInclusive<NaiveDate>) {
        let column = |name: &str| articles.column_by_name(name).expect("articles have the columns of their table");
        let symbols = column("ticker").as_dictionary::<Int32Type>();
        let names = symbols.values().as_string::<i32>();
        let dates = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let scores = column("score").as_primitive::<Float64Type>();
        let (titles, links) = (column("title").as_string::<i32>(), column("link").as_string::<i32>());
        // Articles come ticker by ticker.
        let (mut last, mut is_asked, mut is_known) = (None, false, false);
        let mut of_days: HashMap<NaiveDate, u64> = HashMap::new();
        for row in 0..articles.num_rows() {
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
            tell(&mut self.lowest, score, Ordering::Less, headline);
            tell(&mut self.highest, score, Ordering::Greater, headline);
        }
        of_days.into_iter().for_each(|(date, count)| *self.days.entry(date).or_default() += count);
    }
}

/// Adds an article to a list of extremes, if it is one. Of equals the first stays.
fn tell(list: &mut Vec<Headline>, score: f64, further: Ordering, headline: impl Fn() -> Headline) {
    let place = list.partition_point(|told| score.total_cmp(&told.score) != further);
    if place < TOLD {
        list.insert(place, headline());
        list.truncate(TOLD);
    }
}
