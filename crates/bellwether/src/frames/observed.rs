//! What questions in SQL are asked of, and their answers: all that an archive observed as frames, and frames as batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, FieldRef, SchemaRef, TimestampMicrosecondType};
use polars::prelude::{
    DataFrame, DataFrameJoinOps, DataType as Type, Float64Chunked, Int64Chunked, IntoColumn, JoinArgs, JoinType,
    MaintainOrderJoin, NewChunkedArray, StringChunked, UInt32Chunked,
};

use super::frame_of;
use crate::archive::{Histories, StoredObservations, View};
use crate::error::{Error, Result};
use crate::process::in_order::in_order;
use crate::tables::{Change, Table};

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

/// Rows of a frame with those of another that have the same keys, in the order of the first.
pub(crate) fn join(frame: &DataFrame, other: &DataFrame, keys: &[&str], how: JoinType) -> Result<DataFrame> {
    let args = JoinArgs { maintain_order: MaintainOrderJoin::Left, nulls_equal: true, ..JoinArgs::new(how) };
    frame.join(other, keys.iter().copied(), keys.iter().copied(), args, None).map_err(Error::frame)
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
fn numbers(frame: &DataFrame, name: &str) -> Result<Float64Chunked> {
    let cast = frame.column(name).and_then(|column| column.cast(&Type::Float64));
    cast.and_then(|column| column.f64().cloned()).map_err(Error::frame)
}

/// A column of whole numbers or of instants, in microseconds.
pub(crate) fn integers(frame: &DataFrame, name: &str) -> Result<Int64Chunked> {
    let cast = frame.column(name).and_then(|column| column.to_physical_repr().cast(&Type::Int64));
    cast.and_then(|column| column.i64().cloned()).map_err(Error::frame)
}

/// A column of texts; categories too.
fn texts(frame: &DataFrame, name: &str) -> Result<StringChunked> {
    let cast = frame.column(name).and_then(|column| column.cast(&Type::String));
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
