//! The joined rows in the declared columns: numbers become names again, and types are what the plan says.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int8Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::take;
use polars::prelude::{ChunkedArray, DataFrame, Float64Type, Int32Type, Int64Type, PolarsNumericType};

use super::codes::{Ranked, Tickers};
use super::failed;
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Period, Regime, Signal};
use crate::plan::{Column, DatasetPlan, Feature};
use crate::tables::choices;

/// The rows of a frame as a batch of the plan's schema.
pub(super) fn rows(frame: &DataFrame, plan: &DatasetPlan, tickers: &Tickers) -> Result<RecordBatch> {
    let (base, lineage) = plan.columns.split_at(Column::BASE.len());
    let own = |column: &Column| own_column(frame, *column, tickers);
    let of_news = plan.features.iter().map(|feature| feature_column(frame, feature));
    let columns = base.iter().map(own).chain(of_news).chain(lineage.iter().map(own)).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(&plan.schema), columns).map_err(|error| Error::Join { source: error.into() })
}

fn own_column(frame: &DataFrame, column: Column, tickers: &Tickers) -> Result<ArrayRef> {
    let name = column.name();
    match column {
        Column::Ticker => {
            let names = StringArray::from_iter_values(tickers.names());
            let codes = Int32Array::from(numbers(frame, name)?);
            take(&names, &codes, None).map_err(|error| Error::Join { source: error.into() })
        }
        Column::Date => timestamps(frame, name),
        Column::Period => spelled::<Period>(frame, name),
        Column::Regime => spelled::<Regime>(frame, name),
        Column::Signal => spelled::<Signal>(frame, name),
        Column::Confidence => floats(frame, name),
        Column::FirstObservedAt | Column::ObservedAt => {
            let instants: TimestampMicrosecondArray = self::column::<Int64Type>(frame, name)?.iter().collect();
            Ok(Arc::new(instants.with_timezone("UTC")))
        }
        Column::Revisions => Ok(Arc::new(Int32Array::from(numbers(frame, name)?))),
        Column::Backfilled => {
            let flags = numbers(frame, name)?.into_iter().map(|flag| Some(flag != 0));
            Ok(Arc::new(flags.collect::<BooleanArray>()))
        }
        Column::Source => spelled::<Endpoint>(frame, name),
    }
}

fn feature_column(frame: &DataFrame, feature: &Feature) -> Result<ArrayRef> {
    let name = &feature.to_string();
    match feature {
        Feature::Count(_) => Ok(Arc::new(Int32Array::from(numbers(frame, name)?))),
        Feature::DaysSince | Feature::SummaryDaysSince => {
            Ok(Arc::new(column::<Int32Type>(frame, name)?.iter().collect::<Int32Array>()))
        }
        Feature::LastDate => timestamps(frame, name),
        Feature::Mean(_)
        | Feature::Min(_)
        | Feature::Max(_)
        | Feature::Std(_)
        | Feature::LastScore
        | Feature::Summary(_)
        | Feature::Historical(_) => floats(frame, name),
    }
}

fn spelled<T: Ranked>(frame: &DataFrame, name: &str) -> Result<ArrayRef> {
    let ranks: Int8Array = numbers(frame, name)?.into_iter().map(|rank| Some(rank as i8)).collect();
    Ok(choices(ranks, T::spellings()))
}

fn timestamps(frame: &DataFrame, name: &str) -> Result<ArrayRef> {
    Ok(Arc::new(column::<Int64Type>(frame, name)?.iter().collect::<TimestampMicrosecondArray>()))
}

fn floats(frame: &DataFrame, name: &str) -> Result<ArrayRef> {
    Ok(Arc::new(column::<Float64Type>(frame, name)?.iter().collect::<Float64Array>()))
}

/// A column that has no nulls.
fn numbers(frame: &DataFrame, name: &str) -> Result<Vec<i32>> {
    Ok(column::<Int32Type>(frame, name)?.into_no_null_iter().collect())
}

fn column<'a, T: PolarsNumericType>(frame: &'a DataFrame, name: &str) -> Result<&'a ChunkedArray<T>> {
    let column = frame.column(name).map_err(failed)?;
    column.as_materialized_series().unpack::<T>().map_err(failed)
}
