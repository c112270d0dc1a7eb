//! External sort: sorted runs are merged, and spilled to files when there are many.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use arrow::row::{RowConverter, Rows, SortField};

use crate::columns;
use crate::disk::file::{self, FileError};
use crate::disk::remove;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{Column, DatasetPlan};
use crate::process::cancel::{self, CancellationToken};
use crate::process::trace::work;

/// A join that failed.
pub(crate) fn join_failed(source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Internal, "cannot join signals with news").with_source(source)
}

/// Rows to read per run, and to deliver, at a time.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Sorted runs of rows waiting to be merged, unless they come in order.
pub(super) struct ExternalSort<'a> {
    plan: &'a DatasetPlan,
    is_in_order: bool,
    /// Folder to spill to.
    scratch: PathBuf,
    stop: &'a CancellationToken,
    /// Makes the sort key of rows, as bytes that compare in the same order, from the columns to sort by.
    converter: RowConverter,
    sort: Vec<usize>,
    codes: Codes,
    /// Runs in memory, with codes.
    held: Vec<RecordBatch>,
    bytes: usize,
    files: Vec<PathBuf>,
}

impl<'a> ExternalSort<'a> {
    pub(super) fn new(
        plan: &'a DatasetPlan,
        is_in_order: bool,
        scratch: PathBuf,
        stop: &'a CancellationToken,
    ) -> Result<Self> {
        let index = |column: &Column| plan.schema.index_of(column.name()).expect("a dataset is sorted by its columns");
        let sort: Vec<usize> = plan.sort.iter().map(index).collect();
        let fields = sort.iter().map(|&index| SortField::new(plan.schema.field(index).data_type().clone()));
        let converter = RowConverter::new(fields.collect()).map_err(join_failed)?;
        let (codes, held, files) = (Codes::new(&plan.schema), Vec::new(), Vec::new());
        Ok(Self { plan, is_in_order, scratch, stop, converter, sort, codes, held, bytes: 0, files })
    }

    /// Adds a run, or delivers it if runs come in order.
    pub(super) fn add(
        &mut self,
        rows: columns::Rows,
        deliver: &mut impl FnMut(columns::Rows) -> Result<()>,
    ) -> Result<()> {
        cancel::check(self.stop)?;
        match (rows.num_rows(), self.is_in_order) {
            (0, _) => Ok(()),
            (_, true) => {
                let _work = work!("deliver rows");
                deliver(rows)
            }
            (_, false) => self.hold(&rows.flat().map_err(join_failed)?),
        }
    }

    fn hold(&mut self, rows: &RecordBatch) -> Result<()> {
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
        let mut out = FileWriter::try_new_buffered(file::create(&path)?, &self.codes.schema).map_err(failed)?;
        self.merge(held.into_iter().map(in_pieces).collect(), |rows| {
            cancel::check(self.stop)?;
            out.write(&rows).map_err(failed)
        })?;
        out.finish().map_err(failed)?;
        self.files.push(path);
        Ok(())
    }

    /// Delivers all rows in order.
    pub(super) fn finish(mut self, deliver: &mut impl FnMut(columns::Rows) -> Result<()>) -> Result<()> {
        let mut runs = Vec::new();
        for path in &self.files {
            let of_file = path.clone();
            let damaged = move |error: ArrowError| FileError::damage(&of_file, error);
            let reader = FileReader::try_new_buffered(file::open(path)?, None).map_err(&damaged)?;
            runs.push(Box::new(reader.map(move |rows| rows.map_err(&damaged))) as SortedRun);
        }
        runs.extend(std::mem::take(&mut self.held).into_iter().map(in_pieces));
        self.merge(runs, |rows| {
            cancel::check(self.stop)?;
            deliver(self.codes.decode(&rows).map_err(join_failed)?.into())
        })
    }

    /// Merges runs. Of equal rows, which a dataset does not have, the earlier run comes first.
    fn merge(&self, runs: Vec<SortedRun>, mut deliver: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let mut out = Output { batches: Vec::new(), places: Vec::new(), taken: vec![None; runs.len()] };
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, mut run) in runs.into_iter().enumerate() {
            if let Some(rows) = run.next().transpose()? {
                heads.push(Box::new(RunHead { number, run, keys: self.keys(&rows)?, rows, at: 0 }));
            }
        }
        while let Some(mut head) = heads.peek_mut() {
            out.take(&head);
            head.at += 1;
            if head.at == head.rows.num_rows() {
                out.taken[head.number] = None;
                match head.run.next().transpose()? {
                    Some(rows) => (head.keys, head.rows, head.at) = (self.keys(&rows)?, rows, 0),
                    None => _ = PeekMut::pop(head),
                }
            }
            if out.places.len() == ROWS_AT_ONCE {
                deliver(out.flush()?)?;
            }
        }
        if out.places.is_empty() { Ok(()) } else { deliver(out.flush()?) }
    }

    fn keys(&self, rows: &RecordBatch) -> Result<Rows> {
        let rows = self.codes.decode(rows).map_err(join_failed)?;
        let columns: Vec<_> = self.sort.iter().map(|&index| Arc::clone(rows.column(index))).collect();
        self.converter.convert_columns(&columns).map_err(join_failed)
    }
}

impl Drop for ExternalSort<'_> {
    fn drop(&mut self) {
        // Leftovers are hidden and ignored.
        let _ = remove::folder(&self.scratch);
    }
}

/// A sorted run, a few rows at a time.
type SortedRun = Box<dyn Iterator<Item = Result<RecordBatch>>>;

/// A sorted run in memory.
fn in_pieces(rows: RecordBatch) -> SortedRun {
    let count = rows.num_rows();
    let starts = (0..count).step_by(ROWS_AT_ONCE);
    Box::new(starts.map(move |from| Ok(rows.slice(from, ROWS_AT_ONCE.min(count - from)))))
}

/// The current rows of a run. The head with the least row is the greatest, since a heap has the greatest first.
struct RunHead {
    number: usize,
    run: SortedRun,
    rows: RecordBatch,
    keys: Rows,
    at: usize,
}

impl Ord for RunHead {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_row = other.keys.row(other.at).cmp(&self.keys.row(self.at));
        by_row.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for RunHead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunHead {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunHead {}

/// Rows taken but not yet delivered.
struct Output {
    batches: Vec<RecordBatch>,
    /// The batch and row of each.
    places: Vec<(usize, usize)>,
    /// The index of each run's current rows among the batches.
    taken: Vec<Option<usize>>,
}

impl Output {
    fn take(&mut self, head: &RunHead) {
        let batch = *self.taken[head.number].get_or_insert_with(|| {
            self.batches.push(head.rows.clone());
            self.batches.len() - 1
        });
        self.places.push((batch, head.at));
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

/// The names that the codes of a dataset's rows refer to.
///
/// Each batch brings a dictionary of its own, merging batches makes yet other ones, and an Arrow file has one dictionary
/// for all its rows. Codes refer to one list of names per column instead, so rows are merged and spilled without
/// dictionaries, and delivered with the same one.
#[derive(Debug)]
struct Codes {
    schema_of_names: SchemaRef,
    schema: SchemaRef,
    /// The names of each column of a closed set, in the order in which batches brought them.
    names: Vec<(usize, ArrayRef)>,
}

impl Codes {
    /// Of rows with a schema, before any of them.
    fn new(schema: &SchemaRef) -> Self {
        let is_choice = |field: &Field| matches!(field.data_type(), DataType::Dictionary(..));
        let coded = |field: &Arc<Field>| match is_choice(field) {
            true => Arc::new(Field::new(field.name(), DataType::Int8, field.is_nullable())),
            false => Arc::clone(field),
        };
        let none: ArrayRef = Arc::new(StringArray::new_null(0));
        let choices = schema.fields().iter().enumerate().filter(|(_, field)| is_choice(field));
        Self {
            schema_of_names: Arc::clone(schema),
            schema: Arc::new(Schema::new(schema.fields().iter().map(coded).collect::<Vec<_>>())),
            names: choices.map(|(index, _)| (index, Arc::clone(&none))).collect(),
        }
    }

    /// Rows with codes, of rows with names.
    fn encode(&mut self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = rows.columns().to_vec();
        for (index, names) in &mut self.names {
            let column = columns[*index].as_dictionary::<Int8Type>();
            let codes = codes(names, column.values().as_string())?;
            let is_same = (0..).zip(&codes).all(|(key, code)| key == *code);
            let code = |key: i8| codes[key as usize];
            columns[*index] = Arc::new(if is_same { column.keys().clone() } else { column.keys().unary(code) });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    /// Rows with names, of rows with codes.
    fn decode(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = rows.columns().to_vec();
        for (index, names) in &self.names {
            let codes: &Int8Array = columns[*index].as_primitive();
            columns[*index] = Arc::new(DictionaryArray::try_new(codes.clone(), Arc::clone(names))?);
        }
        RecordBatch::try_new(Arc::clone(&self.schema_of_names), columns)
    }
}

/// The code of each name of a dictionary. Names that are new get the next ones.
fn codes(names: &mut ArrayRef, dictionary: &StringArray) -> Result<Vec<i8>, ArrowError> {
    let mut known: Vec<&str> = names.as_string::<i32>().iter().flatten().collect();
    let before = known.len();
    let mut codes = Vec::with_capacity(dictionary.len());
    for name in dictionary.iter().flatten() {
        let index = known.iter().position(|known| *known == name).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        });
        codes.push(i8::try_from(index).map_err(|_| ArrowError::DictionaryKeyOverflowError)?);
    }
    if known.len() > before {
        *names = Arc::new(StringArray::from(known));
    }
    Ok(codes)
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
    use crate::columns;
    use crate::dataset::unjoined::sort;
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
                let mut sorting = ExternalSort::new(&plan, false, scratch.clone(), &stop).unwrap();
                let batches = batches(&plan);
                batches.iter().for_each(|batch| sorting.hold(batch).unwrap());
                let files = fs::read_dir(&scratch).map_or(0, Iterator::count);
                match sort_memory {
                    0 => assert_eq!(files, batches.len(), "each batch is a file"),
                    usize::MAX => assert_eq!(files, 0),
                    _ => assert!((1..batches.len()).contains(&files), "{files} files"),
                }
                let mut delivered = Vec::new();
                let mut push = |rows: columns::Rows| {
                    delivered.push(rows.flat().unwrap());
                    Ok(())
                };
                sorting.finish(&mut push).unwrap();
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
