//! The measures of a pair: by date as published, as it stands today, and the difference that rewriting makes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::{OverlappingSeries, RankedCases, Ranks, Share, Windows};
use chrono::Datelike;

use super::answer::{
    ConfidenceMeasure, DateCorrelation, DateReturns, FeatureMeasure, Gone, LagMeasure, Measure, NewsMeasure,
    RankMeasure, Reliability, Rewritten, SectorMeasure, SeriesMeasure, Side, SideMeasure, State, YearMeasure,
};
use super::beta::Betas;
use super::cells::{Cell, PairCells, is_sell};
use super::hindsight::HindsightCounts;
use super::news::{GROUPS, SignalNews};
use crate::interface::{Period, Regime};
use crate::prices::horizon::{EntrySpan, Exits};
use crate::prices::{Day, Prices, date};

/// A date with fewer names is not measured.
const MIN_NAMES: usize = 5;

/// The number of lags.
const LAGS: usize = 5;

/// A pair as it was measured.
pub(super) struct MeasuredPair {
    pub(super) measures: [Measure; 3],
    pub(super) rewritten: Rewritten,
    pub(super) gone: Gone,
    pub(super) hindsight: HindsightCounts,
    /// The features of its news; empty unless they are measured at this pair.
    pub(super) features: Vec<[FeatureMeasure; 3]>,
}

/// What pairs are measured with.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    pub(super) prices: &'a Prices,
    pub(super) exits: &'a Exits,
    pub(super) betas: &'a Betas,
    /// The names of the sectors, and the index of that of each name.
    pub(super) sectors: &'a (Vec<String>, Vec<usize>),
    /// The names of which nothing is listed any more.
    pub(super) delisted: &'a HashSet<u16>,
    /// None if the dataset has none.
    pub(super) news: Option<&'a SignalNews>,
}

/// The signals of a date with what followed.
pub(super) struct DateFrame<'a> {
    pub(super) day: Day,
    pub(super) cells: &'a [Cell],
    /// The sessions of their exits, and their returns.
    pub(super) exits: Vec<usize>,
    pub(super) returns: Vec<f64>,
    /// The returns over one horizon after the other.
    by_lag: [Ranks; LAGS],
    sectors: Vec<usize>,
    betas: Ranks,
}

impl DateFrame<'_> {
    /// Scores of the signals that are taken; not a number for the others.
    fn scores(&self, score: impl Fn(&Cell) -> Option<f64>) -> Ranks {
        Ranks::new(self.cells.iter().map(|cell| score(cell).unwrap_or(f64::NAN)).collect())
    }

    /// The entries of the signals that have a number.
    fn entries(&self, values: &Ranks) -> EntrySpan {
        let mut entries = EntrySpan::NONE;
        let known = self.cells.iter().zip(values.values()).filter(|(_, value)| !value.is_nan());
        known.for_each(|(cell, _)| entries.add(cell.entry));
        entries
    }
}

/// Rank correlations by date, in order.
#[derive(Clone, Debug, Default)]
struct Series(Vec<(EntrySpan, u64, f64)>);

impl Series {
    /// Adds the names of a date; too few of them, or some without a correlation, say nothing.
    fn add(&mut self, entries: EntrySpan, of: RankedCases) {
        if let Some(correlation) = of.rank_correlation.filter(|_| of.cases >= MIN_NAMES as u64) {
            self.0.push((entries, of.cases, correlation));
        }
    }
}

impl Measuring<'_> {
    /// Measures the signals of a pair.
    pub(super) fn measure(&self, pair: (Period, Regime), mut of_pair: PairCells) -> MeasuredPair {
        of_pair.sort();
        let mut tallies = State::ALL.map(|state| Tally::new(state, self));
        let at_news = self.news.filter(|news| news.is_measured_at(pair));
        let mut features: Vec<[FeatureTally; 3]> = at_news
            .map_or(&[][..], |news| &news.features)
            .iter()
            .map(|_| State::ALL.map(|state| (RankTally::new(state, self), Series::default())))
            .collect();
        let (mut rewritten, mut gone) = (RewrittenSums::default(), GoneSums::default());
        let mut hindsight = HindsightCounts::default();
        let mut votes = of_pair.votes.as_slice();
        for cells in of_pair.cells.chunk_by(|one, next| one.day == next.day) {
            let date = self.date_frame(pair.0, cells);
            let published = date.scores(|cell| cell.is_published.then_some(cell.first));
            let today = date.scores(|cell| Some(cell.latest));
            let left = date.scores(|cell| cell.is_published.then_some(cell.latest));
            let news = self.news.map(|news| news.of_date(pair, cells));
            let [news_published, news_today] = news.as_ref().map_or([&[][..]; 2], |news| news.groups());
            tallies[0].add(&published, &date, news_published, pair.0, self);
            let correlation = tallies[1].add(&today, &date, news_today, pair.0, self);
            tallies[2].ranks.add_difference([&published, &left], &date, date.entries(&published));
            for (feature, [first, latest, both]) in features.iter_mut().enumerate() {
                let Some(news) = &news else { continue };
                let [of_first, of_latest] = news.values(feature);
                let without = |values: &[f64], other: &[f64]| -> Ranks {
                    Ranks::new(values.iter().zip(other).map(|(value, other)| value + 0.0 * other).collect())
                };
                let changed = [without(&of_first, &of_latest), without(&of_latest, &of_first)];
                for (tally, values, given) in [(first, of_first, &published), (latest, of_latest, &today)] {
                    let values = Ranks::new(values);
                    if values.count() > 0 {
                        tally.0.add(&values, &date, date.entries(given));
                        let partial = values.partial_correlation(&date.by_lag[0], given);
                        tally.1.add(date.entries(given), partial);
                    }
                }
                both.0.add_difference([&changed[0], &changed[1]], &date, date.entries(&left));
            }
            rewritten.add(&date, correlation);
            gone.add(&date, self.delisted);
            let of_date = votes.iter().take_while(|vote| vote.day == cells[0].day).count();
            let window = date.entries(&date.by_lag[0]).window(self.exits, pair.0, 0);
            hindsight.add(&date, &votes[..of_date], window.clone(), self);
            gone.windows.push(window);
            votes = &votes[of_date..];
        }
        let [first, latest] = of_pair.flips.map(Share::rate);
        let mut flips = [first, latest, None].into_iter();
        let measures = tallies.map(|tally| tally.finish(self, pair.0, flips.next().flatten()));
        let finish = |(ranks, partial): FeatureTally| FeatureMeasure {
            state: ranks.state,
            partial: (ranks.state != State::Difference).then(|| self.series(&partial, pair.0, 0)),
            ranks: ranks.finish(self, pair.0),
        };
        MeasuredPair {
            measures,
            rewritten: rewritten.finish(),
            gone: gone.finish(),
            hindsight,
            features: features.into_iter().map(|feature| feature.map(finish)).collect(),
        }
    }

    fn date_frame<'a>(&self, period: Period, cells: &'a [Cell]) -> DateFrame<'a> {
        let mut begins: Vec<Option<usize>> = cells.iter().map(|cell| Some(cell.entry.into())).collect();
        let exits: Vec<usize> = begins.iter().filter_map(|begin| self.exits.exit(period, (*begin)?)).collect();
        let by_lag: [Ranks; LAGS] = std::array::from_fn(|_| {
            let values = begins.iter_mut().zip(cells).map(|(begin, cell)| {
                let from = begin.take()?;
                *begin = self.exits.exit(period, from);
                self.exits.held(self.prices, cell.ticker, from, (*begin)?).map(|(value, _)| value)
            });
            Ranks::new(values.map(|value| value.unwrap_or(f64::NAN)).collect())
        });
        DateFrame {
            day: self.prices.sessions()[0] + Day::from(cells[0].day),
            cells,
            exits,
            returns: by_lag[0].values().to_vec(),
            by_lag,
            sectors: cells.iter().map(|cell| self.sectors.1[usize::from(cell.ticker)]).collect(),
            betas: Ranks::new(cells.iter().map(|cell| self.betas.beta(cell.ticker, cell.entry)).collect()),
        }
    }

    /// The return of a name between two sessions; not a number if it has none.
    pub(super) fn value(&self, ticker: u16, from: u16, to: u16) -> f64 {
        let value = self.exits.held(self.prices, ticker, from.into(), to.into());
        value.map_or(f64::NAN, |(value, _)| value)
    }

    /// The windows of the returns of some dates, some horizons after their entry.
    fn windows(&self, period: Period, lag: usize, dates: impl Iterator<Item = EntrySpan>) -> Windows {
        Windows::new(dates.map(|entries| entries.window(self.exits, period, lag)))
    }

    fn series(&self, series: &Series, period: Period, lag: usize) -> SeriesMeasure {
        let windows = self.windows(period, lag, series.0.iter().map(|date| date.0));
        let (horizon, whole) = (windows.horizon().get() as u64, windows.whole() as u64);
        let correlations: Vec<f64> = series.0.iter().map(|date| date.2).collect();
        SeriesMeasure {
            dates: series.0.len() as u64,
            names: mean(series.0.iter().map(|date| date.1 as f64)),
            correlation: mean(correlations.iter().copied()),
            horizon,
            windows: whole,
            test: OverlappingSeries::new(correlations, windows).cosine_test().ok(),
        }
    }
}

/// A feature while dates are added: its correlations, and what it adds to the signal.
type FeatureTally = (RankTally, Series);

/// The rank correlations of a state while dates are added.
struct RankTally {
    state: State,
    dates: Vec<(EntrySpan, DateCorrelation)>,
    few: u64,
    by_lag: [Series; LAGS],
    /// Empty if there is only one.
    by_sector: Vec<Series>,
    within_sectors: Series,
    given_beta: Series,
}

impl RankTally {
    fn new(state: State, measuring: &Measuring<'_>) -> Self {
        let sectors = measuring.sectors.0.len();
        let by_sector = vec![Series::default(); if sectors > 1 && state != State::Difference { sectors } else { 0 }];
        let (within_sectors, given_beta) = Default::default();
        Self { state, dates: Vec::new(), few: 0, by_lag: Default::default(), by_sector, within_sectors, given_beta }
    }

    /// Adds the scores of a date, and returns its correlation; none if it has too few.
    fn add(&mut self, scores: &Ranks, date: &DateFrame<'_>, entries: EntrySpan) -> Option<DateCorrelation> {
        if !self.has_enough(scores.count()) {
            return None;
        }
        let of_lags = date.by_lag.each_ref().map(|returns| scores.correlation(returns));
        self.by_lag.iter_mut().zip(of_lags).for_each(|(series, of)| series.add(entries, of));
        if !self.by_sector.is_empty() {
            let of_sectors = scores.correlations(&date.by_lag[0], &date.sectors, self.by_sector.len());
            self.by_sector.iter_mut().zip(of_sectors).for_each(|(series, of)| series.add(entries, of));
            let is_known: Vec<bool> = scores.values().iter().map(|score| !score.is_nan()).collect();
            let [own, returns] = [scores, &date.by_lag[0]]
                .map(|of| less_means(of.values(), &is_known, &date.sectors, self.by_sector.len()));
            self.within_sectors.add(entries, own.correlation(&returns));
        }
        self.given_beta.add(entries, scores.partial_correlation(&date.by_lag[0], &date.betas));
        Some(self.push(date.day, entries, scores.count(), of_lags[0].rank_correlation))
    }

    /// Adds the difference that other scores make, of the same signals or of some of them.
    fn add_difference(&mut self, [before, after]: [&Ranks; 2], date: &DateFrame<'_>, entries: EntrySpan) {
        if self.has_enough(before.count()) {
            let [before_it, after_it] = [before, after].map(|scores| scores.correlation(&date.by_lag[0]));
            let after_it = after_it.rank_correlation.filter(|_| after.count() >= MIN_NAMES);
            let difference = before_it.rank_correlation.zip(after_it).map(|(before, after)| after - before);
            self.push(date.day, entries, before.count(), difference);
        }
    }

    fn has_enough(&mut self, names: usize) -> bool {
        self.few += u64::from((1..MIN_NAMES).contains(&names));
        names >= MIN_NAMES
    }

    fn push(&mut self, day: Day, entries: EntrySpan, names: usize, correlation: Option<f64>) -> DateCorrelation {
        let of = DateCorrelation { day, names: names as u64, correlation };
        self.dates.push((entries, of));
        of
    }

    fn finish(self, measuring: &Measuring<'_>, period: Period) -> RankMeasure {
        let is_state = self.state != State::Difference;
        let lags = self.by_lag.iter().enumerate().take(if is_state { LAGS } else { 0 });
        let of_lag = |(lag, series)| LagMeasure { lag: lag as u64, measure: measuring.series(series, period, lag) };
        let mut years: BTreeMap<i32, Series> = BTreeMap::new();
        let mut whole = Series::default();
        for (entries, of) in &self.dates {
            let known = of.correlation.map(|correlation| (*entries, of.names, correlation));
            years.entry(date(of.day).year()).or_default().0.extend(known);
            whole.0.extend(known);
        }
        let of_year = |(year, series)| YearMeasure { year, measure: measuring.series(&series, period, 0) };
        let sectors = measuring.sectors.0.iter().zip(&self.by_sector);
        let sectors = sectors.filter(|(_, series)| !series.0.is_empty()).map(|(sector, series)| SectorMeasure {
            sector: sector.clone(),
            measure: measuring.series(series, period, 0),
        });
        let windows = measuring.windows(period, 0, whole.0.iter().map(|of| of.0));
        let correlations: Vec<f64> = whole.0.iter().map(|of| of.2).collect();
        let measure = measuring.series(&whole, period, 0);
        let series = OverlappingSeries::new(correlations.clone(), windows);
        let optional = |is_some: bool, series: &Series| is_some.then(|| measuring.series(series, period, 0));
        RankMeasure {
            dates: measure.dates,
            constant_dates: self.dates.len() as u64 - measure.dates,
            thin_dates: self.few,
            names: measure.names,
            correlation: measure.correlation,
            positive: mean(correlations.iter().map(|correlation| f64::from(u8::from(*correlation > 0.0)))),
            horizon: measure.horizon,
            windows: measure.windows,
            test: measure.test,
            disjoint: series.disjoint_test().ok(),
            refusal: series.cosine_test().err(),
            p_holm: None,
            p_benjamini_hochberg: None,
            by_lag: lags.map(of_lag).collect(),
            by_year: years.into_iter().map(of_year).collect(),
            by_sector: sectors.collect(),
            within_sectors: optional(!self.by_sector.is_empty(), &self.within_sectors),
            given_beta: optional(is_state, &self.given_beta),
            by_date: self.dates.into_iter().map(|(_, of)| of).collect(),
        }
    }
}

/// Numbers less the mean of those that are taken of their group; not a number of others, and where there is no second one.
fn less_means(values: &[f64], is_taken: &[bool], groups: &[usize], count: usize) -> Ranks {
    let mut sums = vec![(0.0, 0_u32); count];
    let is_known = |index: usize| is_taken[index] && !values[index].is_nan();
    for index in (0..values.len()).filter(|index| is_known(*index)) {
        let (sum, cases) = &mut sums[groups[index]];
        (*sum, *cases) = (*sum + values[index], *cases + 1);
    }
    let less_mean = |index: usize| match sums[groups[index]] {
        // To nine decimals, so that what is equal stays so.
        (sum, cases) if is_known(index) && cases > 1 => ((values[index] - sum / f64::from(cases)) * 1e9).round(),
        _ => f64::NAN,
    };
    Ranks::new((0..values.len()).map(less_mean).collect())
}

/// The measure of the signals of a state while dates are added.
struct Tally {
    ranks: RankTally,
    returns: Vec<DateReturns>,
    /// Of each date with enough names, where its signals begin among the outcomes.
    begins: Vec<usize>,
    /// Confidences of signals that went either way, and whether they were hits.
    confidences: Vec<f64>,
    hits: Vec<bool>,
    /// The session at which the window of each date ends, and the names in its highest fifth.
    highest: Vec<(usize, BTreeSet<u16>)>,
    /// Names in the highest fifth, and those of them that were not one horizon before.
    held: u64,
    replaced: u64,
    /// By window, then by the number of its articles.
    by_news: Vec<[Series; GROUPS.len()]>,
}

impl Tally {
    fn new(state: State, measuring: &Measuring<'_>) -> Self {
        let windows = measuring.news.map_or(0, |news| news.windows.len());
        Self {
            ranks: RankTally::new(state, measuring),
            returns: Vec::new(),
            begins: Vec::new(),
            confidences: Vec::new(),
            hits: Vec::new(),
            highest: Vec::new(),
            held: 0,
            replaced: 0,
            by_news: (0..windows).map(|_| Default::default()).collect(),
        }
    }

    /// Adds a date, with the group of each signal by its news in each window, and returns its correlation.
    fn add(
        &mut self,
        scores: &Ranks,
        date: &DateFrame<'_>,
        news: &[Vec<usize>],
        period: Period,
        measuring: &Measuring<'_>,
    ) -> Option<f64> {
        let entries = date.entries(scores);
        let of_date = self.ranks.add(scores, date, entries)?;
        for (groups, series) in news.iter().zip(&mut self.by_news) {
            let of_groups = scores.correlations(&date.by_lag[0], groups, GROUPS.len());
            series.iter_mut().zip(of_groups).for_each(|(series, of)| series.add(entries, of));
        }
        let fifths = scores.fifths();
        self.begins.push(self.hits.len());
        self.add_returns(scores, &fifths, date);
        let top = fifths.iter().copied().filter(|fifth| *fifth < 5).max().unwrap_or_default();
        if fifths.iter().any(|fifth| *fifth < top) {
            let names = date.cells.iter().zip(&fifths).filter(|(_, fifth)| **fifth == top);
            let names: BTreeSet<u16> = names.map(|(cell, _)| cell.ticker).collect();
            let window = entries.window(measuring.exits, period, 0);
            if let Some(before) = self.highest.iter().rposition(|(end, _)| *end <= window.start) {
                self.held += names.len() as u64;
                self.replaced += names.difference(&self.highest[before].1).count() as u64;
                self.highest.drain(..before);
            }
            self.highest.push((window.end, names));
        }
        of_date.correlation
    }

    /// Adds what followed the signals of a date.
    fn add_returns(&mut self, scores: &Ranks, fifths: &[usize], date: &DateFrame<'_>) {
        let taken = || (0..fifths.len()).filter(|index| fifths[*index] < 5);
        let returns: Vec<f64> = taken().map(|index| date.returns[index]).collect();
        let center = Center::new(&returns);
        let sizes = Ranks::new(scores.values().iter().map(|score| score.abs()).collect()).fifths();
        let surest = taken().map(|index| sizes[index]).max().unwrap_or_default();
        let is_any_surer = taken().any(|index| sizes[index] < surest);
        let [mut buys, mut sells, mut confident] = [Side::default(); 3];
        let mut of_fifths = [(0.0, 0.0); 5];
        let add = |side: &mut Side, is_sell: bool, outcome: Option<bool>, excess: f64| {
            side.signals += 1;
            side.even += u64::from(outcome.is_none());
            side.hits += u64::from(outcome == Some(true));
            side.luck += outcome.map_or(0.0, |_| center.luck(is_sell));
            side.excess = Some(side.excess.unwrap_or_default() + excess);
        };
        for index in taken() {
            let (score, excess) = (scores.values()[index], date.returns[index] - center.mean);
            let outcome = center.agrees(is_sell(score), date.returns[index]);
            add(if is_sell(score) { &mut sells } else { &mut buys }, is_sell(score), outcome, excess);
            if is_any_surer && sizes[index] == surest {
                add(&mut confident, is_sell(score), outcome, if is_sell(score) { -excess } else { excess });
            }
            let (sum, count) = &mut of_fifths[fifths[index]];
            (*sum, *count) = (*sum + excess, *count + 1.0);
            if let Some(is_hit) = outcome {
                self.confidences.push(score.abs());
                self.hits.push(is_hit);
            }
        }
        for side in [&mut buys, &mut sells, &mut confident] {
            side.excess = side.excess.map(|sum| sum / side.signals as f64);
        }
        let fifths = of_fifths.map(|(sum, count)| (count > 0.0).then(|| sum / count));
        let mut ends = fifths.iter().flatten();
        let spread = ends.next().and_then(|lowest| Some(ends.next_back()? - lowest));
        self.returns.push(DateReturns { mean_return: center.mean, buys, sells, confident, fifths, spread });
    }

    fn finish(self, measuring: &Measuring<'_>, period: Period, flips: Option<f64>) -> Measure {
        let windows = measuring.windows(period, 0, self.ranks.dates.iter().map(|(entries, _)| *entries));
        let sides = |side: fn(&DateReturns) -> Side| side_measure(self.returns.iter().map(side), windows.clone());
        let turnover = (self.held > 0).then(|| self.replaced as f64 / self.held as f64);
        let highest = mean(self.returns.iter().filter_map(|of| of.fifths.iter().flatten().next_back().copied()));
        let by_news = measuring.news.map_or(&[][..], |news| &news.windows).iter().zip(&self.by_news);
        let by_news =
            by_news.flat_map(|((window, _), groups)| {
                GROUPS.iter().zip(groups).filter(|(_, series)| !series.0.is_empty()).map(|(articles, series)| {
                    NewsMeasure { window: *window, articles, measure: measuring.series(series, period, 0) }
                })
            });
        let mut returns = self.returns.clone();
        if self.ranks.state == State::Difference {
            returns.resize(self.ranks.dates.len(), DateReturns::default());
        }
        Measure {
            state: self.ranks.state,
            buys: sides(|date| date.buys),
            sells: sides(|date| date.sells),
            confident: sides(|date| date.confident),
            confidence: self.confidence(&windows),
            fifths: std::array::from_fn(|fifth| mean(self.returns.iter().filter_map(|date| date.fifths[fifth]))),
            spread: mean(self.returns.iter().filter_map(|date| date.spread)),
            turnover,
            // What is replaced is sold, and as much is bought.
            break_even: highest
                .zip(turnover.filter(|share| *share > 0.0))
                .map(|(highest, share)| highest / share / 2.0),
            flips,
            by_news: by_news.collect(),
            returns,
            ranks: self.ranks.finish(measuring, period),
        }
    }

    /// Confidences as probabilities, for returns over some windows.
    fn confidence(&self, windows: &Windows) -> Option<ConfidenceMeasure> {
        let all = Calibration::new(&self.confidences, &self.hits)?;
        // One date a window, or fewer: a band is drawn from hundreds of resamples.
        let signals = self.hits.len().div_ceil(windows.horizon().get());
        let (mut confidences, mut hits, mut dates) = (Vec::new(), Vec::new(), 0);
        for index in windows.apart().iter().step_by(signals.div_ceil(5_000).max(1)) {
            let rows = self.begins[*index]..self.begins.get(index + 1).copied().unwrap_or(self.hits.len());
            confidences.extend_from_slice(&self.confidences[rows.clone()]);
            hits.extend_from_slice(&self.hits[rows]);
            dates += 1;
        }
        let apart = Calibration::new(&confidences, &hits)?;
        Some(ConfidenceMeasure {
            signals: all.observations,
            brier: all.brier,
            miscalibration: all.miscalibration,
            discrimination: all.discrimination,
            uncertainty: all.uncertainty,
            deciles: all.deciles(),
            reliability: Reliability { dates, signals: apart.observations, points: apart.consistency_band() },
        })
    }
}

/// The middle of the returns of a date.
#[derive(Clone, Copy)]
pub(super) struct Center {
    pub(super) mean: f64,
    median: f64,
    /// The share of those above the median among those that are not the median.
    above: f64,
}

impl Center {
    /// Of some returns; those that are not a number do not count.
    pub(super) fn new(returns: &[f64]) -> Self {
        let mut sorted: Vec<f64> = returns.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        if count == 0 {
            return Self { mean: f64::NAN, median: f64::NAN, above: f64::NAN };
        }
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        let above = sorted.iter().filter(|value| **value > median).count() as f64;
        let below = sorted.iter().filter(|value| **value < median).count() as f64;
        Self { mean: sorted.iter().sum::<f64>() / count as f64, median, above: above / (above + below) }
    }

    /// Whether a return went the way of a signal; none if it is the median.
    pub(super) fn agrees(&self, is_sell: bool, value: f64) -> Option<bool> {
        (value != self.median).then_some((value < self.median) == is_sell)
    }

    /// The chance of that if the signal knows nothing.
    fn luck(&self, is_sell: bool) -> f64 {
        if is_sell { 1.0 - self.above } else { self.above }
    }
}

/// The signals of a side on all dates, for returns over some windows.
fn side_measure(sides: impl Iterator<Item = Side> + Clone, windows: Windows) -> SideMeasure {
    let mut all = Side { excess: mean(sides.clone().filter_map(|side| side.excess)), ..Side::default() };
    let (mut share, mut of_dates) = (Share::default(), Vec::new());
    for side in sides {
        all.signals += side.signals;
        all.hits += side.hits;
        all.even += side.even;
        all.luck += side.luck;
        let decided = Share { hits: side.hits, of: side.signals - side.even };
        share += decided;
        of_dates.push((decided, if decided.of > 0 { side.luck / decided.of as f64 } else { 0.0 }));
    }
    let series = OverlappingSeries::of_shares(of_dates, windows);
    SideMeasure { side: all, hit_rate: share.rate(), test: series.and_then(|series| series.cosine_test().ok()) }
}

/// Rewritten signals while dates are added.
#[derive(Default)]
struct RewrittenSums {
    counts: Rewritten,
    /// The correlations by date of each variant.
    variants: [Vec<f64>; 5],
}

impl RewrittenSums {
    /// Adds a date with its correlation as it stands today.
    fn add(&mut self, date: &DateFrame<'_>, today: Option<f64>) {
        let (mut has_altered, mut has_removed, mut has_added) = (false, false, false);
        for cell in date.cells {
            has_altered |= cell.is_altered();
            has_removed |= cell.is_withdrawn();
            has_added |= cell.is_added;
            let counts = &mut self.counts;
            match (cell.is_added, cell.is_withdrawn(), cell.is_altered()) {
                (true, is_removed, _) => counts.added += u64::from(!is_removed),
                (_, true, _) => counts.removed += 1,
                (.., is_altered) => {
                    *(if is_altered { &mut counts.altered } else { &mut counts.matched }) += 1;
                    counts.turned += u64::from(cell.has_turned());
                }
            }
        }
        let correlation = |is_taken: &dyn Fn(&Cell) -> bool, score: &dyn Fn(&Cell) -> f64| {
            let scores = date.scores(|cell| is_taken(cell).then(|| score(cell)));
            let of = scores.correlation(&date.by_lag[0]).rank_correlation;
            of.filter(|_| scores.count() >= MIN_NAMES)
        };
        let latest = |cell: &Cell| if cell.is_withdrawn() { cell.first } else { cell.latest };
        // Where nothing changed, today is what was seen first.
        let has_changed = has_altered || has_removed || has_added;
        let base = if has_changed { correlation(&|cell| !cell.is_added, &|cell| cell.first) } else { today };
        let altered = if has_altered { correlation(&|cell| !cell.is_added, &latest) } else { base };
        let is_left = |cell: &Cell| !cell.is_added && !cell.is_withdrawn();
        let removed = if has_removed { correlation(&is_left, &|cell| cell.first) } else { base };
        let added = if has_added { correlation(&|_| true, &|cell| cell.first) } else { base };
        for (variant, of) in self.variants.iter_mut().zip([base, altered, removed, added, today]) {
            variant.extend(of);
        }
    }

    fn finish(self) -> Rewritten {
        let [base, with_altered, without_removed, with_added, today] =
            self.variants.map(|variant| mean(variant.into_iter()));
        Rewritten { base, with_altered, without_removed, with_added, today, ..self.counts }
    }
}

/// Signals that are no longer listed, while dates are added.
#[derive(Default)]
struct GoneSums {
    names: BTreeSet<u16>,
    delisted: BTreeSet<u16>,
    signals: u64,
    returns: f64,
    /// By date, the sum of the returns less the mean of the date.
    excesses: Vec<f64>,
    windows: Vec<Range<usize>>,
}

impl GoneSums {
    fn add(&mut self, date: &DateFrame<'_>, delisted: &HashSet<u16>) {
        let mean = date.returns.iter().sum::<f64>() / date.returns.len() as f64;
        let mut excess = 0.0;
        for (cell, value) in date.cells.iter().zip(&date.returns).filter(|(cell, _)| cell.is_withdrawn()) {
            self.names.insert(cell.ticker);
            if delisted.contains(&cell.ticker) {
                self.delisted.insert(cell.ticker);
            }
            self.signals += 1;
            self.returns += value;
            excess += value - mean;
        }
        self.excesses.push(excess);
    }

    fn finish(self) -> Gone {
        let signals = self.signals as f64;
        let excess = (signals > 0.0).then(|| self.excesses.iter().sum::<f64>() / signals);
        let series = OverlappingSeries::new(self.excesses, Windows::new(self.windows));
        Gone {
            signals: self.signals,
            names: self.names.len() as u64,
            names_delisted: self.delisted.len() as u64,
            mean_return: (signals > 0.0).then(|| self.returns / signals),
            excess,
            test: series.cosine_test().ok(),
        }
    }
}

/// The mean of some numbers; none without any.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u64), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}
