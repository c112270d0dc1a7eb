//! The measures of a pair: by date as published, as it stands today, and both on the same cells.

use std::num::NonZeroUsize;

use bellwether_statistics::buckets::{bucket_means, quantile_buckets, relative_to_mean};
use bellwether_statistics::rank_correlation;

use super::answer::{DateMeasure, Measure, Side, State};
use super::cells::{Cell, Change, Flips, PairCells};
use super::decay::LaggedReturns;
use super::hindsight::{DayVotes, HindsightCounts};
use super::horizon::{Exits, dated_entry, overlap};
use super::prices::{Day, Prices};
use super::rewritten::{Rewritten, Variants};
use super::sectors::Sectors;
use super::tally::Tally;
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
    pub(super) sectors: &'a Sectors,
}

/// The columns that a state is measured from.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) confidences: Vec<f64>,
    pub(super) are_sells: Vec<bool>,
    pub(super) returns: Vec<f64>,
    pub(super) excesses: Vec<f64>,
    /// Their places among the cells of the date.
    pub(super) places: Vec<usize>,
    /// The places of their sectors.
    pub(super) sectors: Vec<usize>,
}

/// What the measures of a date have in common.
pub(super) struct DateContext<'a> {
    pub(super) day: Day,
    pub(super) returns: &'a LaggedReturns,
    pub(super) sectors: &'a Sectors,
}

impl Columns {
    fn push(&mut self, (confidence, is_sell): (f64, bool), (place, cell): (usize, &DatedCell), sectors: &Sectors) {
        self.places.push(place);
        self.sectors.push(sectors.place(cell.cell.ticker));
        self.confidences.push(confidence);
        self.are_sells.push(is_sell);
        self.returns.push(cell.value);
    }

    /// 1 for a buy, -1 for a sell.
    pub(super) fn direction(&self, row: usize) -> f64 {
        if self.are_sells[row] { -1.0 } else { 1.0 }
    }

    /// Takes the returns relative to their mean.
    fn finish(&mut self) {
        self.excesses = relative_to_mean(&self.returns);
    }

    /// Whether the return went the way of the signal, relative to the mean of the date.
    pub(super) fn is_hit(&self, row: usize) -> bool {
        self.excesses[row] * self.direction(row) > 0.0
    }

    /// What they say of a date.
    pub(super) fn measure(&self, day: Day) -> DateMeasure {
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
            mean_return: self.mean_return(),
            buys: side(&rows(&|row| !self.are_sells[row]), &|_| 1.0),
            sells: side(&rows(&|row| self.are_sells[row]), &|_| 1.0),
            confident: side(&rows(&|row| fifths[row] == FIFTHS.get() - 1), &|row| self.direction(row)),
            spread: self.spread(),
        }
    }

    /// The mean return.
    pub(super) fn mean_return(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len() as f64
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
        let mut tallies = State::ALL.map(|state| Tally::of(state, self.sectors));
        let (mut rewritten, mut hindsight) = (Rewritten::default(), HindsightCounts::default());
        let mut changes = of_pair.changes.iter().copied();
        let mut of_date = Vec::new();
        for cells in of_pair.cells.chunk_by(|one, next| one.day == next.day) {
            let day = first_session + Day::from(cells[0].day);
            of_date.clear();
            of_date.extend(cells.iter().map(|cell| self.dated(period, *cell, &mut changes)));
            let mean = of_date.iter().map(|cell| cell.value).sum::<f64>() / of_date.len() as f64;
            of_date.iter_mut().for_each(|cell| cell.excess = cell.value - mean);
            let [published, today, before, after] = self.columns(&of_date);
            let returns = &LaggedReturns::of(&of_date, period, self.exits, self.prices);
            let context = DateContext { day, returns, sectors: self.sectors };
            tallies[0].add(&published, &context);
            let correlation = tallies[1].add(&today, &context);
            tallies[2].add_difference(&before, &after, &context);
            rewritten.add(&Variants { cells: &of_date, today: correlation });
            let sessions = self.prices.sessions();
            hindsight.add(day, DayVotes::of(&of_date, |session| sessions[session]));
        }
        let flips = [of_pair.flips_published, of_pair.flips_today, Flips::default()];
        let mut flips = flips.into_iter();
        let measures = tallies.map(|tally| tally.finish(self, period, flips.next().unwrap_or_default()));
        MeasuredPair { measures, rewritten, hindsight }
    }

    /// The cells as first published, as they stand today, and both of those that have both.
    fn columns(&self, of_date: &[DatedCell]) -> [Columns; 4] {
        let [mut published, mut today, mut before, mut after] = std::array::from_fn(|_| Columns::default());
        for (place, cell) in of_date.iter().enumerate() {
            let (first, of) = ((cell.cell.first, cell.cell.is_sell()), (place, cell));
            if cell.cell.is_live() {
                published.push(first, of, self.sectors);
            }
            if !cell.cell.is_withdrawn() {
                today.push(cell.latest(), of, self.sectors);
            }
            if cell.cell.is_live() && !cell.cell.is_withdrawn() {
                before.push(first, of, self.sectors);
                after.push(cell.latest(), of, self.sectors);
            }
        }
        let mut columns = [published, today, before, after];
        columns.iter_mut().for_each(Columns::finish);
        columns
    }

    fn dated(&self, period: Period, cell: Cell, changes: &mut impl Iterator<Item = Change>) -> DatedCell {
        let entry = usize::from(cell.entry);
        let exit = self.exits.exit(period, entry).expect("a cell has a complete return");
        let value = self.prices.between(cell.ticker, entry, exit).expect("a cell has a complete return");
        // Cells and changes are in the same order.
        let change = if cell.is_altered() { changes.next() } else { None };
        DatedCell { cell, change, excess: 0.0, value, exit }
    }

    /// The most dates whose positions overlap, some horizons after their entry.
    pub(super) fn overlap(&self, period: Period, lag: usize, days: &mut dyn Iterator<Item = Day>) -> usize {
        let sessions = self.prices.sessions();
        let entries: Vec<(usize, usize)> = days
            .filter_map(|day| {
                let first = dated_entry(sessions, day, self.lag);
                let entry = (0..lag).try_fold(first, |entry, _| self.exits.exit(period, entry))?;
                Some((entry, self.exits.exit(period, entry)?))
            })
            .collect();
        overlap(&entries)
    }
}

/// The mean of some numbers; none without any.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}
