//! Merges: one folder for what histories that meet must say of one another.
//!
//! A run stores differences from what its machine knew. When another machine's runs arrive, the two histories together
//! would say something that none of the machines was told: an answer that was unchanged on one machine stored nothing,
//! although the other had seen another value before it. A merge states such answers again, each at its own instant, so
//! that the known values are those of one machine that had received all answers itself.
//!
//! A restated row counts from the later seal of the two runs that it is about, so the view as of any instant is right. It
//! is true whatever else is known, so merges may overlap. A merge is a function of the runs, and of nothing in other
//! merges: every machine writes the same bytes. So merges are never packed; one that joins the runs of another replaces
//! it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::pack::{HiddenFolder, name_of_runs, observations};
use crate::archive::fold::cells::Cells;
use crate::archive::merge_failed;
use crate::archive::sealed::answers::{self, ANSWERS, LISTINGS, Listing, Name, SeriesAnswer};
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::layout::{REJECTS, REQUESTS, SEALED_AT};
use crate::archive::sealed::rows::{self, Rowfile, observation_times};
use crate::archive::sealed::seal::{Counts, Joined, SEAL, Seal};
use crate::archive::sealed::sealed_run::SealedRun;
use crate::archive::settle::difference::restate;
use crate::archive::settle::{Tables, batches, count_changes};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::{links, remove};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Claims;
use crate::process::cancel::{self, CancellationToken};
use crate::process::trace::work;
use crate::tables::{Change, Changes, Reject, RequestRecord, SeriesKey, Table};

/// How often an archive is merged again because runs arrived meanwhile.
const MOST_MERGES: usize = 8;

/// Opens an archive, and merges histories that met since it was last opened.
///
/// # Errors
///
/// If the archive cannot be read; if there is something to merge and it cannot be written; once the token is cancelled.
pub fn open_merged(path: &Path, stop: &CancellationToken) -> Result<Archive> {
    open_merged_with(path, Claims::LeftOut, stop)
}

/// The same, perhaps with the claims that are beside it: they and the runs are histories that meet.
pub(crate) fn open_merged_with(path: &Path, claims: Claims, stop: &CancellationToken) -> Result<Archive> {
    let open = || Ok(Archive::open_with(path, claims)?.until(stop));
    let archive = open()?;
    // What the others were compared with is not known while a run is missing.
    if archive.missing().next().is_some() { Ok(archive) } else { merge_all(archive, open) }
}

/// An archive as if it had some of its runs alone, with their histories merged.
pub(in crate::archive) fn open_merged_part(archive: &Archive, is_known: impl Fn(&str) -> bool) -> Result<Archive> {
    let open = || Ok(archive.reopen()?.until(archive.stop()).of_runs(&is_known));
    merge_all(open()?, open)
}

/// Merges the histories of an archive, and opens it again until there are no more to merge.
fn merge_all(mut archive: Archive, open: impl Fn() -> Result<Archive>) -> Result<Archive> {
    for _ in 0..MOST_MERGES {
        let runs = archive.runs_to_merge();
        if runs.is_empty() {
            break;
        }
        merge(&archive, &runs)?;
        archive = open()?;
    }
    Ok(archive)
}

/// Merges the histories of some runs, which are in the order in which they were sealed.
fn merge(archive: &Archive, runs: &BTreeSet<usize>) -> Result<()> {
    let _work = work!("merge histories");
    let seals: Vec<Seal> = runs.iter().map(|run| archive.runs()[*run].seal().clone()).collect();
    let last = seals.last().expect("there are runs to merge");
    let name = name_of_runs(&seals);
    let merges = archive.merges();
    let begin = || {
        if archive.claims().is_some() {
            links::folder(&merges)?;
        }
        HiddenFolder::begin(&merges, &name)
    };
    let work = begin().map_err(|error| match FileError::is_denied(&error) {
        true => Error::new(ErrorKind::Storage, "histories met, and their merge cannot be written")
            .with_hint(
                "give this command once as a user who may write to the archive: the merge is then there for everybody",
            )
            .with_source(error),
        false => error,
    })?;
    let joining = Joining::new(archive, runs)?;
    let (mut files, mut changes) = joining.write(&work.path)?;
    let listings = joining.listings()?;
    changes += answers::listing_counts(&listings);
    let mut out = Rowfile::create(&work.path.join(LISTINGS), answers::listing_schema(), 3)?;
    out.write(answers::listing_batch(&listings))?;
    files.push(out.finish()?);
    // A merge was not answered anything itself.
    let no_rows = [(ANSWERS, answers::schema()), (REJECTS, Reject::schema()), (REQUESTS, RequestRecord::schema())];
    for (name, schema) in no_rows {
        files.push(Rowfile::create(&work.path.join(name), schema, 0)?.finish()?);
    }
    let joins = seals.iter().map(|run| Joined { run: run.run.clone(), sealed_at: run.sealed_at });
    let mut seal = Seal {
        started_at: seals.iter().map(|run| run.started_at).min().unwrap_or_default(),
        sealed_at: last.sealed_at,
        changes,
        files,
        joins: joins.collect(),
        ..Seal::new(name.clone(), last.service.clone())
    };
    seal.write(&work.path)?;
    cancel::check(archive.stop())?;
    work.publish(&merges.join(seal.folder_name())).map(drop)
}

/// An answer of one of the runs, by the index of the run.
#[derive(Clone, Debug)]
struct RunAnswer {
    run: usize,
    answer: SeriesAnswer,
}

/// Runs that are being joined.
struct Joining<'a> {
    archive: &'a Archive,
    /// The indices of the runs in the archive, in the order in which they were sealed.
    runs: &'a BTreeSet<usize>,
    /// The index of the run that was sealed at an instant.
    sealed: HashMap<i64, usize>,
    /// What the runs were answered about each series.
    answers: HashMap<SeriesKey, Vec<RunAnswer>>,
}

/// Where a row comes from.
#[derive(Clone, Copy)]
struct RowOrigin {
    /// The run whose answer it is.
    answer: usize,
    /// The run that it counts from.
    seal: usize,
}

impl<'a> Joining<'a> {
    fn new(archive: &'a Archive, runs: &'a BTreeSet<usize>) -> Result<Self> {
        let sealed = archive.runs().iter().enumerate();
        let sealed = sealed.map(|(index, run)| (run.seal().sealed_at.timestamp_micros(), index)).collect();
        let mut answers: HashMap<SeriesKey, Vec<RunAnswer>> = HashMap::new();
        for &run in runs {
            for answer in archive.runs()[run].answers()? {
                answers.entry(answer.key.clone()).or_default().push(RunAnswer { run, answer });
            }
        }
        Ok(Self { archive, runs, sealed, answers })
    }

    /// When a run was sealed.
    fn sealed_at(&self, run: usize) -> DateTime<Utc> {
        self.archive.runs()[run].seal().sealed_at
    }

    fn knew(&self, one: usize, other: usize) -> bool {
        self.archive.lineage().knew(one, other)
    }

    /// Writes the restated rows of all tables.
    fn write(&self, folder: &Path) -> Result<(Vec<FileRecord>, Counts)> {
        let mut tables = Tables::create(folder)?;
        let mut counts = Counts::default();
        let folders: Vec<&Arc<Folder>> = self.archive.read_runs().collect();
        for table in Table::ALL {
            for rows in observations(&folders, table)? {
                let changes = self.portion(table, &rows?)?;
                changes.iter().for_each(|changes| counts += count_changes(&changes.kinds));
                for (table, rows) in batches(changes).map_err(merge_failed)? {
                    tables.write(table, &rows)?;
                }
            }
        }
        Ok((tables.finish()?, counts))
    }

    /// The restated answers about some series, of which all rows, or all rows of some dates, are given.
    fn portion(&self, table: Table, rows: &RecordBatch) -> Result<Vec<Changes>> {
        let is_of_runs = |sealed: &i64| self.sealed.get(sealed).is_some_and(|run| self.runs.contains(run));
        let mut restated = Vec::new();
        if !seal_times(rows).iter().any(is_of_runs) {
            return Ok(restated);
        }
        for (key, range) in rows::ranges(table, rows).map_err(merge_failed)? {
            let rows = rows.slice(range.start, range.len());
            if let Some(answers) = self.answers.get(&key)
                && seal_times(&rows).iter().any(is_of_runs)
            {
                cancel::check(self.archive.stop())?;
                restated.extend(self.series(table, rows, answers).map_err(merge_failed)?);
            }
        }
        Ok(restated)
    }

    /// The restated answers about a series.
    fn series(&self, table: Table, rows: RecordBatch, answers: &[RunAnswer]) -> Result<Vec<Changes>, ArrowError> {
        let origins = self.origins(&rows, answers);
        let mut answers: Vec<&RunAnswer> = answers.iter().collect();
        answers.sort_by_key(|it| (it.answer.observed_at, it.run, it.answer.source));
        let all = (0..self.archive.runs().len()).collect();
        let mut histories = Histories { joining: self, table, rows, origins, answers, of_pasts: BTreeMap::new() };
        Ok(histories.of(&all)?.restated.clone())
    }

    /// Where each row of a series comes from.
    fn origins(&self, rows: &RecordBatch, answers: &[RunAnswer]) -> Vec<RowOrigin> {
        let mut answered: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for it in answers {
            answered.entry(it.answer.observed_at.timestamp_micros()).or_default().push(it.run);
        }
        let origin = |(seen, sealed): (&i64, &i64)| {
            let seal = self.sealed.get(sealed).copied().unwrap_or(usize::MAX);
            let runs = answered.get(seen).map_or(&[][..], Vec::as_slice);
            let answer = if runs.contains(&seal) { None } else { runs.first().copied() };
            RowOrigin { answer: answer.unwrap_or(seal), seal }
        };
        observation_times(rows).values().iter().zip(seal_times(rows)).map(origin).collect()
    }

    /// The restated listings, likewise: an answer to a request lists all its series.
    fn listings(&self) -> Result<Vec<Listing>> {
        let mut requests: HashMap<Name, Vec<(DateTime<Utc>, usize)>> = HashMap::new();
        for &run in self.runs {
            for request in self.archive.runs()[run].requests()? {
                requests.entry(request.request.into()).or_default().push((request.observed_at, run));
            }
        }
        let mut restated = Vec::new();
        let folders: Vec<Arc<Folder>> = self.archive.read_runs().cloned().collect();
        let known = answers::read_listings(&folders)?;
        let is_same = |one: &Listing, next: &Listing| (&one.key, &one.request) == (&next.key, &next.request);
        for of_request in known.chunk_by(is_same) {
            let Some(answers) = requests.get_mut(&of_request[0].request) else { continue };
            answers.sort_unstable();
            restated.extend(self.listing(of_request, answers));
        }
        restated.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
        Ok(restated)
    }

    /// The restated listings of a series by a request, with the answers to it, in order.
    fn listing(&self, listings: &[Listing], answers: &[(DateTime<Utc>, usize)]) -> Vec<Listing> {
        let origin = |listing: &Listing| {
            let seal = self.sealed.get(&listing.sealed_at.timestamp_micros()).copied().unwrap_or(usize::MAX);
            let runs: Vec<usize> =
                answers.iter().filter(|(at, _)| *at == listing.observed_at).map(|(_, run)| *run).collect();
            let answer = if runs.contains(&seal) { None } else { runs.first().copied() };
            RowOrigin { answer: answer.unwrap_or(seal), seal }
        };
        let mut known: Vec<(Listing, RowOrigin)> = listings.iter().map(|it| (it.clone(), origin(it))).collect();
        let before = known.len();
        let runs: BTreeSet<usize> = answers.iter().map(|(_, run)| *run).collect();
        for &run in &runs {
            if runs.range(..run).all(|&earlier| self.knew(run, earlier)) {
                continue;
            }
            let began = answers.iter().find(|(_, of)| *of == run).map(|(at, _)| *at);
            for &(at, of) in answers {
                let is_later = of < run && Some(at) > began && !self.knew(of, run);
                if of != run && !is_later {
                    continue;
                }
                let is_listed = |counts: &dyn Fn(&RowOrigin) -> bool| {
                    let by_then = known.iter().filter(|(it, origin)| it.observed_at <= at && counts(origin));
                    let last = by_then.max_by_key(|(it, _)| (it.observed_at, it.change as i8, it.sealed_at));
                    last.is_some_and(|(it, _)| it.change == Change::Added)
                };
                let own = is_listed(&|it| self.knew(of, it.answer) && self.knew(of, it.seal));
                if own != is_listed(&|it| it.seal <= run && it.answer <= run) {
                    let change = if own { Change::Added } else { Change::Withdrawn };
                    let listing =
                        Listing { change, observed_at: at, sealed_at: self.sealed_at(run), ..listings[0].clone() };
                    known.push((listing, RowOrigin { answer: of, seal: run }));
                }
            }
        }
        known.drain(before..).map(|(listing, _)| listing).collect()
    }
}

/// When the runs were sealed that rows count from.
fn seal_times(rows: &RecordBatch) -> &[i64] {
    let column = rows.column_by_name(SEALED_AT).expect("every file has the column");
    column.as_primitive::<TimestampMicrosecondType>().values()
}

/// What sets of runs say of a series.
struct Histories<'a> {
    joining: &'a Joining<'a>,
    table: Table,
    /// The rows of all runs, and where each comes from.
    rows: RecordBatch,
    origins: Vec<RowOrigin>,
    /// In the order in which they were observed.
    answers: Vec<&'a RunAnswer>,
    of_pasts: BTreeMap<BTreeSet<usize>, Rc<JointHistory>>,
}

/// What some runs say of a series together.
struct JointHistory {
    /// Their rows, and those that state their answers again.
    rows: RecordBatch,
    restated: Vec<Changes>,
}

impl Histories<'_> {
    /// What some runs say: run by run in the order of their seals, each answer that may be later than what the run adds is
    /// compared with what is known by then. What an answer was compared with when it was given is what its own past says.
    fn of(&mut self, runs: &BTreeSet<usize>) -> Result<Rc<JointHistory>, ArrowError> {
        if let Some(known) = self.of_pasts.get(runs) {
            return Ok(Rc::clone(known));
        }
        let joining = self.joining;
        let is_of_runs = |it: &RowOrigin| runs.contains(&it.answer) && runs.contains(&it.seal);
        let of_runs: BooleanArray = self.origins.iter().map(|it| Some(is_of_runs(it))).collect();
        let mut rows = filter_record_batch(&self.rows, &of_runs)?;
        let mut origins: Vec<RowOrigin> = self.origins.iter().copied().filter(is_of_runs).collect();
        let mut restated: Vec<Changes> = Vec::new();
        let answers: Vec<&RunAnswer> = self.answers.iter().copied().filter(|it| runs.contains(&it.run)).collect();
        let answering: BTreeSet<usize> = answers.iter().map(|it| it.run).collect();
        for &run in &answering {
            if answering.range(..run).all(|&earlier| joining.knew(run, earlier)) {
                continue;
            }
            let began = answers.iter().find(|it| it.run == run).map(|it| it.answer.observed_at);
            let may_differ = |it: &&&RunAnswer| {
                let is_later = it.run < run && Some(it.answer.observed_at) > began && !joining.knew(it.run, run);
                it.run == run || is_later
            };
            for RunAnswer { run: of, answer } in answers.iter().filter(may_differ) {
                let past = runs.iter().copied().filter(|other| joining.knew(*of, *other)).collect();
                let past = self.of(&past)?;
                let own = Cells::of(self.table, [&past.rows])?;
                let own = own.values(own.all(), answer.observed_at.timestamp_micros())?;
                let merged = cells_that_count(self.table, &rows, &origins, |it| it.seal <= run && it.answer <= run)?;
                let Some(changes) = restate(answer, &own, &merged, joining.sealed_at(run))? else { continue };
                let more = self.table.batch(std::slice::from_ref(&changes))?;
                origins.extend(std::iter::repeat_n(RowOrigin { answer: *of, seal: run }, more.num_rows()));
                rows = concat_batches(&self.table.file_schema(), [&rows, &more])?;
                restated.push(changes);
            }
        }
        let history = Rc::new(JointHistory { rows, restated });
        self.of_pasts.insert(runs.clone(), Rc::clone(&history));
        Ok(history)
    }
}

/// The cells of a series, of the rows that count.
fn cells_that_count(
    table: Table,
    rows: &RecordBatch,
    origins: &[RowOrigin],
    counts: impl Fn(&RowOrigin) -> bool,
) -> Result<Cells, ArrowError> {
    let counting: BooleanArray = origins.iter().map(|origin| Some(counts(origin))).collect();
    Cells::of(table, [&filter_record_batch(rows, &counting)?])
}

/// Copies the wanted runs of an archive into a new folder; `None` if a wanted run is only in a pack that also has runs
/// that are not. A pack may have runs that do not count: they do not in the copy either. Sealed files never change, so they
/// are linked where possible.
pub(crate) fn copy(
    archive: &Archive,
    target: &Path,
    is_wanted: impl Fn(&SealedRun) -> bool,
) -> Result<Option<Archive>> {
    let wanted: BTreeSet<&str> = archive.runs().iter().filter(|run| is_wanted(run)).map(SealedRun::name).collect();
    let left_out: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
    fs::create_dir(target).map_err(FileError::write(target))?;
    let mut copied: BTreeSet<&str> = BTreeSet::new();
    for folder in archive.folders() {
        let mut runs =
            folder.seal().runs().map(|run| run.run.as_str()).filter(|run| !left_out.contains(run)).peekable();
        // Without its runs, a merge is of no use; with fewer, another one is made.
        if runs.peek().is_none() || !runs.clone().all(|run| wanted.contains(run)) {
            continue;
        }
        let target = target.join(folder.seal().folder_name());
        match copy_folder(folder, &target, archive.stop()) {
            Ok(()) => copied.extend(runs),
            // It was pruned meanwhile: a pack has its runs.
            Err(_) if file::is_gone(folder.path()) => remove::folder(&target).map_err(FileError::write(&target))?,
            Err(error) => return Err(error),
        }
    }
    archive.notes_on_forgotten().try_for_each(|note| note.add_to(target))?;
    if copied == wanted { open_merged(target, archive.stop()).map(Some) } else { Ok(None) }
}

fn copy_folder(folder: &Folder, target: &Path, stop: &CancellationToken) -> Result<()> {
    fs::create_dir(target).map_err(FileError::write(target))?;
    for name in folder.seal().files.iter().map(|file| file.name.as_str()).chain([SEAL]) {
        cancel::check(stop)?;
        links::link_or_copy(&folder.path().join(name), &target.join(name))?;
    }
    Ok(())
}
