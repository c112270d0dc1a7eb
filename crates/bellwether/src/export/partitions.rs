//! Hive partitions: a folder per value of a column, with the next column's folders inside; or `tickers/XOM.parquet`, a file per ticker.
//!
//! In the name of a folder, characters that a file system or a reader might misinterpret are percent-encoded; letters, digits,
//! `-`, `.`, `_` and `~` are not. Null and empty text share Hive's default name. A date at midnight is written as a day.
//!
//! Partition columns are left out of the files in folders. A complete file cannot be appended to, so a file stays open as long as
//! rows for it may come: if rows are sorted by leading partition columns, until these change; otherwise to the end.
//! Rows are buffered up to a row group, and when all files together exceed the memory limit, the largest buffer is
//! flushed early.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rayon::prelude::*;

use super::table::{MOST_BYTES, TableWriter, WriteOptions};
use crate::columns::timestamps;
use crate::disk::file::{FileError, FileRecord};
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
    finished: Vec<(String, Vec<FileRecord>)>,
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
        for (folders, rows) in groups {
            let leading: Vec<String> = self.leading.iter().map(|&index| folders[index].clone()).collect();
            if leading != self.now {
                self.close()?;
                self.now = leading;
            }
            let folder = folders.join("/");
            if let Some(table) = self.open.get_mut(&folder) {
                table.push(&rows.into())?;
                continue;
            }
            if self.open.len() == self.limits.folders {
                let (column, most) = (self.widest(), self.limits.folders);
                let what = format!("partitioning by `{column}` needs more than {most} files open at once");
                return Err(Error::new(ErrorKind::Data, what)
                    .with_hint(format!("sort by `{column}` first, or remove it from `partition_by`")));
            }
            let path = match folder.split_once('=') {
                Some((_, value)) if self.is_file_each => format!("{TICKERS}/{value}"),
                _ => format!("{folder}/{}", self.stem),
            };
            let mut table = TableWriter::create(&self.options, &path, &self.schema)?;
            table.push(&rows.into())?;
            self.open.insert(folder, table);
        }
        self.relieve()
    }

    /// Completes every file and returns them in folder order.
    pub(super) fn finish(mut self) -> Result<Vec<FileRecord>> {
        self.close()?;
        self.finished.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(self.finished.into_iter().flat_map(|(_, files)| files).collect())
    }

    fn close(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open).into_par_iter();
        let finished: Result<Vec<_>> = open.map(|(folder, table)| Ok((folder, table.finish()?))).collect();
        self.finished.append(&mut finished?);
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

    /// The rows of each folder, below its path, in order of first occurrence.
    fn groups(&self, rows: &RecordBatch) -> Result<Vec<(Vec<String>, RecordBatch)>, ArrowError> {
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
            let name = |(values, (column, _)): (&ArrayRef, &(String, usize))| folder_name(column, values, first);
            let folders = columns.iter().zip(&self.columns).map(name).collect::<Result<_, _>>()?;
            let is_stretch = group[group.len() - 1] as usize - first + 1 == group.len();
            let rows = match is_stretch {
                true => kept.slice(first, group.len()),
                false => take_record_batch(&kept, &UInt32Array::from(group))?,
            };
            Ok((folders, rows))
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

pub(super) const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folder name for a row's value.
fn folder_name(column: &str, values: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    let text = text(values, row)?;
    let value = if text.is_empty() { NOTHING.to_owned() } else { escape(&text) };
    Ok(format!("{}={value}", escape(column)))
}

/// The letters that a part of a path has as they are.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes text as part of a path.
pub(super) fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Decodes part of a path.
pub(super) fn unescape(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn text(values: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    match values.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if values.is_valid(row) => {
            let micros = values.as_primitive::<TimestampMicrosecondType>().value(row);
            let mut out = timestamps::text(micros);
            match zone {
                Some(_) => out.push('Z'),
                None if timestamps::is_midnight(micros) => out.truncate(out.len() - "T00:00:00".len()),
                None => {}
            }
            Ok(out)
        }
        _ => Ok(ArrayFormatter::try_new(values, &FormatOptions::default())?.value(row).try_to_string()?),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int8Array, StringArray, TimestampMicrosecondArray};

    use super::folder_name;
    use crate::tables::choices;

    #[test]
    fn values_never_become_paths_in_folder_names() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("BRK.B"),
            Some("BTC/USD"),
            Some(".."),
            Some("a b=c%d+\u{e9}"),
            Some(""),
            None,
        ]));
        let expected = [
            "ticker=BRK.B",
            "ticker=BTC%2FUSD",
            "ticker=..",
            "ticker=a%20b%3Dc%25d%2B%C3%A9",
            "ticker=__HIVE_DEFAULT_PARTITION__",
            "ticker=__HIVE_DEFAULT_PARTITION__",
        ];
        for (row, name) in expected.into_iter().enumerate() {
            assert_eq!(folder_name("ticker", &texts, row).unwrap(), name);
        }
        let periods = choices(Int8Array::from(vec![1, 0]), ["15d", "1m"]);
        assert_eq!(folder_name("period", &periods, 0).unwrap(), "period=1m");
    }

    #[test]
    fn midnight_is_named_by_its_day_and_other_times_in_full() {
        let micros = vec![1_795_132_800_000_000, 1_795_167_000_000_000];
        let naive: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros.clone()));
        assert_eq!(folder_name("date", &naive, 0).unwrap(), "date=2026-11-20");
        assert_eq!(folder_name("date", &naive, 1).unwrap(), "date=2026-11-20T09%3A30%3A00");
        let instants: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"));
        assert_eq!(folder_name("observed_at", &instants, 0).unwrap(), "observed_at=2026-11-20T00%3A00%3A00Z");
    }
}
