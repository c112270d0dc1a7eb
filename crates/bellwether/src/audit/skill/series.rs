//! The mean rank correlation of some dates whose horizons overlap: by lag, by year and by sector.

use std::num::NonZeroUsize;

use bellwether_statistics::{MeanTest, OverlappingSeries};
use schemars::JsonSchema;
use serde::Serialize;

use super::measures::mean;
use super::prices::Day;

/// The mean rank correlation of some dates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesMeasure {
    /// Dates with a rank correlation.
    pub dates: u64,
    /// Names per date, on average.
    pub names: Option<f64>,
    /// The mean rank correlation.
    pub correlation: Option<f64>,
    /// The number of dates that a return overlaps with, that of its own date included.
    pub horizon: u64,
    /// The windows of a whole horizon that do not overlap.
    pub windows: u64,
    /// The test of the mean; none if it is refused.
    pub test: Option<MeanTest>,
}

/// The correlation with a return that begins some horizons after the entry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LagMeasure {
    /// The horizons between the entry and the beginning of the return: the windows of successive lags do not overlap.
    pub lag: u64,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// The correlation of the dates of a year.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct YearMeasure {
    /// The year.
    pub year: i32,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// The correlation among the names of a sector.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SectorMeasure {
    /// The sector; `-` if no history of a sector lists them.
    pub sector: String,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// Correlations by date, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    dates: Vec<DateCorrelation>,
}

#[derive(Clone, Copy, Debug)]
struct DateCorrelation {
    day: Day,
    names: u64,
    correlation: f64,
}

impl Series {
    /// Adds a date; one without a correlation says nothing.
    pub(super) fn add(&mut self, day: Day, names: u64, correlation: Option<f64>) {
        if let Some(correlation) = correlation {
            self.dates.push(DateCorrelation { day, names, correlation });
        }
    }

    /// The measure, by a function that says how many dates of some overlap.
    pub(super) fn measure(&self, overlap: impl FnOnce(&mut dyn Iterator<Item = Day>) -> usize) -> SeriesMeasure {
        let horizon = overlap(&mut self.dates.iter().map(|date| date.day));
        let overlap = NonZeroUsize::new(horizon).unwrap_or(NonZeroUsize::MIN);
        let by_date = self.dates.iter().map(|date| date.correlation);
        let series = OverlappingSeries::new(by_date.clone(), overlap).expect("correlations are finite");
        SeriesMeasure {
            dates: self.dates.len() as u64,
            names: mean(self.dates.iter().map(|date| date.names as f64)),
            correlation: mean(by_date),
            horizon: horizon as u64,
            windows: series.windows() as u64,
            test: series.cosine_test().ok(),
        }
    }
}
