//! The news of signals: the features that the definition names, and how many articles each window has.
//!
//! The numbers are those of the dataset, built twice. *As published* is the dataset of first vintages: the news that the run
//! which first saw a signal, or one before it, had seen. *Today* is the dataset of latest values. A number that was published
//! counts from the first session after the day, in UTC, on which its run was sealed: a run that was interrupted may be sealed
//! after its signals are entered.
//!
//! Nearly all signals of a ticker and day share their news, whatever their period and regime, so its numbers are held once.

use std::fmt::Debug;
use std::path::PathBuf;
use std::str::FromStr;

use arrow::array::{Array, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Float64Type, Int8Type, Int32Type, TimestampMicrosecondType};

use super::cells::{Cell, pair};
use crate::archive::Scope;
use crate::audit::subject::Subject;
use crate::columns::Column;
use crate::dataset::{self, DatasetInput, SeriesNames};
use crate::error::Result;
use crate::interface::{Period, Regime, Ticker};
use crate::plan::{DatasetPlan, Days, Feature, Filter, Vintage};
use crate::prices::horizon::first_after;
use crate::prices::{Day, Prices, date};
use crate::time::MICROS_PER_DAY;

/// How many articles a window has, in groups. Of the last one it is not known.
pub(super) const GROUPS: [&str; 5] = ["0", "1-2", "3-9", "10+", "unknown"];

const UNKNOWN: usize = GROUPS.len() - 1;

/// The news of all signals.
pub(super) struct SignalNews {
    /// The features that are measured, by their columns.
    pub(super) features: Vec<String>,
    /// The windows of news, each with the index of its number of articles among the columns.
    pub(super) windows: Vec<(Days, usize)>,
    /// The pairs at whose signals features are measured: of each period the one with the most signals.
    measured_at: Vec<(Period, Regime)>,
    published: KnownNews,
    today: KnownNews,
}

/// The news of the signals of a date: as published and today, a row of each cell; none if its news is not known, or the cell
/// is not of the state.
pub(super) struct DateNews<'a> {
    news: &'a SignalNews,
    rows: [Vec<Option<u32>>; 2],
    /// As published and today: of each window, the group of each cell by the number of its articles.
    pub(super) groups: [Vec<Vec<usize>>; 2],
}

impl SignalNews {
    /// The news of a subject's signals. What was published is read from the first day with a published signal on; none has any
    /// without one. `None` if the dataset has no news.
    pub(super) fn read(
        subject: &Subject,
        plan: &DatasetPlan,
        prices: &Prices,
        (measured_at, first_published): (Vec<(Period, Regime)>, Option<Day>),
    ) -> Result<Option<Self>> {
        let Some(scope) = subject.scope() else { return Ok(None) };
        // A date is no number.
        let measured = plan.features.iter().filter(|feature| **feature != Feature::LastDate);
        let features: Vec<String> = measured.map(ToString::to_string).collect();
        let mut columns = features.clone();
        let mut windows = Vec::new();
        for days in plan.windows() {
            let count = Feature::count(days).to_string();
            let index = columns.iter().position(|name| *name == count).unwrap_or(columns.len());
            if index == columns.len() {
                columns.push(count);
            }
            windows.push((days, index));
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let today = KnownNews::read(subject, scope, &plan.of_features(Vintage::Latest), &columns, prices)?;
        let mut published = KnownNews { by_day: Vec::new(), columns: vec![Vec::new(); columns.len()] };
        if let Some(day) = first_published {
            let since = Filter { from: Some(date(day)), ..Filter::default() };
            let scope = Scope { filter: scope.filter.clone().and(since.clone()), ..scope.clone() };
            let plan = plan.of_features(Vintage::First);
            let plan = DatasetPlan { filter: plan.filter.clone().and(since), ..plan };
            published = KnownNews::read(subject, &scope, &plan, &columns, prices)?;
        }
        Ok(Some(Self { features, windows, measured_at, published, today }))
    }

    /// Whether features are measured at the signals of a pair.
    pub(super) fn is_measured_at(&self, pair: (Period, Regime)) -> bool {
        self.measured_at.contains(&pair)
    }

    /// The news of the cells of a date, in the order of their tickers.
    pub(super) fn of_date(&self, of: (Period, Regime), cells: &[Cell]) -> DateNews<'_> {
        let pair = pair(of.0, of.1) as u16;
        let rows = [
            self.published.rows(pair, cells, |cell, ready| cell.is_published && ready <= cell.entry),
            self.today.rows(pair, cells, |cell, _| !cell.is_withdrawn()),
        ];
        let groups = |known: &KnownNews, rows: &[Option<u32>]| -> Vec<Vec<usize>> {
            let of_window = |(_, index): &(Days, usize)| -> Vec<usize> {
                let counts = &known.columns[*index];
                rows.iter().map(|row| row.map_or(UNKNOWN, |row| group(counts[row as usize]))).collect()
            };
            self.windows.iter().map(of_window).collect()
        };
        let groups = [groups(&self.published, &rows[0]), groups(&self.today, &rows[1])];
        DateNews { news: self, rows, groups }
    }
}

impl DateNews<'_> {
    /// The values of a feature, as published and today; not a number where there is none.
    pub(super) fn values(&self, feature: usize) -> [Vec<f64>; 2] {
        let values = |known: &KnownNews, rows: &[Option<u32>]| -> Vec<f64> {
            rows.iter().map(|row| row.map_or(f64::NAN, |row| known.columns[feature][row as usize])).collect()
        };
        [values(&self.news.published, &self.rows[0]), values(&self.news.today, &self.rows[1])]
    }
}

/// The group of a number of articles.
fn group(articles: f64) -> usize {
    match articles {
        _ if articles.is_nan() => UNKNOWN,
        ..1.0 => 0,
        ..3.0 => 1,
        ..10.0 => 2,
        _ => 3,
    }
}

/// The news of the signals of one vintage.
struct KnownNews {
    /// By days from the first session, in the order of tickers and pairs.
    by_day: Vec<Vec<NewsEntry>>,
    /// The features that are measured, then the articles in each window, by row; not a number if it is null.
    columns: Vec<Vec<f64>>,
}

#[derive(Clone, Copy)]
struct NewsEntry {
    ticker: u16,
    pair: u16,
    /// The first session at whose close it was known.
    ready: u16,
    row: u32,
}

impl KnownNews {
    fn read(subject: &Subject, scope: &Scope, plan: &DatasetPlan, names: &[String], prices: &Prices) -> Result<Self> {
        let view = &subject.view;
        let past = plan.needs_past().then(|| view.past(scope, plan)).transpose()?;
        let seals = past.clone().filter(|_| plan.vintage == Vintage::First);
        let sessions = prices.sessions();
        let ready = |seen: i64| {
            let sealed = seals.as_ref().map_or(i64::MIN, |past| past.seal_time(seen)).div_euclid(MICROS_PER_DAY);
            u16::try_from(first_after(sessions, Day::try_from(sealed).unwrap_or(Day::MIN))).unwrap_or(u16::MAX)
        };
        let mut known = Self { by_day: Vec::new(), columns: vec![Vec::new(); names.len()] };
        let mut ticker: Option<Ticker> = None;
        let input = DatasetInput {
            slabs: || view.slabs(scope, plan.vintage),
            names: SeriesNames::default(),
            past,
            prices: None,
            stop: view.archive().stop(),
        };
        // In the order of tickers, so that nothing is sorted in files.
        dataset::build(input, plan, PathBuf::new(), |rows| {
            let column = |name: &str| rows.column(name).expect("the plan has the columns of signals and features");
            let (tickers, dates, seen) = (column("ticker"), column("date"), rows.column("first_observed_at"));
            let (symbols, moments) = (tickers.values().as_string::<i32>(), instants(dates));
            let (periods, regimes) = (column("period"), column("regime"));
            let (all_periods, all_regimes) = (choices::<Period>(periods), choices::<Regime>(regimes));
            let features: Vec<&Column> = names.iter().map(|name| column(name)).collect();
            let mut changes = tickers.boundaries() | dates.boundaries();
            features.iter().for_each(|feature| changes = &changes | feature.boundaries());
            for (start, end) in changes.runs() {
                let symbol = symbols.value(tickers.index(start));
                if ticker.as_ref().is_none_or(|last| last.as_str() != symbol) {
                    ticker = symbol.parse().ok();
                }
                let day = moments.value(dates.index(start)).div_euclid(MICROS_PER_DAY);
                let number = ticker.as_ref().and_then(|ticker| prices.of_ticker(ticker).number(day as Day));
                let (Some(ticker), Ok(day)) = (number, u16::try_from(day - i64::from(sessions[0]))) else { continue };
                let row = known.columns.first().map_or(0, Vec::len) as u32;
                known.columns.iter_mut().zip(&features).for_each(|(values, of)| values.push(number_at(of, start)));
                let day = usize::from(day);
                known.by_day.resize_with(known.by_day.len().max(day + 1), Vec::new);
                for index in start..end {
                    let (period, regime) = (code(periods, index), code(regimes, index));
                    let pair = pair(all_periods[period], all_regimes[regime]) as u16;
                    let ready = seen.map_or(0, |seen| ready(instants(seen).value(seen.index(index))));
                    known.by_day[day].push(NewsEntry { ticker, pair, ready, row });
                }
            }
            Ok(())
        })?;
        // Of several signals of a series on a day, the one that was seen first counts; without that, the first one.
        for entries in &mut known.by_day {
            entries.sort_by_key(|entry| (entry.ticker, entry.pair, entry.ready));
            entries.dedup_by_key(|entry| (entry.ticker, entry.pair));
        }
        Ok(known)
    }

    /// The row of each cell of a date that is taken, by the cell and the first session at whose close it was known.
    fn rows(&self, pair: u16, cells: &[Cell], is_taken: impl Fn(&Cell, u16) -> bool) -> Vec<Option<u32>> {
        let day = cells.first().map_or(0, |cell| usize::from(cell.day));
        let of_day = self.by_day.get(day).map_or(&[][..], Vec::as_slice);
        let row = |cell: &Cell| {
            let index = of_day.binary_search_by_key(&(cell.ticker, pair), |entry| (entry.ticker, entry.pair)).ok()?;
            is_taken(cell, of_day[index].ready).then_some(of_day[index].row)
        };
        cells.iter().map(row).collect()
    }
}

/// The values of a column of a closed set, by their codes.
fn choices<T: FromStr<Err: Debug>>(column: &Column) -> Vec<T> {
    let values = column.values().as_dictionary::<Int8Type>().values().as_string::<i32>();
    values.iter().flatten().map(|text| text.parse().expect("signals have a period and a regime")).collect()
}

fn code(column: &Column, row: usize) -> usize {
    column.values().as_dictionary::<Int8Type>().keys().value(column.index(row)) as usize
}

fn instants(column: &Column) -> &TimestampMicrosecondArray {
    column.values().as_primitive::<TimestampMicrosecondType>()
}

/// A value of a feature; not a number if it is null.
fn number_at(column: &Column, row: usize) -> f64 {
    let (values, index) = (column.values(), column.index(row));
    match values.data_type() {
        _ if values.is_null(index) => f64::NAN,
        DataType::Int32 => f64::from(values.as_primitive::<Int32Type>().value(index)),
        _ => values.as_primitive::<Float64Type>().value(index),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, KnownNews, NewsEntry, group};
    use crate::audit::skill::cells::Cell;

    #[test]
    fn a_cell_has_the_news_of_its_pair_as_soon_as_its_run_was_sealed() {
        let entry = |ticker, pair, ready, row| NewsEntry { ticker, pair, ready, row };
        let of_day =
            vec![entry(2, 7, 0, 10), entry(2, 9, 5, 11), entry(4, 9, 0, 12), entry(6, 7, 0, 13), entry(6, 9, 0, 13)];
        let known = KnownNews { by_day: vec![Vec::new(), of_day], columns: Vec::new() };
        let cells =
            [(1, 9), (2, 4), (2, 5), (4, 9), (6, 0), (8, 0)].map(|(ticker, entry)| Cell::of_test(ticker, 1, entry));
        let is_ready = |cell: &Cell, ready: u16| ready <= cell.entry;
        assert_eq!(known.rows(7, &cells, is_ready), [None, Some(10), Some(10), None, Some(13), None]);
        assert_eq!(known.rows(9, &cells, is_ready), [None, None, Some(11), Some(12), Some(13), None]);
        assert_eq!(known.rows(7, &[Cell::of_test(2, 9, 9)], is_ready), [None], "another day");
    }

    #[test]
    fn articles_are_counted_in_groups() {
        let groups = [0.0, 1.0, 2.0, 3.0, 9.0, 10.0, 500.0, f64::NAN].map(|articles| GROUPS[group(articles)]);
        assert_eq!(groups, ["0", "1-2", "1-2", "3-9", "3-9", "10+", "10+", "unknown"]);
    }
}
