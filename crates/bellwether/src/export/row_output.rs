//! Rows written to one file or to a stream.
//!
//! A file is written under a hidden name and appears whole, under a name that is not taken yet unless it is to be
//! replaced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::slice;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::formats::{FormatWriter, RowEncoding, RowFormat};
use super::record::{RECORD, VersionRecord};
use crate::columns::{RowBuffer, Rows};
use crate::disk::file::{self, FileError, TargetFile};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Reason, Result, system_error};

/// Where the rows go.
pub enum Destination<'a> {
    /// A file.
    File(TargetFile),
    /// A stream, such as standard output.
    Stream(Box<dyn Write + Send + 'a>),
}

/// Rows being written.
pub struct RowOutput<'a> {
    writer: FormatWriter<Box<dyn Write + Send + 'a>>,
    /// The rows of the next row group, in a format that has them.
    buffer: Option<RowBuffer>,
    /// The file; none for a stream.
    file: Option<TargetFile>,
    hidden: HiddenFile,
}

impl<'a> RowOutput<'a> {
    /// Starts writing.
    ///
    /// # Errors
    ///
    /// If the file exists and is not to be replaced, or if nothing can be written.
    pub fn begin(
        format: RowFormat,
        destination: Destination<'a>,
        schema: SchemaRef,
        encoding: &RowEncoding,
    ) -> Result<Self> {
        let (out, file, hidden): (Box<dyn Write + Send + 'a>, _, _) = match destination {
            Destination::Stream(out) => (out, None, HiddenFile(None)),
            Destination::File(target) => {
                let to = target.check()?;
                if is_published(&to) {
                    let what = format!("`{}` is a file of a published version", target.path.display());
                    return Err(Error::new(ErrorKind::Storage, what)
                        .with_hint("choose another file: its readers, and `verify`, count on its bytes"));
                }
                let hidden = file::hidden_beside(&to);
                // An error names the file that was asked for, not the hidden one.
                let out = File::create_new(&hidden).map_err(FileError::write(&target.path))?;
                (Box::new(out), Some(target), HiddenFile(Some(hidden)))
            }
        };
        let writer = match format {
            RowFormat::Arrow if file.is_none() => FormatWriter::create_arrow_stream(out, &schema),
            _ => FormatWriter::create(format, out, schema, encoding),
        };
        let writer = writer.map_err(|error| failure(file.as_ref(), error))?;
        let buffer = (format == RowFormat::Parquet).then(|| RowBuffer::new(encoding.row_group_rows));
        Ok(Self { writer, buffer, file, hidden })
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.write_rows(&rows.clone().into())
    }

    /// Adds rows as runs of equal values.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_rows(&mut self, rows: &Rows) -> Result<()> {
        let written = match &mut self.buffer {
            Some(buffer) => buffer.push(rows).iter().try_for_each(|group| self.writer.write(group)),
            None => self.writer.write(slice::from_ref(rows)),
        };
        written.map_err(|error| failure(self.file.as_ref(), error))
    }

    /// Completes the rows. A file is then durable under its name.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn finish(self) -> Result<()> {
        let Self { mut writer, buffer, file, mut hidden } = self;
        let last = buffer.and_then(|mut buffer| buffer.take());
        let finished = last.map_or(Ok(()), |group| writer.write(&group)).and_then(|()| writer.finish());
        finished.map_err(|error| failure(file.as_ref(), error))?;
        drop(writer);
        let (Some(target), Some(from)) = (file, &hidden.0) else { return Ok(()) };
        file::sync(&file::open(from)?, &target.path)?;
        let to = target.check()?;
        let failed = FileError::write(&target.path);
        file::keep_permissions(&to, from).and_then(|()| fs::rename(from, &to)).map_err(failed)?;
        hidden.0 = None;
        file::sync_folder(file::folder_of(&to))
    }
}

/// Whether a file is one of a published version, which its record names.
fn is_published(file: &Path) -> bool {
    let is_of = |folder: &Path| {
        let record = VersionRecord::open(folder).ok()?;
        let name = file.strip_prefix(folder).ok()?.to_str()?;
        Some(record.files.iter().any(|file| file.name == name))
    };
    let with_record = file.ancestors().skip(1).filter(|folder| folder.join(RECORD).is_file());
    with_record.filter_map(is_of).any(|is_one| is_one)
}

/// A failure to write to the file, or to send, with the system's error wherever it is in the chain.
fn failure(file: Option<&TargetFile>, error: Reason) -> Error {
    match file {
        Some(file) => FileError::encode(&file.path, error),
        None => {
            let source = system_error(&error).unwrap_or_else(|| io::Error::other(error));
            Error::new(ErrorKind::Stream, "cannot write to the stream").with_source(source)
        }
    }
}

/// A file that is removed on drop unless it was given its name.
struct HiddenFile(Option<PathBuf>);

impl Drop for HiddenFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Best effort: leftovers are hidden and ignored by readers.
            let _ = remove::file(path);
        }
    }
}
