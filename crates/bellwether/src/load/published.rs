//! Published versions, long or wide; and long datasets as matrices: dates down, tickers across, one for each period, regime and
//! value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, FieldRef, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::{Dataset, Selection, refuse_absent};
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
        let matrices = match self {
            Self::Long(dataset) => return dataset.select(selection).map(Self::Long),
            Self::Wide(matrices) => matrices,
        };
        let of_rows = Selection { columns: None, ..selection.clone() };
        of_rows.check_values()?;
        let mut named = Vec::new();
        for (name, matrix) in matrices {
            named.extend(parse_matrix(name).map(|parts| (parts, name, matrix)));
        }
        refuse_absent("period", selection.periods.as_ref(), named.iter().map(|((period, ..), ..)| *period))?;
        refuse_absent("regime", selection.regimes.as_ref(), named.iter().map(|((_, regime, _), ..)| *regime))?;
        let values: BTreeSet<&str> = named.iter().map(|((.., value), ..)| *value).collect();
        let columns = selection.columns.as_ref().map(|columns| columns.iter().map(String::as_str).collect::<Vec<_>>());
        for name in columns.iter().flatten().filter(|name| !values.contains(*name)) {
            let is_key = |key: &Column| {
                key.name() == *name || matrices.values().any(|matrix| matrix.names().of(key.name()) == *name)
            };
            if !Column::KEY.iter().any(is_key) {
                let known = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
                let what = format!("no matrices of column `{name}`; there are those of {known}");
                return Err(Error::usage(what, "name one of these, or leave out `--columns` for all"));
            }
        }
        if columns.as_ref().is_some_and(|columns| !columns.iter().any(|name| values.contains(name))) {
            return Err(no_value());
        }
        let of_each = Selection { periods: None, regimes: None, ..of_rows };
        let mut part = BTreeMap::new();
        for ((period, regime, value), name, matrix) in named {
            if selects(&selection, period, regime) && columns.as_ref().is_none_or(|columns| columns.contains(&value)) {
                part.insert(name.clone(), matrix.select(of_each.clone())?);
            }
        }
        Ok(Self::Wide(part))
    }
}

/// The name of a matrix in its parts: `5d-bull/confidence`.
fn parse_matrix(name: &str) -> Option<(Period, Regime, &str)> {
    let (pair, value) = name.split_once('/')?;
    let (period, regime) = pair.split_once('-')?;
    Some((period.parse().ok()?, regime.parse().ok()?, value))
}

/// Whether a selection has a pair of period and regime.
fn selects(selection: &Selection, period: Period, regime: Regime) -> bool {
    selection.periods.as_ref().is_none_or(|periods| periods.contains(&period))
        && selection.regimes.as_ref().is_none_or(|regimes| regimes.contains(&regime))
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
        let key = Column::KEY.map(|column| names.of(column.name()));
        let values: Vec<&str> = values.iter().copied().filter(|name| !key.contains(name)).collect();
        if values.is_empty() {
            return Err(no_value());
        }
        let stamped = (stamp != Column::Date).then(|| names.of(stamp.name())).filter(|name| !values.contains(name));
        let columns = key.iter().chain(&values).copied().chain(stamped).map(str::to_owned).collect();
        let part = self.select(Selection { columns: Some(columns), ..self.selection().clone() })?;
        let batches = part.rows()?.collect::<Result<Vec<_>>>()?;
        let rows = concat_batches(&part.schema(), &batches).map_err(Error::frame)?;
        // The pivot that publishes wide versions takes columns by their own names, and rows by ticker and date.
        let own: Vec<String> = values.iter().map(|name| names.own(name).to_owned()).collect();
        let mut wide = Wide::new(&own, stamp);
        wide.add(&by_ticker(&rows, names).map_err(Error::frame)?.into())?;
        let mut matrices = BTreeMap::new();
        let date: FieldRef = Arc::new(Field::new(names.of(Column::Date.name()), tables::date(), false));
        wide.finish(|period, regime, value, matrix| {
            let mut fields: Vec<FieldRef> = matrix.schema().fields().iter().cloned().collect();
            fields[0] = Arc::clone(&date);
            let matrix = RecordBatch::try_new(Arc::new(Schema::new(fields)), matrix.columns().to_vec());
            matrices.insert(format!("{period}-{regime}/{}", names.of(value)), matrix.map_err(Error::frame)?);
            Ok(())
        })?;
        let empty = RecordBatch::new_empty(Arc::new(Schema::new(vec![date])));
        for (period, regime) in self.names_of_rows()?.1 {
            for value in values.iter().filter(|_| selects(self.selection(), period, regime)) {
                matrices.entry(format!("{period}-{regime}/{value}")).or_insert_with(|| empty.clone());
            }
        }
        Ok(matrices)
    }
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
