//! A part of a dataset: some columns, tickers and dates.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::NaiveDate;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::error::{Error, Result};
use crate::human::grouped;
use crate::interface::Ticker;
use crate::plan::{Column, ColumnNames, Filter};

/// The part of a dataset to read; all of it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these columns, in this order.
    pub columns: Option<Vec<String>>,
    /// Only these tickers.
    pub tickers: Option<BTreeSet<Ticker>>,
    /// Only dates from this day on.
    pub from: Option<NaiveDate>,
    /// Only dates before this day.
    pub to: Option<NaiveDate>,
}

impl Selection {
    /// Its rows as a filter of signals.
    pub(crate) fn filter(&self) -> Filter {
        Filter { tickers: self.tickers.clone(), from: self.from, to: self.to, ..Filter::default() }
    }

    /// The same selection for a matrix, whose columns are dates and tickers, without tickers that it does not have.
    pub(super) fn of_matrix(self, schema: &Schema, date: &str) -> Self {
        let Some(tickers) = &self.tickers else { return self };
        let is_taken = |name: &String| name == date || tickers.iter().any(|ticker| ticker.as_str() == name);
        let names = || schema.fields().iter().map(|field| field.name().clone());
        let columns = self.columns.unwrap_or_else(|| names().collect()).into_iter().filter(is_taken).collect();
        Self { columns: Some(columns), tickers: None, ..self }
    }

    /// The schema of the selected columns.
    ///
    /// # Errors
    ///
    /// If a column does not exist.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let Some(columns) = &self.columns else { return Ok(Arc::clone(schema)) };
        let field = |name: &String| {
            schema.fields().iter().find(|field| field.name() == name).map(Arc::clone).ok_or_else(|| {
                let what = format!("no column `{name}`; the columns are {}", names(schema));
                Error::usage(what, "`bellwether plan NAME` prints the columns of a dataset")
            })
        };
        Ok(Arc::new(Schema::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    /// Whether a column must be read: it is selected, or the rows are filtered by it.
    pub(super) fn reads(&self, column: &str, names: &ColumnNames) -> bool {
        let is_asked = self.columns.as_ref().is_none_or(|columns| columns.iter().any(|name| name == column));
        let decides = (column == names.of(Column::Ticker.name()) && self.tickers.is_some())
            || (column == names.of(Column::Date.name()) && (self.from.is_some() || self.to.is_some()));
        is_asked || decides
    }

    /// The row groups of a Parquet file that may have selected rows, by their statistics.
    pub(super) fn row_groups(&self, file: &ArrowReaderMetadata, names: &ColumnNames) -> Vec<usize> {
        let groups = file.metadata().row_groups().iter().enumerate();
        groups.filter(|(_, group)| self.may_be_in(group, names)).map(|(index, _)| index).collect()
    }

    fn may_be_in(&self, group: &RowGroupMetaData, names: &ColumnNames) -> bool {
        let statistics = |column: Column| {
            group.columns().iter().find(|chunk| chunk.column_path().string() == names.of(column.name()))?.statistics()
        };
        let has_ticker = match (&self.tickers, statistics(Column::Ticker)) {
            (Some(tickers), Some(Statistics::ByteArray(found))) => match (found.min_opt(), found.max_opt()) {
                (Some(min), Some(max)) => {
                    let is_between = |ticker: &Ticker| (min.data()..=max.data()).contains(&ticker.as_str().as_bytes());
                    tickers.iter().any(is_between)
                }
                _ => true,
            },
            _ => true,
        };
        let has_date = match statistics(Column::Date) {
            Some(Statistics::Int64(found)) => match (found.min_opt(), found.max_opt()) {
                (Some(&min), Some(&max)) => {
                    self.from.is_none_or(|from| max >= micros(from)) && self.to.is_none_or(|to| min < micros(to))
                }
                _ => true,
            },
            _ => true,
        };
        has_ticker && has_date
    }

    /// The selected rows and columns of a batch that has the filtered columns.
    pub(crate) fn part(&self, batch: &RecordBatch, names: &ColumnNames) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows(batch, names)?;
        let Some(columns) = &self.columns else { return Ok(rows) };
        let places = columns.iter().map(|name| batch.schema_ref().index_of(name)).collect::<Result<Vec<_>, _>>()?;
        rows.project(&places)
    }

    /// The selected rows of a batch that has the filtered columns.
    fn rows(&self, batch: &RecordBatch, names: &ColumnNames) -> Result<RecordBatch, ArrowError> {
        if self.tickers.is_none() && self.from.is_none() && self.to.is_none() {
            return Ok(batch.clone());
        }
        let column = |column: Column| batch.column_by_name(names.of(column.name()));
        let mut kept = vec![true; batch.num_rows()];
        // A dataset of one ticker may leave out its column.
        if let (Some(tickers), Some(column)) = (&self.tickers, column(Column::Ticker)) {
            let names = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8)?;
            let tickers: BTreeSet<&str> = tickers.iter().map(Ticker::as_str).collect();
            let names = names.as_string::<i32>();
            kept.iter_mut().enumerate().for_each(|(row, kept)| *kept &= tickers.contains(names.value(row)));
        }
        if self.from.is_some() || self.to.is_some() {
            let missing = || ArrowError::SchemaError("no column of dates".to_owned());
            let dates = column(Column::Date).ok_or_else(missing)?;
            let dates = dates.as_primitive::<TimestampMicrosecondType>().values();
            let (from, to) = (self.from.map_or(i64::MIN, micros), self.to.map_or(i64::MAX, micros));
            kept.iter_mut().zip(dates).for_each(|(kept, date)| *kept &= (from..to).contains(date));
        }
        filter_record_batch(batch, &BooleanArray::from(kept))
    }
}

fn micros(day: NaiveDate) -> i64 {
    day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros()
}

fn names(schema: &Schema) -> String {
    /// A long dataset has fewer columns, a matrix may have thousands.
    const SHOWN: usize = 100;
    let names = schema.fields().iter().map(|field| format!("`{}`", field.name()));
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    match schema.fields().len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {} more", grouped(more as u64)),
    }
}
