//! The news of a slab as numbers: articles, summaries and historical sentiment, with when each was known. Articles are
//! read piece by piece, since a ticker may have very many.
//!
//! An article that an answer repeats exactly, with the same date, title, link and score, counts once in a window unless
//! the plan keeps duplicates.

use arrow::array::{Array, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::min;
use arrow::datatypes::Int32Type;
use serde_json::Value;

use super::keys::{NewsKey, TickerCodes};
use super::naive::{Day, Moment, Timing, day};
use super::signals::decode;
use crate::error::Result;
use crate::interface::{Score, unsigned_zero};
use crate::plan::{Availability, DatasetPlan, Duplicates, Feature, NaiveRule, Reference};
use crate::tables::dates::{self, Date};
use crate::tables::{ArticleCounts, Leniencies, Past, Slab, TypedRows, Watched};

/// What a key may know: nothing dated after its cutoff day, and nothing that became known after its limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutoff {
    pub(super) day: Day,
    made: Moment,
    /// The instant by which everything must have been observed; [`i64::MAX`] if it makes no difference.
    seen_by: i64,
    timing: Timing,
}

impl Cutoff {
    pub(super) fn new(key: &NewsKey, cutoff: Day, plan: &DatasetPlan) -> Self {
        let seen_by = if plan.is_as_lived() { key.limit.seen_by } else { i64::MAX };
        Self { day: cutoff, made: key.limit.made, seen_by, timing: Timing::new(plan) }
    }

    /// Whether an observation was made by then.
    fn has_seen(self, Sighting { day, instant }: Sighting) -> bool {
        let is_by_day = day == Day::MIN || (day <= self.day && instant <= self.made.instant());
        is_by_day && instant <= self.seen_by
    }

    /// Whether news of the days after one can be known: a signal that was made at midnight knows none of its own day.
    pub(super) fn is_made_after(self, day: Day) -> bool {
        self.timing.may_know_after(day, self.made)
    }

    /// Whether something with this date was known.
    fn knows(self, written: Date) -> bool {
        self.made == Moment::END || self.timing.known_from(written.micros, written.offset_minutes).is_by(self.made)
    }
}

/// When something was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sighting {
    /// The day by the rule of the plan; [`Day::MIN`] if the cutoff day makes no difference.
    day: Day,
    instant: i64,
}

impl Sighting {
    const ALWAYS: Self = Self { day: Day::MIN, instant: i64::MIN };
    const NEVER: Self = Self { day: Day::MAX, instant: i64::MAX };

    fn new(instant: i64, plan: &DatasetPlan) -> Self {
        Self { day: day(plan.dates.face(instant, Some(0))), instant }
    }
}

/// When the service was observed to return a value: from and until.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObservedSpan {
    from: Sighting,
    until: Sighting,
}

impl ObservedSpan {
    /// Whether the value had been observed, and not yet replaced.
    fn is_at(self, cut: Cutoff) -> bool {
        let has_ended = cut.has_seen(self.until);
        cut.has_seen(self.from) && !has_ended
    }
}

/// Scores are counted in billionths.
pub(super) const SCALE: f64 = 1e9;

/// Scores below this, in billionths, fit into 64 bits, and so does a sum if the number of scores times the largest is below.
pub(super) const SUMMED_BELOW: f64 = 9e9;

/// The score of an article.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExactScore {
    pub(super) value: f64,
    /// Its billionths, counted once for all windows that it is in; none of one that is too large.
    pub(super) billionths: i64,
}

impl ExactScore {
    pub(super) fn new(value: f64) -> Self {
        let billionths = if value.abs() < SUMMED_BELOW { (value * SCALE).round() as i64 } else { 0 };
        Self { value, billionths }
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
    /// Whether it was in the first list of its ticker that was answered. If none was, lists never were cut off.
    pub(super) is_of_first: bool,
    pub(super) score: Option<ExactScore>,
    seen: ObservedSpan,
}

impl NewsItem {
    pub(super) fn is_known(&self, cut: Cutoff) -> bool {
        self.seen.is_at(cut) && cut.knows(self.written)
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
pub(super) struct TickerNews {
    /// Sorted by ticker and day; the values are those of the three references.
    pub(super) summaries: Vec<SentimentRecord>,
    /// Sorted by ticker and day; the values are the fields that the plan names.
    pub(super) records: Vec<SentimentRecord>,
}

impl TickerNews {
    pub(super) fn read(slab: &Slab, plan: &DatasetPlan, tickers: &mut TickerCodes) -> Self {
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
                least = least.min(min(TypedRows(&piece).offsets()).unwrap_or_default());
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
pub(super) fn counts(articles: &[NewsItem]) -> ArticleCounts {
    let mut counts = ArticleCounts::default();
    for article in articles.iter().filter(|article| article.seen.until == Sighting::NEVER) {
        counts.count(article.is_counted.then_some(article.score.map(|score| score.value)));
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
    fn new(rows: TypedRows<'a>) -> Self {
        Self { from: rows.instants("seen_from").values(), until: rows.instants("seen_until") }
    }

    /// From when to when a row was observed, as far as it makes a difference.
    fn span(&self, row: usize, sighting: impl Fn(i64) -> Sighting) -> ObservedSpan {
        let until = if self.until.is_null(row) { Sighting::NEVER } else { sighting(self.until.value(row)) };
        ObservedSpan { from: sighting(self.from[row]), until }
    }
}

/// An observation, as far as it makes a difference when news is available.
fn available(instant: i64, plan: &DatasetPlan) -> Sighting {
    match plan.availability {
        Availability::Observed => Sighting::new(instant, plan),
        Availability::Dated if plan.is_as_lived() => Sighting { instant, ..Sighting::ALWAYS },
        Availability::Dated => Sighting::ALWAYS,
    }
}

/// When a list was watched, and each of its answers.
type WatchedList<'a> = (Watched, &'a [(i64, i64)]);

/// The lists of articles of the tickers.
pub(super) struct Lists<'a> {
    pub(super) plan: &'a DatasetPlan,
    /// When the list of each ticker was watched, by its code, and each of its answers; none if no list is known.
    watched: Vec<Option<WatchedList<'a>>>,
    /// The answers of all runs, if a signal knows only those by its own run.
    past: Option<&'a Past>,
}

impl<'a> Lists<'a> {
    pub(super) fn new(slab: &Slab, plan: &'a DatasetPlan, past: Option<&'a Past>, tickers: &TickerCodes) -> Self {
        let past = past.filter(|_| plan.is_as_lived());
        let watched = |name: &String| {
            let ticker = name.parse().ok()?;
            let each = past.and_then(|past| past.lists(&ticker)).unwrap_or_default();
            Some((*slab.watched.get(&ticker)?, each))
        };
        Self { plan, watched: tickers.names.iter().map(watched).collect(), past }
    }

    /// Whether they may be cut off.
    pub(super) fn are_cut_off(&self) -> bool {
        !self.plan.are_lists_complete
    }

    fn list_of(&self, ticker: i32) -> Option<WatchedList<'a>> {
        *self.watched.get(ticker as usize)?
    }

    /// Whether the list of a ticker tells of the cutoff day, as far as it was known. The last answer does not tell its own
    /// day whole.
    pub(super) fn tell(&self, ticker: i32, cut: Cutoff) -> bool {
        let Some((all, each)) = self.list_of(ticker).filter(|_| cut.day != Day::MIN) else { return false };
        let watched = self.past.map_or(Some(all), |past| past.watched_by(each, cut.seen_by));
        watched.is_some_and(|Watched { from, until }| {
            let is_told = until.is_none_or(|until| cut.day < Sighting::new(until, self.plan).day);
            is_told && cut.has_seen(available(from, self.plan))
        })
    }
}

/// Reads a piece of articles, and sorts them by ticker, then from the first known to the last.
pub(super) fn read_articles(
    rows: &RecordBatch,
    plan: &DatasetPlan,
    lists: &Lists<'_>,
    tickers: &mut TickerCodes,
) -> Vec<NewsItem> {
    let rows = TypedRows(rows);
    let codes = decode::<Int32Type, _>(rows.column("ticker"), |name| tickers.code(name));
    let (dates, offsets, scores) = (rows.instants("date"), rows.offsets(), rows.reals("score"));
    let (places, repeats) = (rows.whole("place"), rows.whole("repeats"));
    let sightings = ObservedSpans::new(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let offset_minutes = offsets.is_valid(row).then(|| offsets.value(row));
        let written = Date { micros: dates.value(row), offset_minutes };
        NewsItem {
            ticker,
            date: plan.dates.face(written.micros, offset_minutes),
            written,
            place: places.value(row),
            is_counted: plan.duplicates == Duplicates::Keep || repeats.value(row) == 0,
            is_of_first: lists.list_of(ticker).is_some_and(|(all, _)| sightings.from[row] <= all.from),
            score: scores.is_valid(row).then(|| ExactScore::new(scores.value(row))),
            seen: sightings.span(row, |instant| available(instant, plan)),
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
    let rows = TypedRows(rows);
    let codes = decode::<Int32Type, _>(rows.column("ticker"), |name| tickers.code(name));
    let scores = Reference::ALL.map(|reference| rows.reals(&format!("{}_score", reference.as_str())));
    let sightings = ObservedSpans::new(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let seen = sightings.span(row, |instant| Sighting::new(instant, plan));
        let values = scores.iter().map(|scores| scores.is_valid(row).then(|| scores.value(row))).collect();
        SentimentRecord { ticker, day: seen.from.day, written: None, place: 0, values, seen }
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
    let rows = TypedRows(rows);
    let codes = decode::<Int32Type, _>(rows.column("ticker"), |name| tickers.code(name));
    let (texts, places) = (rows.texts("record"), rows.whole("place"));
    let sightings = ObservedSpans::new(rows);
    let of_row = |(row, ticker): (usize, i32)| {
        let record: Value = serde_json::from_str(texts.value(row)).ok()?;
        let written = dates::read(record["date"].as_str()?, &mut Leniencies::default()).ok()?;
        let values = fields.iter().map(|field| number(&record[*field])).collect();
        let seen = sightings.span(row, |instant| available(instant, plan));
        let day = day(plan.dates.face(written.micros, written.offset_minutes));
        Some(SentimentRecord { ticker, day, written: Some(written), place: places.value(row), values, seen })
    };
    let mut records: Vec<SentimentRecord> = codes.into_iter().enumerate().filter_map(of_row).collect();
    records.sort_by_cached_key(|record| {
        let timing = Timing::new(plan);
        let known = record.written.map(|date| timing.known_from(date.micros, date.offset_minutes).instant());
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

#[cfg(test)]
impl NewsItem {
    pub(super) fn always_known(ticker: i32, date: i64, place: i32, score: Option<f64>) -> Self {
        let written = Date { micros: date, offset_minutes: None };
        let seen = ObservedSpan { from: Sighting::ALWAYS, until: Sighting::NEVER };
        Self {
            ticker,
            date,
            written,
            place,
            is_counted: true,
            is_of_first: true,
            score: score.map(ExactScore::new),
            seen,
        }
    }
}

#[cfg(test)]
mod tests;
