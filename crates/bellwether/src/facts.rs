//! The facts of a version: what checks, notes, `status` and selections need to know of its rows without reading them.
//!
//! They are counted while the rows pass, in any order, and kept beside them in `facts.json`. Whatever else a report says is
//! computed by the report. Memory grows with the number of tickers and of days, never with rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::AsArray;
use arrow::datatypes::{ArrowNativeType, Int8Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::columns::{Column, Rows};
use crate::error::Reason;
use crate::interface::{Period, Regime};
use crate::plan::{self, DatasetPlan, Days, Feature, NaiveRule, RowKind, Statistic};
pub use crate::tables::ArticleCounts;
use crate::text::human::count_of;
use crate::time::MICROS_PER_DAY;

/// The days that are counted one by one: 1900 to 2099, counted from 1970. A date outside is more likely a vendor's mistake,
/// and must not cost memory.
const FIRST_DAY: i64 = -25_567;
const LAST_DAY: i64 = 47_481;

/// Whether a day is counted by itself, and drawn over time.
pub(crate) fn is_drawn(day: i64) -> bool {
    (FIRST_DAY..=LAST_DAY).contains(&day)
}

/// The facts of the rows of a version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Number of rows.
    pub rows: u64,
    /// Earliest and latest date, in naive microseconds.
    pub dates: Option<(i64, i64)>,
    /// The days from 1900 to 2099 that have rows, in order, with how many.
    pub days: Vec<(NaiveDate, u64)>,
    /// The tickers, in order.
    pub tickers: Vec<String>,
    /// The pairs of period and regime, shortest period first.
    pub pairs: Vec<(Period, Regime)>,
    /// Rows that rest on claims; none if claims do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<u64>,
    /// Rows that were first seen while their date was fresh, as the dataset's `live_within` says.
    pub seen_live: u64,
    /// Signals left out because an earlier signal of their series has the same naive date.
    pub repeated: u64,
    /// Signals that an operation of the service gives another value than the dataset has; the latest answer counts.
    pub contradictions: u64,
    /// Tickers whose signals are dated at other times of day than those of most others; none if there are none.
    pub split_days: Option<SplitDays>,
    /// The tickers whose signals are dated at many times of day.
    pub many_times: u64,
    /// Whether there are signals of Sundays, and none of Fridays.
    pub are_early: bool,
    /// The articles that features were computed from.
    pub articles: ArticleCounts,
    /// The news windows whose articles are counted, each with the rows for which it is unknown what was in it.
    pub windows: Vec<(Days, u64)>,
}

impl Facts {
    /// The facts as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("facts are text and numbers");
        text.push(b'\n');
        text
    }

    /// Facts from JSON.
    ///
    /// # Errors
    ///
    /// If the text is not the JSON of facts.
    pub fn from_json(text: &[u8]) -> Result<Self, Reason> {
        Ok(serde_json::from_slice(text)?)
    }

    /// First and last day.
    pub fn bounds(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |micros: i64| DateTime::from_timestamp_micros(micros).map(|moment| moment.date_naive());
        let (first, last) = self.dates?;
        Some((day(first)?, day(last)?))
    }

    /// The newest day that is not after another one; the first day if there is none.
    pub fn newest_by(&self, day: NaiveDate) -> Option<NaiveDate> {
        let (first, last) = self.bounds()?;
        let counted = self.days.iter().rev().map(|(other, _)| *other).find(|other| *other <= day);
        if last <= day { Some(last) } else { counted.or(Some(first)) }
    }
}

/// Counts the rows of a dataset as they are written.
#[derive(Debug)]
pub(crate) struct Tally {
    of: RowKind,
    /// What is counted so far, but for what follows.
    facts: Facts,
    /// Rows of each day from [`FIRST_DAY`] on.
    days: Vec<u64>,
    tickers: TickerNumbers,
    /// Whether there are rows of each pair.
    pairs: Vec<[bool; Regime::ALL.len()]>,
    times: TimesOfDay,
    /// The column with the count of each window.
    windows: Vec<String>,
}

impl Tally {
    /// An empty tally for a plan.
    pub(crate) fn new(plan: &DatasetPlan) -> Self {
        let mut facts =
            Facts { claimed: plan.columns.contains(&plan::Column::Claimed).then_some(0), ..Facts::default() };
        let mut windows = Vec::new();
        for feature in &plan.features {
            if let Feature::Window(Statistic::Count, days) = feature {
                facts.windows.push((*days, 0));
                windows.push(feature.to_string());
            }
        }
        Self {
            of: plan.rows,
            facts,
            days: vec![0; (LAST_DAY - FIRST_DAY + 1) as usize],
            tickers: TickerNumbers::default(),
            pairs: vec![[false; Regime::ALL.len()]; Period::COUNT],
            times: TimesOfDay::default(),
            windows,
        }
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.facts.rows
    }

    /// Counts rows of a long dataset.
    pub(crate) fn count(&mut self, rows: &Rows) {
        self.facts.rows += rows.num_rows() as u64;
        if let (Some(claimed), Some(column)) = (&mut self.facts.claimed, rows.column(plan::Column::Claimed.name())) {
            let flags = column.values().as_boolean();
            *claimed += column.rows_where(|index| flags.value(index)) as u64;
        }
        let (tickers, dates) = (column(rows, "ticker"), column(rows, "date"));
        let names = tickers.values().as_string::<i32>();
        let moments = dates.values().as_primitive::<TimestampMicrosecondType>().values();
        // Most rows have the ticker and the date of the row before.
        for (start, end) in (tickers.boundaries() | dates.boundaries()).runs() {
            let ticker = self.tickers.number(names.value(tickers.index(start)));
            let moment = moments[dates.index(start)];
            let (first, last) = self.facts.dates.unwrap_or((moment, moment));
            self.facts.dates = Some((first.min(moment), last.max(moment)));
            let day = moment.div_euclid(MICROS_PER_DAY);
            if is_drawn(day) {
                self.days[(day - FIRST_DAY) as usize] += (end - start) as u64;
            }
            if self.of != RowKind::Article {
                self.times.add(ticker, moment);
            }
        }
        if self.of != RowKind::Article {
            self.count_signals(rows);
        }
    }

    /// Counts what articles do not have: pairs and windows.
    fn count_signals(&mut self, rows: &Rows) {
        for ((_, unknown), name) in self.facts.windows.iter_mut().zip(&self.windows) {
            *unknown += column(rows, name).null_count() as u64;
        }
        let [periods, regimes] = ["period", "regime"].map(|name| {
            let values = column(rows, name).flat().expect("each row has one of the values");
            values.as_dictionary::<Int8Type>().clone()
        });
        let mut seen = vec![[false; Regime::ALL.len()]; periods.values().len()];
        for (period, regime) in periods.keys().values().iter().zip(regimes.keys().values()) {
            seen[period.as_usize()][regime.as_usize()] = true;
        }
        for (period, regimes_seen) in periods.values().as_string::<i32>().iter().flatten().zip(seen) {
            for (regime, is_seen) in regimes.values().as_string::<i32>().iter().flatten().zip(regimes_seen) {
                if let (true, Ok(period), Ok(regime)) = (is_seen, period.parse::<Period>(), regime.parse::<Regime>()) {
                    self.pairs[period.index()][regime as usize] = true;
                }
            }
        }
    }

    /// The facts, once all rows are counted; what is not seen in rows is zero.
    pub(crate) fn finish(self) -> Facts {
        let days = self.days.iter().enumerate().filter(|(_, rows)| **rows > 0);
        let days = days.filter_map(|(day, rows)| {
            Some((NaiveDate::from_epoch_days(i32::try_from(day as i64 + FIRST_DAY).ok()?)?, *rows))
        });
        let pairs = Period::all().flat_map(|period| Regime::ALL.map(|regime| (period, regime)));
        let mut tickers = self.tickers.names;
        tickers.sort_unstable();
        Facts {
            days: days.collect(),
            tickers,
            pairs: pairs.filter(|(period, regime)| self.pairs[period.index()][*regime as usize]).collect(),
            split_days: self.times.split(),
            many_times: self.times.many(),
            are_early: self.times.are_early(),
            ..self.facts
        }
    }
}

fn column<'a>(rows: &'a Rows, name: &str) -> &'a Column {
    rows.column(name).expect("the rows of a dataset have its columns")
}

/// Tickers in the order in which they were first seen. Most rows have the ticker of the row before.
#[derive(Debug, Default)]
struct TickerNumbers {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    current: usize,
}

impl TickerNumbers {
    /// The number of a ticker; a new ticker gets the next one.
    fn number(&mut self, name: &str) -> usize {
        if self.names.get(self.current).is_none_or(|current| current != name) {
            self.current = self.numbers.get(name).copied().unwrap_or(self.names.len());
        }
        if self.current == self.names.len() {
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), self.current);
        }
        self.current
    }
}

/// The most times of day of a ticker that are kept: two of one clock, in summer and winter, and a few odd ones.
const TIMES: usize = 4;

/// The times of day at which the signals of each ticker are dated: whether the signals of a day fall on several dates, because
/// tickers are dated by different clocks.
#[derive(Debug, Default)]
pub(crate) struct TimesOfDay {
    /// By ticker number; more than [`TIMES`] are those of signals within a day.
    of_tickers: Vec<Vec<i64>>,
    /// The number of signals by weekday, from Monday on.
    weekdays: [u64; 7],
}

impl TimesOfDay {
    /// Adds a signal of a ticker, by its naive date.
    pub(crate) fn add(&mut self, ticker: usize, micros: i64) {
        if self.of_tickers.len() <= ticker {
            self.of_tickers.resize_with(ticker + 1, Vec::new);
        }
        self.weekdays[(micros.div_euclid(MICROS_PER_DAY) + 3).rem_euclid(7) as usize] += 1;
        let (times, time) = (&mut self.of_tickers[ticker], micros.rem_euclid(MICROS_PER_DAY));
        if times.len() <= TIMES && !times.contains(&time) {
            times.push(time);
        }
    }

    /// Whether all days seem to be a day early: there are signals of Sundays, and none of Fridays.
    pub(crate) fn are_early(&self) -> bool {
        self.weekdays[6] > 0 && self.weekdays[4] == 0
    }

    /// The tickers that are dated at many times of day.
    pub(crate) fn many(&self) -> u64 {
        self.of_tickers.iter().filter(|times| times.len() > TIMES).count() as u64
    }

    /// Whether some tickers have no time of day in common with most others.
    pub(crate) fn split(&self) -> Option<SplitDays> {
        let mut tickers: BTreeMap<BTreeSet<i64>, u64> = BTreeMap::new();
        for times in self.of_tickers.iter().filter(|times| (1..=TIMES).contains(&times.len())) {
            *tickers.entry(times.iter().copied().collect()).or_default() += 1;
        }
        let (most, _) = tickers.iter().min_by_key(|(times, count)| (Reverse(**count), *times))?;
        let apart: Vec<_> = tickers.iter().filter(|(times, _)| times.is_disjoint(most)).collect();
        let first = |times: &BTreeSet<i64>| times.first().map_or_else(String::new, |time| time_of_day(*time));
        let (other, _) = apart.iter().min_by_key(|(times, count)| (Reverse(**count), *times))?;
        Some(SplitDays {
            tickers: apart.iter().map(|(_, count)| **count).sum(),
            all: self.of_tickers.len() as u64,
            times: [first(most), first(other)],
        })
    }
}

/// Tickers whose signals are dated at other times of day than those of most others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SplitDays {
    /// How many there are.
    pub tickers: u64,
    /// The number of all tickers.
    pub all: u64,
    /// A time of day of most tickers, and one of these.
    pub times: [String; 2],
}

impl SplitDays {
    /// What it means, and the remedy under a rule of naive dates.
    pub fn in_words(&self, rule: NaiveRule) -> String {
        let Self { tickers, all, times: [most, other] } = self;
        let remedy = match rule {
            NaiveRule::Wall => "a time zone as `naive` in `[dates]` dates all signals by one clock",
            NaiveRule::Utc | NaiveRule::Zone(_) => "`naive = \"wall\"` in `[dates]` dates signals as they are written",
        };
        let tickers = format!("{tickers} of {}", count_of(*all, "ticker", "tickers"));
        format!("{tickers} are dated at {other}, others at {most}: a day's signals are on two dates; {remedy}")
    }
}

/// A time of day: `04:00`.
fn time_of_day(micros: i64) -> String {
    let minutes = micros / 60_000_000;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::{SplitDays, Tally, TickerNumbers, TimesOfDay};
    use crate::definition::DefinitionFile;
    use crate::interface::{Period, Regime};
    use crate::plan::Plan;
    use crate::tables::choices;

    #[test]
    fn a_ticker_has_the_same_number_in_any_order() {
        let mut tickers = TickerNumbers::default();
        let met: Vec<usize> = "A A B C A B C C A D B A D".split(' ').map(|name| tickers.number(name)).collect();
        assert_eq!(met, [0, 0, 1, 2, 0, 1, 2, 2, 0, 3, 1, 0, 3]);
        assert_eq!(tickers.names, ["A", "B", "C", "D"]);
    }

    /// A cluster's files end anywhere, and their record has the checksum of the facts.
    #[test]
    fn facts_are_the_same_bytes_wherever_batches_end() {
        let text = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n";
        let plan = Plan::of(DefinitionFile::new("it.toml".into(), text.to_owned()).unwrap()).unwrap().dataset;
        let day = |text: &str| text.parse::<chrono::NaiveDate>().unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
        let days = ["1850-03-04", "2026-01-05", "2026-01-06", "2100-01-01"].map(|text| day(text).timestamp_micros());
        let cells: Vec<(usize, usize, usize)> =
            (0..3).flat_map(|ticker| (0..4).flat_map(move |day| (0..2).map(move |pair| (ticker, day, pair)))).collect();
        let keys = |code: fn(usize) -> usize| cells.iter().map(|it| Some(code(it.2) as i8)).collect::<Int8Array>();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("ticker", Arc::new(cells.iter().map(|it| Some(format!("T{}", it.0))).collect::<StringArray>())),
            ("date", Arc::new(cells.iter().map(|it| Some(days[it.1])).collect::<TimestampMicrosecondArray>())),
            ("period", choices(keys(|pair| pair), Period::all().map(Period::as_str))),
            ("regime", choices(keys(|pair| pair * 2), Regime::ALL.map(Regime::as_str))),
        ];
        let fields: Vec<Field> =
            columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), false)).collect();
        assert_eq!(fields[0].data_type(), &DataType::Utf8);
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let facts = |batch: usize| {
            let mut tally = Tally::new(&plan);
            for at in (0..rows.num_rows()).step_by(batch) {
                tally.count(&rows.slice(at, batch.min(rows.num_rows() - at)).into());
            }
            tally.finish()
        };
        let whole = facts(rows.num_rows());
        assert!([1, 5, 7].into_iter().all(|batch| facts(batch).to_json() == whole.to_json()));
        assert_eq!(whole.tickers, ["T0", "T1", "T2"]);
        assert_eq!(whole.days, [("2026-01-05".parse().unwrap(), 6), ("2026-01-06".parse().unwrap(), 6)]);
        assert_eq!(whole.newest_by("2026-01-05".parse().unwrap()), Some("2026-01-05".parse().unwrap()));
        assert_eq!(whole.newest_by("2101-01-05".parse().unwrap()), Some("2100-01-01".parse().unwrap()));
        let first: Period = Period::all().next().unwrap();
        let second = Period::all().nth(1).unwrap();
        assert_eq!(whole.pairs, [(first, Regime::ALL[0]), (second, Regime::ALL[2])]);
    }

    const HOUR: i64 = 3_600_000_000;

    fn split(tickers: &[&[i64]]) -> Option<SplitDays> {
        let mut times = TimesOfDay::default();
        for (ticker, hours) in tickers.iter().enumerate() {
            hours.iter().for_each(|hour| times.add(ticker, (24 * 20_000 + hour) * HOUR));
        }
        times.split()
    }

    #[test]
    fn tickers_are_apart_if_they_share_no_time_of_day_with_most_others() {
        let apart = |tickers, all, times: [&str; 2]| Some(SplitDays { tickers, all, times: times.map(str::to_owned) });
        assert_eq!(split(&[&[0], &[0], &[4]]), apart(1, 3, ["00:00", "04:00"]));
        // In summer and in winter.
        assert_eq!(split(&[&[0], &[0], &[4, 5], &[5]]), apart(2, 4, ["00:00", "04:00"]));
        assert_eq!(split(&[&[4, 5], &[4, 5], &[5], &[4]]), None);
        assert_eq!(split(&[&[15, 16], &[0], &[0]]), apart(1, 3, ["00:00", "15:00"]));
        // Within a day.
        assert_eq!(split(&[&[9, 10, 11, 12, 13, 14], &[0], &[0]]), None);
        assert_eq!(split(&[&[0], &[0]]), None);
        assert_eq!(split(&[]), None);
    }
}
