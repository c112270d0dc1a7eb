//! The measures of a pair: by date as published, as it stands today, and the difference that rewriting makes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::{OverlappingSeries, RankedCases, Ranks, Share, Windows};
use chrono::Datelike;

use super::PairSkill;
use super::answer::{
    ConfidenceMeasure, DateCorrelation, DateReturns, FeatureMeasure, FeatureSkill, Gone, LagMeasure, Measure,
    NewsMeasure, RankMeasure, Reliability, Rewritten, SectorMeasure, SeriesMeasure, Side, SideMeasure, State,
    YearMeasure,
};
use super::cells::{Cell, PairCells, is_sell};
use super::frame::{Center, DateFrame, LAGS, Measuring, mean};
use super::hindsight::HindsightCounts;
use super::news::GROUPS;
use crate::interface::{Period, Regime};
use crate::prices::horizon::EntrySpan;
use crate::prices::{Day, date};

/// A date with fewer names is not measured.
const MIN_NAMES: usize = 5;

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

/// What became of a pair: its measures, those of the features of its news if they are measured at it, and its hindsight.
pub(super) type Measured = (PairSkill, Vec<FeatureSkill>, HindsightCounts);

impl Measuring<'_> {
    /// Measures the signals of a pair.
    pub(super) fn measure(&self, (period, regime): (Period, Regime), mut of_pair: PairCells) -> Measured {
        let pair = (period, regime);
        of_pair.sort();
        let mut tallies = State::ALL.map(|state| Tally::new(state, self));
        let at_news = self.news.filter(|news| news.is_measured_at(pair));
        let names = at_news.map_or(&[][..], |news| &news.features);
        let tally = |state| (RankTally::new(state, self), Series::default());
        let mut features: Vec<[(RankTally, Series); 3]> = names.iter().map(|_| State::ALL.map(tally)).collect();
        let (mut rewritten, mut gone) = (RewrittenSums::default(), GoneSums::default());
        let mut hindsight = HindsightCounts::default();
        let mut votes = of_pair.votes.as_slice();
        for cells in of_pair.cells.chunk_by(|one, next| one.day == next.day) {
            let date = self.date_frame(period, cells);
            let published = date.scores(|cell| cell.is_published.then_some(cell.first));
            let today = date.scores(|cell| Some(cell.latest));
            let left = date.scores(|cell| cell.is_published.then_some(cell.latest));
            let news = self.news.map(|news| news.of_date(pair, cells));
            let [news_published, news_today] =
                news.as_ref().map_or([&[][..]; 2], |news| news.groups.each_ref().map(Vec::as_slice));
            tallies[0].add(&published, &date, news_published, period, self);
            let correlation = tallies[1].add(&today, &date, news_today, period, self);
            tallies[2].ranks.add_difference([&published, &left], &date, date.entries(&published));
            for (feature, [first, latest, both]) in features.iter_mut().enumerate() {
                let Some(news) = &news else { continue };
                let [of_first, of_latest] = news.values(feature);
                let without = |values: &[f64], other: &[f64]| -> Ranks {
                    Ranks::new(values.iter().zip(other).map(|(value, other)| value + 0.0 * other).collect())
                };
                let changed = [without(&of_first, &of_latest), without(&of_latest, &of_first)];
                for ((ranks, partial), values, given) in [(first, of_first, &published), (latest, of_latest, &today)] {
                    let (values, entries) = (Ranks::new(values), date.entries(given));
                    if values.count() > 0 {
                        ranks.add(&values, &date, entries);
                        partial.add(entries, values.partial_correlation(&date.by_lag[0], given));
                    }
                }
                both.0.add_difference([&changed[0], &changed[1]], &date, date.entries(&left));
            }
            rewritten.add(&date, correlation);
            let window = date.entries(&date.by_lag[0]).window(self.exits, period, 0);
            gone.add(&date, self.delisted, window.clone());
            let (of_date, rest) = votes.split_at(votes.iter().take_while(|vote| vote.day == cells[0].day).count());
            hindsight.add(&date, of_date, window, self);
            votes = rest;
        }
        let [first, latest] = of_pair.flips.map(Share::rate);
        let mut flips = [first, latest, None].into_iter();
        let finish = |(ranks, partial): (RankTally, Series)| FeatureMeasure {
            state: ranks.state,
            partial: (ranks.state != State::Difference).then(|| self.series(&partial, period, 0)),
            ranks: ranks.finish(self, period),
        };
        let features = names.iter().cloned().zip(features);
        let features =
            features.map(|(feature, tallies)| FeatureSkill { feature, period, regime, measures: tallies.map(finish) });
        let skill = PairSkill {
            period,
            regime,
            signals: of_pair.counts,
            measures: tallies.map(|tally| tally.finish(self, period, flips.next().flatten())),
            rewritten: rewritten.finish(),
            gone: gone.finish(),
            hindsight: hindsight.test(),
        };
        (skill, features.collect(), hindsight)
    }

    fn series(&self, series: &Series, period: Period, lag: usize) -> SeriesMeasure {
        let windows = self.windows(period, lag, series.0.iter().map(|date| date.0));
        let (horizon, whole) = (windows.horizon.get() as u64, windows.whole as u64);
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

/// The rank correlations of a state while dates are added.
#[derive(Default)]
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
        Self { state, by_sector, ..Self::default() }
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
        let measure = |series: &Series| measuring.series(series, period, 0);
        let (mut whole, mut years) = (Series::default(), BTreeMap::<i32, Series>::new());
        for (entries, of) in &self.dates {
            let known = of.correlation.map(|correlation| (*entries, of.names, correlation));
            years.entry(date(of.day).year()).or_default().0.extend(known);
            whole.0.extend(known);
        }
        let lags = self.by_lag.iter().enumerate().filter(|_| is_state);
        let sectors = measuring.sectors.0.iter().zip(&self.by_sector).filter(|(_, series)| !series.0.is_empty());
        let windows = measuring.windows(period, 0, whole.0.iter().map(|of| of.0));
        let correlations: Vec<f64> = whole.0.iter().map(|of| of.2).collect();
        let SeriesMeasure { dates, names, correlation, horizon, windows: whole_windows, test } = measure(&whole);
        let positive = mean(correlations.iter().map(|correlation| f64::from(u8::from(*correlation > 0.0))));
        let series = OverlappingSeries::new(correlations, windows);
        RankMeasure {
            dates,
            constant_dates: self.dates.len() as u64 - dates,
            thin_dates: self.few,
            names,
            correlation,
            positive,
            horizon,
            windows: whole_windows,
            test,
            disjoint: series.disjoint_test().ok(),
            refusal: series.cosine_test().err(),
            p_holm: None,
            p_benjamini_hochberg: None,
            by_lag: lags
                .map(|(lag, series)| LagMeasure { lag: lag as u64, measure: measuring.series(series, period, lag) })
                .collect(),
            by_year: years.iter().map(|(year, series)| YearMeasure { year: *year, measure: measure(series) }).collect(),
            by_sector: sectors
                .map(|(sector, series)| SectorMeasure { sector: sector.clone(), measure: measure(series) })
                .collect(),
            within_sectors: (!self.by_sector.is_empty()).then(|| measure(&self.within_sectors)),
            given_beta: is_state.then(|| measure(&self.given_beta)),
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
#[derive(Default)]
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
        let by_news = vec![Default::default(); measuring.news.map_or(0, |news| news.windows.len())];
        Self { ranks: RankTally::new(state, measuring), by_news, ..Self::default() }
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
        // What is replaced is sold, and as much is bought.
        let break_even = |share: f64| Some(highest? / share / 2.0);
        let mut by_news = Vec::new();
        for ((window, _), groups) in measuring.news.map_or(&[][..], |news| &news.windows).iter().zip(&self.by_news) {
            for (articles, series) in GROUPS.iter().zip(groups).filter(|(_, series)| !series.0.is_empty()) {
                let measure = measuring.series(series, period, 0);
                by_news.push(NewsMeasure { window: *window, articles, measure });
            }
        }
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
            break_even: turnover.filter(|share| *share > 0.0).and_then(break_even),
            flips,
            by_news,
            returns,
            ranks: self.ranks.finish(measuring, period),
        }
    }

    /// Confidences as probabilities, for returns over some windows.
    fn confidence(&self, windows: &Windows) -> Option<ConfidenceMeasure> {
        let all = Calibration::new(&self.confidences, &self.hits)?;
        // One date a window, or fewer: a band is drawn from hundreds of resamples.
        let signals = self.hits.len().div_ceil(windows.horizon.get());
        let (mut confidences, mut hits, mut dates) = (Vec::new(), Vec::new(), 0);
        for index in windows.apart.iter().step_by(signals.div_ceil(5_000).max(1)) {
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
    fn add(&mut self, date: &DateFrame<'_>, delisted: &HashSet<u16>, window: Range<usize>) {
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
        self.windows.push(window);
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
