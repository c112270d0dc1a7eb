//! Decodes the history of one ticker into a series.
//!
//! Its four fields may be in any order. Its entries are in `predictions` or `items`; if both are present, the first is
//! read and the other is rejected. A history is rejected whole if it is not well-formed around its entries, if one of
//! its own fields is invalid, if it is not the requested one, or if its ticker occurred before in the answer; all of
//! its records then count as rejected. Unknown fields of the history itself are reported but not kept with a row: they
//! belong to none, and the row that had them would look revised when the history grows.

use std::borrow::Cow;

use super::answer::Answer;
use super::batch::{self, Piece};
use super::cursor::{Cursor, Members};
use super::decoded::{AnswerPart, Decoded};
use super::entry::{self, Entry};
use super::notes::{Notes, RecordPlace};
use super::record::{COMPLAINTS, Fields, RecordField, complaint, duplicate, missing, push_unknown, well_formed};
use super::rows::{HistoryRow, HistoryRows};
use super::template::Template;
use super::truncate;
use crate::tables::dates;
use crate::tables::{Leniencies, Series};

/// The names of the field with the entries, the newer one first.
const ENTRIES: [&str; 2] = ["predictions", "items"];

/// Decodes the values of an object whose keys are tickers.
pub(super) fn decode_many(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    decode(answer, pieces, |piece| {
        let (text, key) = (piece.text()?, piece.name()?);
        // Some services answer with status 200 that something failed.
        if COMPLAINTS.contains(&&*key) {
            return Err(format!("the service says {}", truncate::excerpt(text)));
        }
        if !piece.is_repeated && matches!(text, "null" | "[]" | "{}") {
            return empty_history(answer, &key);
        }
        if piece.is_repeated {
            let offset = piece.offset;
            return Err(format!(
                "duplicate ticker `{key}`: another history starts at byte {offset}; the first is kept"
            ));
        }
        Reader::new(answer, &RecordPlace::of(answer, piece), "/*", text).read(&key)
    })
}

/// A ticker of which the service says that it has nothing.
fn empty_history<'a>(answer: &Answer<'a>, ticker: &str) -> Result<(Series, Notes<'a>), String> {
    let (mut notes, mut lenient) = (Notes::of_piece(answer, ""), Leniencies::default());
    let key = answer.key(ticker, ["ticker", "period", "regime"].map(RecordField::absent), &mut lenient)?;
    notes.accepted_leniently(lenient);
    Ok((Series { key, rows: HistoryRows::of_text("").batch() }, notes))
}

/// Decodes a body with the history of one ticker.
pub(super) fn decode_one(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    decode(answer, pieces, |piece| {
        let text = piece.text()?;
        let read = Reader::new(answer, &RecordPlace::of(answer, piece), "", text).read(answer.asked_ticker().as_str());
        read.map_err(|reason| complaint(text).unwrap_or(reason))
    })
}

fn decode<'a>(
    answer: &Answer<'a>,
    pieces: &[Piece<'_>],
    read: impl Fn(&Piece<'_>) -> Result<(Series, Notes<'a>), String>,
) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match read(piece) {
            Ok((series, noticed)) => {
                notes.absorb_history(series.rows.num_rows(), noticed);
                parts.push(AnswerPart::Series(series));
            }
            Err(_) if let Some((name, json)) = beside_tickers(piece) => notes.unknown("", &[(name, json)]),
            Err(reason) => notes.reject_history(answer, piece, weight(piece), reason),
        }
    }
    notes.with(parts)
}

/// A member beside the tickers, with its name: no ticker has such a name, and no history such a value.
fn beside_tickers<'p>(piece: &Piece<'p>) -> Option<(Cow<'p, str>, &'p str)> {
    let (name, json) = (piece.name().ok()?, piece.text().ok()?);
    let is_field = !piece.key.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && !COMPLAINTS.contains(&&*name)
        && !ENTRIES.iter().any(|entries| json.contains(&format!("\"{entries}\"")));
    (is_field && well_formed(json).is_ok()).then_some((name, json))
}

/// Number of records of a history that is rejected whole: its entries if they can be counted, otherwise the objects in
/// it; at least one.
fn weight(piece: &Piece<'_>) -> u64 {
    let counted = piece.text().ok().and_then(entries_of);
    counted.unwrap_or_else(|| piece.objects().saturating_sub(1)).max(1)
}

/// Number of entries of a history under either name; `None` if it is malformed.
fn entries_of(text: &str) -> Option<u64> {
    let mut cursor = Cursor::new(text);
    let mut fields = cursor.enter(b'{').ok()?;
    let mut entries = 0;
    while cursor.has_next(&mut fields).ok()? {
        let name = cursor.key().ok()?;
        let json = cursor.value().ok()?;
        if ENTRIES.contains(&&*name) {
            entries += elements_of(json);
        }
    }
    Some(entries)
}

/// Number of elements of an array, or of objects in it if it is malformed; zero if it is not an array.
fn elements_of(json: &str) -> u64 {
    let mut cursor = Cursor::new(json);
    let Ok(mut elements) = cursor.enter(b'[') else { return 0 };
    let mut read = || {
        while cursor.has_next(&mut elements)? {
            cursor.value()?;
        }
        Ok::<_, String>(elements.count() as u64)
    };
    read().unwrap_or_else(|_| batch::objects(json.as_bytes()))
}

/// The fields of a history found so far.
#[derive(Default)]
struct HistoryFields<'p> {
    ticker: Option<RecordField<'p>>,
    period: Option<RecordField<'p>>,
    regime: Option<RecordField<'p>>,
    /// The name of the field with the entries.
    entries: Option<&'static str>,
    /// Whether the other field is present as well.
    has_both: bool,
    unknown: Fields<'p>,
}

struct Reader<'a, 'p> {
    answer: &'p Answer<'a>,
    place: &'p RecordPlace,
    /// The pointer with `*` for the ticker.
    pattern: &'static str,
    cursor: Cursor<'p>,
    is_list: bool,
    found: HistoryFields<'p>,
    rows: HistoryRows,
    notes: Notes<'a>,
    /// The template of the entries.
    template: Option<Template>,
    /// How often a template may still be learned; entries that keep changing are not worth it.
    lessons: u32,
}

/// More than the clock changes in a long history.
const LESSONS: u32 = 64;

impl<'a, 'p> Reader<'a, 'p> {
    fn new(answer: &'p Answer<'a>, place: &'p RecordPlace, pattern: &'static str, text: &'p str) -> Self {
        Self {
            answer,
            place,
            pattern,
            cursor: Cursor::new(text),
            is_list: text.starts_with('['),
            found: HistoryFields::default(),
            rows: HistoryRows::of_text(text),
            notes: Notes::of_piece(answer, text),
            template: None,
            lessons: LESSONS,
        }
    }

    /// Reads the history, which must be that of the requested ticker.
    fn read(mut self, asked: &str) -> Result<(Series, Notes<'a>), String> {
        if self.is_list {
            // The entries alone.
            self.found.entries = Some(ENTRIES[0]);
            self.entries(ENTRIES[0])?;
        } else {
            let mut members = self.cursor.enter(b'{')?;
            while self.cursor.has_next(&mut members)? {
                let name = self.cursor.key()?;
                self.field(name)?;
            }
        }
        self.cursor.end()?;
        let HistoryFields { ticker, period, regime, entries, unknown, .. } = std::mem::take(&mut self.found);
        let name = entries.ok_or_else(|| missing(ENTRIES[0]))?;
        let of = |name, field: Option<RecordField<'p>>| field.unwrap_or(RecordField::absent(name));
        let fields = [of("ticker", ticker), of("period", period), of("regime", regime)];
        let mut lenient = Leniencies::default();
        let key = self.answer.key(asked, fields, &mut lenient)?;
        self.notes.accepted_leniently(lenient);
        self.notes.unknown(self.pattern, &unknown);
        self.order(name);
        Ok((Series { key, rows: self.rows.batch() }, self.notes))
    }

    fn field(&mut self, name: Cow<'p, str>) -> Result<(), String> {
        if let Some(name) = ENTRIES.into_iter().find(|&known| known == name) {
            return self.entries_or_beside(name);
        }
        let json = self.cursor.value()?;
        let is_repeated = match &*name {
            "ticker" => self.found.ticker.replace(RecordField::new("ticker", json)).is_some(),
            "period" => self.found.period.replace(RecordField::new("period", json)).is_some(),
            "regime" => self.found.regime.replace(RecordField::new("regime", json)).is_some(),
            _ => {
                return push_unknown(&mut self.found.unknown, name, json);
            }
        };
        if is_repeated { Err(duplicate(&name)) } else { Ok(()) }
    }

    fn entries_or_beside(&mut self, name: &'static str) -> Result<(), String> {
        let first = match self.found.entries {
            None => {
                self.found.entries = Some(name);
                return self.entries(name);
            }
            Some(first) if first == name || self.found.has_both => return Err(duplicate(name)),
            Some(first) => first,
        };
        self.found.has_both = true;
        let json = well_formed(self.cursor.value()?)?;
        let reason = format!("`{name}` repeats `{first}`, which is kept");
        let records = elements_of(json).max(1);
        self.notes.reject(records, || self.place.below(format_args!("{name}")), reason, json.as_bytes());
        Ok(())
    }

    fn entries(&mut self, name: &'static str) -> Result<(), String> {
        let mut members = self.cursor.enter(b'[').map_err(|reason| format!("`{name}`: {reason}"))?;
        let mut before = self.cursor.at();
        while self.cursor.has_next(&mut members)? {
            let (position, start) = (members.count() - 1, self.cursor.at());
            let entry = self.entry(name, position)?;
            if let Some(entry) = entry
                && !self.entries_alike(&mut members)
                && position > 0
                && self.lessons > 0
            {
                self.lessons -= 1;
                self.template = Template::of(self.cursor.since(before), start - before, entry);
                self.entries_alike(&mut members);
            }
            before = self.cursor.at();
        }
        Ok(())
    }

    /// Reads the next entries as far as they match the template; returns whether any did.
    fn entries_alike(&mut self, members: &mut Members) -> bool {
        let Some(template) = &mut self.template else { return false };
        let before = members.count();
        while let Some((entry, start)) = template.read(&mut self.cursor) {
            let (position, start) = (members.count() as u32, start as u32);
            self.rows.push(HistoryRow { entry, position, start });
            self.notes.count_record();
            members.add();
        }
        members.count() > before
    }

    /// Reads any entry. Returns it if it follows the documented notation and has no unknown fields, so that a template
    /// can be learned from it.
    fn entry(&mut self, name: &'static str, position: usize) -> Result<Option<Entry>, String> {
        let start = self.cursor.at();
        match entry::read(&mut self.cursor) {
            Ok((entry, unknown, lenient)) => {
                // Pieces are too short for these to overflow.
                self.rows.push(HistoryRow { entry, position: position as u32, start: start as u32 });
                self.notes.count_record();
                if unknown.is_empty() && lenient == Leniencies::default() {
                    return Ok(Some(entry));
                }
                self.notes.accepted_leniently(lenient);
                if !unknown.is_empty() {
                    self.notes.unknown(&format!("{}/{name}/*", self.pattern), &unknown);
                }
                self.answer.rules.extra(&unknown).into_iter().for_each(|extra| self.rows.keep(extra));
            }
            Err(reason) => {
                self.cursor.go_to(start);
                let text = self.cursor.value()?;
                self.notes.reject_record(
                    || self.place.below(format_args!("{name}/{position}")),
                    reason,
                    text.as_bytes(),
                );
            }
        }
        Ok(None)
    }

    /// Orders the rows and rejects those with a duplicate date, unless they repeat an entry byte for byte.
    fn order(&mut self, name: &str) {
        let Self { cursor, place, rows, notes, .. } = self;
        rows.order(|later, kept| {
            let shown = dates::show(kept.entry.date.micros);
            let reason = format!("duplicate date {shown}; entry {} is kept", kept.position);
            // They were read before, so this cannot fail.
            let mut text_of = |row: HistoryRow| {
                cursor.go_to(row.start as usize);
                cursor.value().unwrap_or_default()
            };
            let (first, text) = (text_of(kept), text_of(later));
            if let Ok((_, _, lenient)) = entry::read(&mut Cursor::new(text)) {
                notes.rejected_after_all(lenient);
            }
            if first == text {
                notes.leave_out_repeat();
                return;
            }
            notes.reject_duplicate(|| place.below(format_args!("{name}/{}", later.position)), reason, text.as_bytes());
        });
        rows.list().iter().for_each(|row| notes.confidence(row.entry.confidence));
    }
}
