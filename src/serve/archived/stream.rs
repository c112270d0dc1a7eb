//! Histories of many tickers, written while they are sent: memory holds those of a few.

use std::io;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::records::{DateTexts, HistoryForm, history};
use crate::archive::{KnownTickers, View};
use crate::error::{Error, Result};
use crate::interface::Ticker;
use crate::tables::{SeriesKey, Table};

/// The tickers that are read at once.
const TICKERS_AT_ONCE: usize = 8;

/// The most parts to write ahead of sending.
const AHEAD: usize = 2;

/// An object with the histories of some series, which are in order, by their tickers.
///
/// # Errors
///
/// If a file cannot be opened, or the first tickers cannot be read.
pub(super) fn histories(view: &View, mut series: Vec<SeriesKey>, form: HistoryForm) -> Result<Response> {
    series.dedup_by(|next, one| next.ticker == one.ticker);
    let mut writer =
        Writer { known: view.known_tickers(Table::Signals)?, form, texts: DateTexts::default(), is_first: true };
    let mut parts = series.chunks(TICKERS_AT_ONCE);
    let first = parts.next().map_or(Ok(String::new()), |part| writer.write(part))?;
    let rest: Vec<SeriesKey> = parts.flatten().cloned().collect();
    let (send, receive) = mpsc::channel::<Result<String, io::Error>>(AHEAD);
    spawn_blocking(move || {
        let send_or_stop = |part: Result<String, Error>| send.blocking_send(part.map_err(io::Error::other)).is_ok();
        let mut is_open = send_or_stop(Ok("{".to_owned() + &first));
        for part in rest.chunks(TICKERS_AT_ONCE) {
            is_open = is_open && {
                let part = writer.write(part);
                let is_whole = part.is_ok();
                send_or_stop(part) && is_whole
            };
        }
        if is_open {
            send_or_stop(Ok("}".to_owned()));
        }
    });
    let parts = stream::unfold(receive, async |mut receive| receive.recv().await.map(|part| (part, receive)));
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response())
}

/// Writes the members of the object.
struct Writer {
    known: KnownTickers,
    form: HistoryForm,
    texts: DateTexts,
    is_first: bool,
}

impl Writer {
    fn write(&mut self, series: &[SeriesKey]) -> Result<String> {
        let tickers: Vec<Ticker> = series.iter().map(|key| key.ticker.clone()).collect();
        let known = self.known.next(&tickers)?;
        let mut text = String::new();
        for key in series {
            let Ok(place) = known.binary_search_by(|(known, _)| known.cmp(key)) else { continue };
            self.texts.bound();
            if !std::mem::take(&mut self.is_first) {
                text.push(',');
            }
            // A ticker needs no escaping in JSON.
            text += &format!("\"{}\":", key.ticker);
            text += &history(key, &known[place].1, self.form, &mut self.texts);
        }
        Ok(text)
    }
}
