//! The news of a slab as numbers: articles, summaries and historical sentiment, each with the days on which it was known.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use chrono::NaiveDate;
use serde_json::Value;

use super::codes::{Day, Tickers, column, day, decoded};
use crate::plan::{Availability, DatasetPlan, Feature, Reference};
use crate::tables::Slab;

/// The days at whose end something was known: from the first, and before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownOn {
    from: Day,
    until: Day,
}

impl KnownOn {
    const ALWAYS: Self = Self { from: Day::MIN, until: Day::MAX };

    /// Whether it was known at the end of a day.
    pub(super) fn contains(self, cutoff: Day) -> bool {
        self.from <= cutoff && cutoff < self.until
    }
}

/// One article, or what was said of it for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Article {
    pub(super) ticker: i32,
    pub(super) date: i64,
    /// How many articles of its date were known before it.
    place: i32,
    pub(super) score: Option<f64>,
    pub(super) known: KnownOn,
}

/// A summary, or a record of historical sentiment: numbers that hold until later ones are known.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) ticker: i32,
    /// The day that it is about; of a summary the day on which it was first seen.
    pub(super) day: Day,
    pub(super) values: Vec<Option<f64>>,
    pub(super) known: KnownOn,
}

/// The news of some tickers.
#[derive(Debug, Default)]
pub(super) struct News {
    /// By ticker, then from the first known to the last.
    pub(super) articles: Vec<Article>,
    /// By ticker and day; their values are those of the three references.
    pub(super) summaries: Vec<Statement>,
    /// By ticker and day; their values are those of the fields that the plan names.
    pub(super) records: Vec<Statement>,
}

impl News {
    pub(super) fn of(slab: &Slab, plan: &DatasetPlan, tickers: &mut Tickers) -> Self {
        let [articles, summaries, records] = &slab.news;
        let mut news = Self::default();
        let fields: Vec<&str> = plan.features.iter().filter_map(field).collect();
        let of_articles = |feature: &Feature| !is_of_summary(feature) && field(feature).is_none();
        if plan.features.iter().any(of_articles) {
            news.articles = read_articles(articles, plan.availability, tickers);
        }
        if plan.features.iter().any(is_of_summary) {
            news.summaries = read_summaries(summaries, tickers);
        }
        if !fields.is_empty() {
            news.records = read_records(records, &fields, plan.availability, tickers);
        }
        news
    }
}

fn is_of_summary(feature: &Feature) -> bool {
    matches!(feature, Feature::Summary(_) | Feature::SummaryDaysSince)
}

fn field(feature: &Feature) -> Option<&str> {
    match feature {
        Feature::Historical(field) => Some(field),
        _ => None,
    }
}

/// When each row was known, and whether it still is said.
struct Seen<'a> {
    from: &'a [i64],
    until: &'a arrow::array::TimestampMicrosecondArray,
}

impl<'a> Seen<'a> {
    fn of(rows: &'a RecordBatch) -> Self {
        let instants = |name| column(rows, name).as_primitive::<TimestampMicrosecondType>();
        Self { from: instants("seen_from").values(), until: instants("seen_until") }
    }

    /// When a row counts as known; none when it never does.
    fn known(&self, row: usize, availability: Availability) -> Option<KnownOn> {
        match availability {
            Availability::Dated => self.until.is_null(row).then_some(KnownOn::ALWAYS),
            Availability::Observed => Some(self.on(row)),
        }
    }

    fn on(&self, row: usize) -> KnownOn {
        let until = if self.until.is_null(row) { Day::MAX } else { day(self.until.value(row)) };
        KnownOn { from: day(self.from[row]), until }
    }
}

fn read_articles(rows: &RecordBatch, availability: Availability, tickers: &mut Tickers) -> Vec<Article> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let dates = column(rows, "date").as_primitive::<TimestampMicrosecondType>();
    let places = column(rows, "place").as_primitive::<Int32Type>();
    let scores = column(rows, "score").as_primitive::<Float64Type>();
    let seen = Seen::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        Some(Article {
            ticker,
            date: dates.value(row),
            place: places.value(row),
            score: scores.is_valid(row).then(|| scores.value(row)),
            known: seen.known(row, availability)?,
        })
    };
    let mut articles: Vec<Article> = codes.into_iter().enumerate().filter_map(of_row).collect();
    // Rows of one series are by date and text; two statements on one article keep the order in which they were made.
    articles.sort_by_key(|article| (article.ticker, article.date, article.place));
    articles
}

/// Summaries count from the day on which they were seen: their own dates are those of three articles.
fn read_summaries(rows: &RecordBatch, tickers: &mut Tickers) -> Vec<Statement> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let scores = Reference::ALL
        .map(|reference| column(rows, &format!("{}_score", reference.as_str())).as_primitive::<Float64Type>());
    let seen = Seen::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let known = seen.on(row);
        let values = scores.iter().map(|scores| scores.is_valid(row).then(|| scores.value(row))).collect();
        Statement { ticker, day: known.from, values, known }
    };
    let mut summaries: Vec<Statement> = codes.into_iter().enumerate().map(of_row).collect();
    summaries.sort_by_key(|statement| (statement.ticker, statement.day));
    summaries
}

/// Records of historical sentiment that have a date; of a field that is no number nothing is known.
fn read_records(
    rows: &RecordBatch,
    fields: &[&str],
    availability: Availability,
    tickers: &mut Tickers,
) -> Vec<Statement> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let texts = column(rows, "record").as_string::<i32>();
    let seen = Seen::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let record: Value = serde_json::from_str(texts.value(row)).ok()?;
        let date: NaiveDate = record["date"].as_str()?.get(..10)?.parse().ok()?;
        let values = fields.iter().map(|field| record[*field].as_f64()).collect();
        Some(Statement { ticker, day: date.to_epoch_days(), values, known: seen.known(row, availability)? })
    };
    let mut records: Vec<Statement> = codes.into_iter().enumerate().filter_map(of_row).collect();
    records.sort_by_key(|statement| (statement.ticker, statement.day));
    records
}
