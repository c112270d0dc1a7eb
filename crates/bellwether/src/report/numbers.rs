//! The numbers of a report: what the rows of a dataset say.
//!
//! The rows come ticker by ticker, as the archive gives them. Only sums per day, ticker, pair and confidence are kept, so
//! memory does not grow with rows.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowNativeType, DataType, FieldRef, Float64Type, Int8Type, Int32Type, TimestampMicrosecondType,
};
use bellwether_statistics::PairedAnswers;
use chrono::{DateTime, NaiveDate};
use schemars::JsonSchema;
use serde::Serialize;

use super::calendar::{Axis, Step};
use super::histogram::Histogram;
use crate::error::{Error, Result};
use crate::facts::is_drawn;
use crate::interface::{Period, Regime, Signal};
use crate::plan::{DatasetPlan, Days, Feature, Statistic};
use crate::time::MICROS_PER_DAY;

/// The most pairs whose agreement is counted, a bit for each.
const MAX_PAIRS: usize = 12;

/// What the rows of a dataset say.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// The tickers, by name; none of a dataset of news.
    pub tickers: Vec<TickerNumbers>,
    /// Pairs of period and regime, shortest period first; none of a dataset of news.
    pub pairs: Vec<PairNumbers>,
    /// Days from 1900 to 2099 that have rows, in order.
    pub days: Vec<NaiveDate>,
    /// Rows dated on other days. They are not drawn over time but count everywhere else.
    pub undrawn: u64,
    /// Number of days that those rows are on.
    pub undrawn_days: u64,
    /// Confidences of sells and of buys.
    pub confidences: [Histogram; 2],
    /// Confidences of signals with a successor in their series.
    pub followed: Histogram,
    /// Confidences of signals whose successor is the opposite.
    pub flipped: Histogram,
    /// How often any two pairs agree, in order; `None` if there are too many.
    pub agreements: Option<Vec<Agreement>>,
    /// The news windows.
    pub windows: Vec<WindowNumbers>,
    /// All columns that are built, under their own names.
    pub columns: Vec<ColumnNumbers>,
}

/// The signals of a ticker.
#[derive(Clone, Debug, Default)]
pub struct TickerNumbers {
    /// Its symbol.
    pub name: String,
    /// Totals of its signals, whatever their dates.
    pub totals: Totals,
    /// Which of [`Numbers::pairs`] it has, with the last signal of each.
    pub latest: Vec<Latest>,
    /// For each month that has signals, by its first day: the number of pairs with a signal, summed over days. Several
    /// signals of a pair on one day count once.
    pub months: Vec<(NaiveDate, u64)>,
}

/// The last signal of a series, and the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Latest {
    /// Which of [`Numbers::pairs`].
    pub pair: usize,
    /// Its date, in naive microseconds.
    pub date: i64,
    /// Its confidence, negative for a sell.
    pub score: f64,
    /// The score before it.
    pub before: Option<f64>,
}

/// The signals of a pair of period and regime.
#[derive(Clone, Debug)]
pub struct PairNumbers {
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// All its signals.
    pub totals: Totals,
    /// Those of each of [`Numbers::days`].
    pub days: Vec<Totals>,
}

/// Totals of some signals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of signals.
    pub rows: u64,
    /// Number of buys.
    pub buys: u64,
    /// Sum of confidences.
    pub confidence: f64,
    /// What rounding has added to that sum, by which the next confidence is less.
    rounding: f64,
    /// Signals with a successor in their series.
    pub followed: u64,
    /// Those whose successor is the opposite signal.
    pub flipped: u64,
}

/// How often two pairs have the same signal for a ticker and a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Their indices in [`Numbers::pairs`], in order.
    pub pairs: [usize; 2],
    /// Tickers and dates for which both have a signal, and those where each is a buy.
    pub answers: PairedAnswers,
}

/// A news window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WindowNumbers {
    /// Its length.
    #[serde(rename = "window")]
    #[schemars(with = "String")]
    pub length: Days,
    /// The signals with news in it.
    pub with_news: u64,
    /// The signals for which it is unknown what was in it.
    pub unknown: u64,
    /// Both, for each of [`Numbers::days`].
    #[serde(skip)]
    pub days: Vec<[u64; 2]>,
}

/// A column of a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ColumnNumbers {
    /// Its name.
    pub name: String,
    /// Rows without a value.
    pub nulls: u64,
    /// The lowest value, if it has numbers.
    pub lowest: Option<f64>,
    /// The highest value, if it has numbers.
    pub highest: Option<f64>,
}

/// Coverage of a dataset: the signals present out of those possible.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The time axis.
    pub axis: Axis,
    /// Per bucket, days with rows of any ticker.
    pub days: Vec<u64>,
    /// Per bucket, tickers with rows.
    pub tickers: Vec<u64>,
    /// The tickers with gaps, the worst first.
    pub incomplete: Vec<TickerCoverage>,
}

/// Coverage of one ticker.
#[derive(Clone, Debug)]
pub struct TickerCoverage {
    /// Its symbol.
    pub ticker: String,
    /// Per bucket, days with a signal, summed over its pairs; and the same if each of its pairs had a signal on every day
    /// that any ticker has one for it.
    pub days: Vec<(u64, u64)>,
}

/// Rows that were taken, ticker by ticker.
pub(crate) struct Counting {
    /// The windows, each with the column of its number of articles.
    windows: Vec<(Days, String)>,
    /// The pairs in the order in which they were seen, with the signals of the tickers before.
    pairs: Vec<((Period, Regime), Totals)>,
    /// By days since 1970: the signals of each pair, and how many rows have news in each window or may have some.
    by_day: BTreeMap<i64, (Vec<Totals>, Vec<[u64; 2]>)>,
    /// The series of the last ticker, by pair.
    series: Vec<Option<Series>>,
    /// The last date of the last ticker, with a bit for each pair that has a signal then, and for each that has a buy.
    date: (i64, u64, u64),
    /// How often there were such bits.
    patterns: HashMap<(u64, u64), u64>,
    found: Numbers,
}

/// A series while its signals are taken.
struct Series {
    totals: Totals,
    latest: Latest,
    is_buy: bool,
    confidence: f64,
}

impl Counting {
    /// An empty count for a plan.
    pub(crate) fn new(plan: &DatasetPlan) -> Self {
        let windows = plan.features.iter().filter_map(|feature| match feature {
            Feature::Window(Statistic::Count, days) => Some((*days, feature.to_string())),
            _ => None,
        });
        let column = |it: &FieldRef| ColumnNumbers { name: it.name().clone(), nulls: 0, lowest: None, highest: None };
        let columns = plan.schema.fields().iter().map(column).collect();
        Self {
            windows: windows.collect(),
            pairs: Vec::new(),
            by_day: BTreeMap::new(),
            series: Vec::new(),
            date: (i64::MIN, 0, 0),
            patterns: HashMap::new(),
            found: Numbers { columns, ..Numbers::default() },
        }
    }

    /// Takes articles, of which only the columns are told.
    pub(crate) fn take_articles(&mut self, rows: &RecordBatch) -> Result<()> {
        self.found.columns.iter_mut().try_for_each(|column| column.widen(rows))
    }

    /// Takes signals, which come ticker by ticker, and by date.
    pub(crate) fn take(&mut self, rows: &RecordBatch) -> Result<()> {
        self.take_articles(rows)?;
        let column = |name: &str| rows.column_by_name(name).expect("the rows of a dataset have its columns");
        let names = column("ticker").as_string::<i32>();
        let dates = column("date").as_primitive::<TimestampMicrosecondType>().values();
        let confidences = column("confidence").as_primitive::<Float64Type>().values();
        let [periods, regimes, signals] =
            ["period", "regime", "signal"].map(|it| column(it).as_dictionary::<Int8Type>());
        let sides = signals.values().as_string::<i32>();
        let windows: Vec<_> = self.windows.iter().map(|(_, name)| column(name).as_primitive::<Int32Type>()).collect();
        // The number of each pair of the dictionaries.
        let mut known = vec![None; periods.values().len() * regimes.values().len()];
        for row in 0..rows.num_rows() {
            if self.found.tickers.last().is_none_or(|last| last.name != names.value(row)) {
                self.finish_ticker();
                self.found.tickers.push(TickerNumbers { name: names.value(row).to_owned(), ..Default::default() });
            }
            let [period, regime] = [periods, regimes].map(|column| column.keys().value(row).as_usize());
            let pair = *known[period * regimes.values().len() + regime].get_or_insert_with(|| {
                let period = periods.values().as_string::<i32>().value(period).parse().expect("it is a period");
                let regime = regimes.values().as_string::<i32>().value(regime).parse().expect("it is a regime");
                self.pairs.iter().position(|(pair, _)| *pair == (period, regime)).unwrap_or_else(|| {
                    self.pairs.push(((period, regime), Totals::default()));
                    self.series.push(None);
                    self.pairs.len() - 1
                })
            });
            let is_buy = sides.value(signals.keys().value(row).as_usize()) == Signal::Buy.as_str();
            self.add(pair, dates[row], is_buy, confidences[row]);
            let (_, of_windows) = self.by_day.entry(dates[row].div_euclid(MICROS_PER_DAY)).or_default();
            of_windows.resize(windows.len(), [0; 2]);
            for (window, [with_news, unknown]) in windows.iter().zip(of_windows) {
                *with_news += u64::from(window.is_valid(row) && window.value(row) > 0);
                *unknown += u64::from(window.is_null(row));
            }
        }
        Ok(())
    }

    /// Adds a signal of the last ticker.
    fn add(&mut self, pair: usize, date: i64, is_buy: bool, confidence: f64) {
        let (found, day) = (&mut self.found, date.div_euclid(MICROS_PER_DAY));
        let (of_day, _) = self.by_day.entry(day).or_default();
        of_day.resize(of_day.len().max(pair + 1), Totals::default());
        of_day[pair].add_signal(is_buy, confidence);
        found.confidences[usize::from(is_buy)].add(confidence);
        let score = if is_buy { confidence } else { -confidence };
        let mut latest = Latest { pair, date, score, before: None };
        let mut is_first_of_day = true;
        let mut all = Totals::default();
        if let Some(before) = &self.series[pair] {
            is_first_of_day = before.latest.date.div_euclid(MICROS_PER_DAY) != day;
            latest.before = Some(before.latest.score);
            all = before.totals;
            all.followed += 1;
            found.followed.add(before.confidence);
            if before.is_buy != is_buy {
                all.flipped += 1;
                found.flipped.add(before.confidence);
            }
        }
        all.add_signal(is_buy, confidence);
        self.series[pair] = Some(Series { totals: all, latest, is_buy, confidence });
        let months = &mut found.tickers.last_mut().expect("the signal has a ticker").months;
        if is_first_of_day && is_drawn(day) {
            let month = Step::Month.start(NaiveDate::from_epoch_days(day as i32).expect("it is drawn"));
            match months.last_mut() {
                Some((last, days)) if *last == month => *days += 1,
                _ => months.push((month, 1)),
            }
        }
        if self.date.0 != date {
            self.finish_date();
            self.date.0 = date;
        }
        let bit = if pair < MAX_PAIRS { 1 << pair } else { 0 };
        self.date.1 |= bit;
        self.date.2 |= if is_buy { bit } else { 0 };
    }

    fn finish_date(&mut self) {
        let (_, bits, buys) = std::mem::replace(&mut self.date, (i64::MIN, 0, 0));
        *self.patterns.entry((bits, buys)).or_default() += 1;
    }

    /// Sums up the series of the last ticker.
    fn finish_ticker(&mut self) {
        let Some(ticker) = self.found.tickers.last_mut() else { return };
        for (series, (_, totals)) in self.series.iter_mut().zip(&mut self.pairs) {
            if let Some(series) = series.take() {
                ticker.totals.add(series.totals);
                totals.add(series.totals);
                ticker.latest.push(series.latest);
            }
        }
        self.finish_date();
    }

    /// The numbers of all rows that were taken.
    pub(crate) fn finish(mut self) -> Numbers {
        self.finish_ticker();
        let Self { windows, pairs, by_day, patterns, mut found, .. } = self;
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by_key(|index| pairs[*index].0);
        for index in &order {
            let ((period, regime), totals) = pairs[*index];
            found.pairs.push(PairNumbers { period, regime, totals, days: Vec::new() });
        }
        for (length, _) in windows {
            found.windows.push(WindowNumbers { length, with_news: 0, unknown: 0, days: Vec::new() });
        }
        for (day, (totals, of_windows)) in by_day {
            for (window, [with_news, unknown]) in found.windows.iter_mut().zip(&of_windows) {
                window.with_news += with_news;
                window.unknown += unknown;
            }
            if !is_drawn(day) {
                found.undrawn_days += 1;
                found.undrawn += totals.iter().map(|totals| totals.rows).sum::<u64>();
                continue;
            }
            found.days.push(NaiveDate::from_epoch_days(day as i32).expect("it is drawn"));
            for (pair, index) in found.pairs.iter_mut().zip(&order) {
                pair.days.push(totals.get(*index).copied().unwrap_or_default());
            }
            found.windows.iter_mut().zip(of_windows).for_each(|(window, counts)| window.days.push(counts));
        }
        for ticker in &mut found.tickers {
            for latest in &mut ticker.latest {
                latest.pair = order.iter().position(|pair| *pair == latest.pair).expect("it is one of the pairs");
            }
            ticker.latest.sort_by_key(|latest| latest.pair);
        }
        found.tickers.sort_by(|one, other| one.name.cmp(&other.name));
        if (1..=MAX_PAIRS).contains(&order.len()) {
            found.agreements = Some(agreements(&patterns, &order));
        }
        found
    }
}

/// How often any two pairs agree, given how often which pairs have a signal and which of them a buy.
fn agreements(patterns: &HashMap<(u64, u64), u64>, order: &[usize]) -> Vec<Agreement> {
    let mut all = Vec::new();
    for (index, one) in order.iter().enumerate() {
        for (other_index, other) in order.iter().enumerate().skip(index + 1) {
            let mut found = PairedAnswers::default();
            for ((_, buys), count) in patterns.iter().filter(|((bits, _), _)| bits >> one & bits >> other & 1 == 1) {
                let [one, other] = [one, other].map(|pair| buys >> pair & 1);
                found.both += count;
                found.same += count * u64::from(one == other);
                found.yes = [found.yes[0] + count * one, found.yes[1] + count * other];
            }
            all.push(Agreement { pairs: [index, other_index], answers: found });
        }
    }
    all
}

impl ColumnNumbers {
    /// Counts the nulls of some rows, and widens the range to their numbers.
    fn widen(&mut self, rows: &RecordBatch) -> Result<()> {
        let Some(column) = rows.column_by_name(&self.name) else { return Ok(()) };
        self.nulls += column.null_count() as u64;
        if !column.data_type().is_numeric() {
            return Ok(());
        }
        let column = cast(column, &DataType::Float64).map_err(Error::frame)?;
        let numbers = || column.as_primitive::<Float64Type>().iter().flatten().filter(|number| number.is_finite());
        // The sign of a zero must not depend on the order of the rows.
        self.lowest = numbers().chain(self.lowest).min_by(f64::total_cmp);
        self.highest = numbers().chain(self.highest).max_by(f64::total_cmp);
        Ok(())
    }
}

impl Totals {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.buys += other.buys;
        self.confidence += other.confidence;
        self.followed += other.followed;
        self.flipped += other.flipped;
    }

    /// Adds a signal, so that rounding does not add up (Kahan).
    fn add_signal(&mut self, is_buy: bool, confidence: f64) {
        self.rows += 1;
        self.buys += u64::from(is_buy);
        let exact = confidence - self.rounding;
        let sum = self.confidence + exact;
        self.rounding = (sum - self.confidence) - exact;
        self.confidence = sum;
    }

    /// The sum of some.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }

    /// Share of buys; `None` without signals.
    pub fn buy_share(self) -> Option<f64> {
        (self.rows > 0).then(|| self.buys as f64 / self.rows as f64)
    }

    /// Mean confidence; `None` without signals.
    pub fn mean_confidence(self) -> Option<f64> {
        (self.rows > 0).then(|| self.confidence / self.rows as f64)
    }

    /// Share of signals followed by their opposite; `None` if none has a successor.
    pub fn flip_share(self) -> Option<f64> {
        (self.followed > 0).then(|| self.flipped as f64 / self.followed as f64)
    }
}

impl PairNumbers {
    /// Its name: `5d bear`.
    pub fn name(&self) -> String {
        format!("{} {}", self.period, self.regime)
    }

    /// Totals per bucket.
    pub fn over(&self, days: &[NaiveDate], axis: &Axis) -> Vec<Totals> {
        axis.group(days.iter().copied().zip(&self.days), |sum: &mut Totals, totals| sum.add(*totals))
    }
}

impl Latest {
    /// Its day.
    pub fn day(&self) -> Option<NaiveDate> {
        DateTime::from_timestamp_micros(self.date).map(|date| date.date_naive())
    }

    /// How the score has moved since the signal before; none if there is none.
    pub fn change(&self) -> Option<f64> {
        self.before.map(|before| self.score - before)
    }
}

impl TickerCoverage {
    /// Pair days present, and pair days possible.
    pub fn total(&self) -> (u64, u64) {
        self.days.iter().fold((0, 0), |(some, all), (days, due)| (some + days, all + due))
    }
}

impl Numbers {
    /// Totals of all signals.
    pub fn totals(&self) -> Totals {
        Totals::sum(self.pairs.iter().map(|pair| pair.totals))
    }

    /// Number of days with rows, drawn or not.
    pub fn day_count(&self) -> u64 {
        self.days.len() as u64 + self.undrawn_days
    }

    /// Coverage in at most `most` buckets of a month or longer.
    pub fn coverage(&self, most: usize) -> Coverage {
        let axis = Axis::new(&self.days, Step::Month, most);
        let days = axis.sums(self.days.iter().map(|day| (*day, 1)));
        // A pair of monthly signals is due once a month, whatever days the others have.
        let due_of = |pair: &PairNumbers| {
            axis.sums(self.days.iter().zip(&pair.days).map(|(day, totals)| (*day, u64::from(totals.rows > 0))))
        };
        let due: Vec<Vec<u64>> = self.pairs.iter().map(due_of).collect();
        let mut tickers = vec![0; axis.starts.len()];
        let mut incomplete = Vec::new();
        for ticker in &self.tickers {
            let own = axis.sums(ticker.months.iter().copied());
            tickers.iter_mut().zip(&own).for_each(|(tickers, days)| *tickers += u64::from(*days > 0));
            let due = |bucket: usize| ticker.latest.iter().map(|latest| due[latest.pair][bucket]).sum();
            let days = own.iter().enumerate().map(|(bucket, days)| (*days, due(bucket))).collect();
            let covered = TickerCoverage { ticker: ticker.name.clone(), days };
            let (days, due) = covered.total();
            if days < due {
                incomplete.push(((due - days, due), covered));
            }
        }
        // By the missing share, in integers so that the order is the same on every machine. Ties stay in name order.
        incomplete.sort_by(|((lacks, of), _), ((other_lacks, of_other), _)| {
            (u128::from(*other_lacks) * u128::from(*of)).cmp(&(u128::from(*lacks) * u128::from(*of_other)))
        });
        let incomplete = incomplete.into_iter().map(|(_, covered)| covered).collect();
        Coverage { axis, days, tickers, incomplete }
    }

    /// The signals of the newest day by the size of their score, with their tickers.
    pub fn newest(&self) -> Vec<(&str, Latest)> {
        let newest = self.tickers.iter().flat_map(|ticker| &ticker.latest).filter_map(Latest::day).max();
        let mut all = Vec::new();
        for ticker in &self.tickers {
            let of_newest = ticker.latest.iter().filter(|latest| latest.day() == newest);
            all.extend(of_newest.map(|latest| (ticker.name.as_str(), *latest)));
        }
        all.sort_by(|(_, one), (_, other)| other.score.abs().total_cmp(&one.score.abs()));
        all
    }
}

/// The signals of the tickers of a sector.
#[derive(Clone, Debug)]
pub struct SectorNumbers {
    /// Its name; `None` for tickers that the service lists in no sector.
    pub name: Option<String>,
    /// The totals of each of its tickers.
    pub tickers: Vec<Totals>,
}

impl Numbers {
    /// The dataset by sector, tickers without a sector last; empty if no sector is known.
    pub fn by_sector(&self, sectors: &HashMap<String, String>) -> Vec<SectorNumbers> {
        let mut split: BTreeMap<Option<&String>, Vec<Totals>> = BTreeMap::new();
        for ticker in &self.tickers {
            split.entry(sectors.get(&ticker.name)).or_default().push(ticker.totals);
        }
        let unknown = split.remove(&None).map(|tickers| SectorNumbers { name: None, tickers });
        if split.is_empty() {
            return Vec::new();
        }
        split.into_iter().map(|(name, tickers)| SectorNumbers { name: name.cloned(), tickers }).chain(unknown).collect()
    }
}
