//! Rows of a CSV or Parquet file as the bodies of answers, in the shapes of the interface.
//!
//! The rows of one instant are one answer. Whatever the types of the columns, values are read as text and written as the
//! service would, so that one decoder says what is valid.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value, json};

use super::error::ImportError;
use crate::disk::file::FileError;
use crate::error::{Reason, Result};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::process::cancel::{self, CancellationToken};
use crate::text::escape::escape;
use crate::text::problem::suggestion;
use crate::time;

/// The columns that a table may have for an answer, by the interface's own names.
const COLUMNS: [&str; 9] = ["ticker", "period", "regime", "date", "signal", "confidence", "title", "link", "score"];

/// What the columns of a file are called, by the interface's own names.
#[derive(Clone, Debug, Default)]
pub struct ColumnMapping(BTreeMap<String, String>);

impl ColumnMapping {
    /// A mapping of some columns.
    pub fn of(columns: impl IntoIterator<Item = ColumnName>) -> Self {
        Self(columns.into_iter().map(|ColumnName { own, name }| (own, name)).collect())
    }

    fn name<'a>(&'a self, own: &'a str) -> &'a str {
        self.0.get(own).map_or(own, String::as_str)
    }
}

/// What a column is called: `signal=side`.
#[derive(Clone, Debug)]
pub struct ColumnName {
    own: String,
    name: String,
}

impl FromStr for ColumnName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (own, name) = text.split_once('=').ok_or("use `OWN=NAME`, such as `signal=side`")?;
        if !COLUMNS.contains(&own) {
            return Err(format!("no column `{own}`; {}", suggestion(own, &COLUMNS, "the columns are")));
        }
        Ok(Self { own: own.to_owned(), name: name.to_owned() })
    }
}

/// The body of an answer, and when it was observed if the rows say so.
pub(super) type TableAnswer = (Option<DateTime<Utc>>, Vec<u8>);

/// A table that stands for answers to a request.
pub(super) struct Table<'a> {
    pub(super) path: &'a Path,
    pub(super) request: &'a Request,
    pub(super) columns: &'a ColumnMapping,
    /// The column with the instant at which each row was observed.
    pub(super) observed: Option<&'a str>,
    pub(super) stop: &'a CancellationToken,
}

/// A row: its number in the file, and its values in the order of the wanted columns.
type Row = (u64, Vec<Option<String>>);

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

impl Table<'_> {
    /// The answers that the rows stand for, in the order of their instants.
    pub(super) fn answers(&self) -> Result<Vec<TableAnswer>> {
        let own = self.own_columns()?;
        let names: Vec<&str> = own.iter().map(|own| self.columns.name(own)).chain(self.observed).collect();
        let mut by_instant: BTreeMap<Option<DateTime<Utc>>, Vec<Row>> = BTreeMap::new();
        for (number, mut values) in self.rows(&names)? {
            let at = match self.observed {
                Some(column) => {
                    let text = values.pop().flatten().unwrap_or_default();
                    let at = time::instant(&text);
                    let what = |wrong| format!("`{}` in `{column}`: {wrong}", escape(&text));
                    Some(at.map_err(|wrong| self.row(number, what(wrong)))?)
                }
                None => None,
            };
            by_instant.entry(at).or_default().push((number, values));
        }
        if by_instant.is_empty() {
            return Err(self.no_rows().into());
        }
        let answer = |(at, rows): (Option<DateTime<Utc>>, Vec<Row>)| Ok((at, self.body(&own, rows)?));
        by_instant.into_iter().map(answer).collect()
    }

    /// The columns that the operation's records need, and the request does not name.
    fn own_columns(&self) -> Result<Vec<&'static str>> {
        let Request { endpoint, ticker, period, regime, .. } = self.request;
        let names = |is_named: bool, column| (!is_named).then_some(column);
        match endpoint {
            Endpoint::SignalsHistoryAll
            | Endpoint::SignalsHistoryBatchedAll
            | Endpoint::SignalsHistoryBatched
            | Endpoint::SignalsHistory => {
                let key = [
                    names(ticker.is_some(), "ticker"),
                    names(period.is_some(), "period"),
                    names(regime.is_some(), "regime"),
                ];
                Ok(key.into_iter().flatten().chain(["date", "signal", "confidence"]).collect())
            }
            Endpoint::NewsArticles => Ok(vec!["date", "title", "link", "score"]),
            _ => Err(ImportError::NoTable { path: self.path.to_owned(), endpoint: *endpoint }.into()),
        }
    }

    /// What the request names, by the columns that a table may have as well.
    fn key_of_request(&self) -> Vec<(&'static str, String)> {
        let Request { ticker, period, regime, .. } = self.request;
        let named = [
            ("ticker", ticker.as_ref().map(ToString::to_string)),
            ("period", period.map(|period| period.to_string())),
            ("regime", regime.map(|regime| regime.to_string())),
        ];
        named.into_iter().filter_map(|(column, value)| Some((column, value?))).collect()
    }

    fn body(&self, own: &[&str], rows: Vec<Row>) -> Result<Vec<u8>> {
        let index_of = |column: &str| own.iter().position(|name| *name == column);
        let text = |row: &Row, column: &str| {
            index_of(column).and_then(|index| row.1[index].clone()).filter(|text| !text.is_empty())
        };
        let number = |row: &Row, column: &str| match text(row, column) {
            // Numbers that the decoder is to reject stay as they are.
            Some(text) => text
                .parse::<f64>()
                .ok()
                .and_then(serde_json::Number::from_f64)
                .map_or(Value::String(text), Value::Number),
            None => Value::Null,
        };
        // A file of CSV has no other way to write an empty text.
        let words = |row: &Row, column: &str| {
            let value = index_of(column).and_then(|index| row.1[index].clone());
            value.or_else(|| (!self.is_parquet()).then(String::new))
        };
        let newest_first = |rows: &mut Vec<Row>| rows.sort_by_key(|row| Reverse(text(row, "date")));
        let mut rows = rows;
        let value = if self.request.endpoint == Endpoint::NewsArticles {
            newest_first(&mut rows);
            let article = |row: &Row| {
                json!({"date": text(row, "date"), "title": words(row, "title"), "link": words(row, "link"),
                       "score": number(row, "score")})
            };
            Value::Array(rows.iter().map(article).collect())
        } else {
            let asked = |named: Option<String>, row: &Row, column: &str| {
                named.or_else(|| text(row, column)).unwrap_or_default()
            };
            let Request { ticker, period, regime, .. } = self.request;
            let mut histories: BTreeMap<String, (String, String, Vec<Row>)> = BTreeMap::new();
            for row in rows {
                let ticker = asked(ticker.as_ref().map(ToString::to_string), &row, "ticker");
                let period = asked(period.map(|period| period.to_string()), &row, "period");
                let regime = asked(regime.map(|regime| regime.to_string()), &row, "regime");
                let history =
                    histories.entry(ticker.clone()).or_insert_with(|| (period.clone(), regime.clone(), Vec::new()));
                if (&history.0, &history.1) != (&period, &regime) {
                    let what = format!("`{}` has another period or regime before: an answer has one", escape(&ticker));
                    return Err(self.row(row.0, what));
                }
                history.2.push(row);
            }
            let history = |(ticker, (period, regime, mut rows)): (String, (String, String, Vec<Row>))| {
                newest_first(&mut rows);
                let entry = |row: &Row| json!({"date": text(row, "date"), "signal": text(row, "signal"), "confidence": number(row, "confidence")});
                let entries: Vec<Value> = rows.iter().map(entry).collect();
                let history = json!({"ticker": ticker, "period": period, "regime": regime, "predictions": entries});
                (ticker, history)
            };
            let mut histories: Map<String, Value> = histories.into_iter().map(history).collect();
            match self.request.endpoint.is_of_one_ticker() {
                true => histories.values_mut().next().map(Value::take).unwrap_or_default(),
                false => Value::Object(histories),
            }
        };
        Ok(serde_json::to_vec(&value).expect("it is text and numbers"))
    }

    /// The rows, with some columns as text. If the table has what the request names, each row must have the same.
    fn rows(&self, names: &[&str]) -> Result<Vec<Row>> {
        let named = self.key_of_request();
        let file = File::open(self.path).map_err(FileError::read(self.path))?;
        let batches = if self.is_parquet() { self.parquet(file, names)? } else { self.csv(file, names)? };
        let mut rows = Vec::new();
        for batch in batches {
            cancel::check(self.stop)?;
            let batch = batch.map_err(|error| self.unreadable(error))?;
            let texts = names
                .iter()
                .map(|name| self.text_of(name, batch.column_by_name(name).expect("the columns that were asked for")));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            let keys = named.iter().filter_map(|(own, expected)| {
                let name = self.columns.name(own);
                let column = batch.column_by_name(name)?;
                Some(self.text_of(name, column).map(|column| (*own, expected, column)))
            });
            let keys = keys.collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                let value = |column: &Arc<dyn Array>| {
                    let column = column.as_string::<i32>();
                    column.is_valid(row).then(|| column.value(row).to_owned())
                };
                for (own, expected, column) in &keys {
                    if let Some(other) = value(column).filter(|other| !other.is_empty() && other != *expected) {
                        let what = format!("its {own} is `{}`, and the request asks for `{expected}`", escape(&other));
                        return Err(self.row(rows.len() as u64 + 1, what));
                    }
                }
                rows.push((rows.len() as u64 + 1, texts.iter().map(value).collect()));
            }
        }
        Ok(rows)
    }

    fn is_parquet(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "parquet")
    }

    /// A column as text; an error if a value cannot be written so.
    fn text_of(&self, name: &str, column: &Arc<dyn Array>) -> Result<Arc<dyn Array>> {
        let strictly = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, &DataType::Utf8, &strictly)
            .map_err(|error| self.unreadable(format!("column `{}`: {error}", escape(name))))
    }

    fn parquet(&self, file: File, wanted: &[&str]) -> Result<Batches> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| self.unreadable(error))?;
        let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns = ProjectionMask::roots(builder.parquet_schema(), self.indices(&names, wanted)?);
        let reader = builder.with_projection(columns).build().map_err(|error| self.unreadable(error))?;
        Ok(Box::new(reader))
    }

    fn csv(&self, mut file: File, wanted: &[&str]) -> Result<Batches> {
        let header = Format::default().with_header(true).infer_schema(&mut file, Some(0));
        let (header, _) = header.map_err(|error| self.unreadable(error))?;
        let failed = FileError::read(self.path);
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        if ends_in_quotes(BufReader::new(&mut file)).map_err(failed)? {
            return Err(self.unreadable("a quoted value is open at its end: it was cut off"));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let names: Vec<String> = header.fields().iter().map(|field| field.name().clone()).collect();
        let indices = self.indices(&names, wanted)?;
        let texts: Vec<Field> = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
        let reader = ReaderBuilder::new(Arc::new(Schema::new(texts))).with_header(true).with_projection(indices);
        Ok(Box::new(reader.build(file).map_err(|error| self.unreadable(error))?))
    }

    /// The indices of some columns, and of those with what the request names.
    fn indices(&self, names: &[String], wanted: &[&str]) -> Result<Vec<usize>, ImportError> {
        if names.is_empty() {
            return Err(self.no_rows());
        }
        let index_of = |column: &&str| {
            names.iter().position(|name| name == column).ok_or_else(|| ImportError::NoColumn {
                path: self.path.to_owned(),
                column: (*column).to_owned(),
                columns: names.iter().take(20).map(|name| format!("`{}`", escape(name))).collect(),
            })
        };
        let named = self.key_of_request();
        let is_named = |name: &String| named.iter().any(|(own, _)| self.columns.name(own) == name);
        let mut indices = wanted.iter().map(index_of).collect::<Result<Vec<usize>, _>>()?;
        let keys: Vec<usize> = (0..names.len()).filter(|index| is_named(&names[*index])).collect();
        indices.extend(keys.into_iter().filter(|index| !wanted.contains(&names[*index].as_str())));
        Ok(indices)
    }

    fn no_rows(&self) -> ImportError {
        ImportError::NoRows { path: self.path.to_owned() }
    }

    fn row(&self, row: u64, what: String) -> crate::error::Error {
        ImportError::Row { path: self.path.to_owned(), row, what }.into()
    }

    fn unreadable(&self, source: impl Into<Reason>) -> crate::error::Error {
        ImportError::Table { path: self.path.to_owned(), source: source.into() }.into()
    }
}

/// Whether a file of CSV ends inside of a quoted value: what reads it takes all that follows a lost quote for one.
fn ends_in_quotes(file: impl BufRead) -> io::Result<bool> {
    let (mut is_quoted, mut begins) = (false, true);
    for byte in file.bytes() {
        match (is_quoted, byte?) {
            // A doubled quote ends a value and begins another.
            (true, b'"') => (is_quoted, begins) = (false, true),
            (true, _) => {}
            (false, b'"') => (is_quoted, begins) = (begins, false),
            (false, byte) => begins = matches!(byte, b',' | b'\n' | b'\r'),
        }
    }
    Ok(is_quoted)
}

#[cfg(test)]
mod tests {
    use super::ends_in_quotes;

    #[test]
    fn a_value_that_is_cut_off_is_told_from_one_with_a_quote_in_it() {
        let ends_in_quotes = |text: &str| ends_in_quotes(text.as_bytes()).unwrap();
        let whole =
            ["", "a,b\n1,\"2\"\n", "a\n\"1,\"\"2\"\"\"", "a\n5\" pipe\n", "a\n\"\"", "a\n\"1\n2\"\n", "a,\"\",b"];
        assert!(whole.iter().all(|text| !ends_in_quotes(text)), "{whole:?}");
        for cut in ["a\n\"", "a,b\n1,\"2", "a\n\"1\"\"", "a\n\"5\"\" pipe\nb\n"] {
            assert!(ends_in_quotes(cut), "{cut:?}");
        }
    }
}
