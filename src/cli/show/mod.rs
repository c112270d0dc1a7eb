//! `bellwether show`: some rows of a dataset or of a file, as a table, CSV or JSON.

mod table;

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use bellwether::export::{Coding, Destination, PublishedReader, RowEncoding, RowFormat, RowOutput};
use bellwether::load::file::{FileRows, names_file};
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::{Added, Claims, Column, Shape};
use bellwether::run::{AsOf, Past};
use bellwether::serve::draw::Draw;

use super::prelude::*;
pub(super) use table::{ColumnOption, MAX_ROWS, first_rows_of, table};

/// The default number of rows.
const ROWS: usize = 10;

/// The default number of values of a history.
const VALUES: usize = 100;

/// Print rows of a dataset or a file: the last, the first, or a sample.
///
/// A table is for reading: numbers have six decimals, long texts are shortened to the room that there is, and a terminal shows
/// the first columns that fit. `--format` has the values as they are. Of a wide dataset, one matrix is printed: `--period`, `--regime` and
/// `--columns` choose it, and `--ticker` its columns.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether show demo --ticker XOM --tail 5
      the last rows of one ticker
  bellwether show demo --as-of 2026-03-31 --format csv
      what was known at the end of March
  bellwether show demo --history --ticker XOM --date 2026-03-31
      each value that the signals of a date had, and when it was known")]
pub(super) struct Show {
    /// A dataset: NAME for its latest version, NAME/VERSION, or the path of a version; or any Parquet, CSV or Arrow file.
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Print the first N rows. Default: the last 10 of a dataset in a table, the first 10 of a file, and all as CSV or JSON.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true, conflicts_with_all = ["tail", "sample"], help_heading = SELECTION)]
    head: Option<usize>,

    /// Print the last N rows.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true, conflicts_with = "sample", help_heading = SELECTION)]
    tail: Option<usize>,

    /// Print N random rows, the same each time.
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true, help_heading = SELECTION)]
    sample: Option<usize>,

    /// Only these columns, in this order.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = SELECTION)]
    columns: Vec<String>,

    /// Print a table, CSV, or JSON with an object per line.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ShowFormat::Table, hide_possible_values = true, help_heading = OUTPUT)]
    format: ShowFormat,

    /// Build the dataset as it was known at an instant, or as of a version or a run. Nothing is published.
    ///
    /// An instant is `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`. A version is built again from its
    /// own runs and its own definition; a run stands for all that it knew. DATASET is then the name of a definition, or its
    /// path.
    #[arg(long, value_name = "WHEN", value_parser = as_of)]
    as_of: Option<AsOf>,

    /// Add columns that the dataset does not have: `tradable_at`, `known_at`, `first_observed_at`.
    ///
    /// The version is built again in memory, from its own runs.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', value_parser = one_of::<Added>(Added::ALL.iter().map(|it| it.as_str())), hide_possible_values = true, help_heading = OUTPUT)]
    add: Vec<Added>,
    /// Print each value that the signals had, with when it was known: repainted and restated ones too.
    ///
    /// DATASET is then the name of a definition, or its path. `known_until` is null for what is still known.
    #[arg(long)]
    history: bool,

    /// Only this date.
    #[arg(long, value_name = "DAY", value_parser = day, conflicts_with_all = ["from", "to"], help_heading = SELECTION)]
    date: Option<NaiveDate>,

    #[command(flatten)]
    include: Include,

    #[command(flatten)]
    wanted: WantedRows,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

/// The rows to choose from.
struct ShownRows {
    schema: SchemaRef,
    /// The matrix that they are of, and how many others are selected; none for a long dataset.
    matrix: Option<(String, usize)>,
    /// Number of rows, if it is known without reading them.
    count: Option<u64>,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShowFormat {
    Table,
    Csv,
    Json,
}

impl Show {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let ShownRows { schema, matrix, count, mut batches } = self.rows(project)?;
        let format = match self.format {
            ShowFormat::Table => None,
            ShowFormat::Csv => Some(RowFormat::Csv(Coding::Plain)),
            ShowFormat::Json => Some(RowFormat::Json),
        };
        let mut seen = 0;
        let counted = batches.by_ref().inspect(|batch| seen += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64);
        let rows = match (self.head, self.last(), self.sample) {
            (_, Some(count), _) => tail(counted, count),
            (_, _, Some(count)) => sample(counted, count),
            (Some(count), ..) => head(counted, count),
            _ if format.is_none() => head(counted, if self.history { VALUES } else { ROWS }),
            _ => Ok(Vec::new()),
        };
        let rows = rows.map_err(Error::of_stream)?;
        let Some(format) = format else {
            if count.is_none() {
                for batch in batches {
                    seen += batch.map_err(Error::of_stream)?.num_rows() as u64;
                }
            }
            return self.print_table(&schema, &rows, matrix, count.unwrap_or(seen));
        };
        if let Some((name, 1..)) = matrix {
            let hint = format!("choose one with `--period`, `--regime` and `--columns`, or print a table of `{name}`");
            return Err(usage("several matrices are selected, and this format has room for one", &hint));
        }
        let to = Destination::Stream(Box::new(stdout()));
        let mut out = RowOutput::begin(format, to, schema, &RowEncoding::default())?;
        rows.iter().try_for_each(|rows| out.write(rows))?;
        if self.head.is_none() && self.tail.is_none() && self.sample.is_none() {
            for batch in batches {
                out.write(&batch.map_err(Error::of_stream)?)?;
            }
        }
        Ok(out.finish()?)
    }

    /// The rows that are meant: of a file, of the past, or of a published version.
    fn rows(&self, project: &Project) -> Result<ShownRows> {
        let counts_claims = self.include.claims() == Claims::Included;
        let is_of_past = self.as_of.is_some() || self.history || !self.add.is_empty();
        if let Some(file) = names_file(&self.dataset) {
            if is_of_past || counts_claims {
                let hint = "name a definition, or leave out `--as-of`, `--history`, `--add` and `--include`";
                return Err(usage("a file has no past and no claims", hint));
            }
            let FileRows { schema, count, batches } = FileRows::open(&file, self.selection())?;
            return Ok(ShownRows { schema, matrix: None, count, batches });
        }
        if self.as_of.is_some() || self.history {
            return self.rebuild(self.as_of.as_ref(), &self.dataset, project);
        }
        if counts_claims && !is_of_past {
            let hint =
                "a published dataset has what was counted when it was built: `bellwether build --include claimed`";
            return Err(usage("`--include` needs `--as-of`", hint));
        }
        let folders = self.folders.of_project(project);
        self.store.fetch_version(&self.dataset, &folders, project)?;
        let datasets = folders.data.join("datasets");
        if is_of_past {
            // A published version, built again with further columns.
            let reference = PublishedReader::find(&datasets, &self.dataset)?.name();
            let (name, id) = reference.split_once('/').unwrap_or((&reference, ""));
            let id = id.rsplit('/').next().unwrap_or(id);
            return self.rebuild(Some(&AsOf::Named(id.to_owned())), name, project);
        }
        match Published::find(&datasets, &self.dataset)?.select(self.selection())? {
            Published::Long(dataset) => {
                let rows = self.last().map(|rows| dataset.ending(rows));
                ShownRows::new(rows.as_ref().unwrap_or(&dataset), None)
            }
            Published::Wide(matrices) => {
                let (matrix, dataset) = first(matrices)?;
                ShownRows::new(&dataset, Some(matrix))
            }
        }
    }

    /// Prints rows as a table, with which part of all that is, and which matrix.
    fn print_table(
        &self,
        schema: &Schema,
        rows: &[RecordBatch],
        matrix: Option<(String, usize)>,
        all: u64,
    ) -> Result<()> {
        let chosen_by = match &matrix {
            Some(_) if self.wanted.tickers.is_empty() => ColumnOption::Ticker,
            None if self.columns.is_empty() => ColumnOption::Columns,
            _ => ColumnOption::Given,
        };
        let mut text = table(schema, rows, chosen_by)?;
        let shown = rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        if shown != all && shown != 0 {
            text += &format!("{} of {}\n", group_digits(shown), count_of(all, "row", "rows"));
        }
        if let Some((name, others)) = matrix {
            text += &match others {
                0 => format!("`{name}`\n"),
                _ => format!(
                    "`{name}`, the first of {} matrices; `--period`, `--regime` and `--columns` choose another\n",
                    others + 1
                ),
            };
        }
        text += &names_file(&self.dataset).map_or_else(String::new, |file| others(&file));
        say(&text)
    }

    /// A dataset that is built in memory, as it was known, or the history of its values.
    fn rebuild(&self, as_of: Option<&AsOf>, name: &str, project: &Project) -> Result<ShownRows> {
        let (folders, claims) = (self.folders.of_project(project), self.include.claims());
        let Past { plan, as_of, version, .. } = self.store.past(Some(name), as_of, claims, &folders, project)?;
        self.store.fetch(Some(&plan), &folders, &[FetchItem::Runs(as_of)])?;
        let ad_hoc = AdHoc { as_of, version, claims, ..AdHoc::default() };
        if self.history {
            let values = Dataset::history(&plan, &folders.archive, &ad_hoc)?;
            return ShownRows::new(&values.select(self.selection())?, None);
        }
        // The columns that become matrices.
        let names = plan.dataset.written.names();
        let values: Vec<String> = match &plan.dataset.shape {
            Shape::Wide(values) if self.columns.is_empty() => {
                values.iter().map(|value| names.of(value).to_owned()).collect()
            }
            _ => self.columns.clone(),
        };
        let is_long = plan.dataset.shape == Shape::Long;
        let ad_hoc = AdHoc { add: self.add.clone(), ..ad_hoc };
        let dataset = Dataset::from_archive(plan, &folders.archive, &ad_hoc)?;
        if is_long {
            return ShownRows::new(&dataset.select(self.selection())?, None);
        }
        let rows = dataset.select(Selection { columns: None, ..self.selection() })?;
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let (matrix, rows) = first(rows.matrices(&values, Column::Date)?)?;
        let (schema, matrix) = (rows.schema(), Some(matrix));
        Ok(ShownRows { schema, matrix, count: None, batches: Box::new([Ok(rows)].into_iter()) })
    }

    /// How many of the last rows to print, if not others: of a dataset in the usual order, the newest of its last ticker.
    fn last(&self) -> Option<usize> {
        let is_chosen = self.head.is_some() || self.sample.is_some() || self.history;
        let is_default = self.format == ShowFormat::Table && !is_chosen && names_file(&self.dataset).is_none();
        self.tail.or(is_default.then_some(ROWS))
    }

    /// The part of the dataset to show.
    fn selection(&self) -> Selection {
        let wanted = &self.wanted;
        Selection {
            columns: (!self.columns.is_empty()).then(|| self.columns.clone()),
            tickers: set(&wanted.tickers),
            sectors: set(&wanted.sectors),
            periods: set(&wanted.periods),
            regimes: set(&wanted.regimes),
            from: self.date.or(wanted.from),
            to: self.date.and_then(|date| date.succ_opt()).or(wanted.to),
        }
    }
}

impl ShownRows {
    fn new(dataset: &Dataset, matrix: Option<(String, usize)>) -> Result<Self> {
        let (schema, count) = (dataset.schema(), dataset.known_count());
        Ok(Self { schema, matrix, count, batches: Box::new(dataset.batches()?) })
    }
}

/// The first of some matrices, by name, with the number of the others.
fn first<T>(
    matrices: impl IntoIterator<Item = (String, T), IntoIter: ExactSizeIterator>,
) -> Result<((String, usize), T)> {
    let mut matrices = matrices.into_iter();
    let Some((name, first)) = matrices.next() else {
        return Err(usage("no matrix is selected", "choose another period, regime or range of dates"));
    };
    Ok(((name, matrices.len()), first))
}

/// What else opens a file. DuckDB reads no Arrow, and Tabiew nothing compressed.
fn others(file: &Path) -> String {
    let name = file.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | '=' | '+');
    let (tabiew, duckdb) = match name.chars().all(is_plain) {
        true => (format!("`tw {name}`"), format!("`duckdb -c \"from '{name}'\"`")),
        false => ("`tw`".to_owned(), "`duckdb`".to_owned()),
    };
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("arrow") => format!("{tabiew} opens it as well\n"),
        Some("gz" | "zst") => format!("{duckdb} opens it as well\n"),
        _ => format!("{tabiew} and {duckdb} open it as well\n"),
    }
}

/// The first rows of a dataset as a table.
pub(super) fn first_rows(dataset: &Dataset) -> error::Result<String> {
    let rows = head(dataset.batches()?, ROWS).map_err(Error::of_stream)?;
    table(&dataset.schema(), &rows, ColumnOption::Columns)
}

/// A number of rows.
fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "use a whole number of rows, such as `20`".to_owned())
}

type Batches = Result<Vec<RecordBatch>, ArrowError>;

/// The first rows; reading stops after them.
fn head(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>, count: usize) -> Batches {
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
fn tail(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>, count: usize) -> Batches {
    let (mut rows, mut held) = (VecDeque::<RecordBatch>::new(), 0);
    for batch in batches {
        let batch = batch?;
        held += batch.num_rows();
        rows.push_back(batch);
        while let Some(first) = rows.pop_front_if(|first| held - first.num_rows() >= count) {
            held -= first.num_rows();
        }
    }
    if let Some(first) = rows.front_mut() {
        let surplus = held.saturating_sub(count);
        *first = first.slice(surplus, first.num_rows() - surplus);
    }
    Ok(rows.into())
}

/// A uniform random sample of the rows, in order; the same for the same dataset.
fn sample(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>, count: usize) -> Batches {
    let mut sampled: Vec<(usize, RecordBatch)> = Vec::new();
    let random = Draw::from_seed(0);
    let mut seen = 0;
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let number = seen + row;
            let below = u32::try_from(number + 1).unwrap_or(u32::MAX);
            let is_full = sampled.len() >= count;
            let index = if is_full { random.at(number as u64).below(below) as usize } else { sampled.len() };
            if index >= count {
                continue;
            }
            // A copy, or the whole batch would be held.
            let copied = (number, concat_batches(batch.schema_ref(), [&batch.slice(row, 1)])?);
            match sampled.get_mut(index) {
                Some(taken) => *taken = copied,
                None => sampled.push(copied),
            }
        }
        seen += batch.num_rows();
    }
    sampled.sort_unstable_by_key(|(number, _)| *number);
    Ok(sampled.into_iter().map(|(_, row)| row).collect())
}
