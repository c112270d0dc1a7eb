//! Audits of the archive and of datasets, compared with the service's known changes and with DuckDB on the same files.

mod diff;
mod leak;
mod prices;
mod quality;
mod renames;
mod revisions;
mod skill;
mod sources;
pub(crate) mod table;

use crate::support::program::{Outcome, Place};
use crate::support::scripted::Scripted;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "scripted");

/// Runs a definition against a scripted service.
#[track_caller]
fn run(place: &Place, service: &Scripted, name: &str, rest: &str) {
    place.define(name, &format!("[source]\n{}{rest}", service.source()));
    Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
}

/// The entries of a history, each from a date, a signal and a confidence.
fn entries(entries: &[(&str, &str, f64)]) -> String {
    let entry = |(date, signal, confidence): &(&str, &str, f64)| {
        format!("{{\"date\": \"{date}\", \"signal\": \"{signal}\", \"confidence\": {confidence}}}")
    };
    format!("[{}]", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}

/// The answer of a sector, from the entries of each ticker.
fn sector(tickers: &[(&str, String)]) -> String {
    let history = |(ticker, entries): &(&str, String)| {
        format!(
            "\"{ticker}\": {{\"ticker\": \"{ticker}\", \"regime\": \"neutral\", \"period\": \"15d\", \
             \"predictions\": {entries}}}"
        )
    };
    format!("{{{}}}", tickers.iter().map(history).collect::<Vec<_>>().join(", "))
}

/// A list of articles, each from a date, a title (also its link) and a score.
fn articles(articles: &[(&str, &str, f64)]) -> String {
    let article = |(date, title, score): &(&str, &str, f64)| {
        format!(
            "{{\"date\": \"{date}\", \"title\": \"{title}\", \"score\": {score}, \"link\": \"https://news/{title}\"}}"
        )
    };
    format!("[{}]", articles.iter().map(article).collect::<Vec<_>>().join(", "))
}
