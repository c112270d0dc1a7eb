//! A dataset in a few sentences: which signals, and which news each may use.

use super::{Availability, DatasetPlan, DayCount, RowKind, Vintage};
use crate::text::human::{count_of, span};

impl DatasetPlan {
    /// Which value of a signal a row has, and which news it may use.
    pub fn in_words(&self) -> String {
        let rows = match self.rows {
            RowKind::Observation => return "Signals have a row for each value that they had.".to_owned(),
            RowKind::Article => "Articles",
            RowKind::Signal => "Signals",
        };
        let vintage = match self.vintage {
            Vintage::Latest => format!("{rows} are taken as they were last revised."),
            Vintage::First => format!("{rows} are taken as they were first published."),
        };
        if self.features.is_empty() {
            return vintage;
        }
        let dated = match self.lag {
            DayCount::Calendar(days) if days.count() == 0 => "dated up to its own day".to_owned(),
            DayCount::Calendar(days) => {
                let days = count_of(days.count().unsigned_abs().into(), "day", "days");
                format!("dated at least {days} before it")
            }
            DayCount::Trading(days) => {
                let days = count_of(days.count().unsigned_abs().into(), "trading day", "trading days");
                format!("dated at least {days} before it")
            }
        };
        let windows: Vec<String> = self.windows().iter().map(ToString::to_string).collect();
        let windows = match windows.as_slice() {
            [] => String::new(),
            [only] => format!(", in a window of {only}"),
            [most @ .., last] => format!(", in windows of {} and {last}", most.join(", ")),
        };
        let seen = match (self.vintage, self.availability) {
            (Vintage::First, _) | (_, Availability::Observed) => {
                "that had been seen when the signal was, with the scores of that time"
            }
            (Vintage::Latest, Availability::Dated) => "whenever it was first seen, with its latest scores",
        };
        let made = self.made_at.map_or_else(String::new, |time| format!(" A signal without a time is made at {time}."));
        let delay = if self.news_delay.is_zero() {
            String::new()
        } else {
            format!(" News is known {} after its date.", span(self.news_delay))
        };
        format!("{vintage} Each uses news {dated}{windows}: {seen}.{made}{delay}")
    }
}
