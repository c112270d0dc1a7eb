//! From the bytes of an answer to typed columns.
//!
//! A body is read as it arrives and cut into pieces: its tickers, its articles, or the one record that it is. Some
//! megabytes of whole pieces at a time are decoded, each piece by itself and in parallel, or a few pieces at a time
//! where enough answers are under way to keep every processor busy; what they say is delivered in the order of the body. So memory follows a constant and never the size of an answer.
//!
//! What is typed comes as [`Series`]: one key, and its rows in the columns of
//! [`Table::listed_schema`](crate::tables::Table::listed_schema). A date is the instant in UTC where an offset was
//! written, and as written where there was none; which naive date a dataset makes of it is decided later.
//!
//! A record that cannot be typed is rejected with its place, its text and the reason; its neighbours live. Where a ticker
//! stands twice in an answer its first history is kept and every other one is rejected. A field that the interface does
//! not know is counted. A body that is not of its operation's shape fails as a whole, at a byte. Nothing is guessed, and
//! nothing of a body goes unmentioned.
//!
//! `scan` finds the pieces, by `skip` and `block` where each ends, `batch` holds them within bounds, `stream` makes
//! batches of a body. `history`, `latest`, `articles`, `summary` and `listing` are the forms of answers. `entry`, `form` and `number` are fast ways of
//! what `record` does exactly; `harness` proves that they agree.

mod article;
mod articles;
mod batch;
mod block;
mod clip;
mod cursor;
mod entry;
mod form;
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
#[cfg(test)]
mod tests;
mod under_way;

use std::borrow::Cow;
use std::io::{self, BufRead};

use rayon::prelude::*;

use crate::interface::{Endpoint, Ticker};
use crate::plan::Request;
use crate::tables::{Drift, Leniencies, Oversized, Reject, Series, SeriesKey};
use batch::{Batch, Bounds, Met, Piece};
use scan::Shape;
use stream::Batches;
use under_way::UnderWay;

/// How answers are read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether fields that the interface does not know are kept, beside being counted.
    pub keep_extra: bool,
}

/// An answer to be decoded: what its meaning depends on.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// How it is read.
    pub rules: Rules,
}

/// Something that an answer says.
#[derive(Clone, Debug)]
pub enum Part {
    /// Some rows of one key, which may be none: a history, a latest signal, a summary; articles and records as far as
    /// they have come.
    Series(Series),
    /// Some of the tickers that the service knows.
    Tickers(Vec<Ticker>),
}

/// What some of an answer says.
#[derive(Debug, Default)]
pub struct Decoded {
    /// What could be typed, in the order of the body.
    pub parts: Vec<Part>,
    /// What could not, piece by piece in the order of the body. A piece with very many faults has its last ones counted
    /// in one reject.
    pub rejects: Vec<Reject>,
    /// The fields that the interface does not know, each once.
    pub drift: Vec<Drift>,
    /// How many confidences are not between 0 and 1.
    pub unusual: u64,
    /// How many values were accepted that are not spelled as the interface spells them.
    pub lenient: Leniencies,
    /// What was rejected for its size alone; the first of it.
    pub oversized: Vec<Oversized>,
    /// How many records there were: entries, articles, tickers.
    pub records: u64,
    /// How many of them were rejected. A history that is rejected whole weighs as many as it had, and at least one.
    pub rejected: u64,
    /// How many histories of signals there were.
    pub histories: u64,
    /// How many of them had records and kept none.
    pub lost: u64,
}

/// Why an answer could not be decoded to its end.
#[derive(Debug)]
pub enum Fault<E> {
    /// The body broke off.
    Read(io::Error),
    /// The body is not what the interface describes.
    Malformed {
        /// The byte at fault, counted from the start of the body.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// What the body says could not be delivered.
    Deliver(E),
}

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
        let under_way = UnderWay::begin();
        let mut batches = Batches::new(body, self.shape(), Bounds::ANSWER);
        let mut met = Met::default();
        loop {
            batches.aim_at(under_way.batch_bytes());
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

    fn asked_ticker(&self) -> &Ticker {
        self.request.ticker.as_ref().expect("an operation of one ticker is asked with its ticker")
    }

    /// The key of rows that are of the asked ticker as a whole.
    fn asked_key(&self) -> SeriesKey {
        SeriesKey::of_ticker(self.request.endpoint, self.asked_ticker().clone())
    }

    /// Makes sure that a series is the one that was asked for, as far as the request names it.
    fn check(&self, asked: &str, key: &SeriesKey) -> Result<(), String> {
        self.check_ticker(asked, &key.ticker)?;
        if let (Some(asked), Some(period)) = (self.request.period, key.period)
            && asked != period
        {
            return Err(format!("it is of period `{period}`, which was not asked for"));
        }
        if let (Some(asked), Some(regime)) = (self.request.regime, key.regime)
            && asked != regime
        {
            return Err(format!("it is of regime `{regime}`, which was not asked for"));
        }
        Ok(())
    }

    fn check_ticker(&self, asked: &str, ticker: &Ticker) -> Result<(), String> {
        let is_asked = ticker.as_str() == asked;
        if is_asked { Ok(()) } else { Err(format!("it is of ticker `{ticker}`, not of `{}`", clip::shown(asked))) }
    }
}

impl Rules {
    /// Unknown fields as they are kept.
    fn extra(&self, unknown: &[(Cow<'_, str>, &str)]) -> Option<String> {
        if self.keep_extra { notes::extra(unknown.iter().map(|(name, json)| (&**name, *json))) } else { None }
    }
}

impl Decoded {
    fn followed_by(mut self, next: Self) -> Self {
        self.parts.extend(next.parts);
        self.rejects.extend(next.rejects);
        next.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += next.unusual;
        self.lenient += next.lenient;
        self.oversized.extend(next.oversized);
        self.records += next.records;
        self.rejected += next.rejected;
        self.histories += next.histories;
        self.lost += next.lost;
        self
    }
}
