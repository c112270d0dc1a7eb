//! Writes rows to a file or a pipe in any format.
//!
//! Arrow has a stream format that needs no seeking, and sends every batch at once. Parquet buffers row groups.

use std::io::{self, BufWriter, Write};
use std::slice;

use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;

use super::arrow_ipc::ArrowFileWriter;
use super::json::JsonWriter;
use super::record::sort;
use super::{Encoding, coding, parquet};
use crate::columns::csv::{Coding, CsvWriter};
use crate::columns::{ParquetWriter, RowBuffer, Rows, compact};
use crate::error::{Error, ErrorKind, Reason, system_error};
use crate::plan::{Codec, FilesPlan, Format, FormulaGuard, Plan};

const ROW_GROUP_ROWS: usize = 1 << 18;

/// How the rows are encoded.
#[derive(Clone, Debug)]
pub struct RowEncoding {
    encoding: Encoding,
    /// Rows per row group of Parquet.
    row_group_rows: usize,
}

impl Default for RowEncoding {
    fn default() -> Self {
        let (codec, guard) = (Codec::Zstd(3), FormulaGuard::None);
        let encoding = Encoding { codec, guard, sort: Vec::new(), metadata: Vec::new() };
        Self { encoding, row_group_rows: ROW_GROUP_ROWS }
    }
}

impl RowEncoding {
    /// As the published files of a dataset are encoded.
    pub fn of(plan: &Plan) -> Self {
        let FilesPlan { codec, guard, row_group_rows, .. } = plan.files;
        Self { encoding: Encoding { codec, guard, sort: sort(plan), metadata: Vec::new() }, row_group_rows }
    }
}

/// The format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Apache Parquet.
    Parquet,
    /// CSV with a header, compressed or not.
    Csv(Coding),
    /// JSON Lines.
    Json,
    /// Arrow IPC: a file or a stream, depending on the destination.
    Arrow,
}

impl From<Format> for RowFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Parquet => Self::Parquet,
            Format::Csv | Format::CsvGz | Format::CsvZst => Self::Csv(coding(format)),
            Format::Arrow => Self::Arrow,
        }
    }
}

/// What rows are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    File,
    Stream,
}

/// Writes rows in one of the formats.
pub(super) enum RowWriter<W: Write + Send> {
    Parquet(Box<ParquetWriter<W>>, RowBuffer),
    Csv(CsvWriter<W>),
    Json(JsonWriter<W>),
    Arrow(Box<StreamWriter<BufWriter<W>>>),
    ArrowFile(Box<ArrowFileWriter<W>>),
}

impl<W: Write + Send> RowWriter<W> {
    /// Starts a file or a stream, and writes its header.
    pub(super) fn create(
        format: RowFormat,
        kind: OutputKind,
        out: W,
        schema: SchemaRef,
        encoding: &RowEncoding,
    ) -> Result<Self, Reason> {
        Ok(match (format, kind) {
            (RowFormat::Parquet, _) => {
                let writer = parquet::create(out, schema, &encoding.encoding)?;
                Self::Parquet(Box::new(writer), RowBuffer::new(encoding.row_group_rows))
            }
            (RowFormat::Csv(coding), _) => Self::Csv(CsvWriter::create(out, coding, &schema, encoding.encoding.guard)?),
            (RowFormat::Json, _) => Self::Json(JsonWriter::new(out)),
            (RowFormat::Arrow, OutputKind::File) => Self::ArrowFile(Box::new(ArrowFileWriter::create(out, &schema)?)),
            (RowFormat::Arrow, OutputKind::Stream) => {
                Self::Arrow(Box::new(StreamWriter::try_new_buffered(out, &schema)?))
            }
        })
    }

    pub(super) fn write(&mut self, rows: &Rows) -> Result<(), Reason> {
        match self {
            Self::Parquet(writer, buffer) => {
                buffer.push(rows).iter().try_for_each(|group| writer.write(group))?;
            }
            Self::Csv(writer) => writer.write(slice::from_ref(rows))?,
            Self::Json(writer) => writer.write(&rows.flat()?)?,
            // Data frame libraries turn dictionaries into categories.
            Self::Arrow(writer) => {
                writer.write(&compact(&rows.flat()?)?)?;
                writer.flush()?;
            }
            Self::ArrowFile(writer) => writer.write(&rows.flat()?)?,
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), Reason> {
        match self {
            Self::Parquet(mut writer, mut buffer) => {
                buffer.take().map_or(Ok(()), |group| writer.write(&group))?;
                writer.finish()?;
            }
            Self::Csv(mut writer) => writer.finish()?,
            Self::Json(writer) => writer.finish()?,
            Self::Arrow(mut writer) => {
                writer.finish()?;
                writer.flush()?;
            }
            Self::ArrowFile(mut writer) => writer.finish()?,
        }
        Ok(())
    }
}

/// A failure to send, with the system's error wherever it is in the chain.
pub(super) fn failure(error: Reason) -> Error {
    let source = system_error(&error).unwrap_or_else(|| io::Error::other(error));
    Error::new(ErrorKind::Stream, "cannot write to the stream").with_source(source)
}
