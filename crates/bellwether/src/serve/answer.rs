//! Answers questions with records of the interface, and writes them as a body.
//!
//! The answer for one ticker is small and written whole. An answer for many is written ticker by ticker while it is
//! sent, so the batch for all, some 42 MB, takes only the memory of a few tickers.

use std::io;
use std::sync::Arc;

use bellwether_demo::Universe;
use bellwether_demo::companies::{self, Company};
use bellwether_demo::news::{Article, Day, Extremes};
use bellwether_demo::prediction::{Model, Outlook, PredictionSeries};
use bytes::Bytes;
use chrono::{Days, NaiveDate};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::question::Question;
use super::refusal::{Refusal, json};
use crate::interface::{
    ArticleReference, BatchedHistory, ChangeSet, HistoricalSentiment, HistoryEntry, HistoryKey, IndexedSignal,
    LatestForm, LatestSignal, NewsArticle, Period, Regime, SectorHistory, SentimentSummary, SummaryForm,
    TrailingSummary,
};
use crate::net::listen::{Answer, stream};

/// The source of answers: the universe, and the shapes of a point of the change record.
#[derive(Debug)]
pub(super) struct AnswerSource {
    pub(super) universe: Universe,
    pub(super) change_set: ChangeSet,
}

/// The offset of dates; the batched shape has none.
const OFFSET: &str = "+00:00";

/// The dates of an answer, newest first, with the text that all of its entries borrow.
struct Dates(Vec<(NaiveDate, String)>);

impl AnswerSource {
    /// The answer to a question.
    pub(super) fn answer(self: &Arc<Self>, question: Question) -> Result<Answer, Refusal> {
        let find = |symbol: String| {
            companies::find(&symbol).ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "Unknown ticker"))
        };
        Ok(match question {
            Question::Sector { outlook, sector } => self.sector(outlook, &sector),
            Question::Batch { model, period, regime, limit } => self.batch(model, period, regime, limit),
            Question::History { outlook, symbol, limit } => {
                let company = find(symbol)?;
                self.history(company, &self.universe.series(company, outlook), limit)
            }
            Question::Latest { outlook, symbol } => {
                let company = find(symbol)?;
                self.latest(company, &self.universe.series(company, outlook))
            }
            Question::Tickers => of_record(&self.universe.tickers().collect::<Vec<_>>()),
            Question::Summary { symbol } => self.summary(find(symbol)?),
            Question::Articles { symbol } => self.articles(find(symbol)?),
            Question::DailySentiment { symbol } => self.daily_sentiment(find(symbol)?),
        })
    }

    fn sector(self: &Arc<Self>, outlook: Outlook, sector: &str) -> Answer {
        let source = Arc::clone(self);
        let dates = Dates::new(&self.universe, OFFSET, usize::MAX);
        let companies: Vec<&Company> = companies::all().iter().filter(|company| company.sector == sector).collect();
        object(companies, move |company| {
            let series = source.universe.series(company, outlook);
            let predictions = dates.entries(&series, source.universe.today());
            let Outlook { period, regime, .. } = outlook;
            member(company, &SectorHistory { ticker: company.ticker.clone(), regime, period, predictions })
        })
    }

    fn batch(self: &Arc<Self>, model: Model, period: Option<Period>, regime: Option<Regime>, limit: usize) -> Answer {
        let source = Arc::clone(self);
        let dates = Dates::new(&self.universe, "", limit);
        object(companies::all().iter().collect(), move |company| {
            let own = source.universe.own_series(company);
            let (period, regime) = (period.unwrap_or(own.0), regime.unwrap_or(own.1));
            let series = source.universe.series(company, Outlook { model, period, regime });
            let items = dates.entries(&series, source.universe.today());
            member(company, &BatchedHistory { items, period, regime, ticker: company.ticker.clone() })
        })
    }

    fn history(&self, company: &Company, series: &PredictionSeries, limit: usize) -> Answer {
        let dates = Dates::new(&self.universe, OFFSET, limit);
        let entries = dates.entries(series, self.universe.today());
        let (ticker, Outlook { period, regime, .. }) = (company.ticker.clone(), series.outlook);
        match self.change_set.history_key() {
            HistoryKey::Items => of_record(&BatchedHistory { items: entries, period, regime, ticker }),
            HistoryKey::Predictions => of_record(&SectorHistory { ticker, regime, period, predictions: entries }),
        }
    }

    fn latest(&self, company: &Company, series: &PredictionSeries) -> Answer {
        let dates = Dates::new(&self.universe, OFFSET, 1);
        let mut entries = dates.entries(series, self.universe.today());
        let HistoryEntry { date, signal, confidence } = entries.pop().expect("five years have a trading day");
        let (ticker, Outlook { period, regime, .. }) = (company.ticker.clone(), series.outlook);
        let date = match self.change_set.latest_form() {
            LatestForm::Indexed => {
                return of_record(&IndexedSignal { ticker, date, period, regime, ei: signal, ci: confidence });
            }
            LatestForm::Nullable if self.universe.is_undated(company, period) => None,
            LatestForm::Nullable | LatestForm::Dated => Some(date),
        };
        of_record(&LatestSignal { ticker, date, period, regime, signal, confidence })
    }

    fn summary(&self, company: &'static Company) -> Answer {
        let today = self.universe.today();
        let mut articles = self.universe.articles(company);
        let form = self.change_set.summary_form();
        if form == SummaryForm::Trailing {
            let end = today.checked_sub_days(Days::new(30)).unwrap_or(NaiveDate::MIN);
            articles.retain(|article| article.date > end);
        }
        let extremes = Extremes::of(&articles, today).expect("every week has an article");
        let (low, high, average) = (extremes.low, extremes.high, extremes.average);
        let (debtor, ticker) = (company.name.into(), company.ticker.clone());
        let reference = |article: &Article| ArticleReference {
            date: article.date.to_string().into(),
            score: article.written_score(today),
            link: article.link().into(),
        };
        match form {
            SummaryForm::Articles => of_record(&SentimentSummary {
                debtor,
                ticker,
                low_article: reference(low),
                high_article: reference(high),
                avg_article: reference(average),
            }),
            SummaryForm::Trailing => of_record(&TrailingSummary {
                debtor,
                ticker,
                crawl_date: today.to_string().into(),
                low_score_latest30: low.written_score(today),
                low_link_latest30: low.link().into(),
                low_summary_latest30: low.title().into(),
                high_score_latest30: high.written_score(today),
                high_link_latest30: high.link().into(),
                high_summary_latest30: high.title().into(),
                avg_score_latest30: average.written_score(today),
                avg_link_latest30: average.link().into(),
                avg_summary_latest30: average.title().into(),
            }),
        }
    }

    fn articles(&self, company: &'static Company) -> Answer {
        let articles = self.universe.articles(company);
        let records = articles.iter().map(|article| NewsArticle {
            date: article.date.to_string().into(),
            title: article.title().into(),
            score: Some(article.written_score(self.universe.today())),
            link: article.link().into(),
        });
        of_record(&records.collect::<Vec<_>>())
    }

    fn daily_sentiment(&self, company: &'static Company) -> Answer {
        let articles = self.universe.articles(company);
        let records = Day::each(&articles, self.universe.today()).map(|day| HistoricalSentiment {
            date: day.date.to_string().into(),
            score: day.mean,
            articles: day.articles,
        });
        of_record(&records.collect::<Vec<_>>())
    }
}

impl Dates {
    /// The newest `limit` trading days.
    fn new(universe: &Universe, offset: &str, limit: usize) -> Self {
        let newest = universe.trading_days().iter().rev().take(limit);
        Self(newest.map(|&date| (date, format!("{date}T00:00:00{offset}"))).collect())
    }

    fn entries(&self, series: &PredictionSeries, today: NaiveDate) -> Vec<HistoryEntry<'_>> {
        self.0
            .iter()
            .map(|(date, text)| {
                let prediction = series.get(*date, today);
                HistoryEntry { date: text.into(), signal: prediction.signal(), confidence: prediction.confidence() }
            })
            .collect()
    }
}

/// An object whose members are written in parts on the blocking threads, and sent as they are written. A part has its
/// members with commas between them, or none.
pub(super) fn object<T, F>(parts: Vec<T>, write: F) -> Answer
where
    T: Send + 'static,
    F: Fn(T) -> io::Result<String> + Send + Sync + 'static,
{
    /// The most parts to write ahead of sending.
    const AHEAD: usize = 2;

    let write = Arc::new(write);
    let parts = stream::iter(parts).map(move |part| {
        let write = Arc::clone(&write);
        spawn_blocking(move || write(part))
    });
    let mut separator = "";
    let members = parts.buffered(AHEAD).map(move |part| {
        let members = part.map_err(io::Error::other)??;
        let before = if members.is_empty() { "" } else { std::mem::replace(&mut separator, ",") };
        Ok(format!("{before}{members}"))
    });
    let brace = |text: &str| stream::iter([Ok(text.to_owned())]);
    stream("application/json", brace("{").chain(members).chain(brace("}")).map(|part| part.map(Bytes::from)))
}

/// The member of a company. A ticker needs no escaping in JSON.
fn member(company: &Company, record: &impl Serialize) -> io::Result<String> {
    Ok(format!("\"{}\":{}", company.ticker, serde_json::to_string(record)?))
}

/// A record that was found.
fn of_record(record: &impl Serialize) -> Answer {
    json(StatusCode::OK, record)
}
