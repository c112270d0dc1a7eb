//! Counts the rows of a dataset as they are written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{ArrowNativeType, Float64Type, Int8Type, Int32Type, TimestampMicrosecondType};
use chrono::NaiveDate;

use super::agreement::Patterns;
use super::calendar::{SeenDays, Step};
use super::histogram::Histogram;
use super::steps::Steps;
use super::succession::Succession;
use super::ticker_numbers::TickerNumbers;
use super::{ArticleCounts, ColumnFacts, Facts, Flips, PairFacts, SignalTotals, TickerFacts, WindowFacts};
use crate::columns::{Column, Rows};
use crate::interface::{Period, Regime, Signal};
use crate::plan::{self, DatasetPlan, Feature, RowKind};
use crate::split_days::TimesOfDay;
use crate::time::MICROS_PER_DAY;

/// The most pairs of period and regime; a bit for each fits into 128.
const PAIRS: usize = Period::COUNT * Regime::ALL.len();

/// No number assigned yet.
const NEW: u8 = u8::MAX;

/// The pairs of period and regime seen so far, each with a number. Few of all pairs usually occur, so their counters
/// sit close together.
#[derive(Debug)]
struct Pairs {
    indices: [u8; PAIRS],
    count: u8,
}

impl Pairs {
    /// The number of a pair; a new pair gets the next one.
    fn index_of(&mut self, pair: usize) -> u8 {
        let index = &mut self.indices[pair];
        if *index == NEW {
            *index = self.count;
            self.count += 1;
        }
        *index
    }
}

/// Sets of pairs, each with a number: the tickers of a dataset have few different sets.
#[derive(Debug)]
struct PairSets {
    /// A bit per pair. The first set is empty.
    sets: Vec<u128>,
    index_of: HashMap<u128, u32>,
    /// The most recent lookup.
    last: (u128, u32),
}

impl Default for PairSets {
    fn default() -> Self {
        Self { sets: vec![0], index_of: HashMap::from([(0, 0)]), last: (0, 0) }
    }
}

impl PairSets {
    /// The number of the union of a set and some more pairs.
    #[inline]
    fn with(&mut self, number: u32, more: u128) -> u32 {
        let set = self.sets[number as usize] | more;
        if self.last.0 != set {
            let index = *self.index_of.entry(set).or_insert_with(|| {
                self.sets.push(set);
                (self.sets.len() - 1) as u32
            });
            self.last = (set, index);
        }
        self.last.1
    }

    fn get(&self, number: u32) -> u128 {
        self.sets[number as usize]
    }
}

/// Counters over the rows so far.
///
/// Rows may come in any order, but how signals follow one another and agree is counted only in some (see
/// [`Facts::persistence`] and [`Facts::agreements`]). Counting is fastest when rows of one ticker, and of one date, come
/// together.
#[derive(Debug)]
pub(crate) struct Tally {
    of: RowKind,
    rows: u64,
    /// Rows that rest on claims; none if claims do not count.
    claimed: Option<u64>,
    columns: Vec<ColumnFacts>,
    tickers: TickerNumbers,
    calendar: SeenDays,
    undrawn: Undrawn,
    pairs: Pairs,
    pair_sets: PairSets,
    /// Totals by day and pair.
    totals: Vec<Vec<SignalTotals>>,
    of_tickers: Vec<TickerTally>,
    times: TimesOfDay,
    confidences: [Histogram; 2],
    windows: Vec<WindowFacts>,
    /// `None` if dates do not ascend within a series.
    succession: Option<Succession>,
    /// `None` if the rows of a ticker and date do not come together.
    patterns: Option<Patterns>,
}

/// Counters of a ticker.
#[derive(Debug, Default)]
struct TickerTally {
    /// By day, the number of the set of pairs with a signal; several signals on one day count once.
    days: Steps,
    /// Its pairs, a bit for each.
    pairs: u128,
    totals: SignalTotals,
}

/// Counters over rows whose dates are not plotted.
#[derive(Debug, Default)]
struct Undrawn {
    rows: u64,
    days: HashSet<i64>,
    /// Totals by pair.
    totals: Vec<SignalTotals>,
}

impl Tally {
    /// An empty tally for a plan.
    pub(crate) fn new(plan: &DatasetPlan) -> Self {
        let windows = plan.features.iter().filter_map(|feature| match feature {
            Feature::Count(days) => Some(WindowFacts {
                length: *days,
                column: feature.to_string(),
                with_news: 0,
                unknown: 0,
                days: Vec::new(),
                unknown_days: Vec::new(),
            }),
            _ => None,
        });
        Self {
            of: plan.rows,
            rows: 0,
            claimed: plan.columns.contains(&plan::Column::Claimed).then_some(0),
            columns: ColumnFacts::of(&plan.schema),
            tickers: TickerNumbers::default(),
            calendar: SeenDays::default(),
            undrawn: Undrawn::default(),
            pairs: Pairs { indices: [NEW; PAIRS], count: 0 },
            pair_sets: PairSets::default(),
            totals: Vec::new(),
            of_tickers: Vec::new(),
            times: TimesOfDay::default(),
            confidences: [Histogram::default(), Histogram::default()],
            windows: windows.collect(),
            succession: dates_ascend(&plan.sort).then(Succession::default),
            patterns: are_together(&plan.sort).then(Patterns::default),
        }
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Counts rows of a long dataset.
    pub(crate) fn count(&mut self, rows: &Rows) {
        self.rows += rows.num_rows() as u64;
        self.columns.iter_mut().for_each(|column| column.count(rows));
        if let (Some(claimed), Some(column)) = (&mut self.claimed, rows.column(plan::Column::Claimed.name())) {
            let flags = column.values().as_boolean();
            *claimed += column.rows_where(|index| flags.value(index)) as u64;
        }
        if self.of == RowKind::Article {
            return self.count_articles(rows);
        }
        let (tickers, dates) = (column(rows, "ticker"), column(rows, "date"));
        let names = tickers.values().as_string::<i32>();
        let moments = dates.values().as_primitive::<TimestampMicrosecondType>().values();
        for window in &mut self.windows {
            let column = column(rows, &window.column);
            let counts = column.values().as_primitive::<Int32Type>().values();
            for (start, end) in (column.boundaries() | dates.boundaries()).runs() {
                let index = column.index(start);
                let (rows, by_day) = match column.values().is_valid(index) {
                    true if counts[index] == 0 => continue,
                    true => (&mut window.with_news, &mut window.days),
                    false => (&mut window.unknown, &mut window.unknown_days),
                };
                *rows += (end - start) as u64;
                if let Some(day) = self.calendar.index_of(moments[dates.index(start)]) {
                    *at(by_day, day) += (end - start) as u64;
                }
            }
        }
        let signals = SignalColumns::of(rows, &mut self.pairs);
        // Most rows have the ticker and the date of the row before.
        for (start, end) in (tickers.boundaries() | dates.boundaries()).runs() {
            let ticker = self.tickers.number(names.value(tickers.index(start)));
            if ticker == self.of_tickers.len() {
                self.of_tickers.push(TickerTally::default());
            }
            let moment = moments[dates.index(start)];
            self.times.add(ticker, moment);
            let day = self.calendar.index_of(moment);
            let totals = match day {
                Some(day) => at(&mut self.totals, day),
                None => {
                    self.undrawn.rows += (end - start) as u64;
                    self.undrawn.days.insert(moment.div_euclid(MICROS_PER_DAY));
                    &mut self.undrawn.totals
                }
            };
            if totals.len() < usize::from(self.pairs.count) {
                totals.resize(self.pairs.count.into(), SignalTotals::default());
            }
            if let Some(patterns) = &mut self.patterns {
                patterns.begin(ticker, moment);
            }
            let mut succession = self.succession.as_mut().map(|all| all.ticker(ticker, self.pairs.count));
            // Added to in the order of the rows, wherever batches end: a sum of floats depends on it.
            let (mut pairs, mut of_ticker) = (0, self.of_tickers[ticker].totals);
            for (pair, signal, confidence) in signals.of_rows(start..end) {
                pairs |= 1 << pair;
                let (place, is_buy) = (Histogram::place(confidence), signal == Signal::Buy as u8);
                self.confidences[usize::from(signal)].count_at(place);
                let one = SignalTotals { rows: 1, buys: u64::from(is_buy), confidence };
                let totals = &mut totals[usize::from(pair)];
                *totals = *totals + one;
                of_ticker = of_ticker + one;
                if let Some(succession) = &mut succession {
                    succession.count(pair, place, is_buy);
                }
                if let Some(patterns) = &mut self.patterns {
                    patterns.count(pair, is_buy);
                }
            }
            let tally = &mut self.of_tickers[ticker];
            tally.pairs |= pairs;
            tally.totals = of_ticker;
            if let Some(day) = day {
                tally.days.update(day as u32, |known| self.pair_sets.with(known, pairs));
            }
        }
    }

    /// Counts the tickers and the days of a dataset of news.
    fn count_articles(&mut self, rows: &Rows) {
        let (tickers, dates) = (column(rows, "ticker"), column(rows, "date"));
        let names = tickers.values().as_string::<i32>();
        let moments = dates.values().as_primitive::<TimestampMicrosecondType>().values();
        for (start, end) in (tickers.boundaries() | dates.boundaries()).runs() {
            let ticker = self.tickers.number(names.value(tickers.index(start)));
            if ticker == self.of_tickers.len() {
                self.of_tickers.push(TickerTally::default());
            }
            let moment = moments[dates.index(start)];
            if self.calendar.index_of(moment).is_none() {
                self.undrawn.rows += (end - start) as u64;
                self.undrawn.days.insert(moment.div_euclid(MICROS_PER_DAY));
            }
        }
    }

    /// The facts, once all rows are counted.
    pub(crate) fn finish(self) -> Facts {
        let days: Vec<_> = self.calendar.days().collect();
        let mut order: Vec<usize> = (0..days.len()).collect();
        order.sort_unstable_by_key(|index| days[*index]);
        let of_pair = |pair: usize| {
            let index = usize::from(self.pairs.indices[pair]);
            let days = order.iter().map(|&day| self.totals.get(day)?.get(index).copied());
            let days: Vec<SignalTotals> = days.map(Option::unwrap_or_default).collect();
            let undrawn = self.undrawn.totals.get(index).copied().unwrap_or_default();
            let period = Period::all().nth(pair / Regime::ALL.len()).expect("a pair has a period");
            let regime = Regime::ALL[pair % Regime::ALL.len()];
            let mut pair = PairFacts { period, regime, days, undrawn, flips: Flips::default() };
            let signals = pair.total().rows;
            if let Some(succession) = &self.succession {
                pair.flips = succession.of_pair(index, signals);
            }
            (signals > 0).then_some((pair, index as u8))
        };
        let (pairs, numbers): (Vec<PairFacts>, Vec<u8>) = (0..PAIRS).filter_map(of_pair).unzip();
        let months: Vec<NaiveDate> =
            days.iter().map(|day| Step::Month.start(*day)).collect::<BTreeSet<_>>().into_iter().collect();
        let month_of_day: Vec<usize> =
            days.iter().map(|day| months.partition_point(|month| *month < Step::Month.start(*day))).collect();
        let names = self.tickers.into_names();
        let of_ticker = |(number, (name, of_ticker)): (usize, (String, TickerTally))| {
            let TickerTally { days: sets, pairs, totals } = of_ticker;
            let mut of_months = vec![0; months.len()];
            for (day, set) in sets.days() {
                of_months[month_of_day[day as usize]] += self.pair_sets.get(set).count_ones();
            }
            let months = months.iter().copied().zip(of_months).filter(|(_, signals)| *signals > 0).collect();
            let of_ticker = |succession: &Succession| succession.of_ticker(number, totals.rows);
            let flips = self.succession.as_ref().map(of_ticker).unwrap_or_default();
            let places = numbers.iter().enumerate().filter(|(_, number)| pairs >> **number & 1 == 1);
            let pair_places = places.map(|(index, _)| index as u8).collect();
            TickerFacts { name, pairs: pairs.count_ones(), pair_places, totals, flips, months }
        };
        let mut tickers: Vec<TickerFacts> = names.into_iter().zip(self.of_tickers).enumerate().map(of_ticker).collect();
        tickers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let in_order =
            |counts: &Vec<u64>| order.iter().map(|day| counts.get(*day).copied().unwrap_or_default()).collect();
        let windows = self.windows.into_iter().map(|window| WindowFacts {
            days: in_order(&window.days),
            unknown_days: in_order(&window.unknown_days),
            ..window
        });
        Facts {
            claimed: self.claimed,
            rows: self.rows,
            dates: self.calendar.bounds(),
            undrawn: self.undrawn.rows,
            undrawn_days: self.undrawn.days.len() as u64,
            seen_live: None,
            repeated: 0,
            split_days: self.times.split(),
            many_times: self.times.many(),
            are_early: self.times.are_early(),
            contradictions: 0,
            articles: ArticleCounts::default(),
            columns: self.columns,
            tickers,
            pairs,
            days: order.iter().map(|index| days[*index]).collect(),
            confidences: self.confidences,
            windows: windows.collect(),
            persistence: self.succession.map(Succession::into_persistence),
            agreements: self.patterns.and_then(|patterns| patterns.finish(&numbers)),
            news: None,
        }
    }
}

/// Whether a sort order keeps the dates of a series in order: nothing that differs within a series goes before them.
fn dates_ascend(sort: &[plan::Column]) -> bool {
    sort.iter().take_while(|column| **column != plan::Column::Date).all(|column| plan::Column::KEY.contains(column))
}

/// Whether a sort order keeps the rows of a ticker and date together.
fn are_together(sort: &[plan::Column]) -> bool {
    matches!(sort, [plan::Column::Ticker, plan::Column::Date, ..] | [plan::Column::Date, plan::Column::Ticker, ..])
}

/// The columns that differ from signal to signal of one ticker and date.
struct SignalColumns {
    /// The number of each row's pair.
    pairs: Vec<u8>,
    signals: Vec<u8>,
    confidences: ScalarBuffer<f64>,
}

impl SignalColumns {
    fn of(rows: &Rows, pairs: &mut Pairs) -> Self {
        let periods = NumberedChoices::of(rows, "period", |text| text.parse().map_or(0, Period::index));
        let regimes =
            NumberedChoices::of(rows, "regime", |text| text.parse().map_or(0, |regime: Regime| regime as usize));
        let signals =
            NumberedChoices::of(rows, "signal", |text| text.parse().map_or(0, |signal: Signal| signal as usize));
        // The number of the pair of each period and regime in the dictionaries.
        let mut indices = vec![NEW; periods.numbers.len() * regimes.numbers.len()];
        let index_of = |(period, regime): (&i8, &i8)| {
            let (period, regime) = (period.as_usize(), regime.as_usize());
            let index = &mut indices[period * regimes.numbers.len() + regime];
            if *index == NEW {
                *index = pairs.index_of(periods.numbers[period] * Regime::ALL.len() + regimes.numbers[regime]);
            }
            *index
        };
        let confidences = flat(rows, "confidence");
        Self {
            pairs: periods.keys.iter().zip(&*regimes.keys).map(index_of).collect(),
            signals: signals.keys.iter().map(|key| signals.numbers[key.as_usize()] as u8).collect(),
            confidences: confidences.as_primitive::<Float64Type>().values().clone(),
        }
    }

    /// Pair, signal and confidence of some rows.
    fn of_rows(&self, rows: Range<usize>) -> impl Iterator<Item = (u8, u8, f64)> {
        let pairs = self.pairs[rows.clone()].iter().zip(&self.signals[rows.clone()]);
        pairs.zip(&self.confidences[rows]).map(|((pair, signal), confidence)| (*pair, *signal, *confidence))
    }
}

/// A column of a closed set, with the number of each dictionary entry.
struct NumberedChoices {
    keys: ScalarBuffer<i8>,
    numbers: Vec<usize>,
}

impl NumberedChoices {
    fn of(rows: &Rows, name: &str, number: impl Fn(&str) -> usize) -> Self {
        let column = flat(rows, name);
        let dictionary = column.as_dictionary::<Int8Type>();
        let numbers = dictionary.values().as_string::<i32>().iter().flatten().map(number).collect();
        Self { keys: dictionary.keys().values().clone(), numbers }
    }
}

/// The values of a column, one per row.
fn flat(rows: &Rows, name: &str) -> ArrayRef {
    column(rows, name).flat().expect("each row has one of the values")
}

/// The entry at an index; the list grows as needed.
fn at<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if index >= list.len() {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

fn column<'a>(rows: &'a Rows, name: &str) -> &'a Column {
    rows.column(name).expect("the rows of a dataset have its columns")
}
