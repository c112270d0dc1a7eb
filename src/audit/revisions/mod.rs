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
use crate::archive::Histories;
use crate::error::Result;
use crate::tables::{SeriesKey, Table};
use walk::{SeriesTally, Span, Walk};

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
    let until = subject.view().as_of();
    let span = Span { from: from.map(|from| from.timestamp_micros()), until: until.timestamp_micros() };
    let mut rows = Gathered::new(schema());
    let mut of_table = |table| -> Result<Rewrites> {
        let mut rewrites = Rewrites::default();
        for histories in subject.view().histories(table)? {
            rewrites.count(subject, span, &histories?, &mut rows);
            rows.relieve(&mut deliver)?;
        }
        Ok(rewrites)
    };
    let (signals, articles) = (of_table(Table::Signals)?, of_table(Table::Articles)?);
    rows.flush(deliver)?;
    Ok(Revisions { from, until, signals, articles })
}

impl Rewrites {
    fn count(&mut self, subject: &Subject, span: Span, histories: &Histories, rows: &mut Gathered) {
        let observed = Observed::of(histories);
        let walk = Walk { observed: &observed, span };
        for history in histories.series.iter().filter(|history| subject.has(&history.key)) {
            let sector = subject.sector(&history.key.ticker);
            let tally = walk.series(
                history,
                |date| subject.has_date(date),
                |rewrite| rows::push(rows, &history.key, sector, &observed, &rewrite),
            );
            self.add(&history.key, sector, tally);
        }
    }

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
