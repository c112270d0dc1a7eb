//! The history of one ticker, to a series.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int8Array, Int16Array, RecordBatch, TimestampMicrosecondArray};
use serde_json::value::RawValue;

use super::date::{self, Date};
use super::split::{reason_of, step};
use super::{Answer, Decoded};
use crate::interface::{HistoryEntry, SectorHistory, Signal};
use crate::tables::{Series, SeriesKey, choices};

/// An entry that could be typed, and its place in the history.
struct Entry {
    position: usize,
    date: Date,
    signal: Signal,
    confidence: f64,
}

/// Decodes what stands under one key of an answer.
pub(super) fn decode(answer: &Answer<'_>, key: &str, piece: &str) -> Decoded {
    let pointer = format!("/{}", step(key));
    let history = match history_of(answer, key, piece) {
        Ok(history) => history,
        Err(reason) => {
            let rejects = vec![answer.reject(Some(key), pointer, reason, piece)];
            return Decoded { rejects, ..Decoded::default() };
        }
    };
    let mut rejects = Vec::new();
    let mut set_aside = |position: usize, reason: String| {
        let pointer = format!("{pointer}/predictions/{position}");
        rejects.push(answer.reject(Some(key), pointer, reason, history.predictions[position].get()));
    };
    let mut entries = Vec::with_capacity(history.predictions.len());
    for (position, raw) in history.predictions.iter().enumerate() {
        match entry_of(answer, position, raw.get()) {
            Ok(entry) => entries.push(entry),
            Err(reason) => set_aside(position, reason),
        }
    }
    let entries = oldest_first(entries, &mut set_aside);
    let key = SeriesKey {
        ticker: history.ticker.clone(),
        period: history.period,
        regime: history.regime,
        source: answer.request.endpoint,
    };
    let series = Series { key, observed_at: answer.observed_at, rows: rows(&entries) };
    Decoded { series: vec![series], rejects, ..Decoded::default() }
}

/// The history under a key, if it is the one that was asked for.
fn history_of<'a>(answer: &Answer<'_>, key: &str, piece: &'a str) -> Result<SectorHistory<&'a RawValue>, String> {
    let history: SectorHistory<&RawValue> = serde_json::from_str(piece).map_err(|fault| reason_of(&fault))?;
    if history.ticker.as_str() != key {
        return Err(format!("the key is `{}` and the ticker `{}`", date::clipped(key), history.ticker));
    }
    let asked = answer.request;
    if asked.period.is_some_and(|period| period != history.period) {
        return Err(format!("the history is of period `{}`, which was not asked for", history.period));
    }
    if asked.regime.is_some_and(|regime| regime != history.regime) {
        return Err(format!("the history is of regime `{}`, which was not asked for", history.regime));
    }
    Ok(history)
}

fn entry_of(answer: &Answer<'_>, position: usize, raw: &str) -> Result<Entry, String> {
    let entry: HistoryEntry<'_> = serde_json::from_str(raw).map_err(|fault| reason_of(&fault))?;
    let date = date::read(&entry.date, answer.dates)?;
    Ok(Entry { position, date, signal: entry.signal, confidence: entry.confidence })
}

/// Orders entries by date. Of two entries of one date the one that is listed first is kept.
fn oldest_first(mut entries: Vec<Entry>, set_aside: &mut impl FnMut(usize, String)) -> Vec<Entry> {
    entries.sort_unstable_by_key(|entry| (entry.date.micros, entry.position));
    entries.dedup_by(|later, kept| {
        let is_repeated = later.date.micros == kept.date.micros;
        if is_repeated {
            let reason =
                format!("the date {} stands twice; entry {} is kept", date::show(kept.date.micros), kept.position);
            set_aside(later.position, reason);
        }
        is_repeated
    });
    entries
}

fn rows(entries: &[Entry]) -> RecordBatch {
    let signals: Int8Array = entries.iter().map(|entry| Some(entry.signal as i8)).collect();
    let offsets: Int16Array = entries.iter().map(|entry| entry.date.offset_minutes).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values(entries.iter().map(|entry| entry.date.micros))),
        Arc::new(offsets),
        choices(signals, Signal::ALL.map(Signal::as_str)),
        Arc::new(Float64Array::from_iter_values(entries.iter().map(|entry| entry.confidence))),
    ];
    RecordBatch::try_new(Series::row_schema(), columns).expect("the columns are made by the schema")
}
