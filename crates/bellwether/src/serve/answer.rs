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

use super::question::{Question, Refusal, record, text};
use crate::interface::{
    ArticleReference, BatchedHistory, ChangeSet, Endpoint, HistoricalSentiment, HistoryEntry, HistoryKey,
    IndexedSignal, LatestForm, LatestSignal, NewsArticle, Period, Regime, SectorHistory, SentimentSummary, SummaryForm,
    Ticker, TrailingSummary,
};
use crate::net::listen::{Answer, stream, whole};

/// The offset of dates; the batched shape has none.
const OFFSET: &str = "+00:00";

/// The answer of a universe, in the shapes of a point of the change record.
pub(super) fn answer(universe: &Universe, change_set: ChangeSet, question: &Question) -> Result<Answer, Refusal> {
    let Question { endpoint, symbol, period, regime, limit, .. } = question;
    if *endpoint == Endpoint::TickersAvailable {
        return Ok(found(&universe.tickers().collect::<Vec<_>>()));
    }
    if !endpoint.is_of_one_ticker() {
        return Ok(histories(universe, question));
    }
    let company = companies::find(symbol).ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "Unknown ticker"))?;
    let (ticker, today) = (company.ticker.clone(), universe.today());
    let (period, regime) = (period.unwrap_or_default(), regime.unwrap_or_default());
    // Computed for signals alone.
    let series = || universe.series(company, Outlook { model: Model::behind(*endpoint), period, regime });
    Ok(match endpoint {
        Endpoint::SocialSentiment => summary(universe, change_set, company),
        Endpoint::NewsArticles => {
            let articles = universe.articles(company);
            let records = articles.iter().map(|article| NewsArticle {
                date: article.date.to_string().into(),
                title: article.title().into(),
                score: Some(article.written_score(today)),
                link: article.link().into(),
            });
            found(&records.collect::<Vec<_>>())
        }
        Endpoint::HistoricalSentiment => {
            let articles = universe.articles(company);
            let records = Day::each(&articles, today).map(|day| HistoricalSentiment {
                date: day.date.to_string().into(),
                score: day.mean,
                articles: day.articles,
            });
            found(&records.collect::<Vec<_>>())
        }
        Endpoint::Signals | Endpoint::LegacySignals => {
            let dates = newest_dates(universe, OFFSET, 1);
            let mut newest = entries(&dates, &series(), today);
            let HistoryEntry { date, signal, confidence } = newest.pop().expect("five years have a trading day");
            let date = match change_set.latest_form() {
                LatestForm::Indexed => {
                    return Ok(found(&IndexedSignal { ticker, date, period, regime, ei: signal, ci: confidence }));
                }
                LatestForm::Nullable if universe.is_undated(company, period) => None,
                LatestForm::Nullable | LatestForm::Dated => Some(date),
            };
            found(&LatestSignal { ticker, date, period, regime, signal, confidence })
        }
        _ => {
            let dates = newest_dates(universe, OFFSET, *limit);
            let entries = entries(&dates, &series(), today);
            let body = history(change_set.history_key(), ticker, period, regime, entries);
            whole(StatusCode::OK, "application/json", body)
        }
    })
}

/// The histories of a sector, or of all tickers.
fn histories(universe: &Universe, question: &Question) -> Answer {
    let Question { endpoint, sector, period, regime, limit, .. } = question;
    let (model, period, regime) = (Model::behind(*endpoint), *period, *regime);
    let (key, offset) = match sector {
        Some(_) => (HistoryKey::Predictions, OFFSET),
        None => (HistoryKey::Items, ""),
    };
    let is_of = |company: &&Company| sector.as_ref().is_none_or(|sector| company.sector == sector);
    let companies: Vec<&'static Company> = companies::all().iter().filter(is_of).collect();
    let (universe, dates) = (universe.clone(), newest_dates(universe, offset, *limit));
    object(companies, move |company| {
        let own = universe.own_series(company);
        let (period, regime) = (period.unwrap_or(own.0), regime.unwrap_or(own.1));
        let series = universe.series(company, Outlook { model, period, regime });
        let entries = entries(&dates, &series, universe.today());
        // A ticker needs no escaping in JSON.
        Ok(format!("\"{}\":{}", company.ticker, history(key, company.ticker.clone(), period, regime, entries)))
    })
}

/// The newest `limit` trading days, newest first, with the text that all entries borrow.
fn newest_dates(universe: &Universe, offset: &str, limit: usize) -> Vec<(NaiveDate, String)> {
    let newest = universe.trading_days().iter().rev().take(limit);
    newest.map(|&date| (date, format!("{date}T00:00:00{offset}"))).collect()
}

fn entries<'d>(dates: &'d [(NaiveDate, String)], series: &PredictionSeries, today: NaiveDate) -> Vec<HistoryEntry<'d>> {
    let entry = |(date, text): &'d (NaiveDate, String)| {
        let prediction = series.get(*date, today);
        HistoryEntry { date: text.into(), signal: prediction.signal(), confidence: prediction.confidence() }
    };
    dates.iter().map(entry).collect()
}

/// A history in one of its two shapes.
pub(super) fn history<E: Serialize>(
    key: HistoryKey,
    ticker: Ticker,
    period: Period,
    regime: Regime,
    entries: Vec<E>,
) -> String {
    match key {
        HistoryKey::Items => text(&BatchedHistory { items: entries, period, regime, ticker }),
        HistoryKey::Predictions => text(&SectorHistory { ticker, regime, period, predictions: entries }),
    }
}

fn summary(universe: &Universe, change_set: ChangeSet, company: &'static Company) -> Answer {
    let today = universe.today();
    let mut articles = universe.articles(company);
    let form = change_set.summary_form();
    if form == SummaryForm::Trailing {
        let end = today.checked_sub_days(Days::new(30)).unwrap_or(NaiveDate::MIN);
        articles.retain(|article| article.date > end);
    }
    let Extremes { low, high, average } = Extremes::of(&articles, today).expect("every week has an article");
    let (debtor, ticker) = (company.name.into(), company.ticker.clone());
    let reference = |article: &Article| ArticleReference {
        date: article.date.to_string().into(),
        score: article.written_score(today),
        link: article.link().into(),
    };
    match form {
        SummaryForm::Articles => found(&SentimentSummary {
            debtor,
            ticker,
            low_article: reference(low),
            high_article: reference(high),
            avg_article: reference(average),
        }),
        SummaryForm::Trailing => found(&TrailingSummary {
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

/// A record that was found.
fn found(value: &impl Serialize) -> Answer {
    record(StatusCode::OK, value)
}
