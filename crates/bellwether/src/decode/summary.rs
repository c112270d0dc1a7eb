//! Decodes the sentiment summary of one ticker, in either shape, into one row.
//!
//! The newer shape refers to three articles, each with its own date. The older one has `*_latest30` fields and one
//! `crawl_date`, which is not the date of any article: it has no column and is always kept in `extra`. A summary has
//! the older shape if it has any of its fields and none of the three references. Unknown fields of a reference are kept
//! under the name of the reference.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::answer::Answer;
use super::batch::Piece;
use super::notes::{Decoded, Notes};
use super::record::{self, Fields, RecordField};
use crate::tables::{Leniencies, Series, Table};

/// The fields of the newer shape.
const NEWER: [&str; 5] = ["ticker", "debtor", "low_article", "high_article", "avg_article"];

/// The fields of the older shape: after the first three, three per article.
const OLDER: [&str; 12] = [
    "ticker",
    "debtor",
    "crawl_date",
    "low_score_latest30",
    "low_link_latest30",
    "low_summary_latest30",
    "high_score_latest30",
    "high_link_latest30",
    "high_summary_latest30",
    "avg_score_latest30",
    "avg_link_latest30",
    "avg_summary_latest30",
];

/// Decodes a body with one summary.
pub(super) fn decode(answer: &Answer<'_>, pieces: &[Piece<'_>]) -> Decoded {
    Notes::decode_records(answer, pieces, |notes, text| {
        // Both shapes have the ticker and the name of the company.
        let is_older = record::is_of_older_form(text, &NEWER[2..], &OLDER[2..])?;
        let read = if is_older { read_older } else { read_newer };
        let summary = read(answer, notes, text)?;
        notes.found.records += 1;
        Ok(Series { key: answer.asked_key(), rows: row(summary) })
    })
}

/// The fields of a summary for one article.
struct SummaryArticle {
    /// `None` in the older shape.
    date: Option<i64>,
    score: f64,
    link: String,
    /// `None` in the newer shape.
    summary: Option<String>,
}

/// A decoded summary, with the fields to keep.
struct DecodedSummary<'p> {
    debtor: Cow<'p, str>,
    articles: Vec<SummaryArticle>,
    extra: Vec<(Cow<'p, str>, String)>,
}

fn read_newer<'p>(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &'p str) -> Result<DecodedSummary<'p>, String> {
    let ([ticker, debtor, low, high, avg], unknown) = record::read(text, NEWER)?;
    answer.check_ticker(answer.asked_ticker().as_str(), &ticker.one_of()?)?;
    let debtor = debtor.string()?;
    let mut lenient = Leniencies::default();
    let mut reference = |field| reference(field, &mut lenient);
    let [low, high, avg] = [reference(low)?, reference(high)?, reference(avg)?];
    notes.found.lenient += lenient;
    notes.unknown("", &unknown);
    let mut extra = extra_of(answer, unknown);
    for (name, (_, unknown)) in NEWER[2..].iter().zip([&low, &high, &avg]) {
        notes.unknown(&format!("/{name}"), unknown);
        extra.extend(answer.rules.extra(unknown).map(|below| (Cow::from(*name), below)));
    }
    Ok(DecodedSummary { debtor, articles: vec![low.0, high.0, avg.0], extra })
}

/// The article of a reference, and the unknown fields of the reference.
fn reference<'p>(field: RecordField<'p>, lenient: &mut Leniencies) -> Result<(SummaryArticle, Fields<'p>), String> {
    let json = field.json()?;
    let mut read = || {
        let ([date, score, link], unknown) = record::read(json, ["date", "score", "link"])?;
        let article = SummaryArticle {
            date: Some(date.date_text(lenient)?.micros),
            score: score.score()?,
            link: link.string()?.into_owned(),
            summary: None,
        };
        Ok((article, unknown))
    };
    read().map_err(|reason: String| field.at_fault(&reason))
}

fn read_older<'p>(answer: &Answer<'_>, notes: &mut Notes<'_>, text: &'p str) -> Result<DecodedSummary<'p>, String> {
    let ([ticker, debtor, crawl_date, of_articles @ ..], unknown) = record::read(text, OLDER)?;
    answer.check_ticker(answer.asked_ticker().as_str(), &ticker.one_of()?)?;
    let debtor = debtor.string()?;
    crawl_date.string()?;
    let article = |[score, link, summary]: [RecordField<'_>; 3]| -> Result<SummaryArticle, String> {
        Ok(SummaryArticle {
            date: None,
            score: score.score()?,
            link: link.string()?.into_owned(),
            summary: Some(summary.string()?.into_owned()),
        })
    };
    let (of_articles, _) = of_articles.as_chunks::<3>();
    let articles = of_articles.iter().map(|fields| article(*fields)).collect::<Result<_, _>>()?;
    notes.unknown("", &unknown);
    let mut extra = extra_of(answer, unknown);
    extra.insert(0, (Cow::from("crawl_date"), crawl_date.json()?.to_owned()));
    Ok(DecodedSummary { debtor, articles, extra })
}

fn extra_of<'p>(answer: &Answer<'_>, unknown: Fields<'p>) -> Vec<(Cow<'p, str>, String)> {
    let unknown = if answer.rules.keep_extra { unknown } else { Fields::new() };
    unknown.into_iter().map(|(name, json)| (name, json.to_owned())).collect()
}

fn row(DecodedSummary { debtor, articles, extra }: DecodedSummary<'_>) -> RecordBatch {
    let extra = record::as_object(extra.iter().map(|(name, json)| (&**name, json.as_str())));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values([debtor]))];
    for SummaryArticle { date, score, link, summary } in articles {
        columns.push(Arc::new(TimestampMicrosecondArray::from(vec![date])));
        columns.push(Arc::new(Float64Array::from(vec![score])));
        columns.push(Arc::new(StringArray::from(vec![link])));
        columns.push(Arc::new(StringArray::from(vec![summary])));
    }
    columns.push(Arc::new(StringArray::from(vec![extra])));
    RecordBatch::try_new(Table::Summaries.listed_schema(), columns).expect("the columns are made by the schema")
}
