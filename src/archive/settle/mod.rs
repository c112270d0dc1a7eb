//! Seals a run: works out what its answers changed, writes it in order, and renames the folder into place.
//!
//! Answers are merged with what the archive knows in ticker order, a few tickers at a time, so memory follows their
//! size and not that of the run. Very many articles of one ticker are merged a few dates at a time (`giant`). Only the
//! answered series are read.

mod by_series;
mod difference;
mod giant;
mod known;
mod tables;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use self::by_series::{AnsweredSeries, AnswersBySeries, Repeated};
use self::difference::{difference, oldest};
use self::known::{KnownReader, Observations};
use self::tables::Tables;
use super::answers::answer::{Answer, AnswerBatches, AnswerRecord, RowKind};
use super::answers::answer_files::Files;
use super::sealed::catalog::{Archive, SealedRun};
use super::sealed::folder::Folder;
use super::sealed::listings::{self, LISTINGS, Listing, Listings, Name};
use super::sealed::requests::{REJECTS, REQUESTS};
use super::sealed::rowfile::Rowfile;
use super::sealed::seal::{Counts, Definition, LAYOUT, Origin, Seal};
use crate::archive::ArchiveError;
use crate::cancel;
use crate::error::Result;
use crate::file::{self, FileError, FileRecord};
use crate::remove;
use crate::tables::{Change, Changes, Reject, RequestRecord, SeriesKey, Table};
use crate::trace::work;

/// Series that are enough to settle at a time.
const SERIES_AT_ONCE: usize = 64;

/// Bytes of answers that are enough to settle at a time, however few series they are.
const ENOUGH_BYTES: u64 = 1 << 20;

/// The most bytes of a series of articles to settle at a time. A larger one is settled a few dates at a time.
const BYTES_AT_ONCE: u64 = 4 << 20;

/// The most rows to concatenate at once.
const PIECE_ROWS: usize = 1 << 15;

/// Groups that may be ready while another is written.
const GROUPS_AHEAD: usize = 1;

/// The folder inside an unfinished run that its files are written to, which is empty.
pub(super) fn folder(unfinished: &Path) -> Result<PathBuf> {
    let folder = unfinished.join("sealed");
    remove::folder(&folder).map_err(FileError::write(&folder))?;
    fs::create_dir(&folder).map_err(FileError::write(&folder))?;
    Ok(folder)
}

/// A run that was sealed.
#[derive(Debug)]
pub struct Settled {
    /// The run.
    pub run: SealedRun,
    /// The cells that the archive knew before of the series that were answered.
    pub known: u64,
}

/// Seals a run: writes its files to a hidden folder, and renames it.
pub(super) fn seal(
    before: &Archive,
    folder: &Path,
    origin: &Origin,
    answers: &[Answer],
    sealed_at: DateTime<Utc>,
) -> Result<Settled> {
    let mut by_series = AnswersBySeries::of(answers, before.stop());
    let series = by_series.series();
    let listings = listed(before, &by_series, &series)?;
    let mut out = Rowfile::create(&folder.join(LISTINGS), listings::schema(), 4)?;
    out.write(listings::batch(&listings))?;
    let listing_file = out.finish()?;
    let FinishedFiles { mut files, mut counts, known, repeated } = settle(before, folder, &mut by_series, &series)?;
    files.push(listing_file);
    for listing in &listings {
        match listing.change {
            Change::Withdrawn => counts.delisted += 1,
            Change::Added | Change::Revised => counts.listed += 1,
        }
    }
    files.push(write_rejects(&folder.join(REJECTS), answers, &repeated)?);
    files.push(write_requests(&folder.join(REQUESTS), answers, &repeated)?);
    let mut drift = Vec::new();
    answers.iter().flat_map(|answer| answer.record.oddities.drift.clone()).for_each(|field| field.add_to(&mut drift));
    let definition = Definition { name: origin.definition.clone(), digest: origin.definition_digest.clone() };
    let mut seal = Seal {
        layout: LAYOUT,
        run: origin.run.clone(),
        bellwether: env!("CARGO_PKG_VERSION").to_owned(),
        definition: Some(definition),
        started_at: origin.started_at,
        sealed_at,
        changes: counts,
        drift,
        files,
        members: Vec::new(),
        seal: String::new(),
    };
    seal.write(folder)?;
    cancel::check(before.stop())?;
    let path = before.path().join(seal.folder_name());
    file::rename_durably(folder, &path)?;
    Ok(Settled { run: SealedRun::of(seal.clone(), Arc::new(Folder::new(path, seal))), known })
}

/// The series that answers started or stopped listing, in order.
fn listed(archive: &Archive, by_series: &AnswersBySeries<'_>, series: &[AnsweredSeries]) -> Result<Vec<Listing>> {
    let answered: HashMap<Name, DateTime<Utc>> = by_series.answered().collect();
    let known = Listings::of(archive.read(), DateTime::<Utc>::MAX_UTC)?;
    let mut known = known.series().peekable();
    let mut changed = Vec::new();
    let mut compare = |key: &SeriesKey, before: &[Listing], now: BTreeSet<Name>| {
        let is_listed = |listing: &&Listing| listing.change == Change::Added;
        let before: BTreeSet<&Name> = before.iter().filter(is_listed).map(|listing| &listing.request).collect();
        let gone = before.iter().filter(|request| answered.contains_key(**request) && !now.contains(**request));
        let gone = gone.map(|request| (Name::clone(request), Change::Withdrawn));
        let new = now.iter().filter(|request| !before.contains(request));
        let new = new.map(|request| (Name::clone(request), Change::Added));
        changed.extend(gone.chain(new).map(|(request, change)| {
            let observed_at = answered[&request];
            Listing { key: key.clone(), request, change, observed_at }
        }));
    };
    for series in series {
        while let Some((key, before)) = known.next_if(|(key, _)| **key < series.key) {
            compare(key, before, BTreeSet::new());
        }
        let before = known.next_if(|(key, _)| **key == series.key).map_or(&[][..], |(_, before)| before);
        compare(&series.key, before, by_series.listing(series));
    }
    known.for_each(|(key, before)| compare(key, before, BTreeSet::new()));
    Ok(changed)
}

/// Settles every series and writes the changes to the files of a folder. The next tickers are read and compared while
/// the last ones are written.
fn settle(
    archive: &Archive,
    folder: &Path,
    by_series: &mut AnswersBySeries<'_>,
    series: &[AnsweredSeries],
) -> Result<FinishedFiles> {
    let mut known = KnownReader::open(archive)?;
    let tables = Tables::create(folder)?;
    let mut writing = Writing { tables, counts: Counts::default(), known: 0, repeated: Vec::new() };
    thread::scope(|scope| {
        let (ready, groups) = mpsc::sync_channel(GROUPS_AHEAD);
        // The receiver is gone once a write fails.
        scope.spawn(move || settle_all(&mut known, by_series, series, |group| ready.send(group).is_ok()));
        groups.into_iter().try_for_each(|group| {
            cancel::check(archive.stop())?;
            writing.write(group?)
        })
    })?;
    writing.finish()
}

/// Sends the changes of all tickers, until the receiver stops or a group fails.
fn settle_all(
    known: &mut KnownReader,
    by_series: &mut AnswersBySeries<'_>,
    series: &[AnsweredSeries],
    mut send: impl FnMut(Result<Group>) -> bool,
) {
    let mut rest = series;
    loop {
        let is_giant = |series: &&AnsweredSeries| {
            Table::of(series.key.source) == Some(Table::Articles)
                && (by_series.bytes(series) > BYTES_AT_ONCE || known.is_giant(series.key.ticker.as_str()))
        };
        let few = rest.iter().take_while(|series| !is_giant(series)).count();
        let (tickers, others) = rest.split_at(few);
        if !settle_tickers(known, by_series, tickers, &mut send) {
            return;
        }
        let Some((giant, others)) = others.split_first() else { return };
        if !giant::settle(known, by_series, giant, &mut send) {
            return;
        }
        rest = others;
    }
}

/// Sends the changes of some tickers; returns whether it was completed and accepted. The next tickers are read while
/// these are settled.
fn settle_tickers(
    known: &mut KnownReader,
    by_series: &mut AnswersBySeries<'_>,
    series: &[AnsweredSeries],
    mut send: impl FnMut(Result<Group>) -> bool,
) -> bool {
    let mut rest = series;
    let mut observations = known.of(&rest[..whole_tickers(by_series, rest)]);
    while !rest.is_empty() {
        let (some, others) = rest.split_at(whole_tickers(by_series, rest));
        let next = &others[..whole_tickers(by_series, others)];
        let group = || observations.and_then(|observations| settle_group(by_series, some, &observations));
        let (group, next) = rayon::join(group, || known.of(next));
        let is_whole = group.is_ok();
        if !send(group) || !is_whole {
            return false;
        }
        (rest, observations) = (others, next);
    }
    true
}

/// Settles the series of some tickers.
fn settle_group(
    by_series: &mut AnswersBySeries<'_>,
    series: &[AnsweredSeries],
    observations: &Observations,
) -> Result<Group> {
    let _work = work!("settle tickers");
    by_series.open(series)?;
    let by_series = &*by_series;
    let settle = |series: &AnsweredSeries| {
        let _work = work!("settle series");
        let Some((answer, repeated)) = by_series.first_copy(series)? else {
            return Ok((ComparedSeries::default(), Vec::new()));
        };
        let compared = || -> Result<ComparedSeries, ArrowError> {
            let known = observations.values(answer.table, &series.key, answer.observed_at)?;
            let found = difference(answer.table, &known, &answer.rows, oldest(&answer.rows))?;
            let (key, observed_at) = (series.key.clone(), answer.observed_at);
            let changes = found.map(|(kinds, rows)| Changes { key, observed_at, kinds, rows });
            Ok(ComparedSeries { changes, known: known.num_rows() as u64 })
        };
        Ok((compared().map_err(ArchiveError::merge)?, repeated))
    };
    let settled = series.par_iter().map(settle).collect::<Result<Vec<_>>>()?;
    let (compared, repeated): (Vec<ComparedSeries>, Vec<Vec<Repeated>>) = settled.into_iter().unzip();
    Group::of(compared, repeated.concat())
}

/// A series, or some dates of it, after it was compared with what was known.
#[derive(Default)]
struct ComparedSeries {
    /// None if nothing changed.
    changes: Option<Changes>,
    /// The number of cells that were known.
    known: u64,
}

/// Some whole tickers, or some dates of a ticker, after settling.
struct Group {
    /// Changed rows by table, in order.
    rows: Vec<(Table, crate::columns::Rows)>,
    counts: Counts,
    known: u64,
    repeated: Vec<Repeated>,
}

impl Group {
    fn of(compared: Vec<ComparedSeries>, repeated: Vec<Repeated>) -> Result<Self> {
        let known = compared.iter().map(|compared| compared.known).sum();
        let changes: Vec<Changes> = compared.into_iter().filter_map(|compared| compared.changes).collect();
        let mut counts = Counts::default();
        changes.iter().for_each(|changes| counts += counted(&changes.kinds));
        let rows = written(changes).map_err(ArchiveError::merge)?;
        Ok(Self { rows, counts, known, repeated })
    }
}

/// The observation files of a run being sealed.
struct Writing {
    tables: Tables,
    counts: Counts,
    known: u64,
    repeated: Vec<Repeated>,
}

/// The finished observation files and their counts.
struct FinishedFiles {
    files: Vec<FileRecord>,
    counts: Counts,
    known: u64,
    repeated: Vec<Repeated>,
}

impl Writing {
    fn write(&mut self, group: Group) -> Result<()> {
        let _work = work!("write changes");
        self.repeated.extend(group.repeated);
        self.counts += group.counts;
        self.known += group.known;
        group.rows.into_iter().try_for_each(|(table, rows)| self.tables.write(table, &rows))
    }

    fn finish(self) -> Result<FinishedFiles> {
        let Self { tables, counts, known, repeated } = self;
        Ok(FinishedFiles { files: tables.finish()?, counts, known, repeated })
    }
}

/// Changes as rows of their tables, in the given order.
fn written(changes: Vec<Changes>) -> Result<Vec<(Table, crate::columns::Rows)>, ArrowError> {
    let mut by_table: BTreeMap<Table, Vec<Changes>> = BTreeMap::new();
    for changes in changes {
        if let Some(table) = Table::of(changes.key.source) {
            by_table.entry(table).or_default().push(changes);
        }
    }
    let mut pieces: Vec<(Table, Vec<Changes>)> = Vec::new();
    for (table, changes) in by_table {
        let mut rows = PIECE_ROWS;
        for changes in changes {
            if rows >= PIECE_ROWS {
                pieces.push((table, Vec::new()));
                rows = 0;
            }
            rows += changes.kinds.len();
            pieces.last_mut().expect("the first changes begin a piece").1.push(changes);
        }
    }
    let rows = |(table, changes): (Table, Vec<Changes>)| Ok((table, table.batch(&changes)?.into()));
    pieces.into_par_iter().map(rows).collect()
}

/// Number of the next series that make up enough whole tickers.
fn whole_tickers(by_series: &AnswersBySeries<'_>, series: &[AnsweredSeries]) -> usize {
    let (mut count, mut bytes) = (0, 0);
    for of_ticker in series.chunk_by(|one, next| one.key.ticker == next.key.ticker) {
        if count >= SERIES_AT_ONCE || bytes >= ENOUGH_BYTES {
            break;
        }
        count += of_ticker.len();
        bytes += of_ticker.iter().map(|series| by_series.bytes(series)).sum::<u64>();
    }
    count
}

fn counted(kinds: &[Change]) -> Counts {
    let count = |kind: Change| kinds.iter().filter(|other| **other == kind).count() as u64;
    Counts {
        added: count(Change::Added),
        revised: count(Change::Revised),
        withdrawn: count(Change::Withdrawn),
        ..Counts::default()
    }
}

/// Writes the rejected records of some answers, and the series that they repeat.
pub(super) fn write_rejects(path: &Path, answers: &[Answer], repeated: &[Repeated]) -> Result<FileRecord> {
    let mut out = Rowfile::create(path, Reject::schema(), 0)?;
    for answer in answers.iter().filter(|answer| answer.record.request.rejects > 0) {
        let Some(batches) = AnswerBatches::open(answer, RowKind::Rejects, &mut Files::default())? else { continue };
        for index in 0..batches.count() {
            out.write(seen(&batches.get(index)?, answer.record.request.observed_at))?;
        }
    }
    for Repeated { reject, observed_at, .. } in repeated {
        out.write(Reject::batch(std::slice::from_ref(reject)).and_then(|rows| seen(&rows, *observed_at)))?;
    }
    out.finish()
}

/// Rows with the instant of their observation.
fn seen(rows: &RecordBatch, observed_at: DateTime<Utc>) -> Result<RecordBatch, ArrowError> {
    let seen = std::iter::repeat_n(observed_at.timestamp_micros(), rows.num_rows());
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")));
    RecordBatch::try_new(Reject::schema(), columns)
}

/// Writes the requests. Series repeated with other values count as rejected.
fn write_requests(path: &Path, answers: &[Answer], repeated: &[Repeated]) -> Result<FileRecord> {
    let mut repeating: HashMap<&str, u64> = HashMap::new();
    for Repeated { reject, records, .. } in repeated {
        *repeating.entry(&reject.request).or_default() += records;
    }
    let record = |AnswerRecord { request, oddities, .. }: &AnswerRecord| {
        let repeated = repeating.get(request.request.as_str()).copied().unwrap_or_default();
        RequestRecord {
            rows: request.rows.saturating_sub(repeated),
            rejects: request.rejects + repeated,
            unknown_fields: oddities.drift.clone(),
            ..request.clone()
        }
    };
    let records: Vec<RequestRecord> = answers.iter().map(|answer| record(&answer.record)).collect();
    let mut out = Rowfile::create(path, RequestRecord::schema(), 0)?;
    out.write(RequestRecord::batch(&records))?;
    out.finish()
}
