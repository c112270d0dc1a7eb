//! From the bytes of an answer to typed columns.
//!
//! A body is read as it arrives and cut into pieces: its tickers, its articles, or the one record that it is. Some
//! megabytes of whole pieces at a time are decoded, each piece by itself and in parallel, or a few pieces at a time
//! where enough answers are under way to keep every processor busy; what they say is delivered in the order of the
//! body. So memory follows a constant and never the size of an answer.
//!
//! What is typed comes as [`Series`](crate::tables::Series): one key, and its rows in the columns of
//! [`Table::listed_schema`](crate::tables::Table::listed_schema). A date is the instant in UTC where an offset was
//! written, and as written where there was none; which naive date a dataset makes of it is decided later.
//!
//! A record that cannot be typed is rejected with its place, its text and the reason; its neighbours live. Where a ticker
//! stands twice in an answer its first history is kept and every other one is rejected. A field that the interface does
//! not know is counted. A body that is not of its operation's shape fails as a whole, at a byte. Nothing is guessed, and
//! nothing of a body goes unmentioned.
//!
//! `scan` finds the pieces, by `skip` and `block` where each ends, `batch` holds them within bounds, `stream` makes
//! batches of a body. `history`, `latest`, `articles`, `summary` and `listing` are the forms of answers. `record` reads any
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
#[doc(hidden)]
pub mod harness;
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
pub use decoded::{Decoded, Part};
pub use stream::Fault;

use crate::interface::Endpoint;
use batch::{Batch, Bounds, Met, Piece};
use concurrency::InProgress;
use scan::Shape;
use stream::Batches;

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
        let mut batches = Batches::new(body, self.shape(), Bounds::ANSWER);
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
