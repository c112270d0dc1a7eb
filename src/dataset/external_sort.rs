//! External sort: sorted runs are merged, and spilled to files when there are many.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use arrow::row::{RowConverter, Rows, SortField};

use super::error::DatasetError;
use crate::cancel::{self, CancellationToken};
use crate::error::Result;
use crate::file::{self, FileError};
use crate::plan::{Column, DatasetPlan};
use crate::remove;

/// Bytes to hold in memory before spilling.
const HELD_BYTES: usize = 256 << 20;

/// Rows to read per run, and to deliver, at a time.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Sorted runs of rows waiting to be merged.
pub(super) struct ExternalSort<'a> {
    plan: &'a DatasetPlan,
    /// Folder to spill to.
    scratch: PathBuf,
    stop: &'a CancellationToken,
    held: Vec<RecordBatch>,
    bytes: usize,
    files: Vec<PathBuf>,
}

impl<'a> ExternalSort<'a> {
    pub(super) fn new(plan: &'a DatasetPlan, scratch: PathBuf, stop: &'a CancellationToken) -> Self {
        Self { plan, scratch, stop, held: Vec::new(), bytes: 0, files: Vec::new() }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, rows: RecordBatch) -> Result<()> {
        self.bytes += rows.get_array_memory_size();
        self.held.push(rows);
        if self.bytes < HELD_BYTES {
            return Ok(());
        }
        // Merges the runs in memory into a longer one.
        let held = std::mem::take(&mut self.held);
        self.bytes = 0;
        if self.files.is_empty() {
            fs::create_dir(&self.scratch).map_err(FileError::write(&self.scratch))?;
        }
        let path = self.scratch.join(format!("{}.arrow", self.files.len()));
        let failed = |error: ArrowError| FileError::encode(&path, error);
        let mut out = FileWriter::try_new_buffered(file::create(&path)?, &self.plan.schema).map_err(failed)?;
        merge(self.plan, held.into_iter().map(SortedRun::Memory).collect(), |rows| {
            cancel::check(self.stop)?;
            out.write(&rows).map_err(failed)
        })?;
        out.finish().map_err(failed)?;
        self.files.push(path);
        Ok(())
    }

    /// Delivers all rows in order.
    pub(super) fn finish(mut self, mut deliver: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let mut runs = Vec::new();
        for path in &self.files {
            let reader = FileReader::try_new_buffered(file::open(path)?, None)
                .map_err(|error| FileError::damaged(path, error))?;
            runs.push(SortedRun::File(path.clone(), Box::new(reader)));
        }
        runs.extend(std::mem::take(&mut self.held).into_iter().map(SortedRun::Memory));
        merge(self.plan, runs, |rows| {
            cancel::check(self.stop)?;
            deliver(rows)
        })
    }
}

impl Drop for ExternalSort<'_> {
    fn drop(&mut self) {
        // Leftovers are hidden and ignored.
        let _ = remove::folder(&self.scratch);
    }
}

/// A sorted run.
enum SortedRun {
    Memory(RecordBatch),
    File(PathBuf, Box<FileReader<BufReader<File>>>),
}

impl SortedRun {
    /// The next rows; `None` at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Memory(rows) => {
                let count = ROWS_AT_ONCE.min(rows.num_rows());
                let next = rows.slice(0, count);
                *rows = rows.slice(count, rows.num_rows() - count);
                Ok((count > 0).then_some(next))
            }
            Self::File(path, reader) => {
                let damaged = |error: ArrowError| FileError::damaged(path, error);
                reader.next().transpose().map_err(damaged)
            }
        }
    }
}

/// The current rows of a run.
struct Head {
    run: SortedRun,
    rows: RecordBatch,
    keys: Rows,
    at: usize,
}

/// Merges runs. Of equal rows, which a dataset does not have, the earlier run comes first.
fn merge(plan: &DatasetPlan, runs: Vec<SortedRun>, mut deliver: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
    let key = SortKey::of(plan)?;
    let mut heads = Vec::with_capacity(runs.len());
    for mut run in runs {
        if let Some(rows) = run.next()? {
            heads.push(Head { run, keys: key.rows(&rows)?, rows, at: 0 });
        }
    }
    // A min-heap of heads.
    let mut heap: Vec<usize> = (0..heads.len()).collect();
    heap.sort_by(|&one, &other| compare(&heads, one, other));
    let mut out = Output { batches: Vec::new(), places: Vec::new(), taken: vec![None; heads.len()] };
    while let Some(&least) = heap.first() {
        let head = &mut heads[least];
        out.take(least, head);
        head.at += 1;
        if head.at == head.rows.num_rows() {
            out.taken[least] = None;
            match head.run.next()? {
                Some(rows) => (head.keys, head.rows, head.at) = (key.rows(&rows)?, rows, 0),
                None => {
                    let last = heap.len() - 1;
                    heap.swap(0, last);
                    heap.pop();
                }
            }
        }
        sink(&heads, &mut heap);
        if out.places.len() == ROWS_AT_ONCE {
            deliver(out.flush()?)?;
        }
    }
    if out.places.is_empty() { Ok(()) } else { deliver(out.flush()?) }
}

fn compare(heads: &[Head], one: usize, other: usize) -> std::cmp::Ordering {
    let row = |head: usize| heads[head].keys.row(heads[head].at);
    row(one).cmp(&row(other)).then(one.cmp(&other))
}

/// Restores the heap after its first element changed.
fn sink(heads: &[Head], heap: &mut [usize]) {
    let mut parent = 0;
    loop {
        let children = [2 * parent + 1, 2 * parent + 2].into_iter().filter(|&child| child < heap.len());
        let Some(least) = children.min_by(|&one, &other| compare(heads, heap[one], heap[other])) else { return };
        if compare(heads, heap[parent], heap[least]).is_le() {
            return;
        }
        heap.swap(parent, least);
        parent = least;
    }
}

/// Rows taken but not yet delivered.
struct Output {
    batches: Vec<RecordBatch>,
    /// The batch and row of each.
    places: Vec<(usize, usize)>,
    /// The index of each head's rows among the batches.
    taken: Vec<Option<usize>>,
}

impl Output {
    fn take(&mut self, head: usize, of: &Head) {
        let batch = *self.taken[head].get_or_insert_with(|| {
            self.batches.push(of.rows.clone());
            self.batches.len() - 1
        });
        self.places.push((batch, of.at));
    }

    fn flush(&mut self) -> Result<RecordBatch> {
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let rows = interleave_record_batch(&batches, &self.places);
        self.batches.clear();
        self.places.clear();
        self.taken.fill(None);
        rows.map_err(DatasetError::join)
    }
}

/// The sort key of rows, as bytes that compare in the same order.
struct SortKey {
    converter: RowConverter,
    columns: Vec<usize>,
}

impl SortKey {
    fn of(plan: &DatasetPlan) -> Result<Self> {
        let index = |column: &Column| plan.schema.index_of(column.name());
        let columns = plan.sort.iter().map(index).collect::<Result<Vec<_>, _>>();
        let key = columns.and_then(|columns| {
            let schema: &SchemaRef = &plan.schema;
            let fields = columns.iter().map(|&index| SortField::new(schema.field(index).data_type().clone()));
            Ok(Self { converter: RowConverter::new(fields.collect())?, columns })
        });
        key.map_err(DatasetError::join)
    }

    fn rows(&self, rows: &RecordBatch) -> Result<Rows> {
        let columns: Vec<_> = self.columns.iter().map(|&index| std::sync::Arc::clone(rows.column(index))).collect();
        self.converter.convert_columns(&columns).map_err(DatasetError::join)
    }
}
