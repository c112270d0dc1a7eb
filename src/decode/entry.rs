//! One entry of a history, in two ways that agree.
//!
//! [`read_plain`] reads what the service writes, straight from its bytes: three fields in any order, once each, without
//! escapes. It says no more than yes or no. Whatever it does not know is read again by [`read_any`], the exact way,
//! which tells a good entry that is merely unusual from a bad one, and why that is bad.

use super::cursor::Cursor;
use super::number;
use super::record::{self, Fields};
use crate::date::{self, Date};
use crate::interface::Signal;
use crate::tables::Leniencies;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) date: Date,
    pub(super) signal: Signal,
    pub(super) confidence: f64,
}

/// Reads the entry that comes next if it is of the plain form; otherwise the cursor may stand anywhere.
#[inline]
pub(super) fn read_plain(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let (mut date, mut signal, mut confidence) = (None, None, None);
    if !cursor.eat(b"{") {
        return None;
    }
    loop {
        cursor.skip_white();
        let is_repeated = if cursor.eat(b"\"date\"") {
            enter_value(cursor)?;
            date.replace(plain_date(cursor)?).is_some()
        } else if cursor.eat(b"\"signal\"") {
            enter_value(cursor)?;
            signal.replace(plain_signal(cursor)?).is_some()
        } else if cursor.eat(b"\"confidence\"") {
            enter_value(cursor)?;
            let (value, length) = number::read_first(cursor.rest())?;
            cursor.go_on(length);
            confidence.replace(value).is_some()
        } else {
            return None;
        };
        if is_repeated {
            return None;
        }
        if !has_next_field(cursor)? {
            return Some(Entry { date: date?, signal: signal?, confidence: confidence? });
        }
    }
}

/// Whether another field comes behind a value, or the end of the record; none where neither does.
#[inline]
pub(super) fn has_next_field(cursor: &mut Cursor<'_>) -> Option<bool> {
    cursor.skip_white();
    if cursor.eat(b",") {
        return Some(true);
    }
    cursor.eat(b"}").then_some(false)
}

/// Goes on over the colon behind a name.
#[inline]
pub(super) fn enter_value(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.skip_white();
    let comes = cursor.eat(b":");
    cursor.skip_white();
    comes.then_some(())
}

#[inline]
fn plain_signal(cursor: &mut Cursor<'_>) -> Option<Signal> {
    if cursor.eat(b"\"buy\"") {
        Some(Signal::Buy)
    } else if cursor.eat(b"\"sell\"") {
        Some(Signal::Sell)
    } else {
        None
    }
}

/// A date in quotes.
#[inline]
pub(super) fn plain_date(cursor: &mut Cursor<'_>) -> Option<Date> {
    /// The lengths of the forms that are common: a calendar date alone, with a time, with `Z`, with an offset.
    const LENGTHS: [usize; 4] = [10, 19, 20, 25];
    if !cursor.eat(b"\"") {
        return None;
    }
    // From the shortest on, for behind the closing quote there may be others.
    let rest = cursor.rest();
    let ends = |length: &usize| rest.get(*length) == Some(&b'"');
    let length = LENGTHS.into_iter().find(ends).or_else(|| memchr::memchr(b'"', rest))?;
    let date = date::read_bytes(&rest[..length])?;
    cursor.go_on(length + 1);
    Some(date)
}

/// Goes on to the date of an entry that begins with one: behind the quote, at the byte that is told.
pub(super) fn enter_date(cursor: &mut Cursor<'_>) -> Option<usize> {
    enter_field(cursor, b"{", b"\"date\"")?;
    cursor.eat(b"\"").then(|| cursor.at())
}

/// Goes on to the signal that follows a date, behind the quote.
pub(super) fn enter_signal(cursor: &mut Cursor<'_>) -> Option<usize> {
    enter_field(cursor, b",", b"\"signal\"")?;
    cursor.eat(b"\"").then(|| cursor.at())
}

/// Goes on to the confidence that follows a signal.
pub(super) fn enter_confidence(cursor: &mut Cursor<'_>) -> Option<usize> {
    enter_field(cursor, b",", b"\"confidence\"")?;
    Some(cursor.at())
}

fn enter_field(cursor: &mut Cursor<'_>, before: &[u8], name: &[u8]) -> Option<()> {
    cursor.skip_white();
    let comes = cursor.eat(before);
    cursor.skip_white();
    if comes && cursor.eat(name) { enter_value(cursor) } else { None }
}

/// Reads an entry from its text, with the fields that the interface does not know and what was spelled otherwise.
pub(super) fn read_any(text: &str) -> Result<(Entry, Fields<'_>, Leniencies), String> {
    let ([date, signal, confidence], unknown) = record::read(text, ["date", "signal", "confidence"])?;
    let mut lenient = Leniencies::default();
    let entry = Entry {
        date: date.date(&mut lenient)?,
        signal: signal.signal(&mut lenient)?,
        confidence: confidence.number()?,
    };
    Ok((entry, unknown, lenient))
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::{read_any, read_plain};
    use crate::tables::Leniencies;

    #[test]
    fn the_forms_of_the_service_are_plain() {
        for text in [
            r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.75}"#,
            r#"{"confidence": 1e-1, "date": "2026-11-20", "signal": "sell"}"#,
            r#"{"date":"2026-11-20","signal":"buy","confidence":0.5}"#,
            "{\n\t\"date\" : \"2026-11-20T00:00:00Z\" ,\r\n\"signal\" :\"sell\" , \"confidence\": -3 }",
            r#"{"date":"2026-11-20T00:00:00-05:00","signal":"buy","confidence":1}"#,
            r#"{"date":"2026-11-20T00:00:00.123456+00:00","signal":"buy","confidence":1}"#,
        ] {
            let plain = read_plain(&mut Cursor::new(text));
            let (exact, unknown, lenient) = read_any(text).unwrap();
            assert_eq!(plain, Some(exact), "{text}");
            assert!(unknown.is_empty());
            assert_eq!(lenient, Leniencies::default(), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_may_still_be_an_entry() {
        for text in [
            r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.75,"model":1}"#,
            r#"{"\u0064ate":"2026-11-20T00:00:00","signal":"\u0062uy","confidence":0.75}"#,
            r#"{"date":"2026-11-20T00:00:00","signal":"BUY","confidence":0.75}"#,
            r#"{"date":"2026-11-20t00:00:00z","signal":"buy","confidence":0.75}"#,
        ] {
            assert_eq!(read_plain(&mut Cursor::new(text)), None, "{text}");
            assert!(read_any(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_entry_has_a_reason() {
        for (text, reason) in [
            ("1", "expected an object, found a number"),
            ("{}", "missing field `date`"),
            (r#"{"date": null, "signal": "buy", "confidence": 1}"#, "`date`: expected a string, found null"),
            (r#"{"date": "soon", "signal": "buy", "confidence": 1}"#, "`date`: `soon` is not a date of the interface"),
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
                r#"{"date": "2026-11-20", "signal": "buy", "confidence": "1"}"#,
                "`confidence`: expected a number, found a string",
            ),
            (r#"{"date": "2026-11-20", "date": "2026-11-20", "signal": "buy"}"#, "duplicate field `date`"),
        ] {
            assert_eq!(read_plain(&mut Cursor::new(text)), None, "{text}");
            assert_eq!(read_any(text).unwrap_err(), reason, "{text}");
        }
    }
}
