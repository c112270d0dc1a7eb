//! The answers of a run, on disk until the run is sealed: how they are written, and their stored form.
//!
//! A service may say that an answer is as before, if it was asked with the validator of an answer that the archive holds.
//! Such an answer has no rows of its own. When its run is settled, those of the earlier answer are taken from what was known
//! after it, and from there on it is an answer like any other. So a validator is sealed only where these rows are the ones
//! that the service sent, to the last bit.

pub(super) mod answer_files;
mod row_codec;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::answer_files::{AnswerFile, AnswerFiles, ByteRange, Files, Section};
use self::row_codec::{pack, unpack};
use super::sealed::answers::SeriesAnswer;
use super::sealed::catalog::Archive;
use super::sealed::sealed_run::SealedRun;
use super::settle::difference::rows_of_answer;
use crate::decode::{AnswerPart, Decoded};
use crate::disk::file::FileError;
use crate::error::{Reason, Result};
use crate::interface::{Endpoint, Ticker};
use crate::tables::{Drift, Leniencies, Oversized, Reject, RequestRecord, Series, SeriesKey, Table, Validator};

/// An answer without its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request, with the status, size and time of its answer.
    pub request: RequestRecord,
    /// The key of each series, in row order. A long series may come in pieces; a ticker that is only listed has no key.
    pub series: Vec<SeriesKey>,
    /// Signal histories without rows, which list no series.
    pub empty: Vec<SeriesKey>,
    /// Location of its rows, typed and rejected.
    pub rows: BTreeMap<RowKind, RowPieces>,
    /// Number of signal histories.
    pub histories: u64,
    /// Number of histories with records of which all were rejected.
    pub lost: u64,
    /// The tickers with rejected records; none for records that no ticker is known of.
    #[serde(default)]
    pub unread: BTreeSet<Option<String>>,
    /// Other findings in the answer.
    #[serde(flatten)]
    pub oddities: Oddities,
    /// If the service says that it is as before, the sealed run with the earlier answer, whose rows it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_before: Option<String>,
}

/// Findings in answers, besides their rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Oddities {
    /// Unknown fields.
    pub drift: Vec<Drift>,
    /// Confidences outside 0 to 1.
    pub unusual: u64,
    /// Latest signals without a date, which no dataset can have.
    #[serde(default)]
    pub undated: u64,
    /// Values accepted though they deviate from the interface's notation.
    #[serde(default)]
    pub lenient: Leniencies,
    /// The first record rejected for its size.
    #[serde(default)]
    pub oversized: Vec<Oversized>,
}

impl Oddities {
    /// Adds the findings of another answer, or of more of this one.
    pub fn add(&mut self, other: Self) {
        other.drift.into_iter().for_each(|field| field.add_to(&mut self.drift));
        self.unusual += other.unusual;
        self.undated += other.undated;
        self.lenient += other.lenient;
        self.oversized.extend(other.oversized);
        self.oversized.truncate(Oversized::MAX_LISTED);
    }
}

impl AnswerRecord {
    /// The series that the answer lists.
    pub fn listed_series(&self) -> impl Iterator<Item = &SeriesKey> {
        let empty: HashSet<&SeriesKey> = self.empty.iter().collect();
        self.series.iter().filter(move |key| !empty.contains(key))
    }

    /// Whether every record of a ticker could be read: only then does the answer say what there no longer is.
    pub(in crate::archive) fn is_read(&self, ticker: &Ticker) -> bool {
        self.unread.is_empty()
            || !self.unread.iter().any(|name| name.as_deref().is_none_or(|name| name == ticker.as_str()))
    }

    /// Tickers of the series that the answer lists.
    pub fn tickers(&self) -> impl Iterator<Item = &Ticker> {
        self.listed_series().map(|key| &key.ticker)
    }
}

/// The kinds of rows in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// Typed rows, a batch per piece of a series.
    Typed,
    /// Rejected records.
    Rejects,
}

/// Contiguous pieces of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowPieces {
    /// Their location.
    pub(in crate::archive) bytes: ByteRange,
    /// Bytes of each piece.
    pub(in crate::archive) lengths: Vec<u64>,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Answer {
    /// The folder of its files.
    pub(in crate::archive) folder: PathBuf,
    /// Shared, since an answer may list every ticker there is.
    pub(in crate::archive) record: Arc<AnswerRecord>,
}

impl Answer {
    /// Reads an answer that another process wrote; `None` if its rows do not match their checksums.
    pub(in crate::archive) fn read(folder: &Path, record: &str) -> Option<Self> {
        let record: AnswerRecord = serde_json::from_str(record).ok()?;
        record
            .rows
            .values()
            .all(|rows| rows.bytes.is_of_answers() && rows.bytes.check(folder).is_ok())
            .then(|| Self { folder: folder.to_owned(), record: Arc::new(record) })
    }
}

/// The batches of one kind of rows, readable in any order and from several threads.
pub(in crate::archive) struct AnswerBatches {
    path: PathBuf,
    section: Section,
    schema: SchemaRef,
    /// Byte range of each batch in the section.
    places: Vec<Range<u64>>,
}

impl AnswerBatches {
    /// Opens rows of an answer; `None` if it has none of this kind.
    pub(in crate::archive) fn open(answer: &Answer, rows: RowKind, files: &mut Files) -> Result<Option<Self>> {
        let Some(RowPieces { bytes, lengths }) = answer.record.rows.get(&rows) else { return Ok(None) };
        let schema = match rows {
            RowKind::Typed => Table::of(answer.record.request.endpoint).map(Table::listed_schema),
            RowKind::Rejects => Some(Reject::batch_schema()),
        };
        let Some(schema) = schema else { return Ok(None) };
        let mut end = 0_u64;
        let place = |length: &u64| {
            let start = end;
            end = end.saturating_add(*length);
            start..end
        };
        let places = lengths.iter().map(place).collect();
        let section = bytes.open(&answer.folder, files)?;
        Ok(Some(Self { path: bytes.path(&answer.folder), section, schema, places }))
    }

    pub(in crate::archive) fn count(&self) -> usize {
        self.places.len()
    }

    pub(in crate::archive) fn get(&self, index: usize) -> Result<RecordBatch> {
        let read = || -> Result<RecordBatch, Reason> {
            let place = self.places.get(index).ok_or("it ends early")?;
            unpack(&self.section.read(place.start, place.end - place.start)?, &self.schema)
        };
        read().map_err(|source| FileError::damage(&self.path, source))
    }
}

/// An answer on its way to disk. Dropped before it is committed, it leaves nothing behind.
pub struct Draft {
    files: Arc<AnswerFiles>,
    /// The file of each kind of rows, and the bytes of each piece.
    writing: BTreeMap<RowKind, (AnswerFile, Vec<u64>)>,
    series: Vec<SeriesKey>,
    empty: Vec<SeriesKey>,
    histories: u64,
    lost: u64,
    unread: BTreeSet<Option<String>>,
    oddities: Oddities,
    rows: u64,
    rejects: u64,
}

impl Draft {
    pub(in crate::archive) fn on(files: &Arc<AnswerFiles>) -> Self {
        Self {
            files: Arc::clone(files),
            writing: BTreeMap::new(),
            series: Vec::new(),
            empty: Vec::new(),
            histories: 0,
            lost: 0,
            unread: BTreeSet::new(),
            oddities: Oddities::default(),
            rows: 0,
            rejects: 0,
        }
    }

    /// Adds a series, or a piece of a long one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn add_series(&mut self, series: Series) -> Result<()> {
        self.rows += series.rows.num_rows() as u64;
        self.write(RowKind::Typed, &series.rows)?;
        if series.rows.num_rows() == 0 && series.key.table == Some(Table::Signals) {
            self.empty.push(series.key.clone());
        }
        self.series.push(series.key);
        Ok(())
    }

    /// Adds a decoded part of the answer of an operation.
    pub(crate) fn add(&mut self, source: Endpoint, decoded: Decoded) -> Result<()> {
        for part in decoded.parts {
            match part {
                AnswerPart::Series(series) => self.add_series(series)?,
                AnswerPart::Tickers(tickers) => self.add_tickers(source, tickers),
            }
        }
        self.add_rejects(&decoded.rejects, decoded.rejected)?;
        self.add_histories(decoded.histories, decoded.lost);
        let Decoded { drift, unusual, undated, lenient, oversized, .. } = decoded;
        self.add_oddities(Oddities { drift, unusual, undated, lenient, oversized });
        Ok(())
    }

    /// Adds tickers that the answer lists.
    pub fn add_tickers(&mut self, source: Endpoint, tickers: Vec<Ticker>) {
        self.rows += tickers.len() as u64;
        self.series.extend(tickers.into_iter().map(|ticker| SeriesKey::of_ticker(source, ticker)));
    }

    /// Adds to the number of histories, and of those whose records were all rejected.
    pub fn add_histories(&mut self, histories: u64, lost: u64) {
        self.histories += histories;
        self.lost += lost;
    }

    /// Adds rejected records: `count` of them, which may be more than the entries given.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn add_rejects(&mut self, rejects: &[Reject], count: u64) -> Result<()> {
        self.rejects += count;
        if rejects.is_empty() {
            return Ok(());
        }
        for Reject { ticker, .. } in rejects {
            if !self.unread.contains(ticker) {
                self.unread.insert(ticker.clone());
            }
        }
        let batch = Reject::batch(rejects);
        self.write(RowKind::Rejects, &batch.expect("rejects are texts and numbers"))
    }

    /// Adds other findings.
    pub fn add_oddities(&mut self, oddities: Oddities) {
        self.oddities.add(oddities);
    }

    /// Number of rows and of rejected records added.
    pub fn counts(&self) -> (u64, u64) {
        (self.rows, self.rejects)
    }

    /// Number of histories and of confidences outside 0 to 1, and what was accepted in another notation.
    pub(crate) fn findings(&self) -> (u64, u64, Leniencies) {
        (self.histories, self.oddities.unusual, self.oddities.lenient)
    }

    /// Completes the rows.
    ///
    /// Nothing is flushed to disk here: what a power failure loses shows in the checksums and is requested again. Only
    /// a sealed run must be durable.
    pub(in crate::archive) fn complete(self, request: RequestRecord) -> Result<AnswerRecord> {
        let mut rows = BTreeMap::new();
        for (kind, (file, lengths)) in self.writing {
            let path = file.path();
            let range = file.keep().map_err(FileError::write(&path))?;
            rows.insert(kind, RowPieces { bytes: range, lengths });
        }
        let Self { series, empty, histories, lost, unread, oddities, .. } = self;
        Ok(AnswerRecord { request, series, empty, rows, histories, lost, unread, oddities, as_before: None })
    }

    fn write(&mut self, rows: RowKind, batch: &RecordBatch) -> Result<()> {
        let (file, lengths) = match self.writing.entry(rows) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert((AnswerFiles::take(&self.files)?, Vec::new())),
        };
        let length = file.append(|out| pack(batch, out));
        lengths.push(length.map_err(FileError::write(&file.path()))?);
        Ok(())
    }
}

/// An answer that the archive holds whole.
#[derive(Debug)]
pub(crate) struct KnownAnswer {
    run: String,
    request: RequestRecord,
    /// The series in it, and those of them that are histories without signals.
    series: Vec<SeriesKey>,
    empty: Vec<SeriesKey>,
}

impl KnownAnswer {
    /// With what to ask whether it is still the same.
    pub(crate) fn validator(&self) -> &Validator {
        self.request.validator.as_ref().expect("a known answer has a validator")
    }

    /// The record of an answer that is as this one was, to a request of the same words.
    pub(super) fn again(&self, seen: RequestRecord) -> AnswerRecord {
        let RequestRecord { status, attempts, observed_at, .. } = seen;
        let Self { run, request, series, empty } = self;
        let Validator { histories, unusual, lenient, .. } = self.validator().clone();
        let drift = request.unknown_fields.clone();
        AnswerRecord {
            request: RequestRecord { status, attempts, observed_at, bytes: 0, ..request.clone() },
            series: series.clone(),
            empty: empty.clone(),
            rows: Default::default(),
            histories,
            lost: 0,
            unread: Default::default(),
            oddities: Oddities { drift, unusual, lenient, ..Oddities::default() },
            as_before: Some(run.clone()),
        }
    }
}

/// The answers that may be asked for with a validator, by request: those of the last whole run of each definition. What a run
/// stored is a difference from the runs that it knew: these must all be there, and no other one may have met it since.
pub(super) fn known_answers(archive: &Archive) -> Result<HashMap<String, Arc<KnownAnswer>>> {
    let mut known: HashMap<String, KnownAnswer> = HashMap::new();
    if archive.missing().next().is_some() {
        return Ok(HashMap::new());
    }
    let (lineage, mut seen) = (archive.lineage(), HashSet::new());
    let concurrent = lineage.concurrent();
    let runs = || archive.runs().iter().enumerate();
    let losses: Vec<usize> = runs().filter(|(_, run)| !run.seal().lost.is_empty()).map(|(index, _)| index).collect();
    for (index, run) in runs().rev().filter(|(_, run)| run.seal().in_part.is_none()) {
        let name = run.seal().definition.as_ref().map(|definition| &definition.name);
        let has_basis = losses.iter().all(|loss| lineage.knew(index, *loss)) && !concurrent.contains(&index);
        if seen.insert(name) && has_basis {
            add_known(&mut known, run)?;
        }
    }
    Ok(known.into_iter().map(|(request, answer)| (request, Arc::new(answer))).collect())
}

fn add_known(known: &mut HashMap<String, KnownAnswer>, run: &SealedRun) -> Result<()> {
    let is_later = |request: &RequestRecord| {
        known.get(&request.request).is_none_or(|other| other.request.observed_at < request.observed_at)
    };
    let requests = run.requests()?.into_iter().filter(|request| request.validator.is_some() && is_later(request));
    let of_run = |request: RequestRecord| {
        let (run, words) = (run.name().to_owned(), request.request.clone());
        (words, KnownAnswer { run, request, series: Vec::new(), empty: Vec::new() })
    };
    let mut found: HashMap<String, KnownAnswer> = requests.map(of_run).collect();
    if found.is_empty() {
        return Ok(());
    }
    for SeriesAnswer { key, request, rows, .. } in run.answers()? {
        let Some(answer) = found.get_mut(&*request) else { continue };
        if rows == 0 && key.table == Some(Table::Signals) {
            answer.empty.push(key.clone());
        }
        answer.series.push(key);
    }
    known.extend(found);
    Ok(())
}

/// The answers that others are as before of, by the index of the other one and by series.
#[derive(Debug, Default)]
pub(super) struct EarlierAnswers(HashMap<usize, HashMap<SeriesKey, SeriesAnswer>>);

impl EarlierAnswers {
    /// Finds them in an archive.
    pub(super) fn of(answers: &[Answer], archive: &Archive) -> Result<Self> {
        let mut of_runs: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
        for (index, AnswerRecord { request, as_before, .. }) in answers.iter().map(|it| &*it.record).enumerate() {
            if let Some(run) = as_before {
                of_runs.entry(run).or_default().insert(&request.request, index);
            }
        }
        let mut found: HashMap<usize, HashMap<SeriesKey, SeriesAnswer>> = HashMap::new();
        for run in archive.runs().iter().filter(|run| of_runs.contains_key(run.name())) {
            let requests = &of_runs[run.name()];
            for answer in run.answers()? {
                if let Some(index) = requests.get(&*answer.request) {
                    found.entry(*index).or_default().insert(answer.key.clone(), answer);
                }
            }
        }
        Ok(Self(found))
    }

    /// What the earlier answer said of a series.
    pub(super) fn get(&self, index: usize, key: &SeriesKey, answer: &Answer) -> Result<&SeriesAnswer> {
        let gone = || FileError::damage(&answer.folder, "the archive no longer has an answer that is as before");
        self.0.get(&index).and_then(|of_answer| of_answer.get(key)).ok_or_else(gone)
    }
}

/// Whether an answer can be told from what is known after it, to the last bit.
pub(super) fn is_held_whole(
    answer: &SeriesAnswer,
    known: &RecordBatch,
    answered: &RecordBatch,
) -> Result<bool, ArrowError> {
    Ok(rows_of_answer(answer, known)?.columns() == answered.columns())
}
