//! The joined rows in the declared columns: numbers become names again, and types are what the plan says.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Int8Array, Int32Array, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeType, Float64Type, Int32Type, TimestampMicrosecondType};
use polars::prelude::{
    ChunkedArray, Column as Joined, DataFrame, Float64Type as Reals, Int32Type as Integers, Int64Type as Longs,
    PolarsError, PolarsNumericType, Series,
};

use super::codes::{Ranked, Tickers};
use super::failed;
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Period, Regime, Signal};
use crate::plan::{Column, DatasetPlan, Feature};
use crate::tables::choices;

/// What a column tells of.
#[derive(Clone, Copy)]
enum Of<'a> {
    Own(Column),
    News(&'a Feature),
}

/// The rows of a frame as a batch of the plan's schema.
pub(super) fn rows(frame: DataFrame, plan: &DatasetPlan, tickers: &Tickers) -> Result<RecordBatch> {
    let (base, lineage) = plan.columns.split_at(Column::BASE.len());
    let own = |columns: &[Column]| columns.iter().copied().map(Of::Own).collect::<Vec<_>>();
    let columns = own(base).into_iter().chain(plan.features.iter().map(Of::News)).chain(own(lineage));
    let joined = frame.into_columns().into_iter();
    let mut joined: HashMap<String, Joined> = joined.map(|column| (column.name().to_string(), column)).collect();
    let mut columns_with_values = Vec::with_capacity(joined.len());
    for column in columns {
        let name = match column {
            Of::Own(column) => column.name().to_owned(),
            Of::News(feature) => feature.to_string(),
        };
        let values = joined.remove(&name).ok_or_else(|| failed(PolarsError::ColumnNotFound(name.into())))?;
        columns_with_values.push((column, values.take_materialized_series()));
    }
    let column = |(column, values)| match column {
        Of::Own(column) => own_column(values, column, tickers),
        Of::News(feature) => feature_column(values, feature),
    };
    let columns = columns_with_values.into_iter().map(column).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(&plan.schema), columns).map_err(|error| Error::Join { source: error.into() })
}

fn own_column(values: Series, column: Column, tickers: &Tickers) -> Result<ArrayRef> {
    match column {
        Column::Ticker => {
            let names = StringArray::from_iter_values(tickers.names());
            let codes: Int32Array = numbers::<Integers, Int32Type>(values)?;
            take(&names, &codes, None).map_err(|error| Error::Join { source: error.into() })
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

fn feature_column(values: Series, feature: &Feature) -> Result<ArrayRef> {
    match feature {
        Feature::Count(_) | Feature::DaysSince | Feature::SummaryDaysSince => {
            Ok(Arc::new(numbers::<Integers, Int32Type>(values)?))
        }
        Feature::LastDate => Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(values)?)),
        Feature::Mean(_)
        | Feature::Min(_)
        | Feature::Max(_)
        | Feature::Std(_)
        | Feature::LastScore
        | Feature::Summary(_)
        | Feature::Historical(_) => Ok(Arc::new(numbers::<Reals, Float64Type>(values)?)),
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
