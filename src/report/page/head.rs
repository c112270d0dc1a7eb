//! The head of the page: what the dataset is, in figures, and where it comes from. And its foot.

use std::fmt::Display;

use super::Html;
use crate::numbers::{counted, grouped};
use crate::report::Report;
use crate::report::facts::Facts;

impl Report {
    pub(super) fn head(&self, html: &mut Html) {
        let identity = &self.identity;
        html.element("header", &[], |html| {
            html.leaf("p", &[("class", &"kicker")], "Bellwether · dataset report");
            html.leaf("h1", &[], &identity.name);
            if let Some(description) = &identity.description {
                html.leaf("p", &[("class", &"lede")], description);
            }
            self.figures(html);
            self.origin(html);
            if !self.notes.is_empty() {
                html.element("ul", &[("class", &"notes")], |html| {
                    self.notes.iter().for_each(|note| html.leaf("li", &[], note));
                });
            }
            html.element("details", &[], |html| {
                html.leaf("summary", &[], "The definition");
                html.leaf("pre", &[], identity.definition.trim());
            });
        });
    }

    fn figures(&self, html: &mut Html) {
        let figure = |html: &mut Html, name: &str, value: &dyn Display, what: &[&str]| {
            html.element("div", &[], |html| {
                html.element("dt", &[], |html| {
                    for part in what {
                        html.leaf("span", &[("class", &"whole")], part);
                        html.text(" ");
                    }
                });
                html.leaf("dd", &[("id", &format_args!("figure-{name}"))], value);
            });
        };
        let facts = &self.facts;
        let count = |count: usize| grouped(count as u64);
        let [from, to] =
            facts.bounds().map_or_else(Default::default, |(first, last)| [first.to_string(), format!("to {last}")]);
        html.element("dl", &[("class", &"figures")], |html| {
            figure(html, "rows", &grouped(facts.rows), &["signals"]);
            figure(html, "tickers", &count(facts.tickers.len()), &["tickers"]);
            figure(html, "days", &grouped(facts.day_count()), &["days,", &from, &to]);
            figure(html, "pairs", &count(facts.pairs.len()), &["pairs of period", "and regime"]);
            if let Some(news) = &facts.news {
                figure(html, "articles", &grouped(news.articles), &["articles", "about them"]);
            }
        });
    }

    fn origin(&self, html: &mut Html) {
        let line = |html: &mut Html, name: &str, class: &str, value: &dyn Display| {
            html.element("div", &[], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[("class", &class)], value);
            });
        };
        let instant = |instant: chrono::DateTime<chrono::Utc>| instant.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        html.element("dl", &[("class", &"origin")], |html| {
            line(html, "Known as of", "", &instant(self.identity.as_of));
            if let Some(version) = &self.identity.version {
                line(html, "Built", "", &instant(version.built_at));
                line(html, "Version", "code", &version.name);
            }
            line(html, "From", "", &counted(self.work.runs.len() as u64, "run", "runs"));
            if let Some(version) = &self.identity.version {
                line(html, "Content", "code", &format_args!("blake3:{}", version.content));
            }
        });
    }

    pub(super) fn foot(&self, html: &mut Html) {
        html.element("footer", &[], |html| {
            html.leaf(
                "p",
                &[],
                format_args!(
                    "Made by bellwether {}. This page is one file: it fetches nothing, and opens from anywhere. Point at a plot, \
                     or reach it with the tab key and use the arrows, to read its values.",
                    env!("CARGO_PKG_VERSION")
                ),
            );
        });
    }
}

impl Facts {
    /// The first day and the last, in words.
    pub(in crate::report) fn range(&self) -> String {
        match self.bounds() {
            Some((first, last)) if first != last => format!("{first} to {last}"),
            Some((only, _)) => only.to_string(),
            None => "never".to_owned(),
        }
    }

    /// Says how many signals no plot over time shows, where there are any.
    pub(in crate::report) fn beyond_the_plots(&self) -> Option<String> {
        (self.undrawn > 0).then(|| {
            let signals = counted(self.undrawn, "signal is", "signals are");
            let days = counted(self.undrawn_days, "day", "days");
            format!(
                "{signals} dated before 1900 or after 2099, on {days}. They count in every share and mean; charts over time and \
                 the search for gaps leave them out."
            )
        })
    }
}
