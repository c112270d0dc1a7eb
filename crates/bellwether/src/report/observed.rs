//! What somebody who needs the data as it was at the time must know first: since when it has been observed, how much of it
//! was seen live and how much only later, and of how much the news is unknown.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Report;
use crate::audit::answers::CutOff;
use crate::plan::DayCount;
use crate::text::human::{count_of, portion, span};

/// What was observed of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// The first answer and the last that listed one of its series; none if no answer is left.
    pub answers: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Number of its runs.
    pub runs: u64,
    /// Its rows.
    pub rows: u64,
    /// Rows that were first seen live; all others were first seen later. None if an earlier program counted them.
    pub live: Option<u64>,
    /// How long after its date a row is live.
    pub live_within: DayCount,
    /// Rows whose news is unknown in the longest window; none without windows.
    pub news_unknown: Option<u64>,
    /// Where lists of articles seem to be cut off.
    pub cut_off: Option<CutOff>,
    /// Tickers whose news was not asked for.
    pub unasked: u64,
}

impl Report {
    /// What was observed.
    pub fn observations(&self) -> Observed {
        let Self { identity, facts, work, unasked, .. } = self;
        let longest = facts.windows.iter().max_by_key(|window| window.length.count());
        Observed {
            answers: identity.watched.map(|watch| (watch.from, watch.until)),
            runs: work.runs.len() as u64,
            rows: facts.rows,
            live: facts.seen_live,
            live_within: identity.live_within,
            news_unknown: longest.map(|window| window.unknown),
            cut_off: work.cut_off,
            unasked: *unasked,
        }
    }

    /// What its rows are called.
    fn noun(&self) -> &'static str {
        if self.facts.pairs.is_empty() { "articles" } else { "signals" }
    }

    /// What was observed, in words.
    pub(super) fn standing(&self) -> String {
        let observed = self.observations();
        let parts = [Some(observed.span()), observed.sightings(self.noun()), observed.news()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// The time in which a change could be seen: ` (109 days from the first answer to the last)`.
    pub(super) fn time_to_change(&self) -> String {
        let between = self.observations().between();
        between.map_or_else(String::new, |span| format!(" ({span} from the first answer to the last)"))
    }
}

impl Observed {
    /// The time from the first answer to the last.
    fn between(&self) -> Option<String> {
        let (from, until) = self.answers?;
        Some(span((until - from).to_std().unwrap_or(Duration::ZERO)))
    }

    fn span(&self) -> String {
        let runs = count_of(self.runs, "run", "runs");
        match (self.answers, self.between()) {
            // In a single run, no change can be seen.
            (Some((from, _)), Some(span)) if self.runs > 1 => {
                format!("Observed since {} in {runs}, over {span}.", from.date_naive())
            }
            (Some((from, _)), _) => format!("Observed since {} in {runs}.", from.date_naive()),
            (None, _) => format!("Observed in {runs}."),
        }
    }

    fn sightings(&self, noun: &str) -> Option<String> {
        let (live, rows, within) = (self.live?, self.rows, self.live_within);
        Some(match live {
            0 => format!("All {noun} were first seen later than {within} after their date."),
            all if all == rows => format!("All {noun} were seen live, within {within} of their date."),
            some => {
                let (seen, rest) = (portion(some, rows), portion(rows - some, rows));
                format!("{seen} of {noun} were seen live, within {within} of their date; {rest} were first seen later.")
            }
        })
    }

    fn news(&self) -> Option<String> {
        let (unknown, rows) = (self.news_unknown.filter(|unknown| *unknown > 0)?, self.rows);
        let cut_off = self.cut_off.map(|cut_off| {
            let (lists, articles) = (cut_off.tickers, count_of(cut_off.articles, "article", "articles"));
            format!("the service seems to cut {} off at {articles}", count_of(lists, "list", "lists"))
        });
        let unasked = (self.unasked > 0).then(|| {
            let tickers = count_of(self.unasked, "ticker", "tickers");
            format!("it was not asked for {tickers}")
        });
        let why: Vec<String> = [cut_off, unasked].into_iter().flatten().collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", and ")) };
        Some(format!("News is unknown for {} of signals{why}.", portion(unknown, rows)))
    }
}
