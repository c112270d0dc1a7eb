//! Published versions, long or wide; and long datasets as matrices: dates down, tickers across, one for each period, regime and
//! value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, FieldRef, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::names::absent;
use super::{Dataset, Selection};
use crate::dataset::Wide;
use crate::error::{Error, Result};
use crate::export::PublishedReader;
use crate::interface::{Period, Regime};
use crate::plan::{Column, ColumnNames};
use crate::tables;

/// A published version, long or wide.
///
/// ```no_run
/// use bellwether::load::Published;
///
/// match Published::find("output/datasets".as_ref(), "demo")? {
///     Published::Long(dataset) => println!("{} columns", dataset.schema().fields().len()),
///     Published::Wide(matrices) => {
///         for (name, matrix) in &matrices {
///             println!("{name}: {} tickers", matrix.schema().fields().len() - 1);
///         }
///     }
/// }
/// # Ok::<(), bellwether::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Published {
    /// A row for each signal.
    Long(Dataset),
    /// A matrix for each period, regime and value, by name: `5d-bull/confidence`.
    Wide(BTreeMap<String, Dataset>),
}

impl Published {
    /// A version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// When it does not exist, or has a record or a file that cannot be read.
    pub fn find(datasets: &Path, name: &str) -> Result<Self> {
        let version = PublishedReader::whole(datasets, name)?;
        let dataset = |reading: PublishedReader| reading.select(Selection::default()).map(Dataset::of_version);
        if !version.is_wide() {
            return dataset(version).map(Self::Long);
        }
        let matrices = version.matrices()?.into_iter().map(|(name, reading)| Ok((name, dataset(reading)?)));
        matrices.collect::<Result<_>>().map(Self::Wide)
    }

    /// A part of it. Of a wide version, periods and regimes select matrices, and columns their values; its matrices have
    /// the columns of the key anyway.
    ///
    /// # Errors
    ///
    /// As [`Dataset::select`].
    pub fn select(&self, selection: Selection) -> Result<Self> {
        match self {
            Self::Long(dataset) => dataset.select(selection).map(Self::Long),
            Self::Wide(matrices) => part(matrices, selection).map(Self::Wide),
        }
    }
}

/// The name of a matrix in its parts: `5d-bull/confidence`.
fn parse_matrix(name: &str) -> Option<(Period, Regime, &str)> {
    let (pair, value) = name.split_once('/')?;
    let (period, regime) = pair.split_once('-')?;
    Some((period.parse().ok()?, regime.parse().ok()?, value))
}

/// A part of some matrices.
fn part(matrices: &BTreeMap<String, Dataset>, selection: Selection) -> Result<BTreeMap<String, Dataset>> {
    let of_rows = Selection { columns: None, ..selection.clone() };
    of_rows.check_values()?;
    let names: Vec<(Period, Regime, &str)> = matrices.keys().filter_map(|name| parse_matrix(name)).collect();
    absent("period", selection.periods.as_ref(), &names.iter().map(|(period, ..)| *period).collect())?;
    absent("regime", selection.regimes.as_ref(), &names.iter().map(|(_, regime, _)| *regime).collect())?;
    let values: BTreeSet<&str> = names.iter().map(|(.., value)| *value).collect();
    let is_key = |name: &str| {
        let renamed =
            matrices.values().any(|matrix| Column::KEY.iter().any(|key| matrix.names().of(key.name()) == name));
        renamed || Column::KEY.iter().any(|key| key.name() == name)
    };
    let columns = selection.columns.as_ref().map(|columns| columns.iter().map(String::as_str).collect::<Vec<_>>());
    for name in columns.iter().flatten() {
        if !values.contains(name) && !is_key(name) {
            let known = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
            let what = format!("no matrices of column `{name}`; there are those of {known}");
            return Err(Error::usage(what, "name one of these, or leave out `--columns` for all"));
        }
    }
    if columns.as_ref().is_some_and(|columns| !columns.iter().any(|name| values.contains(name))) {
        return Err(no_value());
    }
    let is_selected = |name: &str| {
        parse_matrix(name).is_some_and(|(period, regime, value)| {
            columns.as_ref().is_none_or(|columns| columns.contains(&value))
                && selection.periods.as_ref().is_none_or(|periods| periods.contains(&period))
                && selection.regimes.as_ref().is_none_or(|regimes| regimes.contains(&regime))
        })
    };
    let of_each = Selection { periods: None, regimes: None, ..of_rows };
    let selected = matrices.iter().filter(|(name, _)| is_selected(name));
    selected.map(|(name, matrix)| Ok((name.clone(), matrix.select(of_each.clone())?))).collect()
}

/// The refusal of matrices without a value.
fn no_value() -> Error {
    Error::usage("no column for the values of matrices", "name one that is not of the key, such as `confidence`")
}

impl Dataset {
    /// A long dataset as matrices of some of its columns, by the name that a wide version gives them:
    /// `5d-bull/confidence`. Each has a column of dates and a column per ticker. A signal is 1 for buy and -1 for sell.
    ///
    /// A row is dated by the column of dates, or by that of the sessions of entry, and then what has none is left out.
    ///
    /// Only the key and these columns are read, whichever are selected. All rows are in memory. A pair of period and regime
    /// without rows in the selected dates has empty matrices.
    ///
    /// # Errors
    ///
    /// When the dataset does not have its key or one of the columns, and any error of reading it.
    pub fn matrices(&self, values: &[&str], stamp: Column) -> Result<BTreeMap<String, RecordBatch>> {
        let names = self.names();
        let key = Column::KEY.iter().map(|column| names.of(column.name()));
        let values: Vec<&str> = values.iter().copied().filter(|name| !key.clone().any(|key| key == *name)).collect();
        if values.is_empty() {
            return Err(no_value());
        }
        let stamped = (stamp != Column::Date).then(|| names.of(stamp.name())).filter(|name| !values.contains(name));
        let columns = key.chain(values.iter().copied()).chain(stamped).map(str::to_owned).collect();
        let part = self.select(Selection { columns: Some(columns), ..self.selection().clone() })?;
        let batches = part.rows()?.collect::<Result<Vec<_>>>()?;
        let rows = concat_batches(&part.schema(), &batches).map_err(Error::frame)?;
        let mut matrices = matrices(&rows, names, &values, stamp)?;
        let dates: FieldRef = Arc::new(Field::new(names.of(Column::Date.name()), tables::date(), false));
        let schema = Arc::new(Schema::new(vec![dates]));
        for (period, regime) in self.selected_pairs()? {
            for value in &values {
                let empty = || RecordBatch::new_empty(Arc::clone(&schema));
                matrices.entry(format!("{period}-{regime}/{value}")).or_insert_with(empty);
            }
        }
        Ok(matrices)
    }
}

/// The pivot that publishes wide versions takes columns by their own names, and rows by ticker and date.
fn matrices(
    rows: &RecordBatch,
    names: &ColumnNames,
    values: &[&str],
    stamp: Column,
) -> Result<BTreeMap<String, RecordBatch>> {
    let own: Vec<String> = values.iter().map(|name| names.own(name).to_owned()).collect();
    let mut wide = Wide::new(&own, stamp);
    wide.add(&by_ticker(rows, names).map_err(Error::frame)?.into())?;
    let mut matrices = BTreeMap::new();
    wide.finish(|period, regime, value, matrix| {
        let mut fields: Vec<FieldRef> = matrix.schema().fields().iter().cloned().collect();
        fields[0] = Arc::new(fields[0].as_ref().clone().with_name(names.of(Column::Date.name())));
        let matrix = RecordBatch::try_new(Arc::new(Schema::new(fields)), matrix.columns().to_vec());
        let name = format!("{period}-{regime}/{}", names.of(value));
        matrices.insert(name, matrix.map_err(Error::frame)?);
        Ok(())
    })?;
    Ok(matrices)
}

/// Rows under the own names of their columns, by ticker and date, as most orders have them.
fn by_ticker(rows: &RecordBatch, names: &ColumnNames) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_name(names.own(field.name())));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), rows.columns().to_vec())?;
    let column = |column: Column| rows.column_by_name(column.name()).expect("the column is selected");
    let tickers = column(Column::Ticker).as_string::<i32>();
    let dates = column(Column::Date).as_primitive::<TimestampMicrosecondType>();
    let key = |row: usize| (tickers.value(row), dates.value(row));
    if (1..rows.num_rows()).all(|row| key(row - 1) <= key(row)) {
        return Ok(rows);
    }
    let by = [column(Column::Ticker), column(Column::Date)];
    let by = by.map(|values| SortColumn { values: Arc::clone(values), options: None });
    take_record_batch(&rows, &lexsort_to_indices(&by, None)?)
}
