//! The latest signal of one ticker, to a series of one row.
//!
//! Its date may be null or missing; the row then has none. Where neither `signal` nor `confidence` stands, the older
//! names `ei` and `ci` are read.

use super::batch::Piece;
use super::date::Date;
use super::notes::{Notes, Place};
use super::record::Record;
use super::{Answer, Decoded, Part, rows};
use crate::tables::{Series, SeriesKey};

/// Decodes a body that is one latest signal.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut parts = Vec::new();
    for piece in pieces {
        match piece.text().and_then(|text| read(answer, &mut notes, text)) {
            Ok(series) => parts.push(Part::Series(series)),
            Err(reason) => notes.set_aside(|| Place::of(answer, piece), reason, piece.raw()),
        }
    }
    notes.with(parts)
}

fn read(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &str) -> Result<Series, String> {
    let mut record = Record::read(text)?;
    let key = SeriesKey {
        ticker: record.require("ticker")?.one_of()?,
        period: record.require("period")?.one_of()?,
        regime: record.require("regime")?.one_of()?,
        source: answer.request.endpoint,
    };
    answer.check(answer.asked_ticker().as_str(), &key)?;
    let is_newer = record.has("signal") || record.has("confidence");
    let is_older = !is_newer && (record.has("ei") || record.has("ci"));
    let [signal, confidence] = if is_older { ["ei", "ci"] } else { ["signal", "confidence"] };
    let signal = record.require(signal)?.one_of()?;
    let confidence = record.require(confidence)?.number()?;
    let date: Option<Date> = match record.take("date")? {
        Some(field) if !field.is_null() => Some(field.date(answer.rules.dates)?),
        _ => None,
    };
    notes.typed();
    notes.confidence(confidence);
    notes.unknown("", record.unknown());
    let rows = rows::single(date, signal, confidence, answer.rules.extra(record.unknown()));
    Ok(Series { key, rows })
}
