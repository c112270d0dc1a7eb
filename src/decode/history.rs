//! The history of one ticker, to a series.
//!
//! Its four fields may come in any order. Its entries stand under `predictions` or `items`, whichever the service
//! writes; where both stand, the first listed holds the entries and the other is rejected. A history is rejected whole
//! when it is not well-formed around its entries, when a field of its own is at fault, when it is not the history that
//! was asked for, or when its ticker stood in the answer before; it then weighs as many records as it had. Fields of a
//! history that the interface does not know are reported as drift, and not kept with a row: no row owns them, and whichever
//! had them would look revised when the history grows.

use std::borrow::Cow;

use super::answer::Answer;
use super::batch::{self, Piece};
use super::cursor::{Cursor, Members};
use super::decoded::{AnswerPart, Decoded};
use super::entry::{self, Entry};
use super::notes::{Notes, RecordPlace};
use super::record::{Field, Fields, duplicate, missing, push_unknown, well_formed};
use super::rows::{HistoryRow, HistoryRows};
use super::template::Template;
use crate::date;
use crate::interface::{Period, Regime, Ticker};
use crate::tables::{Leniencies, Series, SeriesKey};

/// The names of the field that holds the entries, the newer one first.
const ENTRIES: [&str; 2] = ["predictions", "items"];

/// Decodes the values of an object whose keys are tickers.
pub(super) fn decode_many(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    decode(answer, pieces, |piece| {
        let (text, key) = (piece.text()?, piece.name()?);
        if piece.is_repeated {
            let offset = piece.offset;
            return Err(format!(
                "duplicate ticker `{key}`: its other history begins at byte {offset}; the first is kept"
            ));
        }
        Reader::new(answer, &RecordPlace::of(answer, piece), "/*", text).read(&key)
    })
}

/// Decodes a body that is the history of one ticker.
pub(super) fn decode_one(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    decode(answer, pieces, |piece| {
        Reader::new(answer, &RecordPlace::of(answer, piece), "", piece.text()?).read(answer.asked_ticker().as_str())
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
            Err(reason) => notes.reject_history(answer, piece, weight(piece), reason),
        }
    }
    notes.with(parts)
}

/// How many records a history had that is rejected whole: its entries, where its form lets them be counted, or else the
/// objects in it; at least one.
fn weight(piece: &Piece<'_>) -> u64 {
    let counted = piece.text().ok().and_then(entries_of);
    counted.unwrap_or_else(|| piece.objects().saturating_sub(1)).max(1)
}

/// The entries of a history under either of their names; none where that is no history that can be read through.
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

/// The elements of an array, or the objects in it where it cannot be read through; none where it is no array.
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

/// The fields of a history as they are found.
#[derive(Default)]
struct HistoryFields<'p> {
    ticker: Option<Ticker>,
    period: Option<Period>,
    regime: Option<Regime>,
    /// The name under which the entries stand.
    entries: Option<&'static str>,
    /// Whether the other name stands beside it.
    has_both: bool,
    unknown: Fields<'p>,
}

struct Reader<'a, 'p> {
    answer: &'p Answer<'a>,
    place: &'p RecordPlace,
    /// The place with `*` for the ticker.
    pattern: &'static str,
    cursor: Cursor<'p>,
    found: HistoryFields<'p>,
    rows: HistoryRows,
    notes: Notes<'a>,
    /// The template of the entries.
    template: Option<Template>,
    /// How often it may still be learned: what changes all the time has none.
    lessons: u32,
}

/// More than the turns of the clocks in a long history.
const LESSONS: u32 = 64;

impl<'a, 'p> Reader<'a, 'p> {
    fn new(answer: &'p Answer<'a>, place: &'p RecordPlace, pattern: &'static str, text: &'p str) -> Self {
        Self {
            answer,
            place,
            pattern,
            cursor: Cursor::new(text),
            found: HistoryFields::default(),
            rows: HistoryRows::of_text(text),
            notes: Notes::of_piece(answer, text),
            template: None,
            lessons: LESSONS,
        }
    }

    /// Reads the history, which must be that of the ticker that was asked for.
    fn read(mut self, asked: &str) -> Result<(Series, Notes<'a>), String> {
        let mut members = self.cursor.enter(b'{')?;
        while self.cursor.has_next(&mut members)? {
            let name = self.cursor.key()?;
            self.field(name)?;
        }
        self.cursor.end()?;
        let HistoryFields { ticker, period, regime, entries, unknown, .. } = std::mem::take(&mut self.found);
        let name = entries.ok_or_else(|| missing(ENTRIES[0]))?;
        let key = SeriesKey {
            ticker: ticker.ok_or_else(|| missing("ticker"))?,
            period: Some(period.ok_or_else(|| missing("period"))?),
            regime: Some(regime.ok_or_else(|| missing("regime"))?),
            source: self.answer.request.endpoint,
        };
        self.answer.check(asked, &key)?;
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
            "ticker" => self.found.ticker.replace(Field::new("ticker", json).one_of()?).is_some(),
            "period" => self.found.period.replace(Field::new("period", json).one_of()?).is_some(),
            "regime" => self.found.regime.replace(Field::new("regime", json).one_of()?).is_some(),
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
        let reason = format!("`{name}` stands beside `{first}`, which is taken");
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

    /// Reads the entries that come next, as far as they match the template; returns whether any did.
    fn entries_alike(&mut self, members: &mut Members) -> bool {
        let Some(template) = &mut self.template else { return false };
        let before = members.count();
        while let Some((entry, start)) = template.read(&mut self.cursor) {
            let (position, start) = (members.count() as u32, start as u32);
            self.rows.push(HistoryRow { entry, position, start });
            self.notes.typed();
            members.add();
        }
        members.count() > before
    }

    /// Reads an entry of any form. Returns it if it is spelled as the interface documents and has no unknown fields, so
    /// that a template can be learned from it.
    fn entry(&mut self, name: &'static str, position: usize) -> Result<Option<Entry>, String> {
        let start = self.cursor.at();
        match entry::read(&mut self.cursor) {
            Ok((entry, unknown, lenient)) => {
                // A piece is far shorter than what these can count.
                self.rows.push(HistoryRow { entry, position: position as u32, start: start as u32 });
                self.notes.typed();
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
                self.notes.set_aside(|| self.place.below(format_args!("{name}/{position}")), reason, text.as_bytes());
            }
        }
        Ok(None)
    }

    /// Orders the rows and rejects those whose date stands twice.
    fn order(&mut self, name: &str) {
        let Self { cursor, place, rows, notes, .. } = self;
        rows.order(|later, kept| {
            let shown = date::show(kept.entry.date.micros);
            let reason = format!("duplicate date {shown}; entry {} is kept", kept.position);
            cursor.go_to(later.start as usize);
            // It has been read once, so it can be cut out again.
            let text = cursor.value().unwrap_or_default();
            if let Ok((_, _, lenient)) = entry::read(&mut Cursor::new(text)) {
                notes.rejected_after_all(lenient);
            }
            notes.twice(|| place.below(format_args!("{name}/{}", later.position)), reason, text.as_bytes());
        });
        rows.list().iter().for_each(|row| notes.confidence(row.entry.confidence));
    }
}
