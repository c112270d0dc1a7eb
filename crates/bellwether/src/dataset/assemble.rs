//! Turns joined rows into the declared columns, in which the signals of a ticker and a date share their values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take;
use arrow::error::ArrowError;

use super::features::Features;
use super::join::Segment;
use super::signals::TickerCodes;
use crate::columns::{self, Rows, Segments};
use crate::interface::{Sector, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::sessions::day_of;
use crate::tables::Past;

/// The joined rows and their features, in the schema of the plan.
pub(super) fn rows(
    (segments, own): (Vec<Segment>, Vec<(Column, ArrayRef)>),
    features: &Features,
    plan: &DatasetPlan,
    tickers: &TickerCodes,
    past: Option<&Past>,
) -> Result<Rows, ArrowError> {
    let shared = Segments::new(segments.iter().map(|segment| segment.rows));
    let mut own: HashMap<Column, ArrayRef> = own.into_iter().collect();
    let mut columns: Vec<columns::Column> = Vec::with_capacity(plan.schema.fields().len());
    for column in &plan.columns {
        let values: ArrayRef = match column {
            Column::Ticker => of_tickers(&segments, |code, names, rows| {
                names.append_value_n(&tickers.names()[code as usize], rows.len());
            }),
            Column::Id => of_tickers(&segments, |code, ids, rows| {
                for segment in rows {
                    let ticker = tickers.ticker(code);
                    ids.append_option(ticker.and_then(|ticker| plan.identity.id(ticker, day_of(segment.date))));
                }
            }),
            Column::Date => {
                let dates = segments.iter().map(|segment| segment.date);
                Arc::new(TimestampMicrosecondArray::from_iter_values(dates))
            }
            other => match own.remove(other) {
                Some(values) => {
                    columns.push(values.into());
                    continue;
                }
                // Usually each ticker always had the same sector.
                None if matches!(other, Column::Sector | Column::SectorLatest) => {
                    let latest = |ticker: &Ticker| past?.latest_sector(ticker).map(Sector::as_str);
                    of_tickers(&segments, |code, names, rows| match tickers.ticker(code).and_then(latest) {
                        Some(sector) => names.append_value_n(sector, rows.len()),
                        None => names.append_nulls(rows.len()),
                    })
                }
                None => return Err(ArrowError::SchemaError(format!("no signal says its {}", other.name()))),
            },
        };
        columns.push(shared.column(values));
    }
    // Features stand after the columns that every dataset has.
    let lineage = columns.split_off(Column::BASE.len());
    columns.extend(feature_columns(&segments, features, &shared)?);
    columns.extend(lineage);
    Rows::new(Arc::clone(&plan.schema), columns)
}

/// The features of each segment.
fn feature_columns(
    segments: &[Segment],
    features: &Features,
    shared: &Segments,
) -> Result<Vec<columns::Column>, ArrowError> {
    let indices = UInt32Array::from_iter_values(segments.iter().map(|segment| segment.index));
    // Usually each range of rows has its own features, in order.
    let is_each = indices.values().iter().copied().eq(0..features.rows as u32);
    let column = |values: &ArrayRef| {
        let values = if is_each { Arc::clone(values) } else { take(values, &indices, None)? };
        Ok(shared.column(values))
    };
    features.columns.iter().map(column).collect()
}

/// A text for each segment. Segments of one ticker are usually adjacent.
fn of_tickers(segments: &[Segment], append: impl Fn(i32, &mut StringBuilder, &[Segment])) -> ArrayRef {
    let mut texts = StringBuilder::with_capacity(segments.len(), 4 * segments.len());
    for alike in segments.chunk_by(|one, next| one.ticker == next.ticker) {
        append(alike[0].ticker, &mut texts, alike);
    }
    Arc::new(texts.finish())
}
