//! The contents of an answer: rows, and findings besides them: rejected records, unknown fields, unusual values.
//!
//! Findings are bounded, since a body may contain nothing but faults: past its limit, the faults of a piece are counted in
//! its last reject, and [`Drift::add_to`] counts very many unknown fields together.
//!
//! A reject counts the records it lost: one, or all entries of a history that is rejected whole.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{AsArray as _, Int32Array, RecordBatch};
use arrow::datatypes::Int32Type;

use super::answer::Answer;
use super::batch::{Piece, PiecePosition};
use super::record::complaint;
use super::truncate;
use crate::interface::Ticker;
use crate::plan::Request;
use crate::tables::{Drift, Leniencies, Oversized, Reject, Series, Table};

/// Bytes to show of an unknown field's value or name.
const EXAMPLE_BYTES: usize = 200;

/// The most rejects to list for one piece.
const MAX_LISTED: usize = 10_000;

/// Less than the shortest valid record. Faults closer together than this are not records, and listing each would take
/// many times the memory of the body.
const BYTES_PER_REJECT: usize = 32;

/// A part of an answer.
#[derive(Clone, Debug)]
pub enum AnswerPart {
    /// Rows of one key, possibly none: a history, a latest signal, a summary, or some of the articles or records.
    Series(Series),
    /// Some of the listed tickers.
    Tickers(Vec<Ticker>),
}

/// The decoded contents of some pieces.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The valid rows, in the order of the body.
    pub parts: Vec<AnswerPart>,
    /// Rejected records, piece by piece in the order of the body. The last reject of a piece with very many of them
    /// counts the rest.
    pub rejects: Vec<Reject>,
    /// Unknown fields, each once.
    pub drift: Vec<Drift>,
    /// Number of confidences outside 0 to 1.
    pub unusual: u64,
    /// Number of latest signals without a date.
    pub undated: u64,
    /// Values accepted though they deviate from the interface's notation.
    pub lenient: Leniencies,
    /// The first records rejected for their size.
    pub oversized: Vec<Oversized>,
    /// Number of records: entries, articles, tickers.
    pub records: u64,
    /// Number of rejected records. A history rejected whole counts all of its records, and at least one.
    pub rejected: u64,
    /// Number of signal histories.
    pub histories: u64,
    /// Number of histories with records of which all were rejected.
    pub lost: u64,
}

impl Decoded {
    /// The same contents of a further page, after entries on the pages before.
    #[must_use]
    pub(crate) fn after(mut self, entries: u64) -> Self {
        if entries == 0 {
            return self;
        }
        for part in &mut self.parts {
            if let AnswerPart::Series(Series { key, rows }) = part
                && matches!(key.table, Some(Table::Articles | Table::SentimentHistory))
            {
                let positions = rows.column(0).as_primitive::<Int32Type>();
                let moved: Int32Array = positions.unary(|position| position.saturating_add(entries as i32));
                let mut columns = rows.columns().to_vec();
                columns[0] = Arc::new(moved);
                *rows = RecordBatch::try_new(rows.schema(), columns).expect("the columns have their types");
            }
        }
        self
    }

    pub(super) fn append(&mut self, next: Self) {
        self.parts.extend(next.parts);
        self.rejects.extend(next.rejects);
        next.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += next.unusual;
        self.undated += next.undated;
        self.lenient += next.lenient;
        self.oversized.extend(next.oversized);
        self.records += next.records;
        self.rejected += next.rejected;
        self.histories += next.histories;
        self.lost += next.lost;
    }
}

/// A location in a body.
#[derive(Clone, Debug)]
pub(super) struct RecordPlace {
    /// Its ticker, if known.
    pub(super) ticker: Option<String>,
    /// Its JSON pointer.
    pub(super) pointer: String,
}

impl RecordPlace {
    /// The location of a piece.
    pub(super) fn new(answer: &Answer<'_>, piece: &Piece<'_>) -> Self {
        let asked = || answer.request.ticker.as_ref().map(|ticker| ticker.as_str().to_owned());
        match piece.site {
            PiecePosition::Body => Self { ticker: asked(), pointer: String::new() },
            PiecePosition::Element(position) => Self { ticker: asked(), pointer: format!("/{position}") },
            PiecePosition::Key => {
                let key = piece.name().unwrap_or_else(|_| String::from_utf8_lossy(piece.key));
                let key = truncate::beginning(&key, piece.bounds.key);
                Self { pointer: format!("/{}", step(&key)), ticker: Some(key) }
            }
        }
    }

    /// A location below this one.
    pub(super) fn below(&self, steps: std::fmt::Arguments<'_>) -> Self {
        Self { ticker: self.ticker.clone(), pointer: format!("{}/{steps}", self.pointer) }
    }
}

/// The contents of some pieces while they are decoded.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    request: &'a Request,
    pub(super) found: Decoded,
    /// Number of rejects that may still be listed.
    room: usize,
    /// The first reject over the limit, and the number of records after it.
    over: Option<(Reject, u64)>,
}

impl<'a> Notes<'a> {
    /// Notes on pieces with at most one reject each.
    pub(super) fn new(answer: &Answer<'a>) -> Self {
        Self { request: answer.request, found: Decoded::default(), room: usize::MAX, over: None }
    }

    /// Notes on the many records of one piece.
    pub(super) fn of_piece(answer: &Answer<'a>, text: &str) -> Self {
        Self { room: (text.len() / BYTES_PER_REJECT).min(MAX_LISTED), ..Self::new(answer) }
    }

    /// Decodes pieces that are a record each.
    pub(super) fn decode_records(
        answer: &Answer<'a>,
        pieces: &[Piece<'_>],
        read: impl Fn(&mut Self, &str) -> Result<Series, String>,
    ) -> Decoded {
        let mut notes = Self::new(answer);
        for piece in pieces {
            let read = |text| read(&mut notes, text).map_err(|reason| complaint(text).unwrap_or(reason));
            match piece.text().and_then(read) {
                Ok(series) => notes.found.parts.push(AnswerPart::Series(series)),
                Err(reason) => notes.reject_piece(answer, piece, 1, reason),
            }
        }
        notes.finish()
    }

    /// Counts a confidence outside 0 to 1. It is kept, since the interface documents no bounds.
    pub(super) fn confidence(&mut self, confidence: f64) {
        self.found.unusual += u64::from(!(0.0..=1.0).contains(&confidence));
    }

    /// Rejects a piece, given the number of its records. One rejected for its size is also reported by itself, since much is lost
    /// with it.
    pub(super) fn reject_piece(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, records: u64, reason: String) {
        let place = RecordPlace::new(answer, piece);
        if piece.is_too_long() && self.found.oversized.len() < Oversized::MAX_LISTED {
            self.found.oversized.push(Oversized { ticker: place.ticker.clone(), reason: reason.clone() });
        }
        self.reject(records, || place, reason, piece.raw());
    }

    /// Rejects several records at one location.
    pub(super) fn reject(&mut self, records: u64, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.found.records += records;
        self.found.rejected += records;
        if let Some((_, more)) = &mut self.over {
            *more += records;
            return;
        }
        let RecordPlace { ticker, pointer } = place();
        let raw = truncate::raw(raw);
        let reject = Reject { request: self.request.to_string(), ticker, pointer, reason, raw };
        if self.room == 0 {
            self.over = Some((reject, 0));
        } else {
            self.room -= 1;
            self.found.rejects.push(reject);
        }
    }

    /// Counts unknown fields below a pattern such as `/*/predictions/*`.
    pub(super) fn unknown(&mut self, pattern: &str, fields: &[(Cow<'_, str>, &str)]) {
        for (name, json) in fields {
            let name = step(name);
            let is_it = |known: &Drift| {
                known.field.strip_prefix(pattern).and_then(|rest| rest.strip_prefix('/')) == Some(&name)
            };
            // An unknown field usually occurs in most records of a body.
            if let Some(known) = self.found.drift.iter_mut().find(|known| is_it(known)) {
                known.count += 1;
                continue;
            }
            let field = format!("{pattern}/{}", truncate::beginning(&name, EXAMPLE_BYTES));
            let example = truncate::beginning(json, EXAMPLE_BYTES);
            Drift { endpoint: self.request.endpoint, field, count: 1, example }.add_to(&mut self.found.drift);
        }
    }

    /// The contents. The last reject of a piece that has more than are listed counts the rest.
    pub(super) fn finish(mut self) -> Decoded {
        if let Some((mut reject, more)) = self.over {
            if more > 0 {
                reject.reason = format!("{}; {more} more rejected records are not listed", reject.reason);
            }
            self.found.rejects.push(reject);
        }
        self.found
    }
}

/// A key as a token of a JSON pointer.
fn step(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}
