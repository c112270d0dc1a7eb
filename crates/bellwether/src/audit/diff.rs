//! The differences between two versions of a dataset.
//!
//! Rows are identified by their key: ticker, date, period and regime for signals. Two versions in the same order are read
//! side by side, batch by batch. Otherwise they are read in rounds, each of which takes a share of the keys that is small
//! enough to sort in memory.
//!
//! Versions with different columns are refused.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{concat_batches, filter_record_batch, interleave, take, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use schemars::JsonSchema;
use serde::Serialize;

use crate::definition::{ChangedKey, changed_keys};
use crate::disk::file::FileError;
use crate::error::{Error, ErrorKind, Result};
use crate::export::PublishedReader;
use crate::time::to_record;

/// Target number of rows per round.
const ROUND_ROWS: u64 = 1 << 19;

/// What changed between two versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// The earlier version.
    pub before: Side,
    /// The later version.
    pub after: Side,
    /// The keys of the definition that differ.
    pub definition: Vec<ChangedKey>,
    /// Rows that only the later one has.
    pub added: u64,
    /// Rows that only the earlier one has.
    pub removed: u64,
    /// Rows with other values.
    pub changed: u64,
    /// The columns with other values, and in how many rows.
    pub columns: Vec<ChangedColumn>,
}

/// One of two versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// The instant as of which it was built.
    pub as_of: String,
}

/// A column with other values.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedColumn {
    /// Its name.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
}

impl Difference {
    /// Whether the versions are equal.
    pub fn is_none(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// Compares two versions and delivers a row for each one added, removed or changed, in the columns of [`schema`].
///
/// # Errors
///
/// If the columns differ, if a file cannot be read, or if `deliver` fails.
pub fn diff(
    before: &PublishedReader,
    after: &PublishedReader,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Difference> {
    let key = key(before, after)?;
    let side = |version: &PublishedReader| Side {
        name: version.name(),
        rows: version.record.rows,
        as_of: to_record(version.record.as_of),
    };
    let columns = values(before.schema(), &key).into_iter().map(|name| ChangedColumn { name, rows: 0 }).collect();
    let mut found = Difference {
        before: side(before),
        after: side(after),
        definition: changed_keys(&before.record.definition, &after.record.definition),
        added: 0,
        removed: 0,
        changed: 0,
        columns,
    };
    // The digest covers all rows in order, so equal digests mean equal versions.
    if before.record.content != after.record.content {
        let versions = [before, after];
        let orders = versions.map(|version| key_order(version, &key));
        match orders {
            [Some(order), Some(other)] if order == other => {
                in_order(versions, &order, |rows| found.compare(versions, &rows, &key, &order, &mut deliver))?;
            }
            // In rounds, each of which takes a share of the keys.
            _ => {
                let rounds = before.record.rows.max(after.record.rows).div_ceil(ROUND_ROWS).max(1);
                for round in 0..rounds {
                    let [before, after] = versions.map(|version| share(version, &key, |hash| hash % rounds == round));
                    found.compare(versions, &[before?, after?], &key, &key, &mut deliver)?;
                }
            }
        }
    }
    found.columns.retain(|column| column.rows > 0);
    Ok(found)
}

/// Reads two versions that are in the same order side by side, and compares the rows up to a key that both were read to.
fn in_order(
    versions: [&PublishedReader; 2],
    order: &[String],
    mut compare: impl FnMut([RecordBatch; 2]) -> Result<()>,
) -> Result<()> {
    let converter = converter(versions[0].schema(), order)?;
    let key_of = |rows: &RecordBatch, row: usize| -> Result<OwnedRow> {
        Ok(keys(&rows.slice(row, 1), order, &converter)?.row(0).owned())
    };
    let mut batches = [versions[0].rows()?, versions[1].rows()?];
    let mut held = versions.map(|version| RecordBatch::new_empty(Arc::clone(version.schema())));
    loop {
        let mut ends = Vec::new();
        for (held, batches) in held.iter_mut().zip(&mut batches) {
            while held.num_rows() == 0
                && let Some(rows) = batches.next()
            {
                *held = rows?;
            }
            if held.num_rows() > 0 {
                ends.push(key_of(held, held.num_rows() - 1)?);
            }
        }
        let Some(end) = ends.into_iter().min() else { return Ok(()) };
        let mut pieces = held.clone();
        for (held, piece) in held.iter_mut().zip(&mut pieces) {
            let (mut from, mut to) = (0, held.num_rows());
            while from < to {
                let middle = from.midpoint(to);
                if key_of(held, middle)? <= end { from = middle + 1 } else { to = middle }
            }
            (*piece, *held) = (held.slice(0, from), held.slice(from, held.num_rows() - from));
        }
        compare(pieces)?;
    }
}

/// The rows of a share of the keys, sorted by key.
fn share(version: &PublishedReader, order: &[String], is_wanted: impl Fn(u64) -> bool) -> Result<RecordBatch> {
    let converter = converter(version.schema(), order)?;
    // The same for both versions and in every round.
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut kept = Vec::new();
    for rows in version.rows()? {
        let rows = rows?;
        let keys = keys(&rows, order, &converter)?;
        let is_kept: BooleanArray = keys.iter().map(|key| Some(is_wanted(hasher.hash_one(key.as_ref())))).collect();
        kept.push(filter_record_batch(&rows, &is_kept).map_err(failure)?);
    }
    let rows = concat_batches(version.schema(), &kept).map_err(failure)?;
    drop(kept);
    let keys = keys(&rows, order, &converter)?;
    let mut indices: Vec<u32> = (0..rows.num_rows() as u32).collect();
    indices.sort_unstable_by(|&one, &other| keys.row(one as usize).cmp(&keys.row(other as usize)));
    take_record_batch(&rows, &UInt32Array::from(indices)).map_err(failure)
}

fn converter(schema: &Schema, order: &[String]) -> Result<RowConverter> {
    let field = |name: &String| schema.field_with_name(name).map(|field| SortField::new(field.data_type().clone()));
    let fields = order.iter().map(field).collect::<Result<_, _>>().map_err(failure)?;
    RowConverter::new(fields).map_err(failure)
}

fn keys(rows: &RecordBatch, order: &[String], converter: &RowConverter) -> Result<Rows> {
    let columns: Vec<ArrayRef> = order.iter().filter_map(|name| rows.column_by_name(name)).cloned().collect();
    converter.convert_columns(&columns).map_err(failure)
}

impl Difference {
    /// Compares rows that are sorted by key, and delivers those that differ.
    fn compare(
        &mut self,
        versions: [&PublishedReader; 2],
        sides: &[RecordBatch; 2],
        key: &[String],
        order: &[String],
        deliver: &mut impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let converter = converter(sides[0].schema_ref(), order)?;
        let [before, after] = [keys(&sides[0], order, &converter)?, keys(&sides[1], order, &converter)?];
        for (version, keys) in versions.into_iter().zip([&before, &after]) {
            if !keys.iter().is_sorted_by(|one, next| one < next) {
                let reason = format!("its rows are not unique and sorted by {}", order.join(", "));
                return Err(FileError::damage(version.folder(), reason));
            }
        }
        // The rows of each key, on either side.
        let (mut rows, mut at) = ([Vec::new(), Vec::new()], [0, 0]);
        while at != [before.num_rows(), after.num_rows()] {
            let next = match at {
                [one, _] if one == before.num_rows() => Ordering::Greater,
                [_, other] if other == after.num_rows() => Ordering::Less,
                [one, other] => before.row(one).cmp(&after.row(other)),
            };
            for (side, has) in [next.is_le(), next.is_ge()].into_iter().enumerate() {
                rows[side].push(has.then_some(at[side] as u32));
                at[side] += usize::from(has);
            }
        }
        let rows = rows.map(UInt32Array::from);
        let side = |side: usize, name: &str, rows: &UInt32Array| {
            take(sides[side].column_by_name(name).expect("both have the columns"), rows, None)
        };
        let is_changed =
            |column: &ChangedColumn| distinct(&side(0, &column.name, &rows[0])?, &side(1, &column.name, &rows[1])?);
        let is_changed = self.columns.iter().map(is_changed).collect::<Result<Vec<_>, _>>().map_err(failure)?;
        let (mut differing, mut kinds, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows[0].len() {
            let (kind, changed) = match (rows[0].is_valid(row), rows[1].is_valid(row)) {
                (false, _) => {
                    self.added += 1;
                    ("added", None)
                }
                (_, false) => {
                    self.removed += 1;
                    ("removed", None)
                }
                _ => {
                    let mut changed: Vec<&str> = Vec::new();
                    for (column, is_changed) in self.columns.iter_mut().zip(&is_changed) {
                        if is_changed.value(row) {
                            column.rows += 1;
                            changed.push(&column.name);
                        }
                    }
                    if changed.is_empty() {
                        continue;
                    }
                    self.changed += 1;
                    ("changed", Some(changed.join(",")))
                }
            };
            differing.push(row as u32);
            kinds.push(kind);
            names.push(changed);
        }
        if differing.is_empty() {
            return Ok(());
        }
        let differing = UInt32Array::from(differing);
        let make = || {
            let rows = [take(&rows[0], &differing, None)?, take(&rows[1], &differing, None)?];
            let rows = rows.map(|rows| rows.as_primitive::<UInt32Type>().clone());
            // The key is that of either side.
            let either = |row: usize| match rows[0].is_valid(row) {
                true => (0, rows[0].value(row) as usize),
                false => (1, rows[1].value(row) as usize),
            };
            let places: Vec<(usize, usize)> = (0..differing.len()).map(either).collect();
            let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(kinds))];
            for name in key {
                let of_key =
                    sides.each_ref().map(|rows| rows.column_by_name(name).expect("both have the key").as_ref());
                columns.push(interleave(&of_key, &places)?);
            }
            columns.push(Arc::new(StringArray::from(names)));
            for column in &self.columns {
                columns.push(side(0, &column.name, &rows[0])?);
                columns.push(side(1, &column.name, &rows[1])?);
            }
            RecordBatch::try_new(schema_of(sides[0].schema_ref(), key), columns)
        };
        deliver(&make().map_err(failure)?)
    }
}

/// The columns of differences: `change`, the key, the names of changed columns, and each column before (`old_…`) and
/// after (`new_…`).
pub fn schema(version: &PublishedReader) -> SchemaRef {
    schema_of(version.schema(), version.key().unwrap_or_default())
}

fn schema_of(version: &Schema, key: &[String]) -> SchemaRef {
    let field = |name: &String| version.field_with_name(name).ok().cloned();
    let mut fields = vec![Field::new("change", DataType::Utf8, false)];
    fields.extend(key.iter().filter_map(field));
    fields.push(Field::new("columns", DataType::Utf8, true));
    for value in values(version, key).iter().filter_map(field) {
        for side in ["old", "new"] {
            fields.push(value.clone().with_name(format!("{side}_{}", value.name())).with_nullable(true));
        }
    }
    Arc::new(Schema::new(fields))
}

/// The key of two versions, which have the same columns.
fn key(before: &PublishedReader, after: &PublishedReader) -> Result<Vec<String>> {
    let described = |schema: &SchemaRef| -> BTreeSet<(String, String)> {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    };
    let (ones, others) = (described(before.schema()), described(after.schema()));
    if ones != others {
        let only = |some: &BTreeSet<(String, String)>, others: &BTreeSet<(String, String)>| {
            some.difference(others).map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        return Err(other_columns([before, after], [only(&ones, &others), only(&others, &ones)]));
    }
    let of = |version: &PublishedReader| match version.key() {
        Some(key) => Ok(key.to_vec()),
        None => {
            let what = format!(
                "the rows of `{}` have no key: `columns` in its definition leaves out one of its columns",
                version.name()
            );
            Err(Error::new(ErrorKind::Data, what).with_hint(
                "add the key to `columns`: `ticker`, `date`, `period` and `regime` for signals (and `known_from` for all \
                 vintages), `ticker`, `date`, `title`, `link` and `copy` for news",
            ))
        }
    };
    let (key, other) = (of(before)?, of(after)?);
    if key == other { Ok(key) } else { Err(other_columns([before, after], [key, other])) }
}

fn other_columns(versions: [&PublishedReader; 2], only: [Vec<String>; 2]) -> Error {
    let [before, after] = versions.map(PublishedReader::name);
    let [only_before, only_after] = only.map(|names| match names.is_empty() {
        true => "none".to_owned(),
        false => format!("`{}`", names.join("`, `")),
    });
    let what = format!(
        "`{before}` and `{after}` have different columns: {only_before} only in the first, {only_after} only in the second"
    );
    Error::new(ErrorKind::Data, what).with_hint(
        "build both from the same definition: `bellwether build NAME --as-of INSTANT` rebuilds the earlier state with its \
         columns",
    )
}

/// The columns to compare: all but the key.
fn values(schema: &Schema, key: &[String]) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).filter(|name| !key.contains(name)).collect()
}

/// The key columns in the order that a version is sorted by; `None` if it is not sorted by its key.
fn key_order(version: &PublishedReader, key: &[String]) -> Option<Vec<String>> {
    let order: Vec<String> = version.order().into_iter().take(key.len()).map(str::to_owned).collect();
    (order.len() == key.len() && order.iter().all(|name| key.contains(name))).then_some(order)
}

fn failure(error: ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "cannot compare the rows of two versions").with_source(error)
}
