//! Decodes the list of tickers, and historical sentiment, whose fields are not documented.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Int32Builder, RecordBatch, StringBuilder};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use super::answer::Answer;
use super::batch::{Piece, PiecePosition};
use super::decoded::{AnswerPart, Decoded};
use super::notes::Notes;
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
                notes.count_record();
                tickers.push(ticker);
            }
            Err(reason) => notes.reject_piece(answer, piece, reason),
        }
    }
    notes.with(vec![AnswerPart::Tickers(tickers)])
}

/// Decodes records of historical sentiment: any JSON, kept as its text.
pub(super) fn records(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let (mut positions, mut records) = (Int32Builder::new(), StringBuilder::new());
    for piece in pieces {
        let read = || Ok((piece.position()?, record::well_formed(piece.text()?)?));
        match read() {
            Ok((_, json))
                if piece.site == PiecePosition::Body
                    && let Some(days) = days_of(json) =>
            {
                for (position, json) in days.iter().enumerate() {
                    notes.count_record();
                    positions.append_value(position as i32);
                    records.append_value(json);
                }
            }
            Ok((position, json)) => {
                notes.count_record();
                positions.append_value(position);
                records.append_value(json);
            }
            Err(reason) => notes.reject_piece(answer, piece, reason),
        }
    }
    let schema = Table::SentimentHistory.listed_schema();
    let rows = RecordBatch::try_new(schema, vec![Arc::new(positions.finish()), Arc::new(records.finish())])
        .expect("the columns are made by the schema");
    notes.with(vec![AnswerPart::Series(Series { key: answer.asked_key(), rows })])
}

/// The records of an object that holds several: dates and what is said of them, or columns.
pub(super) fn days_of(json: &str) -> Option<Vec<String>> {
    let Ok(Members(members)) = serde_json::from_str(json) else { return None };
    let list = |json: &RawValue| -> Option<Vec<Box<RawValue>>> { serde_json::from_str(json.get()).ok() };
    let object = |fields: &[(&str, &str)]| record::as_object(fields.iter().copied());
    if !members.is_empty() && members.iter().all(|(name, _)| dates::read_bytes(name.as_bytes()).is_some()) {
        return members
            .iter()
            .map(|(date, json)| {
                let date = serde_json::to_string(date).ok()?;
                match serde_json::from_str(json.get()) {
                    Ok(Members(said)) => {
                        let said = said.iter().map(|(name, json)| (name.as_str(), json.get()));
                        object(&[("date", date.as_str())].into_iter().chain(said).collect::<Vec<_>>())
                    }
                    Err(_) => object(&[("date", &date), ("score", json.get())]),
                }
            })
            .collect();
    }
    let lists: Vec<(&str, Vec<Box<RawValue>>)> =
        members.iter().filter_map(|(name, json)| Some((name.as_str(), list(json)?))).collect();
    match &lists[..] {
        [(_, first), _, ..]
            if lists.len() == members.len() && lists.iter().all(|(_, list)| list.len() == first.len()) =>
        {
            let row =
                |row: usize| object(&lists.iter().map(|(name, list)| (*name, list[row].get())).collect::<Vec<_>>());
            (0..first.len()).map(row).collect()
        }
        _ => None,
    }
}

/// The members of an object, in their order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> de::Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
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
