//! The numbers of a report: what the rows of a dataset say, as a few groups of frames.
//!
//! The rows come ticker by ticker, as the archive gives them. Those of some whole tickers are one frame at a time, of which
//! only sums per day, ticker, pair and confidence are kept, so memory does not grow with rows.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{ArrowNativeType, DataType, Float64Type, Int8Type, Int32Type, TimestampMicrosecondType};
use bellwether_statistics::PairedAnswers;
use chrono::{DateTime, NaiveDate};
use polars::prelude::{DataFrame, Float64Chunked, Int64Chunked, IntoColumn};

use super::calendar::{Axis, Step};
use super::histogram::Histogram;
use crate::error::{Error, Result};
use crate::facts::is_drawn;
use crate::frames::{Of, group, integers, numbers, sorted, stacked};
use crate::interface::{Period, Regime, Signal};
use crate::plan::{DatasetPlan, Days, Feature};
use crate::time::MICROS_PER_DAY;

/// The rows of so many tickers as have about this number are one frame.
const PIECE: usize = 1 << 20;

/// The most pairs whose agreement is counted, a bit for each.
const MOST_PAIRS: usize = 12;

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
    /// Tickers and dates for which both have a signal.
    pub both: u64,
    /// Those where both signals are the same.
    pub same: u64,
    /// Those where each signal is a buy.
    pub buys: [u64; 2],
}

/// How many signals have news in a window.
#[derive(Clone, Debug)]
pub struct WindowNumbers {
    /// Length of the window.
    pub length: Days,
    /// Rows with at least one article.
    pub with_news: u64,
    /// Rows for which it is unknown what was in the window.
    pub unknown: u64,
    /// Both, for each of [`Numbers::days`].
    pub days: Vec<[u64; 2]>,
}

/// A column of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnNumbers {
    /// Its name.
    pub name: String,
    /// Rows without a value.
    pub nulls: u64,
    /// The lowest and the highest value, if they are numbers; none without any.
    pub range: Option<(f64, f64)>,
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
    /// The tickers with gaps, the worst first, as many as a page can show.
    pub incomplete: Vec<TickerCoverage>,
    /// Number of tickers with gaps.
    pub incomplete_count: usize,
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

/// Rows that were taken, and the frames of the tickers before.
pub(crate) struct Counting {
    /// The windows, each with the column of its number of articles.
    windows: Vec<(Days, String)>,
    columns: Vec<ColumnNumbers>,
    tickers: Vec<String>,
    pairs: Vec<(Period, Regime)>,
    piece: Piece,
    latest: Vec<(usize, Latest)>,
    by_day: Vec<DataFrame>,
    by_series: Vec<DataFrame>,
    by_month: Vec<DataFrame>,
    by_bin: Vec<DataFrame>,
    by_pattern: Vec<DataFrame>,
}

/// Rows of some whole tickers, a list for each column. Numbers stand for tickers and pairs.
#[derive(Default)]
struct Piece {
    ticker: Vec<i64>,
    pair: Vec<i64>,
    date: Vec<i64>,
    buy: Vec<i64>,
    confidence: Vec<f64>,
    /// For each window, whether there is news in it, and whether that is unknown.
    windows: Vec<[Vec<i64>; 2]>,
}

impl Counting {
    /// An empty count for a plan.
    pub(crate) fn of(plan: &DatasetPlan) -> Self {
        let windows = plan.features.iter().filter_map(|feature| match feature {
            Feature::Count(days) => Some((*days, feature.to_string())),
            _ => None,
        });
        let columns = plan.schema.fields().iter();
        Self {
            windows: windows.collect(),
            columns: columns.map(|it| ColumnNumbers { name: it.name().clone(), nulls: 0, range: None }).collect(),
            tickers: Vec::new(),
            pairs: Vec::new(),
            piece: Piece::default(),
            latest: Vec::new(),
            by_day: Vec::new(),
            by_series: Vec::new(),
            by_month: Vec::new(),
            by_bin: Vec::new(),
            by_pattern: Vec::new(),
        }
    }

    /// Takes articles, of which only the columns are told.
    pub(crate) fn take_articles(&mut self, rows: &RecordBatch) -> Result<()> {
        self.columns.iter_mut().try_for_each(|column| column.widen(rows))
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
            if self.tickers.last().is_none_or(|last| last != names.value(row)) {
                if self.piece.ticker.len() >= PIECE {
                    self.finish_piece()?;
                }
                self.tickers.push(names.value(row).to_owned());
            }
            let [period, regime] = [periods, regimes].map(|column| column.keys().value(row).as_usize());
            let pair = *known[period * regimes.values().len() + regime].get_or_insert_with(|| {
                let period = periods.values().as_string::<i32>().value(period).parse().expect("it is a period");
                let regime = regimes.values().as_string::<i32>().value(regime).parse().expect("it is a regime");
                self.pairs.iter().position(|pair| *pair == (period, regime)).unwrap_or_else(|| {
                    self.pairs.push((period, regime));
                    self.pairs.len() - 1
                })
            });
            let piece = &mut self.piece;
            piece.ticker.push(self.tickers.len() as i64 - 1);
            piece.pair.push(pair as i64);
            piece.date.push(dates[row]);
            piece.buy.push(i64::from(sides.value(signals.keys().value(row).as_usize()) == Signal::Buy.as_str()));
            piece.confidence.push(confidences[row]);
            piece.windows.resize_with(windows.len(), Default::default);
            for (window, [with_news, unknown]) in windows.iter().zip(&mut piece.windows) {
                with_news.push(i64::from(window.is_valid(row) && window.value(row) > 0));
                unknown.push(i64::from(window.is_null(row)));
            }
        }
        Ok(())
    }

    /// Sums up the rows of the tickers that were taken.
    fn finish_piece(&mut self) -> Result<()> {
        let Piece { ticker, pair, date, buy, confidence, windows } = std::mem::take(&mut self.piece);
        let mut frame = DataFrame::empty();
        let window_columns =
            windows.into_iter().flatten().enumerate().map(|(index, it)| (format!("window{index}"), it));
        let columns = [("ticker", ticker), ("pair", pair), ("date", date), ("buy", buy)];
        let columns = columns.map(|(name, values)| (name.to_owned(), values));
        let add = |frame: &mut DataFrame, name: &str, values: Vec<i64>| {
            frame.with_column(Int64Chunked::from_vec(name.into(), values).into_column()).map(drop).map_err(Error::frame)
        };
        for (name, values) in columns.into_iter().chain(window_columns) {
            add(&mut frame, &name, values)?;
        }
        let confidence = Float64Chunked::from_vec("confidence".into(), confidence);
        frame.with_column(confidence.into_column()).map_err(Error::frame)?;
        // Each series by date.
        let mut frame = sorted(&frame, &["ticker", "pair"])?;
        let [ticker, pair, date, buy] = ["ticker", "pair", "date", "buy"].map(|name| values(&frame, name));
        let (ticker, pair, date, buy) = (ticker?, pair?, date?, buy?);
        let confidence: Vec<f64> = numbers(&frame, "confidence")?.into_no_null_iter().collect();
        let day: Vec<i64> = date.iter().map(|date| date.div_euclid(MICROS_PER_DAY)).collect();
        let is_same = |one: usize, other: usize| ticker[one] == ticker[other] && pair[one] == pair[other];
        let (mut followed, mut flipped, mut first) = (vec![0; day.len()], vec![0; day.len()], vec![0; day.len()]);
        for row in 0..day.len() {
            let has_before = row > 0 && is_same(row - 1, row);
            first[row] = i64::from(!has_before || day[row - 1] != day[row]);
            if row + 1 < day.len() && is_same(row, row + 1) {
                followed[row] = 1;
                flipped[row] = i64::from(buy[row] != buy[row + 1]);
                continue;
            }
            let score = |row: usize| if buy[row] == 1 { confidence[row] } else { -confidence[row] };
            let before = has_before.then(|| score(row - 1));
            let latest = Latest { pair: pair[row] as usize, date: date[row], score: score(row), before };
            self.latest.push((ticker[row] as usize, latest));
        }
        let has_few = self.pairs.len() <= MOST_PAIRS;
        let bits: Vec<i64> = pair.iter().map(|pair| if has_few { 1 << pair } else { 0 }).collect();
        let buy_bits = bits.iter().zip(&buy).map(|(bit, buy)| bit * buy).collect();
        let bins = confidence.iter().map(|value| Histogram::bin(*value) as i64).collect();
        let months =
            day.iter().map(|day| month_of(*day).map_or(i64::MIN, |month| month.to_epoch_days().into())).collect();
        for (name, values) in [
            ("day", day),
            ("month", months),
            ("followed", followed),
            ("flipped", flipped),
            ("first", first),
            ("bits", bits),
            ("buy_bits", buy_bits),
            ("bin", bins),
        ] {
            add(&mut frame, name, values)?;
        }
        let rows = (Of::Rows, "", "rows");
        let of_windows: Vec<String> = (0..self.windows.len() * 2).map(|index| format!("window{index}")).collect();
        let sums = |names: &[&'static str]| names.iter().map(|name| (Of::Sum, *name, *name)).collect::<Vec<_>>();
        let mut of_day = [vec![rows], sums(&["buy", "confidence"])].concat();
        of_day.extend(of_windows.iter().map(|name| (Of::Sum, name.as_str(), name.as_str())));
        self.by_day.push(group(&frame, &["day", "pair"], &of_day)?);
        let of_series = [vec![rows], sums(&["buy", "confidence", "followed", "flipped"])].concat();
        self.by_series.push(group(&frame, &["ticker", "pair"], &of_series)?);
        self.by_month.push(group(&frame, &["ticker", "month"], &sums(&["first"]))?);
        self.by_bin.push(group(&frame, &["buy", "bin"], &[vec![rows], sums(&["followed", "flipped"])].concat())?);
        if has_few {
            let patterns = group(&frame, &["ticker", "date"], &sums(&["bits", "buy_bits"]))?;
            self.by_pattern.push(group(&patterns, &["bits", "buy_bits"], &[rows])?);
        }
        Ok(())
    }

    /// The numbers of all rows that were taken.
    pub(crate) fn finish(mut self) -> Result<Numbers> {
        let mut found = Numbers { columns: std::mem::take(&mut self.columns), ..Numbers::default() };
        if self.tickers.is_empty() {
            return Ok(found);
        }
        self.finish_piece()?;
        // Pairs come in the order in which they were seen.
        let mut order: Vec<usize> = (0..self.pairs.len()).collect();
        order.sort_by_key(|index| self.pairs[*index]);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(index, pair)| place[*pair] = index);

        let by_day = stacked(self.by_day)?;
        let (day, pair) = (values(&by_day, "day")?, values(&by_day, "pair")?);
        let mut drawn: Vec<i64> = day.clone();
        drawn.sort_unstable();
        drawn.dedup();
        let all_days = drawn.len();
        drawn.retain(|day| is_drawn(*day));
        found.undrawn_days = (all_days - drawn.len()) as u64;
        found.days = drawn.iter().map(|day| NaiveDate::from_epoch_days(*day as i32).expect("it is drawn")).collect();
        found.pairs = order.iter().map(|index| PairNumbers::of(self.pairs[*index], drawn.len())).collect();
        found.windows = self.windows.iter().map(|(length, _)| WindowNumbers::of(*length, drawn.len())).collect();
        let windows = (0..2 * self.windows.len()).map(|index| values(&by_day, &format!("window{index}")));
        let windows = windows.collect::<Result<Vec<Vec<i64>>>>()?;
        for (row, totals) in totals_of(&by_day)?.into_iter().enumerate() {
            let index = drawn.binary_search(&day[row]).ok();
            match index {
                Some(index) => found.pairs[place[pair[row] as usize]].days[index].add(totals),
                None => found.undrawn += totals.rows,
            }
            for (number, window) in found.windows.iter_mut().enumerate() {
                let [with_news, unknown] = [windows[2 * number][row] as u64, windows[2 * number + 1][row] as u64];
                (window.with_news, window.unknown) = (window.with_news + with_news, window.unknown + unknown);
                if let Some(index) = index {
                    window.days[index][0] += with_news;
                    window.days[index][1] += unknown;
                }
            }
        }

        found.tickers = self.tickers.into_iter().map(|name| TickerNumbers { name, ..Default::default() }).collect();
        let by_series = stacked(self.by_series)?;
        let (ticker, pair) = (values(&by_series, "ticker")?, values(&by_series, "pair")?);
        for (row, totals) in totals_of(&by_series)?.into_iter().enumerate() {
            found.tickers[ticker[row] as usize].totals.add(totals);
            found.pairs[place[pair[row] as usize]].totals.add(totals);
        }
        for (ticker, latest) in self.latest {
            found.tickers[ticker].latest.push(Latest { pair: place[latest.pair], ..latest });
        }
        found.tickers.iter_mut().for_each(|ticker| ticker.latest.sort_by_key(|latest| latest.pair));
        let by_month = stacked(self.by_month)?;
        let (ticker, month) = (values(&by_month, "ticker")?, values(&by_month, "month")?);
        for (row, days) in
            values(&by_month, "first")?.into_iter().enumerate().filter(|(row, _)| month[*row] != i64::MIN)
        {
            let month = NaiveDate::from_epoch_days(month[row] as i32).expect("it is drawn");
            found.tickers[ticker[row] as usize].months.push((month, days as u64));
        }
        found.tickers.sort_by(|one, other| one.name.cmp(&other.name));

        let by_bin = stacked(self.by_bin)?;
        let (buy, bin) = (values(&by_bin, "buy")?, values(&by_bin, "bin")?);
        for (row, totals) in totals_of(&by_bin)?.into_iter().enumerate() {
            let bin = bin[row] as usize;
            found.confidences[buy[row] as usize].add_many(bin, totals.rows);
            found.followed.add_many(bin, totals.followed);
            found.flipped.add_many(bin, totals.flipped);
        }
        if self.pairs.len() <= MOST_PAIRS {
            let patterns = stacked(self.by_pattern)?;
            let columns = ["bits", "buy_bits", "rows"].map(|name| values(&patterns, name));
            found.agreements = Some(agreements(columns, &order)?);
        }
        Ok(found)
    }
}

/// How often any two pairs agree, given for patterns which pairs have a signal and which have a buy, and how often.
fn agreements([bits, buys, rows]: [Result<Vec<i64>>; 3], order: &[usize]) -> Result<Vec<Agreement>> {
    let (bits, buys, rows) = (bits?, buys?, rows?);
    let mut all = Vec::new();
    for (index, one) in order.iter().enumerate() {
        for (other_index, other) in order.iter().enumerate().skip(index + 1) {
            let mut found = Agreement { pairs: [index, other_index], both: 0, same: 0, buys: [0, 0] };
            for row in (0..rows.len()).filter(|row| bits[*row] >> one & bits[*row] >> other & 1 == 1) {
                let (count, [one, other]) = (rows[row] as u64, [one, other].map(|pair| (buys[row] >> pair & 1) as u64));
                found.both += count;
                found.same += count * u64::from(one == other);
                found.buys = [found.buys[0] + count * one, found.buys[1] + count * other];
            }
            all.push(found);
        }
    }
    Ok(all)
}

/// A column of whole numbers without nulls.
fn values(frame: &DataFrame, name: &str) -> Result<Vec<i64>> {
    Ok(integers(frame, name)?.into_no_null_iter().collect())
}

/// The totals of each row of a frame, as far as it has them.
fn totals_of(frame: &DataFrame) -> Result<Vec<Totals>> {
    let column = |name: &str| match frame.column(name) {
        Ok(_) => numbers(frame, name).map(|values| values.into_no_null_iter().collect::<Vec<f64>>()),
        Err(_) => Ok(vec![0.0; frame.height()]),
    };
    let [rows, buys, confidence] = [column("rows")?, column("buy")?, column("confidence")?];
    let [followed, flipped] = [column("followed")?, column("flipped")?];
    let totals = |row: usize| Totals {
        rows: rows[row] as u64,
        buys: buys[row] as u64,
        confidence: confidence[row],
        followed: followed[row] as u64,
        flipped: flipped[row] as u64,
    };
    Ok((0..frame.height()).map(totals).collect())
}

/// The first day of the month of a day that is drawn.
fn month_of(day: i64) -> Option<NaiveDate> {
    Some(Step::Month.start(NaiveDate::from_epoch_days(i32::try_from(day).ok().filter(|_| is_drawn(day))?)?))
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
        for number in column.as_primitive::<Float64Type>().iter().flatten().filter(|number| number.is_finite()) {
            let (low, high) = self.range.unwrap_or((number, number));
            // The sign of a zero must not depend on the order of the rows.
            let (is_lower, is_higher) = (number.total_cmp(&low).is_lt(), number.total_cmp(&high).is_gt());
            self.range = Some((if is_lower { number } else { low }, if is_higher { number } else { high }));
        }
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

impl Agreement {
    /// The share that agrees; `None` without signals of both.
    pub fn rate(&self) -> Option<f64> {
        (self.both > 0).then(|| self.same as f64 / self.both as f64)
    }

    /// How often they agree, and would by chance.
    pub(super) fn answers(&self) -> PairedAnswers {
        PairedAnswers { both: self.both, same: self.same, yes: self.buys }
    }
}

impl PairNumbers {
    fn of((period, regime): (Period, Regime), days: usize) -> Self {
        Self { period, regime, totals: Totals::default(), days: vec![Totals::default(); days] }
    }

    /// Its name: `5d bear`.
    pub fn name(&self) -> String {
        format!("{} {}", self.period, self.regime)
    }

    /// Totals per bucket.
    pub fn over(&self, days: &[NaiveDate], axis: &Axis) -> Vec<Totals> {
        let mut sums = vec![Totals::default(); axis.starts.len()];
        for (day, totals) in days.iter().zip(&self.days) {
            if let Some(index) = axis.index_of(*day) {
                sums[index].add(*totals);
            }
        }
        sums
    }
}

impl WindowNumbers {
    fn of(length: Days, days: usize) -> Self {
        Self { length, with_news: 0, unknown: 0, days: vec![[0, 0]; days] }
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

impl Coverage {
    /// The most tickers listed; each takes a kilobyte.
    pub const LISTED: usize = 64;
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
        let axis = Axis::of(&self.days, Step::Month, most);
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
        let incomplete_count = incomplete.len();
        let incomplete = incomplete.into_iter().take(Coverage::LISTED).map(|(_, covered)| covered).collect();
        Coverage { axis, days, tickers, incomplete, incomplete_count }
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
