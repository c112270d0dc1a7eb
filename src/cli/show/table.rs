//! Rows as Polars lays them out.

use std::env;

use bellwether::error::Error;
use polars::prelude::{Column, DataFrame, PlSmallStr};

use crate::cli::outcome::Result;
use crate::cli::wrap::columns;

/// The most columns that Polars prints without eliding any.
const COLUMNS: usize = 8;

/// The option that chooses the columns of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum ColumnOption {
    /// `--columns`: those of a long dataset.
    Columns,
    /// `--ticker`: those of a matrix.
    Ticker,
    /// The columns were chosen.
    Given,
}

/// A frame as text. On a terminal, where Polars would break names and dates into pieces to show more columns, these are
/// the first ones that fit, unless they were chosen.
pub(super) fn table(frame: DataFrame, chosen_by: ColumnOption) -> Result<String> {
    let is_set = env::var_os("POLARS_FMT_MAX_COLS").is_some();
    let option = match chosen_by {
        ColumnOption::Columns => "--columns",
        ColumnOption::Ticker => "--ticker",
        ColumnOption::Given => return Ok(format!("{frame}\n")),
    };
    let Some(room) = columns().filter(|_| !is_set) else { return Ok(format!("{frame}\n")) };
    let all = frame.width();
    let ends = frame.columns().iter().scan(1, |end, column| {
        *end += width(column) + 3;
        Some(*end)
    });
    let fit = ends.take(COLUMNS).take_while(|end| *end <= room).count().max(1);
    if fit == all {
        return Ok(format!("{frame}\n"));
    }
    let names: Vec<PlSmallStr> = frame.get_column_names_owned().into_iter().take(fit).collect();
    let frame = frame.select(names).map_err(Error::frame)?;
    Ok(format!("{frame}\nthe first {fit} of {all} columns; `{option}` chooses others\n"))
}

/// The letters that Polars needs for a column.
fn width(column: &Column) -> usize {
    let values = (0..column.len()).filter_map(|row| Some(column.get(row).ok()?.str_value().chars().count()));
    values.chain([column.name().chars().count(), column.dtype().to_string().chars().count()]).max().unwrap_or_default()
}
