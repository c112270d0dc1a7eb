//! Decodes the history of one ticker, or its latest signal, into a series.
//!
//! Its four fields may be in any order. Its entries are in `predictions` or `items`; if both are present, the first is
//! read and the other is rejected. A history is rejected whole if it is not well-formed around its entries, if one of
//! its own fields is invalid, if it is not the requested one, or if its ticker occurred before in the answer; all of
//! its records then count as rejected. Unknown fields of the history itself are reported but not kept with a row: they
//! belong to none, and the row that had them would look revised when the history grows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Float64Array, Int8Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::answer::Answer;
use super::batch::{self, Piece};
use super::cursor::{Cursor, Members};
use super::notes::{AnswerPart, Decoded, Notes, RecordPlace};
use super::record::{self, COMPLAINTS, Fields, RecordField, complaint, duplicate, missing, push_unknown, well_formed};
use super::template::{Entry, Template};
use super::truncate;
use crate::interface::Signal;
use crate::tables::dates;
use crate::tables::{Leniencies, Series, Table, choices};

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
        if piece.is_repeated {
            let offset = piece.offset;
            return Err(format!(
                "duplicate ticker `{key}`: another history starts at byte {offset}; the first is kept"
            ));
        }
        // A ticker of which the service says that it has nothing.
        let text = if matches!(text, "null" | "{}") { "[]" } else { text };
        Reader::new(answer, &RecordPlace::new(answer, piece), "/*", text).read(&key)
    })
}

/// Decodes a body with the history of one ticker.
pub(super) fn decode_one(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    decode(answer, pieces, |piece| {
        let text = piece.text()?;
        let read = Reader::new(answer, &RecordPlace::new(answer, piece), "", text).read(answer.asked_ticker().as_str());
        read.map_err(|reason| complaint(text).unwrap_or(reason))
    })
}

fn decode<'a>(
    answer: &Answer<'a>,
    pieces: &[Piece<'_>],
    read: impl Fn(&Piece<'_>) -> Result<(Series, Notes<'a>), String>,
) -> Decoded {
    let mut notes = Notes::new(answer);
    for piece in pieces {
        match read(piece) {
            Ok((series, of_history)) => {
                notes.found.histories += 1;
                notes.found.lost += u64::from(series.rows.num_rows() == 0 && of_history.found.rejected > 0);
                notes.found.append(of_history.finish());
                notes.found.parts.push(AnswerPart::Series(series));
            }
            Err(_) if let Some((name, json)) = beside_tickers(piece) => notes.unknown("", &[(name, json)]),
            Err(reason) => {
                notes.found.histories += 1;
                notes.found.lost += 1;
                notes.reject_piece(answer, piece, weight(piece), reason);
            }
        }
    }
    notes.finish()
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
        Ok::<_, String>(elements.count as u64)
    };
    read().unwrap_or_else(|_| batch::objects(json.as_bytes()))
}

struct Reader<'a, 'p> {
    answer: &'p Answer<'a>,
    place: &'p RecordPlace,
    /// The pointer with `*` for the ticker.
    pattern: &'static str,
    cursor: Cursor<'p>,
    /// The ticker, the period and the regime.
    key: [RecordField<'p>; 3],
    /// The name of the field with the entries, once it was found, and whether the other field was found as well.
    entries: Option<&'static str>,
    has_both: bool,
    unknown: Fields<'p>,
    /// The entries, each with its position in the history and its offset in the text.
    rows: Vec<(Entry, u32, u32)>,
    /// Unknown fields by the position of their entry, sorted.
    extras: Vec<(u32, String)>,
    notes: Notes<'a>,
    /// The template of the entries.
    template: Option<Template>,
    /// How often a template may still be learned; entries that keep changing are not worth it.
    lessons: u32,
}

impl<'a, 'p> Reader<'a, 'p> {
    fn new(answer: &'p Answer<'a>, place: &'p RecordPlace, pattern: &'static str, text: &'p str) -> Self {
        /// A little less than an entry as the service writes it, without whitespace.
        const ENTRY: usize = 64;
        Self {
            answer,
            place,
            pattern,
            cursor: Cursor::new(text),
            key: ["ticker", "period", "regime"].map(RecordField::absent),
            entries: None,
            has_both: false,
            unknown: Fields::new(),
            rows: Vec::with_capacity(text.len() / ENTRY),
            extras: Vec::new(),
            notes: Notes::of_piece(answer, text),
            template: None,
            // More than the clock changes in a long history.
            lessons: 64,
        }
    }

    /// Reads the history, which must be that of the requested ticker.
    fn read(mut self, asked: &str) -> Result<(Series, Notes<'a>), String> {
        if self.cursor.rest().starts_with(b"[") {
            // The entries alone.
            self.entries = Some(ENTRIES[0]);
            self.entries(ENTRIES[0])?;
        } else {
            let mut members = self.cursor.enter(b'{')?;
            while self.cursor.has_next(&mut members)? {
                let name = self.cursor.key()?;
                self.field(name)?;
            }
        }
        self.cursor.end()?;
        let name = self.entries.ok_or_else(|| missing(ENTRIES[0]))?;
        let key = self.answer.key(asked, self.key, &mut self.notes.found.lenient)?;
        self.notes.unknown(self.pattern, &self.unknown);
        self.order(name);
        Ok((Series { key, rows: self.batch() }, self.notes))
    }

    fn field(&mut self, name: Cow<'p, str>) -> Result<(), String> {
        if let Some(name) = ENTRIES.into_iter().find(|&known| known == name) {
            return self.entries_or_beside(name);
        }
        let value = self.cursor.raw()?;
        let Some(field) = self.key.iter_mut().find(|field| field.name == name) else {
            return push_unknown(&mut self.unknown, name, value.json);
        };
        if field.value.replace(value).is_some() { Err(duplicate(&name)) } else { Ok(()) }
    }

    fn entries_or_beside(&mut self, name: &'static str) -> Result<(), String> {
        let Some(first) = self.entries else {
            self.entries = Some(name);
            return self.entries(name);
        };
        if first == name || self.has_both {
            return Err(duplicate(name));
        }
        self.has_both = true;
        let json = well_formed(self.cursor.value()?)?;
        let reason = format!("`{name}` repeats `{first}`, which is kept");
        let records = elements_of(json).max(1);
        self.notes.reject(records, || self.place.below(format_args!("{name}")), reason, json.as_bytes());
        Ok(())
    }

    fn entries(&mut self, name: &'static str) -> Result<(), String> {
        let mut members = self.cursor.enter(b'[').map_err(|reason| format!("`{name}`: {reason}"))?;
        let mut before = self.cursor.at;
        while self.cursor.has_next(&mut members)? {
            let (position, start) = (members.count - 1, self.cursor.at);
            let entry = self.entry(name, position)?;
            if let Some(entry) = entry
                && !self.entries_alike(&mut members)
                && position > 0
                && self.lessons > 0
            {
                self.lessons -= 1;
                self.template = Template::learn(self.cursor.since(before), start - before, entry);
                self.entries_alike(&mut members);
            }
            before = self.cursor.at;
        }
        Ok(())
    }

    /// Reads the next entries as far as they match the template; returns whether any did.
    fn entries_alike(&mut self, members: &mut Members) -> bool {
        let Some(template) = &mut self.template else { return false };
        let before = members.count;
        while let Some((entry, start)) = template.read(&mut self.cursor) {
            let (position, start) = (members.count as u32, start as u32);
            self.rows.push((entry, position, start));
            self.notes.found.records += 1;
            members.count += 1;
        }
        members.count > before
    }

    /// Reads any entry. Returns it if it follows the documented notation and has no unknown fields, so that a template
    /// can be learned from it.
    fn entry(&mut self, name: &'static str, position: usize) -> Result<Option<Entry>, String> {
        let start = self.cursor.at;
        match read_entry(&mut self.cursor) {
            Ok((entry, unknown, lenient)) => {
                // Pieces are too short for these to overflow.
                self.rows.push((entry, position as u32, start as u32));
                self.notes.found.records += 1;
                if unknown.is_empty() && lenient == Leniencies::default() {
                    return Ok(Some(entry));
                }
                self.notes.found.lenient += lenient;
                if !unknown.is_empty() {
                    self.notes.unknown(&format!("{}/{name}/*", self.pattern), &unknown);
                }
                self.extras.extend(self.answer.rules.extra(&unknown).map(|extra| (position as u32, extra)));
            }
            Err(reason) => {
                self.cursor.at = start;
                let text = self.cursor.value()?;
                let place = || self.place.below(format_args!("{name}/{position}"));
                self.notes.reject(1, place, reason, text.as_bytes());
            }
        }
        Ok(None)
    }

    /// Orders the rows by date. Of rows with the same date the first one listed is kept; the others are rejected, unless they
    /// repeat an entry byte for byte.
    fn order(&mut self, name: &str) {
        let Self { cursor, place, rows, notes, .. } = self;
        let date = |row: &(Entry, u32, u32)| row.0.date.micros;
        if rows.is_sorted_by(|one, next| date(one) > date(next)) {
            // The documented order is newest first.
            rows.reverse();
        } else if !rows.is_sorted_by(|one, next| date(one) < date(next)) {
            rows.sort_unstable_by_key(|row| (date(row), row.1));
            rows.dedup_by(|later, kept| {
                if date(later) != date(kept) {
                    return false;
                }
                // They were read before, so this cannot fail.
                let [text, first] = [&*later, &*kept].map(|row| {
                    cursor.at = row.2 as usize;
                    cursor.value().unwrap_or_default()
                });
                // It was counted already.
                notes.found.records -= 1;
                if let Ok((_, _, lenient)) = read_entry(&mut Cursor::new(text)) {
                    notes.found.lenient.signals -= lenient.signals;
                    notes.found.lenient.dates -= lenient.dates;
                    notes.found.lenient.confidences -= lenient.confidences;
                }
                if first == text {
                    notes.found.lenient.repeated += 1;
                } else {
                    let reason = format!("duplicate date {}; entry {} is kept", dates::show(date(kept)), kept.1);
                    let place = || place.below(format_args!("{name}/{}", later.1));
                    notes.reject(1, place, reason, text.as_bytes());
                }
                true
            });
        }
        rows.iter().for_each(|(entry, ..)| notes.confidence(entry.confidence));
    }

    /// The rows as columns.
    fn batch(&self) -> RecordBatch {
        let (rows, count) = (&self.rows, self.rows.len());
        let with_offset = rows.iter().filter(|(entry, ..)| entry.date.offset_minutes.is_some()).count();
        let offsets = if with_offset == 0 {
            Int16Array::new_null(count)
        } else if with_offset == count {
            rows.iter().filter_map(|(entry, ..)| entry.date.offset_minutes).collect::<Vec<i16>>().into()
        } else {
            rows.iter().map(|(entry, ..)| entry.date.offset_minutes).collect()
        };
        let extra = |position: &u32| {
            let found = self.extras.binary_search_by_key(position, |(position, _)| *position).ok()?;
            Some(&self.extras[found].1)
        };
        let extras = match self.extras.is_empty() {
            true => StringArray::new_null(count),
            false => rows.iter().map(|(_, position, _)| extra(position)).collect(),
        };
        let signals = Int8Array::from_iter_values(rows.iter().map(|(entry, ..)| entry.signal as i8));
        let confidences = Float64Array::from_iter_values(rows.iter().map(|(entry, ..)| entry.confidence));
        let dates = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(entry, ..)| entry.date.micros));
        list_signals(dates, offsets, signals, confidences, extras)
    }
}

fn list_signals(
    dates: TimestampMicrosecondArray,
    offsets: Int16Array,
    signals: Int8Array,
    confidences: Float64Array,
    extras: StringArray,
) -> RecordBatch {
    let listed = Table::Signals.list(&[
        ("date", Arc::new(dates)),
        ("utc_offset_minutes", Arc::new(offsets)),
        ("signal", choices(signals, Signal::ALL.map(Signal::as_str))),
        ("confidence", Arc::new(confidences)),
        ("extra", Arc::new(extras)),
    ]);
    listed.expect("the columns are those of the table")
}

/// Decodes a body with the latest signal of one ticker into a series of one row. Its date may be null or missing; the row then
/// has none. If neither `signal` nor `confidence` is present, the older names `ei` and `ci` are read.
pub(super) fn decode_latest(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    Notes::decode_records(answer, pieces, |notes, text| read_latest(answer, notes, text))
}

fn read_latest(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &str) -> Result<Series, String> {
    const NEWER: [&str; 2] = ["signal", "confidence"];
    const OLDER: [&str; 2] = ["ei", "ci"];
    let [signal, confidence] = if record::is_of_older_form(text, &NEWER, &OLDER)? { OLDER } else { NEWER };
    let (fields, unknown) = record::read(text, ["ticker", "date", "period", "regime", signal, confidence])?;
    let [ticker, date, period, regime, signal, confidence] = fields;
    let mut lenient = Leniencies::default();
    let key = answer.key(answer.asked_ticker().as_str(), [ticker, period, regime], &mut lenient)?;
    let (signal, confidence) = (signal.signal(&mut lenient)?, confidence.confidence(&mut lenient)?);
    let date = date.if_given().map(|date| date.date(&mut lenient)).transpose()?;
    notes.found.records += 1;
    notes.found.lenient += lenient;
    notes.confidence(confidence);
    // A signal without a date is kept, but no dataset can have it.
    notes.found.undated += u64::from(date.is_none());
    notes.unknown("", &unknown);
    let rows = list_signals(
        TimestampMicrosecondArray::from_iter([date.map(|date| date.micros)]),
        Int16Array::from_iter([date.and_then(|date| date.offset_minutes)]),
        Int8Array::from_iter_values([signal as i8]),
        Float64Array::from_iter_values([confidence]),
        StringArray::from_iter([answer.rules.extra(&unknown)]),
    );
    Ok(Series { key, rows })
}

/// Reads the next entry, its fields in any order and spelling, with its unknown fields and the leniencies it took. After an error the cursor may be anywhere.
pub(super) fn read_entry<'a>(cursor: &mut Cursor<'a>) -> Result<(Entry, Fields<'a>, Leniencies), String> {
    let ([date, signal, confidence], unknown) = record::read_next(cursor, ["date", "signal", "confidence"])?;
    let mut lenient = Leniencies::default();
    let entry = Entry {
        date: date.date(&mut lenient)?,
        signal: signal.signal(&mut lenient)?,
        confidence: confidence.confidence(&mut lenient)?,
    };
    Ok((entry, unknown, lenient))
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Entry, read_entry as read};
    use crate::interface::Signal;
    use crate::tables::Leniencies;

    #[test]
    fn equivalent_spellings_of_an_entry_are_equal() {
        for text in [
            r#"{"date":"2026-11-20T00:00:00","signal":"sell","confidence":0.75}"#,
            r#"{"confidence": 75e-2, "date": "2026-11-20T00:00:00", "signal": "sell"}"#,
            "{\n\t\"date\" : \"2026-11-20T00:00:00\" ,\r\n\"signal\" :\"sell\" , \"confidence\": 0.75 }",
            r#"{"\u0064ate":"2026-11-20T00:00:00","signal":"s\u0065ll","confidence":0.75}"#,
        ] {
            let mut cursor = Cursor::new(text);
            let (Entry { date, signal, confidence }, unknown, lenient) = read(&mut cursor).unwrap();
            assert_eq!((date.micros, date.offset_minutes), (1_795_132_800_000_000, None), "{text}");
            assert_eq!((signal, confidence), (Signal::Sell, 0.75), "{text}");
            assert_eq!((unknown.len(), lenient, cursor.at), (0, Leniencies::default(), text.len()), "{text}");
        }
    }

    #[test]
    fn unknown_fields_and_unexpected_letter_case_are_reported() {
        let text = r#"{"date":1795132800,"signal":"buy","confidence":" 0.75"}"#;
        let (entry, _, lenient) = read(&mut Cursor::new(text)).unwrap();
        assert_eq!((entry.date.micros, entry.confidence), (1_795_132_800_000_000, 0.75));
        assert_eq!((lenient.dates, lenient.confidences), (1, 1));
        let text = r#"{"date":"2026-11-20t00:00:00z","model":[1],"signal":"BUY","confidence":0.75}, 1"#;
        let (entry, unknown, lenient) = read(&mut Cursor::new(text)).unwrap();
        assert_eq!((entry.signal, entry.date.offset_minutes), (Signal::Buy, Some(0)));
        assert_eq!(unknown, [("model".into(), "[1]")]);
        assert_eq!((lenient.signals, lenient.dates), (1, 1));
    }

    #[test]
    fn an_invalid_entry_is_rejected_with_a_reason() {
        for (text, reason) in [
            ("1", "expected an object, found a number"),
            ("{}", "missing field `date`"),
            (
                r#"{"date": 5, "signal": "buy", "confidence": 1}"#,
                "`date`: `5` is not a date: a number is one as seconds or milliseconds since 1970",
            ),
            (r#"{"date": null, "signal": "buy", "confidence": 1}"#, "`date`: expected a string, found null"),
            (
                r#"{"date": "soon", "signal": "buy", "confidence": 1}"#,
                "`date`: `soon` is not a valid date: dates are such as `2026-11-20`, `2026-11-20T16:00:00Z` or `2026-11-20T16:00:00-05:00`",
            ),
            (r#"{"date": "2026-11-20", "signal": "hold", "confidence": 1}"#, "`signal`: unknown signal `hold`"),
            (
                r#"{"date": "2026-11-20", "signal": "buy", "confidence": NaN}"#,
                "`confidence`: expected a number, found something that is not JSON",
            ),
            (
                r#"{"date": "2026-11-20", "signal": "buy", "confidence": 01}"#,
                "`confidence`: `01` is not a finite decimal number",
            ),
            (r#"{"date": "2026-11-20", "signal": "buy"}"#, "missing field `confidence`"),
            (
                r#"{"date": "2026-11-20", "signal": "buy", "confidence": "high"}"#,
                "`confidence`: `high` is not a finite decimal number",
            ),
            (r#"{"date": "2026-11-20", "date": "2026-11-20", "signal": "buy"}"#, "duplicate field `date`"),
        ] {
            assert_eq!(read(&mut Cursor::new(text)).unwrap_err(), reason, "{text}");
        }
    }
}
