//! Rows of a CSV or Parquet file as the body of an answer, in the shape of the interface.
//!
//! The columns are those of datasets. Whatever their types, values are read as text and written as the service would, so
//! that one decoder says what is valid.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatchReader};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Number, Value, json};

use crate::disk::file::{self, FileError};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::process::cancel::{self, CancellationToken};
use crate::text::escape::escape;
use crate::text::human::group_digits;
use crate::text::problem::choices;

/// The body of the answer that a table stands for.
pub(super) fn body(path: &Path, request: &Request, stop: &CancellationToken) -> Result<Vec<u8>> {
    let shown = path.display();
    let own: &[&str] = match request.endpoint {
        Endpoint::NewsArticles => &["date", "title", "link", "score"],
        Endpoint::SignalsHistoryAll | Endpoint::SignalsHistory => &["date", "signal", "confidence"],
        endpoint => {
            let what = format!("`{shown}`: rows of a table cannot stand for an answer of `{endpoint}`");
            let hint =
                "import its answers as JSON; tables can stand for articles, and for histories of a sector or ticker";
            return Err(Error::usage(what, hint));
        }
    };
    // A table may have columns for what the request names. Each row has the same there.
    let ticker = request.ticker.as_ref().map(ToString::to_string);
    let (period, regime) = (request.period.map(|period| period.to_string()), request.regime.map(|it| it.to_string()));
    let named = [("ticker", &ticker), ("period", &period), ("regime", &regime)];
    let refuse = |what: &str| Error::new(ErrorKind::Data, format!("`{shown}`{what}"));
    let no_rows = || refuse(" has no rows").with_hint("leave it out: a table without rows claims nothing");
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let reader = if is_csv { csv(path)? } else { parquet(path)? };
    let schema = reader.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if names.is_empty() {
        return Err(no_rows());
    }
    let needed = own.iter().chain(ticker.is_none().then_some(&"ticker"));
    if let Some(missing) = needed.into_iter().find(|name| !names.contains(name)) {
        let has = choices(names.into_iter().take(20));
        return Err(refuse(&format!(" has no column `{missing}`, it has {has}"))
            .with_hint("give the columns the names that they have in datasets"));
    }
    let (mut count, mut by_ticker) = (0, BTreeMap::<String, Vec<Value>>::new());
    for batch in reader {
        cancel::check(stop)?;
        let batch = batch.map_err(|error| unreadable(path, error))?;
        let mut columns = BTreeMap::new();
        for name in own.iter().copied().chain(["ticker", "period", "regime"]) {
            let Some(column) = batch.column_by_name(name) else { continue };
            let strictly = CastOptions { safe: false, ..CastOptions::default() };
            let texts = cast_with_options(column, &DataType::Utf8, &strictly);
            columns.insert(name, texts.map_err(|error| unreadable(path, format!("column `{name}`: {error}")))?);
        }
        for row in 0..batch.num_rows() {
            count += 1;
            let cell = |name: &str| {
                let column = columns.get(name)?.as_string::<i32>();
                column.is_valid(row).then(|| column.value(row).to_owned())
            };
            for (name, asked) in named {
                let other = cell(name).filter(|other| !other.is_empty() && Some(other) != asked.as_ref());
                if let (Some(asked), Some(other)) = (asked, other) {
                    let (row, other) = (group_digits(count), escape(&other));
                    let what = format!(", row {row}: its {name} is `{other}`, and the request asks for `{asked}`");
                    return Err(refuse(&what));
                }
            }
            let record = own.iter().map(|name| ((*name).to_owned(), value(name, cell(name), is_csv)));
            let ticker = ticker.clone().or_else(|| cell("ticker")).unwrap_or_default();
            by_ticker.entry(ticker).or_default().push(Value::Object(record.collect()));
        }
    }
    let mut answer = Map::new();
    for (ticker, mut records) in by_ticker {
        records.sort_by(|one, next| next["date"].as_str().cmp(&one["date"].as_str()));
        let history = json!({"ticker": ticker, "period": period, "regime": regime, "predictions": records});
        let is_news = request.endpoint == Endpoint::NewsArticles;
        answer.insert(ticker, if is_news { Value::Array(records) } else { history });
    }
    let body = match request.endpoint.is_of_one_ticker() {
        true => answer.into_iter().next().map(|(_, record)| record),
        false => (!answer.is_empty()).then_some(Value::Object(answer)),
    };
    Ok(body.ok_or_else(no_rows)?.to_string().into_bytes())
}

/// A value as the service writes it.
fn value(name: &str, text: Option<String>, is_csv: bool) -> Value {
    match name {
        // A file of CSV has no other way to write an empty text.
        "title" | "link" => text.or_else(|| is_csv.then(String::new)).into(),
        "confidence" | "score" => text.filter(|text| !text.is_empty()).map_or(Value::Null, |text| {
            // Numbers that the decoder is to reject stay as they are.
            text.parse().ok().and_then(Number::from_f64).map_or(Value::String(text), Value::Number)
        }),
        _ => text.filter(|text| !text.is_empty()).into(),
    }
}

fn parquet(path: &Path) -> Result<Box<dyn RecordBatchReader>> {
    let file = file::open(path)?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(ParquetRecordBatchReaderBuilder::build);
    Ok(Box::new(reader.map_err(|error| unreadable(path, error))?))
}

fn csv(path: &Path) -> Result<Box<dyn RecordBatchReader>> {
    let mut bytes = Vec::new();
    file::open(path)?.read_to_end(&mut bytes).map_err(FileError::read(path))?;
    if ends_in_quotes(&bytes) {
        return Err(unreadable(path, "a quoted value is open at its end: it was cut off"));
    }
    let header = Format::default().with_header(true).infer_schema(&bytes[..], Some(0));
    let (header, _) = header.map_err(|error| unreadable(path, error))?;
    let texts = header.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
    let builder = ReaderBuilder::new(Arc::new(Schema::new(Vec::from_iter(texts)))).with_header(true);
    Ok(Box::new(builder.build(Cursor::new(bytes)).map_err(|error| unreadable(path, error))?))
}

fn unreadable(path: &Path, source: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Data, format!("cannot read `{}` as a table", path.display())).with_source(source)
}

/// Whether CSV ends inside of a quoted value: what reads it takes all that follows a lost quote for one.
fn ends_in_quotes(bytes: &[u8]) -> bool {
    let (mut is_quoted, mut begins) = (false, true);
    for byte in bytes {
        match (is_quoted, byte) {
            // A doubled quote ends a value and begins another.
            (true, b'"') => (is_quoted, begins) = (false, true),
            (true, _) => {}
            (false, b'"') => (is_quoted, begins) = (begins, false),
            (false, byte) => begins = matches!(byte, b',' | b'\n' | b'\r'),
        }
    }
    is_quoted
}

#[cfg(test)]
mod tests {
    use super::ends_in_quotes;

    #[test]
    fn a_value_that_is_cut_off_is_told_from_one_with_a_quote_in_it() {
        let ends_in_quotes = |text: &str| ends_in_quotes(text.as_bytes());
        let whole =
            ["", "a,b\n1,\"2\"\n", "a\n\"1,\"\"2\"\"\"", "a\n5\" pipe\n", "a\n\"\"", "a\n\"1\n2\"\n", "a,\"\",b"];
        assert!(whole.iter().all(|text| !ends_in_quotes(text)), "{whole:?}");
        for cut in ["a\n\"", "a,b\n1,\"2", "a\n\"1\"\"", "a\n\"5\"\" pipe\nb\n"] {
            assert!(ends_in_quotes(cut), "{cut:?}");
        }
    }
}
