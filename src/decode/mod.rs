//! From the bytes of an answer to typed columns.
//!
//! A body is split into its tickers (or is one list of articles, or one summary), and each piece is decoded by itself,
//! in parallel. A record that cannot be typed is set aside with its place and its text; its neighbours live. A body that
//! is no JSON at all, or not of the shape that the interface gives, fails as a whole. Nothing is guessed.

mod date;
mod history;
mod news;
mod split;

use chrono::{DateTime, Utc};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{NaiveRule, Request};
use crate::tables::{News, Reject, Series};

/// An answer to be decoded, with what its meaning depends on.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// What came.
    pub body: &'a [u8],
    /// When it came.
    pub observed_at: DateTime<Utc>,
    /// How its dates become naive.
    pub dates: NaiveRule,
}

/// What an answer says.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The series of signals.
    pub series: Vec<Series>,
    /// The articles of a ticker.
    pub articles: Vec<News>,
    /// The summary of a ticker.
    pub summaries: Vec<News>,
    /// What could not be typed.
    pub rejects: Vec<Reject>,
}

impl Decoded {
    /// The number of rows that could be typed.
    pub fn rows(&self) -> usize {
        let of_series = self.series.iter().map(|one| one.rows.num_rows());
        let of_news = self.articles.iter().chain(&self.summaries).map(|one| one.rows.num_rows());
        of_series.chain(of_news).sum()
    }

    /// The tickers that the series are of.
    pub fn tickers(&self) -> impl Iterator<Item = &Ticker> {
        self.series.iter().map(|one| &one.key.ticker)
    }

    fn absorb(&mut self, other: Self) {
        self.series.extend(other.series);
        self.articles.extend(other.articles);
        self.summaries.extend(other.summaries);
        self.rejects.extend(other.rejects);
    }
}

impl Answer<'_> {
    /// Decodes the answer.
    ///
    /// # Errors
    ///
    /// When the body is not JSON, or not of the operation's shape.
    pub fn decode(&self) -> Result<Decoded> {
        match self.request.endpoint {
            Endpoint::NewsArticles => news::articles(self),
            Endpoint::SocialSentiment => news::summary(self),
            _ => self.histories(),
        }
    }

    fn histories(&self) -> Result<Decoded> {
        let entries = split::entries(self.body).map_err(|fault| self.malformed(&fault))?;
        let pieces: Vec<Decoded> = entries.par_iter().map(|(key, piece)| history::decode(self, key, piece)).collect();
        let mut decoded = Decoded::default();
        for piece in pieces {
            decoded.absorb(piece);
        }
        Ok(decoded)
    }

    fn malformed(&self, fault: &serde_json::Error) -> Error {
        Error::Malformed {
            request: self.request.to_string(),
            reason: split::reason_of(fault),
            offset: split::offset_of(self.body, fault),
        }
    }

    fn reject(&self, ticker: Option<&str>, pointer: String, reason: impl Into<String>, raw: &str) -> Reject {
        Reject {
            request: self.request.to_string(),
            ticker: ticker.map(str::to_owned),
            pointer,
            reason: reason.into(),
            raw: raw.to_owned(),
        }
    }
}
