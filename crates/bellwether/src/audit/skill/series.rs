//! The mean rank correlation of some dates whose horizons overlap: by lag, by year, by sector, and by the number of news.

use bellwether_statistics::{MeanTest, OverlappingSeries, RankedCases, Windows};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::DateCorrelation;
use super::horizon::EntrySpan;
use super::measures::{LEAST_NAMES, mean};
use crate::plan::Days;

/// The mean rank correlation of some dates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesMeasure {
    /// Dates with a rank correlation.
    pub dates: u64,
    /// Names per date, on average.
    pub names: Option<f64>,
    /// The mean rank correlation.
    pub correlation: Option<f64>,
    /// The number of dates in the window of a return, on average.
    pub horizon: u64,
    /// The whole windows that do not overlap, by the closes at which signals were entered.
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

/// The correlation among the names with as many articles in a window, as far as was known when they were entered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NewsMeasure {
    /// The window, as in the name of its columns.
    #[schemars(with = "String")]
    pub window: Days,
    /// The number of articles: `0`, `1-2`, `3-9`, `10+`, or `unknown`.
    pub articles: &'static str,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// Correlations by date, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct CorrelationSeries {
    dates: Vec<SeriesPoint>,
}

#[derive(Clone, Copy, Debug)]
struct SeriesPoint {
    entries: EntrySpan,
    names: u64,
    correlation: f64,
}

impl CorrelationSeries {
    /// Adds the names of a date; too few of them, or some without a correlation, say nothing.
    pub(super) fn add(&mut self, entries: EntrySpan, of: RankedCases) {
        if of.cases >= LEAST_NAMES as u64
            && let Some(correlation) = of.rank_correlation
        {
            self.dates.push(SeriesPoint { entries, names: of.cases, correlation });
        }
    }

    /// Adds a date.
    pub(super) fn push(&mut self, entries: EntrySpan, DateCorrelation { names, correlation, .. }: DateCorrelation) {
        self.dates.extend(correlation.map(|correlation| SeriesPoint { entries, names, correlation }));
    }

    /// The measure, by a function that gives the windows of dates.
    pub(super) fn measure(
        &self,
        windows: impl FnOnce(&mut dyn Iterator<Item = EntrySpan>) -> Windows,
    ) -> SeriesMeasure {
        let windows = windows(&mut self.dates.iter().map(|date| date.entries));
        let (horizon, whole) = (windows.horizon().get() as u64, windows.whole() as u64);
        let by_date = self.dates.iter().map(|date| date.correlation);
        let series = OverlappingSeries::in_windows(by_date.clone(), windows).expect("correlations are finite");
        SeriesMeasure {
            dates: self.dates.len() as u64,
            names: mean(self.dates.iter().map(|date| date.names as f64)),
            correlation: mean(by_date),
            horizon,
            windows: whole,
            test: series.cosine_test().ok(),
        }
    }
}
