//! The joined rows in the declared columns: numbers become names again, and types are what the plan says.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int8Array, Int32Array, NullBufferBuilder,
    PrimitiveArray, RecordBatch, StringBuilder,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Float64Type, Int32Type, TimestampMicrosecondType};
use polars::prelude::{
    ChunkedArray, Column as Joint, Float64Type as Reals, Int32Type as Integers, Int64Type as Longs, PolarsError,
    PolarsNumericType, Series,
};

use super::codes::{Ranked, Tickers};
use super::failed;
use super::features::Features;
use super::join::Joined;
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Period, Regime, Signal};
use crate::plan::{Column, DatasetPlan};
use crate::tables::choices;

/// The rows of a frame and their features as a batch of the plan's schema.
pub(super) fn rows(joined: Joined, features: &Features, plan: &DatasetPlan, tickers: &Tickers) -> Result<RecordBatch> {
    let Joined { own, places } = joined;
    let (base, lineage) = plan.columns.split_at(Column::BASE.len());
    let mut own: HashMap<String, Joint> =
        own.into_columns().into_iter().map(|column| (column.name().to_string(), column)).collect();
    let mut own = |columns: &[Column]| {
        let column = |column: &Column| {
            let missing = || failed(PolarsError::ColumnNotFound(column.name().into()));
            let values = own.remove(column.name()).ok_or_else(missing)?;
            own_column(values.take_materialized_series(), *column, tickers)
        };
        columns.iter().map(column).collect::<Result<Vec<_>>>()
    };
    let mut columns = own(base)?;
    columns.extend(features.columns.iter().map(|values| repeated(values, &places)));
    columns.extend(own(lineage)?);
    RecordBatch::try_new(Arc::clone(&plan.schema), columns).map_err(|error| Error::Join { source: error.into() })
}

/// The values of a column at some places, each so many times.
fn repeated(values: &ArrayRef, places: &[(usize, usize)]) -> ArrayRef {
    // Where a date has one signal, the values stand as they shall.
    if places.iter().copied().eq((0..values.len()).map(|place| (place, 1))) {
        return Arc::clone(values);
    }
    match values.data_type() {
        DataType::Int32 => Arc::new(repeated_numbers::<Int32Type>(values, places)),
        DataType::Float64 => Arc::new(repeated_numbers::<Float64Type>(values, places)),
        _ => Arc::new(repeated_numbers::<TimestampMicrosecondType>(values, places)),
    }
}

fn repeated_numbers<T: ArrowPrimitiveType>(values: &ArrayRef, places: &[(usize, usize)]) -> PrimitiveArray<T> {
    /// The values that are written at once.
    const STRIDE: usize = 8;
    let values = values.as_primitive::<T>();
    let rows = places.iter().map(|(_, count)| count).sum();
    // A few too many are quicker to write than as many as there are.
    let mut numbers = Vec::with_capacity(rows + STRIDE);
    for &(place, count) in places {
        let end = numbers.len() + count;
        let few = [values.value(place); STRIDE];
        (0..count.div_ceil(STRIDE)).for_each(|_| numbers.extend_from_slice(&few));
        numbers.truncate(end);
    }
    let mut nulls = NullBufferBuilder::new(rows);
    if values.null_count() > 0 {
        for &(place, count) in places {
            if values.is_null(place) { nulls.append_n_nulls(count) } else { nulls.append_n_non_nulls(count) }
        }
    }
    PrimitiveArray::new(numbers.into(), nulls.finish())
}

fn own_column(values: Series, column: Column, tickers: &Tickers) -> Result<ArrayRef> {
    match column {
        Column::Ticker => {
            let codes: Int32Array = numbers::<Integers, Int32Type>(values)?;
            // Rows of one ticker mostly stand together.
            let mut names = StringBuilder::with_capacity(codes.len(), 4 * codes.len());
            for alike in codes.values().chunk_by(|code, next| code == next) {
                names.append_value_n(&tickers.names()[alike[0] as usize], alike.len());
            }
            Ok(Arc::new(names.finish()))
        }
        Column::Date => Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(values)?)),
        Column::Period => spelled::<Period>(values),
        Column::Regime => spelled::<Regime>(values),
        Column::Signal => spelled::<Signal>(values),
        Column::Confidence => Ok(Arc::new(numbers::<Reals, Float64Type>(values)?)),
        Column::FirstObservedAt | Column::ObservedAt => {
            Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(values)?.with_timezone("UTC")))
        }
        Column::Revisions => Ok(Arc::new(numbers::<Integers, Int32Type>(values)?)),
        Column::Backfilled => {
            let flags = numbers::<Integers, Int32Type>(values)?;
            Ok(Arc::new(flags.values().iter().map(|flag| Some(*flag != 0)).collect::<BooleanArray>()))
        }
        Column::Source => spelled::<Endpoint>(values),
    }
}

fn spelled<T: Ranked>(values: Series) -> Result<ArrayRef> {
    let ranks = numbers::<Integers, Int32Type>(values)?;
    let ranks = Int8Array::from_iter_values(ranks.values().iter().map(|&rank| rank as i8));
    Ok(choices(ranks, T::spellings()))
}

/// A column of numbers, its nulls with it. Its values are not copied, where nobody else has them.
fn numbers<P, A>(column: Series) -> Result<PrimitiveArray<A>>
where
    P: PolarsNumericType<Native: ArrowNativeType>,
    A: ArrowPrimitiveType<Native = P::Native>,
{
    let whole = column.rechunk();
    let numbers: ChunkedArray<P> = whole.unpack().map_err(failed)?.clone();
    // From here on the numbers are nobody else's.
    drop((column, whole));
    let mut pieces = numbers.downcast_into_iter().map(|piece| {
        let (_, values, validity) = piece.into_inner();
        let values = values.into_mut().right_or_else(|shared| shared.to_vec());
        let nulls = validity.map(|validity| {
            let (bytes, offset, length) = validity.as_slice();
            NullBuffer::new(BooleanBuffer::new(Buffer::from(bytes), offset, length))
        });
        PrimitiveArray::<A>::new(values.into(), nulls)
    });
    let empty = || PrimitiveArray::from_iter_values([]);
    Ok(pieces.next().unwrap_or_else(empty))
}
