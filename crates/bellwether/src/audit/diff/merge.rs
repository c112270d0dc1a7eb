//! Merges two versions that are in the same order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, make_comparator};
use arrow::compute::SortOptions;
use arrow::row::{RowConverter, Rows, SortField};

use super::rows::{self, RowChange};
use super::{ComparedColumns, Difference, failure};
use crate::disk::file::FileError;
use crate::error::Result;
use crate::export::PublishedReader;

/// A version being read.
pub(super) struct VersionRows<'a, I> {
    version: &'a PublishedReader,
    order: &'a [String],
    batches: I,
    converter: RowConverter,
    /// The current batch and its keys; empty at the end.
    rows: RecordBatch,
    keys: Rows,
    at: usize,
}

impl<'a, I: Iterator<Item = Result<RecordBatch>>> VersionRows<'a, I> {
    pub(super) fn open(version: &'a PublishedReader, order: &'a [String], batches: I) -> Result<Self> {
        let schema = version.schema();
        let field = |name: &String| schema.field_with_name(name).map(|field| SortField::new(field.data_type().clone()));
        let fields = order.iter().map(field).collect::<Result<_, _>>().map_err(failure)?;
        let converter = RowConverter::new(fields).map_err(failure)?;
        let (rows, keys) = (RecordBatch::new_empty(Arc::clone(schema)), converter.empty_rows(0, 0));
        let mut side = Self { version, order, batches, converter, rows, keys, at: 0 };
        side.refill()?;
        Ok(side)
    }

    /// Reads the next batch once the current one is used up, and checks that its keys are in order and unique.
    fn refill(&mut self) -> Result<()> {
        while self.at == self.rows.num_rows() {
            let Some(rows) = self.batches.next().transpose()? else { return Ok(()) };
            let columns: Vec<ArrayRef> =
                self.order.iter().filter_map(|name| rows.column_by_name(name)).map(Arc::clone).collect();
            let keys = self.converter.convert_columns(&columns).map_err(failure)?;
            let last = self.rows.num_rows().checked_sub(1).map(|last| self.keys.row(last));
            let all = last.into_iter().chain(&keys);
            if !all.is_sorted_by(|one, next| one < next) {
                let reason = format!("its rows are not unique and sorted by {}", self.order.join(", "));
                return Err(FileError::damage(self.version.folder(), reason));
            }
            (self.rows, self.keys, self.at) = (rows, keys, 0);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.at == self.rows.num_rows()
    }

    fn next(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }
}

/// Merges rows by their key and compares the other columns.
pub(super) struct Merge<'a> {
    pub(super) compared: ComparedColumns<'a>,
}

impl Merge<'_> {
    /// Counts the differences and delivers them.
    pub(super) fn run<I: Iterator<Item = Result<RecordBatch>>>(
        &self,
        [mut before, mut after]: [VersionRows<'_, I>; 2],
        found: &mut Difference,
        deliver: &mut impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        while !(before.is_over() && after.is_over()) {
            let (ones, others) = (before.rows.clone(), after.rows.clone());
            let compare = |name: &String| {
                let columns = [&ones, &others].map(|rows| rows.column_by_name(name).expect("both have the columns"));
                make_comparator(columns[0], columns[1], SortOptions::default()).map_err(failure)
            };
            let values = self.compared.values.iter().map(compare).collect::<Result<Vec<_>>>()?;
            let mut different: Vec<RowChange> = Vec::new();
            // Up to the end of either current batch, unless that side has ended.
            let ends = (before.is_over(), after.is_over());
            while (ends.0 || !before.is_over())
                && (ends.1 || !after.is_over())
                && !(before.is_over() && after.is_over())
            {
                let order = match (before.is_over(), after.is_over()) {
                    (false, false) => before.keys.row(before.at).cmp(&after.keys.row(after.at)),
                    (true, _) => Ordering::Greater,
                    (_, true) => Ordering::Less,
                };
                match order {
                    Ordering::Less => different.push(RowChange::Removed(before.next())),
                    Ordering::Greater => different.push(RowChange::Added(after.next())),
                    Ordering::Equal => {
                        let (one, other) = (before.next(), after.next());
                        let changed: Vec<usize> =
                            (0..values.len()).filter(|&value| values[value](one, other).is_ne()).collect();
                        if !changed.is_empty() {
                            different.push(RowChange::Changed(one, other, changed));
                        }
                    }
                }
            }
            found.count(&different);
            if !different.is_empty() {
                deliver(&rows::batch(&[ones, others], self.compared, &different).map_err(failure)?)?;
            }
            before.refill()?;
            after.refill()?;
        }
        Ok(())
    }
}

impl Difference {
    fn count(&mut self, different: &[RowChange]) {
        for row in different {
            match row {
                RowChange::Added(_) => self.added += 1,
                RowChange::Removed(_) => self.removed += 1,
                RowChange::Changed(_, _, columns) => {
                    self.changed += 1;
                    columns.iter().for_each(|&column| self.columns[column].1 += 1);
                }
            }
        }
    }
}
