//! Speed of writing the columns of a dataset, as Parquet compared with the `parquet` crate's `ArrowWriter`, and as CSV
//! compared with the `arrow-csv` crate's `Writer`.
//!
//! Run with `cargo bench -p bellwether-columns`. Each line gives the rows written per second, with one signal per ticker and
//! date, and with fifteen. All write on one core and discard the bytes; Parquet is one row group, with zstd at level 3.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int8Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Schema};
use rayon::{ThreadPool, ThreadPoolBuilder};

fn main() {
    divan::main();
}

const ROWS: usize = 1 << 18;
const DAYS: usize = 1260;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The columns of a dataset with some signals per ticker and date.
fn dataset(signals: usize) -> RecordBatch {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let of_row = |row: usize| (row / signals / DAYS, row / signals % DAYS, row % signals);
    let rows = || (0..ROWS).map(of_row);
    let choice = |keys: Int8Array, texts: &[&str]| -> ArrayRef {
        Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(texts.to_vec()))))
    };
    // On three days in four, the news is the same as on the previous day.
    let scores: Vec<f64> = (0..ROWS / 4 + 1).map(|_| random(20_000) as f64 / 7e4).collect();
    let article = |(ticker, day, _): (usize, usize, usize)| (ticker * DAYS + day) / 4;
    let columns: [(&str, ArrayRef); 8] = [
        ("ticker", Arc::new(rows().map(|(ticker, ..)| Some(format!("T{ticker}"))).collect::<StringArray>())),
        (
            "date",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                rows().map(|(_, day, _)| (18_000 + day as i64) * MICROS_PER_DAY),
            )),
        ),
        (
            "period",
            choice(rows().map(|(.., signal)| Some(signal as i8 / 3)).collect(), &["1d", "5d", "15d", "1m", "6m"]),
        ),
        ("regime", choice(rows().map(|(.., signal)| Some(signal as i8 % 3)).collect(), &["bear", "bull", "neutral"])),
        ("signal", choice((0..ROWS).map(|_| Some(random(2) as i8)).collect(), &["buy", "sell"])),
        (
            "confidence",
            Arc::new((0..ROWS).map(|_| Some((5_000 + random(5_000)) as f64 / 1e4)).collect::<Float64Array>()),
        ),
        ("news_mean_7d", Arc::new(rows().map(|row| Some(scores[article(row)])).collect::<Float64Array>())),
        ("news_count_7d", Arc::new(rows().map(|row| Some(article(row) as i32 % 9)).collect::<Int32Array>())),
    ];
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), name.starts_with("news"));
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.map(|(_, column)| column).to_vec()).expect("equal lengths")
}

fn one_core() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started")
}

mod parquet {
    use std::io;

    use bellwether_columns::{ParquetOptions, ParquetWriter, Rows};
    use divan::Bencher;
    use divan::counter::ItemsCount;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;

    use super::{ROWS, dataset, one_core};

    fn zstd() -> Compression {
        Compression::ZSTD(ZstdLevel::try_new(3).expect("zstd has this level"))
    }

    #[divan::bench(args = [1, 15])]
    fn bellwether(bencher: Bencher<'_, '_>, signals: usize) {
        let (rows, core) = (dataset(signals), one_core());
        let options =
            ParquetOptions { compression: zstd(), uncompressed_below: 0, sorted_by: Vec::new(), metadata: Vec::new() };
        let write = || {
            let mut out =
                ParquetWriter::create(io::sink(), rows.schema(), options.clone()).expect("a sink accepts everything");
            out.write(&[Rows::from(rows.clone())]).expect("a sink accepts everything");
            out.finish().expect("a sink accepts everything");
        };
        bencher.counter(ItemsCount::new(ROWS)).bench_local(|| core.install(write));
    }

    #[divan::bench(args = [1, 15])]
    fn arrow_writer(bencher: Bencher<'_, '_>, signals: usize) {
        let (rows, core) = (dataset(signals), one_core());
        let properties = WriterProperties::builder().set_compression(zstd()).build();
        let write = || {
            let mut out = ArrowWriter::try_new(io::sink(), rows.schema(), Some(properties.clone()))
                .expect("a sink accepts everything");
            out.write(&rows).expect("a sink accepts everything");
            out.close().expect("a sink accepts everything");
        };
        bencher.counter(ItemsCount::new(ROWS)).bench_local(|| core.install(write));
    }
}

mod csv {
    use std::io;

    use arrow::csv::WriterBuilder;
    use bellwether_columns::Rows;
    use bellwether_columns::csv::{Coding, CsvWriter, FormulaGuard};
    use divan::Bencher;
    use divan::counter::ItemsCount;

    use super::{ROWS, dataset, one_core};

    #[divan::bench(args = [1, 15])]
    fn bellwether(bencher: Bencher<'_, '_>, signals: usize) {
        let (rows, core) = (dataset(signals), one_core());
        let write = || {
            let mut out = CsvWriter::create(io::sink(), Coding::Plain, &rows.schema(), FormulaGuard::None)
                .expect("a sink accepts everything");
            out.write(&[Rows::from(rows.clone())]).expect("a sink accepts everything");
            out.finish().expect("a sink accepts everything");
        };
        bencher.counter(ItemsCount::new(ROWS)).bench_local(|| core.install(write));
    }

    #[divan::bench(args = [1, 15])]
    fn arrow_csv(bencher: Bencher<'_, '_>, signals: usize) {
        let (rows, core) = (dataset(signals), one_core());
        let write = || WriterBuilder::new().build(io::sink()).write(&rows).expect("a sink accepts everything");
        bencher.counter(ItemsCount::new(ROWS)).bench_local(|| core.install(write));
    }
}
