//! Known cells as records of the interface.
//!
//! What an answer had besides the fields of the interface was kept as text, and is written back as it was. Scores are
//! numbers here: whether one was sent as a string is not archived. A date without an offset is written without one, and so
//! is one of the batched shape if another operation said its offset.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, TimeDelta};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::archive::Coverage;
use crate::interface::{
    ArticleReference, BatchedHistory, ChangeSet, Endpoint, HistoryEntry, HistoryKey, IndexedSignal, LatestForm,
    LatestSignal, NewsArticle, Period, Regime, Score, SectorHistory, SentimentSummary, Signal, SummaryForm, Ticker,
    TrailingSummary,
};
use crate::tables::{SeriesKey, written_date};
use crate::time::MICROS_PER_DAY;

/// The shape of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryForm {
    pub(super) key: HistoryKey,
    pub(super) dates: DateForm,
    /// The newest entries alone.
    pub(super) limit: usize,
}

/// The format of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DateForm {
    /// `2026-11-20T00:00:00+00:00`, if the service wrote an offset.
    Offset,
    /// The same, if it wrote one in the batched shape, as it does not have to.
    Batched,
    /// `2026-11-20`, if it has no time and no offset.
    Day,
}

/// The texts of dates, which histories share. They are in order, as the rows of a history are.
#[derive(Default)]
pub(super) struct DateTexts(Vec<(DateKey, String)>);

/// What tells written dates apart: microseconds and offset.
type DateKey = (i64, Option<i16>);

/// The columns of signals.
struct SignalColumns<'a> {
    dates: &'a TimestampMicrosecondArray,
    offsets: &'a Int16Array,
    /// Whether the offset of a row was written in the shape that is asked for; all were if there are none.
    has_offset: Vec<bool>,
    signals: Vec<Signal>,
    confidences: &'a Float64Array,
    extras: &'a StringArray,
}

impl<'a> SignalColumns<'a> {
    fn of(rows: &'a RecordBatch, form: DateForm) -> Self {
        let is_batched = |source: &str| {
            let batched = [Endpoint::SignalsHistoryBatchedAll, Endpoint::SignalsHistoryBatched];
            batched.iter().any(|endpoint| endpoint.as_str() == source)
        };
        Self {
            has_offset: if form == DateForm::Batched { choices(rows, "source", is_batched) } else { Vec::new() },
            dates: column(rows, "date").as_primitive::<TimestampMicrosecondType>(),
            offsets: column(rows, "utc_offset_minutes").as_primitive::<Int16Type>(),
            signals: choices(rows, "signal", |text| text.parse().unwrap_or(Signal::Sell)),
            confidences: column(rows, "confidence").as_primitive::<Float64Type>(),
            extras: column(rows, "extra").as_string::<i32>(),
        }
    }

    /// The rows with a date, newest first.
    fn newest(&self) -> impl Iterator<Item = usize> {
        (0..self.dates.len()).rev().filter(|&row| self.dates.is_valid(row))
    }

    fn offset(&self, row: usize) -> Option<i16> {
        let is_written = self.offsets.is_valid(row) && self.has_offset.get(row).is_none_or(|written| *written);
        is_written.then(|| self.offsets.value(row))
    }

    fn date(&self, row: usize) -> DateKey {
        (self.dates.value(row), self.offset(row))
    }
}

/// The history of a series, with the texts of its dates, after what comes before it.
pub(super) fn history(
    before: String,
    key: &SeriesKey,
    rows: &RecordBatch,
    form: HistoryForm,
    texts: &DateTexts,
) -> String {
    let signals = SignalColumns::of(rows, form.dates);
    let newest: Vec<usize> = signals.newest().take(form.limit).collect();
    let mut dates = texts.newest_first();
    let entries = newest.iter().map(|&row| HistoryEntry {
        date: dates.find(signals.date(row)).into(),
        signal: signals.signals[row],
        confidence: signals.confidences.value(row),
    });
    if newest.iter().all(|&row| signals.extras.is_null(row)) {
        return frame(before, key, form.key, entries.collect());
    }
    let entries = entries.zip(&newest).map(|(entry, &row)| {
        let text = with_extra(to_json(&entry), extra_of(signals.extras, row));
        RawValue::from_string(text).expect("it is JSON")
    });
    frame(before, key, form.key, entries.collect::<Vec<Box<RawValue>>>())
}

fn frame<E: Serialize>(before: String, key: &SeriesKey, of_entries: HistoryKey, entries: Vec<E>) -> String {
    let (ticker, period, regime) = series_of(key);
    match of_entries {
        HistoryKey::Items => to_json_after(before, &BatchedHistory { items: entries, period, regime, ticker }),
        HistoryKey::Predictions => {
            to_json_after(before, &SectorHistory { ticker, regime, period, predictions: entries })
        }
    }
}

/// Whether some rows of signals have one without a date.
pub(super) fn has_undated(rows: &RecordBatch) -> bool {
    column(rows, "date").null_count() > 0
}

/// The latest signal of a series, given what the last answer with it covered; none if the series has none.
pub(super) fn latest(
    key: &SeriesKey,
    rows: &RecordBatch,
    last: Option<Coverage>,
    change_set: ChangeSet,
) -> Option<String> {
    let signals = SignalColumns::of(rows, DateForm::Offset);
    let newest = signals.newest().next();
    // One without a date is the latest if the last answer had none.
    let undated = (0..signals.dates.len()).find(|&row| signals.dates.is_null(row));
    let undated = undated.filter(|_| newest.is_none() || last.is_some_and(|last| last.oldest().is_none()));
    let row = undated.or(newest)?;
    let date =
        signals.dates.is_valid(row).then(|| text_of(signals.dates.value(row), signals.offset(row), DateForm::Offset));
    let (ticker, period, regime) = series_of(key);
    let (signal, confidence) = (signals.signals[row], signals.confidences.value(row));
    let body = match (change_set.latest_form(), date) {
        (LatestForm::Indexed, Some(date)) => {
            to_json(&IndexedSignal { ticker, date: date.into(), period, regime, ei: signal, ci: confidence })
        }
        (_, date) => to_json(&LatestSignal { ticker, date: date.map(Cow::from), period, regime, signal, confidence }),
    };
    // Unknown fields of an entry of a history may have the names of fields that only a latest signal has.
    let others = extra_of(signals.extras, row).map(|extra| {
        let is_known = |name: &str| LATEST_FIELDS.contains(&name);
        object(fields(extra).into_iter().filter(|(name, _)| !is_known(name)))
    });
    Some(with_extra(body, others.as_deref()))
}

/// The fields of a latest signal, in both of its forms.
const LATEST_FIELDS: [&str; 8] = ["ticker", "date", "period", "regime", "signal", "confidence", "ei", "ci"];

/// The articles of a ticker, newest first.
pub(super) fn articles(rows: &RecordBatch) -> String {
    let dates = column(rows, "date").as_primitive::<TimestampMicrosecondType>();
    let offsets = column(rows, "utc_offset_minutes").as_primitive::<Int16Type>();
    let places = column(rows, "place").as_primitive::<Int32Type>();
    let scores = column(rows, "score").as_primitive::<Float64Type>();
    let text = |name: &str| column(rows, name).as_string::<i32>();
    let (titles, links, extras) = (text("title"), text("link"), text("extra"));
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by_key(|&row| Reverse((dates.value(row), places.value(row), row)));
    let record = |row: usize| {
        let offset = offsets.is_valid(row).then(|| offsets.value(row));
        let article = NewsArticle {
            date: text_of(dates.value(row), offset, DateForm::Day).into(),
            title: titles.value(row).into(),
            score: scores.is_valid(row).then(|| Score::Number(scores.value(row))),
            link: links.value(row).into(),
        };
        with_extra(to_json(&article), extra_of(extras, row))
    };
    list(order.into_iter().map(record))
}

/// The records of historical sentiment, newest day first; those without a date come last.
pub(super) fn sentiment_history(rows: &RecordBatch) -> String {
    let texts = column(rows, "record").as_string::<i32>();
    let places = column(rows, "place").as_primitive::<Int32Type>();
    let day = |row: usize| written_date(texts.value(row)).map(|date| date.micros.div_euclid(MICROS_PER_DAY));
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by_key(|&row| Reverse((day(row), places.value(row), row)));
    list(order.into_iter().map(|row| texts.value(row).to_owned()))
}

/// The sentiment summary of a ticker, the older shape if it is known in no other.
pub(super) fn summary(key: &SeriesKey, rows: &RecordBatch, change_set: ChangeSet) -> String {
    let text = |name: &str| column(rows, name).as_string::<i32>().value(0).to_owned();
    let has = |name: &str| column(rows, name).is_valid(0);
    let score = |role: &str| {
        let scores = column(rows, &format!("{role}_score")).as_primitive::<Float64Type>();
        Score::Number(if scores.is_valid(0) { scores.value(0) } else { f64::NAN })
    };
    let mut extra = extra_of(column(rows, "extra").as_string::<i32>(), 0).map(fields).unwrap_or_default();
    let mut take = |name: &str| {
        let index = extra.iter().position(|(known, _)| known == name)?;
        Some(extra.remove(index).1)
    };
    let (ticker, debtor) = (key.ticker.clone(), text("debtor").into());
    let is_trailing = change_set.summary_form() == SummaryForm::Trailing || !has("low_date");
    let body = if is_trailing && has("low_summary") {
        let crawled = take("crawl_date").and_then(|date| serde_json::from_str::<String>(date.get()).ok());
        let (link, title) =
            (|role: &str| text(&format!("{role}_link")).into(), |role: &str| text(&format!("{role}_summary")).into());
        to_json(&TrailingSummary {
            debtor,
            ticker,
            crawl_date: crawled.unwrap_or_default().into(),
            low_score_latest30: score("low"),
            low_link_latest30: link("low"),
            low_summary_latest30: title("low"),
            high_score_latest30: score("high"),
            high_link_latest30: link("high"),
            high_summary_latest30: title("high"),
            avg_score_latest30: score("avg"),
            avg_link_latest30: link("avg"),
            avg_summary_latest30: title("avg"),
        })
    } else {
        let mut reference = |role: &str| {
            let dates = column(rows, &format!("{role}_date")).as_primitive::<TimestampMicrosecondType>();
            let reference = ArticleReference {
                date: text_of(dates.value(0), None, DateForm::Day).into(),
                score: score(role),
                link: text(&format!("{role}_link")).into(),
            };
            let below = take(&format!("{role}_article"));
            let text = with_extra(to_json(&reference), below.as_deref().map(RawValue::get));
            RawValue::from_string(text).expect("it is JSON")
        };
        let [low_article, high_article, avg_article] = ["low", "high", "avg"].map(&mut reference);
        to_json(&SentimentSummary { debtor, ticker, low_article, high_article, avg_article })
    };
    with_extra(body, Some(&object(extra.into_iter())))
}

/// An object of some fields.
fn object(fields: impl Iterator<Item = (String, Box<RawValue>)>) -> String {
    let fields = fields.map(|(name, json)| format!("{}:{}", serde_json::Value::from(name), json.get()));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

impl DateTexts {
    /// The most texts to keep: more than the days of any history, unless dates have times.
    const MOST: usize = 1 << 16;

    /// Forgets all of them once they are too many.
    pub(super) fn bound(&mut self) {
        if self.0.len() > Self::MOST {
            self.0.clear();
        }
    }

    /// Adds the dates of a history.
    pub(super) fn add(&mut self, rows: &RecordBatch, form: HistoryForm) {
        let signals = SignalColumns::of(rows, form.dates);
        let mut known = self.newest_first();
        let newest = signals.newest().take(form.limit).map(|row| signals.date(row));
        let new: Vec<DateKey> = newest.filter(|date| known.get(*date).is_none()).collect();
        if !new.is_empty() {
            self.0.extend(new.into_iter().map(|date| (date, text_of(date.0, date.1, form.dates))));
            // Two rows of dates in order, which a stable sort merges.
            self.0.sort();
            self.0.dedup();
        }
    }

    fn newest_first(&self) -> Newest<'_> {
        Newest { texts: &self.0, older: self.0.len() }
    }
}

/// Finds texts of dates that mostly come newest first, each next to the one before.
struct Newest<'a> {
    texts: &'a [(DateKey, String)],
    /// The texts from here on are newer than the latest date that was looked for.
    older: usize,
}

impl<'a> Newest<'a> {
    fn get(&mut self, date: DateKey) -> Option<&'a str> {
        let next = self.older.checked_sub(1).and_then(|next| self.texts.get(next));
        if let Some((_, text)) = next.filter(|(known, _)| *known == date) {
            self.older -= 1;
            return Some(text);
        }
        let found = self.texts.binary_search_by(|(known, _)| known.cmp(&date));
        self.older = found.unwrap_or_else(|after| after);
        found.ok().map(|at| self.texts[at].1.as_str())
    }

    fn find(&mut self, date: DateKey) -> &'a str {
        self.get(date).unwrap_or_default()
    }
}

/// A date as the service writes it.
fn text_of(micros: i64, offset: Option<i16>, form: DateForm) -> String {
    let shift = TimeDelta::minutes(offset.unwrap_or_default().into());
    let date = DateTime::from_timestamp_micros(micros).unwrap_or_default().naive_utc();
    let local = date.checked_add_signed(shift).unwrap_or(date);
    if form == DateForm::Day && offset.is_none() && micros.rem_euclid(MICROS_PER_DAY) == 0 {
        return local.date().to_string();
    }
    let mut text = format!("{}T{}", local.date(), local.time());
    if let Some(minutes) = offset {
        let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
        text += &format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    rows.column_by_name(name).expect("known cells have the columns of their table")
}

/// The meaning of a closed set in each row.
fn choices<T: Copy>(rows: &RecordBatch, name: &str, meaning: impl Fn(&str) -> T) -> Vec<T> {
    let column = column(rows, name).as_dictionary::<Int8Type>();
    let meanings: Vec<T> =
        column.values().as_string::<i32>().iter().map(|text| meaning(text.unwrap_or_default())).collect();
    column.keys().values().iter().map(|&key| meanings[key as usize]).collect()
}

fn series_of(key: &SeriesKey) -> (Ticker, Period, Regime) {
    (key.ticker.clone(), key.period.unwrap_or_default(), key.regime.unwrap_or_default())
}

fn to_json(record: &impl Serialize) -> String {
    to_json_after(String::new(), record)
}

/// A record after some text.
fn to_json_after(before: String, record: &impl Serialize) -> String {
    let mut bytes = before.into_bytes();
    serde_json::to_writer(&mut bytes, record).expect("a record is text, numbers and lists, which serialize");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

fn list(records: impl Iterator<Item = String>) -> String {
    format!("[{}]", records.collect::<Vec<_>>().join(","))
}

/// The unknown fields of a row.
fn extra_of(extras: &StringArray, row: usize) -> Option<&str> {
    extras.is_valid(row).then(|| extras.value(row))
}

/// A record with its unknown fields, an object.
fn with_extra(mut record: String, extra: Option<&str>) -> String {
    if let Some(more) = extra.and_then(|extra| extra.trim().strip_prefix('{')).filter(|more| *more != "}") {
        record.truncate(record.len() - 1);
        record.push(',');
        record.push_str(more);
    }
    record
}

/// The fields of an object, in order.
fn fields(object: &str) -> Vec<(String, Box<RawValue>)> {
    struct Fields(Vec<(String, Box<RawValue>)>);

    impl<'de> Deserialize<'de> for Fields {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct InOrder;

            impl<'de> Visitor<'de> for InOrder {
                type Value = Fields;

                fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    formatter.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                    let mut fields = Vec::new();
                    while let Some(field) = map.next_entry()? {
                        fields.push(field);
                    }
                    Ok(Fields(fields))
                }
            }
            deserializer.deserialize_map(InOrder)
        }
    }
    serde_json::from_str(object).map(|Fields(fields)| fields).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{DateForm, fields, text_of, with_extra};

    #[test]
    fn dates_are_written_as_the_service_wrote_them() {
        let midnight = 1_795_132_800_000_000;
        for (micros, offset, form, text) in [
            (midnight, Some(0), DateForm::Offset, "2026-11-20T00:00:00+00:00"),
            (midnight, Some(-300), DateForm::Offset, "2026-11-19T19:00:00-05:00"),
            (midnight, Some(345), DateForm::Day, "2026-11-20T05:45:00+05:45"),
            (midnight, None, DateForm::Offset, "2026-11-20T00:00:00"),
            (midnight, None, DateForm::Day, "2026-11-20"),
            (midnight + 1, None, DateForm::Day, "2026-11-20T00:00:00.000001"),
        ] {
            assert_eq!(text_of(micros, offset, form), text);
        }
    }

    #[test]
    fn unknown_fields_follow_the_known_ones_as_they_were() {
        let record = || "{\"a\":1}".to_owned();
        assert_eq!(with_extra(record(), None), record());
        assert_eq!(with_extra(record(), Some("{}")), record());
        assert_eq!(with_extra(record(), Some(r#"{"z":[1e2],"b":0.10}"#)), r#"{"a":1,"z":[1e2],"b":0.10}"#);
        let all = fields(r#"{"z":[1e2],"b":0.10}"#);
        assert_eq!(
            all.iter().map(|(name, json)| (&**name, json.get())).collect::<Vec<_>>(),
            [("z", "[1e2]"), ("b", "0.10")]
        );
    }
}
