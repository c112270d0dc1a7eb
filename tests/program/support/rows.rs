//! The rows of a Parquet file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use bellwether::archive::Archive;
use bellwether::archive::View;
use bellwether::plan::Vintage;
use bellwether::tables::Table;
use chrono::{DateTime, Utc};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::program::Place;

/// The names of the sealed folders of a service's archive, in the order of their seals: names of one second are in none.
pub(crate) fn sealed_folders(archive: &Path) -> Vec<String> {
    let entries = fs::read_dir(archive).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let sealed = entries.filter(|path| path.join("run.json").exists()).map(|path| {
        let record: Value =
            serde_json::from_slice(&fs::read(path.join("run.json")).unwrap_or_default()).unwrap_or_default();
        let sealed_at = record["sealed_at"].as_str().and_then(|instant| instant.parse::<DateTime<Utc>>().ok());
        (sealed_at, path.file_name().expect("a name").to_string_lossy().into_owned())
    });
    let sealed: BTreeSet<_> = sealed.collect();
    sealed.into_iter().map(|(_, name)| name).collect()
}

/// The folder of the only sealed run in a place.
#[track_caller]
pub(crate) fn sealed_run(place: &Place) -> PathBuf {
    let folders = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let runs: Vec<PathBuf> = folders(place.file("output/archive"))
        .into_iter()
        .flat_map(folders)
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run=")))
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

pub(crate) fn read(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> =
        builder.build().expect("a reader").map(|batch| batch.expect("rows that can be read")).collect();
    concat_batches(&schema, &batches).expect("one schema")
}

/// The state of a table as of an instant.
pub(crate) fn known_rows(archive: &Path, table: Table, as_of: DateTime<Utc>) -> RecordBatch {
    let view = View::of(Archive::open(archive).expect("an archive"), as_of);
    let batches: Vec<RecordBatch> =
        view.cells(table, Vintage::Latest).expect("its files").map(|batch| batch.expect("cells")).collect();
    concat_batches(&table.known_schema(), &batches).expect("one schema")
}

/// A column of any type as text; null as empty text.
pub(crate) fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).unwrap_or_else(|| panic!("no column {column}"));
    // The conversion to text does not know zone names, but all instants are in UTC.
    let (column, zone) = match column.data_type() {
        DataType::Timestamp(_, Some(_)) => {
            let instants = column.as_primitive::<TimestampMicrosecondType>().clone();
            (Arc::new(instants.with_timezone_opt(None::<String>)) as ArrayRef, "Z")
        }
        _ => (Arc::clone(column), ""),
    };
    let texts = cast(&column, &DataType::Utf8).expect("every type has a text");
    texts.as_string::<i32>().iter().map(|text| text.map(|text| format!("{text}{zone}"))).collect()
}

/// A column as numbers.
pub(crate) fn numbers(rows: &RecordBatch, column: &str) -> impl Iterator<Item = Option<f64>> {
    texts(rows, column).into_iter().map(|text| text.map(|text| text.parse().expect("a number")))
}

/// The rows of some columns, null as empty text.
pub(crate) fn columns<const N: usize>(rows: &RecordBatch, names: [&str; N]) -> Vec<[String; N]> {
    let columns = names.map(|name| texts(rows, name));
    (0..rows.num_rows()).map(|row| columns.each_ref().map(|column| column[row].clone().unwrap_or_default())).collect()
}

/// The distinct texts of a column, sorted.
pub(crate) fn distinct(batch: &RecordBatch, column: &str) -> Vec<String> {
    let mut texts: Vec<String> = texts(batch, column).into_iter().flatten().collect();
    texts.sort();
    texts.dedup();
    texts
}
