//! The scored articles of one ticker, in the order of the answer. A score that is null or missing is null in its column.
//!
//! An article is read on a fast path or an exact one, which agree. [`read_plain`] parses articles as the service writes them,
//! straight from their bytes: four fields in any order, once each, without escapes. Everything else is read again by
//! [`read_any`], which accepts every valid article and gives the reason why one is invalid.
//!
//! Articles differ too much for a template. Without the fast path, decoding them takes 1.8 times as long.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Float64Array, Int16Array, Int32Array, StringArray, TimestampMicrosecondArray};

use super::answer::Answer;
use super::batch::Piece;
use super::cursor::Cursor;
use super::notes::{AnswerPart, Decoded, Notes};
use super::number;
use super::record::{self, Fields};
use super::skip::plain_length;
use crate::interface::Score;
use crate::tables::dates::{self, Date};
use crate::tables::{Leniencies, Series, Table};

/// Decodes elements of a list of articles.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut rows: Vec<(i32, PlainArticle<'_>, Option<String>)> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let read = || -> Result<_, String> {
            let text = piece.text()?;
            let (article, unknown, lenient) = match read_plain(text) {
                Some(article) => (article, Fields::new(), Leniencies::default()),
                None => read_any(text)?,
            };
            Ok((piece.position()?, article, unknown, lenient))
        };
        match read() {
            Ok((position, article, unknown, lenient)) => {
                notes.found.records += 1;
                notes.found.lenient += lenient;
                notes.unknown("/*", &unknown);
                rows.push((position, article, answer.rules.extra(&unknown)));
            }
            Err(reason) => notes.reject_piece(answer, piece, 1, reason),
        }
    }
    let articles = || rows.iter().map(|(_, article, _)| article);
    let rows = Table::Articles.list(&[
        ("position", Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0)))),
        ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(articles().map(|article| article.date.micros)))),
        ("title", Arc::new(StringArray::from_iter_values(articles().map(|article| &article.title)))),
        ("score", Arc::new(articles().map(|article| article.score).collect::<Float64Array>())),
        ("link", Arc::new(StringArray::from_iter_values(articles().map(|article| &article.link)))),
        ("utc_offset_minutes", Arc::new(articles().map(|article| article.date.offset_minutes).collect::<Int16Array>())),
        ("extra", Arc::new(rows.iter().map(|row| row.2.as_deref()).collect::<StringArray>())),
    ]);
    let rows = rows.expect("the columns are those of the table");
    notes.found.parts.push(AnswerPart::Series(Series { key: answer.asked_key(), rows }));
    notes.finish()
}

/// The fields of an article.
#[derive(Clone, Debug, PartialEq)]
struct PlainArticle<'a> {
    date: Date,
    title: Cow<'a, str>,
    /// `None` if it is null or missing.
    score: Option<f64>,
    link: Cow<'a, str>,
}

/// Reads an article if it is plain.
fn read_plain(text: &str) -> Option<PlainArticle<'_>> {
    let (mut date, mut title, mut score, mut link) = (None, None, None, None);
    let mut cursor = Cursor::new(text);
    if !cursor.eat(b"{") {
        return None;
    }
    loop {
        cursor.skip_white();
        let is_repeated = if cursor.eat(b"\"date\"") {
            enter_value(&mut cursor)?;
            date.replace(plain_date(&mut cursor)?).is_some()
        } else if cursor.eat(b"\"title\"") {
            enter_value(&mut cursor)?;
            title.replace(plain_text(&mut cursor)?).is_some()
        } else if cursor.eat(b"\"score\"") {
            enter_value(&mut cursor)?;
            score.replace(plain_score(&mut cursor)?).is_some()
        } else if cursor.eat(b"\"link\"") {
            enter_value(&mut cursor)?;
            link.replace(plain_text(&mut cursor)?).is_some()
        } else {
            return None;
        };
        if is_repeated {
            return None;
        }
        if !has_next_field(&mut cursor)? {
            cursor.end().ok()?;
            let (title, link) = (title?.into(), link?.into());
            return Some(PlainArticle { date: date?, title, score: score.flatten(), link });
        }
    }
}

/// Whether another field follows a value (`false`: the record ends); `None` if neither is true.
#[inline]
fn has_next_field(cursor: &mut Cursor<'_>) -> Option<bool> {
    cursor.skip_white();
    if cursor.eat(b",") {
        return Some(true);
    }
    cursor.eat(b"}").then_some(false)
}

/// Moves past the colon after a name.
#[inline]
fn enter_value(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.skip_white();
    let comes = cursor.eat(b":");
    cursor.skip_white();
    comes.then_some(())
}

/// A date in quotes.
#[inline]
fn plain_date(cursor: &mut Cursor<'_>) -> Option<Date> {
    /// Lengths of the common formats: a calendar date alone, with a time, with `Z`, with an offset.
    const LENGTHS: [usize; 4] = [10, 19, 20, 25];
    if !cursor.eat(b"\"") {
        return None;
    }
    // Shortest first: other quotes may follow the closing one.
    let rest = cursor.rest();
    let ends = |length: &usize| rest.get(*length) == Some(&b'"');
    let length = LENGTHS.into_iter().find(ends).or_else(|| memchr::memchr(b'"', rest))?;
    let date = dates::read_bytes(&rest[..length])?;
    cursor.at += length + 1;
    Some(date)
}

/// A string without escapes.
#[inline]
fn plain_text<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    if !cursor.eat(b"\"") {
        return None;
    }
    let start = cursor.at;
    cursor.at += plain_length(cursor.rest());
    let text = cursor.since(start);
    cursor.eat(b"\"").then_some(text)
}

/// A number, a string with a decimal number, or null.
#[inline]
fn plain_score(cursor: &mut Cursor<'_>) -> Option<Option<f64>> {
    if let Some((value, length)) = number::read_first(cursor.rest()) {
        cursor.at += length;
        return Some(Some(value));
    }
    if cursor.eat(b"null") {
        return Some(None);
    }
    let text = plain_text(cursor)?;
    Score::Text(text.into()).value().map(Some)
}

/// Reads any valid article, with its unknown fields and the leniencies it took.
fn read_any(text: &str) -> Result<(PlainArticle<'_>, Fields<'_>, Leniencies), String> {
    let (fields, unknown) = record::read(text, ["date", "title", "score", "link"])?;
    let [date, title, score, link] = fields;
    let mut lenient = Leniencies::default();
    let mut is_missing = false;
    let article = PlainArticle {
        date: date.date(&mut lenient)?,
        title: title.string_or_empty(&mut is_missing)?,
        score: score.article_score(&mut lenient)?,
        link: link.string_or_empty(&mut is_missing)?,
    };
    lenient.untitled += u64::from(is_missing);
    Ok((article, unknown, lenient))
}

#[cfg(test)]
mod tests {
    use super::{read_any, read_plain};
    use crate::tables::Leniencies;

    #[test]
    fn articles_as_the_service_writes_them_take_the_fast_path() {
        for text in [
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":"https://a.example/1"}"#,
            r#"{ "link" : "" , "score" : "-0.25" , "title" : "größer" , "date" : "2026-11-20T09:30:00Z" } "#,
            "{\"date\":\"2026-11-20\",\"title\":\"\",\"score\":\tnull,\n\"link\":\"b\"}",
            r#"{"title":"a","link":"b","date":"2026-11-20T09:30:00.5-05:00"}"#,
            r#"{"date":"2026-11-20","title":"a","score":1e-3,"link":"b"}"#,
        ] {
            let (exact, unknown, lenient) = read_any(text).unwrap();
            assert_eq!(read_plain(text), Some(exact), "{text}");
            assert!(unknown.is_empty());
            assert_eq!(lenient, Leniencies::default(), "{text}");
        }
    }

    #[test]
    fn other_valid_articles_take_the_exact_path() {
        for text in [
            r#"{"date":"2026-11-20","title":"a \"b\"","score":0.5,"link":"c"}"#,
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":"c","id":1}"#,
            r#"{"d\u0061te":"2026-11-20","title":"a","score":0.5,"link":"c"}"#,
            r#"{"date":"2026-11-20t00:00:00z","title":"a","score":0.5,"link":"c"}"#,
            r#"{"date":"2026-11-20","title":"a","score":0.5}"#,
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":null}"#,
            r#"{"date":"2026-11-20","title":"a","score":"n/a","link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":"","link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":" 0.35 ","link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":NaN,"link":"b"}"#,
        ] {
            assert_eq!(read_plain(text), None, "{text}");
            assert!(read_any(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn invalid_articles_never_take_the_fast_path() {
        for text in [
            "null",
            "{}",
            r#"{"title":"a","score":0.5,"link":"b"}"#,
            r#"{"date":"2026-11-20","title":1,"score":0.5,"link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":"good","link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":01,"link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":nullx,"link":"b"}"#,
            r#"{"date":"2026-13-20","title":"a","score":0.5,"link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":"b",}"#,
            r#"{"date":"2026-11-20","title":"a","title":"a","score":0.5,"link":"b"}"#,
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":"b"} x"#,
            "{\"date\":\"2026-11-20\",\"title\":\"a\nb\",\"score\":0.5,\"link\":\"b\"}",
            r#"{"date":"2026-11-20","title":"a","score":0.5,"link":"b"#,
        ] {
            assert_eq!(read_plain(text), None, "{text}");
            assert!(read_any(text).is_err(), "{text}");
        }
    }
}
