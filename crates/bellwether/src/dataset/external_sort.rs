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

use super::codes::Codes;
use super::join_failed;
use crate::disk::file::{self, FileError};
use crate::disk::remove;
use crate::error::Result;
use crate::plan::{Column, DatasetPlan};
use crate::process::cancel::{self, CancellationToken};

/// Rows to read per run, and to deliver, at a time.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Sorted runs of rows waiting to be merged.
pub(super) struct ExternalSort<'a> {
    plan: &'a DatasetPlan,
    /// Folder to spill to.
    scratch: PathBuf,
    stop: &'a CancellationToken,
    key: SortKey,
    codes: Codes,
    /// Runs in memory, with codes.
    held: Vec<RecordBatch>,
    bytes: usize,
    files: Vec<PathBuf>,
}

impl<'a> ExternalSort<'a> {
    pub(super) fn new(plan: &'a DatasetPlan, scratch: PathBuf, stop: &'a CancellationToken) -> Result<Self> {
        let (key, codes) = (SortKey::of(plan)?, Codes::of(&plan.schema));
        Ok(Self { plan, scratch, stop, key, codes, held: Vec::new(), bytes: 0, files: Vec::new() })
    }

    /// Adds a run.
    pub(super) fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let rows = self.codes.encode(rows).map_err(join_failed)?;
        self.bytes += rows.get_array_memory_size();
        self.held.push(rows);
        if self.bytes < self.plan.sort_memory {
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
        let mut out = FileWriter::try_new_buffered(file::create(&path)?, self.codes.schema()).map_err(failed)?;
        self.merge(held.into_iter().map(SortedRun::Memory).collect(), |rows| {
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
                .map_err(|error| FileError::damage(path, error))?;
            runs.push(SortedRun::File(path.clone(), Box::new(reader)));
        }
        runs.extend(std::mem::take(&mut self.held).into_iter().map(SortedRun::Memory));
        self.merge(runs, |rows| {
            cancel::check(self.stop)?;
            deliver(self.codes.decode(&rows).map_err(join_failed)?)
        })
    }

    /// Merges runs. Of equal rows, which a dataset does not have, the earlier run comes first.
    fn merge(&self, runs: Vec<SortedRun>, mut deliver: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let keys = |rows: &RecordBatch| {
            let names = self.codes.decode(rows).map_err(join_failed)?;
            self.key.rows(&names)
        };
        let mut heads = Vec::with_capacity(runs.len());
        for mut run in runs {
            if let Some(rows) = run.next()? {
                heads.push(RunHead { run, keys: keys(&rows)?, rows, at: 0 });
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
                    Some(rows) => (head.keys, head.rows, head.at) = (keys(&rows)?, rows, 0),
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
                let damaged = |error: ArrowError| FileError::damage(path, error);
                reader.next().transpose().map_err(damaged)
            }
        }
    }
}

/// The current rows of a run.
struct RunHead {
    run: SortedRun,
    rows: RecordBatch,
    keys: Rows,
    at: usize,
}

fn compare(heads: &[RunHead], one: usize, other: usize) -> std::cmp::Ordering {
    let row = |head: usize| heads[head].keys.row(heads[head].at);
    row(one).cmp(&row(other)).then(one.cmp(&other))
}

/// Restores the heap after its first element changed.
fn sink(heads: &[RunHead], heap: &mut [usize]) {
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
    fn take(&mut self, head: usize, of: &RunHead) {
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
        rows.map_err(join_failed)
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
        key.map_err(join_failed)
    }

    fn rows(&self, rows: &RecordBatch) -> Result<Rows> {
        let columns: Vec<_> = self.columns.iter().map(|&index| std::sync::Arc::clone(rows.column(index))).collect();
        self.converter.convert_columns(&columns).map_err(join_failed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Int8Type};

    use super::ExternalSort;
    use crate::dataset::articles::sort;
    use crate::definition::DefinitionFile;
    use crate::disk::file;
    use crate::plan::{DatasetPlan, Plan};
    use crate::process::cancel::CancellationToken;
    use crate::tables::choices;

    const COLUMNS: [&str; 7] = ["ticker", "date", "period", "regime", "signal", "confidence", "score"];

    /// A signal as text: its columns, whose texts compare like their values.
    type Row = [String; 7];

    fn plan(sort: &str) -> DatasetPlan {
        let text = format!(
            "source.service = \"demo\"\nsignals.sectors = \"energy\"\ndataset.kind = \"signals\"\noutput.sort = [\"{sort}\"]\n"
        );
        Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap().dataset
    }

    /// The signals of a ticker, in batches whose dictionaries differ in names and order.
    fn batches(plan: &DatasetPlan) -> Vec<RecordBatch> {
        let periods = [["5d", "15d"], ["1m", "5d"], ["15d", "1d"], ["1d", "1m"]];
        let regimes = [["bull", "bear"], ["neutral", "bull"], ["bear", "neutral"], ["bull", "neutral"]];
        let batch = |number: usize| {
            let rows = 0..40_i64;
            let code = |row: i64, by: i64| (row / by % 2) as i8;
            let choice = |by: i64, names: [&'static str; 2]| -> ArrayRef {
                choices(rows.clone().map(|row| code(row, by)).collect::<Vec<i8>>().into(), names)
            };
            let ticker = format!("T{}", 9 - number);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(rows.clone().map(|_| &ticker))),
                Arc::new(TimestampMicrosecondArray::from_iter_values(rows.clone().map(|row| row / 4 * 86_400_000_000))),
                choice(2, periods[number]),
                choice(1, regimes[number]),
                choice(3, if number.is_multiple_of(2) { ["buy", "sell"] } else { ["sell", "buy"] }),
                Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| (row * 7 % 10) as f64 / 10.0))),
                Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| (row * 7 % 10) as f64 / 10.0))),
                Arc::new(StringArray::from_iter_values(rows.map(|_| "energy"))),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&plan.schema), columns).unwrap();
            sort(&rows, plan).unwrap()
        };
        (0..periods.len()).map(batch).collect()
    }

    fn rows(batch: &RecordBatch) -> Vec<Row> {
        let texts = COLUMNS.map(|name| cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap());
        (0..batch.num_rows())
            .map(|row| texts.each_ref().map(|text| text.as_string::<i32>().value(row).into()))
            .collect()
    }

    #[test]
    fn what_spills_with_other_dictionaries_is_delivered_in_order_with_one() {
        let folder = tempfile::tempdir().unwrap();
        for (first, column) in COLUMNS.into_iter().enumerate() {
            for sort_memory in [0, 1 << 12, usize::MAX] {
                let plan = DatasetPlan { sort_memory, ..plan(column) };
                let stop = CancellationToken::new();
                let scratch = file::scratch(folder.path(), "20261120T213000Z-7f3a");
                let mut sorting = ExternalSort::new(&plan, scratch.clone(), &stop).unwrap();
                let batches = batches(&plan);
                batches.iter().for_each(|batch| sorting.add(batch).unwrap());
                let files = fs::read_dir(&scratch).map_or(0, Iterator::count);
                match sort_memory {
                    0 => assert_eq!(files, batches.len(), "each batch is a file"),
                    usize::MAX => assert_eq!(files, 0),
                    _ => assert!((1..batches.len()).contains(&files), "{files} files"),
                }
                let mut delivered = Vec::new();
                let push = |rows| {
                    delivered.push(rows);
                    Ok(())
                };
                sorting.finish(push).unwrap();
                assert!(!scratch.exists(), "nothing is left");

                let mut expected: Vec<Row> = batches.iter().flat_map(rows).collect();
                let key = |row: &Row| {
                    let columns = [first, 0, 1, 2, 3];
                    columns.map(|column| row[column].clone())
                };
                expected.sort_by_key(key);
                let found: Vec<Row> = delivered.iter().flat_map(rows).collect();
                assert!(found == expected, "by {column} with {sort_memory} bytes");
                for column in ["period", "regime", "signal"] {
                    let of = |batch: &RecordBatch| {
                        Arc::clone(batch.column_by_name(column).unwrap().as_dictionary::<Int8Type>().values())
                    };
                    let names = of(&delivered[0]);
                    assert!(delivered.iter().all(|batch| Arc::ptr_eq(&of(batch), &names)), "one dictionary");
                    let unique: BTreeSet<_> = names.as_string::<i32>().iter().collect();
                    assert_eq!(unique.len(), names.len(), "each name once");
                }
            }
        }
    }
}
