//! `bellwether show`: some rows of a dataset or of a file, as a table, CSV or JSON.

mod pick;
mod subject;
mod table;

use std::path::Path;

use arrow::array::RecordBatch;
use bellwether::error::Error;
use bellwether::export::{Coding, Destination, RowEncoding, RowFormat, RowOutput};
use bellwether::load::file::names_file;
use bellwether::load::{Dataset, Selection};
use bellwether::plan::{Added, Claims};
use bellwether::project::Project;
use bellwether::run::AsOf;
use bellwether::text::human::{count_of, group_digits};
use chrono::NaiveDate;

use super::folders::Folders;
use super::help::{OUTPUT, SELECTION};
use super::include::Include;
use super::outcome::Result;
use super::say;
use super::store::StoreOption;
use super::talk::data as stdout;
use super::typed::{as_of, day, one_of, usage};
use super::wanted::WantedRows;
use pick::{head, sample, tail};
use subject::{Matrix, ShownRows};
pub(super) use table::{ColumnOption, table};

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
    folders: Folders,

    #[command(flatten)]
    store: StoreOption,
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
                self.file(file)?
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
                let chosen_by = match &matrix {
                    Some(_) if self.wanted.tickers.is_empty() => ColumnOption::Ticker,
                    None if self.columns.is_empty() => ColumnOption::Columns,
                    _ => ColumnOption::Given,
                };
                let matrix = matrix.map_or_else(String::new, |matrix| matrix.line());
                let all = match count {
                    Some(count) => count,
                    None => {
                        for batch in batches {
                            seen += batch.map_err(Error::of_stream)?.num_rows() as u64;
                        }
                        seen
                    }
                };
                let shown = rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
                let part = match shown == all || shown == 0 {
                    true => String::new(),
                    false => format!("{} of {}\n", group_digits(shown), count_of(all, "row", "rows")),
                };
                let others = file.map_or_else(String::new, |file| others(&file));
                return say(&(table(&schema, &rows, chosen_by)? + &part + &matrix + &others));
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

/// An answer as a table: all of it, if it is not long.
#[cfg(feature = "query")]
pub(super) fn answer_table(rows: &RecordBatch) -> Result<String> {
    const MOST: usize = 100;
    let (shown, all) = (rows.slice(0, rows.num_rows().min(MOST)), rows.num_rows());
    let mut text = table(&rows.schema(), &[shown], ColumnOption::Given)?;
    if all > MOST {
        text += &format!("{MOST} of {}; `--output FILE` writes them\n", count_of(all as u64, "row", "rows"));
    }
    Ok(text)
}

/// A number of rows.
fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "use a whole number of rows, such as `20`".to_owned())
}
