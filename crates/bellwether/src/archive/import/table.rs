//! Rows of a CSV or Parquet file as the body of an answer, in the shape of the interface.
//!
//! The columns are those of datasets. Whatever their types, values are read as text and written as the service would, so
//! that one decoder says what is valid.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use serde_json::{Map, Number, Value, json};

use crate::disk::table_file;
use crate::error::{Error, ErrorKind, Result};
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
    let reader = table_file::open(path)?;
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
        let batch = batch.map_err(|error| table_file::unreadable(path, error))?;
        let mut columns = BTreeMap::new();
        for name in own.iter().copied().chain(["ticker", "period", "regime"]) {
            let Some(column) = batch.column_by_name(name) else { continue };
            let strictly = CastOptions { safe: false, ..CastOptions::default() };
            let texts = cast_with_options(column, &DataType::Utf8, &strictly);
            columns.insert(
                name,
                texts.map_err(|error| table_file::unreadable(path, format!("column `{name}`: {error}")))?,
            );
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
