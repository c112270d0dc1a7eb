//! Reads one entry of a history, with its fields in any order and spelling.

use super::cursor::Cursor;
use super::record::{self, Fields};
use crate::interface::Signal;
use crate::tables::Leniencies;
use crate::tables::dates::Date;

/// A signal with its date and confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) date: Date,
    pub(super) signal: Signal,
    pub(super) confidence: f64,
}

/// Reads the next entry, with its unknown fields and the leniencies it took. After an error the cursor may be anywhere.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>) -> Result<(Entry, Fields<'a>, Leniencies), String> {
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
    use super::super::cursor::Cursor;
    use super::{Entry, read};
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
            assert_eq!((unknown.len(), lenient, cursor.at()), (0, Leniencies::default(), text.len()), "{text}");
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
