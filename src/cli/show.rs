//! `bellwether show`: some rows of a dataset, as Polars prints them.

use super::outcome::Result;
use std::collections::{BTreeSet, VecDeque};
use std::env;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use bellwether::error::Error;
use bellwether::interface::{Period, Regime, Sector, Ticker};
use bellwether::load::{Batches, Dataset, Selection};
use bellwether::project::Project;
use bellwether::serve::draw::Draw;
use chrono::NaiveDate;
use polars::prelude::{Column, DataFrame, PlSmallStr};

use super::folders::DataFolder;
use super::say;
use super::store::StoreOption;
use super::typed::{day, known, one_of};
use super::wrap::columns;

/// The default number of rows: the most that Polars prints without eliding any.
const ROWS: usize = 10;

/// The most columns that Polars prints without eliding any.
const COLUMNS: usize = 8;

/// Print rows of a published dataset: the first, the last, or a sample.
///
/// Polars lays out the table; its settings apply, such as `POLARS_FMT_MAX_ROWS=50` and `POLARS_FMT_MAX_COLS=-1`.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// A dataset: NAME for its latest version, NAME/VERSION, or the path of a version.
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Print the first N rows. Default: 10.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true, conflicts_with_all = ["tail", "sample"])]
    head: Option<usize>,

    /// Print the last N rows.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true, conflicts_with = "sample")]
    tail: Option<usize>,

    /// Print N random rows, the same each time.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    sample: Option<usize>,

    /// Only these columns, in this order.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<String>,

    /// Only these tickers, separated by commas.
    #[arg(long = "ticker", value_name = "TICKER", value_delimiter = ',', value_parser = known::<Ticker>)]
    tickers: Vec<Ticker>,

    /// Only rows of these sectors, by the column `sector`.
    #[arg(long = "sector", value_name = "SECTOR", value_delimiter = ',', value_parser = known::<Sector>)]
    sectors: Vec<Sector>,

    /// Only these horizons: 1d to 30d, 1m to 6m.
    #[arg(long = "period", value_name = "PERIOD", value_delimiter = ',', value_parser = known::<Period>)]
    periods: Vec<Period>,

    /// Only these market regimes.
    #[arg(long = "regime", value_name = "REGIME", value_delimiter = ',', value_parser = one_of::<Regime>(Regime::ALL.map(Regime::as_str)))]
    regimes: Vec<Regime>,

    /// Only dates from this day on.
    #[arg(long, value_name = "DAY", value_parser = day)]
    from: Option<NaiveDate>,

    /// Only dates before this day.
    #[arg(long, value_name = "DAY", value_parser = day)]
    to: Option<NaiveDate>,

    #[command(flatten)]
    folder: DataFolder,

    #[command(flatten)]
    store: StoreOption,
}

impl Show {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        self.store.fetch_version(&self.dataset, &self.folder.data(project), project)?;
        let are_chosen = !self.columns.is_empty();
        let selection = Selection {
            columns: (!self.columns.is_empty()).then_some(self.columns),
            tickers: set(self.tickers),
            sectors: set(self.sectors),
            periods: set(self.periods),
            regimes: set(self.regimes),
            from: self.from,
            to: self.to,
        };
        let dataset = Dataset::published(&self.folder.datasets(project), &self.dataset)?.select(selection)?;
        let batches = dataset.batches()?;
        let rows = match (self.tail, self.sample) {
            (Some(count), _) => tail(batches, count),
            (_, Some(count)) => sample(batches, count),
            _ => head(batches, self.head.unwrap_or(ROWS)),
        };
        say(&table(dataset.frame_of(&rows.map_err(Error::of_stream)?)?, are_chosen)?)
    }
}

/// The values of an option; none if it was not given.
fn set<T: Ord>(values: Vec<T>) -> Option<BTreeSet<T>> {
    (!values.is_empty()).then(|| values.into_iter().collect())
}

/// The first rows of a dataset as a table.
pub(super) fn first_rows(dataset: &Dataset) -> Result<String> {
    let rows = head(dataset.batches()?, ROWS).map_err(Error::of_stream)?;
    table(dataset.frame_of(&rows)?, false)
}

/// A frame as text. On a terminal, where Polars would break names and dates into pieces to show more columns, these are
/// the first ones that fit, unless they were chosen.
fn table(frame: DataFrame, are_chosen: bool) -> Result<String> {
    let is_set = env::var_os("POLARS_FMT_MAX_COLS").is_some();
    let Some(room) = columns().filter(|_| !are_chosen && !is_set) else { return Ok(format!("{frame}\n")) };
    let all = frame.width();
    let ends = frame.columns().iter().scan(1, |end, column| {
        *end += width(column) + 3;
        Some(*end)
    });
    let fit = ends.take(COLUMNS).take_while(|end| *end <= room).count().max(1);
    if fit == all {
        return Ok(format!("{frame}\n"));
    }
    let names: Vec<PlSmallStr> = frame.get_column_names_owned().into_iter().take(fit).collect();
    let frame = frame.select(names).map_err(Error::frame)?;
    Ok(format!("{frame}\nthe first {fit} of {all} columns; `--columns` chooses others\n"))
}

/// The letters that Polars needs for a column.
fn width(column: &Column) -> usize {
    let values = (0..column.len()).filter_map(|row| Some(column.get(row).ok()?.str_value().chars().count()));
    values.chain([column.name().chars().count(), column.dtype().to_string().chars().count()]).max().unwrap_or_default()
}

/// A number of rows.
fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "use a whole number of rows, such as `20`".to_owned())
}

/// The first rows; reading stops after them.
fn head(batches: Batches, count: usize) -> Result<Vec<RecordBatch>, ArrowError> {
    let (mut rows, mut missing) = (Vec::new(), count);
    for batch in batches {
        let batch = batch?;
        let taken = batch.slice(0, missing.min(batch.num_rows()));
        missing -= taken.num_rows();
        rows.push(taken);
        if missing == 0 {
            break;
        }
    }
    Ok(rows)
}

/// The last rows.
fn tail(batches: Batches, count: usize) -> Result<Vec<RecordBatch>, ArrowError> {
    let (mut rows, mut held) = (VecDeque::new(), 0);
    for batch in batches {
        let batch = batch?;
        held += batch.num_rows();
        rows.push_back(batch);
        while rows.front().is_some_and(|first| held - first.num_rows() >= count) {
            held -= rows.pop_front().map_or(0, |first: RecordBatch| first.num_rows());
        }
    }
    if let Some(first) = rows.front_mut() {
        let surplus = held.saturating_sub(count);
        *first = first.slice(surplus, first.num_rows() - surplus);
    }
    Ok(rows.into())
}

/// A uniform random sample of the rows, in order; the same for the same dataset.
fn sample(batches: Batches, count: usize) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut sampled: Vec<(usize, RecordBatch)> = Vec::new();
    let random = Draw::from_seed(0);
    let mut seen = 0;
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let place = if sampled.len() < count { sampled.len() } else { place_below(random, seen + row) };
            if place >= count {
                continue;
            }
            // A copy, or the whole batch would be held.
            let copied = (seen + row, concat_batches(batch.schema_ref(), [&batch.slice(row, 1)])?);
            match sampled.get_mut(place) {
                Some(taken) => *taken = copied,
                None => sampled.push(copied),
            }
        }
        seen += batch.num_rows();
    }
    sampled.sort_unstable_by_key(|(place, _)| *place);
    Ok(sampled.into_iter().map(|(_, row)| row).collect())
}

/// A random place among the rows up to one, and that one.
fn place_below(random: Draw, row: usize) -> usize {
    random.at(row as u64).below(u32::try_from(row + 1).unwrap_or(u32::MAX)) as usize
}
