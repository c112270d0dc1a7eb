//! Seals a run: works out what its answers changed, writes it in order, and renames the folder into place.
//!
//! Answers are merged with what the archive knows in ticker order, a few tickers at a time, so memory follows their
//! size and not that of the run. Only the answered series are read. Where runs overlap in time, an answer may come before
//! others that are sealed already: these are stated again after it (`restate`).

mod by_series;
pub(super) mod difference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::{fs, thread};

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use self::by_series::{AnswerRows, AnsweredSeries, AnswersBySeries, KnownReader, Observations, Repeated};
use self::difference::{Difference, apply, continue_places, difference, restate, steadied};
use super::answers::answer_files::Files;
use super::answers::{Answer, AnswerBatches, AnswerRecord, EarlierAnswers, RowKind, is_held_whole};
use super::coverage::{Coverage, Edge, Extent, continue_copies};
use super::fold::cells::Cells;
use super::merge_failed;
use super::sealed::answers::{self, ANSWERS, LISTINGS, Listing, Listings, Name, SeriesAnswer};
use super::sealed::catalog::Archive;
use super::sealed::rows::Rowfile;
use super::sealed::seal::{Claim, Counts, DefinitionRecord, RunOrigin, Seal};
use super::sealed::sealed_run::SealedRun;
use crate::archive::sealed::layout::{REJECTS, REQUESTS};

use crate::columns::Rows;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::remove;
use crate::error::{Error, Result};
use crate::interface::Endpoint;
use crate::process::cancel;
use crate::process::trace::work;
use crate::tables::{Change, Changes, Conventions, Reject, RequestRecord, SeriesKey, Table};

/// Series that are enough to settle at a time.
const SERIES_AT_ONCE: usize = 64;

/// Bytes of answers that are enough to settle at a time, however few series they are.
const ENOUGH_BYTES: u64 = 1 << 20;

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

/// A run to settle.
#[derive(Clone, Copy)]
pub(super) struct Settling<'a> {
    /// The archive before it.
    pub(super) before: &'a Archive,
    pub(super) origin: &'a RunOrigin,
    pub(super) answers: &'a [Answer],
    pub(super) sealed_at: DateTime<Utc>,
    pub(super) conventions: &'a Conventions,
    pub(super) sealed_as: SealedAs<'a>,
}

impl Settling<'_> {
    /// Settles the run: writes its files and its seal to a hidden folder. Returns the seal, and the number of cells that
    /// were known before of the series that were answered.
    pub(super) fn settle(self, folder: &Path) -> Result<(Seal, u64)> {
        let Self { before, origin, answers, sealed_at, conventions, sealed_as } = self;
        let earlier = EarlierAnswers::of(answers, before)?;
        let mut by_series = AnswersBySeries::of(answers, earlier, conventions, before.stop());
        let series = by_series.series();
        let listings = self.changed_listings(&by_series, &series)?;
        let mut out = Rowfile::create(&folder.join(LISTINGS), answers::listing_schema(), 3)?;
        out.write(answers::listing_batch(&listings))?;
        let listing_file = out.finish()?;
        let shared = if self.keeps_validators() { by_series.with_shared_series(&series) } else { HashSet::new() };
        let (mut files, found) = self.settle_all(folder, &mut by_series, &series)?;
        let Findings { mut counts, known, repeated, mut inexact } = found;
        inexact.extend(shared);
        files.push(listing_file);
        counts += answers::listing_counts(&listings);
        let is_fit = |request: &str| self.keeps_validators() && !inexact.contains(request);
        files.push(write_rejects(&folder.join(REJECTS), answers, &repeated)?);
        files.push(write_requests(&folder.join(REQUESTS), answers, &repeated, is_fit)?);
        let mut drift = Vec::new();
        let fields = answers.iter().flat_map(|answer| answer.record.oddities.drift.clone());
        fields.for_each(|field| field.add_to(&mut drift));
        let operations: BTreeSet<Endpoint> = answers.iter().map(|answer| answer.record.request.endpoint).collect();
        let mut seal = Seal {
            definition: Some(self.definition()),
            started_at: origin.started_at,
            sealed_at,
            basis: before.lineage().heads().to_vec(),
            lost: sealed_as.lost.to_vec(),
            operations: operations.into_iter().collect(),
            changes: counts,
            drift,
            files,
            claimed: sealed_as.claimed.cloned(),
            in_part: sealed_as.in_part.map(str::to_owned),
            ..Seal::new(origin.run.clone(), origin.service.clone())
        };
        seal.write(folder)?;
        Ok((seal, known))
    }

    /// Whether the next run may ask if some answers are still the same: the archive is to have all of them from this run.
    fn keeps_validators(&self) -> bool {
        let is_whole = self.sealed_as.in_part.is_none() && self.origin.sealed_answers == 0;
        is_whole && self.answers.iter().any(|answer| answer.record.request.validator.is_some())
    }

    /// The definition of the run, with its text if no run before has the same one.
    fn definition(&self) -> DefinitionRecord {
        let RunOrigin { definition, definition_digest, definition_text, .. } = self.origin;
        let is_known = self.before.definition_text(definition_digest).is_some();
        let text = definition_text.clone().filter(|_| !is_known);
        DefinitionRecord { name: definition.clone(), digest: definition_digest.clone(), text }
    }

    /// The series that answers started or stopped listing, in order.
    fn changed_listings(&self, by_series: &AnswersBySeries<'_>, series: &[AnsweredSeries]) -> Result<Vec<Listing>> {
        let answered: HashMap<Name, (Endpoint, DateTime<Utc>)> = by_series.answered_requests().collect();
        let horizon = self.before.horizon(DateTime::<Utc>::MAX_UTC);
        let mut known = answers::read_listings(self.before.read())?;
        known.retain(|listing| horizon.holds(listing.sealed_at));
        // What another run was answered later is not known yet.
        let by_then =
            |listing: &Listing| answered.get(&listing.request).is_none_or(|(_, at)| listing.observed_at <= *at);
        let later: Vec<Listing> = known.iter().filter(|listing| !by_then(listing)).cloned().collect();
        let known = Listings::latest(known, by_then);
        let partly_read = by_series.partly_read();
        let mut known = known.series().peekable();
        let mut changed = Vec::new();
        let mut compare = |key: &SeriesKey, before: &[Listing], now: BTreeSet<Name>| {
            let is_listed = |listing: &&Listing| listing.change == Change::Added;
            let before: BTreeSet<&Name> = before.iter().filter(is_listed).map(|listing| &listing.request).collect();
            let is_told =
                |request: &&&Name| partly_read.get(&****request).is_none_or(|answer| answer.is_read(&key.ticker));
            let gone = before.iter().filter(|request| answered.contains_key(**request) && !now.contains(**request));
            let gone = gone.filter(is_told);
            let gone = gone.map(|request| (Name::clone(request), Change::Withdrawn));
            let new = now.iter().filter(|request| !before.contains(request));
            let new = new.map(|request| (Name::clone(request), Change::Added));
            changed.extend(gone.chain(new).map(|(request, change)| {
                let ((source, observed_at), sealed_at) = (answered[&request], self.sealed_at);
                Listing { key: key.clone(), source, request, change, observed_at, sealed_at }
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
        let restated = self.restated_listings(&changed, &later)?;
        changed.extend(restated);
        changed.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
        Ok(changed)
    }

    /// Listings that later answers of other runs told by storing nothing: they listed a series as it was listed before,
    /// which is no longer what is known before them.
    fn restated_listings(&self, changed: &[Listing], later: &[Listing]) -> Result<Vec<Listing>> {
        let overlapping = self.overlapping();
        if overlapping.is_empty() {
            return Ok(Vec::new());
        }
        let mut next: HashMap<Name, Vec<DateTime<Utc>>> = HashMap::new();
        for run in overlapping {
            for request in run.requests()? {
                next.entry(request.request.into()).or_default().push(request.observed_at);
            }
        }
        let restated = |listing: &Listing| {
            let answers = next.get(&listing.request)?.iter().filter(|at| **at > listing.observed_at);
            let observed_at = *answers.min()?;
            let is_told = later.iter().any(|other| {
                (&other.key, &other.request, other.observed_at) == (&listing.key, &listing.request, observed_at)
            });
            let change = if listing.change == Change::Withdrawn { Change::Added } else { Change::Withdrawn };
            (!is_told).then(|| Listing { change, observed_at, ..listing.clone() })
        };
        Ok(changed.iter().filter_map(restated).collect())
    }

    /// The sealed runs that were answered after this run began.
    fn overlapping(&self) -> Vec<&SealedRun> {
        let is_overlapping = |run: &&SealedRun| run.seal().sealed_at > self.origin.started_at;
        self.before.runs().iter().filter(is_overlapping).collect()
    }

    /// What these runs were answered, by series, in order.
    fn later_answers(&self) -> Result<LaterAnswers> {
        let mut by_series = LaterAnswers::new();
        for run in self.overlapping() {
            for answer in run.answers()?.into_iter().filter(|answer| answer.observed_at > self.origin.started_at) {
                by_series.entry(answer.key.clone()).or_default().push(answer);
            }
        }
        by_series.values_mut().for_each(|answers| answers.sort_by_key(|answer| answer.observed_at));
        Ok(by_series)
    }

    /// Settles every series and writes the changes to the files of a folder. The next tickers are read and compared
    /// while the last ones are written.
    fn settle_all(
        self,
        folder: &Path,
        by_series: &mut AnswersBySeries<'_>,
        series: &[AnsweredSeries],
    ) -> Result<(Vec<FileRecord>, Findings)> {
        let known = KnownReader::open(self.before)?;
        let later = &self.later_answers()?;
        let mut writing = Writing::create(folder)?;
        let stop = self.before.stop();
        thread::scope(|scope| {
            let (ready, groups) = mpsc::sync_channel(GROUPS_AHEAD);
            // The receiver is gone once a write fails.
            let settle = move || self.settle_groups(known, by_series, series, later, |group| ready.send(group).is_ok());
            thread::Builder::new().spawn_scoped(scope, settle).map_err(Error::start)?;
            groups.into_iter().try_for_each(|group| {
                cancel::check(stop)?;
                writing.write(group?)
            })
        })?;
        writing.finish()
    }

    /// Sends the changes of all tickers, until the receiver stops or a group fails. The next tickers are read while these
    /// are settled.
    fn settle_groups(
        self,
        mut known: KnownReader,
        by_series: &mut AnswersBySeries<'_>,
        series: &[AnsweredSeries],
        later: &LaterAnswers,
        mut send: impl FnMut(Result<Group>) -> bool,
    ) {
        let mut rest = series;
        let mut observations = known.read(&rest[..whole_tickers(by_series, rest)]);
        while !rest.is_empty() {
            let (some, others) = rest.split_at(whole_tickers(by_series, rest));
            let next = &others[..whole_tickers(by_series, others)];
            let group =
                || observations.and_then(|observations| self.settle_group(by_series, some, later, &observations));
            let (group, next) = rayon::join(group, || known.read(next));
            let is_whole = group.is_ok();
            if !send(group) || !is_whole {
                return;
            }
            (rest, observations) = (others, next);
        }
    }

    /// Settles the series of some tickers.
    fn settle_group(
        self,
        by_series: &mut AnswersBySeries<'_>,
        series: &[AnsweredSeries],
        later: &LaterAnswers,
        observations: &Observations,
    ) -> Result<Group> {
        let _work = work!("settle tickers");
        by_series.open(series)?;
        let by_series = &*by_series;
        let settle = |series: &AnsweredSeries| {
            let _work = work!("settle series");
            let (answers, repeated) = by_series.first_copies(series, observations)?;
            let later = later.get(&series.key).map_or(&[][..], Vec::as_slice);
            let compared = self.settle_series(&series.key, answers, later, observations).map_err(merge_failed)?;
            Ok((compared, repeated))
        };
        let mut group = Group::default();
        let mut changes = Vec::new();
        for (mut of_series, mut repeated) in series.par_iter().map(settle).collect::<Result<Vec<_>>>()? {
            of_series.changes.iter().for_each(|changes| group.found.counts += count_changes(&changes.kinds));
            changes.append(&mut of_series.changes);
            group.answers.append(&mut of_series.answers);
            group.found.known += of_series.known;
            group.found.inexact.extend(of_series.inexact);
            group.found.repeated.append(&mut repeated);
        }
        group.rows = batches(changes).map_err(merge_failed)?;
        Ok(group)
    }

    /// The difference between what was known and an answer. A signal that differs by less than the tolerance, or says the
    /// same instant with another offset, is the one that is known.
    fn difference(
        self,
        table: Table,
        (known, answered): (&RecordBatch, &RecordBatch),
        covers: Coverage,
    ) -> Result<Option<Difference>, ArrowError> {
        let found = difference(table, known, answered, covers)?;
        let is_revised = |(kinds, _): &Difference| kinds.contains(&Change::Revised);
        match found {
            Some(found) if table == Table::Signals && is_revised(&found) => {
                difference(table, known, &steadied(known, answered, self.conventions.tolerance)?, covers)
            }
            found => Ok(found),
        }
    }

    /// Settles what each operation answered about a series, one after the other, and what runs were answered later that are
    /// sealed already.
    fn settle_series(
        self,
        key: &SeriesKey,
        answers: Vec<AnswerRows>,
        later: &[SeriesAnswer],
        observations: &Observations,
    ) -> Result<ComparedSeries, ArrowError> {
        let mut compared = ComparedSeries::default();
        let Some(first) = answers.first() else { return Ok(compared) };
        let (table, began) = (first.table, first.observed_at);
        let mut known = observations.values(table, key, began)?;
        compared.known = known.num_rows() as u64;
        let count = answers.len();
        let mut with_validator = Vec::new();
        for (index, answer) in answers.into_iter().enumerate() {
            let AnswerRows { source, request, observed_at, rows, is_read, has_validator, .. } = answer;
            with_validator.extend(has_validator.then(|| (index, rows.clone())));
            let extent = Extent::of(table, &self.conventions.whole);
            let (sealed_at, covers) = (self.sealed_at, Coverage::of(source, table, &rows, extent));
            let covers = if is_read { covers } else { covers.unread() };
            let (rows, edge) = if table == Table::Articles && extent == Extent::FromOldest {
                let (history, as_of) = (observations.rows(table, key), observed_at.timestamp_micros());
                let rows = continue_copies(rows, &known)?;
                let edge = Edge::of(&rows);
                (continue_places(rows, covers, (&history, as_of))?, edge)
            } else {
                (rows, Edge::default())
            };
            let found = self.difference(table, (&known, &rows), covers)?;
            let (key, rows) = (key.clone(), rows.num_rows() as u64);
            compared.answers.push(SeriesAnswer {
                key: key.clone(),
                source,
                request,
                rows,
                covers,
                edge,
                observed_at,
                sealed_at,
            });
            let Some(found) = found else { continue };
            if index + 1 < count {
                known = apply(table, &known, &found)?;
            }
            let (kinds, rows) = found;
            compared.changes.push(Changes { key, source, observed_at, sealed_at, kinds, rows });
        }
        if !compared.changes.is_empty() {
            for answer in later.iter().filter(|answer| answer.observed_at > began) {
                let own = observations.values(table, key, answer.observed_at)?;
                let ours = table.batch(&compared.changes)?;
                let merged = [observations.rows(table, key), ours.project(&Vec::from_iter(0..ours.num_columns() - 1))?];
                compared.changes.extend(restate(answer, &own, &Cells::of(table, &merged)?, self.sealed_at)?);
            }
        }
        if !with_validator.is_empty() {
            let ours = table.batch(&compared.changes)?;
            let ours = ours.project(&Vec::from_iter(0..ours.num_columns() - 1))?;
            let cells = Cells::of(table, &[observations.rows(table, key), ours])?;
            for (index, answered) in with_validator {
                let answer = &compared.answers[index];
                let known = cells.values(cells.all(), answer.observed_at.timestamp_micros())?;
                if !is_held_whole(answer, &known, &answered)? {
                    compared.inexact.push(Arc::clone(&answer.request));
                }
            }
        }
        Ok(compared)
    }
}

/// A series after it was compared with what was known.
#[derive(Default)]
struct ComparedSeries {
    /// None if nothing changed.
    changes: Vec<Changes>,
    /// What was answered.
    answers: Vec<SeriesAnswer>,
    /// The number of cells that were known.
    known: u64,
    /// The requests whose answers cannot be told from what is known after them.
    inexact: Vec<Name>,
}

/// Some whole tickers after settling.
#[derive(Default)]
struct Group {
    /// Changed rows by table, in order.
    rows: Vec<(Table, Rows)>,
    answers: Vec<SeriesAnswer>,
    found: Findings,
}

/// What settling finds besides rows.
#[derive(Default)]
struct Findings {
    counts: Counts,
    /// The number of cells that were known.
    known: u64,
    repeated: Vec<Repeated>,
    /// The requests whose answers cannot be told from what is known after them.
    inexact: HashSet<Name>,
}

/// What runs were answered, by series, in order.
type LaterAnswers = HashMap<SeriesKey, Vec<SeriesAnswer>>;

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

pub(super) fn count_changes(kinds: &[Change]) -> Counts {
    let count = |kind: Change| kinds.iter().filter(|other| **other == kind).count() as u64;
    Counts {
        added: count(Change::Added),
        revised: count(Change::Revised),
        withdrawn: count(Change::Withdrawn),
        ..Counts::default()
    }
}

/// Rows of answers that are written at once.
const ANSWERS_AT_ONCE: usize = 1 << 13;

/// The most rows to concatenate at once.
const PIECE_ROWS: usize = 1 << 15;

/// The files that grow with every group.
struct Writing {
    tables: Tables,
    answers: Rowfile,
    found: Findings,
}

impl Writing {
    fn create(folder: &Path) -> Result<Self> {
        let tables = Tables::create(folder)?;
        let answers = Rowfile::create(&folder.join(ANSWERS), answers::schema(), 0)?.in_groups_of(ANSWERS_AT_ONCE);
        Ok(Self { tables, answers, found: Findings::default() })
    }

    fn write(&mut self, group: Group) -> Result<()> {
        let _work = work!("write changes");
        self.found.repeated.extend(group.found.repeated);
        self.found.inexact.extend(group.found.inexact);
        self.found.counts += group.found.counts;
        self.found.known += group.found.known;
        if !group.answers.is_empty() {
            self.answers.write(answers::batch(&group.answers))?;
        }
        group.rows.into_iter().try_for_each(|(table, rows)| self.tables.write(table, &rows))
    }

    fn finish(self) -> Result<(Vec<FileRecord>, Findings)> {
        let mut files = self.tables.finish()?;
        files.push(self.answers.finish()?);
        Ok((files, self.found))
    }
}

/// A file per table.
pub(super) struct Tables(Vec<Rowfile>);

impl Tables {
    pub(in crate::archive) fn create(folder: &Path) -> Result<Self> {
        // Sorted by series, and within it by cell.
        let create =
            |table: Table| Rowfile::create(&folder.join(table.file()), table.file_schema(), table.key_columns());
        Ok(Self(Table::ALL.into_iter().map(create).collect::<Result<_>>()?))
    }

    /// Adds rows of a table, which come in order.
    pub(in crate::archive) fn write(&mut self, table: Table, rows: &Rows) -> Result<()> {
        self.0[table as usize].add(rows)
    }

    pub(in crate::archive) fn finish(self) -> Result<Vec<FileRecord>> {
        self.0.into_iter().map(Rowfile::finish).collect()
    }
}

/// Changes as rows of their tables, in the given order.
pub(super) fn batches(changes: Vec<Changes>) -> Result<Vec<(Table, Rows)>, ArrowError> {
    let mut by_table: BTreeMap<Table, Vec<Changes>> = BTreeMap::new();
    for changes in changes {
        if let Some(table) = changes.key.table {
            by_table.entry(table).or_default().push(changes);
        }
    }
    let mut pieces: Vec<(Table, Vec<Changes>)> = Vec::new();
    for (table, changes) in by_table {
        let mut rows = PIECE_ROWS;
        let mut last: Option<SeriesKey> = None;
        for changes in changes {
            let is_continued = last.as_ref() == Some(&changes.key);
            if rows >= PIECE_ROWS && !is_continued {
                pieces.push((table, Vec::new()));
                rows = 0;
            }
            rows += changes.kinds.len();
            last = Some(changes.key.clone());
            pieces.last_mut().expect("the first changes begin a piece").1.push(changes);
        }
    }
    let rows = |(table, changes): (Table, Vec<Changes>)| {
        let rows = table.batch(&changes)?;
        // Several answers about a series are sorted by cell.
        let is_continued = |pair: &[Changes]| pair[0].key == pair[1].key;
        let rows = if changes.windows(2).any(is_continued) { Cells::as_stored(table, [&rows])?.rows } else { rows };
        Ok((table, rows.into()))
    };
    pieces.into_par_iter().map(rows).collect()
}

/// Writes the rejected records of some answers, and the series that they repeat.
fn write_rejects(path: &Path, answers: &[Answer], repeated: &[Repeated]) -> Result<FileRecord> {
    let mut out = Rowfile::create(path, Reject::schema(), 0)?;
    for answer in answers {
        let Some(batches) = AnswerBatches::open(answer, RowKind::Rejects, &mut Files::default())? else { continue };
        for index in 0..batches.count() {
            out.write(with_observation_time(&batches.get(index)?, answer.record.request.observed_at))?;
        }
    }
    for Repeated { reject, observed_at, .. } in repeated {
        out.write(
            Reject::batch(std::slice::from_ref(reject)).and_then(|rows| with_observation_time(&rows, *observed_at)),
        )?;
    }
    out.finish()
}

/// Rows with the instant of their observation.
fn with_observation_time(rows: &RecordBatch, observed_at: DateTime<Utc>) -> Result<RecordBatch, ArrowError> {
    let seen = std::iter::repeat_n(observed_at.timestamp_micros(), rows.num_rows());
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")));
    RecordBatch::try_new(Reject::schema(), columns)
}

/// Writes the requests. Series repeated with other values count as rejected. Answers have their validators if all of their
/// records could be read, and the archive holds them whole.
fn write_requests(
    path: &Path,
    answers: &[Answer],
    repeated: &[Repeated],
    is_fit: impl Fn(&str) -> bool,
) -> Result<FileRecord> {
    let mut repeating: HashMap<&str, u64> = HashMap::new();
    for Repeated { reject, records, .. } in repeated {
        *repeating.entry(&reject.request).or_default() += records;
    }
    let record = |AnswerRecord { request, oddities, .. }: &AnswerRecord| {
        let repeated = repeating.get(request.request.as_str()).copied().unwrap_or_default();
        let rejects = request.rejects + repeated;
        let is_known = rejects == 0 && Table::of(request.endpoint).is_some() && is_fit(&request.request);
        RequestRecord {
            rows: request.rows.saturating_sub(repeated),
            rejects,
            validator: request.validator.clone().filter(|_| is_known),
            unknown_fields: oddities.drift.clone(),
            ..request.clone()
        }
    };
    let records: Vec<RequestRecord> = answers.iter().map(|answer| record(&answer.record)).collect();
    let mut out = Rowfile::create(path, RequestRecord::schema(), 0)?;
    out.write(RequestRecord::batch(&records))?;
    out.finish()
}

/// What a run is sealed as.
#[derive(Clone, Copy, Default)]
pub(crate) struct SealedAs<'a> {
    /// The runs that are gone and that it goes on without.
    pub(crate) lost: &'a [String],
    /// What it was imported from, if it is a claim.
    pub(crate) claimed: Option<&'a Claim>,
    /// Why not all of its requests were answered, if so.
    pub(crate) in_part: Option<&'a str>,
    /// Whether the next run goes on from its answers.
    pub(crate) resumes: bool,
}
