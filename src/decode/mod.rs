//! From the bytes of an answer to typed columns.
//!
//! A body is cut into pieces as it arrives: its tickers, its articles, or the single record that it is. A few megabytes of
//! whole pieces are decoded at a time, in parallel, or on one thread if enough other answers keep every core busy. Rows are
//! delivered in the order of the body. So memory is bounded by a constant, whatever the size of an answer.
//!
//! What is typed comes as [`Series`](crate::tables::Series): one key, and its rows in the columns of
//! [`Table::listed_schema`](crate::tables::Table::listed_schema). A date with an offset becomes an instant in UTC, one
//! without is kept as written; which naive date a dataset makes of it is decided later.
//!
//! A record that cannot be typed is rejected with its place, its text and the reason; its neighbors are kept. If a ticker
//! occurs twice in an answer, its first history is kept and the others are rejected. Unknown fields are counted. A body
//! without the shape of its operation fails as a whole, at a byte. Nothing is guessed, and nothing is dropped silently.
//!
//! `scan` finds the pieces (`skip` and `block` find where each ends), `batch` collects them within bounds, and `stream`
//! turns a body into batches. `history`, `latest`, `articles`, `summary` and `listing` are the forms of answers. `record` reads any
//! record; `template` and `article` are fast paths for entries written alike and for plain articles; `harness` proves that
//! they agree. No file imports this one: `answer` is the input of all forms, and `decoded` their output.

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
pub(crate) mod harness;
mod history;
mod latest;
mod listing;
mod notes;
mod number;
mod record;
mod rows;
mod scan;
mod skip;
mod stream;
mod summary;
mod template;
#[cfg(test)]
mod tests;
mod truncate;

use std::io::BufRead;

use rayon::prelude::*;

pub use answer::{Answer, Rules};
pub use decoded::{AnswerPart, Decoded};
pub use stream::Fault;

use crate::interface::Endpoint;
use batch::{Batch, Bounds, Met, Piece};
use concurrency::InProgress;
use scan::Shape;
use stream::BodyBatches;

impl Answer<'_> {
    /// Reads a body to its end and delivers what it says as it comes: at least once, and in the order of the body.
    ///
    /// It blocks while it reads, and decodes on rayon's threads where its own is not enough.
    ///
    /// # Errors
    ///
    /// When the body breaks off, when it is not of the operation's shape, and when what it says cannot be delivered.
    /// What was delivered until then is true of the body's beginning and no more.
    ///
    /// # Panics
    ///
    /// When an operation of one ticker was asked without its ticker, which no request of a plan is.
    pub fn decode<E>(
        &self,
        body: impl BufRead,
        mut deliver: impl FnMut(Decoded) -> Result<(), E>,
    ) -> Result<(), Fault<E>> {
        let in_progress = InProgress::begin();
        let mut batches = BodyBatches::new(body, self.shape(), Bounds::ANSWER);
        let mut met = Met::default();
        loop {
            batches.aim_at(in_progress.batch_bytes());
            let Some(batch) = batches.next()? else { return Ok(()) };
            deliver(self.batch(batch, &mut met)).map_err(Fault::Deliver)?;
        }
    }

    fn batch(&self, batch: &Batch, met: &mut Met) -> Decoded {
        let mut pieces = batch.pieces();
        met.mark(&mut pieces);
        match stream::groups(&pieces)[..] {
            // Most answers are small, and are not worth waking a thread for.
            [only] => self.group(only),
            ref groups => {
                let decoded: Vec<Decoded> = groups.par_iter().map(|group| self.group(group)).collect();
                decoded.into_iter().fold(Decoded::default(), Decoded::followed_by)
            }
        }
    }

    fn group(&self, pieces: &[Piece<'_>]) -> Decoded {
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
