//! The edge of a list of articles: those of its oldest date.
//!
//! A list may be cut off within its oldest date, so it does not cover that date: articles that it lacks there are not
//! withdrawn. Which ones it did list can therefore not be told from what was known after it, and neither can their places,
//! which continue the known ones. So it is stored.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::disk::digest;

/// Digits of an article's digest: enough to tell those of one date apart.
const DIGITS: usize = 8;

/// The columns of articles in [`Table::row_schema`].
pub(super) const DATE: usize = 0;
pub(super) const TITLE: usize = 1;
pub(super) const LINK: usize = 2;
pub(super) const COPY: usize = 3;
const PLACE: usize = 4;

/// Which articles of its oldest date an answer listed, from the oldest; none for other answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edge(Vec<String>);

impl Edge {
    /// The edge of answered articles, in the order of their table's rows.
    pub(super) fn of(rows: &RecordBatch) -> Self {
        if rows.num_rows() == 0 {
            return Self::default();
        }
        let count = dates(rows).partition_point(|date| *date <= dates(rows)[0]);
        let places = rows.column(PLACE).as_primitive::<Int32Type>().values();
        let mut of_oldest: Vec<usize> = (0..count).collect();
        of_oldest.sort_by_key(|&row| places[row]);
        Self(of_oldest.into_iter().map(|row| digest_of(rows, row)).collect())
    }

    /// The edge as it is stored.
    pub(super) fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.concat())
    }

    /// Reads what [`Self::text`] gave.
    pub(super) fn of_text(text: &str) -> Self {
        let digests = text.as_bytes().chunks(DIGITS);
        Self(digests.map(|digest| String::from_utf8_lossy(digest).into_owned()).collect())
    }

    /// The rows of some articles as the answer had them: of its oldest date those that it listed, at its places.
    pub(super) fn as_answered(&self, articles: &RecordBatch, oldest: i64) -> Result<RecordBatch, ArrowError> {
        let listed: HashMap<&str, usize> =
            self.0.iter().enumerate().map(|(index, one)| (one.as_str(), index)).collect();
        let start = dates(articles).partition_point(|date| *date < oldest);
        let end = dates(articles).partition_point(|date| *date <= oldest);
        let place = |row: usize| Some((*listed.get(digest_of(articles, row).as_str())?, row));
        let mut of_oldest: Vec<(usize, usize)> = (start..end).filter_map(place).collect();
        of_oldest.sort_unstable();
        let rows = of_oldest.iter().map(|(_, row)| *row).chain(end..articles.num_rows());
        let rows = UInt32Array::from_iter_values(rows.map(|row| row as u32));
        let answered = take_record_batch(articles, &rows)?;
        let known = answered.column(PLACE).as_primitive::<Int32Type>().values();
        let places = of_oldest.iter().map(|(index, _)| *index as i32);
        let places: ArrayRef =
            Arc::new(Int32Array::from_iter_values(places.chain(known[of_oldest.len()..].iter().copied())));
        let mut columns = answered.columns().to_vec();
        columns[PLACE] = places;
        RecordBatch::try_new(answered.schema(), columns)
    }
}

fn dates(rows: &RecordBatch) -> &[i64] {
    rows.column(DATE).as_primitive::<TimestampMicrosecondType>().values()
}

/// The digest of what identifies an article within its date.
fn digest_of(rows: &RecordBatch, row: usize) -> String {
    let text = |column: usize| rows.column(column).as_string::<i32>().value(row);
    let (title, link) = (text(TITLE), text(LINK));
    let copy = rows.column(COPY).as_primitive::<Int32Type>().value(row);
    let mut digest = digest::of(format!("{title}\n{link}\n{copy}").as_bytes());
    digest.truncate(DIGITS);
    digest
}
