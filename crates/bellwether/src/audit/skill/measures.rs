//! The measures of a pair: by date as published, as it stands today, and both on the same cells.

use bellwether_statistics::quantiles::{highest_fifth, relative_to_mean};
use bellwether_statistics::{Order, Windows};

use super::answer::{DateReturns, Measure, Side, State};
use super::cells::{ChangedSignal, FlipCounts, PairCells, ReturnCell};
use super::decay::LaggedReturns;
use super::features::{FeatureMeasure, FeatureTallies};
use super::hindsight::{DayVotes, HindsightCounts};
use super::horizon::{EntrySpan, Exits};
use super::news::SignalNews;
use super::prices::{Day, Prices};
use super::ranked::DateContext;
use super::rewritten::{Rewritten, Variants};
use super::sectors::Sectors;
use super::tally::Tally;
use crate::interface::{Period, Regime};

/// A date with fewer names is not measured.
pub(super) const LEAST_NAMES: usize = 5;

/// A pair as it was measured.
#[derive(Clone, Debug)]
pub(super) struct MeasuredPair {
    pub(super) measures: [Measure; 3],
    pub(super) rewritten: Rewritten,
    pub(super) hindsight: HindsightCounts,
    /// The features of its news; empty unless they are measured at this pair.
    pub(super) features: Vec<[FeatureMeasure; 3]>,
}

/// A cell of a date with its return.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatedCell {
    pub(super) cell: ReturnCell,
    pub(super) change: Option<ChangedSignal>,
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
    pub(super) sectors: &'a Sectors,
    /// None if the dataset has none.
    pub(super) news: Option<&'a SignalNews>,
}

/// The columns that a state is measured from.
pub(super) struct MeasuredColumns {
    pub(super) confidences: Vec<f64>,
    pub(super) are_sells: Vec<bool>,
    pub(super) returns: Vec<f64>,
    pub(super) excesses: Vec<f64>,
    entries: EntrySpan,
    /// Their indices among the cells of the date, and the number of these.
    indices: Vec<usize>,
    cells: usize,
}

impl MeasuredColumns {
    /// No rows yet of a date with some cells.
    fn of_date(cells: usize) -> Self {
        let numbers = || Vec::with_capacity(cells);
        Self {
            confidences: numbers(),
            are_sells: Vec::with_capacity(cells),
            returns: numbers(),
            excesses: Vec::new(),
            entries: EntrySpan::NONE,
            indices: Vec::with_capacity(cells),
            cells,
        }
    }

    fn push(&mut self, (confidence, is_sell): (f64, bool), (index, cell): (usize, &DatedCell)) {
        self.indices.push(index);
        self.confidences.push(confidence);
        self.are_sells.push(is_sell);
        self.returns.push(cell.value);
        self.entries.add(cell.cell.entry);
    }

    /// The order of the confidences, by the indices of all cells of the date.
    pub(super) fn order(&self) -> Order {
        if self.indices.len() == self.cells {
            return Order::of(self.confidences.iter().copied().map(Some));
        }
        let mut values = vec![None; self.cells];
        self.indices.iter().zip(&self.confidences).for_each(|(index, confidence)| values[*index] = Some(*confidence));
        Order::of(values)
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

    /// What followed.
    pub(super) fn measure(&self) -> DateReturns {
        let sizes: Vec<f64> = self.confidences.iter().map(|confidence| confidence.abs()).collect();
        let sure = highest_fifth(&sizes).unwrap_or(f64::INFINITY);
        let [mut buys, mut sells, mut confident] = [SideSum::default(); 3];
        for (row, (size, excess)) in sizes.iter().zip(&self.excesses).enumerate() {
            let is_hit = self.is_hit(row);
            (if self.are_sells[row] { &mut sells } else { &mut buys }).add(*excess, is_hit);
            if *size >= sure {
                confident.add(excess * self.direction(row), is_hit);
            }
        }
        let [buys, sells, confident] = [buys, sells, confident].map(SideSum::side);
        DateReturns { mean_return: self.mean_return(), buys, sells, confident, spread: self.spread() }
    }

    /// The mean return.
    pub(super) fn mean_return(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len() as f64
    }

    /// The mean return of the names in the highest fifth less that of the lowest; none if all are equal.
    fn spread(&self) -> Option<f64> {
        let opposites: Vec<f64> = self.confidences.iter().map(|confidence| -confidence).collect();
        let (low, high) = (-highest_fifth(&opposites)?, highest_fifth(&self.confidences)?);
        let rows = || self.confidences.iter().zip(&self.returns);
        let of = |is_taken: &dyn Fn(f64) -> bool| {
            mean(rows().filter(|(confidence, _)| is_taken(**confidence)).map(|(_, value)| *value))
        };
        Some(of(&|confidence| confidence >= high)? - of(&|confidence| confidence <= low)?)
    }
}

/// The signals of a side while they are added.
#[derive(Clone, Copy, Default)]
struct SideSum {
    signals: u64,
    hits: u64,
    excess: f64,
}

impl SideSum {
    fn add(&mut self, excess: f64, is_hit: bool) {
        self.signals += 1;
        self.hits += u64::from(is_hit);
        self.excess += excess;
    }

    fn side(self) -> Side {
        let Self { signals, hits, excess } = self;
        Side { signals, hits, excess: (signals > 0).then(|| excess / signals as f64) }
    }
}

impl Measuring<'_> {
    /// Measures the cells of a pair.
    pub(super) fn measure(&self, pair: (Period, Regime), mut of_pair: PairCells) -> MeasuredPair {
        of_pair.sort();
        let (period, first_session) = (pair.0, self.prices.sessions()[0]);
        let mut tallies = State::ALL.map(|state| Tally::of(state, self));
        let measured_here = self.news.filter(|news| news.is_measured_at(pair));
        let mut features = measured_here.map(|news| FeatureTallies::of(news, self));
        let (mut rewritten, mut hindsight) = (Rewritten::default(), HindsightCounts::default());
        let mut changes = of_pair.changes.iter().copied();
        let mut returns = LaggedReturns::of(&of_pair.cells, period, self);
        let mut of_date = Vec::new();
        for cells in of_pair.cells.chunk_by(|one, next| one.day == next.day) {
            let day = first_session + Day::from(cells[0].day);
            of_date.clear();
            of_date.extend(cells.iter().map(|cell| self.date_cell(period, *cell, &mut changes)));
            let mean = of_date.iter().map(|cell| cell.value).sum::<f64>() / of_date.len() as f64;
            of_date.iter_mut().for_each(|cell| cell.excess = cell.value - mean);
            let [published, today, before, after] = self.columns(&of_date);
            let entries = [&published, &today, &before].map(|columns| columns.entries);
            let date = DateContext::of((day, entries), &of_date, &mut returns, self);
            let news = self.news.map(|news| news.of_date(pair, &of_date));
            let [news_published, news_today] = news.as_ref().map_or([&[][..]; 2], |news| news.groups());
            let orders = [&published, &today].map(MeasuredColumns::order);
            tallies[0].add((&published, &orders[0]), &date, news_published);
            let correlation = tallies[1].add((&today, &orders[1]), &date, news_today);
            tallies[2].add_difference([&before, &after], &date);
            if let (Some(features), Some(news)) = (&mut features, &news) {
                features.add(news, &orders, &date);
            }
            rewritten.add(&Variants { cells: &of_date, returns: &date.returns[0], today: correlation });
            let sessions = self.prices.sessions();
            let mut entries = EntrySpan::NONE;
            cells.iter().for_each(|cell| entries.add(cell.entry));
            let votes = DayVotes::of(&of_date, |session| sessions[session]);
            hindsight.add(day, votes, entries.window(self.exits, period, 0));
        }
        let flips = [of_pair.flips_published, of_pair.flips_today, FlipCounts::default()];
        let mut flips = flips.into_iter();
        let measures = tallies.map(|tally| tally.finish(self, period, flips.next().unwrap_or_default()));
        let features = features.map_or_else(Vec::new, |features| features.finish(self, period));
        MeasuredPair { measures, rewritten, hindsight, features }
    }

    /// The cells as first published, as they stand today, and both of those that have both.
    fn columns(&self, of_date: &[DatedCell]) -> [MeasuredColumns; 4] {
        let [mut published, mut today, mut before, mut after] =
            std::array::from_fn(|_| MeasuredColumns::of_date(of_date.len()));
        for (index, cell) in of_date.iter().enumerate() {
            let (first, of) = ((cell.cell.first, cell.cell.is_sell()), (index, cell));
            if cell.cell.is_live() {
                published.push(first, of);
            }
            if !cell.cell.is_withdrawn() {
                today.push(cell.latest(), of);
            }
            if cell.cell.is_live() && !cell.cell.is_withdrawn() {
                before.push(first, of);
                after.push(cell.latest(), of);
            }
        }
        let mut columns = [published, today, before, after];
        columns.iter_mut().for_each(MeasuredColumns::finish);
        columns
    }

    fn date_cell(
        &self,
        period: Period,
        cell: ReturnCell,
        changes: &mut impl Iterator<Item = ChangedSignal>,
    ) -> DatedCell {
        let entry = usize::from(cell.entry);
        let exit = self.exits.exit(period, entry).expect("a cell has a complete return");
        let value = self.prices.between(cell.ticker, entry, exit).expect("a cell has a complete return");
        // Cells and changes are in the same order.
        let change = if cell.is_altered() { changes.next() } else { None };
        DatedCell { cell, change, excess: 0.0, value, exit }
    }

    /// The windows of the returns of some dates, some horizons after their entry.
    pub(super) fn windows(&self, period: Period, lag: usize, dates: &mut dyn Iterator<Item = EntrySpan>) -> Windows {
        Windows::of(dates.map(|entries| entries.window(self.exits, period, lag)))
    }
}

/// The mean of some numbers; none without any.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}
