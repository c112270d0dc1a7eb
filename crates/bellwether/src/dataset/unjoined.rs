//! Datasets to which nothing is joined: of news, with a row for each article as it was known, and of all vintages, with a row
//! for each value that a signal had.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::compute::{take, take_record_batch};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::external_sort::{ExternalSort, join_failed};
use super::live::is_backfilled;
use super::naive;
use super::signals::{Counts, SeriesNames, choice_column, instants, scores};
use crate::columns::Rows;
use crate::error::Result;
use crate::interface::{Period, Regime, Sector, Signal, Ticker};
use crate::plan::{Column, DatasetPlan, Duplicates, NaiveRule};
use crate::process::cancel::CancellationToken;
use crate::process::in_order::in_order;
use crate::sessions::day_of;
use crate::tables::{Past, SeriesKey, Table, TypedRows};

/// The input of a dataset of news.
pub struct Articles<'a, Cells> {
    /// The known articles of the archive, in the order of their cells.
    pub cells: Cells,
    /// The tickers that are selected.
    pub tickers: HashSet<Ticker>,
    /// The past of the archive, if sectors are a column.
    pub past: Option<Past>,
    /// Cancels the build.
    pub stop: &'a CancellationToken,
}

/// Builds a dataset of news and delivers its rows, batch by batch, in the order of the plan.
///
/// # Errors
///
/// If the articles cannot be read, if `deliver` fails, or once the token is cancelled.
pub fn articles<C: Iterator<Item = Result<RecordBatch>>>(
    sources: Articles<'_, C>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let Articles { cells, tickers, past, stop } = sources;
    // The archive keeps the tickers and dates in order, and whole dates together; only another clock can change that.
    let is_in_order = plan.sort == Column::KEY_OF_ARTICLES && plan.dates == NaiveRule::Utc;
    let mut sorting = ExternalSort::new(plan, is_in_order, scratch, stop)?;
    let (mut copies, mut counts) = (Copies::default(), Counts::default());
    for cells in cells {
        let batch = article_rows(&cells?, (&tickers, past.as_ref()), plan, &mut copies, &mut counts);
        let batch = batch.and_then(|batch| sort(&batch, plan)).map_err(join_failed)?;
        sorting.add(batch.into(), &mut deliver)?;
    }
    sorting.finish(&mut deliver)?;
    Ok(counts)
}

/// The rows of known articles that are selected, in the columns of the plan.
fn article_rows(
    cells: &RecordBatch,
    (selected, past): (&HashSet<Ticker>, Option<&Past>),
    plan: &DatasetPlan,
    copies: &mut Copies,
    counts: &mut Counts,
) -> Result<RecordBatch, ArrowError> {
    let typed = TypedRows(cells);
    let dates = naive::dates_of(cells, plan.dates);
    let copies: ArrayRef = match plan.dates {
        NaiveRule::Utc => Arc::clone(typed.column("copy")),
        _ => Arc::new(copies.number_all(cells, &dates)),
    };
    let (tickers, repeats, scores) = (Tickers::new(typed), typed.whole("repeats").values(), typed.reals("score"));
    let (written, first) = (typed.instants("date").values(), typed.instants("first_observed_at").values());
    let observed = typed.instants("observed_at").values();
    let days = plan.filter.dates();
    let mut rows = Vec::new();
    for row in 0..cells.num_rows() {
        let is_member = |ticker: &&Ticker| selected.contains(*ticker) && plan.filter.has_member(ticker, dates[row]);
        let Some(ticker) = tickers.of_row(row).filter(is_member).filter(|_| days.contains(&dates[row])) else {
            continue;
        };
        let is_repeated = repeats[row] > 0 && plan.duplicates == Duplicates::Once;
        let is_backfilled = is_backfilled(written[row], first[row], plan);
        counts.seen_live += u64::from(!is_repeated && !is_backfilled);
        counts.articles.count((!is_repeated).then(|| scores.is_valid(row).then(|| scores.value(row))));
        if !is_repeated {
            let (date, first, observed) = (dates[row], first[row], observed[row]);
            rows.push(Selected { row: row as u32, ticker, date, first, observed, until: None, is_backfilled });
        }
    }
    let kept: UInt32Array = rows.iter().map(|row| row.row).collect::<Vec<u32>>().into();
    let columns = plan.columns.iter().map(|&wanted| match wanted {
        Column::Copy => take(&copies, &kept, None),
        Column::WatchedUntil => {
            let until = |row: &Selected<'_>| {
                let ticker = row.ticker.clone();
                past?.watched_until(&SeriesKey { table: Some(Table::Articles), ticker, period: None, regime: None })
            };
            let until = rows.iter().map(until).collect::<TimestampMicrosecondArray>();
            Ok(Arc::new(until.with_timezone("UTC")) as ArrayRef)
        }
        _ => match common(wanted, &rows, plan, past) {
            Some(values) => Ok(values),
            None => take(typed.column(wanted.name()), &kept, None),
        },
    });
    RecordBatch::try_new(Arc::clone(&plan.schema), columns.collect::<Result<_, _>>()?)
}

/// The input of a dataset of all vintages.
pub struct Observations<'a, Values> {
    /// The values of signals over time, in whole tickers, in the order of their cells.
    pub values: Values,
    /// The series that are selected.
    pub series: HashSet<SeriesKey>,
    /// The names that they have.
    pub names: SeriesNames,
    /// The past of the archive, if the dataset depends on it.
    pub past: Option<Past>,
    /// Cancels the build.
    pub stop: &'a CancellationToken,
}

/// Builds a dataset of all vintages and delivers its rows, batch by batch, in the order of the plan.
///
/// # Errors
///
/// If the values cannot be read, if `deliver` fails, or once the token is cancelled.
pub fn observations<V: Iterator<Item = Result<RecordBatch>>>(
    sources: Observations<'_, impl FnOnce() -> Result<V> + Send>,
    plan: &DatasetPlan,
    scratch: PathBuf,
    mut deliver: impl FnMut(Rows) -> Result<()>,
) -> Result<Counts> {
    let Observations { values, series, names, past, stop } = sources;
    // The archive has its tickers in order.
    let is_ticker_first = plan.sort.first() == Some(&Column::Ticker);
    let mut sorting = ExternalSort::new(plan, is_ticker_first, scratch, stop)?;
    let mut counts = Counts::default();
    in_order(
        values,
        |values| {
            let (batch, counted) = value_rows(&values, &series, &names, past.as_ref(), plan).map_err(join_failed)?;
            Ok((sort(&batch, plan).map_err(join_failed)?, counted))
        },
        |(batch, counted)| {
            counts += counted;
            sorting.add(batch.into(), &mut deliver)
        },
    )?;
    sorting.finish(&mut deliver)?;
    Ok(counts)
}

/// The selected values of some tickers, in the columns of the plan.
fn value_rows(
    values: &RecordBatch,
    series: &HashSet<SeriesKey>,
    names: &SeriesNames,
    past: Option<&Past>,
    plan: &DatasetPlan,
) -> Result<(RecordBatch, Counts), ArrowError> {
    let typed = TypedRows(values);
    let tickers = Tickers::new(typed);
    let (rows, counts) = select_values(typed, &tickers, series, plan);
    let kept: UInt32Array = rows.iter().map(|row| row.row).collect::<Vec<u32>>().into();
    let signals = choice_column(typed.column("signal"), &Signal::ALL.map(Signal::as_str));
    let columns = plan.columns.iter().map(|&wanted| match wanted {
        Column::Period => take(&choice_column(typed.column("period"), &names.periods), &kept, None),
        Column::Regime => take(&choice_column(typed.column("regime"), &names.regimes), &kept, None),
        Column::Signal => take(&signals, &kept, None),
        Column::Confidence => take(typed.column("confidence"), &kept, None),
        Column::Score => take(&scores(&signals, typed.column("confidence")), &kept, None),
        Column::KnownFrom => Ok(instants(rows.iter().map(|row| row.observed).collect())),
        Column::KnownUntil => {
            let until = rows.iter().map(|row| row.until);
            Ok(Arc::new(until.collect::<TimestampMicrosecondArray>().with_timezone("UTC")) as ArrayRef)
        }
        Column::FirstObservedAt => Ok(instants(rows.iter().map(|row| row.first).collect())),
        _ => common(wanted, &rows, plan, past)
            .ok_or_else(|| ArrowError::SchemaError(format!("no value says its {}", wanted.name()))),
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok((RecordBatch::try_new(Arc::clone(&plan.schema), columns)?, counts))
}

/// The value of a cell before the next one.
struct LastValue {
    signal: Signal,
    confidence: f64,
    until: Option<i64>,
    /// Its index among those that are selected, if it is.
    place: Option<usize>,
}

/// The values that the plan selects.
fn select_values<'t>(
    rows: TypedRows<'_>,
    tickers: &'t Tickers<'_>,
    members: &HashSet<SeriesKey>,
    plan: &DatasetPlan,
) -> (Vec<Selected<'t>>, Counts) {
    let (written, until, offsets) = (rows.instants("date"), rows.instants("seen_until"), rows.offsets());
    let (from, confidences) = (rows.instants("seen_from").values(), rows.reals("confidence").values());
    let (periods, regimes) = (rows.choices::<Period>("period"), rows.choices::<Regime>("regime"));
    let signals = rows.choices::<Signal>("signal");
    let days = plan.filter.dates();
    let (mut selected, mut counts): (Vec<Selected<'_>>, Counts) = (Vec::new(), Counts::default());
    let mut series: Option<(&Ticker, Period, Regime, bool)> = None;
    // The dates of the series, each with the cell that has it: of several, the first one counts, as in every dataset.
    let mut cells: HashMap<i64, i64> = HashMap::new();
    let mut cell: Option<(i64, i64)> = None;
    let mut last: Option<LastValue> = None;
    for row in 0..written.len() {
        let said = (tickers.of_row(row), periods[row], regimes[row], signals[row]);
        let (Some(ticker), Some(period), Some(regime), Some(signal)) = said else { continue };
        let (confidence, from) = (confidences[row], from[row]);
        if series.is_none_or(|(of, its, regime_of, _)| (of, its, regime_of) != (ticker, period, regime)) {
            let table = Some(Table::Signals);
            let key = SeriesKey { table, ticker: ticker.clone(), period: Some(period), regime: Some(regime) };
            series = Some((ticker, period, regime, members.contains(&key)));
            (cell, last) = (None, None);
            cells.clear();
        }
        if written.is_null(row) || series.is_none_or(|(.., is_member)| !is_member) {
            continue;
        }
        let written = written.value(row);
        if cell.is_none_or(|(date, _)| date != written) {
            (cell, last) = (Some((written, from)), None);
        }
        let first = cell.map_or(0, |(_, first)| first);
        let date = plan.dates.face(written, offsets.is_valid(row).then(|| offsets.value(row)));
        let until = until.is_valid(row).then(|| until.value(row));
        // A value that another row repeats, with an offset or unknown fields that differ, goes on.
        if let Some(before) = &mut last
            && (before.signal, before.confidence) == (signal, confidence)
            && before.until == Some(from)
        {
            before.until = until;
            if let Some(place) = before.place {
                selected[place].until = until;
            }
            continue;
        }
        if *cells.entry(date).or_insert(written) != written {
            counts.repeated_signals += u64::from(last.is_none());
            last = Some(LastValue { signal, confidence, until, place: None });
            continue;
        }
        let is_selected =
            days.contains(&date) && plan.filter.has_member(ticker, date) && plan.filter.takes_value(signal, confidence);
        last = Some(LastValue { signal, confidence, until, place: is_selected.then_some(selected.len()) });
        if is_selected {
            let is_backfilled = is_backfilled(written, first, plan);
            counts.seen_live += u64::from(!is_backfilled);
            selected.push(Selected { row: row as u32, ticker, date, first, observed: from, until, is_backfilled });
        }
    }
    (selected, counts)
}

/// The tickers of some rows.
struct Tickers<'a> {
    parsed: Vec<Option<Ticker>>,
    keys: &'a [i32],
}

impl<'a> Tickers<'a> {
    fn new(rows: TypedRows<'a>) -> Self {
        let tickers = rows.symbols("ticker");
        let names = tickers.values().as_string::<i32>().iter();
        Self { parsed: names.map(|name| name?.parse().ok()).collect(), keys: tickers.keys().values() }
    }

    fn of_row(&self, row: usize) -> Option<&Ticker> {
        self.parsed[self.keys[row] as usize].as_ref()
    }
}

/// A row that is selected.
struct Selected<'a> {
    /// Its row among those of the archive.
    row: u32,
    ticker: &'a Ticker,
    /// Its naive date.
    date: i64,
    /// When its cell was first seen.
    first: i64,
    /// When its value was seen, and until when it was known.
    observed: i64,
    until: Option<i64>,
    is_backfilled: bool,
}

/// The columns that rows of both kinds have, by their ticker and by when they were seen; none for others.
fn common(wanted: Column, rows: &[Selected<'_>], plan: &DatasetPlan, past: Option<&Past>) -> Option<ArrayRef> {
    Some(match wanted {
        Column::Ticker => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.ticker.as_str()))),
        Column::Date => Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.date))),
        Column::Id => {
            let ids = rows.iter().map(|row| plan.identity.id(row.ticker, day_of(row.date)));
            Arc::new(ids.collect::<StringArray>())
        }
        Column::Sector => {
            let sector = |row: &Selected<'_>| past?.sector_at(row.ticker, past?.seal_time(row.first));
            Arc::new(rows.iter().map(|row| sector(row).map(Sector::as_str)).collect::<StringArray>())
        }
        Column::SectorLatest => {
            let sectors = rows.iter().map(|row| past?.latest_sector(row.ticker).map(Sector::as_str));
            Arc::new(sectors.collect::<StringArray>())
        }
        Column::Backfilled => {
            Arc::new(BooleanArray::from(rows.iter().map(|row| row.is_backfilled).collect::<Vec<bool>>()))
        }
        Column::Claimed => {
            let is_claimed = |row: &Selected<'_>| past.is_some_and(|past| past.is_claimed(row.observed, i64::MAX));
            Arc::new(BooleanArray::from(rows.iter().map(is_claimed).collect::<Vec<bool>>()))
        }
        _ => return None,
    })
}

/// The rows of a batch in the order of the plan.
pub(super) fn sort(batch: &RecordBatch, plan: &DatasetPlan) -> Result<RecordBatch, ArrowError> {
    let column = |column: &Column| batch.column_by_name(column.name()).cloned();
    let columns: Vec<ArrayRef> = plan.sort.iter().filter_map(column).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_unstable_by(|&one, &other| keys.row(one as usize).cmp(&keys.row(other as usize)));
    take_record_batch(batch, &UInt32Array::from(order))
}

/// The most that two recorded dates differ by if they are the same on a clock: offsets go up to a day.
const FARTHEST: i64 = 2 * 24 * 60 * 60 * 1_000_000;

/// A naive date, a title and a link.
type Article = (i64, Box<str>, Box<str>);

/// The numbers of an article.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The latest of its recorded dates.
    kept: i64,
    /// The number of its first copy at that date.
    first: i32,
    /// The number of its next copy at another date.
    next: i32,
}

/// Tells articles apart that have the same date under a rule other than UTC, by the articles of the last days of a ticker.
///
/// The archive's `copy` numbers the articles of a ticker that share a recorded date, a title and a link. Two recorded dates
/// may be the same on a clock: midnight in two offsets, or an hour that a clock repeats. The numbers of the later one then
/// continue those of the earlier one. Filters do not change the numbers.
#[derive(Debug, Default)]
struct Copies {
    ticker: String,
    numbers: HashMap<Article, Numbers>,
    /// The same articles by recorded date.
    recent: VecDeque<(i64, Article)>,
}

impl Copies {
    /// The numbers of known articles, which come in the order of their cells, with their naive dates.
    fn number_all(&mut self, cells: &RecordBatch, dates: &[i64]) -> Int32Array {
        let cells = TypedRows(cells);
        let (titles, links) = (cells.texts("title"), cells.texts("link"));
        let (kept, copies) = (cells.instants("date").values(), cells.whole("copy").values());
        let tickers = cells.symbols("ticker");
        let names = tickers.values().as_string::<i32>();
        let number = |row: usize| {
            let ticker = names.value(tickers.keys().value(row) as usize);
            if self.ticker != ticker {
                *self = Self { ticker: ticker.to_owned(), ..Self::default() };
            }
            self.number((dates[row], titles.value(row).into(), links.value(row).into()), kept[row], copies[row])
        };
        (0..kept.len()).map(number).collect()
    }

    fn number(&mut self, article: Article, kept: i64, copy: i32) -> i32 {
        while let Some((date, old)) = self.recent.pop_front_if(|(date, _)| kept - *date > FARTHEST) {
            if self.numbers.get(&old).is_some_and(|numbers| numbers.kept == date) {
                self.numbers.remove(&old);
            }
        }
        let known = self.numbers.get(&article).copied();
        let first = match known {
            Some(numbers) if numbers.kept == kept => numbers.first,
            Some(numbers) => numbers.next,
            None => 0,
        };
        if known.is_none_or(|numbers| numbers.kept != kept) {
            self.recent.push_back((kept, article.clone()));
        }
        let number = first + copy;
        self.numbers.insert(article, Numbers { kept, first, next: number + 1 });
        number
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};

    use super::Copies;
    use crate::tables::symbol_runs;

    const TWO_DAYS: i64 = 172_800_000_000;

    #[test]
    fn copies_at_a_later_recorded_date_continue_those_of_the_earlier_one() {
        // Recorded dates with the archive's copies, and the numbers of articles that have one date on a clock.
        for (seen, expected) in [
            (&[(0, 0), (0, 1), (0, 2)][..], &[0, 1, 2][..]),
            (&[(0, 0), (0, 1), (5, 0), (5, 1)], &[0, 1, 2, 3]),
            (&[(0, 0), (5, 0), (9, 0), (9, 1)], &[0, 1, 2, 3]),
            // The filter left some out.
            (&[(0, 1), (0, 3), (5, 0), (5, 2)], &[1, 3, 4, 6]),
            // No offset makes one date of two that are further apart.
            (&[(0, 0), (TWO_DAYS, 0), (TWO_DAYS + 1, 0)], &[0, 1, 2]),
            (&[(0, 0), (TWO_DAYS + 1, 0)], &[0, 0]),
        ] {
            let mut copies = Copies::default();
            let numbers: Vec<i32> = seen
                .iter()
                .map(|&(kept, copy)| copies.number((7, "title".into(), "link".into()), kept, copy))
                .collect();
            assert_eq!(numbers, expected, "{seen:?}");
        }
    }

    #[test]
    fn only_articles_of_one_ticker_date_title_and_link_share_numbers() {
        let rows = [
            ("A", 0, "x", "l"),
            ("A", 1, "x", "l"),
            ("A", 1, "y", "l"),
            ("A", 1, "x", "m"),
            ("A", 2, "x", "l"),
            ("B", 0, "x", "l"),
            ("B", 1, "x", "l"),
        ];
        let columns: [(&str, ArrayRef); 5] = [
            ("ticker", symbol_runs(rows.iter().map(|row| (row.0, 1)))),
            ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(|row| row.1)))),
            ("title", Arc::new(StringArray::from_iter_values(rows.map(|row| row.2)))),
            ("link", Arc::new(StringArray::from_iter_values(rows.map(|row| row.3)))),
            ("copy", Arc::new(Int32Array::from(vec![0; rows.len()]))),
        ];
        let cells = RecordBatch::try_from_iter(columns).unwrap();
        let numbers = |dates: &[i64]| Copies::default().number_all(&cells, dates).values().to_vec();
        assert_eq!(numbers(&[0; 7]), [0, 1, 0, 0, 2, 0, 1], "all have one date on the clock");
        assert_eq!(numbers(&[0, 0, 0, 0, 1, 0, 1]), [0, 1, 0, 0, 0, 0, 0], "the last of each has another");
    }

    #[test]
    fn articles_of_long_ago_take_no_memory() {
        let mut copies = Copies::default();
        for day in 0..1_000 {
            for kept in [day * TWO_DAYS / 2, day * TWO_DAYS / 2 + 1] {
                copies.number((day, "title".into(), "link".into()), kept, 0);
            }
        }
        assert!(copies.numbers.len() <= 3 && copies.recent.len() <= 6, "{}", copies.numbers.len());
    }
}
