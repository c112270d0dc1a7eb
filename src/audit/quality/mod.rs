//! How good is what the vendor gives?
//!
//! The latest known signals and articles are looked at, and the latest answer to each request:
//!
//! - *gaps*: trading days on which a series has no signal, between its first and its last. A trading day of an operation
//!   is one on which at least half of its series have a signal, of those that have begun and not ended by then.
//! - *stale*: series whose last day is before the newest trading day of their operation.
//! - *duplicates*: articles that are listed more than once with the same date, title and link.
//! - *unusual*: confidences outside 0 to 1 and scores outside -1 to 1. The interface shows no bounds; these are the usual.
//! - *rejects*: records that could not be typed, by their reason; and *drift*: fields that the interface does not know.
//! - *windows*: how many signals have news in each window of a definition, where the question is about one.
//!
//! Signals are gone through twice, some whole tickers at a time: what a trading day is depends on all of them.

mod calendar;
mod findings;
mod news;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

pub use findings::schema;
pub use news::{Window, windows};

use super::answers::{Answers, Reason, Rejects, UnknownFields};
use super::gathered::Gathered;
use super::observed::Observed;
use super::subject::Subject;
use crate::archive::History;
use crate::error::Result;
use crate::interface::Ticker;
use crate::tables::{Drift, Table};
use crate::time::MICROS_PER_DAY;
use calendar::Calendars;
use findings::{Finding, Kind};

/// The quality of what a vendor gives.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// How many series of signals there are.
    pub series: u64,
    /// Everything, added up; what is behind is the most that a series is.
    pub total: OfTicker,
    /// By ticker.
    pub tickers: BTreeMap<Ticker, OfTicker>,
    /// The records that the latest answers have and that were rejected.
    pub rejects: Rejects,
    /// The fields of the latest answers that the interface does not know.
    pub unknown: UnknownFields,
    /// How many signals have news, by window.
    pub windows: Vec<Window>,
}

/// The quality of what a vendor gives of a ticker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfTicker {
    /// Its signals.
    pub signals: u64,
    /// Trading days between the first and the last day of a series.
    pub trading_days: u64,
    /// Trading days on which a series has none, between its first and its last.
    pub missing: u64,
    /// Stretches of such days.
    pub gaps: u64,
    /// Series that end before the newest trading day.
    pub stale: u64,
    /// By how many trading days, at most.
    pub behind: u64,
    /// Its articles.
    pub articles: u64,
    /// Those of them that repeat another one.
    pub duplicates: u64,
    /// Confidences and scores outside their usual bounds.
    pub unusual: u64,
}

impl OfTicker {
    /// The share of the trading days between the first and the last of a series that have a signal.
    pub fn coverage(&self) -> Option<f64> {
        let present = self.trading_days - self.missing;
        (self.trading_days > 0).then(|| present as f64 / self.trading_days as f64)
    }

    fn add(&mut self, other: Self) {
        self.signals += other.signals;
        self.trading_days += other.trading_days;
        self.missing += other.missing;
        self.gaps += other.gaps;
        self.stale += other.stale;
        self.behind = self.behind.max(other.behind);
        self.articles += other.articles;
        self.duplicates += other.duplicates;
        self.unusual += other.unusual;
    }
}

/// Looks at the quality of a subject, and delivers a row for each finding in the columns of [`schema`]. What the answers
/// to its requests have that could not be used, and the windows of a definition, as [`windows`] counts them, come with
/// them.
///
/// # Errors
///
/// When a run cannot be read, and what `deliver` fails with.
pub fn quality(
    subject: &Subject,
    answers: Answers,
    windows: Vec<Window>,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Quality> {
    let Answers { rejects, unknown, .. } = answers;
    let found = Quality { rejects, unknown, windows, ..Quality::default() };
    let mut looking = Looking { found, rows: Gathered::new(schema()) };
    let calendars = Calendars::of(subject)?;
    for histories in subject.view().histories(Table::Signals)? {
        let histories = histories?;
        let observed = Observed::of(&histories);
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            looking.signals(subject, history, &observed, &calendars);
        }
        looking.rows.relieve(&mut deliver)?;
    }
    for histories in subject.view().histories(Table::Articles)? {
        let histories = histories?;
        let observed = Observed::of(&histories);
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            looking.articles(subject, history, &observed);
        }
        looking.rows.relieve(&mut deliver)?;
    }
    looking.tell_answers();
    looking.rows.flush(deliver)?;
    Ok(looking.found)
}

/// A look that is under way.
struct Looking {
    found: Quality,
    rows: Gathered,
}

impl Looking {
    fn signals(&mut self, subject: &Subject, history: &History, observed: &Observed<'_>, calendars: &Calendars) {
        let days = calendar::days(subject, history, observed);
        if days.is_empty() {
            return;
        }
        let of_series = |kind| Finding::of_series(kind, &history.key);
        let mut counted = OfTicker::default();
        for row in observed.known(history) {
            let Some(date) = observed.written_date(row).filter(|date| subject.has_date(*date)) else { continue };
            counted.signals += 1;
            if let Some(confidence) = observed.value(row).number.filter(|value| !(0.0..=1.0).contains(value)) {
                counted.unusual += 1;
                let finding = Finding { date: Some(date), value: Some(confidence), ..of_series(Kind::Unusual) };
                findings::push(&mut self.rows, &finding);
            }
        }
        let calendar = calendars.get(history.key.source);
        counted.trading_days = calendar.within(&days);
        for gap in calendar.gaps(&days) {
            counted.gaps += 1;
            counted.missing += gap.days;
            findings::push(&mut self.rows, &of_series(Kind::Gap).over(gap));
        }
        if let Some(behind) = calendar.behind(&days) {
            counted.stale = 1;
            counted.behind = behind.days;
            findings::push(&mut self.rows, &of_series(Kind::Stale).over(behind));
        }
        self.found.series += 1;
        self.add(&history.key.ticker, counted);
    }

    fn articles(&mut self, subject: &Subject, history: &History, observed: &Observed<'_>) {
        let mut counted = OfTicker::default();
        let texts = observed.texts.expect("these are articles");
        let article = |row: usize| (observed.dates.value(row), texts.map(|texts| texts.value(row)));
        let known: Vec<usize> =
            observed.known(history).filter(|&row| subject.has_date(observed.dates.value(row))).collect();
        // Articles are in the order of their dates, titles and links.
        for same in known.chunk_by(|&one, &other| article(one) == article(other)) {
            let (date, [title, _]) = article(same[0]);
            counted.articles += same.len() as u64;
            let of_article =
                |kind| Finding { date: Some(date), what: Some(title), ..Finding::of_series(kind, &history.key) };
            if same.len() > 1 {
                counted.duplicates += same.len() as u64 - 1;
                findings::push(
                    &mut self.rows,
                    &Finding { count: Some(same.len() as u64), ..of_article(Kind::Duplicate) },
                );
            }
            for score in same.iter().filter_map(|&row| observed.value(row).number) {
                if !(-1.0..=1.0).contains(&score) {
                    counted.unusual += 1;
                    findings::push(&mut self.rows, &Finding { value: Some(score), ..of_article(Kind::Unusual) });
                }
            }
        }
        self.add(&history.key.ticker, counted);
    }

    fn add(&mut self, ticker: &Ticker, counted: OfTicker) {
        self.found.total.add(counted);
        self.found.tickers.entry(ticker.clone()).or_default().add(counted);
    }

    /// What is not of a series: rejects, unknown fields and windows.
    fn tell_answers(&mut self) {
        for Reason { operation: source, reason, records, .. } in &self.found.rejects.reasons {
            let (source, count) = (Some(*source), Some(*records));
            let finding = Finding { source, count, what: Some(reason), ..Finding::of(Kind::Reject) };
            findings::push(&mut self.rows, &finding);
        }
        for Drift { endpoint, field, count, .. } in &self.found.unknown.fields {
            let source = Some(endpoint.as_str());
            let finding = Finding { source, count: Some(*count), what: Some(field), ..Finding::of(Kind::Drift) };
            findings::push(&mut self.rows, &finding);
        }
        for window in &self.found.windows {
            let (days, share) = (window.days.to_string(), window.share());
            let finding =
                Finding { count: Some(window.with_news), value: share, what: Some(&days), ..Finding::of(Kind::Window) };
            findings::push(&mut self.rows, &finding);
        }
    }
}

/// The day of a naive timestamp, counted from 1970.
fn day(micros: i64) -> i64 {
    micros.div_euclid(MICROS_PER_DAY)
}
