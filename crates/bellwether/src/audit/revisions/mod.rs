//! How the vendor changed its past.
//!
//! A change counts if it was observed after one instant and at or before another, so that the view as of the first
//! differs from the view as of the second. There are three kinds:
//!
//! - *added late*: a cell that earlier answers of its series covered but did not have, or one that comes back. The
//!   first listing of a series adds nothing late; nor does a new day at its newest end, or an article of a day that was
//!   not over when the previous answers ended with it.
//! - *revised*: another signal, confidence or score. An offset, the position of an article in its list and unknown
//!   fields are not values and do not count.
//! - *withdrawn*: a cell that is no longer listed though the answer covers its date.
//!
//! A series is the same whichever operation gives it. Only signals and article scores are compared; a summary describes
//! the day of its request and has no past. The archive is read a few whole tickers at a time, or a few dates of one, so
//! memory does not grow with its size; several pieces are counted at once.

mod rows;
mod since;
mod tally;
mod walk;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

pub use rows::schema;
pub(crate) use since::{RewriteCount, RewrittenSince};
pub use tally::{AgeGroup, CellCounts, Month, Revisions, Rewrites};

use super::observed::ObservedColumns;
use super::row_builder::{RowBuilder, RowQueue};
use super::subject::Subject;
use crate::archive::{FoldedObservations, Histories, History, StoredObservations};
use crate::error::Result;
use crate::process::in_order::in_order;
use crate::tables::{SeriesKey, Table};
pub(super) use walk::CoveredDates;
use walk::{ChangeWindow, Rewrite, SeriesTally, Walk};

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Added after its date had been covered without it.
    AddedLate,
    /// Changed to another value.
    Revised,
    /// No longer listed.
    Withdrawn,
}

impl ChangeKind {
    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddedLate => "added_late",
            Self::Revised => "revised",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Counts changes after an instant (all of them if it is `None`) up to the instant of the subject, and delivers a row
/// for each in the columns of [`schema`].
pub(crate) fn revisions(
    subject: &Subject,
    from: Option<DateTime<Utc>>,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    let mut counting = Counting::of(subject, from);
    let mut queue = RowQueue::default();
    let counter = counting.counter();
    let count = |folded: &FoldedObservations| {
        let mut rows = RowBuilder::new(schema());
        let counted = counter.count(&folded.histories()?, |change| rows::push(&mut rows, change));
        Ok((counted, rows.finish()?))
    };
    for table in [Table::Signals, Table::Articles] {
        counting.each(table, count, |rows| queue.add(rows, &mut deliver))?;
    }
    queue.flush(deliver)?;
    Ok(counting.finish().0)
}

/// Counts changes in histories that are being read for another purpose.
#[derive(Debug)]
pub(crate) struct Counting<'a> {
    subject: &'a Subject,
    found: Revisions,
    /// An instant, and what was rewritten since.
    since: Option<(i64, RewrittenSince)>,
}

impl<'a> Counting<'a> {
    /// Starts counting changes after an instant (all of them if it is `None`) up to the instant of the subject.
    pub(crate) fn of(subject: &'a Subject, from: Option<DateTime<Utc>>) -> Self {
        let [signals, articles] = [Rewrites::default(), Rewrites::default()];
        Self { subject, found: Revisions { from, until: subject.view().as_of(), signals, articles }, since: None }
    }

    /// Also counts what was rewritten since another instant.
    pub(crate) fn since(self, instant: DateTime<Utc>) -> Self {
        Self { since: Some((instant.timestamp_micros(), RewrittenSince::default())), ..self }
    }

    /// Counts histories of signals, which come in order.
    pub(crate) fn signals(&mut self, histories: &Histories) {
        let counted = self.counter().count(histories, |_| {});
        self.add(counted);
    }

    /// Counts the histories of signals.
    pub(crate) fn signals_of_archive(&mut self) -> Result<()> {
        let counter = self.counter();
        self.each(Table::Signals, |folded| Ok((counter.count(&folded.histories()?, |_| {}), ())), Ok)
    }

    /// Counts the histories of articles, and passes on the latest known ones, which come in order.
    pub(crate) fn articles(&mut self, take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let counter = self.counter();
        let count =
            |folded: &FoldedObservations| Ok((counter.count(&folded.histories()?, |_| {}), folded.latest_articles()?));
        self.each(Table::Articles, count, take)
    }

    /// Counts the histories of a table several pieces at once, and takes what else was made of each piece, in order.
    fn each<R: Send>(
        &mut self,
        table: Table,
        count: impl Fn(&FoldedObservations) -> Result<(Vec<SeriesCount>, R)> + Sync,
        mut take: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let view = self.subject.view();
        in_order(
            || view.whole_observations(table),
            |piece: StoredObservations| count(&piece.fold()?),
            |(counted, more)| {
                self.add(counted);
                take(more)
            },
        )
    }

    fn counter(&self) -> Counter<'a> {
        let Self { subject, found, since } = self;
        let span = ChangeWindow {
            from: found.from.map(|from| from.timestamp_micros()),
            until: found.until.timestamp_micros(),
        };
        Counter { subject, span, since: since.as_ref().map(|(instant, _)| *instant) }
    }

    /// Adds counts of series, which come in order.
    fn add(&mut self, counted: Vec<SeriesCount>) {
        for SeriesCount { key, tally } in counted {
            let rewrites = match key.table {
                Some(Table::Signals) => &mut self.found.signals,
                _ => &mut self.found.articles,
            };
            if let Some((_, rewritten)) = &mut self.since {
                rewritten.add(&key, tally.since);
            }
            rewrites.add(&key, self.subject.sector(&key.ticker), tally);
        }
    }

    /// The totals, and what was rewritten since the other instant.
    pub(crate) fn finish(self) -> (Revisions, Option<RewrittenSince>) {
        (self.found, self.since.map(|(_, rewritten)| rewritten))
    }
}

/// The counts of a series.
struct SeriesCount {
    key: SeriesKey,
    tally: SeriesTally,
}

/// What counts changes in histories.
#[derive(Clone, Copy)]
struct Counter<'a> {
    subject: &'a Subject,
    span: ChangeWindow,
    /// An instant; what was rewritten since is counted apart.
    since: Option<i64>,
}

impl Counter<'_> {
    /// Counts the changes of each series in scope, and reports each change.
    fn count(self, histories: &Histories, mut on_change: impl FnMut(CellChange<'_>)) -> Vec<SeriesCount> {
        let Self { subject, span, since } = self;
        let observed = ObservedColumns::of(histories);
        let walk = Walk { observed: &observed, span, since };
        let of_series = |History { key, groups }: &History| {
            let sector = subject.sector(&key.ticker);
            let report = |rewrite| on_change(CellChange { key, sector, observed: &observed, rewrite });
            let covered = CoveredDates::of(groups, &observed);
            let tally = walk.series(groups, &covered, |row| subject.has_date(&observed, row), report);
            SeriesCount { key: key.clone(), tally }
        };
        histories.series.iter().filter(|history| subject.has(&history.key)).map(of_series).collect()
    }
}

/// A change of a cell, with its series.
struct CellChange<'a> {
    key: &'a SeriesKey,
    sector: &'a str,
    observed: &'a ObservedColumns<'a>,
    rewrite: Rewrite,
}

impl Rewrites {
    fn add(&mut self, key: &SeriesKey, sector: &str, tally: SeriesTally) {
        let SeriesTally { total, by_age, by_month, .. } = tally;
        if total.known == 0 {
            return;
        }
        self.total += total;
        *self.by_ticker.entry(key.ticker.clone()).or_default() += total;
        *self.by_sector.entry(sector.to_owned()).or_default() += total;
        if let (Some(period), Some(regime)) = (key.period, key.regime) {
            *self.by_period.entry(period).or_default() += total;
            *self.by_regime.entry(regime).or_default() += total;
        }
        for (age, tally) in AgeGroup::ALL.into_iter().zip(by_age).filter(|(_, tally)| tally.known > 0) {
            *self.by_age.entry(age).or_default() += tally;
        }
        for (month, tally) in by_month {
            *self.by_month.entry(month).or_default() += tally;
        }
    }
}
