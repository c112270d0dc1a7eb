//! Properties of decoding that hold for any bytes, for fuzzing and for tests that mutate known bodies. Compiled only
//! with the feature `harness` and for tests.
//!
//! Each function takes arbitrary bytes and panics if a property is violated. The oracle is `serde_json` with its own
//! types. It shares no code with the decoders except for reading dates, which has its own harness here.

mod conservation;
mod oracle;
mod records;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io::{BufRead, BufReader};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, Utc};
use serde_json::Value;
use serde_json::value::RawValue;

use super::batch::{Batch, Bounds};
use super::scan::{Malformed, Shape, Unwrapping};
use super::stream::BodyBatches;
use super::{Answer, AnswerPart, DecodeFault, Decoded, Rules, number};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::tables::dates;
use crate::tables::{Leniencies, Series, SeriesKey, Table};
pub use conservation::conserve;
use oracle::{Item, contents};
use records::Pairs;

/// The ticker of requests for one ticker.
const TICKER: &str = "AAPL";

/// Number of pieces in the object of a body.
pub fn count_pieces(body: &[u8]) -> usize {
    let mut batches = BodyBatches::new(body, Shape::Fields, &[], Bounds::ANSWER);
    let mut count = 0;
    while let Ok(Some(batch)) = batches.next::<Infallible>(|| usize::MAX) {
        count += batch.pieces().len();
    }
    count
}

/// A body is split as `serde_json` splits it, in chunks of any size.
pub fn scan(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else { return };
    let shape = [Shape::Fields, Shape::Elements, Shape::Record, Shape::Anything][usize::from(choice % 4)];
    let cut = cut_by(shape, body, body.len().max(1));
    assert_eq!(cut, cut_by(shape, body, usize::from(choice / 4) + 1), "the result depends on the chunk size");
    // The same in an object that wraps it, if it is whole.
    if serde_json::from_slice::<&RawValue>(body).is_ok() {
        let wrapped = [b"{\"x\":[1],\"data\":", body, b",\"data\":0}"].concat();
        assert_eq!(unwrapped_by(shape, &wrapped, usize::from(choice / 4) + 1).ok(), cut.as_ref().ok().cloned());
    }
    match (cut, pairs_of(shape, body)) {
        (cut, Some(pairs)) => {
            let pairs = pairs.into_iter().map(|(name, json)| Cut { name: Some(name), value: json.into_bytes() });
            assert_eq!(cut, Ok(pairs.collect()));
        }
        // Invalid JSON can be split only because pieces are not validated.
        (Ok(pieces), None) => {
            let is_json = |value: &[u8]| serde_json::from_slice::<&RawValue>(value).is_ok();
            assert!(pieces.iter().any(|piece| piece.name.is_none() || !is_json(&piece.value)), "{pieces:?}");
        }
        (Err(Malformed { offset, .. }), None) => assert!(offset <= body.len() as u64),
    }
}

fn unwrapped_by(shape: Shape, body: &[u8], portion: usize) -> Result<Vec<Cut>, Malformed> {
    let mut batch = Batch::new(Bounds { batch_bytes: usize::MAX, batch_pieces: usize::MAX, ..Bounds::ANSWER });
    let mut unwrapping = Unwrapping::new(&["data".to_owned()], shape);
    for bytes in body.chunks(portion) {
        unwrapping.feed(bytes, &mut batch)?;
    }
    unwrapping.finish(&mut batch)?;
    Ok(batch.pieces().iter().map(Cut::of).collect())
}

/// A piece; its name is `None` if invalid, and empty if pieces have no names.
#[derive(Clone, Debug, PartialEq)]
struct Cut {
    name: Option<String>,
    value: Vec<u8>,
}

impl Cut {
    fn of(piece: &super::batch::Piece<'_>) -> Self {
        Self { name: piece.name().ok().map(|name| name.into_owned()), value: piece.value.to_vec() }
    }
}

fn cut_by(shape: Shape, body: &[u8], portion: usize) -> Result<Vec<Cut>, Malformed> {
    let mut batch = Batch::new(Bounds { batch_bytes: usize::MAX, batch_pieces: usize::MAX, ..Bounds::ANSWER });
    let mut scanner = Unwrapping::new(&[], shape);
    for bytes in body.chunks(portion) {
        scanner.feed(bytes, &mut batch)?;
    }
    scanner.finish(&mut batch)?;
    let pieces = batch.pieces();
    for piece in &pieces {
        assert!(
            body[piece.offset as usize..].starts_with(piece.value),
            "the offset is that of the first byte of the value"
        );
    }
    Ok(pieces.iter().map(Cut::of).collect())
}

/// The pieces of a body by `serde_json`; `None` if it is not JSON or has another shape.
fn pairs_of(shape: Shape, body: &[u8]) -> Option<Vec<(String, String)>> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let first = *body.trim_ascii_start().first()?;
    let unnamed = |json: &RawValue| (String::new(), json.get().to_owned());
    // `null` says that there is nothing, and so does `[]` where an object is expected.
    let is_nothing = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Null) => shape != Shape::Anything,
        Ok(Value::Array(list)) => list.is_empty() && matches!(shape, Shape::Fields | Shape::Record),
        _ => false,
    };
    if is_nothing {
        return Some(Vec::new());
    }
    match shape {
        Shape::Fields => {
            let Pairs(pairs) = serde_json::from_slice(body).ok()?;
            Some(pairs.into_iter().map(|(name, json)| (name, json.get().to_owned())).collect())
        }
        Shape::Elements | Shape::Anything if first == b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
            Some(elements.into_iter().map(unnamed).collect())
        }
        Shape::Elements => None,
        Shape::Record if first != b'{' => None,
        Shape::Record | Shape::Anything => {
            serde_json::from_slice::<&RawValue>(body).ok().map(|json| vec![unnamed(json)])
        }
    }
}

/// An answer decodes as the oracle expects, in chunks of any size, and every fault is reported.
pub fn decode(data: &[u8]) {
    let [operation, choice, body @ ..] = data else { return };
    let endpoint = Endpoint::ALL[usize::from(*operation) % Endpoint::ALL.len()];
    let rules = &Rules { keep_extra: choice & 0x10 != 0, ..Rules::default() };
    let request = Request {
        endpoint,
        ticker: TICKER.parse().ok(),
        sector: None,
        period: "15d".parse().ok().filter(|_| choice & 0x20 != 0),
        regime: "bull".parse().ok().filter(|_| choice & 0x40 != 0),
    };
    let answer = Answer { request: &request, rules };
    let outcome = outcome_of(&answer, body);
    let portions = BufReader::with_capacity(usize::from(*choice) + 1, body);
    assert_eq!(outcome, outcome_of(&answer, portions), "the result depends on the chunk size");
    let Ok(outcome) = outcome else {
        assert!(
            pairs_of(answer.form().0, body).is_none(),
            "a body of the right shape is rejected as malformed: {outcome:?}"
        );
        return;
    };
    // The oracle has no bounds; those have their own tests.
    let bounds = ["nested more than", "the key is longer than", "more than"];
    if outcome.reasons.iter().any(|reason| bounds.iter().any(|bound| reason.starts_with(bound))) {
        return;
    }
    match contents(&answer, pairs_of(answer.form().0, body)) {
        Some(expected) => outcome.is_as(expected),
        None => {
            // Scores that are no numbers are written so by Python, and are no JSON.
            let has_no_number = outcome.lenient.scores > 0 && body.windows(3).any(|text| text == b"NaN");
            assert!(outcome.rejected > 0 || has_no_number, "invalid JSON was accepted: {outcome:?}");
        }
    }
}

/// The decoded answer, in the types of the oracle.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    items: Vec<Item>,
    pointers: Vec<String>,
    reasons: Vec<String>,
    drift: Vec<(String, u64)>,
    unusual: u64,
    undated: u64,
    lenient: Leniencies,
    records: u64,
    rejected: u64,
    lost: u64,
}

fn outcome_of(answer: &Answer<'_>, body: impl BufRead) -> Result<Outcome, (u64, String)> {
    let mut outcome = Outcome::default();
    let decoded = answer.decode(body, |decoded| {
        let Decoded { parts, rejects, drift, unusual, undated, lenient, oversized, .. } = decoded;
        let Decoded { records, rejected, histories, lost, .. } = decoded;
        assert!(oversized.is_empty(), "no body here exceeds the limit");
        assert!(histories >= lost);
        outcome.items.extend(parts.into_iter().flat_map(|part| items_of(answer, part)));
        for reject in rejects {
            outcome.pointers.push(reject.pointer);
            outcome.reasons.push(reject.reason);
        }
        outcome.drift.extend(drift.into_iter().map(|drift| (drift.field, drift.count)));
        outcome.unusual += unusual;
        outcome.undated += undated;
        outcome.lenient += lenient;
        outcome.records += records;
        outcome.rejected += rejected;
        outcome.lost += lost;
        Ok::<(), Infallible>(())
    });
    match decoded {
        Ok(()) => Ok(outcome),
        Err(DecodeFault::Malformed { offset, reason }) => Err((offset, reason)),
        Err(fault) => panic!("reading a slice cannot fail: {fault:?}"),
    }
}

impl Outcome {
    fn is_as(&self, expected: oracle::Expected) {
        assert_eq!(self.items, expected.items);
        assert_eq!((self.unusual, self.undated), (expected.unusual, expected.undated));
        assert_eq!(self.lenient, expected.lenient);
        assert_eq!((self.rejected, self.lost), (expected.rejected, expected.lost));
        assert_eq!(self.records, expected.typed + self.rejected);
        let mut pointers = expected.pointers;
        for pointer in &self.pointers {
            let found = pointers.iter().position(|known| known == pointer);
            pointers.swap_remove(found.unwrap_or_else(|| panic!("{pointer} should not be rejected: {self:?}")));
        }
        assert_eq!(self.pointers.is_empty(), self.rejected == 0);
        // Longer names are truncated, and more fields are counted together.
        let is_whole = expected.drift.len() < 60 && expected.drift.keys().all(|field| field.len() < 200);
        if is_whole {
            assert_eq!(self.drift.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(), expected.drift);
        }
    }
}

/// The items of a part.
fn items_of(answer: &Answer<'_>, part: AnswerPart) -> Vec<Item> {
    let Series { key, rows } = match part {
        AnswerPart::Series(series) => series,
        AnswerPart::Tickers(tickers) => return tickers.into_iter().map(Item::Ticker).collect(),
    };
    let table = key.table.expect("only the list of tickers has no table");
    assert_eq!(rows.schema(), table.listed_schema());
    if table == Table::Signals {
        let head = Item::Series(key);
        return std::iter::once(head).chain((0..rows.num_rows()).map(|row| item_of_row(table, &rows, row))).collect();
    }
    // Articles and records come in any number of parts, so the oracle does not count their keys.
    assert_eq!(Some(key), TICKER.parse().ok().map(|ticker| SeriesKey::of_ticker(answer.request.endpoint, ticker)));
    (0..rows.num_rows()).map(|row| item_of_row(table, &rows, row)).collect()
}

fn item_of_row(table: Table, rows: &RecordBatch, row: usize) -> Item {
    let text = |column: usize| {
        let column = rows.column(column).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let number = |column: usize| {
        let column = rows.column(column).as_primitive::<Float64Type>();
        column.is_valid(row).then(|| column.value(row).to_bits())
    };
    let date = |column: usize| {
        let column = rows.column(column).as_primitive::<TimestampMicrosecondType>();
        column.is_valid(row).then(|| column.value(row))
    };
    let offset = |column: usize| {
        let column = rows.column(column).as_primitive::<Int16Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    let position = || rows.column(0).as_primitive::<Int32Type>().value(row);
    match table {
        Table::Signals => {
            let signals = rows.column(2).as_dictionary::<Int8Type>();
            Item::Row {
                date: date(0),
                offset: offset(1),
                signal: signals.values().as_string::<i32>().value(signals.keys().value(row) as usize).to_owned(),
                confidence: number(3),
                extra: records::pairs(text(4)),
            }
        }
        Table::Articles => Item::Article {
            position: position(),
            date: date(1),
            texts: [text(2), text(4)],
            score: number(3),
            offset: offset(5),
            extra: records::pairs(text(6)),
        },
        Table::Summaries => Item::Summary {
            debtor: text(0),
            dates: [1, 5, 9].map(date),
            scores: [2, 6, 10].map(number),
            links: [3, 7, 11].map(text),
            summaries: [4, 8, 12].map(text),
        },
        Table::SentimentHistory => Item::Record { position: position(), json: text(1) },
    }
}

/// Dates are parsed as `chrono` parses them, and every date that `chrono` accepts in a documented format is accepted.
pub fn date(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lenient = Leniencies::default();
    let read = dates::read(text, &mut lenient).ok();
    let instant = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).ok();
    let naive = || {
        let form = if text.contains('.') { "%Y-%m-%dT%H:%M:%S%.f" } else { "%Y-%m-%dT%H:%M:%S" };
        let padded = if text.len() == 10 { format!("{text}T00:00:00") } else { text.replacen([' ', 't'], "T", 1) };
        chrono::NaiveDateTime::parse_from_str(&padded, form).ok()
    };
    // Other notations have tests of their own.
    if let Some(read) = read.filter(|_| lenient.dates == 0) {
        let colonless = text.len() > 5 && text.is_char_boundary(text.len() - 2) && !text.ends_with(['Z', 'z']);
        let of_instant = |instant: DateTime<FixedOffset>| {
            (instant.timestamp_micros(), Some(instant.offset().local_minus_utc() / 60))
        };
        let written = match read.offset_minutes {
            None => naive().map(|naive| (naive.and_utc().timestamp_micros(), None)),
            // RFC 3339 does not allow an offset without a colon.
            Some(_) if instant.is_none() && colonless => {
                let (start, end) = text.split_at(text.len() - 2);
                let text = format!("{start}:{end}").replacen(' ', "T", 1);
                DateTime::parse_from_rfc3339(&text).ok().map(of_instant)
            }
            Some(_) => instant.map(of_instant),
        };
        assert_eq!(Some((read.micros, read.offset_minutes.map(i32::from))), written, "{text:?}");
    }
    let is_plain = text.is_ascii()
        && text.len() >= 19
        && text[..19].bytes().all(|byte| byte.is_ascii_digit() || b"-:Tt".contains(&byte));
    let is_leap_second = text.get(17..19) == Some("60");
    let is_fine = text.split_once('.').is_some_and(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count() > 9);
    let has_year = |year: i32| (1..=9999).contains(&year);
    if let Some(instant) = instant.filter(|_| is_plain && !is_leap_second && !is_fine) {
        assert_eq!(read.is_some(), has_year(instant.with_timezone(&Utc).year()), "{text:?}");
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    if let Some(day) = day.filter(|day| day.format("%Y-%m-%d").to_string() == text && text.len() == 10) {
        assert_eq!(read.is_some(), has_year(day.year()), "{text:?}");
    }
}

/// A number is accepted if it is valid JSON and finite, and is then the nearest double; zero has no sign.
pub fn score(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|json| json.get().len() == text.len());
    let nearest = text.parse::<f64>().ok().filter(|value| is_number && value.is_finite()).map(records::plain_zero);
    assert_eq!(number::read(text).map(f64::to_bits), nearest.map(f64::to_bits), "{text:?}");
}
