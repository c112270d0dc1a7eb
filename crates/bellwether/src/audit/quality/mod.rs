//! The quality of the vendor's data.
//!
//! Looks at the latest known signals and articles, and at the latest answer to each request:
//!
//! - *gaps*: due days without a signal, between the first and last day of a series. Most series are due on trading days: a
//!   day counts as one if at least half of these series that have begun and not ended by then have a signal. A series that
//!   comes once in five days or less often is due by its own cadence: the median of the days between its signals.
//! - *stale*: series whose last day is before the latest day on which they were due.
//! - *duplicates*: articles listed more than once with the same date, title and link.
//! - *unusual*: confidences outside 0 to 1 and scores outside -1 to 1. The interface gives no bounds; these are the
//!   usual ones.
//! - *rejects*: rejected records by reason; and *drift*: unknown fields.
//! - *windows*: signals with news in each window of a definition, when auditing one.
//! - *split days*: tickers whose signals are dated at other times of day than those of most others.
//! - *cut off*: a length at which the service seems to cut off lists of articles.
//! - *renames*: tickers that end where another goes on with the same history.
//!
//! Signals are read twice, a few whole tickers at a time and several such pieces at once, because trading days depend on
//! all of them; a third time only to compare the histories of suspected renames.

mod calendar;
mod findings;
mod news;
mod renames;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

pub use findings::schema;
pub use news::Window;
pub(crate) use news::{RowFindings, of_rows};
pub use renames::Rename;

use super::answers::{Answers, CutOff, RejectReason, Rejects, UnknownFields};
use super::observed::ObservedColumns;
use super::row_builder::{RowBuilder, RowQueue};
use super::subject::Subject;
use crate::archive::{History, StoredObservations};
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::process::in_order::in_order;
use crate::split_days::SplitDays;
use crate::tables::{Drift, Table};
use crate::time::MICROS_PER_DAY;
use calendar::{DueDays, Presence, SeriesDays, TradingDays};
use findings::{Finding, FindingKind};
use renames::{Candidates, Ended, Ends};

/// The quality of a vendor's data.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// Number of signal series.
    pub series: u64,
    /// Totals over all tickers; `behind` is the maximum.
    pub total: TickerQuality,
    /// By ticker.
    pub tickers: BTreeMap<Ticker, TickerQuality>,
    /// Rejected records of the latest answers.
    pub rejects: Rejects,
    /// Unknown fields of the latest answers.
    pub unknown: UnknownFields,
    /// Signals with news, by window.
    pub windows: Vec<Window>,
    /// Where lists of articles seem to be cut off.
    pub cut_off: Option<CutOff>,
    /// Tickers whose signals are dated at other times of day than those of most others.
    pub split_days: Option<SplitDays>,
    /// Tickers that end where another goes on with the same history.
    pub renames: Vec<Rename>,
}

/// The quality of a ticker's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickerQuality {
    /// Number of signals.
    pub signals: u64,
    /// Due days between the first and last day of each series: trading days, or by its own cadence.
    pub due_days: u64,
    /// Due days without a signal.
    pub missing: u64,
    /// Runs of consecutive missing days.
    pub gaps: u64,
    /// Series that end before the latest day on which they were due.
    pub stale: u64,
    /// How far the most outdated series is behind, in due days.
    pub behind: u64,
    /// Number of articles.
    pub articles: u64,
    /// Articles that repeat another one.
    pub duplicates: u64,
    /// Confidences and scores outside their usual bounds.
    pub unusual: u64,
}

impl TickerQuality {
    /// Share of due days with a signal, between the first and last day of each series.
    pub fn coverage(&self) -> Option<f64> {
        let present = self.due_days - self.missing;
        (self.due_days > 0).then(|| present as f64 / self.due_days as f64)
    }

    fn add(&mut self, other: Self) {
        self.signals += other.signals;
        self.due_days += other.due_days;
        self.missing += other.missing;
        self.gaps += other.gaps;
        self.stale += other.stale;
        self.behind = self.behind.max(other.behind);
        self.articles += other.articles;
        self.duplicates += other.duplicates;
        self.unusual += other.unusual;
    }
}

impl Quality {
    /// Adds what was found in some series.
    fn add_series(&mut self, piece: Self) {
        self.series += piece.series;
        self.total.add(piece.total);
        for (ticker, counted) in piece.tickers {
            self.tickers.entry(ticker).or_default().add(counted);
        }
    }

    /// Adds findings that belong to no piece: rejected records, unknown fields and windows.
    fn push_rest(&self, rows: &mut RowBuilder) {
        for RejectReason { operation: source, reason, records, .. } in &self.rejects.reasons {
            let (source, count) = (Some(*source), Some(*records));
            let finding = Finding { source, count, what: Some(reason), ..Finding::of(FindingKind::Reject) };
            findings::push(rows, &finding);
        }
        for Drift { endpoint, field, count, .. } in &self.unknown.fields {
            let source = Some(endpoint.as_str());
            let finding = Finding { source, count: Some(*count), what: Some(field), ..Finding::of(FindingKind::Drift) };
            findings::push(rows, &finding);
        }
        if let Some(SplitDays { tickers, times: [_, other], .. }) = &self.split_days {
            let what = format!("dated at {other}");
            let finding = Finding { count: Some(*tickers), what: Some(&what), ..Finding::of(FindingKind::SplitDays) };
            findings::push(rows, &finding);
        }
        for rename in &self.renames {
            findings::push(rows, &rename.finding(&rename.key()));
        }
        if let Some(CutOff { articles, tickers, .. }) = self.cut_off {
            let what = format!("lists of {articles} articles");
            let finding = Finding { count: Some(tickers), what: Some(&what), ..Finding::of(FindingKind::CutOff) };
            findings::push(rows, &finding);
        }
        for window in &self.windows {
            let (days, share) = (window.days.to_string(), window.share());
            let finding = Finding {
                count: Some(window.with_news),
                value: share,
                what: Some(&days),
                ..Finding::of(FindingKind::Window)
            };
            findings::push(rows, &finding);
        }
    }
}

/// Audits a subject and delivers a row for each finding in the columns of [`schema`]. The answers to its requests, and
/// what [`of_rows`] found in a definition's dataset, are included.
pub(crate) fn quality(
    subject: &Subject,
    answers: Answers,
    rows: RowFindings,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Quality> {
    let Answers { rejects, unknown, cut_off, .. } = answers;
    let RowFindings { windows, split_days } = rows;
    let mut found = Quality { rejects, unknown, windows, cut_off, split_days, ..Quality::default() };
    let (calendar, ended) = &days_and_ends(subject)?;
    let mut queue = RowQueue::default();
    let mut candidates = Candidates::default();
    let mut take = |piece: (Quality, Option<RecordBatch>, Candidates)| {
        found.add_series(piece.0);
        candidates.merge(piece.2);
        queue.add(piece.1, &mut deliver)
    };
    let of_signals = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::of(&histories);
        let mut looking = QualityAudit::new();
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            looking.signals(subject, history, &observed, calendar);
            ended.look(subject, history, &observed, &mut looking.candidates);
        }
        looking.finish()
    };
    in_order(|| subject.view().observations(Table::Signals), of_signals, &mut take)?;
    let of_articles = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::of(&histories);
        let mut looking = QualityAudit::new();
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            looking.articles(subject, history, &observed);
        }
        looking.finish()
    };
    in_order(|| subject.view().observations(Table::Articles), of_articles, &mut take)?;
    found.renames = candidates.compare(subject)?;
    let mut rows = RowBuilder::new(schema());
    found.push_rest(&mut rows);
    queue.add(rows.finish()?, &mut deliver)?;
    queue.flush(deliver)?;
    Ok(found)
}

/// The days on which signals are due, and the tickers that have ended.
fn days_and_ends(subject: &Subject) -> Result<(TradingDays, Ended)> {
    let (mut presence, mut ends) = (Presence::default(), Ends::default());
    let of_piece = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::of(&histories);
        let (mut presence, mut ends) = (Presence::default(), Ends::default());
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
            presence.add(&SeriesDays::of(subject, history, &observed));
            ends.add(subject, history, &observed);
        }
        Ok((presence, ends))
    };
    let merge = |piece: (Presence, Ends)| {
        presence.merge(piece.0);
        ends.merge(piece.1);
        Ok(())
    };
    in_order(|| subject.view().observations(Table::Signals), of_piece, merge)?;
    Ok((TradingDays::of(presence, subject), ends.early_ends()))
}

/// An audit of some series in progress.
struct QualityAudit {
    found: Quality,
    rows: RowBuilder,
    /// What may be renames.
    candidates: Candidates,
}

impl QualityAudit {
    fn new() -> Self {
        Self { found: Quality::default(), rows: RowBuilder::new(schema()), candidates: Candidates::default() }
    }

    /// What was found, a row for each finding, and what may be renames.
    fn finish(self) -> Result<(Quality, Option<RecordBatch>, Candidates)> {
        Ok((self.found, self.rows.finish()?, self.candidates))
    }

    fn signals(
        &mut self,
        subject: &Subject,
        history: &History,
        observed: &ObservedColumns<'_>,
        calendar: &TradingDays,
    ) {
        let days = SeriesDays::of(subject, history, observed);
        if days.is_empty() {
            return;
        }
        let of_series = |kind| Finding::of_series(kind, &history.key);
        let mut counted = TickerQuality::default();
        for row in observed.known_rows(history) {
            let Some(date) = observed.written_date(row).filter(|_| subject.has_date(observed, row)) else { continue };
            counted.signals += 1;
            if let Some(confidence) = observed.value(row).number.filter(|value| !(0.0..=1.0).contains(value)) {
                counted.unusual += 1;
                let source = observed.source(row).map(Endpoint::as_str);
                let of_series = of_series(FindingKind::Unusual);
                let finding = Finding { date: Some(date), value: Some(confidence), source, ..of_series };
                findings::push(&mut self.rows, &finding);
            }
        }
        let DueDays { due, gaps, behind } = calendar.due(&days);
        counted.due_days = due;
        for gap in gaps {
            counted.gaps += 1;
            counted.missing += gap.days;
            findings::push(&mut self.rows, &of_series(FindingKind::Gap).over(gap));
        }
        if let Some(behind) = behind {
            counted.stale = 1;
            counted.behind = behind.days;
            findings::push(&mut self.rows, &of_series(FindingKind::Stale).over(behind));
        }
        self.found.series += 1;
        self.add(&history.key.ticker, counted);
    }

    fn articles(&mut self, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
        let mut counted = TickerQuality::default();
        let texts = observed.texts.expect("these are articles");
        let article = |row: usize| (observed.dates.value(row), texts.map(|texts| texts.value(row)));
        let known: Vec<usize> = observed.known_rows(history).filter(|&row| subject.has_date(observed, row)).collect();
        // Articles are sorted by date, title and link.
        for same in known.chunk_by(|&one, &other| article(one) == article(other)) {
            let (date, [title, _]) = article(same[0]);
            counted.articles += same.len() as u64;
            let of_article =
                |kind| Finding { date: Some(date), what: Some(title), ..Finding::of_series(kind, &history.key) };
            if same.len() > 1 {
                counted.duplicates += same.len() as u64 - 1;
                findings::push(
                    &mut self.rows,
                    &Finding { count: Some(same.len() as u64), ..of_article(FindingKind::Duplicate) },
                );
            }
            for score in same.iter().filter_map(|&row| observed.value(row).number) {
                if !(-1.0..=1.0).contains(&score) {
                    counted.unusual += 1;
                    findings::push(&mut self.rows, &Finding { value: Some(score), ..of_article(FindingKind::Unusual) });
                }
            }
        }
        self.add(&history.key.ticker, counted);
    }

    fn add(&mut self, ticker: &Ticker, counted: TickerQuality) {
        self.found.total.add(counted);
        self.found.tickers.entry(ticker.clone()).or_default().add(counted);
    }
}

/// The day of a naive timestamp, counted from 1970.
fn day(micros: i64) -> i64 {
    micros.div_euclid(MICROS_PER_DAY)
}
