//! Seals a run: works out what its answers changed, writes it in order, and renames the folder into place.
//!
//! Answers are merged with what the archive knows in ticker order, a few tickers at a time, so memory follows their
//! size and not that of the run. Only the answered series are read. Where runs overlap in time, an answer may come before
//! others that are sealed already: these are stated again after it (`restate`).

mod by_series;
pub(super) mod difference;
#[cfg(test)]
mod tests;
mod writing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use self::by_series::{AnswerRows, AnsweredSeries, AnswersBySeries, KnownReader, Observations, Repeated};
use self::difference::{Difference, apply, continue_places, difference, restate, steadied};
pub(super) use self::writing::{Tables, batches};
use self::writing::{Writing, write_rejects, write_requests};
use super::answers::Answer;
use super::as_before::{EarlierAnswers, is_held_whole};
use super::coverage::{Coverage, Extent};
use super::edge::{Edge, continue_copies};
use super::fold::cells::Cells;
use super::sealed::answers::SeriesAnswer;
use super::sealed::catalog::Archive;
use super::sealed::listings::{self, LISTINGS, Listing, Listings, Name};
use super::sealed::rowfile::Rowfile;
use super::sealed::seal::{Counts, DefinitionRecord, RunOrigin, Seal};
use super::sealed::sealed_run::{REJECTS, REQUESTS, SealedRun};
use super::unfinished::SealedAs;
use crate::archive::merge_failed;
use crate::columns::Rows;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::remove;
use crate::error::{Error, Result};
use crate::interface::Endpoint;
use crate::process::cancel;
use crate::process::trace::work;
use crate::tables::{Change, Changes, Conventions, SeriesKey, Table};

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
        let mut out = Rowfile::create(&folder.join(LISTINGS), listings::schema(), 3)?;
        out.write(listings::batch(&listings))?;
        let listing_file = out.finish()?;
        let shared = if self.keeps_validators() { by_series.with_shared_series(&series) } else { HashSet::new() };
        let (mut files, found) = self.settle_all(folder, &mut by_series, &series)?;
        let Findings { mut counts, known, repeated, mut inexact } = found;
        inexact.extend(shared);
        files.push(listing_file);
        counts += listings::count(&listings);
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
        let mut known = listings::read(self.before.read())?;
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
