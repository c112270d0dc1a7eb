//! What did the vendor do to its past?
//!
//! A change counts when it was observed after one instant, and up to and with another: what was known as of the first
//! then differs from what was known as of the second. It is one of three:
//!
//! - *added late*: a cell that earlier answers of its series covered and did not have, or that comes back. The first
//!   listing of a series adds nothing late, and neither does a new day at its newest end, nor an article of a day that was
//!   not over when the answers before ended with it.
//! - *revised*: another signal or confidence, or another score. What was said of an offset, of the place of an article in
//!   its list, or of fields that nobody knows is no value of the past.
//! - *withdrawn*: a cell that is no longer there, though the answer covers its date.
//!
//! Each series counts by itself: the same history from two operations is two. Signals and scores of articles are looked
//! at; a summary is of the day on which it was asked for, and has no past. The archive is read some whole tickers at a
//! time, so memory does not follow its size.

mod rows;
mod tally;
mod walk;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

pub use rows::schema;
pub use tally::{Age, Month, Revisions, Rewrites, Tally};

use super::gathered::Gathered;
use super::observed::Observed;
use super::subject::Subject;
use crate::archive::{Histories, History};
use crate::error::Result;
use crate::tables::{SeriesKey, Table};
use walk::{Rewrite, SeriesTally, Span, Walk};

/// What became of a cell of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was added when its date had been covered without it.
    AddedLate,
    /// Something else is said of it.
    Revised,
    /// It is no longer there.
    Withdrawn,
}

impl Kind {
    /// Its spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddedLate => "added_late",
            Self::Revised => "revised",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Counts what changed after an instant, or at all, up to the one that the subject is seen from, and delivers a row for
/// each change in the columns of [`schema`].
///
/// # Errors
///
/// When a run cannot be read, and what `deliver` fails with.
pub fn revisions(
    subject: &Subject,
    from: Option<DateTime<Utc>>,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    let mut counting = Counting::of(subject, from);
    let mut rows = Gathered::new(schema());
    for table in [Table::Signals, Table::Articles] {
        for histories in subject.view().histories(table)? {
            counting.count_and_tell(&histories?, |told| rows::push(&mut rows, told));
            rows.relieve(&mut deliver)?;
        }
    }
    rows.flush(deliver)?;
    Ok(counting.finish())
}

/// Counts what changed while histories pass by, which somebody reads.
#[derive(Debug)]
pub struct Counting<'a> {
    subject: &'a Subject,
    found: Revisions,
}

impl<'a> Counting<'a> {
    /// Begins to count what changed after an instant, or at all, up to the one that the subject is seen from.
    pub fn of(subject: &'a Subject, from: Option<DateTime<Utc>>) -> Self {
        let [signals, articles] = [Rewrites::default(), Rewrites::default()];
        Self { subject, found: Revisions { from, until: subject.view().as_of(), signals, articles } }
    }

    /// Counts histories of signals or of articles, which come in order; others are not looked at.
    pub fn count(&mut self, histories: &Histories) {
        self.count_and_tell(histories, |_| {});
    }

    fn count_and_tell(&mut self, histories: &Histories, mut tell: impl FnMut(Told<'_>)) {
        let Self { subject, found } = self;
        let span = Span { from: found.from.map(|from| from.timestamp_micros()), until: found.until.timestamp_micros() };
        let rewrites = match histories.table {
            Table::Signals => &mut found.signals,
            Table::Articles => &mut found.articles,
            Table::Summaries | Table::SentimentHistory => return,
        };
        let observed = Observed::of(histories);
        let walk = Walk { observed: &observed, span };
        for History { key, cells } in histories.series.iter().filter(|history| subject.has(&history.key)) {
            let sector = subject.sector(&key.ticker);
            let tell = |rewrite| tell(Told { key, sector, observed: &observed, rewrite });
            let tally = walk.series(cells, |date| subject.has_date(date), tell);
            rewrites.add(key, sector, tally);
        }
    }

    /// What was found.
    pub fn finish(self) -> Revisions {
        self.found
    }
}

/// A change of a cell of some series.
struct Told<'a> {
    key: &'a SeriesKey,
    sector: &'a str,
    observed: &'a Observed<'a>,
    rewrite: Rewrite,
}

impl Rewrites {
    fn add(&mut self, key: &SeriesKey, sector: &str, tally: SeriesTally) {
        let SeriesTally { total, by_age, by_month } = tally;
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
        for (age, tally) in Age::ALL.into_iter().zip(by_age).filter(|(_, tally)| tally.known > 0) {
            *self.by_age.entry(age).or_default() += tally;
        }
        for (month, tally) in by_month {
            *self.by_month.entry(month).or_default() += tally;
        }
    }
}
