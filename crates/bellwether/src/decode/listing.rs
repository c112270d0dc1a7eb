//! Decodes the list of tickers, and historical sentiment, whose fields are not documented.

use std::sync::Arc;

use arrow::array::{Int32Builder, RecordBatch, StringBuilder};
use serde_json::value::RawValue;

use super::answer::Answer;
use super::batch::{Piece, PiecePosition};
use super::notes::{AnswerPart, Decoded, Notes};
use super::record::{self, RecordField};
use crate::interface::Ticker;
use crate::tables::{Series, Table, dates};

/// Decodes elements of the list of tickers. Invalid symbols are rejected.
pub(super) fn tickers(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut tickers: Vec<Ticker> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match piece.text().and_then(|text| RecordField::new("ticker", text).one_of()) {
            Ok(ticker) => {
                notes.found.records += 1;
                tickers.push(ticker);
            }
            Err(reason) => notes.reject_piece(answer, piece, 1, reason),
        }
    }
    notes.found.parts.push(AnswerPart::Tickers(tickers));
    notes.finish()
}

/// Decodes records of historical sentiment: any JSON, kept as its text.
pub(super) fn records(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let (mut positions, mut records) = (Int32Builder::new(), StringBuilder::new());
    for piece in pieces {
        let read = || Ok((piece.position()?, record::well_formed(piece.text()?)?));
        match read() {
            Ok((position, json)) => {
                let days = days_of(json).filter(|_| piece.site == PiecePosition::Body);
                for (position, json) in (position..).zip(days.unwrap_or_else(|| vec![json.to_owned()])) {
                    notes.found.records += 1;
                    positions.append_value(position);
                    records.append_value(json);
                }
            }
            Err(reason) => notes.reject_piece(answer, piece, 1, reason),
        }
    }
    let schema = Table::SentimentHistory.listed_schema();
    let rows = RecordBatch::try_new(schema, vec![Arc::new(positions.finish()), Arc::new(records.finish())])
        .expect("the columns are made by the schema");
    notes.found.parts.push(AnswerPart::Series(Series { key: answer.asked_key(), rows }));
    notes.finish()
}

/// The records of an object that holds several: dates and what is said of them, or columns.
pub(super) fn days_of(json: &str) -> Option<Vec<String>> {
    let members = record::members(json).ok()?;
    if !members.is_empty() && members.iter().all(|(name, _)| dates::read_bytes(name.as_bytes()).is_some()) {
        return members
            .iter()
            .map(|(date, json)| {
                let date = serde_json::to_string(date).ok()?;
                let said = record::members(json).unwrap_or_else(|_| vec![("score".into(), *json)]);
                let said = said.iter().map(|(name, json)| (&**name, *json));
                record::as_object([("date", &*date)].into_iter().chain(said))
            })
            .collect();
    }
    let mut columns: Vec<(&str, Vec<&RawValue>)> = Vec::new();
    for (name, json) in &members {
        columns.push((name, serde_json::from_str(json).ok()?));
    }
    let rows = columns.first()?.1.len();
    let is_table = columns.len() > 1 && columns.iter().all(|(_, list)| list.len() == rows);
    let object = |row: usize| record::as_object(columns.iter().map(|(name, list)| (*name, list[row].get())));
    if is_table { (0..rows).map(object).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::days_of;

    #[test]
    fn the_days_of_an_object_are_found_in_each_form() {
        let day = |date: &str, score: &str| format!("{{\"date\":\"{date}\",\"score\":{score}}}");
        let expected = Some(vec![day("2026-10-05", "0.25"), day("2026-10-06", "null")]);
        for json in [
            r#"{"2026-10-05": 0.25, "2026-10-06": null}"#,
            r#"{"2026-10-05": {"score": 0.25}, "2026-10-06": {"score": null}}"#,
            r#"{"date":["2026-10-05","2026-10-06"],"score":[0.25,null]}"#,
        ] {
            assert_eq!(days_of(json), expected, "{json}");
        }
        for json in ["{}", "3", r#"{"date":"2026-10-05","score":1}"#, r#"{"a":[1,2],"b":3}"#, r#"{"a":[1],"b":[]}"#] {
            assert_eq!(days_of(json), None, "{json}");
        }
    }
}
