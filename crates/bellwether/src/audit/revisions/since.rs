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
    /// Adds the cells of a series, which come in order.
    pub(super) fn add(&mut self, key: &SeriesKey, count: RewriteCount) {
        let total = if key.table == Some(Table::Signals) { &mut self.signals } else { &mut self.articles };
        *total += count;
        if count.rewritten > 0 {
            self.series.push((key.clone(), count));
        }
    }
}
