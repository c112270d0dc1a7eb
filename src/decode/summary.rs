//! The sentiment summary of one ticker, in either of its forms, to one row.
//!
//! The newer form refers to three articles, each with its own date. The older one has `*_latest30` fields and one
//! `crawl_date`, which is the date of no article: it has no column and is always kept in `extra`. A summary is of the
//! older form when it has any of its fields and none of the three references. Unknown fields of a reference are kept
//! beneath the name of the reference.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::batch::Piece;
use super::notes::{self, Notes, Place};
use super::record::{Field, Record};
use super::{Answer, Decoded, Part};
use crate::interface::Ticker;
use crate::tables::{News, NewsTable};

/// The names of what a summary says of one article.
struct Names {
    reference: &'static str,
    score: &'static str,
    link: &'static str,
    summary: &'static str,
}

const ARTICLES: [Names; 3] = [
    Names {
        reference: "low_article",
        score: "low_score_latest30",
        link: "low_link_latest30",
        summary: "low_summary_latest30",
    },
    Names {
        reference: "high_article",
        score: "high_score_latest30",
        link: "high_link_latest30",
        summary: "high_summary_latest30",
    },
    Names {
        reference: "avg_article",
        score: "avg_score_latest30",
        link: "avg_link_latest30",
        summary: "avg_summary_latest30",
    },
];

/// Decodes a body that is one summary.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    let mut notes = Notes::new(answer);
    let mut parts = Vec::new();
    for piece in pieces {
        match piece.text().and_then(|text| read(answer, &mut notes, text)) {
            Ok(rows) => {
                let news = News { ticker: answer.asked_ticker().clone(), rows };
                parts.push(Part::News(NewsTable::Summaries, news));
            }
            Err(reason) => notes.set_aside(|| Place::of(answer, piece), reason, piece.raw()),
        }
    }
    notes.with(parts)
}

/// What a summary says of one article.
#[derive(Default)]
struct Article {
    date: Option<i64>,
    score: Option<f64>,
    link: Option<String>,
    summary: Option<String>,
}

fn read(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &str) -> Result<RecordBatch, String> {
    let mut record = Record::read(text)?;
    let ticker: Ticker = record.require("ticker")?.one_of()?;
    answer.check_ticker(answer.asked_ticker().as_str(), &ticker)?;
    let debtor = record.require("debtor")?.string()?.into_owned();
    let mut extra = Vec::new();
    let mut references = Vec::new();
    let articles = if is_older(&record) {
        let crawl_date = record.require("crawl_date")?;
        crawl_date.string()?;
        extra.push((Cow::from("crawl_date"), crawl_date.json.to_owned()));
        trailing(&mut record)?
    } else {
        let mut articles = Vec::new();
        for Names { reference: name, .. } in &ARTICLES {
            let (article, reference) = reference(answer, record.require(name)?)?;
            articles.push(article);
            references.push((*name, reference));
        }
        articles
    };
    notes.typed();
    notes.unknown("", record.unknown());
    if answer.rules.keep_extra {
        extra.extend(record.unknown().iter().map(|(name, json)| (name.clone(), (*json).to_owned())));
    }
    for (name, reference) in &references {
        notes.unknown(&format!("/{name}"), reference.unknown());
        extra.extend(answer.rules.extra(reference.unknown()).map(|below| (Cow::from(*name), below)));
    }
    let extra = notes::extra(extra.iter().map(|(name, json)| (&**name, json.as_str())));
    Ok(row(debtor, articles, extra))
}

fn is_older(summary: &Record<'_>) -> bool {
    let has_references = ARTICLES.iter().any(|names| summary.has(names.reference));
    let has_trailing = |names: &Names| [names.score, names.link, names.summary].iter().any(|name| summary.has(name));
    !has_references && (summary.has("crawl_date") || ARTICLES.iter().any(has_trailing))
}

/// The article of a reference, and the reference with the fields that are unknown.
fn reference<'r>(answer: &Answer<'_>, field: Field<'r>) -> Result<(Article, Record<'r>), String> {
    let mut record = field.record()?;
    let mut read = || {
        Ok(Article {
            date: Some(record.require("date")?.date(answer.rules.dates)?.micros),
            score: Some(record.require("score")?.score()?),
            link: Some(record.require("link")?.string()?.into_owned()),
            summary: None,
        })
    };
    let article = read().map_err(|reason: String| field.at_fault(&reason))?;
    Ok((article, record))
}

/// The articles of the older form.
fn trailing(record: &mut Record<'_>) -> Result<Vec<Article>, String> {
    let mut articles = Vec::new();
    for Names { score, link, summary, .. } in &ARTICLES {
        articles.push(Article {
            date: None,
            score: Some(record.require(score)?.score()?),
            link: Some(record.require(link)?.string()?.into_owned()),
            summary: Some(record.require(summary)?.string()?.into_owned()),
        });
    }
    Ok(articles)
}

fn row(debtor: String, articles: Vec<Article>, extra: Option<String>) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values([debtor]))];
    for Article { date, score, link, summary } in articles {
        columns.push(Arc::new(TimestampMicrosecondArray::from(vec![date])));
        columns.push(Arc::new(Float64Array::from(vec![score])));
        columns.push(Arc::new(StringArray::from(vec![link])));
        columns.push(Arc::new(StringArray::from(vec![summary])));
    }
    columns.push(Arc::new(StringArray::from(vec![extra])));
    RecordBatch::try_new(NewsTable::Summaries.row_schema(), columns).expect("the columns are made by the schema")
}
