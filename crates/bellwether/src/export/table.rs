//! The files of one folder: the same rows in every format.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use rayon::prelude::*;

use super::durable_file::DurableFile;
use super::{Encoding, FormatWriter};
use crate::columns::{RowBuffer, Rows};
use crate::disk::file::{self, DigestWriter, FileError, FileRecord};
use crate::error::Result;
use crate::plan::Format;
use crate::process::cancel::{self, CancellationToken};

/// Approximate limit of buffered bytes; a larger row group is cut.
pub(super) const MOST_BYTES: usize = 256 << 20;

/// Where and how the files of a dataset are written.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    /// The folder they are written in.
    pub(super) root: PathBuf,
    /// The formats to write.
    pub(super) formats: Vec<Format>,
    /// Rows per row group.
    pub(super) row_group_rows: usize,
    /// How rows are encoded.
    pub(super) encoding: Encoding,
    /// Cancels writing.
    pub(super) stop: CancellationToken,
}

/// Files being written, and their buffered rows.
pub(super) struct TableWriter {
    path: PathBuf,
    writers: Vec<(String, FormatWriter<DigestWriter<DurableFile>>)>,
    buffer: RowBuffer,
    rows: u64,
    stop: CancellationToken,
}

/// Finished files, named by their paths inside the root.
#[derive(Debug)]
pub(super) struct Finished(pub(super) Vec<FileRecord>);

impl TableWriter {
    /// Starts the files of a path inside the root, given without extension.
    pub(super) fn create(options: &WriteOptions, stem: &str, schema: &SchemaRef) -> Result<Self> {
        let path = options.root.join(stem);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FileError::write(folder))?;
        }
        let create = |&format: &Format| {
            let name = format!("{stem}.{format}");
            let path = options.root.join(&name);
            let out = DigestWriter::new(DurableFile::create(&path)?);
            let writer = FormatWriter::create(format, out, SchemaRef::clone(schema), &options.encoding);
            Ok((name, writer.map_err(|error| FileError::encode(&path, error))?))
        };
        let writers = options.formats.iter().map(create).collect::<Result<Vec<_>>>()?;
        Ok(Self { path, writers, buffer: RowBuffer::new(options.row_group_rows), rows: 0, stop: options.stop.clone() })
    }

    pub(super) fn push(&mut self, rows: &Rows) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        self.buffer.push(rows).iter().try_for_each(|group| self.write(group))
    }

    /// Approximate memory of the buffered rows.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.bytes_with_overhead()
    }

    /// Flushes the buffered rows when they exceed the limit.
    pub(super) fn relieve(&mut self) -> Result<()> {
        // Decided by the rows alone: row group boundaries must not depend on how the rows arrived.
        if self.buffer.bytes() > MOST_BYTES { self.flush() } else { Ok(()) }
    }

    /// Flushes the buffered rows as a shorter row group.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.buffer.take().map_or(Ok(()), |group| self.write(&group))
    }

    fn write(&mut self, group: &[Rows]) -> Result<()> {
        cancel::check(&self.stop)?;
        // The extension tells the files apart.
        let failed = |name: &str, error| FileError::encode(&self.path.with_file_name(last(name)), error);
        let write =
            |(name, writer): &mut (String, FormatWriter<_>)| writer.write(group).map_err(|error| failed(name, error));
        self.writers.par_iter_mut().try_for_each(write)
    }

    /// Completes the files. They are not durable yet.
    pub(super) fn finish(mut self) -> Result<Finished> {
        self.flush()?;
        let Self { path, writers, rows, .. } = self;
        let finish = |(name, mut writer): (String, FormatWriter<DigestWriter<DurableFile>>)| {
            let finished = writer.finish();
            finished.map_err(|error| FileError::encode(&path.with_file_name(last(&name)), error))?;
            Ok(writer.out().record(&name, rows))
        };
        writers.into_iter().map(finish).collect::<Result<_>>().map(Finished)
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Makes finished files and their folders durable.
pub(super) fn make_durable(root: &Path, finished: Vec<Finished>) -> Result<Vec<FileRecord>> {
    let files: Vec<FileRecord> = finished.into_iter().flat_map(|Finished(files)| files).collect();
    file::sync_below(root, files.iter().map(|file| file.name.as_str()))?;
    Ok(files)
}
