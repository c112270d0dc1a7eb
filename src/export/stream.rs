//! Streams rows to a pipe.

use std::io::{self, BufWriter, Write};
use std::slice;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;

use super::arrow_ipc::ArrowFileWriter;
use super::csv::CsvWriter;
use super::error::ExportError;
use super::json::JsonWriter;
use super::{Encoding, parquet};
use crate::columns::{ParquetWriter, RowBuffer, Rows, compacted};
use crate::error::{Error, Reason, Result, system_error};
use crate::plan::{Codec, Format, FormulaGuard};

const ROW_GROUP_ROWS: usize = 1 << 18;

/// Rows being streamed. Arrow has a stream format that needs no seeking, and sends every batch at once. Parquet buffers
/// row groups.
pub struct Stream<W: Write + Send>(RowWriter<W>);

/// Writes rows to a pipe in one of the formats.
pub(super) enum RowWriter<W: Write + Send> {
    Parquet(Box<ParquetWriter<W>>, RowBuffer),
    Csv(CsvWriter<W>),
    Json(JsonWriter<W>),
    Arrow(Box<StreamWriter<BufWriter<W>>>),
    ArrowFile(Box<ArrowFileWriter<W>>),
}

impl<W: Write + Send> Stream<W> {
    /// Starts a stream and sends its header.
    ///
    /// # Errors
    ///
    /// [`ExportError::Stream`] if it cannot be sent.
    pub fn begin(format: Format, schema: SchemaRef, guard: FormulaGuard, out: W) -> Result<Self> {
        Self::create(format, schema, guard, out).map_err(failed)
    }

    fn create(format: Format, schema: SchemaRef, guard: FormulaGuard, out: W) -> Result<Self, Reason> {
        Ok(Self(match format {
            Format::Parquet => RowWriter::parquet(schema, guard, out)?,
            Format::Csv => RowWriter::csv(&schema, guard, out)?,
            Format::Arrow => RowWriter::arrow(&schema, out)?,
        }))
    }

    /// Sends rows.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn write(&mut self, rows: &Rows) -> Result<()> {
        self.0.write(rows).map_err(failed)
    }

    /// Sends the rest.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn finish(self) -> Result<()> {
        self.0.finish().map_err(failed)
    }
}

impl<W: Write + Send> RowWriter<W> {
    pub(super) fn parquet(schema: SchemaRef, guard: FormulaGuard, out: W) -> Result<Self, Reason> {
        let encoding = Encoding { codec: Codec::Zstd(3), guard, sort: Vec::new(), metadata: Vec::new() };
        let buffer = RowBuffer::new(ROW_GROUP_ROWS);
        Ok(Self::Parquet(Box::new(parquet::create(out, schema, &encoding)?), buffer))
    }

    pub(super) fn csv(schema: &Schema, guard: FormulaGuard, out: W) -> Result<Self, Reason> {
        Ok(Self::Csv(CsvWriter::create(out, schema, guard)?))
    }

    pub(super) fn json(out: W) -> Self {
        Self::Json(JsonWriter::new(out))
    }

    pub(super) fn arrow(schema: &Schema, out: W) -> Result<Self, Reason> {
        Ok(Self::Arrow(Box::new(StreamWriter::try_new_buffered(out, schema)?)))
    }

    pub(super) fn arrow_file(schema: &Schema, out: W) -> Result<Self, Reason> {
        Ok(Self::ArrowFile(Box::new(ArrowFileWriter::create(out, schema)?)))
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
                writer.write(&compacted(&rows.flat()?)?)?;
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
pub(super) fn failed(error: Reason) -> Error {
    let source = system_error(&error).unwrap_or_else(|| io::Error::other(error));
    ExportError::Stream { source }.into()
}
