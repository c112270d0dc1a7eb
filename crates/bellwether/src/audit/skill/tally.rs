//! The measure of the signals of a pair in a state, while dates are added, and over all of them.

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::counts::Share;
use bellwether_statistics::{Order, OverlappingSeries, Windows};

use super::answer::{ConfidenceMeasure, DateReturns, Measure, Reliability, Side, SideMeasure, State};
use super::cells::FlipCounts;
use super::measures::{MeasuredColumns, Measuring, mean};
use super::news::{GROUPS, SignalNews};
use super::ranked::{DateContext, RankTally};
use super::series::{CorrelationSeries, NewsMeasure};
use crate::interface::Period;

/// The most signals behind a consistency band, which is drawn from hundreds of resamples.
const MOST_OF_BAND: usize = 5_000;

/// The measure of a state while dates are added.
pub(super) struct Tally {
    ranks: RankTally,
    returns: Vec<DateReturns>,
    /// Confidences, and whether their signals were hits.
    confidences: Vec<f64>,
    hits: Vec<bool>,
    /// By window, then by the number of its articles.
    by_news: Vec<[CorrelationSeries; GROUPS.len()]>,
}

impl Tally {
    pub(super) fn of(state: State, measuring: &Measuring<'_>) -> Self {
        let windows = measuring.news.map_or(0, |news| news.windows.len());
        Self {
            ranks: RankTally::of(state, measuring.sectors),
            returns: Vec::new(),
            confidences: Vec::new(),
            hits: Vec::new(),
            by_news: (0..windows).map(|_| Default::default()).collect(),
        }
    }

    /// Adds a date, with the order of its confidences and the group of each cell by its news in each window, and returns its
    /// correlation.
    pub(super) fn add(
        &mut self,
        (columns, values): (&MeasuredColumns, &Order),
        date: &DateContext,
        news: &[Vec<usize>],
    ) -> Option<f64> {
        let of_date = self.ranks.add(values, date)?;
        self.returns.push(columns.measure());
        let entries = date.entries[self.ranks.state() as usize];
        for (groups, series) in news.iter().zip(&mut self.by_news) {
            let of_groups = values.correlations(&date.returns[0], groups, GROUPS.len());
            series.iter_mut().zip(of_groups).for_each(|(series, of)| series.add(entries, of));
        }
        let rows = 0..columns.returns.len();
        self.confidences.extend(rows.clone().map(|row| columns.direction(row) * columns.confidences[row]));
        self.hits.extend(rows.map(|row| columns.is_hit(row)));
        of_date.correlation
    }

    /// Adds the difference of the correlations of a date on the same cells.
    pub(super) fn add_difference(&mut self, [before, after]: [&MeasuredColumns; 2], date: &DateContext) {
        if self.ranks.add_difference(&before.order(), &after.order(), date).is_some() {
            self.returns.push(DateReturns { mean_return: before.mean_return(), ..DateReturns::default() });
        }
    }

    pub(super) fn finish(self, measuring: &Measuring<'_>, period: Period, flips: FlipCounts) -> Measure {
        let by_news = measuring.news.map_or_else(Vec::new, |news| self.by_news(news, measuring, period));
        let windows = self.ranks.windows(measuring, period);
        let sides = |side: fn(&DateReturns) -> Side| SideMeasure::of(self.returns.iter().map(side), windows.clone());
        Measure {
            state: self.ranks.state(),
            buys: sides(|date| date.buys),
            sells: sides(|date| date.sells),
            confident: sides(|date| date.confident),
            confidence: self.confidence(&windows),
            spread: mean(self.returns.iter().filter_map(|date| date.spread)),
            flips: flips.share(),
            by_news,
            returns: self.returns,
            ranks: self.ranks.finish(measuring, period),
        }
    }

    fn by_news(&self, news: &SignalNews, measuring: &Measuring<'_>, period: Period) -> Vec<NewsMeasure> {
        let windows = news.windows.iter().zip(&self.by_news);
        let of_window = |((window, _), groups): (&(_, _), &[CorrelationSeries; GROUPS.len()])| -> Vec<NewsMeasure> {
            let groups = GROUPS.iter().zip(groups);
            let of_group = |(articles, series): (&&'static str, &CorrelationSeries)| NewsMeasure {
                window: *window,
                articles,
                measure: series.measure(|dates| measuring.windows(period, 0, dates)),
            };
            groups.map(of_group).filter(|group| group.measure.dates > 0).collect()
        };
        windows.flat_map(of_window).collect()
    }

    /// Confidences as probabilities, for returns over some windows.
    fn confidence(&self, windows: &Windows) -> Option<ConfidenceMeasure> {
        let all = Calibration::of(&self.confidences, &self.hits)?;
        // One date a window, or fewer.
        let signals = self.hits.len().div_ceil(windows.horizon().get());
        let mut taken = windows.apart().iter().step_by(signals.div_ceil(MOST_OF_BAND).max(1)).peekable();
        let (mut confidences, mut hits, mut begin, mut dates) = (Vec::new(), Vec::new(), 0, 0);
        for (index, date) in self.ranks.dates().iter().enumerate() {
            let rows = begin..begin + date.names as usize;
            begin = rows.end;
            if taken.next_if_eq(&&index).is_some() {
                confidences.extend_from_slice(&self.confidences[rows.clone()]);
                hits.extend_from_slice(&self.hits[rows]);
                dates += 1;
            }
        }
        let apart = Calibration::of(&confidences, &hits)?;
        Some(ConfidenceMeasure::of(&all, Reliability::of(&apart, dates)))
    }
}

impl SideMeasure {
    /// The signals of a side on all dates, for returns over some windows.
    fn of(sides: impl Iterator<Item = Side> + Clone, windows: Windows) -> Self {
        let share = |side: Side| Share { hits: side.hits, of: side.signals };
        let mut all = Share::default();
        sides.clone().for_each(|side| all += share(side));
        let series = OverlappingSeries::of_shares(sides.clone().map(share), 0.5, windows);
        Self {
            side: Side { signals: all.of, hits: all.hits, excess: mean(sides.filter_map(|side| side.excess)) },
            hit_rate: all.rate(),
            test: series.and_then(|series| series.cosine_test().ok()),
        }
    }
}
