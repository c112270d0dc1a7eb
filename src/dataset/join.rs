//! Gives every signal the features of its ticker and day, and orders the rows. This is where Polars works.

use polars::prelude::{
    Column as Series, DataFrame, DataFrameJoinOps, IntoColumn, JoinArgs, JoinType, JoinValidation, MaintainOrderJoin,
    NamedFrom, Series as PolarsSeries, SortMultipleOptions,
};

use super::codes::{Day, Numbers, Signals};
use super::failed;
use super::features::Features;
use crate::error::Result;
use crate::plan::{Column, DatasetPlan};

/// The column that both sides are joined by: ticker and day in one number.
const CELL: &str = "cell";

/// The rows of a slab with their features, in the slab's order.
pub(super) fn joined(signals: Signals, features: Features) -> Result<DataFrame> {
    let cells: Vec<i64> = signals.cells().map(cell).collect();
    let mut left = vec![
        numbers(Column::Ticker.name(), signals.tickers),
        PolarsSeries::new(Column::Date.name().into(), signals.dates).into_column(),
        numbers(Column::Period.name(), signals.periods),
        numbers(Column::Regime.name(), signals.regimes),
        numbers(Column::Signal.name(), signals.signals),
        PolarsSeries::new(Column::Confidence.name().into(), signals.confidences).into_column(),
        PolarsSeries::new(CELL.into(), cells).into_column(),
    ];
    left.extend(signals.lineage.into_iter().map(|(column, values)| match values {
        Numbers::Short(values) => numbers(column.name(), values),
        Numbers::Long(values) => PolarsSeries::new(column.name().into(), values).into_column(),
    }));
    let left = frame(left)?;
    if features.columns.is_empty() {
        return Ok(left);
    }
    let keys: Vec<i64> = features.keys.into_iter().map(cell).collect();
    let mut columns = vec![PolarsSeries::new(CELL.into(), keys).into_column()];
    columns.extend(features.columns);
    let right = frame(columns)?;
    let mut how = JoinArgs::new(JoinType::Left);
    // Each signal has exactly one row of features. Were it otherwise, rows would multiply: let it be an error.
    how.validation = JoinValidation::ManyToOne;
    how.maintain_order = MaintainOrderJoin::Left;
    left.join(&right, [CELL], [CELL], how, None).map_err(failed)
}

/// The rows in the order of the plan.
pub(super) fn sorted(frame: &DataFrame, plan: &DatasetPlan) -> Result<DataFrame> {
    let by = plan.sort.iter().map(|column| column.name());
    frame.sort(by, SortMultipleOptions::default().with_maintain_order(true)).map_err(failed)
}

fn cell((ticker, day): (i32, Day)) -> i64 {
    (i64::from(ticker) << 32) | i64::from(day as u32)
}

fn numbers(name: &str, values: Vec<i32>) -> Series {
    PolarsSeries::new(name.into(), values).into_column()
}

fn frame(columns: Vec<Series>) -> Result<DataFrame> {
    DataFrame::new_infer_height(columns).map_err(failed)
}
