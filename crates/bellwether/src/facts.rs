//! The facts of a version: what checks, notes, `status` and selections need to know of its rows without reading them.
//!
//! They are counted while the rows pass, in any order, and kept beside them in `facts.json`. Whatever else a report says is
//! computed by the report. Memory grows with the number of tickers and of days, never with rows.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::{ArrowNativeType, Int8Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::columns::{Column, Rows};
use crate::error::Reason;
use crate::interface::{Period, Regime};
use crate::plan::{self, DatasetPlan, Days, Feature, RowKind, Statistic};
use crate::split_days::{SplitDays, TimesOfDay};
pub use crate::tables::ArticleCounts;
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    rows: u64,
    claimed: Option<u64>,
    dates: Option<(i64, i64)>,
    /// Rows of each day from [`FIRST_DAY`] on.
    days: Vec<u64>,
    tickers: TickerNumbers,
    /// Whether there are rows of each pair.
    pairs: Vec<[bool; Regime::ALL.len()]>,
    times: TimesOfDay,
    /// The count of each window, and the rows without one.
    windows: Vec<(Days, String, u64)>,
}

impl Tally {
    /// An empty tally for a plan.
    pub(crate) fn new(plan: &DatasetPlan) -> Self {
        let windows = plan.features.iter().filter_map(|feature| match feature {
            Feature::Window(Statistic::Count, days) => Some((*days, feature.to_string(), 0)),
            _ => None,
        });
        Self {
            of: plan.rows,
            rows: 0,
            claimed: plan.columns.contains(&plan::Column::Claimed).then_some(0),
            dates: None,
            days: vec![0; (LAST_DAY - FIRST_DAY + 1) as usize],
            tickers: TickerNumbers::default(),
            pairs: vec![[false; Regime::ALL.len()]; Period::COUNT],
            times: TimesOfDay::default(),
            windows: windows.collect(),
        }
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Counts rows of a long dataset.
    pub(crate) fn count(&mut self, rows: &Rows) {
        self.rows += rows.num_rows() as u64;
        if let (Some(claimed), Some(column)) = (&mut self.claimed, rows.column(plan::Column::Claimed.name())) {
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
            let (first, last) = self.dates.unwrap_or((moment, moment));
            self.dates = Some((first.min(moment), last.max(moment)));
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
        for (_, name, unknown) in &mut self.windows {
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
            rows: self.rows,
            dates: self.dates,
            days: days.collect(),
            tickers,
            pairs: pairs.filter(|(period, regime)| self.pairs[period.index()][*regime as usize]).collect(),
            claimed: self.claimed,
            seen_live: 0,
            repeated: 0,
            contradictions: 0,
            split_days: self.times.split(),
            many_times: self.times.many(),
            are_early: self.times.are_early(),
            articles: ArticleCounts::default(),
            windows: self.windows.into_iter().map(|(length, _, unknown)| (length, unknown)).collect(),
        }
    }
}

fn column<'a>(rows: &'a Rows, name: &str) -> &'a Column {
    rows.column(name).expect("the rows of a dataset have its columns")
}

/// Tickers in the order in which they were first seen.
///
/// Rows come ticker by ticker, or in rounds of all tickers. The ticker that followed last time is tried first, so few
/// rows need a lookup.
#[derive(Debug, Default)]
struct TickerNumbers {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// For each ticker, the one that came after it.
    followers: Vec<usize>,
    current: usize,
}

impl TickerNumbers {
    /// The number of a ticker; a new ticker gets the next one.
    fn number(&mut self, name: &str) -> usize {
        if self.names.get(self.current).is_some_and(|current| current == name) {
            return self.current;
        }
        let follower = self.followers.get(self.current).copied().unwrap_or_default();
        let number = match self.names.get(follower) {
            Some(expected) if expected == name => follower,
            _ => self.look_up(name),
        };
        if let Some(follower) = self.followers.get_mut(self.current) {
            *follower = number;
        }
        self.current = number;
        number
    }

    fn look_up(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.followers.push(number);
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::{Tally, TickerNumbers};
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
}
