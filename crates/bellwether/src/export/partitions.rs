//! Hive partitions: a folder per value of a column, with the next column's folders inside; or `tickers/XOM.parquet`, a file per ticker.
//!
//! Partition columns are left out of the files in folders. A complete file cannot be appended to, so a file stays open as long as
//! rows for it may come: if rows are sorted by leading partition columns, until these change; otherwise to the end.
//! Rows are buffered up to a row group, and when all files together exceed the memory limit, the largest buffer is
//! flushed early.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, SortField};
use rayon::prelude::*;

use super::folder_names;
use super::table::{Finished, MOST_BYTES, TableWriter, WriteOptions};
use crate::disk::file::FileError;
use crate::disk::names::TICKERS;
use crate::error::{Error, ErrorKind, Result};

/// Limits on what may be open at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Folders with unfinished files.
    pub(super) folders: usize,
    /// Bytes of buffered rows.
    pub(super) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { folders: 4096, bytes: MOST_BYTES }
    }
}

/// A partitioned dataset being written.
pub(super) struct Partitions {
    options: WriteOptions,
    stem: String,
    limits: Limits,
    /// The partition columns, with their indices in the rows.
    columns: Vec<(String, usize)>,
    /// Whether each value has a file of its name, with all columns, instead of a folder.
    is_file_each: bool,
    /// The indices of the columns of a file, and their schema.
    kept: Vec<usize>,
    schema: SchemaRef,
    /// The indices, among the partition columns, of those that the rows are sorted by first.
    leading: Vec<usize>,
    /// Their current values.
    now: Vec<String>,
    open: BTreeMap<String, TableWriter>,
    finished: Vec<(String, Finished)>,
}

/// Rows for one folder.
struct FolderRows {
    folders: Vec<String>,
    rows: RecordBatch,
}

impl Partitions {
    /// Starts a dataset partitioned by some columns, of rows sorted by others; its files are named `stem`, or by the value
    /// that each is of, plus an extension.
    pub(super) fn new(
        options: WriteOptions,
        stem: &str,
        schema: &Schema,
        (by, sort): (&[String], &[String]),
        is_file_each: bool,
        limits: Limits,
    ) -> Self {
        let index_of = |name: &str| schema.index_of(name).expect("rows have the partition columns");
        let columns: Vec<(String, usize)> = by.iter().map(|name| (name.clone(), index_of(name))).collect();
        let is_kept = |index: &usize| is_file_each || columns.iter().all(|(_, folder)| folder != index);
        let kept: Vec<usize> = (0..schema.fields().len()).filter(is_kept).collect();
        let schema = schema.project(&kept).expect("these are indices of its columns");
        let leading = sort.iter().map_while(|column| by.iter().position(|folder| folder == column)).collect();
        Self {
            options,
            stem: stem.to_owned(),
            limits,
            columns,
            is_file_each,
            kept,
            schema: SchemaRef::new(schema),
            leading,
            now: Vec::new(),
            open: BTreeMap::new(),
            finished: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        let groups = self.groups(rows).map_err(|error| FileError::encode(&self.options.root, error))?;
        for FolderRows { folders, rows } in groups {
            let leading: Vec<String> = self.leading.iter().map(|&index| folders[index].clone()).collect();
            if leading != self.now {
                self.close()?;
                self.now = leading;
            }
            let folder = folders.join("/");
            if !self.open.contains_key(&folder) && self.open.len() == self.limits.folders {
                let (column, most) = (self.widest(), self.limits.folders);
                let what = format!("partitioning by `{column}` needs more than {most} files open at once");
                return Err(Error::new(ErrorKind::Data, what)
                    .with_hint(format!("sort by `{column}` first, or remove it from `partition_by`")));
            }
            let table = match self.open.entry(folder) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let path = match entry.key().split_once('=') {
                        Some((_, value)) if self.is_file_each => format!("{TICKERS}/{value}"),
                        _ => format!("{}/{}", entry.key(), self.stem),
                    };
                    entry.insert(TableWriter::create(&self.options, &path, &self.schema)?)
                }
            };
            table.push(&rows.into())?;
        }
        self.relieve()
    }

    /// Completes every file and returns them in folder order.
    pub(super) fn finish(mut self) -> Result<Vec<Finished>> {
        self.close()?;
        self.finished.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(self.finished.into_iter().map(|(_, finished)| finished).collect())
    }

    fn close(&mut self) -> Result<()> {
        let open: Vec<(String, TableWriter)> = std::mem::take(&mut self.open).into_iter().collect();
        let finish = |(folder, table): (String, TableWriter)| Ok((folder, table.finish()?));
        self.finished.extend(open.into_par_iter().map(finish).collect::<Result<Vec<_>>>()?);
        Ok(())
    }

    /// Flushes the largest tables when over the memory limit.
    fn relieve(&mut self) -> Result<()> {
        let mut bytes: usize = self.open.values().map(TableWriter::bytes).sum();
        while bytes > self.limits.bytes {
            let Some(largest) = self.open.values_mut().max_by_key(|table| table.bytes()) else { break };
            bytes -= largest.bytes();
            largest.flush()?;
        }
        Ok(())
    }

    /// The rows of each folder, in order of first occurrence.
    fn groups(&self, rows: &RecordBatch) -> Result<Vec<FolderRows>, ArrowError> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|(_, index)| rows.column(*index).clone()).collect();
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let keys = RowConverter::new(fields)?.convert_columns(&columns)?;
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut index_of: HashMap<Row<'_>, usize> = HashMap::new();
        for (row, key) in keys.iter().enumerate() {
            let index = *index_of.entry(key).or_insert(groups.len());
            if index == groups.len() {
                groups.push(Vec::new());
            }
            groups[index].push(row as u32);
        }
        let kept = rows.project(&self.kept)?;
        let taken = |group: Vec<u32>| {
            let first = group[0] as usize;
            let name =
                |(values, (column, _)): (&ArrayRef, &(String, usize))| folder_names::of_value(column, values, first);
            let folders = columns.iter().zip(&self.columns).map(name).collect::<Result<_, _>>()?;
            let is_stretch = group[group.len() - 1] as usize - first + 1 == group.len();
            let rows = if is_stretch {
                kept.slice(first, group.len())
            } else {
                take_record_batch(&kept, &UInt32Array::from(group))?
            };
            Ok(FolderRows { folders, rows })
        };
        groups.into_par_iter().map(taken).collect()
    }

    /// Of the columns that do not lead the sort order, the one with the most open folders.
    fn widest(&self) -> String {
        let count = |index: &usize| {
            let names = self.open.keys().filter_map(|folder| folder.split('/').nth(*index));
            names.collect::<BTreeSet<_>>().len()
        };
        let following = (0..self.columns.len()).filter(|index| !self.leading.contains(index));
        let widest = following.max_by_key(count).expect("leading columns alone never have many open folders");
        self.columns[widest].0.clone()
    }
}
