//! What is noticed beside the rows: rejected records, unknown fields, unusual values.
//!
//! Notes are bounded, for a body may hold nothing but faults: past its room, faults of a piece are counted in the last
//! reject instead of listed, and so many unknown fields are counted together as [`Drift::add_to`] says.
//!
//! A reject weighs as many records as it lost: one, or all the entries of a history that is rejected whole.

use std::borrow::Cow;

use super::answer::Answer;
use super::batch::{Piece, Site};
use super::decoded::{AnswerPart, Decoded};
use super::truncate;
use crate::plan::Request;
use crate::tables::{Drift, Leniencies, Oversized, Reject};

/// How much of an unknown field's value, or of its name, is shown; in bytes.
const EXAMPLE_BYTES: usize = 200;

/// The most rejects that one piece may have listed.
const MAX_LISTED: usize = 10_000;

/// A record of the shortest form that could be typed is longer than so many bytes. Where faults stand closer than that
/// they are not records, and listing each would take many times the memory of the body.
const BYTES_PER_REJECT: usize = 32;

/// Where something stands in a body.
#[derive(Clone, Debug)]
pub(super) struct RecordPlace {
    /// The ticker that it belongs to, where that is known.
    pub(super) ticker: Option<String>,
    /// The JSON pointer.
    pub(super) pointer: String,
}

impl RecordPlace {
    /// The place of a piece.
    pub(super) fn of(answer: &Answer<'_>, piece: &Piece<'_>) -> Self {
        let asked = || answer.request.ticker.as_ref().map(|ticker| ticker.as_str().to_owned());
        match piece.site {
            Site::Body => Self { ticker: asked(), pointer: String::new() },
            Site::Element(position) => Self { ticker: asked(), pointer: format!("/{position}") },
            Site::Key => {
                let key = piece.name().unwrap_or_else(|_| String::from_utf8_lossy(piece.key));
                let key = truncate::beginning(&key, piece.longest_key());
                Self { pointer: format!("/{}", step(&key)), ticker: Some(key) }
            }
        }
    }

    /// A place below this one.
    pub(super) fn below(&self, steps: std::fmt::Arguments<'_>) -> Self {
        Self { ticker: self.ticker.clone(), pointer: format!("{}/{steps}", self.pointer) }
    }
}

/// What is noticed in some pieces.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    request: &'a Request,
    /// How many rejects may still be listed.
    room: usize,
    rejects: Vec<Reject>,
    /// The first reject that there was no room for, and how many follow it.
    over: Option<(Reject, u64)>,
    drift: Vec<Drift>,
    unusual: u64,
    lenient: Leniencies,
    oversized: Vec<Oversized>,
    records: u64,
    rejected: u64,
    histories: u64,
    lost: u64,
}

impl<'a> Notes<'a> {
    /// Notes on pieces that give one reject each at most.
    pub(super) fn new(answer: &Answer<'a>) -> Self {
        Self {
            request: answer.request,
            room: usize::MAX,
            rejects: Vec::new(),
            over: None,
            drift: Vec::new(),
            unusual: 0,
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

    /// Counts a record that was typed.
    pub(super) fn typed(&mut self) {
        self.records += 1;
    }

    /// Counts a confidence when it is not between 0 and 1: the interface gives no bounds, so it is kept.
    pub(super) fn confidence(&mut self, confidence: f64) {
        self.unusual += u64::from(!(0.0..=1.0).contains(&confidence));
    }

    /// Counts values of a typed record that are not spelled as the interface spells them.
    pub(super) fn accepted_leniently(&mut self, lenient: Leniencies) {
        self.lenient += lenient;
    }

    /// Takes back what was counted of a record that is rejected although it was typed.
    pub(super) fn rejected_after_all(&mut self, lenient: Leniencies) {
        self.lenient.signals -= lenient.signals;
        self.lenient.dates -= lenient.dates;
    }

    /// Rejects a piece that is a record.
    pub(super) fn reject_piece(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, reason: String) {
        self.reject_whole(answer, piece, 1, reason);
    }

    /// Rejects a piece that is a whole history, with the number of its records.
    pub(super) fn reject_history(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, records: u64, reason: String) {
        self.histories += 1;
        self.lost += 1;
        self.reject_whole(answer, piece, records, reason);
    }

    /// Rejects a piece; one that is rejected for its size alone is also named by itself, as much is lost with it.
    fn reject_whole(&mut self, answer: &Answer<'_>, piece: &Piece<'_>, records: u64, reason: String) {
        let place = RecordPlace::of(answer, piece);
        if piece.is_too_long() && self.oversized.len() < Oversized::MAX_LISTED {
            self.oversized.push(Oversized { ticker: place.ticker.clone(), reason: reason.clone() });
        }
        self.reject(records, || place, reason, piece.raw());
    }

    /// Rejects a record.
    pub(super) fn set_aside(&mut self, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.reject(1, place, reason, raw);
    }

    /// Adds the notes on a history, with the number of rows that it kept.
    pub(super) fn absorb_history(&mut self, rows: usize, notes: Self) {
        self.histories += 1;
        self.lost += u64::from(rows == 0 && notes.rejected > 0);
        self.absorb(notes);
    }

    /// Rejects several records at one place.
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

    /// Rejects a record that was typed, and so is counted already.
    pub(super) fn twice(&mut self, place: impl FnOnce() -> RecordPlace, reason: String, raw: &[u8]) {
        self.records -= 1;
        self.set_aside(place, reason, raw);
    }

    /// Counts fields that the interface does not know, below a pattern such as `/*/predictions/*`.
    pub(super) fn unknown(&mut self, pattern: &str, fields: &[(Cow<'_, str>, &str)]) {
        for (name, json) in fields {
            let name = step(name);
            let is_it = |known: &Drift| {
                known.field.strip_prefix(pattern).and_then(|rest| rest.strip_prefix('/')) == Some(&name)
            };
            // Found again in most records of a body, once it is there.
            if let Some(known) = self.drift.iter_mut().find(|known| is_it(known)) {
                known.count += 1;
                continue;
            }
            let field = format!("{pattern}/{}", truncate::beginning(&name, EXAMPLE_BYTES));
            let example = truncate::beginning(json, EXAMPLE_BYTES);
            Drift { endpoint: self.request.endpoint, field, count: 1, example }.add_to(&mut self.drift);
        }
    }

    /// Takes up the notes on a piece.
    pub(super) fn absorb(&mut self, other: Self) {
        self.rejects.extend(other.rejects);
        self.rejects.extend(other.over.map(closing));
        other.drift.into_iter().for_each(|drift| drift.add_to(&mut self.drift));
        self.unusual += other.unusual;
        self.lenient += other.lenient;
        self.oversized.extend(other.oversized);
        self.records += other.records;
        self.rejected += other.rejected;
        self.histories += other.histories;
        self.lost += other.lost;
    }

    /// The notes, with the parts that they stand beside.
    pub(super) fn with(self, parts: Vec<AnswerPart>) -> Decoded {
        let Self { mut rejects, over, drift, unusual, lenient, oversized, .. } = self;
        let Self { records, rejected, histories, lost, .. } = self;
        rejects.extend(over.map(closing));
        Decoded { parts, rejects, drift, unusual, lenient, oversized, records, rejected, histories, lost }
    }
}

/// The last reject of a piece that has more of them than are listed.
fn closing((mut reject, more): (Reject, u64)) -> Reject {
    if more > 0 {
        reject.reason = format!("{}; and {more} more records beside it that are not listed", reject.reason);
    }
    reject
}

/// A key as a step of a JSON pointer.
fn step(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}
