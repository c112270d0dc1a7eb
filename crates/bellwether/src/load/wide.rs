//! A long dataset as matrices: dates down, tickers across, one for each period, regime and value.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, FieldRef, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::published::no_value;
use super::{Dataset, Selection};
use crate::dataset::Wide;
use crate::error::{Error, Result};
use crate::plan::{Column, ColumnNames};
use crate::tables;

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
