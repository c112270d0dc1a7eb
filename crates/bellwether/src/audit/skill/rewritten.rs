//! Matched, altered, removed and added cells, and what each kind does to the measure: the table of "Rewriting History".
//!
//! The base are the cells as first published, without those that were added late. Each kind of change is then applied
//! alone: altered cells take their latest value, removed cells go, added cells come. All three together are today.

use bellwether_statistics::Order;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::measures::{DatedCell, LEAST_NAMES};

/// The cells of a date, the order of their returns, and their correlation as they stand today.
pub(super) struct Variants<'a> {
    pub(super) cells: &'a [DatedCell],
    pub(super) returns: &'a Order,
    pub(super) today: Option<f64>,
}

/// The mean of correlations by date.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanCorrelation {
    sum: f64,
    dates: u64,
}

impl MeanCorrelation {
    fn add(&mut self, correlation: Option<f64>) {
        if let Some(correlation) = correlation {
            self.sum += correlation;
            self.dates += 1;
        }
    }

    /// The mean; none without dates.
    pub fn mean(self) -> Option<f64> {
        (self.dates > 0).then(|| self.sum / self.dates as f64)
    }
}

impl Serialize for MeanCorrelation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.mean().serialize(serializer)
    }
}

/// Rewritten cells, and the mean correlation with each kind of change applied alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rewritten {
    /// Cells with the value that they were published with.
    pub matched: u64,
    /// Cells with another value.
    pub altered: u64,
    /// Those of them with another direction.
    pub turned: u64,
    /// Cells that are no longer listed.
    pub removed: u64,
    /// Cells that were added after earlier answers had covered their date without them.
    pub added: u64,
    /// The correlation as first published, without what was added late.
    #[schemars(with = "Option<f64>")]
    pub base: MeanCorrelation,
    /// With the latest values of altered cells.
    #[schemars(with = "Option<f64>")]
    pub with_altered: MeanCorrelation,
    /// Without removed cells.
    #[schemars(with = "Option<f64>")]
    pub without_removed: MeanCorrelation,
    /// With added cells.
    #[schemars(with = "Option<f64>")]
    pub with_added: MeanCorrelation,
    /// With all of it.
    #[schemars(with = "Option<f64>")]
    pub today: MeanCorrelation,
}

impl Rewritten {
    /// Adds a date.
    pub(super) fn add(&mut self, date: &Variants<'_>) {
        let (mut has_altered, mut has_removed, mut has_added) = (false, false, false);
        for cell in date.cells {
            let [is_late, is_altered, is_removed] =
                [cell.cell.is_late(), cell.cell.is_altered(), cell.cell.is_withdrawn()];
            has_altered |= is_altered;
            has_removed |= is_removed;
            has_added |= is_late;
            self.added += u64::from(is_late && !is_removed);
            self.removed += u64::from(!is_late && is_removed);
            self.altered += u64::from(!is_late && is_altered);
            self.turned +=
                u64::from(!is_late && cell.change.is_some_and(|change| change.is_sell != cell.cell.is_sell()));
            self.matched += u64::from(!is_late && !is_altered && !is_removed);
        }
        let first = |cell: &DatedCell| cell.cell.first;
        // Where nothing changed, today is what was published.
        let has_changed = has_altered || has_removed || has_added;
        let base = if has_changed { date.correlation(|cell| !cell.cell.is_late(), first) } else { date.today };
        let or_base = |has: bool, other: &dyn Fn() -> Option<f64>| if has { other() } else { base };
        self.base.add(base);
        self.with_altered
            .add(or_base(has_altered, &|| date.correlation(|cell| !cell.cell.is_late(), |cell| cell.latest().0)));
        self.without_removed.add(or_base(has_removed, &|| {
            date.correlation(|cell| !cell.cell.is_late() && !cell.cell.is_withdrawn(), first)
        }));
        self.with_added.add(or_base(has_added, &|| date.correlation(|_| true, first)));
        self.today.add(date.today);
    }
}

impl Variants<'_> {
    fn correlation(
        &self,
        is_taken: impl Fn(&DatedCell) -> bool,
        confidence: impl Fn(&DatedCell) -> f64,
    ) -> Option<f64> {
        let confidence = |cell: &DatedCell| is_taken(cell).then(|| confidence(cell));
        let confidences = Order::of(self.cells.iter().map(confidence));
        let is_enough = confidences.count() >= LEAST_NAMES;
        is_enough.then(|| confidences.correlation(self.returns).rank_correlation).flatten()
    }
}
