//! The measures of a pair: by date as published, as it stands today, and both on the same cells.

use std::num::NonZeroUsize;

use bellwether_statistics::buckets::{bucket_means, quantile_buckets};
use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::counts::Share;
use bellwether_statistics::{OverlappingSeries, rank_correlation};

use super::answer::{ConfidenceMeasure, DateMeasure, Measure, Side, SideMeasure, State};
use super::cells::{Cell, Change, Flips, PairCells};
use super::hindsight::{DayVotes, HindsightCounts};
use super::horizon::{Exits, dated_entry, overlap};
use super::prices::{Day, Prices};
use super::rewritten::{Rewritten, Variants};
use crate::interface::{Period, Regime};

/// A date with fewer names is not measured.
pub(super) const LEAST_NAMES: usize = 5;

/// The number of quantiles.
const FIFTHS: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");

/// A pair as it was measured.
#[derive(Clone, Debug)]
pub(super) struct MeasuredPair {
    pub(super) measures: [Measure; 3],
    pub(super) rewritten: Rewritten,
    pub(super) hindsight: HindsightCounts,
}

/// A cell of a date with its return.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatedCell {
    pub(super) cell: Cell,
    pub(super) change: Option<Change>,
    pub(super) excess: f64,
    pub(super) value: f64,
    pub(super) exit: usize,
}

impl DatedCell {
    /// The signed confidence as it stands today, and whether it is a sell.
    pub(super) fn latest(&self) -> (f64, bool) {
        self.change.map_or((self.cell.first, self.cell.is_sell()), |change| (change.latest, change.is_sell))
    }
}

/// Measures pairs.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    pub(super) prices: &'a Prices,
    pub(super) exits: &'a Exits,
    pub(super) lag: u32,
}

/// The columns that a state is measured from.
#[derive(Default)]
struct Columns {
    confidences: Vec<f64>,
    are_sells: Vec<bool>,
    returns: Vec<f64>,
    excesses: Vec<f64>,
}

impl Columns {
    fn push(&mut self, (confidence, is_sell): (f64, bool), cell: &DatedCell) {
        self.confidences.push(confidence);
        self.are_sells.push(is_sell);
        self.returns.push(cell.value);
        self.excesses.push(cell.excess);
    }

    /// 1 for a buy, -1 for a sell.
    fn direction(&self, row: usize) -> f64 {
        if self.are_sells[row] { -1.0 } else { 1.0 }
    }

    /// Whether the return went the way of the signal, relative to the mean of the date.
    fn is_hit(&self, row: usize) -> bool {
        self.excesses[row] * self.direction(row) > 0.0
    }

    /// What they say of a date.
    fn measure(&self, day: Day, mean_return: f64) -> DateMeasure {
        let rows = |is_taken: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..self.returns.len()).filter(|row| is_taken(*row)).collect()
        };
        let side = |rows: &[usize], direction: &dyn Fn(usize) -> f64| {
            let excess = rows.iter().map(|row| self.excesses[*row] * direction(*row)).sum::<f64>() / rows.len() as f64;
            Side {
                signals: rows.len() as u64,
                hits: rows.iter().filter(|row| self.is_hit(**row)).count() as u64,
                excess: (!rows.is_empty()).then_some(excess),
            }
        };
        let sizes: Vec<f64> = self.confidences.iter().map(|confidence| confidence.abs()).collect();
        let fifths = quantile_buckets(&sizes, FIFTHS).expect("confidences are finite");
        DateMeasure {
            day,
            names: self.returns.len() as u64,
            correlation: rank_correlation(&self.confidences, &self.returns),
            mean_return,
            buys: side(&rows(&|row| !self.are_sells[row]), &|_| 1.0),
            sells: side(&rows(&|row| self.are_sells[row]), &|_| 1.0),
            confident: side(&rows(&|row| fifths[row] == FIFTHS.get() - 1), &|row| self.direction(row)),
            spread: self.spread(),
        }
    }

    /// The mean return of the names in the highest fifth less that of the lowest; none if either is empty.
    fn spread(&self) -> Option<f64> {
        let fifths = quantile_buckets(&self.confidences, FIFTHS)?;
        let means = bucket_means(&fifths, &self.returns, FIFTHS);
        Some(means[FIFTHS.get() - 1]? - means[0]?)
    }
}

impl Measuring<'_> {
    /// Measures the cells of a pair.
    pub(super) fn measure(&self, (period, _): (Period, Regime), mut of_pair: PairCells) -> MeasuredPair {
        of_pair.sort();
        let first_session = self.prices.sessions()[0];
        let mut tallies = State::ALL.map(|state| Tally { state, ..Tally::default() });
        let (mut rewritten, mut hindsight) = (Rewritten::default(), HindsightCounts::default());
        let mut changes = of_pair.changes.iter().copied();
        let mut of_date = Vec::new();
        for cells in of_pair.cells.chunk_by(|one, next| one.day == next.day) {
            let day = first_session + Day::from(cells[0].day);
            of_date.clear();
            of_date.extend(cells.iter().map(|cell| self.dated(period, *cell, &mut changes)));
            let mean = of_date.iter().map(|cell| cell.value).sum::<f64>() / of_date.len() as f64;
            of_date.iter_mut().for_each(|cell| cell.excess = cell.value - mean);
            let [mut published, mut today, mut before, mut after] = std::array::from_fn(|_| Columns::default());
            for cell in &of_date {
                let first = (cell.cell.first, cell.cell.is_sell());
                if cell.cell.is_live() {
                    published.push(first, cell);
                }
                if !cell.cell.is_withdrawn() {
                    today.push(cell.latest(), cell);
                }
                if cell.cell.is_live() && !cell.cell.is_withdrawn() {
                    before.push(first, cell);
                    after.push(cell.latest(), cell);
                }
            }
            tallies[0].add(published, day, mean);
            let correlation = tallies[1].add(today, day, mean);
            tallies[2].add_difference(&before, &after, day, mean);
            rewritten.add(&Variants { cells: &of_date, today: correlation });
            let sessions = self.prices.sessions();
            hindsight.add(day, DayVotes::of(&of_date, |session| sessions[session]));
        }
        let flips = [of_pair.flips_published, of_pair.flips_today, Flips::default()];
        let mut flips = flips.into_iter();
        let measures = tallies.map(|tally| tally.finish(self, period, flips.next().unwrap_or_default()));
        MeasuredPair { measures, rewritten, hindsight }
    }

    fn dated(&self, period: Period, cell: Cell, changes: &mut impl Iterator<Item = Change>) -> DatedCell {
        let entry = usize::from(cell.entry);
        let exit = self.exits.exit(period, entry).expect("a cell has a complete return");
        let value = self.prices.between(cell.ticker, entry, exit).expect("a cell has a complete return");
        // Cells and changes are in the same order.
        let change = if cell.is_altered() { changes.next() } else { None };
        DatedCell { cell, change, excess: 0.0, value, exit }
    }

    /// The most dates whose positions overlap.
    fn overlap(&self, period: Period, days: impl Iterator<Item = Day>) -> usize {
        let sessions = self.prices.sessions();
        let entries: Vec<(usize, usize)> = days
            .filter_map(|day| {
                let entry = dated_entry(sessions, day, self.lag);
                Some((entry, self.exits.exit(period, entry)?))
            })
            .collect();
        overlap(&entries)
    }
}

/// The measure of a state while dates are added.
struct Tally {
    state: State,
    dates: Vec<DateMeasure>,
    few: u64,
    /// Confidences, and whether their signals were hits.
    confidences: Vec<f64>,
    hits: Vec<bool>,
}

impl Default for Tally {
    fn default() -> Self {
        let (dates, confidences, hits) = Default::default();
        Self { state: State::Published, dates, few: 0, confidences, hits }
    }
}

impl Tally {
    /// Adds a date, and returns its correlation.
    fn add(&mut self, columns: Columns, day: Day, mean: f64) -> Option<f64> {
        match columns.returns.len() {
            0 => None,
            1..LEAST_NAMES => {
                self.few += 1;
                None
            }
            _ => {
                let measure = columns.measure(day, mean);
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
    fn add_difference(&mut self, before: &Columns, after: &Columns, day: Day, mean_return: f64) {
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
        let [buys, sells, confident] = [Side::default(); 3];
        let names = names as u64;
        self.dates.push(DateMeasure { day, names, correlation, mean_return, buys, sells, confident, spread: None });
    }

    fn finish(self, measuring: &Measuring<'_>, period: Period, flips: Flips) -> Measure {
        let Self { state, dates, few, confidences, hits } = self;
        let with_value: Vec<&DateMeasure> = dates.iter().filter(|date| date.correlation.is_some()).collect();
        let horizon = measuring.overlap(period, with_value.iter().map(|date| date.day));
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
            confidence: Calibration::of(&confidences, &hits).as_ref().map(ConfidenceMeasure::of),
            spread: mean(dates.iter().filter_map(|date| date.spread)),
            flips: flips.share(),
            by_date: dates,
        }
    }
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

/// The mean of some numbers; none without any.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}
