//! Rows for data frame libraries, by the Arrow C stream interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bellwether::error::{Error, Result};
use bellwether::load::Dataset;
use bellwether::prices::PriceRows;
use bellwether::run::PriceInput;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use tokio_util::sync::CancellationToken;

use crate::arguments::Part;
use crate::call::{FORKED, call, is_forked, raise, refuse_fork};

/// Rows that can be read any number of times.
#[pyclass(frozen, module = "bellwether._bellwether")]
pub(crate) struct Rows {
    schema: SchemaRef,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// In memory.
    Held(Arc<[RecordBatch]>),
    /// Read or built each time.
    Dataset(Dataset),
}

impl Rows {
    /// Rows in memory.
    pub(crate) fn in_memory(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, source: Source::Held(batches.into()) }
    }

    /// The rows that are in memory.
    pub(crate) fn held(&self) -> &[RecordBatch] {
        match &self.source {
            Source::Held(batches) => batches,
            Source::Dataset(_) => &[],
        }
    }

    /// The rows of a dataset.
    pub(crate) fn of_dataset(dataset: Dataset) -> Self {
        Self { schema: dataset.schema(), source: Source::Dataset(dataset) }
    }

    /// The dataset that has the rows.
    fn dataset(&self) -> PyResult<Dataset> {
        match &self.source {
            Source::Dataset(dataset) => Ok(dataset.clone()),
            Source::Held(_) => Err(PyTypeError::new_err("the rows are not those of a dataset")),
        }
    }
}

impl Source {
    /// A reader of all rows, from the first.
    fn reader(&self, schema: &SchemaRef, stop: &CancellationToken) -> Result<Box<dyn RecordBatchReader + Send>> {
        Ok(match self {
            Self::Held(batches) => {
                let batches: Vec<_> = batches.iter().cloned().map(Ok).collect();
                Box::new(RecordBatchIterator::new(batches, Arc::clone(schema)))
            }
            Self::Dataset(dataset) => Box::new(dataset.until(stop.clone()).batches()?),
        })
    }
}

#[pymethods]
impl Rows {
    /// The names and types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        self.schema.fields().iter().map(|field| (field.name().clone(), bellwether::plan::describe(field))).collect()
    }

    /// The number of rows, once they are in memory.
    #[getter]
    fn count(&self) -> Option<usize> {
        match &self.source {
            Source::Held(batches) => Some(batches.iter().map(RecordBatch::num_rows).sum()),
            Source::Dataset(_) => None,
        }
    }

    /// The number of rows of a dataset, counted batch by batch unless it is known.
    fn counted(&self, py: Python<'_>) -> PyResult<u64> {
        let dataset = self.dataset()?;
        call(py, None, move |control| dataset.until(control.stop.clone()).count())
    }

    /// A part of a dataset.
    fn select(&self, py: Python<'_>, part: Part) -> PyResult<Self> {
        let dataset = self.dataset()?;
        call(py, None, move |_| dataset.select(part.selection()?).map(Self::of_dataset))
    }

    /// The same rows in memory.
    fn read(&self, py: Python<'_>) -> PyResult<Self> {
        self.head(py, usize::MAX)
    }

    /// The first rows, in memory.
    fn head(&self, py: Python<'_>, count: usize) -> PyResult<Self> {
        let (source, schema) = (self.source.clone(), Arc::clone(&self.schema));
        call(py, None, move |control| {
            let (mut batches, mut missing) = (Vec::new(), count);
            for batch in source.reader(&schema, &control.stop)? {
                let batch = batch.map_err(Error::of_stream)?;
                let taken = batch.slice(0, batch.num_rows().min(missing));
                missing -= taken.num_rows();
                batches.push(taken);
                if missing == 0 {
                    break;
                }
            }
            Ok(Self::in_memory(schema, batches))
        })
    }

    /// The first rows, as texts.
    fn text(&self, py: Python<'_>, count: usize) -> PyResult<Vec<Vec<String>>> {
        let head = self.head(py, count)?;
        let lines = head.held().iter().map(texts).collect::<Result<Vec<_>, _>>();
        Ok(lines.map_err(raise_arrow)?.concat())
    }

    /// A pickle has the rows, as a stream of Arrow.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rows = self.read(py)?;
        let stream = || -> Result<Vec<u8>, ArrowError> {
            let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema)?;
            rows.held().iter().try_for_each(|batch| writer.write(batch))?;
            writer.into_inner()
        };
        let restore = py.import("bellwether._bellwether")?.getattr("restore")?;
        Ok((restore, (PyBytes::new(py, &stream().map_err(raise_arrow)?),)))
    }

    /// The rows as a stream. A consumer may ask for another schema; the protocol lets a producer keep its
    /// own.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        refuse_fork()?;
        let reader = py.detach(|| self.source.reader(&self.schema, &CancellationToken::new())).map_err(raise)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(GuardedReader { reader, has_failed: false }));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns, as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(Schema::clone(&self.schema));
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// The rows of a pickle.
#[pyfunction]
pub(crate) fn restore(stream: &[u8]) -> PyResult<Rows> {
    let reader = StreamReader::try_new(stream, None).map_err(raise_arrow)?;
    Ok(Rows::in_memory(reader.schema(), reader.collect::<Result<_, _>>().map_err(raise_arrow)?))
}

fn raise_arrow(error: ArrowError) -> PyErr {
    raise(Error::of_stream(error))
}

/// All rows of an object with the Arrow C stream interface.
pub(crate) fn batches_of(source: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let capsule = source.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    #[expect(unsafe_code, reason = "the Arrow C stream interface is a pointer")]
    // SAFETY: by that interface, a capsule of this name holds a valid stream. It is moved out, and what remains counts as
    // released, so that the capsule, which lives until after this call, does not release it again.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let failed = |error: ArrowError| {
        let hint = "use a frame with the columns that are needed alone, of text, dates and numbers";
        raise(Error::usage(format!("cannot read the rows: {error}"), hint))
    };
    let reader = reader.map_err(failed)?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<Result<_, _>>().map_err(failed)?))
}

/// Rows of the caller: files, or an object with an Arrow C stream.
#[derive(FromPyObject)]
pub(crate) enum GivenRows<'py> {
    /// A frame of pandas gives the names of its columns as items.
    Files(Bound<'py, PyList>),
    Stream(Bound<'py, PyAny>),
}

/// The prices that an argument stands for.
pub(crate) fn price_input(prices: Option<GivenRows<'_>>) -> PyResult<PriceInput> {
    Ok(match prices {
        None => PriceInput::OfDefinition,
        Some(GivenRows::Files(files)) => PriceInput::Files(files.extract()?),
        Some(GivenRows::Stream(stream)) => {
            let (schema, batches) = batches_of(&stream)?;
            PriceInput::Rows(PriceRows { schema, batches })
        }
    })
}

/// A reader that never panics into C, and never waits for threads that a fork left behind.
struct GuardedReader {
    reader: Box<dyn RecordBatchReader + Send>,
    has_failed: bool,
}

impl Iterator for GuardedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        if is_forked() {
            return Some(Err(ArrowError::ExternalError(FORKED.into())));
        }
        let next = catch_unwind(AssertUnwindSafe(|| self.reader.next()));
        let next = next.unwrap_or_else(|_| Some(Err(ArrowError::ExternalError("reading the rows panicked".into()))));
        next.map(|batch| {
            batch.map_err(|error| {
                self.has_failed = true;
                ArrowError::ExternalError(text_of(&Error::of_stream(error)).into())
            })
        })
    }
}

impl RecordBatchReader for GuardedReader {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// A C stream reports errors only as text.
fn text_of(error: &Error) -> String {
    let hint = error.hint().map_or_else(String::new, |hint| format!("; hint: {hint}"));
    bellwether::key::without_keys(&(error.in_one_line() + &hint))
}

/// The rows as texts. Instants are in UTC, shown without a zone.
fn texts(rows: &RecordBatch) -> Result<Vec<Vec<String>>, ArrowError> {
    let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S"));
    let mut lines = vec![Vec::new(); rows.num_rows()];
    for column in rows.columns() {
        let naive: ArrayRef = match column.as_primitive_opt::<TimestampMicrosecondType>() {
            Some(instants) => Arc::new(instants.clone().with_timezone_opt(None::<&str>)),
            None => Arc::clone(column),
        };
        let texts = ArrayFormatter::try_new(naive.as_ref(), &options)?;
        lines.iter_mut().enumerate().for_each(|(row, line)| line.push(texts.value(row).to_string()));
    }
    Ok(lines)
}
