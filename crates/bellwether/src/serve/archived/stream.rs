//! Histories of many tickers, written while they are sent: memory holds those of a few.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use futures_util::stream;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::records::{DateTexts, HistoryForm, history};
use crate::archive::{SeriesReader, View};
use crate::error::Result;
use crate::net::listen::{Answer, stream};
use crate::tables::SeriesKey;

/// The tickers that are read at once.
const TICKERS_AT_ONCE: usize = 16;

/// The most histories to write ahead of sending.
const AHEAD: usize = 2 * TICKERS_AT_ONCE;

/// Some series with their known rows.
type Known = Result<Vec<(SeriesKey, RecordBatch)>>;

/// An object with the histories of some series, which are in order, by their tickers.
pub(super) fn histories(
    reader: Arc<SeriesReader>,
    view: View,
    mut series: Vec<SeriesKey>,
    form: HistoryForm,
) -> Result<Answer> {
    series.dedup_by(|next, one| next.ticker == one.ticker);
    let mut reader = Reader { reader, view, left: series.into() };
    let first = reader.next().transpose()?;
    let (send, receive) = mpsc::channel::<io::Result<Bytes>>(AHEAD);
    spawn_blocking(move || {
        let is_taken = |part: io::Result<Bytes>| send.blocking_send(part).is_ok();
        let mut writer = Writer { form, texts: DateTexts::default(), separator: "" };
        let mut known = first.map(Ok);
        let mut is_open = is_taken(Ok(Bytes::from_static(b"{")));
        while let Some(part) = known.filter(|_| is_open) {
            // The next tickers are read while these are written.
            let (members, next) = rayon::join(|| part.map(|part| writer.write(part)), || reader.next());
            is_open = match members {
                Ok(members) => members.into_iter().all(|member| is_taken(Ok(member.into()))),
                Err(error) => {
                    is_taken(Err(io::Error::other(error)));
                    false
                }
            };
            known = next;
        }
        if is_open {
            is_taken(Ok(Bytes::from_static(b"}")));
        }
    });
    let parts = stream::unfold(receive, async |mut receive| receive.recv().await.map(|part| (part, receive)));
    Ok(stream("application/json", parts))
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
        (!some.is_empty()).then(|| self.reader.known_cells(&self.view, &some))
    }
}

/// Writes the members of the object.
struct Writer {
    form: HistoryForm,
    texts: DateTexts,
    separator: &'static str,
}

impl Writer {
    fn write(&mut self, known: Vec<(SeriesKey, RecordBatch)>) -> Vec<String> {
        self.texts.bound();
        known.iter().for_each(|(_, rows)| self.texts.add(rows, self.form));
        let (form, texts) = (self.form, &self.texts);
        let separators = std::iter::once(self.separator).chain(std::iter::repeat(","));
        let members: Vec<_> = known.into_iter().zip(separators).collect();
        if !members.is_empty() {
            self.separator = ",";
        }
        // A ticker needs no escaping in JSON.
        let member = |((key, rows), separator): ((SeriesKey, RecordBatch), &str)| {
            history(format!("{separator}\"{}\":", key.ticker), &key, &rows, form, texts)
        };
        members.into_par_iter().map(member).collect()
    }
}
