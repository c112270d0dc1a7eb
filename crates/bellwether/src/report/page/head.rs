//! The head of the page: what the dataset is, key figures, and where it comes from.

use std::fmt::Display;

use super::Html;
use crate::report::Report;
use crate::report::facts::Facts;
use crate::text::human::{count_of, group_digits};

impl Report {
    pub(super) fn head(&self, html: &mut Html) {
        let identity = &self.identity;
        html.element("p", &[("class", &"standing"), ("id", &"standing")], |html| html.phrase(&self.standing()));
        if let Some(description) = &identity.description {
            html.leaf("p", &[("class", &"lede")], description);
        }
        self.figures(html);
        self.origin(html);
        html.notes(&self.notes);
        html.element("details", &[], |html| {
            html.leaf("summary", &[], "Definition");
            html.leaf("pre", &[], identity.definition.trim());
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
        let count = |count: usize| group_digits(count as u64);
        let [from, to] =
            facts.bounds().map_or_else(Default::default, |(first, last)| [first.to_string(), format!("to {last}")]);
        html.element("dl", &[("class", &"figures")], |html| {
            let of_signals = !facts.pairs.is_empty();
            figure(html, "rows", &group_digits(facts.rows), &[if of_signals { "signals" } else { "rows" }]);
            figure(html, "tickers", &count(facts.tickers.len()), &["tickers"]);
            figure(html, "days", &group_digits(facts.day_count()), &["days,", &from, &to]);
            if of_signals {
                figure(html, "pairs", &count(facts.pairs.len()), &["pairs of period", "and regime"]);
            }
            if let Some(news) = &facts.news {
                figure(html, "articles", &group_digits(news.articles), &["articles", "about them"]);
            }
        });
    }

    fn origin(&self, html: &mut Html) {
        let instant = |instant: chrono::DateTime<chrono::Utc>| instant.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        html.element("dl", &[("class", &"origin")], |html| {
            html.fact("As of", instant(self.identity.as_of));
            if let Some(watched) = &self.identity.watched {
                html.fact("Watched", watched);
            }
            if let Some(version) = &self.identity.version {
                html.fact("Built", instant(version.built_at));
                html.code_fact("Version", &version.name);
            }
            html.fact("From", count_of(self.work.runs.len() as u64, "run", "runs"));
        });
    }
}

impl Facts {
    /// First and last day: `2026-01-05 to 2026-03-31`.
    pub(in crate::report) fn range(&self) -> String {
        match self.bounds() {
            Some((first, last)) if first != last => format!("{first} to {last}"),
            Some((only, _)) => only.to_string(),
            None => "no dates".to_owned(),
        }
    }

    /// A note on the signals that plots over time leave out, if there are any.
    pub(in crate::report) fn beyond_the_plots(&self) -> Option<String> {
        (self.undrawn > 0).then(|| {
            let signals = count_of(self.undrawn, "signal is", "signals are");
            let days = count_of(self.undrawn_days, "day", "days");
            format!(
                "{signals} dated before 1900 or after 2099, on {days}. They count towards shares and means, but charts over \
                 time and the gap analysis leave them out."
            )
        })
    }
}
