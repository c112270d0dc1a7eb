//! The rank correlation of a number with returns, date by date and over all dates. The confidences of signals and the
//! features of their news are measured here alike.

use std::rc::Rc;

use bellwether_statistics::{Order, OverlappingSeries, RankedCases, Windows};
use chrono::Datelike;

use super::answer::{DateCorrelation, RankMeasure, State};
use super::decay::{LAGS, LaggedReturns};
use super::horizon::EntrySpan;
use super::measures::{DatedCell, LEAST_NAMES, Measuring, mean};
use super::prices::{Day, date};
use super::sectors::Sectors;
use super::series::{CorrelationSeries, LagMeasure, SectorMeasure, YearMeasure};
use crate::interface::Period;

/// What the measures of a date have in common.
pub(super) struct DateContext {
    pub(super) day: Day,
    /// The entries of its signals, by state.
    pub(super) entries: [EntrySpan; 3],
    /// The order of the returns of its cells, by lag.
    pub(super) returns: [Rc<Order>; LAGS],
    /// The index of the sector of each cell.
    pub(super) sectors: Vec<usize>,
}

impl DateContext {
    pub(super) fn of(
        (day, entries): (Day, [EntrySpan; 3]),
        cells: &[DatedCell],
        returns: &mut LaggedReturns<'_>,
        measuring: &Measuring<'_>,
    ) -> Self {
        let sectors = cells.iter().map(|cell| measuring.sectors.index_of(cell.cell.ticker)).collect();
        Self { day, entries, returns: returns.of_date(cells), sectors }
    }
}

/// The rank correlations of a state while dates are added.
pub(super) struct RankTally {
    state: State,
    dates: Vec<DateCorrelation>,
    entries: Vec<EntrySpan>,
    few: u64,
    by_lag: [CorrelationSeries; LAGS],
    /// Empty if there is only one.
    by_sector: Vec<CorrelationSeries>,
}

impl RankTally {
    pub(super) fn of(state: State, sectors: &Sectors) -> Self {
        let several = if sectors.names.len() > 1 { sectors.names.len() } else { 0 };
        let by_lag = std::array::from_fn(|_| CorrelationSeries::default());
        Self {
            state,
            dates: Vec::new(),
            entries: Vec::new(),
            few: 0,
            by_lag,
            by_sector: vec![CorrelationSeries::default(); several],
        }
    }

    /// The state that is measured.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The dates with enough names.
    pub(super) fn dates(&self) -> &[DateCorrelation] {
        &self.dates
    }

    /// The windows of the returns of these dates.
    pub(super) fn windows(&self, measuring: &Measuring<'_>, period: Period) -> Windows {
        measuring.windows(period, 0, &mut self.entries.iter().copied())
    }

    /// Adds the numbers of the cells of a date; none if it has too few.
    pub(super) fn add(&mut self, values: &Order, date: &DateContext) -> Option<DateCorrelation> {
        if !self.has_enough(values.count()) {
            return None;
        }
        let entries = date.entries[self.state as usize];
        let of_lags = date.returns.each_ref().map(|returns| values.correlation(returns));
        self.by_lag.iter_mut().zip(of_lags).for_each(|(series, of)| series.add(entries, of));
        if !self.by_sector.is_empty() {
            let of_sectors = values.correlations(&date.returns[0], &date.sectors, self.by_sector.len());
            self.by_sector.iter_mut().zip(of_sectors).for_each(|(series, of)| series.add(entries, of));
        }
        Some(self.push((date.day, entries), values.count(), of_lags[0].rank_correlation))
    }

    /// Adds the difference that other numbers of the same cells make.
    pub(super) fn add_difference(
        &mut self,
        before: &Order,
        after: &Order,
        date: &DateContext,
    ) -> Option<DateCorrelation> {
        if !self.has_enough(before.count()) {
            return None;
        }
        let entries = date.entries[self.state as usize];
        let difference = |[before, after]: [Option<f64>; 2]| before.zip(after).map(|(before, after)| after - before);
        if !self.by_sector.is_empty() {
            let of_sectors =
                |values: &Order| values.correlations(&date.returns[0], &date.sectors, self.by_sector.len());
            let of_sectors = of_sectors(before).into_iter().zip(of_sectors(after));
            for (series, (before, after)) in self.by_sector.iter_mut().zip(of_sectors) {
                let rank_correlation = difference([before, after].map(|of| of.rank_correlation));
                series.add(entries, RankedCases { rank_correlation, ..before });
            }
        }
        let correlations = [before, after].map(|values| values.correlation(&date.returns[0]).rank_correlation);
        Some(self.push((date.day, entries), before.count(), difference(correlations)))
    }

    fn has_enough(&mut self, names: usize) -> bool {
        self.few += u64::from((1..LEAST_NAMES).contains(&names));
        names >= LEAST_NAMES
    }

    fn push(&mut self, (day, entries): (Day, EntrySpan), names: usize, correlation: Option<f64>) -> DateCorrelation {
        let of = DateCorrelation { day, names: names as u64, correlation };
        self.dates.push(of);
        self.entries.push(entries);
        of
    }

    pub(super) fn finish(self, measuring: &Measuring<'_>, period: Period) -> RankMeasure {
        let measure =
            |series: &CorrelationSeries, lag: usize| series.measure(|dates| measuring.windows(period, lag, dates));
        let lags = if self.state == State::Difference { 0 } else { LAGS };
        let by_lag = self.by_lag.iter().take(lags).enumerate();
        let by_lag = by_lag.map(|(lag, series)| LagMeasure { lag: lag as u64, measure: measure(series, lag) });
        let dates: Vec<(EntrySpan, DateCorrelation)> =
            self.entries.iter().copied().zip(self.dates.iter().copied()).collect();
        let years = dates.chunk_by(|(_, one), (_, next)| year(one.day) == year(next.day));
        let of_year = |dates: &[(EntrySpan, DateCorrelation)]| {
            let mut series = CorrelationSeries::default();
            dates.iter().for_each(|(entries, date)| series.push(*entries, *date));
            YearMeasure { year: year(dates[0].1.day), measure: measure(&series, 0) }
        };
        let sectors = self.by_sector.iter().zip(&measuring.sectors.names);
        let by_sector =
            sectors.map(|(series, sector)| SectorMeasure { sector: sector.clone(), measure: measure(series, 0) });
        let known = || dates.iter().filter(|(_, date)| date.correlation.is_some());
        let windows = measuring.windows(period, 0, &mut known().map(|(entries, _)| *entries));
        let (count, horizon, whole) = (known().count() as u64, windows.horizon().get() as u64, windows.whole() as u64);
        let correlations = known().filter_map(|(_, date)| date.correlation);
        let series = OverlappingSeries::in_windows(correlations.clone(), windows).expect("correlations are finite");
        let test = series.cosine_test();
        RankMeasure {
            dates: count,
            constant_dates: dates.len() as u64 - count,
            thin_dates: self.few,
            names: mean(known().map(|(_, date)| date.names as f64)),
            correlation: mean(correlations.clone()),
            positive: mean(correlations.map(|correlation| f64::from(u8::from(correlation > 0.0)))),
            horizon,
            windows: whole,
            test: test.ok(),
            disjoint: series.disjoint_test().ok(),
            refusal: test.err(),
            p_holm: None,
            p_benjamini_hochberg: None,
            by_lag: by_lag.collect(),
            by_year: years.map(of_year).collect(),
            by_sector: by_sector.filter(|sector| sector.measure.dates > 0).collect(),
            by_date: self.dates,
        }
    }
}

fn year(day: Day) -> i32 {
    date(day).year()
}
