//! Where the rows of an audit or a comparison go.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::talk::data;
use super::typed::usage;
use crate::error::Result;
use crate::export::{Form, Goal, Sheet};

/// Where to write rows, besides the tables that are printed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RowsTo {
    /// The format of the rows; `json` is one object per line. Default: by the extension of `--output`.
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Written>,

    /// Write the rows to a new file, or with `-` to standard output, which then has nothing else.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The format of rows.
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

    /// The format by the extension of a file.
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

    /// Computes an answer, and writes the rows that it delivers if they are wanted.
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

    /// Opens the output, if rows are wanted.
    fn begin(&self, schema: SchemaRef) -> Result<Option<Sheet>> {
        let Some(output) = &self.output else {
            return match self.format {
                Some(_) => Err(usage("`--format` needs `--output`", "add `--output FILE`, or `--output -`")),
                None => Ok(None),
            };
        };
        let Some(format) = self.format.or_else(|| Written::of(output)) else {
            let what = format!("cannot tell the format of `{}` from its extension", output.display());
            return Err(usage(&what, "add `--format parquet`, `--format csv` or `--format json`"));
        };
        let goal = if self.is_stdout() { Goal::Stream(Box::new(data())) } else { Goal::File(output.clone()) };
        Sheet::begin(format.form(), goal, schema).map(Some)
    }
}
