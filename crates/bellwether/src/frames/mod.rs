//! Data as frames of Polars, which whatever is asked of archives and datasets is computed on.
//!
//! A frame is made of Arrow's batches: those of a version, of what an archive knows, or of all that it observed. Numbers
//! and instants are not copied: a column holds the buffers that were read, a chunk per batch. Texts are copied, since Polars
//! lays them out differently; names from a closed set become categories. An archive is read a few whole tickers at a time,
//! so that memory does not grow with its size, and several such pieces are worked on at once.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, ArrowPrimitiveType, DataType, FieldRef, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use polars::prelude::{
    BooleanChunked, Categorical32Type, CategoricalChunked, Categories, Column, DataFrame, DataFrameJoinOps,
    Float64Chunked, GroupBy, Int32Chunked, Int64Chunked, IntoColumn, JoinArgs, JoinType, MaintainOrderJoin,
    NewChunkedArray, PlSmallStr, PolarsResult, SortMultipleOptions, StringChunked, TimeUnit, TimeZone, UInt32Chunked,
};
use polars_arrow::array::PrimitiveArray;
use polars_arrow::bitmap::Bitmap;
use polars_arrow::types::NativeType;
use polars_buffer::Buffer;

use std::sync::Arc;

use crate::archive::{Histories, StoredObservations, View};
use crate::error::{Error, Result};
use crate::process::in_order::in_order;
use crate::tables::{Change, Table};

/// The rows of some batches as one frame.
pub(crate) fn frame_of(schema: &Schema, batches: &[RecordBatch]) -> Result<DataFrame> {
    let column = |(index, field): (usize, &FieldRef)| {
        let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
        column(field.name().as_str().into(), field.data_type(), &parts)
    };
    let columns = schema.fields().iter().enumerate().map(column).collect::<PolarsResult<Vec<Column>>>();
    let height = batches.iter().map(RecordBatch::num_rows).sum();
    columns.and_then(|columns| DataFrame::new(height, columns)).map_err(Error::frame)
}

/// All observations of a table up to the instant of a view, in frames of whole tickers: several are worked on at once, and
/// the results are taken in order.
///
/// A frame has the columns of the table, and its rows are ordered by series, cell and time of observation. A row that
/// repeats the one before it is left out. Also there are `series` and `cell`, which number both within the frame; `change`;
/// and `known_until`, in microseconds like `observed_at`: when the next observation of the cell replaced this one.
pub(crate) fn each_observed<R: Send>(
    view: &View,
    table: Table,
    work: impl Fn(&DataFrame) -> Result<R> + Sync,
    take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let work = |piece: StoredObservations| work(&observed(&piece.histories()?)?);
    in_order(|| view.whole_observations(table), work, take)
}

/// The observations of some whole tickers, as [`each_observed`] describes them.
pub(crate) fn observed(histories: &Histories) -> Result<DataFrame> {
    let rows = &histories.rows;
    let mut frame = frame_of(&rows.schema(), std::slice::from_ref(rows))?;
    let height = rows.num_rows();
    let (mut series, mut cells, mut until) = (vec![0u32; height], vec![0u32; height], vec![None; height]);
    let seen = rows.column_by_name("observed_at").expect("rows tell when they were observed");
    let seen = seen.as_primitive::<TimestampMicrosecondType>().values();
    let mut cell = 0;
    for (number, history) in histories.series.iter().enumerate() {
        for rows in history.groups.cells() {
            series[rows.clone()].fill(number as u32);
            cells[rows.clone()].fill(cell);
            for row in rows.start + 1..rows.end {
                until[row - 1] = Some(seen[row]);
            }
            cell += 1;
        }
    }
    let changes = histories.changes.iter().map(|change| Some(Change::as_str(*change)));
    let columns = [
        UInt32Chunked::from_vec("series".into(), series).into_column(),
        UInt32Chunked::from_vec("cell".into(), cells).into_column(),
        StringChunked::from_iter_options("change".into(), changes).into_column(),
        Int64Chunked::from_iter_options("known_until".into(), until.into_iter()).into_column(),
    ];
    for column in columns {
        frame.with_column(column).map_err(Error::frame)?;
    }
    Ok(frame)
}

/// What is made of the values of a column in each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The number of rows.
    Rows,
    Sum,
    Mean,
    Min,
    Max,
    First,
    Last,
    /// The number of different values.
    Different,
}

/// Groups rows, in the order in which each group begins, and makes columns of theirs: what of which, and its name. Without
/// keys, all rows are one group.
pub(crate) fn group(frame: &DataFrame, keys: &[&str], made: &[(Of, &str, &str)]) -> Result<DataFrame> {
    grouped(frame, keys, made).map_err(Error::frame)
}

#[expect(
    deprecated,
    reason = "eager groups are summed up by these; the lazy ones, which replace them, are a query engine"
)]
fn grouped(frame: &DataFrame, keys: &[&str], made: &[(Of, &str, &str)]) -> PolarsResult<DataFrame> {
    const ALL: &str = "all rows";
    let mut of_all = frame.clone();
    let by = if keys.is_empty() {
        of_all.with_column(UInt32Chunked::from_vec(ALL.into(), vec![0; frame.height()]).into_column())?;
        &[ALL][..]
    } else {
        keys
    };
    let mut groups = of_all.group_by_stable(by.iter().copied())?;
    let mut columns = if keys.is_empty() { Vec::new() } else { groups.keys() };
    let mut height = columns.first().map_or(usize::from(frame.height() > 0), Column::len);
    for (of, column, name) in made {
        let of_column = |groups: &GroupBy<'_>| match of {
            Of::Rows => unreachable!("rows are counted without a column"),
            Of::Sum => groups.sum(),
            Of::Mean => groups.mean(),
            Of::Min => groups.min(),
            Of::Max => groups.max(),
            Of::First => groups.first(),
            Of::Last => groups.last(),
            Of::Different => groups.n_unique(),
        };
        let mut found = if *of == Of::Rows {
            let lengths: Vec<u32> = groups.get_groups().iter().map(|group| group.len() as u32).collect();
            UInt32Chunked::from_vec((*name).into(), lengths).into_column()
        } else {
            groups = groups.select([*column]);
            of_column(&groups)?.columns().last().expect("it has what was asked of it").clone()
        };
        height = found.len();
        found.rename((*name).into());
        columns.push(found);
    }
    DataFrame::new(height, columns)
}

/// Rows of a frame with those of another that have the same keys, in the order of the first.
pub(crate) fn join(frame: &DataFrame, other: &DataFrame, keys: &[&str], how: JoinType) -> Result<DataFrame> {
    let args = JoinArgs { maintain_order: MaintainOrderJoin::Left, nulls_equal: true, ..JoinArgs::new(how) };
    frame.join(other, keys.iter().copied(), keys.iter().copied(), args, None).map_err(Error::frame)
}

/// Rows sorted by columns, all ascending; equal ones stay in their order, and nulls are first.
pub(crate) fn sorted(frame: &DataFrame, by: &[&str]) -> Result<DataFrame> {
    let options = SortMultipleOptions::default().with_maintain_order(true);
    frame.sort(by.iter().copied(), options).map_err(Error::frame)
}

/// Frames with the same columns, one below the other.
pub(crate) fn stacked(frames: impl IntoIterator<Item = DataFrame>) -> Result<DataFrame> {
    let mut frames = frames.into_iter();
    let Some(mut all) = frames.next() else { return Ok(DataFrame::empty()) };
    for frame in frames {
        all.vstack_mut_owned(frame).map_err(Error::frame)?;
    }
    Ok(all)
}

/// A column of numbers; integers too.
pub(crate) fn numbers(frame: &DataFrame, name: &str) -> Result<Float64Chunked> {
    let cast = frame.column(name).and_then(|column| column.cast(&polars::prelude::DataType::Float64));
    cast.and_then(|column| column.f64().cloned()).map_err(Error::frame)
}

/// A column of whole numbers or of instants, in microseconds.
pub(crate) fn integers(frame: &DataFrame, name: &str) -> Result<Int64Chunked> {
    let cast = frame.column(name).and_then(|column| column.to_physical_repr().cast(&polars::prelude::DataType::Int64));
    cast.and_then(|column| column.i64().cloned()).map_err(Error::frame)
}

/// A column of texts; categories too.
pub(crate) fn texts(frame: &DataFrame, name: &str) -> Result<StringChunked> {
    let cast = frame.column(name).and_then(|column| column.cast(&polars::prelude::DataType::String));
    cast.and_then(|column| column.str().cloned()).map_err(Error::frame)
}

/// A frame as a batch of Arrow, in the columns of a schema, which the frame may have in another order and beside others.
pub(crate) fn batch_of(frame: &DataFrame, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &FieldRef| -> Result<ArrayRef> {
        let name = field.name().as_str();
        Ok(match field.data_type() {
            DataType::Float64 => Arc::new(numbers(frame, name)?.iter().collect::<Float64Array>()),
            DataType::Int32 => {
                let values = integers(frame, name)?;
                Arc::new(values.iter().map(|value| value.map(|value| value as i32)).collect::<Int32Array>())
            }
            DataType::Timestamp(_, zone) => {
                let micros: TimestampMicrosecondArray = integers(frame, name)?.iter().collect();
                Arc::new(micros.with_timezone_opt(zone.clone()))
            }
            DataType::Boolean => {
                let values = frame.column(name).and_then(|column| column.bool().cloned()).map_err(Error::frame)?;
                Arc::new(values.iter().collect::<BooleanArray>())
            }
            DataType::Int64 => Arc::new(integers(frame, name)?.iter().collect::<Int64Array>()),
            other => {
                let texts: StringArray = texts(frame, name)?.iter().collect();
                arrow::compute::cast(&texts, other).map_err(Error::frame)?
            }
        })
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(Error::frame)
}

/// A column in parts, one per batch.
fn column(name: PlSmallStr, data_type: &DataType, parts: &[&ArrayRef]) -> PolarsResult<Column> {
    Ok(match data_type {
        DataType::Float64 => Float64Chunked::from_chunk_iter(name, share_buffers::<Float64Type>(parts)).into_column(),
        DataType::Int8 => {
            let numbers = parts.iter().flat_map(|part| part.as_primitive::<Int8Type>()).map(|it| it.map(i32::from));
            Int32Chunked::from_iter_options(name, numbers).into_column()
        }
        DataType::Int16 => {
            let numbers = parts.iter().flat_map(|part| part.as_primitive::<Int16Type>()).map(|it| it.map(i32::from));
            Int32Chunked::from_iter_options(name, numbers).into_column()
        }
        DataType::Int32 => Int32Chunked::from_chunk_iter(name, share_buffers::<Int32Type>(parts)).into_column(),
        DataType::Int64 => Int64Chunked::from_chunk_iter(name, share_buffers::<Int64Type>(parts)).into_column(),
        DataType::Timestamp(_, zone) => {
            let micros = Int64Chunked::from_chunk_iter(name, share_buffers::<TimestampMicrosecondType>(parts));
            let zone = zone.as_ref().map(|_| TimeZone::UTC);
            micros.into_datetime(TimeUnit::Microseconds, zone).into_column()
        }
        DataType::Boolean => {
            let values = parts.iter().flat_map(|part| part.as_boolean());
            BooleanChunked::from_iter_options(name, values).into_column()
        }
        DataType::Dictionary(key, _) if **key == DataType::Int8 => categories::<Int8Type>(name, parts)?.into_column(),
        DataType::Dictionary(..) => categories::<Int32Type>(name, parts)?.into_column(),
        _ => {
            let texts = parts.iter().flat_map(|part| part.as_string::<i32>());
            StringChunked::from_iter_options(name, texts).into_column()
        }
    })
}

/// Numbers in the buffers that they were read into.
fn share_buffers<'a, T>(parts: &'a [&ArrayRef]) -> impl Iterator<Item = PrimitiveArray<T::Native>> + 'a
where
    T: ArrowPrimitiveType<Native: NativeType>,
{
    parts.iter().map(|part| {
        let values = part.as_primitive::<T>().values().clone();
        PrimitiveArray::new(T::Native::PRIMITIVE.into(), Buffer::from_owner(values), part.nulls().map(validity))
    })
}

fn validity(nulls: &NullBuffer) -> Bitmap {
    nulls.iter().collect()
}

/// Names from a closed set. Only those that occur become categories.
fn categories<K: ArrowDictionaryKeyType>(
    name: PlSmallStr,
    parts: &[&ArrayRef],
) -> PolarsResult<CategoricalChunked<Categorical32Type>> {
    let categories = Categories::global();
    let mapping = categories.mapping();
    let codes = |part: &&ArrayRef| -> PolarsResult<PrimitiveArray<u32>> {
        let part = part.as_dictionary::<K>();
        let names = part.values().as_string::<i32>();
        let mut known: Vec<Option<u32>> = vec![None; names.len()];
        let mut code = |key: usize| match &mut known[key] {
            Some(code) => Ok(*code),
            unknown => mapping.insert_cat(names.value(key)).inspect(|code| *unknown = Some(*code)),
        };
        let codes = part.keys().iter().map(|key| key.map_or(Ok(0), |key| code(key.as_usize())));
        let codes = codes.collect::<PolarsResult<Vec<u32>>>()?;
        Ok(PrimitiveArray::from_vec(codes).with_validity(part.nulls().map(validity)))
    };
    let codes = parts.iter().map(codes).collect::<PolarsResult<Vec<_>>>()?;
    let codes = UInt32Chunked::from_chunk_iter(name, codes);
    let data_type = polars::prelude::DataType::Categorical(categories, mapping);
    Ok(CategoricalChunked::from_cats_and_dtype(codes, data_type))
}
