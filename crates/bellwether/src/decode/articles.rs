//! The scored articles of one ticker, in the order of the answer.
//!
//! A score that is null or missing is null in its column.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Builder, Int16Builder, Int32Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};

use super::answer::Answer;
use super::article;
use super::batch::Piece;
use super::decoded::{AnswerPart, Decoded};
use super::notes::Notes;
use super::record::Fields;
use crate::tables::{Leniencies, Series, Table};

/// Decodes elements of a list of articles.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut rows = ArticleRows::default();
    for piece in pieces {
        if let Err(reason) = rows.read(answer, &mut notes, piece) {
            notes.reject_piece(answer, piece, reason);
        }
    }
    notes.with(vec![AnswerPart::Series(Series { key: answer.asked_key(), rows: rows.finish() })])
}

#[derive(Default)]
struct ArticleRows {
    positions: Int32Builder,
    dates: TimestampMicrosecondBuilder,
    titles: StringBuilder,
    scores: Float64Builder,
    links: StringBuilder,
    offsets: Int16Builder,
    extras: StringBuilder,
}

impl ArticleRows {
    fn read(&mut self, answer: &Answer<'_>, notes: &mut Notes<'_>, piece: &Piece<'_>) -> Result<(), String> {
        let text = piece.text()?;
        let (article, unknown, lenient) = match article::read_plain(text) {
            Some(article) => (article, Fields::new(), Leniencies::default()),
            None => article::read_any(text)?,
        };
        let position = piece.position()?;
        notes.count_record();
        notes.accepted_leniently(lenient);
        notes.unknown("/*", &unknown);
        self.positions.append_value(position);
        self.dates.append_value(article.date.micros);
        self.titles.append_value(article.title);
        self.scores.append_option(article.score);
        self.links.append_value(article.link);
        self.offsets.append_option(article.date.offset_minutes);
        self.extras.append_option(answer.rules.extra(&unknown));
        Ok(())
    }

    fn finish(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.positions.finish()),
            Arc::new(self.dates.finish()),
            Arc::new(self.titles.finish()),
            Arc::new(self.scores.finish()),
            Arc::new(self.links.finish()),
            Arc::new(self.offsets.finish()),
            Arc::new(self.extras.finish()),
        ];
        RecordBatch::try_new(Table::Articles.listed_schema(), columns).expect("the columns are made by the schema")
    }
}
