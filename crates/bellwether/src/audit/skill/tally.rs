//! The measure of a pair in a state, while dates are added, and over all of them.

use std::num::NonZeroUsize;

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::counts::Share;
use bellwether_statistics::{OverlappingSeries, rank_correlation};
use chrono::Datelike;

use super::answer::{ConfidenceMeasure, DateMeasure, Measure, Reliability, Side, SideMeasure, State};
use super::cells::Flips;
use super::decay::Decay;
use super::measures::{Columns, DateContext, LEAST_NAMES, Measuring, mean};
use super::prices::{Day, date};
use super::sectors::Sectors;
use super::series::{LagMeasure, SectorMeasure, Series, YearMeasure};
use crate::interface::Period;

/// The most signals behind a consistency band, which is drawn from hundreds of resamples.
const MOST_OF_BAND: usize = 5_000;

/// The measure of a state while dates are added.
pub(super) struct Tally {
    state: State,
    dates: Vec<DateMeasure>,
    few: u64,
    /// Confidences, and whether their signals were hits.
    confidences: Vec<f64>,
    hits: Vec<bool>,
    decay: Decay,
    by_sector: Vec<Series>,
}

impl Tally {
    pub(super) fn of(state: State, sectors: &Sectors) -> Self {
        let (dates, confidences, hits, decay) = Default::default();
        Self { state, dates, few: 0, confidences, hits, decay, by_sector: vec![Series::default(); sectors.names.len()] }
    }

    /// Adds a date, and returns its correlation.
    pub(super) fn add(&mut self, columns: &Columns, context: &DateContext<'_>) -> Option<f64> {
        let DateContext { day, returns, sectors } = *context;
        match columns.returns.len() {
            0 => None,
            1..LEAST_NAMES => {
                self.few += 1;
                None
            }
            _ => {
                let measure = columns.measure(day);
                self.decay.add(&measure, &columns.confidences, &columns.places, returns);
                let of_sectors = sectors.correlations(&columns.sectors, &columns.confidences, &columns.returns);
                self.by_sector.iter_mut().zip(of_sectors).for_each(|(series, (names, of))| series.add(day, names, of));
                let rows = 0..columns.returns.len();
                self.confidences.extend(rows.clone().map(|row| columns.direction(row) * columns.confidences[row]));
                self.hits.extend(rows.map(|row| columns.is_hit(row)));
                let correlation = measure.correlation;
                self.dates.push(measure);
                correlation
            }
        }
    }

    /// Adds the difference of the correlations of a date on the same cells.
    pub(super) fn add_difference(&mut self, before: &Columns, after: &Columns, context: &DateContext<'_>) {
        let DateContext { day, sectors, .. } = *context;
        let names = before.returns.len();
        if names == 0 {
            return;
        }
        if names < LEAST_NAMES {
            self.few += 1;
            return;
        }
        let [first, latest] = [before, after].map(|columns| rank_correlation(&columns.confidences, &columns.returns));
        let correlation = first.zip(latest).map(|(first, latest)| latest - first);
        let of_sectors = |columns: &Columns| {
            sectors.correlations(&columns.sectors, &columns.confidences, &columns.returns).into_iter()
        };
        for ((series, before), after) in self.by_sector.iter_mut().zip(of_sectors(before)).zip(of_sectors(after)) {
            let ((names, before), (_, after)) = (before, after);
            series.add(day, names, before.zip(after).map(|(before, after)| after - before));
        }
        let [buys, sells, confident] = [Side::default(); 3];
        let (names, mean_return) = (names as u64, before.mean_return());
        self.dates.push(DateMeasure { day, names, correlation, mean_return, buys, sells, confident, spread: None });
    }

    pub(super) fn finish(self, measuring: &Measuring<'_>, period: Period, flips: Flips) -> Measure {
        let groups = self.groups(measuring, period);
        let Self { state, ref dates, few, .. } = self;
        let with_value: Vec<&DateMeasure> = dates.iter().filter(|date| date.correlation.is_some()).collect();
        let horizon = measuring.overlap(period, 0, &mut with_value.iter().map(|date| date.day));
        let by_date = with_value.iter().filter_map(|date| date.correlation);
        let overlap = NonZeroUsize::new(horizon).unwrap_or(NonZeroUsize::MIN);
        let series = OverlappingSeries::new(by_date.clone(), overlap).expect("correlations are finite");
        let sides = |side: fn(&DateMeasure) -> Side| SideMeasure::of(dates.iter().map(side), overlap);
        let positive = by_date.clone().filter(|correlation| *correlation > 0.0).count();
        let measured = with_value.len();
        let of_all = |sum: f64| (measured > 0).then(|| sum / measured as f64);
        let test = series.cosine_test();
        Measure {
            state,
            dates: measured as u64,
            constant_dates: (dates.len() - measured) as u64,
            thin_dates: few,
            names: of_all(with_value.iter().map(|date| date.names as f64).sum()),
            correlation: of_all(by_date.sum()),
            positive: of_all(positive as f64),
            horizon: horizon as u64,
            windows: series.windows() as u64,
            test: test.ok(),
            disjoint: series.disjoint_test().ok(),
            refusal: test.err(),
            p_holm: None,
            p_benjamini_hochberg: None,
            buys: sides(|date| date.buys),
            sells: sides(|date| date.sells),
            confident: sides(|date| date.confident),
            confidence: self.confidence(horizon),
            spread: mean(dates.iter().filter_map(|date| date.spread)),
            flips: flips.share(),
            by_lag: groups.by_lag,
            by_year: groups.by_year,
            by_sector: groups.by_sector,
            by_date: self.dates,
        }
    }

    /// The correlations by lag, year and sector.
    fn groups(&self, measuring: &Measuring<'_>, period: Period) -> Groups {
        let measure = |series: &Series, lag: usize| series.measure(|days| measuring.overlap(period, lag, days));
        let lags = if self.state == State::Difference { 0 } else { self.decay.0.len() };
        let by_lag = self.decay.0.iter().take(lags).enumerate();
        let by_lag = by_lag.map(|(lag, series)| LagMeasure { lag: lag as u64, measure: measure(series, lag) });
        let years = self.dates.chunk_by(|one, next| year(one.day) == year(next.day));
        let of_year = |dates: &[DateMeasure]| {
            let mut series = Series::default();
            dates.iter().for_each(|date| series.add(date.day, date.names, date.correlation));
            YearMeasure { year: year(dates[0].day), measure: measure(&series, 0) }
        };
        let several = if self.by_sector.len() > 1 { &self.by_sector[..] } else { &[] };
        let sectors = several.iter().zip(&measuring.sectors.names);
        let by_sector =
            sectors.map(|(series, sector)| SectorMeasure { sector: sector.clone(), measure: measure(series, 0) });
        Groups {
            by_lag: by_lag.collect(),
            by_year: years.map(of_year).collect(),
            by_sector: by_sector.filter(|sector| sector.measure.dates > 0).collect(),
        }
    }

    /// Confidences as probabilities, for returns that overlap with those of so many dates.
    fn confidence(&self, horizon: usize) -> Option<ConfidenceMeasure> {
        let all = Calibration::of(&self.confidences, &self.hits)?;
        // One date a horizon, or fewer.
        let signals = self.hits.len().div_ceil(horizon);
        let step = horizon * signals.div_ceil(MOST_OF_BAND);
        let (mut confidences, mut hits, mut begin, mut dates) = (Vec::new(), Vec::new(), 0, 0);
        for (place, date) in self.dates.iter().enumerate() {
            let rows = begin..begin + date.names as usize;
            begin = rows.end;
            if place % step == 0 {
                confidences.extend_from_slice(&self.confidences[rows.clone()]);
                hits.extend_from_slice(&self.hits[rows]);
                dates += 1;
            }
        }
        let apart = Calibration::of(&confidences, &hits)?;
        Some(ConfidenceMeasure::of(&all, Reliability::of(&apart, dates)))
    }
}

/// Correlations by group.
struct Groups {
    by_lag: Vec<LagMeasure>,
    by_year: Vec<YearMeasure>,
    by_sector: Vec<SectorMeasure>,
}

fn year(day: Day) -> i32 {
    date(day).year()
}

impl SideMeasure {
    /// The signals of a side on all dates, whose returns overlap with those of so many.
    fn of(sides: impl Iterator<Item = Side> + Clone, overlap: NonZeroUsize) -> Self {
        let share = |side: Side| Share { hits: side.hits, of: side.signals };
        let mut all = Share::default();
        sides.clone().for_each(|side| all += share(side));
        let series = OverlappingSeries::of_shares(sides.clone().map(share), 0.5, overlap);
        Self {
            side: Side { signals: all.of, hits: all.hits, excess: mean(sides.filter_map(|side| side.excess)) },
            hit_rate: all.rate(),
            test: series.and_then(|series| series.cosine_test().ok()),
        }
    }
}
