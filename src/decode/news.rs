//! The articles and the summary of one ticker.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use serde_json::value::RawValue;

use super::date::{self, Date};
use super::split::reason_of;
use super::{Answer, Decoded};
use crate::error::Result;
use crate::interface::{ArticleReference, NewsArticle, Score, SentimentSummary, Ticker};
use crate::tables::{News, NewsTable};

/// Decodes a list of articles.
pub(super) fn articles(answer: &Answer<'_>) -> Result<Decoded> {
    let list: Vec<&RawValue> = serde_json::from_slice(answer.body).map_err(|fault| answer.malformed(&fault))?;
    let ticker = asked(answer);
    let mut decoded = Decoded::default();
    let mut rows = ArticleRows::default();
    for (position, raw) in list.iter().enumerate() {
        if let Err(reason) = rows.push(answer, position, raw.get()) {
            let pointer = format!("/{position}");
            decoded.rejects.push(answer.reject(Some(ticker.as_str()), pointer, reason, raw.get()));
        }
    }
    decoded.articles.push(News { ticker: ticker.clone(), observed_at: answer.observed_at, rows: rows.finish() });
    Ok(decoded)
}

/// Decodes a summary.
pub(super) fn summary(answer: &Answer<'_>) -> Result<Decoded> {
    let raw: &RawValue = serde_json::from_slice(answer.body).map_err(|fault| answer.malformed(&fault))?;
    let ticker = asked(answer);
    let mut decoded = Decoded::default();
    match summary_row(answer, ticker, raw.get()) {
        Ok(rows) => {
            decoded.summaries.push(News { ticker: ticker.clone(), observed_at: answer.observed_at, rows });
        }
        Err(reason) => {
            decoded.rejects.push(answer.reject(Some(ticker.as_str()), String::new(), reason, raw.get()));
        }
    }
    Ok(decoded)
}

fn asked<'a>(answer: &Answer<'a>) -> &'a Ticker {
    answer.request.ticker.as_ref().expect("an operation of one ticker is asked with its ticker")
}

#[derive(Default)]
struct ArticleRows {
    positions: Vec<i32>,
    dates: Vec<i64>,
    titles: StringBuilder,
    scores: Vec<Option<f64>>,
    links: StringBuilder,
}

impl ArticleRows {
    fn push(&mut self, answer: &Answer<'_>, position: usize, raw: &str) -> Result<(), String> {
        let article: NewsArticle<'_> = serde_json::from_str(raw).map_err(|fault| reason_of(&fault))?;
        let date = date::read(&article.date, answer.dates)?;
        let score = article.score.as_ref().map(finite).transpose()?;
        self.positions.push(position as i32);
        self.dates.push(date.micros);
        self.titles.append_value(&article.title);
        self.scores.push(score);
        self.links.append_value(&article.link);
        Ok(())
    }

    fn finish(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(self.positions)),
            Arc::new(TimestampMicrosecondArray::from(self.dates)),
            Arc::new(self.titles.finish()),
            Arc::new(Float64Array::from(self.scores)),
            Arc::new(self.links.finish()),
        ];
        RecordBatch::try_new(NewsTable::Articles.row_schema(), columns).expect("the columns are made by the schema")
    }
}

fn summary_row(answer: &Answer<'_>, asked: &Ticker, raw: &str) -> Result<RecordBatch, String> {
    let summary: SentimentSummary<'_> = serde_json::from_str(raw).map_err(|fault| reason_of(&fault))?;
    if summary.ticker != *asked {
        return Err(format!("the summary is of `{}`, which was not asked for", summary.ticker));
    }
    let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values([&summary.debtor]))];
    for article in [&summary.low_article, &summary.high_article, &summary.avg_article] {
        let ArticleReference { date, score, link } = article;
        let Date { micros, .. } = date::read(date, answer.dates)?;
        columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values([micros])));
        columns.push(Arc::new(Float64Array::from_iter_values([finite(score)?])));
        columns.push(Arc::new(StringArray::from_iter_values([link])));
    }
    Ok(RecordBatch::try_new(NewsTable::Summaries.row_schema(), columns).expect("the columns are made by the schema"))
}

fn finite(score: &Score<'_>) -> Result<f64, String> {
    score.value().ok_or_else(|| {
        let written: Cow<'_, str> = match score {
            Score::Number(number) => number.to_string().into(),
            Score::Text(text) => date::clipped(text).into(),
        };
        format!("`{written}` is not a finite decimal number")
    })
}
