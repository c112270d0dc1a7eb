//! Where the rows of an answer go.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::typed::usage;
use crate::error::Result;
use crate::export::{Form, Goal, Sheet};

/// The rows of an answer, beside the tables that are shown.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RowsTo {
    /// Write the rows themselves, as this; `json` is an object a line. The ending of the file tells it if it is not given.
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Written>,

    /// The new file for the rows, or `-` for standard output, which then has nothing else.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What rows are written as.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Written {
    Parquet,
    Csv,
    Json,
}

impl Written {
    fn form(self) -> Form {
        match self {
            Self::Parquet => Form::Parquet,
            Self::Csv => Form::Csv,
            Self::Json => Form::Json,
        }
    }

    /// What the ending of a file's name says.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            _ => None,
        }
    }
}

impl RowsTo {
    /// Whether standard output is for the rows alone.
    pub(super) fn is_stdout(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }

    /// Asks for an answer and writes the rows that it delivers, where they are asked for.
    pub(super) fn filled<T>(
        &self,
        schema: SchemaRef,
        ask: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let mut sheet = self.begin(schema)?;
        let found = ask(&mut |rows| sheet.as_mut().map_or(Ok(()), |sheet| sheet.write(rows)))?;
        sheet.map_or(Ok(()), Sheet::finish)?;
        Ok(found)
    }

    /// Begins the rows, where they are asked for.
    fn begin(&self, schema: SchemaRef) -> Result<Option<Sheet>> {
        let Some(output) = &self.output else {
            return match self.format {
                Some(_) => Err(usage("rows without a place to write them to", "add `--output FILE`, or `--output -`")),
                None => Ok(None),
            };
        };
        let Some(format) = self.format.or_else(|| Written::of(output)) else {
            let what = format!("nothing says what the rows in `{}` are to be written as", output.display());
            return Err(usage(&what, "add `--format parquet`, `--format csv` or `--format json`"));
        };
        let goal = if self.is_stdout() { Goal::Stdout } else { Goal::File(output.clone()) };
        Sheet::begin(format.form(), goal, schema).map(Some)
    }
}
