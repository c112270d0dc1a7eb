//! Known cells as records of the interface.
//!
//! What an answer had besides the fields of the interface was kept as text, and is written back as it was. Scores are
//! numbers here: whether one was sent as a string is not archived. A date without an offset is written without one, and so
//! is one of the batched shape if another operation said its offset.

use std::borrow::Cow;
use std::cmp::Reverse;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, TimeDelta};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::Coverage;
use crate::decode::{as_object, read_fields};
use crate::error::Result;
use crate::interface::{
    ArticleReference, ChangeSet, Endpoint, HistoryEntry, HistoryKey, IndexedSignal, LatestForm, LatestSignal,
    NewsArticle, Score, SentimentSummary, Signal, SummaryForm, TrailingSummary,
};
use crate::serve::answer;
use crate::serve::question::{self, Question};
use crate::tables::{SeriesKey, written_date};
use crate::time::MICROS_PER_DAY;

/// The fields of a latest signal, in both of its forms.
const LATEST_FIELDS: [&str; 8] = ["ticker", "date", "period", "regime", "signal", "confidence", "ei", "ci"];

/// The history of a series, newest first. In a batch, offsets of dates are written only if they came in the batched shape,
/// which need not have them.
pub(super) fn history(key: &SeriesKey, rows: &RecordBatch, question: &Question, change_set: ChangeSet) -> String {
    let form = match (question.endpoint.is_of_one_ticker(), &question.sector) {
        (true, _) => change_set.history_key(),
        (false, Some(_)) => HistoryKey::Predictions,
        (false, None) => HistoryKey::Items,
    };
    let is_batch = !question.endpoint.is_of_one_ticker() && question.sector.is_none();
    let batched = [Endpoint::SignalsHistoryBatchedAll, Endpoint::SignalsHistoryBatched].map(Endpoint::as_str);
    let mut entries = Vec::new();
    for row in (0..rows.num_rows()).rev().filter(|&row| column(rows, "date").is_valid(row)).take(question.limit) {
        let source = text(rows, "source", row).unwrap_or_default();
        let offset = offset(rows, row).filter(|_| !is_batch || batched.contains(&source));
        let (signal, confidence) = signal(rows, row);
        let entry = HistoryEntry { date: time_text(micros(rows, "date", row), offset).into(), signal, confidence };
        entries.push(raw(with_extra(&entry, text(rows, "extra", row))));
    }
    let (period, regime) = (key.period.unwrap_or_default(), key.regime.unwrap_or_default());
    answer::history(form, key.ticker.clone(), period, regime, entries)
}

/// The latest signal of a series, given what the last answer with it covered; none if the series has none.
pub(super) fn latest(
    key: &SeriesKey,
    rows: &RecordBatch,
    last: impl FnOnce() -> Result<Option<Coverage>>,
    change_set: ChangeSet,
) -> Result<Option<String>> {
    let dates = column(rows, "date");
    let newest = (0..rows.num_rows()).rev().find(|&row| dates.is_valid(row));
    let undated = (0..rows.num_rows()).find(|&row| dates.is_null(row));
    // One without a date is the latest if the last answer had none.
    let is_undated = newest.is_none() || undated.is_some() && last()?.is_some_and(|last| last.oldest().is_none());
    let Some(row) = undated.filter(|_| is_undated).or(newest) else { return Ok(None) };
    let date = dates.is_valid(row).then(|| Cow::from(time_text(micros(rows, "date", row), offset(rows, row))));
    let (ticker, period, regime) = (key.ticker.clone(), key.period.unwrap_or_default(), key.regime.unwrap_or_default());
    let (signal, confidence) = signal(rows, row);
    // Unknown fields of an entry of a history may have the names of fields that only a latest signal has.
    let (_, others) = fields(text(rows, "extra", row), LATEST_FIELDS);
    Ok(Some(match (change_set.latest_form(), date) {
        (LatestForm::Indexed, Some(date)) => {
            with_extra(&IndexedSignal { ticker, date, period, regime, ei: signal, ci: confidence }, others.as_deref())
        }
        (_, date) => with_extra(&LatestSignal { ticker, date, period, regime, signal, confidence }, others.as_deref()),
    }))
}

/// The articles of a ticker, newest first.
pub(super) fn articles(rows: &RecordBatch) -> String {
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by_key(|&row| Reverse((micros(rows, "date", row), number::<Int32Type>(rows, "place", row), row)));
    let record = |row: usize| {
        let article = NewsArticle {
            date: day_text(micros(rows, "date", row), offset(rows, row)).into(),
            title: text(rows, "title", row).unwrap_or_default().into(),
            score: number::<Float64Type>(rows, "score", row).map(Score::Number),
            link: text(rows, "link", row).unwrap_or_default().into(),
        };
        with_extra(&article, text(rows, "extra", row))
    };
    format!("[{}]", order.into_iter().map(record).collect::<Vec<_>>().join(","))
}

/// The records of historical sentiment, newest day first; those without a date come last.
pub(super) fn sentiment_history(rows: &RecordBatch) -> String {
    let record = |row: usize| text(rows, "record", row).unwrap_or_default();
    let day = |row: usize| written_date(record(row)).map(|date| date.micros.div_euclid(MICROS_PER_DAY));
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by_key(|&row| Reverse((day(row), number::<Int32Type>(rows, "place", row), row)));
    format!("[{}]", order.into_iter().map(record).collect::<Vec<_>>().join(","))
}

/// The sentiment summary of a ticker, the older shape if it is known in no other.
pub(super) fn summary(key: &SeriesKey, rows: &RecordBatch, change_set: ChangeSet) -> String {
    let of = |role: &str, name: &str| text(rows, &format!("{role}_{name}"), 0).unwrap_or_default().into();
    let score =
        |role: &str| Score::Number(number::<Float64Type>(rows, &format!("{role}_score"), 0).unwrap_or(f64::NAN));
    let (ticker, debtor) = (key.ticker.clone(), text(rows, "debtor", 0).unwrap_or_default().into());
    let is_trailing = change_set.summary_form() == SummaryForm::Trailing || column(rows, "low_date").is_null(0);
    if is_trailing && column(rows, "low_summary").is_valid(0) {
        let ([crawled], others) = fields(text(rows, "extra", 0), ["crawl_date"]);
        let record = TrailingSummary {
            debtor,
            ticker,
            crawl_date: crawled.and_then(|date| serde_json::from_str(date).ok()).unwrap_or_default(),
            low_score_latest30: score("low"),
            low_link_latest30: of("low", "link"),
            low_summary_latest30: of("low", "summary"),
            high_score_latest30: score("high"),
            high_link_latest30: of("high", "link"),
            high_summary_latest30: of("high", "summary"),
            avg_score_latest30: score("avg"),
            avg_link_latest30: of("avg", "link"),
            avg_summary_latest30: of("avg", "summary"),
        };
        return with_extra(&record, others.as_deref());
    }
    let (below, others) = fields(text(rows, "extra", 0), ["low_article", "high_article", "avg_article"]);
    let article = |role: &str, below: Option<&str>| {
        let date = day_text(micros(rows, &format!("{role}_date"), 0), None).into();
        raw(with_extra(&ArticleReference { date, score: score(role), link: of(role, "link") }, below))
    };
    let [low_article, high_article, avg_article] =
        [("low", below[0]), ("high", below[1]), ("avg", below[2])].map(|(role, below)| article(role, below));
    with_extra(&SentimentSummary { debtor, ticker, low_article, high_article, avg_article }, others.as_deref())
}

fn column<'r>(rows: &'r RecordBatch, name: &str) -> &'r ArrayRef {
    rows.column_by_name(name).expect("known cells have the columns of their table")
}

/// The text of a cell, also of a closed set.
fn text<'r>(rows: &'r RecordBatch, name: &str, row: usize) -> Option<&'r str> {
    let column = column(rows, name);
    match column.as_dictionary_opt::<Int8Type>() {
        Some(set) => Some(set.values().as_string::<i32>().value(usize::try_from(set.keys().value(row)).ok()?)),
        None => column.is_valid(row).then(|| column.as_string::<i32>().value(row)),
    }
}

fn number<T: ArrowPrimitiveType>(rows: &RecordBatch, name: &str, row: usize) -> Option<T::Native> {
    let column = column(rows, name).as_primitive::<T>();
    column.is_valid(row).then(|| column.value(row))
}

fn micros(rows: &RecordBatch, name: &str, row: usize) -> i64 {
    number::<TimestampMicrosecondType>(rows, name, row).unwrap_or_default()
}

/// The offset from UTC that a date was written with, in minutes.
fn offset(rows: &RecordBatch, row: usize) -> Option<i16> {
    number::<Int16Type>(rows, "utc_offset_minutes", row)
}

fn signal(rows: &RecordBatch, row: usize) -> (Signal, f64) {
    let signal = text(rows, "signal", row).and_then(|text| text.parse().ok()).unwrap_or(Signal::Sell);
    (signal, number::<Float64Type>(rows, "confidence", row).unwrap_or(f64::NAN))
}

/// A date as the service writes it, with its time: `2026-11-20T00:00:00+00:00`.
fn time_text(micros: i64, offset: Option<i16>) -> String {
    let date = DateTime::from_timestamp_micros(micros).unwrap_or_default().naive_utc();
    let local = date.checked_add_signed(TimeDelta::minutes(offset.unwrap_or_default().into())).unwrap_or(date);
    let mut text = format!("{}T{}", local.date(), local.time());
    if let Some(minutes) = offset {
        let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
        text += &format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text
}

/// A date as the service writes it: `2026-11-20` if it has no time and no offset.
fn day_text(micros: i64, offset: Option<i16>) -> String {
    let mut text = time_text(micros, offset);
    if offset.is_none() && micros.rem_euclid(MICROS_PER_DAY) == 0 {
        text.truncate(text.len() - "T00:00:00".len());
    }
    text
}

/// The JSON of some unknown fields, and an object of the others, in order.
fn fields<'e, const N: usize>(
    extra: Option<&'e str>,
    names: [&'static str; N],
) -> ([Option<&'e str>; N], Option<String>) {
    let (named, others) = read_fields(extra.unwrap_or("{}"), names).expect("unknown fields are kept as an object");
    (named.map(|field| field.json().ok()), as_object(others.iter().map(|(name, json)| (&**name, *json))))
}

/// A record with its unknown fields, an object.
fn with_extra(record: &impl Serialize, extra: Option<&str>) -> String {
    let mut text = question::text(record);
    if let Some(more) = extra.and_then(|extra| extra.trim().strip_prefix('{')).filter(|more| *more != "}") {
        text.truncate(text.len() - 1);
        text = text + "," + more;
    }
    text
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("a record is JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{day_text, fields, time_text, with_extra};

    #[test]
    fn dates_are_written_as_the_service_wrote_them() {
        let midnight = 1_795_132_800_000_000;
        for (micros, offset, text) in [
            (midnight, Some(0), "2026-11-20T00:00:00+00:00"),
            (midnight, Some(-300), "2026-11-19T19:00:00-05:00"),
            (midnight, None, "2026-11-20T00:00:00"),
        ] {
            assert_eq!(time_text(micros, offset), text);
        }
        for (micros, offset, text) in [
            (midnight, Some(345), "2026-11-20T05:45:00+05:45"),
            (midnight, None, "2026-11-20"),
            (midnight + 1, None, "2026-11-20T00:00:00.000001"),
        ] {
            assert_eq!(day_text(micros, offset), text);
        }
    }

    #[test]
    fn unknown_fields_follow_the_known_ones_as_they_were() {
        let record = json!({"a": 1});
        assert_eq!(with_extra(&record, None), r#"{"a":1}"#);
        assert_eq!(with_extra(&record, Some("{}")), r#"{"a":1}"#);
        assert_eq!(with_extra(&record, Some(r#"{"z":[1e2],"b":0.10}"#)), r#"{"a":1,"z":[1e2],"b":0.10}"#);
        let read = fields(Some(r#"{"z":[1e2],"m":"x","b":0.10}"#), ["m", "n"]);
        assert_eq!(read, ([Some("\"x\""), None], Some(r#"{"z":[1e2],"b":0.10}"#.to_owned())));
    }
}
