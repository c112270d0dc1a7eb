//! The articles, and the summary and daily sentiment computed from them.

use std::collections::BTreeMap;

use bellwether::interface::ChangeSet;
use chrono::NaiveDate;
use serde_json::{Value, json};

use super::Start;
use crate::support::service::{Server, dates, day, fields, list, text};

/// A score in either form.
fn score(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).expect("a number or a decimal string")
}

#[test]
fn articles_are_listed_newest_first_with_scores_in_both_forms() {
    articles(&Server::of);
    let articles = Server::of(ChangeSet::G).json("/sentiment/news_articles/EL");
    assert!(list(&articles).iter().any(|article| article["score"].is_string()));
    assert!(list(&articles).iter().any(|article| article["score"].is_number()));
}

pub(super) fn articles(start: Start<'_>) {
    let server = start(ChangeSet::G);
    let articles = server.json("/sentiment/news_articles/EL");
    assert!((400..404).contains(&list(&articles).len()));
    assert!(dates(&articles).is_sorted_by(|newer, older| newer >= older));
    for article in list(&articles) {
        assert_eq!(fields(article), ["date", "link", "score", "title"]);
        assert!(text(&article["date"]).parse::<NaiveDate>().is_ok_and(|date| date <= day(2026, 11, 20)));
        assert!(text(&article["link"]).starts_with("https://"));
        assert!((-1.0..=1.0).contains(&score(&article["score"])));
    }
    let titles = articles.to_string();
    for sign in ["Estée", "—", "’", "€", ", ", "\\\""] {
        assert!(titles.contains(sign), "{sign}");
    }
}

#[test]
fn the_summary_refers_to_the_lowest_the_highest_and_the_average_article() {
    summaries(&Server::of);
}

pub(super) fn summaries(start: Start<'_>) {
    let server = start(ChangeSet::E);
    for (ticker, name) in [("BRK.B", "Berkshire Hathaway"), ("EL", "Estée Lauder Companies")] {
        let summary = server.json(&format!("/sentiment/social_sentiment/{ticker}"));
        assert_eq!(fields(&summary), ["avg_article", "debtor", "high_article", "low_article", "ticker"]);
        assert_eq!((&summary["debtor"], &summary["ticker"]), (&json!(name), &json!(ticker)));
        let articles = server.json(&format!("/sentiment/news_articles/{ticker}"));
        let scores: Vec<f64> = list(&articles).iter().map(|article| score(&article["score"])).collect();
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let low = scores.iter().copied().fold(f64::MAX, f64::min);
        let high = scores.iter().copied().fold(f64::MIN, f64::max);
        let nearest = scores.iter().map(|score| (score - mean).abs()).fold(f64::MAX, f64::min);
        for role in ["low", "high", "avg"] {
            let reference = &summary[format!("{role}_article")];
            assert_eq!(fields(reference), ["date", "link", "score"]);
            let article = list(&articles)
                .iter()
                .find(|article| article["link"] == reference["link"])
                .expect("as the interface has it");
            assert_eq!((&article["score"], &article["date"]), (&reference["score"], &reference["date"]));
        }
        let of = |role: &str| score(&summary[format!("{role}_article")]["score"]);
        assert_eq!((of("low"), of("high")), (low, high));
        assert!((of("avg") - mean).abs() - nearest < 1e-9, "{} is not nearest to {mean}", of("avg"));
    }
}

#[test]
fn the_oldest_summary_looks_back_on_thirty_days() {
    let server = Server::of(ChangeSet::Origin);
    let summary = server.json("/sentiment/social_sentiment/AAPL");
    let mut expected = vec!["crawl_date".to_owned(), "debtor".to_owned(), "ticker".to_owned()];
    for role in ["avg", "high", "low"] {
        expected.extend(["link", "score", "summary"].map(|field| format!("{role}_{field}_latest30")));
    }
    expected.sort();
    assert_eq!(fields(&summary), expected);
    assert_eq!((&summary["debtor"], &summary["crawl_date"]), (&json!("Apple"), &json!("2026-11-20")));

    let articles = Server::of(ChangeSet::G).json("/sentiment/news_articles/AAPL");
    let recent: Vec<&Value> = list(&articles).iter().filter(|article| text(&article["date"]) > "2026-10-21").collect();
    let low = recent.iter().map(|article| score(&article["score"])).fold(f64::MAX, f64::min);
    let high = recent.iter().map(|article| score(&article["score"])).fold(f64::MIN, f64::max);
    assert_eq!((score(&summary["low_score_latest30"]), score(&summary["high_score_latest30"])), (low, high));
    assert!(recent.iter().any(|article| article["title"] == summary["avg_summary_latest30"]));
}

#[test]
fn the_daily_sentiment_is_the_mean_of_the_articles_of_each_day() {
    daily_sentiment(&Server::of);
}

pub(super) fn daily_sentiment(start: Start<'_>) {
    let server = start(ChangeSet::G);
    let articles = server.json("/sentiment/news_articles/XOM");
    let mut scores = BTreeMap::<&str, Vec<f64>>::new();
    for article in list(&articles) {
        scores.entry(text(&article["date"])).or_default().push(score(&article["score"]));
    }
    let daily = server.json("/sentiment/historical_ss_data/XOM");
    assert!(dates(&daily).into_iter().eq(scores.keys().rev().copied()));
    for record in list(&daily) {
        assert_eq!(fields(record), ["articles", "date", "score"]);
        let scores = &scores[text(&record["date"])];
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        assert_eq!(record["articles"], json!(scores.len()));
        assert!((score(&record["score"]) - mean).abs() < 0.000_051, "{record}: {mean}");
    }
}
