//! Files are read back by the `parquet` crate: values, nulls and statistics.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int16Array, Int32Array,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;

use super::{ParquetOptions, ParquetWriter};
use crate::Rows;

fn write(groups: &[RecordBatch], compression: Compression) -> Vec<u8> {
    written_with(
        groups,
        ParquetOptions { compression, uncompressed_below: 0, sorted_by: vec![0], metadata: Vec::new() },
    )
}

fn written_with(groups: &[RecordBatch], options: ParquetOptions) -> Vec<u8> {
    let mut writer = ParquetWriter::create(Vec::new(), groups[0].schema(), options).unwrap();
    groups.iter().for_each(|group| writer.write(&[group.clone().into()]).unwrap());
    writer.finish().unwrap();
    writer.out().clone()
}

fn read(bytes: Vec<u8>) -> (RecordBatch, Arc<ParquetMetaData>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
    let (schema, metadata) = (reader.schema().clone(), reader.metadata().clone());
    let batches: Vec<RecordBatch> = reader.with_batch_size(1000).build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema, &batches).unwrap(), metadata)
}

/// Rows with a column of every type, in runs of up to `longest` rows.
fn rows(count: usize, longest: u64, seed: u64) -> RecordBatch {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut numbers = |below: u64| {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let (number, times) = (random(below), random(longest) + 1);
            numbers.extend(std::iter::repeat_n(number, times as usize));
        }
        numbers.truncate(count);
        numbers
    };
    let texts = ["", "BRK.B", "naïve", "b", "a"];
    let some = |number: &u64| !number.is_multiple_of(5);
    let choice = numbers(5).iter().map(|number| *number as i8).collect::<Int8Array>();
    let may_be_null =
        numbers(40).iter().map(|number| some(number).then_some((number % 5) as i32)).collect::<Int32Array>();
    let reals =
        |numbers: Vec<u64>| numbers.iter().map(|number| Some(*number as f64 / 1e4 - 0.2)).collect::<Float64Array>();
    let gaps = |numbers: Vec<u64>| {
        numbers.iter().map(|number| some(number).then_some(*number as f64 / 7.0)).collect::<Float64Array>()
    };
    let names = || Arc::new(StringArray::from(texts.to_vec()));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(numbers(5).iter().map(|number| Some(texts[*number as usize])).collect::<StringArray>())),
        ("note", Arc::new(numbers(40).iter().map(|number| texts.get(*number as usize)).collect::<StringArray>())),
        ("choice", Arc::new(DictionaryArray::new(choice, names()))),
        ("symbol", Arc::new(DictionaryArray::new(may_be_null, names()))),
        (
            "date",
            Arc::new(
                numbers(3000)
                    .iter()
                    .map(|day| Some(*day as i64 * 86_400_000_000))
                    .collect::<TimestampMicrosecondArray>(),
            ),
        ),
        (
            "minutes",
            Arc::new(
                numbers(9).iter().map(|number| some(number).then_some(*number as i16 * -60)).collect::<Int16Array>(),
            ),
        ),
        ("count", Arc::new(numbers(7).iter().map(|number| Some(*number as i32 - 3)).collect::<Int32Array>())),
        ("confidence", Arc::new(reals(numbers(5000)))),
        ("mean", Arc::new(gaps(numbers(1 << 40)))),
        ("nothing", Arc::new(Float64Array::new_null(count))),
        ("one", Arc::new(Int32Array::from(vec![7; count]))),
        ("flag", Arc::new(numbers(3).iter().map(|number| Some(*number == 0)).collect::<BooleanArray>())),
    ];
    let gaps = ["note", "symbol", "minutes", "mean", "nothing"];
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), gaps.contains(name));
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

/// The same values, whatever their dictionaries.
fn plain(rows: &RecordBatch) -> Vec<ArrayRef> {
    let plain = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values).unwrap(),
        _ => Arc::clone(column),
    };
    rows.columns().iter().map(plain).collect()
}

#[test]
fn every_type_round_trips_in_every_codec() {
    let codecs = [Compression::ZSTD(ZstdLevel::default()), Compression::SNAPPY, Compression::UNCOMPRESSED];
    for (at, (count, longest)) in [(1, 1), (7, 3), (1000, 1), (70_000, 12), (140_000, 9000)].into_iter().enumerate() {
        let groups = [rows(count, longest, 1), rows(count / 2 + 1, longest, 2)];
        let expected = concat_batches(&groups[0].schema(), &groups).unwrap();
        let (found, metadata) = read(write(&groups, codecs[at % 3]));
        assert_eq!(plain(&found), plain(&expected), "{count} {longest}");
        assert_eq!(metadata.num_row_groups(), 2);
    }
}

#[test]
fn a_small_column_is_not_compressed() {
    let (rows, compression) = (rows(2000, 3, 5), Compression::ZSTD(ZstdLevel::default()));
    let options = ParquetOptions { compression, uncompressed_below: 1000, sorted_by: Vec::new(), metadata: Vec::new() };
    let (found, metadata) = read(written_with(std::slice::from_ref(&rows), options));
    assert_eq!(plain(&found), plain(&rows));
    let codec = |name: &str| metadata.row_group(0).column(rows.schema().index_of(name).unwrap()).compression();
    assert_eq!((codec("count"), codec("confidence")), (Compression::UNCOMPRESSED, compression));
}

#[test]
fn the_footer_has_the_minimum_maximum_and_null_count_of_each_column() {
    let rows = rows(5000, 20, 3);
    let (_, metadata) = read(write(std::slice::from_ref(&rows), Compression::UNCOMPRESSED));
    for (index, field) in rows.schema().fields().iter().enumerate() {
        let column = metadata.row_group(0).column(index);
        let nulls = rows.column(index).logical_null_count() as u64;
        let statistics = column.statistics().unwrap();
        assert_eq!(statistics.null_count_opt(), Some(nulls), "{field}");
        match (field.name().as_str(), statistics) {
            ("confidence" | "mean" | "nothing", Statistics::Double(found)) => {
                let values = rows.column(index).as_primitive::<Float64Type>().iter().flatten();
                assert_eq!(found.min_opt().copied(), values.clone().reduce(f64::min), "{field}");
                assert_eq!(found.max_opt().copied(), values.reduce(f64::max), "{field}");
            }
            ("count" | "one", Statistics::Int32(found)) => {
                let values = rows.column(index).as_primitive::<Int32Type>().values();
                assert_eq!((found.min_opt(), found.max_opt()), (values.iter().min(), values.iter().max()), "{field}");
            }
            ("text", Statistics::ByteArray(found)) => {
                assert_eq!(found.min_opt().unwrap().data(), b"");
                assert_eq!(found.max_opt().unwrap().data(), "naïve".as_bytes());
            }
            _ => {}
        }
    }
}

#[test]
fn bounds_cover_both_zeros_and_exclude_nan() {
    let values: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, 0.0]));
    let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Float64, false)]));
    let rows = RecordBatch::try_new(schema, vec![values]).unwrap();
    let (found, metadata) = read(write(std::slice::from_ref(&rows), Compression::UNCOMPRESSED));
    let bits = |rows: &RecordBatch| {
        rows.column(0).as_primitive::<Float64Type>().values().iter().map(|it| it.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(&found), bits(&rows));
    let Some(Statistics::Double(bounds)) = metadata.row_group(0).column(0).statistics() else {
        panic!("no statistics")
    };
    assert_eq!(bounds.min_opt().map(|least| least.to_bits()), Some((-0.0_f64).to_bits()));
    assert_eq!(bounds.max_opt().map(|largest| largest.to_bits()), Some(0.0_f64.to_bits()));
}

#[test]
fn a_column_with_too_many_distinct_values_falls_back_to_plain_pages() {
    let values: ArrayRef =
        Arc::new((0..200_000).map(|number| Some(f64::from(number).sqrt())).collect::<Float64Array>());
    let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Float64, false)]));
    let rows = RecordBatch::try_new(schema, vec![values]).unwrap();
    let (found, metadata) = read(write(std::slice::from_ref(&rows), Compression::UNCOMPRESSED));
    assert_eq!(found.columns(), rows.columns());
    let encodings: Vec<Encoding> = metadata.row_group(0).column(0).encodings().collect();
    assert!(encodings.contains(&Encoding::PLAIN), "{encodings:?}");
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let groups = [rows(20_000, 12, 5), rows(20_000, 12, 5)];
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| write(&groups, Compression::ZSTD(ZstdLevel::default())))
    };
    assert!(bytes(1) == bytes(4));
}

/// The bytes of a row group that arrives in pieces, given where each ends.
fn in_pieces(rows: &RecordBatch, ends: &[usize]) -> Vec<u8> {
    let starts = std::iter::once(&0).chain(ends);
    let pieces: Vec<Rows> = starts.zip(ends).map(|(&from, &to)| rows.slice(from, to - from).into()).collect();
    let options = ParquetOptions {
        compression: Compression::UNCOMPRESSED,
        uncompressed_below: 0,
        sorted_by: vec![0],
        metadata: Vec::new(),
    };
    let mut writer = ParquetWriter::create(Vec::new(), rows.schema(), options).unwrap();
    writer.write(&pieces).unwrap();
    writer.finish().unwrap();
    writer.out().clone()
}

#[test]
fn writing_per_run_or_per_row_does_not_depend_on_the_pieces() {
    // Around the number of runs at which the encoding changes. A piece that starts inside a run seems to start another.
    for runs in 498..=501 {
        let numbers = (0..1000)
            .map(|row| if runs == 501 && row == 999 { -1 } else { (row / 2).min(runs - 1) })
            .collect::<Int32Array>();
        let rows = RecordBatch::try_from_iter([("number", Arc::new(numbers) as ArrayRef)]).unwrap();
        let expected = write(std::slice::from_ref(&rows), Compression::UNCOMPRESSED);
        assert!([500, 501].iter().all(|&cut| in_pieces(&rows, &[cut, 1000]) == expected), "{runs}");
        assert_eq!(read(expected).0, rows);
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_pieces_of_a_row_group() {
    for longest in [1, 12, 9000] {
        let rows = rows(150_000, longest, 9);
        let expected = write(std::slice::from_ref(&rows), Compression::UNCOMPRESSED);
        for ends in [&[150_000][..], &[1, 2, 65_536, 65_537, 150_000], &[63, 64, 70_000, 149_999, 150_000]] {
            assert!(in_pieces(&rows, ends) == expected, "{longest} {ends:?}");
        }
    }
}
