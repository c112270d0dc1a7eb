//! Forges archives with valid seals and invalid contents.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{Array, AsArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type, Schema};
use bellwether::archive::Seal;
use bellwether::run::CancellationToken;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::support::program::Place;
use crate::support::rows::read;

/// A change to the rows of a file.
pub(crate) type Forgery = fn(&RecordBatch) -> RecordBatch;

/// A place with copies of another one's definitions and archive.
pub(super) fn copy_of(sound: &Place) -> Place {
    let place = Place::new();
    fs::create_dir(place.file("output")).expect("a folder");
    for name in ["pipelines", "output/archive", "decoy"] {
        if fs::symlink_metadata(sound.file(name)).is_ok() {
            let copied = Command::new("cp").arg("-a").args([sound.file(name), place.file(name)]).status();
            assert!(copied.expect("cp starts").success(), "{name}");
        }
    }
    place
}

/// The folders of an archive, oldest first. Names have a resolution of one second, so two runs of one second may sort
/// either way.
pub(crate) fn names(archive: &Path) -> Vec<String> {
    let entries = fs::read_dir(archive).expect("an archive");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.contains('=')).collect();
    names.sort_by_cached_key(|name| seal_of(&archive.join(name)).started_at);
    names
}

pub(super) fn seal_of(folder: &Path) -> Seal {
    serde_json::from_slice(&fs::read(folder.join("run.json")).expect("a seal")).expect("a seal")
}

/// Seals a folder according to the layout: the digest is computed over the text with zeros in its place.
pub(super) fn reseal(folder: &Path, seal: &mut Seal) {
    digest(seal);
    fs::write(folder.join("run.json"), text(seal)).expect("a seal");
}

fn text(seal: &Seal) -> String {
    serde_json::to_string_pretty(seal).expect("a seal")
}

fn digest(seal: &mut Seal) {
    seal.seal = "0".repeat(64);
    seal.seal = blake3::hash(text(seal).as_bytes()).to_hex().to_string();
}

/// Updates the seal of a folder to its current files.
fn record(folder: &Path, seal: &mut Seal, name: &str, rows: u64) {
    let bytes = fs::read(folder.join(name)).expect("a file");
    let file = seal.files.iter_mut().find(|file| file.name == name).expect("it is sealed");
    (file.rows, file.bytes, file.blake3) = (rows, bytes.len() as u64, blake3::hash(&bytes).to_hex().to_string());
}

/// Replaces rows in a file of a run, and seals it again.
pub(crate) fn rewrite(folder: &Path, name: &str, forgery: Forgery) {
    let mut seal = seal_of(folder);
    write(folder, &mut seal, name, &forgery(&read(&folder.join(name))));
    reseal(folder, &mut seal);
}

fn write(folder: &Path, seal: &mut Seal, name: &str, rows: &RecordBatch) {
    let path = folder.join(name);
    let mut out = ArrowWriter::try_new(File::create(&path).expect("a file"), rows.schema(), None).expect("a writer");
    out.write(rows).expect("rows");
    out.close().expect("a file");
    record(folder, seal, name, rows.num_rows() as u64);
}

/// A file of a few kilobytes in which every article has the same title of four megabytes.
pub(super) fn long_titles(folder: &Path) {
    let mut seal = seal_of(folder);
    let rows = read(&folder.join("articles.parquet"));
    let place = rows.schema().index_of("title").expect("articles have it");
    let mut fields = rows.schema().fields().to_vec();
    let title = DictionaryArray::<Int32Type>::new(
        Int32Array::from(vec![0; rows.num_rows()]),
        Arc::new(StringArray::from(vec!["x".repeat(4 << 20)])),
    );
    fields[place] = Arc::new(fields[place].as_ref().clone().with_data_type(title.data_type().clone()));
    let mut columns = rows.columns().to_vec();
    columns[place] = Arc::new(title);
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("the same rows");
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(16 << 20)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let path = folder.join("articles.parquet");
    let mut out =
        ArrowWriter::try_new(File::create(&path).expect("a file"), rows.schema(), Some(properties)).expect("a writer");
    out.write(&rows).expect("rows");
    out.close().expect("a file");
    assert!(rows.num_rows() > 500 && fs::metadata(&path).expect("a file").len() < 1 << 20);
    record(folder, &mut seal, "articles.parquet", rows.num_rows() as u64);
    reseal(folder, &mut seal);
}

/// A file of a few kilobytes with more rows in a row group than any valid one.
pub(super) fn many_rows(folder: &Path) {
    const BATCH: usize = 1 << 16;
    let mut seal = seal_of(folder);
    let rows = read(&folder.join("signals.parquet"));
    let one = rows.slice(0, 1);
    let many = arrow::array::UInt32Array::from(vec![0; BATCH]);
    let batch = arrow::compute::take_record_batch(&one, &many).expect("the same row");
    let path = folder.join("signals.parquet");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(usize::MAX)).build();
    let mut out =
        ArrowWriter::try_new(File::create(&path).expect("a file"), batch.schema(), Some(properties)).expect("a writer");
    // More rows than any limit, but few enough for a test to write.
    let batches = (2 << 20) / BATCH;
    for _ in 0..batches {
        out.write(&batch).expect("rows");
    }
    out.close().expect("a file");
    record(folder, &mut seal, "signals.parquet", (batches * BATCH) as u64);
    reseal(folder, &mut seal);
}

/// Packs an archive, changes the pack, and seals it again.
pub(super) fn pack(archive: &Path, change: impl Fn(&mut Seal, &Path)) {
    let root = archive.parent().expect("the folder of a service is in the archive");
    let mut pack = bellwether::harness::pack(root, 0, &CancellationToken::new()).expect("it packs").remove(0);
    let folder = archive.join(format!("pack={}", pack.run));
    change(&mut pack, &folder);
    // Members are sealed too: the digest of a changed one is updated.
    for member in &mut pack.members {
        digest(member);
    }
    reseal(&folder, &mut pack);
}

/// Removes all rows from a pack, and claims that its members had none.
pub(super) fn empty(pack: &mut Seal, folder: &Path) {
    let names: Vec<String> = pack.files.iter().map(|file| file.name.clone()).collect();
    for name in names {
        let rows = read(&folder.join(&name)).slice(0, 0);
        write(folder, pack, &name, &rows);
    }
    for file in pack.members.iter_mut().flat_map(|member| &mut member.files) {
        file.rows = 0;
    }
}

/// Changes only the confidences of a pack.
pub(super) fn falsify(pack: &mut Seal, folder: &Path) {
    let rows = read(&folder.join("signals.parquet"));
    let place = rows.schema().index_of("confidence").expect("signals have it");
    let confidences = rows.column(place).as_primitive::<Float64Type>();
    let mut columns = rows.columns().to_vec();
    columns[place] = Arc::new(confidences.iter().map(|it| it.map(|it| 1.0 - it)).collect::<Float64Array>());
    let schema = Arc::new(Schema::clone(&rows.schema()));
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).expect("the same columns");
    write(folder, pack, "signals.parquet", &concat_batches(&schema, [&rows]).expect("rows"));
}

/// Rows with another number in the last row of a column.
pub(super) fn increase(rows: &RecordBatch, column: &str) -> RecordBatch {
    let place = rows.schema().index_of(column).expect("a column");
    let last = rows.num_rows() - 1;
    let mut columns = rows.columns().to_vec();
    columns[place] = match columns[place].as_primitive_opt::<Float64Type>() {
        Some(numbers) => {
            let number = |row| if row == last { numbers.value(row) / 2.0 + 0.01 } else { numbers.value(row) };
            Arc::new((0..=last).map(|row| Some(number(row))).collect::<Float64Array>())
        }
        None => {
            let numbers = columns[place].as_primitive::<Int64Type>();
            let number = |row| numbers.value(row) + i64::from(row == last);
            Arc::new((0..=last).map(|row| Some(number(row))).collect::<Int64Array>())
        }
    };
    RecordBatch::try_new(Arc::new(Schema::clone(&rows.schema())), columns).expect("the same columns")
}
