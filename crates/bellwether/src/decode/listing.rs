//! Decodes the list of tickers, and historical sentiment, whose fields are not documented.

use std::sync::Arc;

use arrow::array::{Int32Builder, RecordBatch, StringBuilder};

use super::answer::Answer;
use super::batch::Piece;
use super::decoded::{AnswerPart, Decoded};
use super::notes::Notes;
use super::record::{self, RecordField};
use crate::interface::Ticker;
use crate::tables::{Series, Table};

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
