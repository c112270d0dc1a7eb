//! A part of a dataset: some columns, and the rows of some tickers, sectors, periods, regimes and dates.
//!
//! A selection applies or is refused. Rows are selected by the columns that a dataset has, so a selection means the same of
//! a version, whatever its format and folders, and of a dataset that is built while it is read.

use std::collections::BTreeSet;
use std::fmt::Display;
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
use crate::interface::{Period, Regime, Sector, Ticker};
use crate::plan::{Column, ColumnNames, Filter};
use crate::text::human::group_digits;

/// The part of a dataset to read; all of it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these columns, in this order.
    pub columns: Option<Vec<String>>,
    /// Only these tickers.
    pub tickers: Option<BTreeSet<Ticker>>,
    /// Only rows of these sectors, by the column `sector`.
    pub sectors: Option<BTreeSet<Sector>>,
    /// Only these horizons.
    pub periods: Option<BTreeSet<Period>>,
    /// Only these market regimes.
    pub regimes: Option<BTreeSet<Regime>>,
    /// Only dates from this day on.
    pub from: Option<NaiveDate>,
    /// Only dates before this day.
    pub to: Option<NaiveDate>,
}

/// The columns whose texts rows are selected by.
const TEXTS: [Column; 4] = [Column::Ticker, Column::Sector, Column::Period, Column::Regime];

impl Selection {
    /// Its rows as a filter of signals. A sector is a value of a row, not of its ticker, and is none of it.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            tickers: self.tickers.clone(),
            periods: self.periods.clone(),
            regimes: self.regimes.clone(),
            from: self.from,
            to: self.to,
            ..Filter::default()
        }
    }

    /// Refuses what a dataset with these columns cannot apply.
    pub(crate) fn check(&self, schema: &SchemaRef, names: &ColumnNames) -> Result<()> {
        self.check_values()?;
        let selects_by = |column: &Column| self.selects_by(*column) && names.find(*column, schema).is_none();
        if let Some(column) = TEXTS.into_iter().chain([Column::Date]).find(selects_by) {
            return Err(without_column(column, is_of_news(schema, names)));
        }
        self.schema(schema).map(drop)
    }

    /// The same selection for a matrix, whose columns are dates and tickers, without tickers that it does not have.
    pub(super) fn of_matrix(self, schema: &SchemaRef, date: &str) -> Result<Self> {
        self.check_values()?;
        let others = [Column::Sector, Column::Period, Column::Regime];
        if let Some(column) = others.into_iter().find(|column| self.selects_by(*column)) {
            let what = format!("cannot select {} of a matrix", of_column(column).0);
            return Err(Error::usage(what, "choose a matrix by its name, and its columns by ticker"));
        }
        self.schema(schema)?;
        let Some(tickers) = &self.tickers else { return Ok(self) };
        let is_taken = |name: &String| name == date || tickers.iter().any(|ticker| ticker.as_str() == name);
        let names = || schema.fields().iter().map(|field| field.name().clone());
        let columns = self.columns.unwrap_or_else(|| names().collect()).into_iter().filter(is_taken).collect();
        Ok(Self { columns: Some(columns), tickers: None, ..self })
    }

    /// Refuses a selection that no dataset has rows or columns for.
    pub(crate) fn check_values(&self) -> Result<()> {
        if self.columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::usage("no columns are selected", "leave out `--columns` for all columns"));
        }
        if let Some(column) = TEXTS.into_iter().find(|column| self.texts(*column).is_some_and(|texts| texts.is_empty()))
        {
            let (what, options) = of_column(column);
            return Err(Error::usage(format!("no {what} are selected"), format!("leave out {options} for all {what}")));
        }
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => {
                let what = format!("empty date range: {from} to {to}");
                Err(Error::usage(what, "`--to` is exclusive: choose a day after `--from`"))
            }
            _ => Ok(()),
        }
    }

    /// The schema of the selected columns.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let Some(columns) = &self.columns else { return Ok(Arc::clone(schema)) };
        let repeats = |(index, name): &(usize, &String)| columns[..*index].contains(name);
        if let Some((_, name)) = columns.iter().enumerate().find(repeats) {
            return Err(Error::usage(format!("column `{name}` is named twice"), "name each column once"));
        }
        let field = |name: &String| {
            schema.fields().iter().find(|field| field.name() == name).map(Arc::clone).ok_or_else(|| {
                let what = format!("no column `{name}`; the columns are {}", names(schema));
                Error::usage(what, "`bellwether check NAME` prints the columns of a dataset")
            })
        };
        Ok(Arc::new(Schema::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    /// Whether rows are selected by a column.
    pub(crate) fn selects_by(&self, column: Column) -> bool {
        match column {
            Column::Date => self.from.is_some() || self.to.is_some(),
            _ => self.texts(column).is_some(),
        }
    }

    /// The texts that a column may have; none if rows are not selected by them.
    fn texts(&self, column: Column) -> Option<BTreeSet<String>> {
        fn each<T: Display>(values: Option<&BTreeSet<T>>) -> Option<BTreeSet<String>> {
            values.map(|values| values.iter().map(T::to_string).collect())
        }
        match column {
            Column::Ticker => each(self.tickers.as_ref()),
            Column::Sector => each(self.sectors.as_ref()),
            Column::Period => each(self.periods.as_ref()),
            Column::Regime => each(self.regimes.as_ref()),
            _ => None,
        }
    }

    /// Whether a column must be read: it is selected, or the rows are selected by it.
    pub(super) fn reads(&self, column: &str, names: &ColumnNames) -> bool {
        let is_asked = self.columns.as_ref().is_none_or(|columns| columns.iter().any(|name| name == column));
        let decides = |own: &Column| self.selects_by(*own) && names.of(own.name()) == column;
        is_asked || TEXTS.iter().chain(&[Column::Date]).any(decides)
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
        let has_text = |column: &Column| match (self.texts(*column), statistics(*column)) {
            (Some(texts), Some(Statistics::ByteArray(found))) => match (found.min_opt(), found.max_opt()) {
                (Some(min), Some(max)) => texts.iter().any(|text| (min.data()..=max.data()).contains(&text.as_bytes())),
                _ => true,
            },
            _ => true,
        };
        let has_date = match statistics(Column::Date) {
            Some(Statistics::Int64(found)) if self.selects_by(Column::Date) => match (found.min_opt(), found.max_opt())
            {
                (Some(&min), Some(&max)) => {
                    self.from.is_none_or(|from| max >= micros(from)) && self.to.is_none_or(|to| min < micros(to))
                }
                _ => true,
            },
            _ => true,
        };
        TEXTS.iter().all(has_text) && has_date
    }

    /// The selected rows and columns of a batch that has the filtered columns.
    pub(crate) fn part(&self, batch: &RecordBatch, names: &ColumnNames) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows(batch, names)?;
        let Some(columns) = &self.columns else { return Ok(rows) };
        let indices = columns.iter().map(|name| batch.schema_ref().index_of(name)).collect::<Result<Vec<_>, _>>()?;
        rows.project(&indices)
    }

    /// The selected rows of a batch that has the filtered columns.
    fn rows(&self, batch: &RecordBatch, names: &ColumnNames) -> Result<RecordBatch, ArrowError> {
        let column = |column: Column| {
            let missing = || ArrowError::SchemaError(format!("no column `{}`", names.of(column.name())));
            batch.column_by_name(names.of(column.name())).ok_or_else(missing)
        };
        let mut kept: Option<Vec<bool>> = None;
        for by in TEXTS {
            let Some(texts) = self.texts(by) else { continue };
            let found = arrow::compute::cast(column(by)?, &arrow::datatypes::DataType::Utf8)?;
            let found = found.as_string::<i32>();
            let kept = kept.get_or_insert_with(|| vec![true; batch.num_rows()]);
            kept.iter_mut().zip(found).for_each(|(kept, text)| *kept &= text.is_some_and(|text| texts.contains(text)));
        }
        if self.selects_by(Column::Date) {
            let dates = column(Column::Date)?.as_primitive::<TimestampMicrosecondType>().values();
            let (from, to) = (self.from.map_or(i64::MIN, micros), self.to.map_or(i64::MAX, micros));
            let kept = kept.get_or_insert_with(|| vec![true; batch.num_rows()]);
            kept.iter_mut().zip(dates).for_each(|(kept, date)| *kept &= (from..to).contains(date));
        }
        kept.map_or_else(|| Ok(batch.clone()), |kept| filter_record_batch(batch, &BooleanArray::from(kept)))
    }
}

/// What is selected by a column, and the options that do.
fn of_column(column: Column) -> (&'static str, &'static str) {
    match column {
        Column::Ticker => ("tickers", "`--ticker`"),
        Column::Sector => ("sectors", "`--sector`"),
        Column::Period => ("periods", "`--period`"),
        Column::Regime => ("regimes", "`--regime`"),
        _ => ("dates", "`--from` and `--to`"),
    }
}

/// Whether rows are articles, as far as the columns tell: no dataset of signals has these.
pub(crate) fn is_of_news(schema: &Schema, names: &ColumnNames) -> bool {
    let of_articles = [Column::Title, Column::Link, Column::Copy];
    of_articles.into_iter().any(|column| names.find(column, schema).is_some())
}

/// The refusal of a selection by a column that a dataset does not have.
fn without_column(column: Column, is_of_news: bool) -> Error {
    let (what, options) = of_column(column);
    if is_of_news && matches!(column, Column::Period | Column::Regime) {
        let refusal = format!("cannot select {what}: a dataset of news has none");
        return Error::usage(refusal, format!("leave out {options}"));
    }
    let name = column.name();
    let remedy = match column {
        Column::Sector => "with `add = \"sector\"` in `[dataset]`".to_owned(),
        _ => format!("with the column `{name}`"),
    };
    let refusal = format!("cannot select {what}: the dataset has no column `{name}`");
    Error::usage(refusal, format!("leave out {options}, or build the dataset {remedy}"))
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
        more => format!("{shown} and {} more", group_digits(more as u64)),
    }
}
