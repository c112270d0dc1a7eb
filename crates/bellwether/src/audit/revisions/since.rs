//! What was rewritten since an instant, by series: what the checks of a run look at.

use std::ops::AddAssign;

use crate::tables::{SeriesKey, Table};

/// Cells that were known at an instant, and those among them that were revised or withdrawn since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RewriteCount {
    pub(crate) known: u64,
    pub(crate) rewritten: u64,
}

impl AddAssign for RewriteCount {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.rewritten += other.rewritten;
    }
}

/// What was rewritten since an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RewrittenSince {
    pub(crate) signals: RewriteCount,
    pub(crate) articles: RewriteCount,
    /// The series with rewritten cells, in order.
    pub(crate) series: Vec<(SeriesKey, RewriteCount)>,
}

impl RewrittenSince {
    /// Adds some cells of a series, which come in order.
    pub(super) fn add(&mut self, key: &SeriesKey, count: RewriteCount) {
        let total = if key.table == Some(Table::Signals) { &mut self.signals } else { &mut self.articles };
        *total += count;
        match self.series.last_mut() {
            Some((last, known)) if last == key => *known += count,
            _ => {
                // A giant ticker comes in pieces, so the last series is dropped only when the next one comes.
                self.drop_unchanged();
                self.series.push((key.clone(), count));
            }
        }
    }

    /// It, once all series were added.
    pub(super) fn finish(mut self) -> Self {
        self.drop_unchanged();
        self
    }

    fn drop_unchanged(&mut self) {
        self.series.pop_if(|(_, count)| count.rewritten == 0);
    }
}
