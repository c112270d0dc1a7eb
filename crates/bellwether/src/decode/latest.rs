//! Decodes the latest signal of one ticker into a series of one row.
//!
//! Its date may be null or missing; the row then has none. If neither `signal` nor `confidence` is present, the older
//! names `ei` and `ci` are read.

use super::answer::Answer;
use super::batch::Piece;
use super::decoded::{AnswerPart, Decoded};
use super::notes::Notes;
use super::record::{self, ObjectShape};
use super::rows;
use crate::tables::{Leniencies, Series};

/// Decodes a body with one latest signal.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut parts = Vec::new();
    for piece in pieces {
        let read = |text| read(answer, &mut notes, text).map_err(|reason| record::complaint(text).unwrap_or(reason));
        match piece.text().and_then(read) {
            Ok(series) => parts.push(AnswerPart::Series(series)),
            Err(reason) => notes.reject_piece(answer, piece, reason),
        }
    }
    notes.with(parts)
}

fn read(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &str) -> Result<Series, String> {
    const NEWER: [&str; 2] = ["signal", "confidence"];
    const OLDER: [&str; 2] = ["ei", "ci"];
    let object = ObjectShape::read(text)?;
    let (has_newer, has_older) = (object.has_any(&NEWER)?, object.has_any(&OLDER)?);
    let [signal, confidence] = if has_older && !has_newer { OLDER } else { NEWER };
    let (fields, unknown) = object.fields(["ticker", "date", "period", "regime", signal, confidence])?;
    let [ticker, date, period, regime, signal, confidence] = fields;
    let mut lenient = Leniencies::default();
    let key = answer.key(answer.asked_ticker().as_str(), [ticker, period, regime], &mut lenient)?;
    let (signal, confidence) = (signal.signal(&mut lenient)?, confidence.confidence(&mut lenient)?);
    let date = date.if_given().map(|date| date.date(&mut lenient)).transpose()?;
    notes.count_record();
    notes.accepted_leniently(lenient);
    notes.confidence(confidence);
    if date.is_none() {
        notes.undated();
    }
    notes.unknown("", &unknown);
    let rows = rows::single(date, signal, confidence, answer.rules.extra(&unknown));
    Ok(Series { key, rows })
}
