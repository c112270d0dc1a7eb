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
//! `scan` finds the pieces (`skip` and `block` find their ends), `batch` collects them within bounds, and `stream`
//! turns a body into batches. `history`, `latest`, `articles`, `summary` and `listing` decode the kinds of answers.
//! `unwrap` finds the answer in an object that wraps it, and `rename` gives its fields the names of the interface. `record`
//! reads any record; `template` and `article` are fast paths for uniform entries and plain articles; `harness`
//! checks that they agree. No file imports this one: `answer` is the input of every decoder, and `decoded` the output.

mod answer;
mod article;
mod articles;
mod batch;
mod block;
mod concurrency;
mod cursor;
mod decoded;
mod entry;
#[cfg(any(test, feature = "harness"))]
pub mod harness;
mod history;
mod latest;
mod listing;
mod notes;
mod number;
mod record;
mod rename;
mod rows;
mod scan;
mod skip;
mod stream;
mod summary;
mod template;
#[cfg(test)]
mod tests;
mod truncate;
mod unwrap;

use std::borrow::Cow;
use std::io::BufRead;

use rayon::prelude::*;

pub use answer::{Answer, Rules};
pub use decoded::{AnswerPart, Decoded};
pub(crate) use record::{as_object, read as read_fields};
pub use stream::DecodeFault;

use crate::interface::Endpoint;
use batch::{Batch, Bounds, Piece, SeenTickers};
use concurrency::InProgress;
use scan::Shape;
use stream::BodyBatches;

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
        let mut batches = BodyBatches::new(body, self.shape(), Bounds::ANSWER).unwrapping(&self.rules.unwrap);
        let mut seen = SeenTickers::default();
        while let Some(batch) = batches.next(|| in_progress.batch_bytes())? {
            deliver(self.batch(batch, &mut seen)).map_err(DecodeFault::Deliver)?;
        }
        Ok(())
    }

    fn batch(&self, batch: &Batch, seen: &mut SeenTickers) -> Decoded {
        let mut pieces = batch.pieces();
        seen.mark(&mut pieces);
        match stream::groups(&pieces)[..] {
            // Most answers are too small to be worth waking a thread for.
            [only] => self.group(only),
            ref groups => {
                let decoded: Vec<Decoded> = groups.par_iter().map(|group| self.group(group)).collect();
                decoded.into_iter().fold(Decoded::default(), Decoded::followed_by)
            }
        }
    }

    fn group(&self, pieces: &[Piece<'_>]) -> Decoded {
        if self.rules.fields.is_empty() {
            return self.decoded(pieces);
        }
        let renamed = pieces.iter().map(|piece| piece.text().ok().map(|text| rename::fields(text, &self.rules.fields)));
        let renamed: Vec<Option<Cow<'_, str>>> = renamed.collect();
        let pieces = pieces.iter().zip(&renamed).map(|(piece, text)| match text {
            Some(text) => piece.saying(text.as_bytes()),
            None => *piece,
        });
        self.decoded(&pieces.collect::<Vec<_>>())
    }

    fn decoded(&self, pieces: &[Piece<'_>]) -> Decoded {
        match self.request.endpoint {
            Endpoint::SignalsHistoryAll
            | Endpoint::SignalsHistoryBatchedAll
            | Endpoint::SignalsHistoryBatched
            | Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched => history::decode_many(self, pieces),
            Endpoint::SignalsHistory | Endpoint::LegacyHistory => history::decode_one(self, pieces),
            Endpoint::Signals | Endpoint::LegacySignals => latest::decode(self, pieces),
            Endpoint::SocialSentiment => summary::decode(self, pieces),
            Endpoint::NewsArticles => articles::decode(self, pieces),
            Endpoint::HistoricalSentiment => listing::records(self, pieces),
            Endpoint::TickersAvailable => listing::tickers(self, pieces),
        }
    }

    fn shape(&self) -> Shape {
        match self.request.endpoint {
            Endpoint::SignalsHistoryAll
            | Endpoint::SignalsHistoryBatchedAll
            | Endpoint::SignalsHistoryBatched
            | Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched => Shape::Fields,
            Endpoint::SignalsHistory
            | Endpoint::LegacyHistory
            | Endpoint::Signals
            | Endpoint::LegacySignals
            | Endpoint::SocialSentiment => Shape::Record,
            Endpoint::NewsArticles | Endpoint::TickersAvailable => Shape::Elements,
            Endpoint::HistoricalSentiment => Shape::Anything,
        }
    }
}
