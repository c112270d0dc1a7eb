//! Decodes the bytes of an answer into typed columns.
//!
//! A body is split into pieces as it arrives: its tickers, its articles, or a single record. A few megabytes of whole
//! pieces are decoded at a time, in parallel, or on one thread if enough other answers keep every core busy. Rows are
//! delivered in the order of the body. So memory is bounded by a constant, regardless of the size of an answer.
//!
//! The output is [`Series`](crate::tables::Series): a key, and its rows in the columns of
//! [`Table::listed_schema`](crate::tables::Table::listed_schema). A date with an offset becomes an instant in UTC; one
//! without is kept as written, and its dataset decides later which naive date it is.
//!
//! An invalid record is rejected with its position, its text and the reason; its neighbors are kept. If a ticker
//! occurs twice in an answer, its first history is kept and the others are rejected. Unknown fields are counted. A body
//! of another shape than its operation's is an error that names a byte. Nothing is guessed or dropped silently.
//!
//! `scan` finds the pieces (`skip` finds their ends), `batch` collects them within bounds, and `stream` turns a body into
//! batches. `history`, `articles`, `summary` and `listing` decode the kinds of answers. `record` reads any record; `template` is a fast path for uniform entries; `harness` checks that they agree.
//! No file imports this one: `answer` is the input of every decoder, and `notes` has the output.

mod answer;
mod articles;
mod batch;
mod cursor;
#[cfg(any(test, feature = "harness"))]
pub mod harness;
mod history;
mod listing;
mod notes;
mod number;
mod record;
mod scan;
mod skip;
mod stream;
mod summary;
mod template;
#[cfg(test)]
mod tests;
mod truncate;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

pub use answer::{Answer, Rules};
pub use notes::{AnswerPart, Decoded};
pub(crate) use record::{as_object, read as read_fields};
pub use stream::DecodeFault;

use crate::interface::{Endpoint, Ticker};
use batch::{Batch, Bounds, Piece, PiecePosition};
use scan::Shape;
use stream::{BodyBatches, GROUP_BYTES};

/// What decodes some pieces of a body.
type Decoder = fn(&Answer<'_>, &[Piece<'_>]) -> Decoded;

impl Answer<'_> {
    /// Reads a body to its end and delivers its contents in order, in one or more parts.
    ///
    /// Blocks while reading; large batches are decoded on rayon's threads.
    ///
    /// # Errors
    ///
    /// If the body is truncated, has another shape than the operation's, or a part cannot be delivered. The parts
    /// delivered before cover only the start of the body.
    ///
    /// # Panics
    ///
    /// If a request for one ticker has no ticker; a plan never creates one.
    pub fn decode<E>(
        &self,
        body: impl BufRead,
        mut deliver: impl FnMut(Decoded) -> Result<(), E>,
    ) -> Result<(), DecodeFault<E>> {
        let in_progress = InProgress::begin();
        let mut batches = BodyBatches::new(body, self.form().0, &self.rules.unwrap, Bounds::ANSWER);
        let mut seen = HashSet::new();
        while let Some(batch) = batches.next(|| in_progress.batch_bytes())? {
            deliver(self.batch(batch, &mut seen)).map_err(DecodeFault::Deliver)?;
        }
        Ok(())
    }

    /// Decodes a batch, given the tickers that were seen in the body before.
    fn batch(&self, batch: &Batch, seen: &mut HashSet<Ticker>) -> Decoded {
        let mut pieces = batch.pieces();
        for piece in pieces.iter_mut().filter(|piece| piece.site == PiecePosition::Key) {
            // Invalid ones are rejected anyway and not remembered.
            let ticker = piece.name().ok().and_then(|name| name.parse().ok());
            piece.is_repeated = ticker.is_some_and(|ticker| !seen.insert(ticker));
        }
        match stream::groups(&pieces)[..] {
            // Most answers are too small to be worth waking a thread for.
            [only] => self.group(only),
            ref groups => {
                let decoded: Vec<Decoded> = groups.par_iter().map(|group| self.group(group)).collect();
                let mut all = Decoded::default();
                decoded.into_iter().for_each(|next| all.append(next));
                all
            }
        }
    }

    fn group(&self, pieces: &[Piece<'_>]) -> Decoded {
        let (_, decode) = self.form();
        if self.rules.fields.is_empty() {
            return decode(self, pieces);
        }
        let renamed = pieces.iter().map(|piece| piece.text().ok().map(|text| rename(text, &self.rules.fields)));
        let renamed: Vec<Option<Cow<'_, str>>> = renamed.collect();
        let pieces = pieces.iter().zip(&renamed).map(|(piece, text)| match text {
            Some(text) => piece.saying(text.as_bytes()),
            None => *piece,
        });
        decode(self, &pieces.collect::<Vec<_>>())
    }

    /// The shape of the body, and what decodes its pieces.
    fn form(&self) -> (Shape, Decoder) {
        match self.request.endpoint {
            Endpoint::SignalsHistoryAll
            | Endpoint::SignalsHistoryBatchedAll
            | Endpoint::SignalsHistoryBatched
            | Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched => (Shape::Fields, history::decode_many),
            Endpoint::SignalsHistory | Endpoint::LegacyHistory => (Shape::Record, history::decode_one),
            Endpoint::Signals | Endpoint::LegacySignals => (Shape::Record, history::decode_latest),
            Endpoint::SocialSentiment => (Shape::Record, summary::decode),
            Endpoint::NewsArticles => (Shape::Elements, articles::decode),
            Endpoint::HistoricalSentiment => (Shape::Anything, listing::records),
            Endpoint::TickersAvailable => (Shape::Elements, listing::tickers),
        }
    }
}

static ANSWERS: AtomicUsize = AtomicUsize::new(0);

/// An answer being decoded, until the value is dropped.
///
/// With as many answers as processors, each is decoded by the thread that reads it, a few pieces at a time, while they are
/// still in its caches and without waking other threads. With fewer, all threads decode each answer.
#[derive(Debug)]
struct InProgress(());

impl InProgress {
    fn begin() -> Self {
        ANSWERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Bytes of pieces to decode together now. The result does not depend on it.
    fn batch_bytes(&self) -> usize {
        let is_each_busy = ANSWERS.load(Ordering::Relaxed) >= rayon::current_num_threads();
        if is_each_busy { GROUP_BYTES } else { Bounds::ANSWER.batch_bytes }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        ANSWERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// JSON whose fields have other names, at any depth. Text that is not JSON stays as wrong as it is.
fn rename<'t>(text: &'t str, names: &BTreeMap<String, String>) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    let (mut renamed, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let start = at + quote + 1;
        let Some(end) = end_of_string(bytes, start) else { break };
        at = end + 1;
        let is_name = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if let Some(name) = names.get(&text[start..end]).filter(|_| is_name) {
            renamed.push_str(&text[copied..start]);
            renamed.push_str(name);
            copied = end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    renamed.push_str(&text[copied..]);
    Cow::Owned(renamed)
}

/// The closing quote of a string whose text starts somewhere.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}
