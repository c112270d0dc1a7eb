//! `bellwether show`: some rows of a dataset or of a file, as a table, CSV or JSON.

mod table;

use std::collections::VecDeque;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use bellwether::error::Error;
use bellwether::export::{Coding, Destination, PublishedReader, RowEncoding, RowFormat, RowOutput};
use bellwether::load::file::{FileRows, names_file};
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::{Added, Claims, Column, Shape};
use bellwether::project::Project;
use bellwether::run::{AsOf, FetchItem, Past};
use bellwether::serve::draw::Draw;
use bellwether::text::human::{count_of, group_digits};
use chrono::NaiveDate;

use super::options::{FolderOptions, Include, OUTPUT, SELECTION, StoreOption, WantedRows, as_of, day, one_of, usage};
use super::talk::{Result, data as stdout, say};
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
    /// The matrix that they are of; none for a long dataset.
    matrix: Option<Matrix>,
    /// Number of rows, if it is known without reading them.
    count: Option<u64>,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>,
}

/// A matrix among those that are selected.
struct Matrix {
    name: String,
    /// How many others are selected.
    others: usize,
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
        let file = names_file(&self.dataset);
        let subject = match (&self.as_of, &file) {
            (None, Some(file)) if self.include.claims() == Claims::LeftOut && !self.history && self.add.is_empty() => {
                let FileRows { schema, count, batches } = FileRows::open(file, self.selection())?;
                ShownRows { schema, matrix: None, count, batches }
            }
            (_, Some(_)) => {
                let hint = "name a definition, or leave out `--as-of`, `--history`, `--add` and `--include`";
                return Err(usage("a file has no past and no claims", hint));
            }
            (Some(as_of), None) => self.rebuild(Some(as_of), &self.dataset, project)?,
            (None, None) if self.history => self.rebuild(None, &self.dataset, project)?,
            (None, None) if !self.add.is_empty() => self.with_added(project)?,
            (None, None) if self.include.claims() == Claims::Included => {
                let hint =
                    "a published dataset has what was counted when it was built: `bellwether build --include claimed`";
                return Err(usage("`--include` needs `--as-of`", hint));
            }
            (None, None) => self.published_version(project)?,
        };
        let ShownRows { schema, matrix, count, mut batches } = subject;
        let is_table = matches!(self.format, ShowFormat::Table);
        let mut seen = 0;
        let counted = batches.by_ref().inspect(|batch| seen += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64);
        let rows = match (self.head, self.last(), self.sample) {
            (_, Some(count), _) => tail(counted, count),
            (_, _, Some(count)) => sample(counted, count),
            (Some(count), ..) => head(counted, count),
            _ if is_table => head(counted, if self.history { VALUES } else { ROWS }),
            _ => Ok(Vec::new()),
        };
        let rows = rows.map_err(Error::of_stream)?;
        let format = match self.format {
            ShowFormat::Table => {
                let all = match count {
                    Some(count) => count,
                    None => {
                        for batch in batches {
                            seen += batch.map_err(Error::of_stream)?.num_rows() as u64;
                        }
                        seen
                    }
                };
                return self.print_table(&schema, &rows, matrix, all);
            }
            ShowFormat::Csv => RowFormat::Csv(Coding::Plain),
            ShowFormat::Json => RowFormat::Json,
        };
        if let Some(Matrix { name, others: 1.. }) = matrix {
            let hint = format!("choose one with `--period`, `--regime` and `--columns`, or print a table of `{name}`");
            return Err(usage("several matrices are selected, and this format has room for one", &hint));
        }
        let to = Destination::Stream(Box::new(stdout()));
        let mut out = RowOutput::begin(format, to, schema, &RowEncoding::default())?;
        rows.iter().try_for_each(|rows: &RecordBatch| out.write(rows))?;
        if self.head.is_none() && self.tail.is_none() && self.sample.is_none() {
            for batch in batches {
                out.write(&batch.map_err(Error::of_stream)?)?;
            }
        }
        Ok(out.finish()?)
    }

    /// Prints rows as a table, with which part of all that is, and which matrix.
    fn print_table(&self, schema: &Schema, rows: &[RecordBatch], matrix: Option<Matrix>, all: u64) -> Result<()> {
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
        match matrix {
            None => {}
            Some(Matrix { name, others: 0 }) => text += &format!("`{name}`\n"),
            Some(Matrix { name, others }) => {
                let which = format!("`{name}`, the first of {} matrices", others + 1);
                text += &format!("{which}; `--period`, `--regime` and `--columns` choose another\n");
            }
        }
        say(&(text + &names_file(&self.dataset).map_or_else(String::new, |file| others(&file))))
    }

    /// A published version.
    fn published_version(&self, project: &Project) -> Result<ShownRows> {
        let folders = self.folders.of_project(project);
        self.store.fetch_version(&self.dataset, &folders, project)?;
        match Published::find(&folders.data.join("datasets"), &self.dataset)?.select(self.selection())? {
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
        let names = plan.dataset.written.names();
        // The columns that become matrices.
        let values: Option<Vec<String>> = match &plan.dataset.shape {
            Shape::Long => None,
            Shape::Wide(_) if !self.columns.is_empty() => Some(self.columns.clone()),
            Shape::Wide(values) => Some(values.iter().map(|value| names.of(value).to_owned()).collect()),
        };
        let ad_hoc = AdHoc { add: self.add.clone(), ..ad_hoc };
        let dataset = Dataset::from_archive(plan, &folders.archive, &ad_hoc)?;
        let Some(values) = values else { return ShownRows::new(&dataset.select(self.selection())?, None) };
        let rows = dataset.select(Selection { columns: None, ..self.selection() })?;
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let (matrix, rows) = first(rows.matrices(&values, Column::Date)?)?;
        Ok(ShownRows {
            schema: rows.schema(),
            matrix: Some(matrix),
            count: None,
            batches: Box::new([Ok(rows)].into_iter()),
        })
    }

    /// A published version, built again with further columns.
    fn with_added(&self, project: &Project) -> Result<ShownRows> {
        let folders = self.folders.of_project(project);
        self.store.fetch_version(&self.dataset, &folders, project)?;
        let version = PublishedReader::find(&folders.data.join("datasets"), &self.dataset)?;
        let reference = version.name();
        let (name, id) = reference.split_once('/').unwrap_or((&reference, ""));
        let id = id.rsplit('/').next().unwrap_or(id);
        self.rebuild(Some(&AsOf::Named(id.to_owned())), name, project)
    }

    /// How many of the last rows to print, if not others: of a dataset in the usual order, the newest of its last ticker.
    fn last(&self) -> Option<usize> {
        let is_chosen = self.head.is_some() || self.sample.is_some() || self.history;
        let is_default = matches!(self.format, ShowFormat::Table) && !is_chosen && names_file(&self.dataset).is_none();
        self.tail.or(is_default.then_some(ROWS))
    }

    /// The part of the dataset to show.
    fn selection(&self) -> Selection {
        let selection = self.wanted.selection();
        Selection {
            columns: (!self.columns.is_empty()).then(|| self.columns.clone()),
            from: self.date.or(selection.from),
            to: self.date.and_then(|date| date.succ_opt()).or(selection.to),
            ..selection
        }
    }
}

impl ShownRows {
    fn new(dataset: &Dataset, matrix: Option<Matrix>) -> Result<Self> {
        Ok(Self {
            schema: dataset.schema(),
            matrix,
            count: dataset.known_count(),
            batches: Box::new(dataset.batches()?),
        })
    }
}

/// The first of some matrices, by name.
fn first<T>(matrices: impl IntoIterator<Item = (String, T), IntoIter: ExactSizeIterator>) -> Result<(Matrix, T)> {
    let mut matrices = matrices.into_iter();
    let Some((name, first)) = matrices.next() else {
        return Err(usage("no matrix is selected", "choose another period, regime or range of dates"));
    };
    Ok((Matrix { name, others: matrices.len() }, first))
}

/// What else opens a file. DuckDB reads no Arrow, and Tabiew nothing compressed.
fn others(file: &Path) -> String {
    let name = file.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | '=' | '+');
    let [mut tabiew, mut duckdb] = ["`tw`".to_owned(), "`duckdb`".to_owned()];
    if name.chars().all(is_plain) {
        (tabiew, duckdb) = (format!("`tw {name}`"), format!("`duckdb -c \"from '{name}'\"`"));
    }
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("arrow") => format!("{tabiew} opens it as well\n"),
        Some("gz" | "zst") => format!("{duckdb} opens it as well\n"),
        _ => format!("{tabiew} and {duckdb} open it as well\n"),
    }
}

/// The first rows of a dataset as a table.
pub(super) fn first_rows(dataset: &Dataset) -> Result<String> {
    let rows = head(dataset.batches()?, ROWS).map_err(Error::of_stream)?;
    Ok(table(&dataset.schema(), &rows, ColumnOption::Columns)?)
}

/// A number of rows.
fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "use a whole number of rows, such as `20`".to_owned())
}

/// The first rows; reading stops after them.
fn head(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
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
fn tail(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
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
fn sample(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    count: usize,
) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut sampled: Vec<(usize, RecordBatch)> = Vec::new();
    let random = Draw::from_seed(0);
    let mut seen = 0;
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let index = if sampled.len() < count { sampled.len() } else { place_below(random, seen + row) };
            if index >= count {
                continue;
            }
            // A copy, or the whole batch would be held.
            let copied = (seen + row, concat_batches(batch.schema_ref(), [&batch.slice(row, 1)])?);
            match sampled.get_mut(index) {
                Some(taken) => *taken = copied,
                None => sampled.push(copied),
            }
        }
        seen += batch.num_rows();
    }
    sampled.sort_unstable_by_key(|(index, _)| *index);
    Ok(sampled.into_iter().map(|(_, row)| row).collect())
}

/// A random index among the rows up to one, and that one.
fn place_below(random: Draw, row: usize) -> usize {
    random.at(row as u64).below(u32::try_from(row + 1).unwrap_or(u32::MAX)) as usize
}
