//! The digest against an independent implementation of its description, written in Python with the package `blake3`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use blake3::{Hash, Hasher};
use tempfile::tempdir;

use super::{plan, publish, rows, signals};
use crate::disk::digest::hex;
use crate::export::content::{Content, of_matrices};
use crate::plan::{Codec, Column, Format};
use crate::tables::{date, instant, symbol};

fn small() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("ticker", DataType::Utf8, false),
        Field::new("date", date(), false),
        Field::new("seen", instant(), false),
        Field::new("regime", symbol(), true),
        Field::new("score", DataType::Float64, true),
        Field::new("count", DataType::Int32, false),
        Field::new("flag", DataType::Boolean, true),
    ]);
    let regimes: DictionaryArray<Int32Type> = vec![Some("bear"), None, Some(""), Some("bear")].into_iter().collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["A", "BRK.B", "\u{e9}", "Z"])),
        Arc::new(TimestampMicrosecondArray::from(vec![0, 1, -1, 1_795_132_800_000_000])),
        Arc::new(TimestampMicrosecondArray::from(vec![7, 8, 9, 10]).with_timezone("UTC")),
        Arc::new(regimes),
        Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-0.0), Some(1e300)])),
        Arc::new(Int32Array::from(vec![1, -2, 3, i32::MAX])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, None])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn digest(batches: &[RecordBatch]) -> String {
    let mut content = Content::new(batches[0].schema_ref());
    batches.iter().for_each(|batch| content.update(&[batch.clone().into()]).unwrap());
    hex(&content.digest())
}

#[test]
fn the_digest_matches_a_python_implementation_of_its_description() {
    assert_eq!(digest(&[small()]), "362e3fe68bb412a7adfa7eedd7885c85a1807d38e3d4ca6fe6cfa1a0d77922a9");
    let matrices = [("5d-bear/confidence", Hash::from([1; 32])), ("15d-bear/confidence", Hash::from([2; 32]))];
    assert_eq!(
        hex(&of_matrices(matrices.into_iter())),
        "1cce85e0119ef6324b6d45006b058f5109efa01fa9f18a63afedf5d4fc24beef"
    );
}

#[test]
fn the_digest_does_not_depend_on_batches_or_dictionaries() {
    let batch = small();
    let expected = digest(std::slice::from_ref(&batch));
    assert_eq!(digest(&[batch.slice(0, 1), batch.slice(1, 2), batch.slice(3, 1)]), expected);
    assert_eq!(digest(&[batch.slice(0, 0), batch.clone()]), expected);
    let mut columns = batch.columns().to_vec();
    columns[3] = cast(&columns[3], &DataType::Utf8).unwrap();
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[3] = Field::new("regime", DataType::Utf8, true);
    assert_eq!(digest(&[RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()]), expected);
}

#[test]
fn any_difference_changes_the_digest() {
    let batch = small();
    let mut seen = vec![digest(std::slice::from_ref(&batch))];
    seen.push(digest(&[batch.slice(1, 3), batch.slice(0, 1)]));
    seen.push(digest(&[batch.slice(0, 3)]));
    let renamed = |index: usize, field: Field| {
        let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        fields[index] = field;
        digest(&[RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).unwrap()])
    };
    seen.push(renamed(0, Field::new("symbol", DataType::Utf8, false)));
    seen.push(renamed(0, Field::new("ticker", DataType::Utf8, true)));
    let moved = |flags: Vec<Option<bool>>| {
        let mut columns = batch.columns().to_vec();
        columns[6] = Arc::new(BooleanArray::from(flags));
        digest(&[RecordBatch::try_new(batch.schema(), columns).unwrap()])
    };
    seen.push(moved(vec![Some(true), None, Some(false), None]));
    seen.push(moved(vec![Some(true), Some(true), None, None]));
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn the_digest_does_not_depend_on_how_the_files_are_written() {
    let batch = rows(&signals(&["AAPL", "XOM"], 300));
    let content = |formats: &[Format], codec, row_group_rows, partition_by: &[Column]| {
        let folder = tempdir().unwrap();
        let mut plan = plan(formats);
        plan.files.codec = codec;
        plan.files.row_group_rows = row_group_rows;
        plan.files.partition_by = partition_by.to_vec();
        publish(folder.path(), &plan, std::slice::from_ref(&batch)).unwrap().content
    };
    let expected = content(&[Format::Parquet], Codec::Zstd(3), 1000, &[]);
    assert_eq!(content(&[Format::Csv, Format::Arrow], Codec::Snappy, 7000, &[]), expected);
    assert_eq!(content(&[Format::Parquet], Codec::None, 1500, &[Column::Ticker]), expected);
}

/// The digest of a column's runs by the description, row by row, given the bytes of its values and the bytes after the
/// runs.
fn digest_of_runs(values: &[Option<Vec<u8>>], behind: &[u8]) -> Hash {
    let mut bytes = Vec::new();
    for run in values.chunk_by(|one, other| one == other) {
        let mut head = run.len() * 2 + usize::from(run[0].is_some());
        while head >= 0x80 {
            bytes.push(head as u8 | 0x80);
            head >>= 7;
        }
        bytes.push(head as u8);
        bytes.extend(run[0].iter().flatten());
    }
    bytes.extend(behind);
    blake3::hash(&bytes)
}

/// The digest of a column of texts.
fn digest_of_texts(values: &[Option<&str>]) -> Hash {
    let mut texts: Vec<&str> = Vec::new();
    values.iter().flatten().for_each(|text| texts.extend((!texts.contains(text)).then_some(text)));
    let number = |text: &str| vec![texts.iter().position(|other| *other == text).unwrap() as u8];
    let bytes = |text: &&str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let behind = if texts.is_empty() { Vec::new() } else { [vec![0], texts.iter().flat_map(bytes).collect()].concat() };
    digest_of_runs(&values.iter().map(|text| text.map(number)).collect::<Vec<_>>(), &behind)
}

#[test]
fn the_digest_matches_runs_found_row_by_row() {
    let mut state = 11_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let texts = ["", "a", "a", "BRK.B", "naïve"];
    let text = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    for (rows, longest) in [(1, 1), (500, 1), (9000, 3), (5000, 400)] {
        let mut numbers = || {
            let mut numbers = Vec::new();
            while numbers.len() < rows {
                let number = random(6);
                numbers.extend(std::iter::repeat_n((number < 5).then_some(number), random(longest) + 1));
            }
            numbers.truncate(rows);
            numbers
        };
        let (names, keys, scores, counts, flags) = (numbers(), numbers(), numbers(), numbers(), numbers());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(names.iter().map(|number| number.map(|it| texts[it])).collect::<StringArray>()),
            Arc::new(DictionaryArray::new(
                keys.iter().map(|number| number.map(|it| it as i32)).collect::<Int32Array>(),
                Arc::new(StringArray::from(texts.to_vec())),
            )),
            Arc::new(scores.iter().map(|number| number.map(|it| it as f64 - 2.0)).collect::<Float64Array>()),
            Arc::new(counts.iter().map(|number| number.map(|it| it as i32)).collect::<Int32Array>()),
            Arc::new(flags.iter().map(|number| number.map(|it| it > 2)).collect::<BooleanArray>()),
        ];
        let values = |numbers: &[Option<usize>], bytes: &dyn Fn(usize) -> Vec<u8>| {
            digest_of_runs(&numbers.iter().map(|number| number.map(bytes)).collect::<Vec<_>>(), &[])
        };
        let named = |numbers: &[Option<usize>]| {
            digest_of_texts(&numbers.iter().map(|number| number.map(|it| texts[it])).collect::<Vec<_>>())
        };
        let expected = [
            ("name", "text", named(&names)),
            ("choice", "text", named(&keys)),
            ("score", "64-bit float", values(&scores, &|it| (it as f64 - 2.0).to_le_bytes().to_vec())),
            ("count", "32-bit integer", values(&counts, &|it| (it as i32).to_le_bytes().to_vec())),
            ("flag", "true or false", values(&flags, &|it| vec![u8::from(it > 2)])),
        ];
        let mut hasher = Hasher::new();
        for (name, of_type, runs) in &expected {
            hasher.update(&[&text(name)[..], &text(of_type), &[1], runs.as_bytes()].concat());
        }
        let expected_digest = hex(&hasher.finalize());
        let fields = expected.iter().zip(&columns);
        let fields = fields.map(|((name, _, _), column)| Field::new(*name, column.data_type().clone(), true));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap();
        for length in [1, 7, 64, 1000, rows] {
            let pieces = (0..rows).step_by(length).map(|from| batch.slice(from, length.min(rows - from)));
            assert_eq!(digest(&pieces.collect::<Vec<_>>()), expected_digest, "{rows} {longest} {length}");
        }
    }
}
