//! Writes the runs of a service in the current layout: a few hundred at a time, each table in one pass over the old
//! folders, and each run's folder appears once it is complete and durable.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};

use super::error::MigrateError;
use super::legacy::{LAYOUT as LEGACY_LAYOUT, LegacyRun};
use super::rows::{LegacySource, changed_rows, seal_times};
use crate::archive::coverage::Coverage;
use crate::archive::edge::Edge;
use crate::archive::fold::cells::Cells;
use crate::archive::merge_failed;
use crate::archive::sealed::answers::{self, ANSWERS, SeriesAnswer};
use crate::archive::sealed::bound::Cuts;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::keys::{self, ParsedDictionary};
use crate::archive::sealed::listings::{self, LISTINGS, Listing, Name};
use crate::archive::sealed::requests::{REJECTS, REQUESTS};
use crate::archive::sealed::rowfile::Rowfile;
use crate::archive::sealed::rows::{changes, observation_times};
use crate::archive::sealed::seal::{Counts, LAYOUT, Migrated, Parent, Seal};
use crate::archive::settle::count_changes;
use crate::archive::upkeep::PackFolder;
use crate::disk::file::{self, FileError, FileRecord};
use crate::error::{ErrorKind, Reason, Result};
use crate::interface::Endpoint;
use crate::plan::{Request, ServiceIdentity};
use crate::process::cancel;
use crate::tables::{Reject, RequestRecord, SeriesKey, Table};

/// The most runs that are written at once: each has a file open.
const RUNS_AT_ONCE: usize = 128;

/// Rows are written in pieces of this many, so that files do not depend on how the old rows were stored.
const PIECE_ROWS: usize = 1 << 12;

/// The runs of a service that are migrated.
pub(super) struct Writing<'a> {
    /// The folder of the service.
    pub(super) target: &'a Path,
    pub(super) source: LegacySource<'a>,
    /// The service of each run, by its index among all.
    pub(super) services: &'a [ServiceIdentity],
    pub(super) requests: &'a [Vec<RequestRecord>],
    pub(super) listings: &'a [Vec<Listing>],
}

impl Writing<'_> {
    /// Writes the runs that are not there yet, one after the other. Calls `done` for each that was written.
    pub(super) fn write(&self, mut done: impl FnMut(&Seal)) -> Result<()> {
        file::create_folders(self.target)?;
        let there = Archive::open(self.target)?;
        let there: HashMap<&str, &Seal> = there.runs().iter().map(|run| (run.name(), run.seal())).collect();
        let mut parent: Option<Parent> = None;
        let mut runs = self.source.runs;
        while let Some(&first) = runs.first() {
            if let Some(seal) = there.get(self.source.run(first).name()) {
                if !is_of(seal, self.source.run(first)) || seal.basis != Vec::from_iter(parent) {
                    return Err(MigrateError::Differs { path: self.target.join(seal.folder_name()) }.into());
                }
                (parent, runs) = (Some(seal.parent()), &runs[1..]);
                continue;
            }
            let is_new = |run: &&usize| !there.contains_key(self.source.run(**run).name());
            let count = runs.iter().take(RUNS_AT_ONCE).take_while(is_new).count();
            parent = self.some(&runs[..count], parent, &mut done)?;
            runs = &runs[count..];
        }
        Ok(())
    }

    /// Writes some runs after a parent, and returns the last of them.
    fn some(&self, runs: &[usize], mut parent: Option<Parent>, mut done: impl FnMut(&Seal)) -> Result<Option<Parent>> {
        let begin = |run: &usize| {
            let folder = PackFolder::begin(self.target, self.source.run(*run).name())?;
            Ok(RunDraft { folder, files: Vec::new(), counts: Counts::default(), observations: BTreeSet::new() })
        };
        let mut drafts = runs.iter().map(begin).collect::<Result<Vec<_>>>()?;
        for table in Table::ALL {
            self.table(table, runs, &mut drafts)?;
        }
        for (draft, &run) in drafts.into_iter().zip(runs) {
            cancel::check(&self.source.legacy.stop)?;
            let RunDraft { folder, mut files, mut counts, observations } = draft;
            self.others(run, &folder.path, &observations, &mut files)?;
            counts += listings::count(&self.listings[run]);
            let mut seal = self.seal(run, files, counts, parent.take());
            seal.write(&folder.path)?;
            file::rename_durably(&folder.path, &self.target.join(seal.folder_name()))?;
            parent = Some(seal.parent());
            done(&seal);
        }
        Ok(parent)
    }

    /// Writes a table of some runs.
    fn table(&self, table: Table, runs: &[usize], drafts: &mut [RunDraft]) -> Result<()> {
        let instant = |run: usize| self.source.run(run).seal().sealed_at.timestamp_micros();
        let index_of: HashMap<i64, usize> =
            runs.iter().enumerate().map(|(index, &run)| (instant(run), index)).collect();
        let create = |draft: &RunDraft| {
            let path = draft.folder.path.join(table.file());
            PieceWriter::create(&path, table.file_schema(), table.key_columns())
        };
        let mut out = drafts.iter().map(create).collect::<Result<Vec<_>>>()?;
        let mut merged = self.source.merge(table)?;
        while let Some(portion) = merged.next(Cuts::of_cells(table))? {
            let cells = Cells::as_stored(table, &portion.batches).map_err(merge_failed)?;
            for (index, rows) in by_run(&cells.rows, &index_of)? {
                observed_by(table, &rows, &mut drafts[index].observations).map_err(merge_failed)?;
            }
            let rows = changed_rows(&cells).map_err(merge_failed)?;
            for (index, rows) in by_run(&rows, &index_of)? {
                drafts[index].counts += count_changes(&changes(&rows));
                out[index].write(rows)?;
            }
        }
        for (out, draft) in out.into_iter().zip(drafts) {
            draft.files.push(out.finish()?);
        }
        Ok(())
    }

    /// Writes the files of a run that are not tables.
    fn others(
        &self,
        run: usize,
        folder: &Path,
        observations: &BTreeSet<Observation>,
        files: &mut Vec<FileRecord>,
    ) -> Result<()> {
        let old = self.source.run(run);
        let answers = self.answers(run, observations).map_err(|reason| FileError::damage(old.run.path(), reason))?;
        let mut out = Rowfile::create(&folder.join(ANSWERS), answers::schema(), 0)?;
        out.write(answers::batch(&answers))?;
        files.push(out.finish()?);
        let mut out = Rowfile::create(&folder.join(LISTINGS), listings::schema(), 3)?;
        out.write(listings::batch(&self.listings[run]))?;
        files.push(out.finish()?);
        let mut out = PieceWriter::create(&folder.join(REJECTS), Reject::schema(), 0)?;
        old.run.rejects()?.try_for_each(|rows| out.write(rows?))?;
        files.push(out.finish()?);
        let mut out = Rowfile::create(&folder.join(REQUESTS), RequestRecord::schema(), 0)?;
        out.write(RequestRecord::batch(&self.requests[run]))?;
        files.push(out.finish()?);
        Ok(())
    }

    /// What is known of the answers: which series they changed, and of which ticker those were that changed nothing. What
    /// they covered is not known, so they cover nothing.
    fn answers(&self, run: usize, observations: &BTreeSet<Observation>) -> Result<Vec<SeriesAnswer>, Reason> {
        let mut requests: HashMap<(DateTime<Utc>, Endpoint), &str> = HashMap::new();
        for request in &self.requests[run] {
            let known = requests.entry((request.observed_at, request.endpoint)).or_insert(&request.request);
            *known = request.request.as_str().min(known);
        }
        let mut names: HashMap<&str, Name> = HashMap::new();
        let answer = |(key, source, observed_at): &Observation| {
            let request =
                requests.get(&(*observed_at, *source)).ok_or("a row was observed when its run was not answered")?;
            let request = Arc::clone(names.entry(request).or_insert_with(|| Name::from(*request)));
            Ok(SeriesAnswer {
                key: key.clone(),
                source: *source,
                request,
                rows: 0,
                covers: Coverage::Nothing,
                edge: Edge::default(),
                observed_at: *observed_at,
                sealed_at: self.source.run(run).seal().sealed_at,
            })
        };
        let of_ticker = |request: &RequestRecord| {
            let ticker = Request::ticker_of(request.endpoint, &request.request)?;
            let key = SeriesKey::of_ticker(request.endpoint, ticker);
            key.table.is_some_and(|table| table != Table::Signals).then_some((
                key,
                request.endpoint,
                request.observed_at,
            ))
        };
        let confirmed: BTreeSet<Observation> = self.requests[run].iter().filter_map(of_ticker).collect();
        confirmed.union(observations).map(answer).collect()
    }

    fn seal(&self, run: usize, files: Vec<FileRecord>, changes: Counts, parent: Option<Parent>) -> Seal {
        let old = self.source.run(run).seal();
        let operations: BTreeSet<Endpoint> = self.requests[run].iter().map(|request| request.endpoint).collect();
        Seal {
            layout: LAYOUT,
            service: self.services[run].clone(),
            basis: parent.into_iter().collect(),
            operations: operations.into_iter().collect(),
            changes,
            files,
            migrated: Some(Migrated { layout: LEGACY_LAYOUT, seal: old.seal.clone() }),
            claimed: None,
            seal: String::new(),
            ..old.clone()
        }
    }
}

/// A run that is being written.
struct RunDraft {
    folder: PackFolder,
    files: Vec<FileRecord>,
    counts: Counts,
    observations: BTreeSet<Observation>,
}

/// A series that an operation answered at an instant.
type Observation = (SeriesKey, Endpoint, DateTime<Utc>);

/// Collects what some rows were observed by.
fn observed_by(table: Table, rows: &RecordBatch, observations: &mut BTreeSet<Observation>) -> Result<(), Reason> {
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let seen = observation_times(rows).values();
    for (key, range) in keys::ranges(table, rows)? {
        let mut last = None;
        for row in range {
            let source = sources.get(row)?.ok_or("a row has no operation")?;
            if last.replace((source, seen[row])) == Some((source, seen[row])) {
                continue;
            }
            let observed_at = DateTime::from_timestamp_micros(seen[row]).ok_or("an instant is out of range")?;
            observations.insert((key.clone(), source, observed_at));
        }
    }
    Ok(())
}

/// The rows of each run, by the instants at which they were sealed.
fn by_run(rows: &RecordBatch, index_of: &HashMap<i64, usize>) -> Result<Vec<(usize, RecordBatch)>> {
    let instants = seal_times(rows);
    let present: BTreeSet<(usize, i64)> =
        instants.iter().filter_map(|sealed| Some((*index_of.get(sealed)?, *sealed))).collect();
    let of_run = |(index, instant): (usize, i64)| {
        let is_of_run = instants.iter().map(|sealed| Some(*sealed == instant)).collect();
        Ok((index, filter_record_batch(rows, &is_of_run).map_err(merge_failed)?))
    };
    present.into_iter().map(of_run).collect()
}

/// Whether a run is the one of an old seal.
pub(super) fn is_of(seal: &Seal, old: &LegacyRun) -> bool {
    seal.migrated.as_ref().is_some_and(|migrated| migrated.seal == old.seal().seal)
}

/// The runs in an archive of the current layout, which may not exist.
pub(super) fn sealed_in(target: &Path) -> Result<Vec<Seal>> {
    match Archive::open(target) {
        Ok(archive) => Ok(archive.runs().iter().map(|run| run.seal().clone()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A file that is written in pieces of equal length.
struct PieceWriter {
    out: Rowfile,
    schema: SchemaRef,
    waiting: Vec<RecordBatch>,
    rows: usize,
}

impl PieceWriter {
    fn create(path: &Path, schema: SchemaRef, ordered_by: usize) -> Result<Self> {
        let out = Rowfile::create(path, SchemaRef::clone(&schema), ordered_by)?;
        Ok(Self { out, schema, waiting: Vec::new(), rows: 0 })
    }

    fn write(&mut self, rows: RecordBatch) -> Result<()> {
        self.rows += rows.num_rows();
        self.waiting.push(rows);
        if self.rows < PIECE_ROWS {
            return Ok(());
        }
        let all = concat_batches(&self.schema, &self.waiting).map_err(merge_failed)?;
        let mut from = 0;
        while all.num_rows() - from >= PIECE_ROWS {
            self.out.write(Ok(all.slice(from, PIECE_ROWS)))?;
            from += PIECE_ROWS;
        }
        self.waiting = vec![all.slice(from, all.num_rows() - from)];
        self.rows = all.num_rows() - from;
        Ok(())
    }

    fn finish(mut self) -> Result<FileRecord> {
        let rest = concat_batches(&self.schema, &self.waiting);
        self.out.write(rest)?;
        self.out.finish()
    }
}
