//! The news of signals: the features that the definition names, and how many articles each window has.
//!
//! The numbers are those of the dataset, built twice. *As published* is the dataset of first vintages: the news that the run
//! which first saw a signal, or one before it, had seen. *Today* is the dataset of latest values. A number that was published
//! counts from the first session after the day, in UTC, on which its run was sealed: a run that was interrupted may be sealed
//! after its signals are entered.
//!
//! Nearly all signals of a ticker and day share their news, whatever their period and regime, so it is held once.

use std::path::PathBuf;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int8Type, Int32Type, TimestampMicrosecondType};

use super::cells::{Cell, pair};
use crate::archive::Scope;
use crate::audit::subject::Subject;
use crate::columns::{Column, Rows};
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

/// Every pair of a ticker and day, but those that have an entry of their own.
const OTHERS: u16 = u16::MAX;

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
    groups: [Vec<Vec<usize>>; 2],
}

impl SignalNews {
    /// The news of a subject's signals. What was published is read from the first day with a published signal on; none has any
    /// without one. `None` if the dataset has no news.
    pub(super) fn of(
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
            let count = Feature::Count(days).to_string();
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
        let mut published = KnownNews::with(columns.len());
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
            self.published.rows(pair, cells, |cell, ready| cell.is_published() && ready <= cell.entry),
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
    /// Of each window, the group of each cell by the number of its articles: as published and today.
    pub(super) fn groups(&self) -> [&[Vec<usize>]; 2] {
        self.groups.each_ref().map(Vec::as_slice)
    }

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
    /// By days from the first session, in the order of tickers; those of single pairs before those of the others.
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
    /// No news, in some columns.
    fn with(columns: usize) -> Self {
        Self { by_day: Vec::new(), columns: vec![Vec::new(); columns] }
    }

    fn read(subject: &Subject, scope: &Scope, plan: &DatasetPlan, names: &[String], prices: &Prices) -> Result<Self> {
        let view = subject.view();
        let past = plan.needs_past().then(|| view.past(scope, plan)).transpose()?;
        let seals = past.clone().filter(|_| plan.vintage == Vintage::First);
        let sessions = prices.sessions();
        let ready = |seen: i64| {
            let sealed = seals.as_ref().map_or(i64::MIN, |past| past.seal_time(seen)).div_euclid(MICROS_PER_DAY);
            u16::try_from(first_after(sessions, Day::try_from(sealed).unwrap_or(Day::MIN))).unwrap_or(u16::MAX)
        };
        let mut known = Self::with(names.len());
        let mut reading = Reading { names, prices, ready, last: None };
        dataset::build(
            DatasetInput {
                slabs: || view.slabs(scope, plan.vintage),
                names: SeriesNames::default(),
                past,
                prices: None,
                stop: view.archive().stop(),
            },
            plan,
            // In the order of tickers, so that nothing is sorted in files.
            PathBuf::new(),
            |rows| {
                reading.add(&rows, &mut known);
                Ok(())
            },
        )?;
        let order = |entry: &NewsEntry| (entry.ticker, entry.pair);
        known.by_day.iter_mut().for_each(|entries| entries.sort_unstable_by_key(order));
        Ok(known)
    }

    /// The row of each cell of a date that is taken, by the cell and the first session at whose close it was known.
    fn rows(&self, pair: u16, cells: &[Cell], is_taken: impl Fn(&Cell, u16) -> bool) -> Vec<Option<u32>> {
        let day = cells.first().map_or(0, |cell| usize::from(cell.day));
        let mut rest = self.by_day.get(day).map_or(&[][..], Vec::as_slice);
        let row = |cell: &Cell| {
            let ticker = cell.ticker;
            let before = rest.iter().take_while(|entry| entry.ticker < ticker).count();
            rest = &rest[before..];
            let mut of_ticker = rest.iter().take_while(|entry| entry.ticker == ticker);
            let entry = of_ticker.find(|entry| entry.pair == pair || entry.pair == OTHERS)?;
            is_taken(cell, entry.ready).then_some(entry.row)
        };
        cells.iter().map(row).collect()
    }
}

/// Takes the rows of a dataset.
struct Reading<'a, Ready> {
    names: &'a [String],
    prices: &'a Prices,
    /// The first session after the run was sealed that first saw a signal at an instant.
    ready: Ready,
    /// The ticker of the row before.
    last: Option<Ticker>,
}

impl<Ready: Fn(i64) -> u16> Reading<'_, Ready> {
    fn add(&mut self, rows: &Rows, known: &mut KnownNews) {
        let column = |name: &str| rows.column(name).expect("the plan has the columns of signals and features");
        let (tickers, dates) = (column("ticker"), column("date"));
        let names = tickers.values().as_string::<i32>();
        let moments = dates.values().as_primitive::<TimestampMicrosecondType>();
        let features: Vec<&Column> = self.names.iter().map(|name| column(name)).collect();
        let seen = rows.column("first_observed_at");
        let mut changes = tickers.boundaries() | dates.boundaries();
        features.iter().for_each(|feature| changes = &changes | feature.boundaries());
        let runs: Vec<(usize, usize)> = changes.runs().collect();
        let of_row =
            |row: usize| (names.value(tickers.index(row)), moments.value(dates.index(row)).div_euclid(MICROS_PER_DAY));
        let pairs = PairColumns { periods: column("period"), regimes: column("regime") };
        for of_day in runs.chunk_by(|one, next| of_row(one.0) == of_row(next.0)) {
            let (name, day) = of_row(of_day[0].0);
            let Some(ticker) = self.number(name, day as Day) else { continue };
            let Ok(day) = u16::try_from(day - i64::from(self.prices.sessions()[0])) else { continue };
            let day = usize::from(day);
            if known.by_day.len() <= day {
                known.by_day.resize(day + 1, Vec::new());
            }
            // Of several signals of a series on a day, the one that was seen first counts; without that, the first one.
            let mut chosen: Vec<NewsEntry> = Vec::new();
            let mut pairs_seen = 0_u128;
            for (start, end) in of_day.iter().copied() {
                let value = known.columns.first().map_or(0, Vec::len) as u32;
                known.columns.iter_mut().zip(&features).for_each(|(values, of)| values.push(number(of, start)));
                // Nothing tells the rows of most days apart.
                let end = if of_day.len() == 1 && seen.is_none() { start + 1 } else { end };
                for row in start..end {
                    let pair = pairs.pair(row);
                    let ready = seen.map_or(0, |seen| (self.ready)(instant(seen, row)));
                    let entry = NewsEntry { ticker, pair, ready, row: value };
                    if pairs_seen & (1 << pair) == 0 {
                        pairs_seen |= 1 << pair;
                        chosen.push(entry);
                    } else if let Some(known) =
                        chosen.iter_mut().find(|known| known.pair == pair && ready < known.ready)
                    {
                        *known = entry;
                    }
                }
            }
            // Those that have the same news as the first one stand with it.
            let Some(first) = chosen.first().copied() else { continue };
            let others = chosen.iter().filter(|entry| (entry.ready, entry.row) != (first.ready, first.row));
            known.by_day[day].push(NewsEntry { pair: OTHERS, ..first });
            known.by_day[day].extend(others);
        }
    }

    /// The number among the prices of what a ticker stands for on a day.
    fn number(&mut self, name: &str, day: Day) -> Option<u16> {
        if self.last.as_ref().is_none_or(|last| last.as_str() != name) {
            self.last = name.parse().ok();
        }
        self.prices.of_ticker(self.last.as_ref()?).number(day)
    }
}

/// The columns that tell which pair a row is of.
struct PairColumns<'a> {
    periods: &'a Column,
    regimes: &'a Column,
}

impl PairColumns<'_> {
    /// The number of the pair of a row.
    fn pair(&self, row: usize) -> u16 {
        fn choice<T: std::str::FromStr>(column: &Column, row: usize) -> Option<T> {
            let codes = column.values().as_dictionary::<Int8Type>();
            let code = codes.keys().value(column.index(row));
            codes.values().as_string::<i32>().value(code as usize).parse().ok()
        }
        let (period, regime) = (choice(self.periods, row), choice(self.regimes, row));
        let (period, regime) = period.zip(regime).expect("signals have a period and a regime");
        pair(period, regime) as u16
    }
}

fn instant(column: &Column, row: usize) -> i64 {
    column.values().as_primitive::<TimestampMicrosecondType>().value(column.index(row))
}

/// A value of a feature; not a number if it is null.
fn number(column: &Column, row: usize) -> f64 {
    let (values, index) = (column.values(), column.index(row));
    match values.data_type() {
        _ if values.is_null(index) => f64::NAN,
        DataType::Int32 => f64::from(values.as_primitive::<Int32Type>().value(index)),
        _ => values.as_primitive::<Float64Type>().value(index),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, KnownNews, NewsEntry, OTHERS, group};
    use crate::audit::skill::cells::Cell;

    #[test]
    fn a_cell_has_the_news_of_its_pair_as_soon_as_its_run_was_sealed() {
        let entry = |ticker, pair, ready, row| NewsEntry { ticker, pair, ready, row };
        let of_day = vec![entry(2, 7, 0, 10), entry(2, OTHERS, 5, 11), entry(4, 9, 0, 12), entry(6, OTHERS, 0, 13)];
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
