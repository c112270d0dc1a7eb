//! The joined rows in the declared columns: numbers become names again, and types are what the plan says.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Int8Array, Int32Array, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeType, Float64Type, Int32Type, TimestampMicrosecondType};
use polars::prelude::{
    ChunkedArray, DataFrame, Float64Type as Reals, Int32Type as Integers, Int64Type as Longs, PolarsNumericType,
};
use rayon::prelude::*;

use super::codes::{Ranked, Tickers};
use super::failed;
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Period, Regime, Signal};
use crate::plan::{Column, DatasetPlan, Feature};
use crate::tables::choices;

/// The rows of a frame as a batch of the plan's schema.
pub(super) fn rows(frame: &DataFrame, plan: &DatasetPlan, tickers: &Tickers) -> Result<RecordBatch> {
    enum Of<'a> {
        Own(Column),
        News(&'a Feature),
    }
    let (base, lineage) = plan.columns.split_at(Column::BASE.len());
    let own = |columns: &[Column]| columns.iter().copied().map(Of::Own).collect::<Vec<_>>();
    let columns = own(base).into_iter().chain(plan.features.iter().map(Of::News)).chain(own(lineage));
    let column = |column: Of<'_>| match column {
        Of::Own(column) => own_column(frame, column, tickers),
        Of::News(feature) => feature_column(frame, feature),
    };
    let columns = columns.collect::<Vec<_>>().into_par_iter().map(column).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(&plan.schema), columns).map_err(|error| Error::Join { source: error.into() })
}

fn own_column(frame: &DataFrame, column: Column, tickers: &Tickers) -> Result<ArrayRef> {
    let name = column.name();
    match column {
        Column::Ticker => {
            let names = StringArray::from_iter_values(tickers.names());
            let codes: Int32Array = numbers::<Integers, Int32Type>(frame, name)?;
            take(&names, &codes, None).map_err(|error| Error::Join { source: error.into() })
        }
        Column::Date => Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(frame, name)?)),
        Column::Period => spelled::<Period>(frame, name),
        Column::Regime => spelled::<Regime>(frame, name),
        Column::Signal => spelled::<Signal>(frame, name),
        Column::Confidence => Ok(Arc::new(numbers::<Reals, Float64Type>(frame, name)?)),
        Column::FirstObservedAt | Column::ObservedAt => {
            Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(frame, name)?.with_timezone("UTC")))
        }
        Column::Revisions => Ok(Arc::new(numbers::<Integers, Int32Type>(frame, name)?)),
        Column::Backfilled => {
            let flags = numbers::<Integers, Int32Type>(frame, name)?;
            Ok(Arc::new(flags.values().iter().map(|flag| Some(*flag != 0)).collect::<BooleanArray>()))
        }
        Column::Source => spelled::<Endpoint>(frame, name),
    }
}

fn feature_column(frame: &DataFrame, feature: &Feature) -> Result<ArrayRef> {
    let name = &feature.to_string();
    match feature {
        Feature::Count(_) | Feature::DaysSince | Feature::SummaryDaysSince => {
            Ok(Arc::new(numbers::<Integers, Int32Type>(frame, name)?))
        }
        Feature::LastDate => Ok(Arc::new(numbers::<Longs, TimestampMicrosecondType>(frame, name)?)),
        Feature::Mean(_)
        | Feature::Min(_)
        | Feature::Max(_)
        | Feature::Std(_)
        | Feature::LastScore
        | Feature::Summary(_)
        | Feature::Historical(_) => Ok(Arc::new(numbers::<Reals, Float64Type>(frame, name)?)),
    }
}

fn spelled<T: Ranked>(frame: &DataFrame, name: &str) -> Result<ArrayRef> {
    let ranks = numbers::<Integers, Int32Type>(frame, name)?;
    let ranks: Int8Array = ranks.values().iter().map(|&rank| Some(rank as i8)).collect();
    Ok(choices(ranks, T::spellings()))
}

/// A column of numbers, its nulls with it.
fn numbers<P, A>(frame: &DataFrame, name: &str) -> Result<PrimitiveArray<A>>
where
    P: PolarsNumericType<Native: ArrowNativeType>,
    A: ArrowPrimitiveType<Native = P::Native>,
{
    let column = frame.column(name).map_err(failed)?;
    let column: &ChunkedArray<P> = column.as_materialized_series().unpack().map_err(failed)?;
    let mut values: Vec<P::Native> = Vec::with_capacity(column.len());
    let mut is_valid: Vec<(usize, BooleanBuffer)> = Vec::new();
    for chunk in column.downcast_iter() {
        if let Some(validity) = chunk.validity() {
            let (bytes, offset, length) = validity.as_slice();
            is_valid.push((values.len(), BooleanBuffer::new(Buffer::from(bytes), offset, length)));
        }
        values.extend_from_slice(chunk.values().as_slice());
    }
    let nulls = match &is_valid[..] {
        [] => None,
        [(0, bits)] if bits.len() == values.len() => Some(NullBuffer::new(bits.clone())),
        pieces => {
            let mut bits = vec![true; values.len()];
            for (start, piece) in pieces {
                bits[*start..*start + piece.len()].iter_mut().zip(piece).for_each(|(bit, valid)| *bit = valid);
            }
            Some(NullBuffer::from(bits))
        }
    };
    Ok(PrimitiveArray::new(values.into(), nulls))
}
