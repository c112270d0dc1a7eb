//! The news of a slab as numbers: articles, summaries and historical sentiment, with when each was known. Articles are
//! read piece by piece, since a ticker may have very many.
//!
//! An article that an answer repeats exactly, with the same date, title, link and score, counts once in a window unless
//! the plan keeps duplicates.

use arrow::array::{Array, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::min;
use arrow::datatypes::{Float64Type, Int16Type, Int32Type, TimestampMicrosecondType};
use serde_json::Value;

use super::Counts;
use super::keys::NewsKey;
use super::naive::{self, Day, Moment, day};
use super::slab_columns::{TickerCodes, column, decoded};
use crate::date::{self, Date};
use crate::error::Result;
use crate::interface::{Score, unsigned_zero};
use crate::plan::{Availability, DatasetPlan, Duplicates, Feature, NaiveRule, Reference};
use crate::tables::{Leniencies, Slab, Watched};

/// What a key may know: nothing dated after its cutoff day, and nothing that became known after its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutoff {
    pub(super) day: Day,
    limit: Moment,
    rule: NaiveRule,
}

impl Cutoff {
    pub(super) fn of(key: &NewsKey, cutoff: Day, rule: NaiveRule) -> Self {
        Self { day: cutoff, limit: key.limit, rule }
    }

    /// Whether an observation, by its day and instant, was made by then.
    fn has_seen(self, (day, instant): (Day, i64)) -> bool {
        day <= self.day && self.limit.has_seen(instant)
    }

    /// Whether something with this date was known.
    fn knows(self, written: Date) -> bool {
        self.limit == Moment::END
            || naive::known_from(written.micros, written.offset_minutes, self.rule).is_by(self.limit)
    }
}

/// When the service was observed to return a value: from and until, as instants and days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObservedSpan {
    from: (Day, i64),
    until: (Day, i64),
}

impl ObservedSpan {
    const ALWAYS: Self = Self { from: (Day::MIN, i64::MIN), until: (Day::MAX, i64::MAX) };

    /// Of a value that does not count: it was replaced, whenever that was.
    const REPLACED: Self = Self { from: (Day::MIN, i64::MIN), until: (Day::MIN, i64::MIN) };

    /// Whether the value had been observed, and not yet replaced.
    fn is_at(self, cut: Cutoff) -> bool {
        let has_ended = cut.has_seen(self.until);
        cut.has_seen(self.from) && !has_ended
    }
}

/// An article, or one of its successive values.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewsItem {
    pub(super) ticker: i32,
    /// The naive date.
    pub(super) date: i64,
    written: Date,
    /// Number of articles of its date known before it.
    place: i32,
    /// Whether it counts in windows.
    pub(super) is_counted: bool,
    /// Whether it was in the first list of its ticker that was answered.
    is_of_first: bool,
    pub(super) score: Option<f64>,
    seen: ObservedSpan,
}

impl NewsItem {
    pub(super) fn is_known(&self, cut: Cutoff) -> bool {
        self.seen.is_at(cut) && cut.knows(self.written)
    }

    /// Whether the lists of its ticker may always have been cut off: one that was empty at first was not.
    pub(super) fn may_be_cut_off(&self) -> bool {
        self.is_of_first
    }

    /// Whether it had been listed, even if it was withdrawn since.
    pub(super) fn is_listed(&self, cut: Cutoff) -> bool {
        cut.has_seen(self.seen.from)
    }

    /// Orders the articles of a ticker from the first known to the last.
    pub(super) fn order(&self) -> (i64, i64, i32) {
        (self.date, self.written.micros, self.place)
    }
}

/// A summary or a record of historical sentiment: numbers that hold until later ones are known.
#[derive(Clone, Debug)]
pub(super) struct SentimentRecord {
    pub(super) ticker: i32,
    /// Its day; for a summary, the day on which it was first observed.
    pub(super) day: Day,
    /// The date of a record of historical sentiment.
    written: Option<Date>,
    place: i32,
    pub(super) values: Vec<Option<f64>>,
    seen: ObservedSpan,
}

impl SentimentRecord {
    pub(super) fn is_known(&self, cut: Cutoff) -> bool {
        self.seen.is_at(cut) && self.written.is_none_or(|written| cut.knows(written))
    }
}

/// The summaries and the historical sentiment of some tickers.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Sorted by ticker and day; the values are those of the three references.
    pub(super) summaries: Vec<SentimentRecord>,
    /// Sorted by ticker and day; the values are the fields that the plan names.
    pub(super) records: Vec<SentimentRecord>,
}

impl News {
    pub(super) fn of(slab: &Slab, plan: &DatasetPlan, tickers: &mut TickerCodes) -> Self {
        let mut news = Self::default();
        let fields: Vec<&str> = plan.features.iter().filter_map(field).collect();
        if plan.features.iter().any(is_of_summary) {
            news.summaries = read_summaries(&slab.summaries, plan, tickers);
        }
        if !fields.is_empty() {
            news.records = read_records(&slab.records, &fields, plan, tickers);
        }
        news
    }

    /// How many minutes the offset furthest behind UTC is behind, in dates of these and of a slab's articles. Only
    /// dates as written depend on it.
    pub(super) fn behind_minutes(&self, slab: &Slab, plan: &DatasetPlan) -> Result<i64> {
        if plan.dates != NaiveRule::Wall {
            return Ok(0);
        }
        let records = self.records.iter().filter_map(|record| record.written?.offset_minutes);
        let mut least = records.min().unwrap_or_default();
        if has_articles(plan) {
            for piece in slab.articles.pieces()? {
                let piece = piece?;
                let offsets = column(&piece, "utc_offset_minutes").as_primitive::<Int16Type>();
                least = least.min(min(offsets).unwrap_or_default());
            }
        }
        Ok(-i64::from(least.min(0)))
    }
}

/// Whether a plan computes features from articles.
pub(super) fn has_articles(plan: &DatasetPlan) -> bool {
    plan.features.iter().any(|feature| !is_of_summary(feature) && field(feature).is_none())
}

/// Counts of articles, by their latest values.
pub(super) fn counts(articles: &[NewsItem]) -> Counts {
    let mut counts = Counts::default();
    for article in articles.iter().filter(|article| article.seen.until == ObservedSpan::ALWAYS.until) {
        counts.articles += 1;
        counts.unscored_articles += u64::from(article.is_counted && article.score.is_none());
        counts.repeated_articles += u64::from(!article.is_counted);
    }
    counts
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

/// When each row was observed.
struct ObservedSpans<'a> {
    from: &'a [i64],
    until: &'a TimestampMicrosecondArray,
}

impl<'a> ObservedSpans<'a> {
    fn of(rows: &'a RecordBatch) -> Self {
        let instants = |name| column(rows, name).as_primitive::<TimestampMicrosecondType>();
        Self { from: instants("seen_from").values(), until: instants("seen_until") }
    }

    /// From when to when a row is available.
    fn counted(&self, row: usize, plan: &DatasetPlan) -> ObservedSpan {
        match plan.availability {
            Availability::Dated if self.until.is_null(row) => ObservedSpan::ALWAYS,
            Availability::Dated => ObservedSpan::REPLACED,
            Availability::Observed => self.seen(row, plan),
        }
    }

    fn seen(&self, row: usize, plan: &DatasetPlan) -> ObservedSpan {
        let until =
            if self.until.is_null(row) { ObservedSpan::ALWAYS.until } else { with_day(self.until.value(row), plan) };
        ObservedSpan { from: with_day(self.from[row], plan), until }
    }
}

/// The day of an observation by the rule of a plan, and its instant.
fn with_day(instant: i64, plan: &DatasetPlan) -> (Day, i64) {
    (day(naive::face(instant, Some(0), plan.dates)), instant)
}

/// The lists of articles of the tickers.
#[derive(Debug)]
pub(super) struct Lists {
    /// By ticker code; none if no list is known.
    watched: Vec<Option<WatchedList>>,
    /// Whether they may be cut off.
    pub(super) are_cut_off: bool,
}

#[derive(Clone, Copy, Debug)]
struct WatchedList {
    /// The instant of the first answer.
    first: i64,
    /// From when on the list was known.
    from: (Day, i64),
    /// The day of the last answer, which that does not tell whole.
    until: Day,
}

impl Lists {
    pub(super) fn of(slab: &Slab, plan: &DatasetPlan, tickers: &TickerCodes) -> Self {
        let watched = |name: &String| {
            let Watched { from, until } = slab.watched.get(&name.parse().ok()?)?;
            let first = *from;
            let from = match plan.availability {
                Availability::Dated => ObservedSpan::ALWAYS.from,
                Availability::Observed => with_day(first, plan),
            };
            Some(WatchedList { first, from, until: until.map_or(Day::MAX, |until| with_day(until, plan).0) })
        };
        let watched = tickers.names().iter().map(watched).collect();
        Self { watched, are_cut_off: !plan.are_lists_complete }
    }

    fn watched(&self, ticker: i32) -> Option<&WatchedList> {
        self.watched.get(ticker as usize)?.as_ref()
    }

    /// Whether the list of a ticker tells of the cutoff day, as far as it was known.
    pub(super) fn tell(&self, ticker: i32, cut: Cutoff) -> bool {
        self.watched(ticker).is_some_and(|list| cut.day != Day::MIN && cut.day < list.until && cut.has_seen(list.from))
    }
}

/// Reads a piece of articles, and sorts them by ticker, then from the first known to the last.
pub(super) fn read_articles(
    rows: &RecordBatch,
    plan: &DatasetPlan,
    lists: &Lists,
    tickers: &mut TickerCodes,
) -> Vec<NewsItem> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let dates = column(rows, "date").as_primitive::<TimestampMicrosecondType>();
    let offsets = column(rows, "utc_offset_minutes").as_primitive::<Int16Type>();
    let places = column(rows, "place").as_primitive::<Int32Type>();
    let repeats = column(rows, "repeats").as_primitive::<Int32Type>();
    let scores = column(rows, "score").as_primitive::<Float64Type>();
    let sightings = ObservedSpans::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let offset_minutes = offsets.is_valid(row).then(|| offsets.value(row));
        let written = Date { micros: dates.value(row), offset_minutes };
        NewsItem {
            ticker,
            date: naive::face(written.micros, offset_minutes, plan.dates),
            written,
            place: places.value(row),
            is_counted: plan.duplicates == Duplicates::Keep || repeats.value(row) == 0,
            is_of_first: lists.watched(ticker).is_some_and(|list| sightings.from[row] <= list.first),
            score: scores.is_valid(row).then(|| scores.value(row)),
            seen: sightings.counted(row, plan),
        }
    };
    let mut articles: Vec<NewsItem> = codes.into_iter().enumerate().map(of_row).collect();
    // Successive values of one article keep their order.
    let order = |article: &NewsItem| (article.ticker, article.order());
    let day = |article: &NewsItem| (article.ticker, article.date);
    // Rows usually come sorted by date, and sorting within a date takes little memory.
    if articles.is_sorted_by_key(day) {
        articles.chunk_by_mut(|one, next| day(one) == day(next)).for_each(|of_date| of_date.sort_by_key(order));
    } else {
        articles.sort_by_key(order);
    }
    articles
}

/// Summaries count from the day on which they were observed: the dates they carry are those of three articles.
fn read_summaries(rows: &RecordBatch, plan: &DatasetPlan, tickers: &mut TickerCodes) -> Vec<SentimentRecord> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let scores = Reference::ALL
        .map(|reference| column(rows, &format!("{}_score", reference.as_str())).as_primitive::<Float64Type>());
    let sightings = ObservedSpans::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let seen = sightings.seen(row, plan);
        let values = scores.iter().map(|scores| scores.is_valid(row).then(|| scores.value(row))).collect();
        SentimentRecord { ticker, day: seen.from.0, written: None, place: 0, values, seen }
    };
    let mut summaries: Vec<SentimentRecord> = codes.into_iter().enumerate().map(of_row).collect();
    summaries.sort_by_key(|statement| (statement.ticker, statement.seen.from));
    summaries
}

/// Records of historical sentiment with a date in a form of the interface. Of records of one date, the first listed is
/// the latest. A field that is neither a number nor text that holds one is null.
fn read_records(
    rows: &RecordBatch,
    fields: &[&str],
    plan: &DatasetPlan,
    tickers: &mut TickerCodes,
) -> Vec<SentimentRecord> {
    let codes = decoded::<Int32Type, _>(column(rows, "ticker"), |name| tickers.code(name));
    let texts = column(rows, "record").as_string::<i32>();
    let places = column(rows, "place").as_primitive::<Int32Type>();
    let sightings = ObservedSpans::of(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let record: Value = serde_json::from_str(texts.value(row)).ok()?;
        let written = date::read(record["date"].as_str()?, &mut Leniencies::default()).ok()?;
        let values = fields.iter().map(|field| number(&record[*field])).collect();
        let seen = sightings.counted(row, plan);
        let day = day(naive::face(written.micros, written.offset_minutes, plan.dates));
        Some(SentimentRecord { ticker, day, written: Some(written), place: places.value(row), values, seen })
    };
    let mut records: Vec<SentimentRecord> = codes.into_iter().enumerate().filter_map(of_row).collect();
    records.sort_by_cached_key(|record| {
        let known = record.written.map(|date| naive::known_from(date.micros, date.offset_minutes, plan.dates).order());
        (record.ticker, record.day, known, record.place)
    });
    records
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().map(unsigned_zero),
        Value::String(text) => Score::Text(text.into()).value(),
        _ => None,
    }
}
