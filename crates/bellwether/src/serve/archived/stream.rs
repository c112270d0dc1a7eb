//! Histories of many tickers, written while they are sent: memory holds those of a few.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::records::{DateTexts, HistoryForm, history};
use crate::archive::{SeriesReader, View};
use crate::error::Result;
use crate::tables::SeriesKey;

/// The tickers that are read at once.
const TICKERS_AT_ONCE: usize = 16;

/// The most parts to write ahead of sending.
const AHEAD: usize = 2;

/// Some series with their known rows.
type Known = Result<Vec<(SeriesKey, RecordBatch)>>;

/// An object with the histories of some series, which are in order, by their tickers.
pub(super) fn histories(
    reader: Arc<SeriesReader>,
    view: View,
    mut series: Vec<SeriesKey>,
    form: HistoryForm,
) -> Result<Response> {
    series.dedup_by(|next, one| next.ticker == one.ticker);
    let mut reader = Reader { reader, view, left: series.into() };
    let first = reader.next().transpose()?;
    let (send, receive) = mpsc::channel::<Result<String, io::Error>>(AHEAD);
    spawn_blocking(move || {
        let is_taken = |part: Result<String, io::Error>| send.blocking_send(part).is_ok();
        let mut writer = Writer { form, texts: DateTexts::default(), separator: "" };
        let mut known = first.map(Ok);
        let mut is_open = is_taken(Ok("{".to_owned()));
        while let Some(part) = known.filter(|_| is_open) {
            // The next tickers are read while these are written.
            let (text, next) = rayon::join(|| part.map(|part| writer.write(part)), || reader.next());
            let is_whole = text.is_ok();
            is_open = is_taken(text.map_err(io::Error::other)) && is_whole;
            known = next;
        }
        if is_open {
            is_taken(Ok("}".to_owned()));
        }
    });
    let parts = stream::unfold(receive, async |mut receive| receive.recv().await.map(|part| (part, receive)));
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response())
}

/// Reads the series a few tickers at a time.
struct Reader {
    reader: Arc<SeriesReader>,
    view: View,
    left: VecDeque<SeriesKey>,
}

impl Reader {
    fn next(&mut self) -> Option<Known> {
        let some: Vec<SeriesKey> = self.left.drain(..TICKERS_AT_ONCE.min(self.left.len())).collect();
        (!some.is_empty()).then(|| self.reader.known(&self.view, &some))
    }
}

/// Writes the members of the object.
struct Writer {
    form: HistoryForm,
    texts: DateTexts,
    separator: &'static str,
}

impl Writer {
    fn write(&mut self, known: Vec<(SeriesKey, RecordBatch)>) -> String {
        self.texts.bound();
        known.iter().for_each(|(_, rows)| self.texts.add(rows, self.form));
        let (form, texts) = (self.form, &self.texts);
        // A ticker needs no escaping in JSON.
        let member =
            |(key, rows): (SeriesKey, RecordBatch)| format!("\"{}\":{}", key.ticker, history(&key, &rows, form, texts));
        let members: Vec<String> = known.into_par_iter().map(member).collect();
        let separator = if members.is_empty() { "" } else { std::mem::replace(&mut self.separator, ",") };
        format!("{separator}{}", members.join(","))
    }
}
