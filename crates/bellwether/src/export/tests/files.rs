use std::fs::{self, File};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::FileReader;
use parquet::basic::Compression;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use tempfile::tempdir;

use super::{moment, parquet_rows, plan, provenance, publish, publish_as, record, rows, schema, signals};
use crate::disk::file::{FileRecord, TargetFile, WhenExists};
use crate::export::{Dataset, Destination, Provenance, Publication, RowEncoding, RowOutput};
use crate::plan::{Codec, Format};
use crate::process::cancel::CancellationToken;

const ALL: [Format; 5] = [Format::Parquet, Format::Csv, Format::CsvGz, Format::CsvZst, Format::Arrow];

fn parquet_file(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

#[test]
fn parquet_metadata_has_the_schema_the_sort_order_and_the_origin() {
    let folder = tempdir().unwrap();
    let dataset = publish(folder.path(), &plan(&ALL), &[rows(&signals(&["AAPL", "XOM"], 5))]).unwrap();
    let reader = parquet_file(&dataset.path.join("demo.parquet"));
    let metadata = reader.metadata();
    let file = metadata.file_metadata();
    assert_eq!(file.created_by(), Some(concat!("bellwether ", env!("CARGO_PKG_VERSION"))));
    let pairs = file.key_value_metadata().unwrap();
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value("bellwether.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(value("bellwether.dataset"), Some("demo"));
    assert_eq!(value("bellwether.definition"), Some("the = \"definition\"\n"));
    // Build times and runs are only in `dataset.json`.
    assert_eq!((value("bellwether.as_of"), value("bellwether.runs")), (None, None));
    let group = metadata.row_group(0);
    let sorting: Vec<i32> = group.sorting_columns().unwrap().iter().map(|column| column.column_idx).collect();
    assert_eq!(sorting, [0, 1, 2, 3]);
    let statistics = group.column(0).statistics().unwrap();
    assert_eq!(statistics.min_bytes_opt(), Some(&b"AAPL"[..]));
    assert_eq!(statistics.max_bytes_opt(), Some(&b"XOM"[..]));
}

#[test]
fn the_plan_sets_the_codec_and_the_row_groups() {
    let batch = rows(&signals(&["AAPL", "XOM"], 300));
    let codecs = [
        (Codec::Zstd(1), Compression::ZSTD(Default::default())),
        (Codec::Zstd(22), Compression::ZSTD(Default::default())),
        (Codec::Snappy, Compression::SNAPPY),
        (Codec::None, Compression::UNCOMPRESSED),
    ];
    let mut sizes = Vec::new();
    for (codec, expected) in codecs {
        let folder = tempdir().unwrap();
        let mut plan = plan(&[Format::Parquet]);
        plan.files.codec = codec;
        plan.files.row_group_rows = 1000;
        let dataset = publish(folder.path(), &plan, std::slice::from_ref(&batch)).unwrap();
        let (path, saved) = (dataset.path.join("demo.parquet"), folder.path().join("saved.parquet"));
        let to = Destination::File(TargetFile { path: saved.clone(), when_exists: WhenExists::Refuse });
        let mut out = RowOutput::begin(Format::Parquet.into(), to, schema(), &RowEncoding::of(&plan)).unwrap();
        out.write(&batch).unwrap();
        out.finish().unwrap();
        for path in [&path, &saved] {
            let reader = parquet_file(path);
            let groups = reader.metadata().row_groups();
            assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [1000, 1000, 400]);
            assert_eq!(
                std::mem::discriminant(&groups[0].column(0).compression()),
                std::mem::discriminant(&expected),
                "{codec:?}"
            );
            assert_eq!(groups[0].sorting_columns().map(Vec::len), Some(4));
            assert_eq!(parquet_rows(path), batch);
        }
        sizes.push(dataset.files[0].bytes);
    }
    assert!(sizes[1] < sizes[0] && sizes[0] < sizes[3] && sizes[2] < sizes[3], "{sizes:?}");
}

#[test]
fn an_arrow_file_of_several_row_groups_holds_the_same_rows() {
    let folder = tempdir().unwrap();
    let all = signals(&["AAPL", "MSFT", "XOM"], 100);
    let mut plan = plan(&[Format::Arrow, Format::Parquet]);
    plan.files.row_group_rows = 1000;
    let batches = [rows(&all[..1]), rows(&all[1..700]), rows(&all[700..])];
    let dataset = publish(folder.path(), &plan, &batches).unwrap();
    let reader = FileReader::try_new_buffered(File::open(dataset.path.join("demo.arrow")).unwrap(), None).unwrap();
    let read: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    assert_eq!(read.len(), 2);
    assert_eq!(concat_batches(&schema(), &read).unwrap(), concat_batches(&schema(), &batches).unwrap());
}

#[test]
fn the_same_rows_give_the_same_bytes_at_any_time_and_in_any_batches() {
    let all = signals(&["AAPL", "MSFT", "XOM"], 200);
    let whole = rows(&all);
    let build = |hour: u32, ends: &[usize], threads: usize| {
        let folder = tempdir().unwrap();
        let mut plan = plan(&ALL);
        plan.files.row_group_rows = 1000;
        let provenance = Provenance { built_at: moment(&format!("2026-11-21T{hour:02}:00:00Z")), ..provenance() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let batches: Vec<RecordBatch> = starts.zip(ends).map(|(from, end)| whole.slice(from, end - from)).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let dataset = pool.install(|| publish_as(folder.path(), &plan, provenance, &batches)).unwrap();
        (dataset.files, dataset.content)
    };
    let expected = build(8, &[2400], 1);
    assert_eq!(expected.0.len(), ALL.len());
    assert_eq!(build(9, &[1, 2, 1500, 2400], 4), expected);
    assert_eq!(build(10, &(1..=240).map(|end| end * 10).collect::<Vec<_>>(), 2), expected);
}

#[test]
fn the_record_describes_the_files() {
    let folder = tempdir().unwrap();
    let mut plan = plan(&[Format::Parquet, Format::Csv]);
    plan.description = Some("two of them".to_owned());
    let dataset = publish(folder.path(), &plan, &[rows(&signals(&["AAPL"], 5))]).unwrap();
    let record = record(&dataset);
    assert_eq!(record["layout"], 5);
    assert_eq!(record["name"], "demo");
    assert_eq!(record["version"], dataset.path.file_name().unwrap().to_str().unwrap());
    assert_eq!(record["bellwether"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["description"], "two of them");
    assert_eq!(record["as_of"], "2026-11-20T21:30:00.000000Z");
    assert_eq!(record["built_at"], "2026-11-21T08:00:00.000000Z");
    assert_eq!(record["runs"], serde_json::json!(["one", "two"]));
    assert_eq!(record["definition"], "the = \"definition\"\n");
    assert_eq!(record["sort"], serde_json::json!(["ticker", "date", "period", "regime"]));
    assert_eq!(record["partition_by"], serde_json::json!([]));
    assert_eq!(record["rows"], 20);
    assert_eq!(record["content"], dataset.content.as_str());
    let columns = record["columns"].as_array().unwrap();
    let types: Vec<&str> = columns.iter().map(|column| column["type"].as_str().unwrap()).collect();
    assert_eq!(types[0], "text");
    assert_eq!(types[2], "text");
    assert_eq!(types[5], types[6]);
    assert_eq!((&columns[5]["nullable"], &columns[6]["nullable"]), (&false.into(), &true.into()));
    let files: Vec<FileRecord> = serde_json::from_value(record["files"].clone()).unwrap();
    assert_eq!(files, dataset.files);
    assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["demo.parquet", "demo.csv"]);
    for file in &files {
        assert_eq!(
            &FileRecord::of(&dataset.path.join(&file.name), &file.name, 20, &CancellationToken::new()).unwrap(),
            file
        );
    }
    assert_eq!(fs::read_link(dataset.latest.unwrap()).unwrap(), Path::new(dataset.path.file_name().unwrap()));
}

#[test]
fn an_empty_dataset_has_files_with_all_columns() {
    let folder = tempdir().unwrap();
    let dataset = publish(folder.path(), &plan(&ALL), &[]).unwrap();
    assert_eq!(parquet_rows(&dataset.path.join("demo.parquet")).schema(), schema());
    let text = fs::read_to_string(dataset.path.join("demo.csv")).unwrap();
    assert!(text.starts_with("ticker,date,period,") && text.ends_with("backfilled\n"), "{text}");
    assert_eq!(FileReader::try_new(File::open(dataset.path.join("demo.arrow")).unwrap(), None).unwrap().count(), 0);
}

#[test]
fn latest_does_not_go_back_to_a_version_that_knows_less() {
    let place = tempdir().unwrap();
    let plan = plan(&[Format::Csv]);
    let at =
        |as_of: &str, built_at: &str| Provenance { as_of: moment(as_of), built_at: moment(built_at), ..provenance() };
    let begin = |provenance| Publication::begin(place.path(), &plan, provenance, &CancellationToken::new()).unwrap();
    let finish =
        |publication: Publication| publication.complete(&plan, || Ok(b"{}".to_vec())).unwrap().publish().unwrap();
    let latest = || fs::read_link(place.path().join("demo/latest")).unwrap();
    let name = |dataset: &Dataset| dataset.path.file_name().unwrap().to_str().unwrap().to_owned();
    let slow = begin(at("2026-11-20T21:30:00Z", "2026-11-21T08:00:00Z"));
    let same = begin(at("2026-11-22T21:30:00Z", "2026-11-22T21:30:01Z"));
    let newer = finish(begin(at("2026-11-22T21:30:00Z", "2026-11-22T21:31:00Z")));
    let slow = finish(slow);
    assert_eq!((slow.latest.as_ref(), slow.overtaken_by.as_ref()), (None, Some(&name(&newer))));
    assert_eq!(latest(), Path::new(&name(&newer)));
    assert!(slow.path.join("dataset.json").exists(), "it is published all the same");
    let same = finish(same);
    assert_eq!(latest(), Path::new(&name(&same)));
    // What knows less on purpose, because a run was taken back, was not overtaken.
    let fewer = finish(begin(at("2026-11-20T21:30:00Z", "2026-11-23T08:00:00Z")));
    assert_eq!(latest(), Path::new(&name(&fewer)));
}

#[test]
fn a_file_of_a_version_is_not_replaced() {
    let place = tempdir().unwrap();
    let version = publish(place.path(), &plan(&[Format::Csv]), &[]).unwrap().path;
    let write = |path: std::path::PathBuf| {
        let to = Destination::File(TargetFile { path, when_exists: WhenExists::Replace });
        RowOutput::begin(Format::Csv.into(), to, schema(), &RowEncoding::of(&plan(&[Format::Csv]))).map(drop)
    };
    for file in [version.join("demo.csv"), place.path().join("demo/latest/demo.csv")] {
        assert!(write(file).unwrap_err().to_string().ends_with("demo.csv` is a file of a published version"));
    }
    write(version.join("mine.csv")).unwrap();
}
