//! Puts the answers of a run in order and seals them.
//!
//! Rows come from the answers' files series by series, so memory follows the size of a row group and not of the run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

use super::answer::{Answer, Batches, Rows};
use super::seal::{LAYOUT, Origin, Seal, sealed_path};
use super::{REJECTS, REQUESTS, SEAL, SIGNALS, SealedRun};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{
    News, NewsTable, Observed, Reject, RequestRecord, Series, SeriesKey, SeriesTable, with_agreed_columns,
};

/// Rows of a row group: small enough to skip the tickers that are not wanted, large enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// How many pieces are put together before they are handed to a file.
const PIECES: usize = 32;
/// How many files of answers are open at once.
const OPEN_FILES: usize = 200;

/// Seals a run: writes its files into a folder of the unfinished run, and renames the folder.
pub(super) fn seal(
    archive: &Path,
    unfinished: &Path,
    origin: &Origin,
    answers: &[Answer],
    sealed_at: DateTime<Utc>,
) -> Result<SealedRun> {
    let folder = unfinished.join("sealed");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    }
    fs::create_dir(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    let mut spool = Spool { answers, open: HashMap::new() };
    let (signals, repeated) = write_signals(&folder.join(SIGNALS), &mut spool)?;
    let mut files = vec![signals];
    for table in NewsTable::ALL {
        files.push(write_news(&folder, table, &mut spool)?);
    }
    files.push(write_rejects(&folder.join(REJECTS), answers, repeated)?);
    files.push(write_requests(&folder.join(REQUESTS), answers)?);
    let mut drift = Vec::new();
    answers.iter().flat_map(|answer| answer.record.drift.clone()).for_each(|field| field.add_to(&mut drift));
    let seal = Seal {
        layout: LAYOUT,
        run: origin.run.clone(),
        bellwether: env!("CARGO_PKG_VERSION").to_owned(),
        definition: origin.definition.clone(),
        definition_digest: origin.definition_digest.clone(),
        started_at: origin.started_at,
        sealed_at,
        drift,
        files,
    };
    file::write_json(&folder.join(SEAL), &seal)?;
    let path = sealed_path(archive, &origin.run);
    file::rename_durably(&folder, &path)?;
    Ok(SealedRun::new(path, seal))
}

/// Where the rows of a piece are: which answer, and which batch of its file.
#[derive(Clone, Copy)]
struct Place {
    answer: usize,
    batch: usize,
}

/// The files of all answers.
struct Spool<'a> {
    answers: &'a [Answer],
    open: HashMap<(usize, Rows), Batches>,
}

impl Spool<'_> {
    fn rows(&mut self, rows: Rows, place: Place) -> Result<RecordBatch> {
        let name = (place.answer, rows);
        if !self.open.contains_key(&name) {
            if self.open.len() >= OPEN_FILES {
                self.open.clear();
            }
            self.open.insert(name, Batches::open(&self.answers[place.answer].path, rows)?);
        }
        self.open.get_mut(&name).expect("it was put there").get(place.batch)
    }

    fn observed_at(&self, place: Place) -> DateTime<Utc> {
        self.answers[place.answer].record.request.observed_at
    }

    /// Every piece with what names it, in order; answers are in the order of their requests.
    fn ordered<K: Ord + Clone>(&self, names: impl Fn(&Answer) -> &[K]) -> Vec<(K, Place)> {
        let of_answer = |(answer, it): (usize, &Answer)| {
            let with_place = |(batch, name): (usize, &K)| (name.clone(), Place { answer, batch });
            names(it).iter().enumerate().map(with_place).collect::<Vec<_>>()
        };
        let mut pieces: Vec<(K, Place)> = self.answers.iter().enumerate().flat_map(of_answer).collect();
        pieces.sort_by(|left, right| left.0.cmp(&right.0));
        pieces
    }
}

/// Writes the signals. Of a series that two answers give the first is kept; where they differ, that is a reject.
fn write_signals(path: &Path, spool: &mut Spool<'_>) -> Result<(FileRecord, Vec<Reject>)> {
    let mut out = Rowfile::create(path, SeriesTable::schema(), &["ticker"])?;
    let mut repeated = Vec::new();
    let mut pending: Vec<Observed<Series>> = Vec::new();
    for (key, place) in spool.ordered(|answer| &answer.record.series) {
        let rows = spool.rows(Rows::Signals, place)?;
        if let Some(kept) = pending.last().filter(|kept| kept.value.key == key) {
            if kept.value.rows != rows {
                repeated.push(repetition(&key, &spool.answers[place.answer]));
            }
            continue;
        }
        // Only now: the last one was to be compared with this one.
        if pending.len() >= PIECES {
            out.write(SeriesTable::batch(&pending))?;
            pending.clear();
        }
        pending.push(Observed { observed_at: spool.observed_at(place), value: Series { key, rows } });
    }
    if !pending.is_empty() {
        out.write(SeriesTable::batch(&pending))?;
    }
    Ok((out.finish()?, repeated))
}

fn repetition(key: &SeriesKey, answer: &Answer) -> Reject {
    let SeriesKey { ticker, period, regime, .. } = key;
    Reject {
        request: answer.record.request.request.clone(),
        ticker: Some(ticker.to_string()),
        pointer: format!("/{ticker}"),
        reason: format!("an earlier answer gives the series {period} {regime} with other values, and is kept"),
        raw: String::new(),
    }
}

fn write_news(folder: &Path, table: NewsTable, spool: &mut Spool<'_>) -> Result<FileRecord> {
    let path = folder.join(format!("{}.parquet", table.as_str()));
    let pieces: Vec<(Ticker, Place)> =
        spool.ordered(|answer| answer.record.news.get(&table).map_or(&[][..], Vec::as_slice));
    let mut news = |(ticker, place): (Ticker, Place)| {
        let rows = spool.rows(Rows::News(table), place)?;
        Ok(Observed { observed_at: spool.observed_at(place), value: News { ticker, rows } })
    };
    if table == NewsTable::SentimentHistory {
        // Which columns all records agree on is known only when all are read; there are few of them.
        let all = pieces.into_iter().map(news).collect::<Result<Vec<_>>>()?;
        let batch = table.batch(&all).and_then(with_agreed_columns);
        let batch = batch.map_err(|error| Error::Encode { path: path.clone(), source: error.into() })?;
        let mut out = Rowfile::create(&path, batch.schema(), &["ticker"])?;
        out.write(Ok(batch))?;
        return out.finish();
    }
    let mut out = Rowfile::create(&path, table.schema(), &["ticker"])?;
    let mut pieces = pieces.into_iter().peekable();
    while pieces.peek().is_some() {
        let some = pieces.by_ref().take(PIECES).map(&mut news).collect::<Result<Vec<_>>>()?;
        out.write(table.batch(&some))?;
    }
    out.finish()
}

/// Writes the rejects of some answers, and some more.
pub(super) fn write_rejects(path: &Path, answers: &[Answer], more: Vec<Reject>) -> Result<FileRecord> {
    let encode = |error: ArrowError| Error::Encode { path: path.to_owned(), source: error.into() };
    let last = Reject::batch(&more).map_err(encode)?;
    let mut out = Rowfile::create(path, last.schema(), &[])?;
    for answer in answers.iter().filter(|answer| answer.record.request.rejects > 0) {
        let mut batches = Batches::open(&answer.path, Rows::Rejects)?;
        for index in 0..batches.count() {
            out.write(Ok(batches.get(index)?))?;
        }
    }
    out.write(Ok(last))?;
    out.finish()
}

fn write_requests(path: &Path, answers: &[Answer]) -> Result<FileRecord> {
    let records: Vec<RequestRecord> = answers.iter().map(|answer| answer.record.request.clone()).collect();
    let encode = |error: ArrowError| Error::Encode { path: path.to_owned(), source: error.into() };
    let batch = RequestRecord::batch(&records).map_err(encode)?;
    let mut out = Rowfile::create(path, batch.schema(), &[])?;
    out.write(Ok(batch))?;
    out.finish()
}

/// A Parquet file of the run that is being written.
struct Rowfile {
    path: PathBuf,
    writer: ArrowWriter<fs::File>,
    rows: u64,
}

impl Rowfile {
    fn create(path: &Path, schema: SchemaRef, sort: &[&str]) -> Result<Self> {
        let place = |name: &&str| {
            let index = schema.index_of(name).expect("a table is ordered by columns that it has");
            SortingColumn { column_idx: index as i32, descending: false, nulls_first: false }
        };
        let sorting: Vec<_> = sort.iter().map(place).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
            .build();
        let writer =
            ArrowWriter::try_new(file::create(path)?, schema, Some(properties)).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), writer, rows: 0 })
    }

    fn write(&mut self, batch: Result<RecordBatch, ArrowError>) -> Result<()> {
        let batch = batch.map_err(|error| Error::Encode { path: self.path.clone(), source: error.into() })?;
        self.rows += batch.num_rows() as u64;
        self.writer.write(&batch).map_err(|error| failed(&self.path, error))
    }

    fn finish(mut self) -> Result<FileRecord> {
        self.writer.finish().map_err(|error| failed(&self.path, error))?;
        file::sync(self.writer.inner(), &self.path)?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        FileRecord::of(&self.path, &name, self.rows)
    }
}

fn failed(path: &Path, error: ParquetError) -> Error {
    file::encoding_failed(path, error.into())
}
