//! Findings besides the rows: rejected records, unknown fields, unusual values.
//!
//! They are bounded, since a body may contain nothing but faults: past its limit, the faults of a piece are counted in
//! its last reject, and [`Drift::add_to`] counts very many unknown fields together.
//!
//! A reject counts the records it lost: one, or all entries of a history that is rejected whole.

use std::borrow::Cow;

use super::answer::Answer;
use super::batch::{Piece, PiecePosition};
use super::decoded::{AnswerPart, Decoded};
use super::truncate;
use crate::plan::Request;
use crate::tables::{Drift, Leniencies, Oversized, Reject};

/// Bytes to show of an unknown field's value or name.
const EXAMPLE_BYTES: usize = 200;

/// The most rejects to list for one piece.
const MAX_LISTED: usize = 10_000;

/// Less than the shortest valid record. Faults closer together than this are not records, and listing each would take
/// many times the memory of the body.
const BYTES_PER_REJECT: usize = 32;

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
    pub(super) fn of(answer: &Answer<'_>, piece: &Piece<'_>) -> Self {
        let asked = || answer.request.ticker.as_ref().map(|ticker| ticker.as_str().to_owned());
        match piece.site {
            PiecePosition::Body => Self { ticker: asked(), pointer: String::new() },
            PiecePosition::Element(position) => Self { ticker: asked(), pointer: format!("/{position}") },
            PiecePosition::Key => {
                let key = piece.name().unwrap_or_else(|_| String::from_utf8_lossy(piece.key));
                let key = truncate::beginning(&key, piece.longest_key());
                Self { pointer: format!("/{}", step(&key)), ticker: Some(key) }
            }
        }
    }

    /// A location below this one.
    pub(super) fn below(&self, steps: std::fmt::Arguments<'_>) -> Self {
        Self { ticker: self.ticker.clone(), pointer: format!("{}/{steps}", self.pointer) }
    }
}

/// Findings in some pieces.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    request: &'a Request,
    /// Number of rejects that may still be listed.
    room: usize,
    rejects: Vec<Reject>,
    /// The first reject over the limit, and the number of records after it.
    over: Option<(Reject, u64)>,
    drift: Vec<Drift>,
    unusual: u64,
    undated: u64,
    lenient: Leniencies,
    oversized: Vec<Oversized>,
    records: u64,
    rejected: u64,
    histories: u64,
    lost: u64,
}

impl<'a> Notes<'a> {
    /// Notes on pieces with at most one reject each.
    pub(super) fn new(answer: &Answer<'a>) -> Self {
        Self {
            request: answer.request,
            room: usize::MAX,
            rejects: Vec::new(),
            over: None,
            drift: Vec::new(),
            unusual: 0,
            undated: 0,
            lenient: Leniencies::default(),
            oversized: Vec::new(),
            records: 0,
            rejected: 0,
            histories: 0,
            lost: 0,
        }
    }

    /// Notes on the many records of one piece.
    pub(super) fn of_piece(answer: &Answer<'a>, text: &str) -> Self {
        Self { room: (text.len() / BYTES_PER_REJECT).min(MAX_LISTED), ..Self::new(answer) }
    }

    /// Counts a valid record.
    pub(super) fn count_record(&mut self) {
        self.records += 1;
    }

    /// Counts a confidence outside 0 to 1. It is kept, since the interface documents no bounds.
    pub(super) fn confidence(&mut self, confidence: f64) {
        self.unusual += u64::from(!(0.0..=1.0).contains(&confidence));
    }

    /// Counts a latest signal without a date. It is kept, but no dataset can have it.
    pub(super) fn undated(&mut self) {
        self.undated += 1;
    }

    /// Counts values of a valid record that deviate from the interface's notation.
    pub(super) fn accepted_leniently(&mut self, lenient: Leniencies) {
        self.lenient += lenient;
    }

    /// Removes from the counts a valid record that is rejected later.
    pub(super) fn rejected_after_all(&mut self, lenient: Leniencies) {
        self.lenient.signals -= lenient.signals;
        self.lenient.dates -= lenient.dates;
        self.lenient.confidences -= lenient.confidences;
    }

    /// Rejects a piece with one record.
    pub(super) fn reject_piece(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, reason: String) {
        self.reject_whole(answer, piece, 1, reason);
    }

    /// Rejects a piece with a whole history, given the number of its records.
    pub(super) fn reject_history(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, records: u64, reason: String) {
        self.histories += 1;
        self.lost += 1;
        self.reject_whole(answer, piece, records, reason);
    }

    /// Rejects a piece. One rejected for its size is also reported by itself, since much is lost with it.
    fn reject_whole(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, records: u64, reason: String) {
        let place = RecordPlace::of(answer, piece);
        if piece.is_too_long() && self.oversized.len() < Oversized::MAX_LISTED {
            self.oversized.push(Oversized { ticker: place.ticker.clone(), reason: reason.clone() });
        }
        self.reject(records, || place, reason, piece.raw());
    }

    /// Rejects a record.
    pub(super) fn reject_record(&mut self, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.reject(1, place, reason, raw);
    }

    /// Adds the notes on a history, given the number of rows it kept.
    pub(super) fn absorb_history(&mut self, rows: usize, notes: Self) {
        self.histories += 1;
        self.lost += u64::from(rows == 0 && notes.rejected > 0);
        self.absorb(notes);
    }

    /// Rejects several records at one location.
    pub(super) fn reject(&mut self, records: u64, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.records += records;
        self.rejected += records;
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
            self.rejects.push(reject);
        }
    }

    /// Leaves out a valid record, which is already counted, since it repeats another one exactly.
    pub(super) fn leave_out_repeat(&mut self) {
        self.records -= 1;
        self.lenient.repeated += 1;
    }

    /// Rejects a valid record, which is already counted.
    pub(super) fn reject_duplicate(&mut self, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.records -= 1;
        self.reject_record(place, reason, raw);
    }

    /// Counts unknown fields below a pattern such as `/*/predictions/*`.
    pub(super) fn unknown(&mut self, pattern: &str, fields: &[(Cow<'_, str>, &str)]) {
        for (name, json) in fields {
            let name = step(name);
            let is_it = |known: &Drift| {
                known.field.strip_prefix(pattern).and_then(|rest| rest.strip_prefix('/')) == Some(&name)
            };
            // An unknown field usually occurs in most records of a body.
            if let Some(known) = self.drift.iter_mut().find(|known| is_it(known)) {
                known.count += 1;
                continue;
            }
            let field = format!("{pattern}/{}", truncate::beginning(&name, EXAMPLE_BYTES));
            let example = truncate::beginning(json, EXAMPLE_BYTES);
            Drift { endpoint: self.request.endpoint, field, count: 1, example }.add_to(&mut self.drift);
        }
    }

    /// Adds the notes on a piece.
    pub(super) fn absorb(&mut self, other: Self) {
        self.rejects.extend(other.rejects);
        self.rejects.extend(other.over.map(closing));
        other.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += other.unusual;
        self.undated += other.undated;
        self.lenient += other.lenient;
        self.oversized.extend(other.oversized);
        self.records += other.records;
        self.rejected += other.rejected;
        self.histories += other.histories;
        self.lost += other.lost;
    }

    /// The notes, together with the parts they belong to.
    pub(super) fn with(self, parts: Vec<AnswerPart>) -> Decoded {
        let Self { mut rejects, over, drift, unusual, undated, lenient, oversized, .. } = self;
        let Self { records, rejected, histories, lost, .. } = self;
        rejects.extend(over.map(closing));
        Decoded { parts, rejects, drift, unusual, undated, lenient, oversized, records, rejected, histories, lost }
    }
}

/// The last reject of a piece that has more than are listed.
fn closing((mut reject, more): (Reject, u64)) -> Reject {
    if more > 0 {
        reject.reason = format!("{}; {more} more rejected records are not listed", reject.reason);
    }
    reject
}

/// A key as a token of a JSON pointer.
fn step(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}
