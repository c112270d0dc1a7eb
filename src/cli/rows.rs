//! Where the rows of an audit or a comparison go.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bellwether::disk::file::{TargetFile, WhenExists};
use bellwether::error::{Error, Result};
use bellwether::export::{Coding, Destination, RowEncoding, RowFormat, RowOutput};
use bellwether::plan::Format;
use clap::ValueEnum as _;

use super::help::OUTPUT;
use super::talk::data;
use super::typed::usage;

/// Where to write rows, besides the tables that are printed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RowsTo {
    /// The format of the rows. Default: by the extension of `--output`.
    ///
    /// `json` is one object per line.
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = OUTPUT)]
    format: Option<FormatName>,

    /// Write the rows to a file, or to standard output (`-`).
    ///
    /// Standard output then has nothing else.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,
}

/// What to do with a file that exists.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Force {
    /// Replace the file of `--output` if it exists.
    #[arg(long, requires = "output", help_heading = OUTPUT)]
    force: bool,
}

impl Force {
    /// A file to write.
    pub(super) fn file(self, path: PathBuf) -> TargetFile {
        TargetFile { path, when_exists: if self.force { WhenExists::Replace } else { WhenExists::Refuse } }
    }
}

/// The format of rows by the extension of a file.
pub(super) fn row_format(path: &Path) -> Result<RowFormat> {
    let hint = "use a name that ends in `.parquet`, `.csv` or `.jsonl`";
    FormatName::of(path).map(FormatName::row_format).ok_or_else(|| unknown_format(path, hint))
}

fn unknown_format(path: &Path, hint: &str) -> Error {
    let what = format!("cannot tell the format of `{}` from its extension", path.display());
    usage(&what, hint)
}

/// A file that is named as if it had another format.
pub(super) fn name_mismatch(path: &Path, format: &str) -> Error {
    let what = format!("`--format {format}` does not fit the name `{}`", path.display());
    usage(&what, "leave out `--format`, or choose another name")
}

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    Parquet,
    Csv,
    #[value(name = "csv.gz")]
    CsvGz,
    #[value(name = "csv.zst")]
    CsvZst,
    Json,
}

impl FormatName {
    fn row_format(self) -> RowFormat {
        match self {
            Self::Parquet => RowFormat::Parquet,
            Self::Csv => RowFormat::Csv(Coding::Plain),
            Self::CsvGz => RowFormat::Csv(Coding::Gzip),
            Self::CsvZst => RowFormat::Csv(Coding::Zstd),
            Self::Json => RowFormat::Json,
        }
    }

    /// The format by the extension of a file.
    fn of(path: &Path) -> Option<Self> {
        match Format::of_file(path) {
            Some(Format::Parquet) => Some(Self::Parquet),
            Some(Format::Csv) => Some(Self::Csv),
            Some(Format::CsvGz) => Some(Self::CsvGz),
            Some(Format::CsvZst) => Some(Self::CsvZst),
            Some(Format::Arrow) => None,
            None => matches!(path.extension()?.to_str()?, "json" | "jsonl" | "ndjson").then_some(Self::Json),
        }
    }
}

impl RowsTo {
    /// Whether standard output is for the rows alone.
    pub(super) fn is_stdout(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }

    /// Whether the rows are written to a file, or to standard output.
    pub(super) fn is_file(&self) -> bool {
        self.output.is_some()
    }

    /// The file of the rows, `-` for standard output.
    pub(super) fn file(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Where further rows go: to a file beside the other one, `x.news.parquet` beside `x.parquet`.
    pub(super) fn beside(&self, what: &str) -> Self {
        let beside = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
            path.with_file_name(format!("{stem}.{what}.{ending}"))
        };
        Self { output: self.output.as_ref().map(beside), ..self.clone() }
    }

    /// Computes an answer, and writes the rows that it delivers if they are wanted.
    pub(super) fn fill<T>(
        &self,
        schema: SchemaRef,
        ask: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let mut rows_out = self.begin(schema)?;
        let found = ask(&mut |rows| rows_out.as_mut().map_or(Ok(()), |rows_out| rows_out.write(rows)))?;
        rows_out.map_or(Ok(()), RowOutput::finish)?;
        Ok(found)
    }

    /// Opens the output, if rows are wanted.
    fn begin(&self, schema: SchemaRef) -> Result<Option<RowOutput<'_>>> {
        let Some(output) = &self.output else {
            return match self.format {
                Some(_) => Err(usage("`--format` needs `--output`", "add `--output FILE`, or `--output -`")),
                None => Ok(None),
            };
        };
        // A difference has columns beside those of the dataset, whose names a definition chooses.
        let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        if let Some(name) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name)) {
            let what = format!("two columns of `{}` would have the name `{name}`", output.display());
            return Err(usage(&what, "change `rename` in the definition, build it again, and compare that"));
        }
        let format = self
            .format
            .or_else(|| FormatName::of(output))
            .ok_or_else(|| unknown_format(output, "add `--format parquet`, `--format csv` or `--format json`"))?;
        if FormatName::of(output).is_some_and(|named| named != format) {
            let chosen = format.to_possible_value().expect("each format has a name");
            return Err(name_mismatch(output, chosen.get_name()));
        }
        if self.is_stdout() && matches!(format, FormatName::Parquet) && data().is_terminal() {
            return Err(usage("a terminal cannot show Parquet", "use a file or a pipe, or `--format csv`"));
        }
        let destination = if self.is_stdout() {
            Destination::Stream(Box::new(data()))
        } else {
            Destination::File(self.force.file(output.clone()))
        };
        RowOutput::begin(format.row_format(), destination, schema, &RowEncoding::default()).map(Some)
    }
}
