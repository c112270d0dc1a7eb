//! A run that is in progress, or was interrupted.
//!
//! One run is sealed at a time, so that a run counts from one instant on for everybody.
//!
//! A run is sealed as of an instant that is taken before its rows are written, and appears a little later. Until then, a
//! reader that asks for that instant or a later one would miss it. So the writer holds a system lock from before the
//! instant until the run has appeared, and such a reader waits for it. Readers of the latest state do not: they read as
//! of the latest seal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::answer_files::AnswerFiles;
use super::answers::{Answer, AnswerRecord, Draft, KnownAnswer, known_answers};
use super::sealed::catalog::Archive;
use super::sealed::folder::Folder;
use super::sealed::seal::{LAYOUT, RunOrigin};
use super::sealed::sealed_run::SealedRun;
use super::settle::{self, SealedAs, Settled, Settling};
use super::{FOLDER_OF_UNFINISHED, upkeep};
use crate::disk::file::{self, FileError};
use crate::disk::lock::{self, Lock};
use crate::disk::names::is_unique;
use crate::disk::{digest, links, remove};
use crate::error::Result;
use crate::plan::ServiceIdentity;
use crate::process::cancel::{self, CancellationToken};
use crate::tables::{Conventions, RequestRecord};
use crate::time::free_name;

pub(super) const RECORD: &str = "unfinished.json";
const JOURNAL: &str = "answers.jsonl";

/// How long an interrupted run can be resumed: its answers must still be what the service would answer now.
const RESUME_WITHIN: TimeDelta = TimeDelta::hours(6);

/// How far apart the clocks of machines that share an archive may be. If the newest run in the archive is ahead by no more than
/// this, a run waits until its own clock has passed it.
pub(crate) const SKEW: TimeDelta = TimeDelta::seconds(10);

/// How long an interrupted run that is not resumed is kept.
const DISCARD_AFTER: TimeDelta = TimeDelta::days(7);

/// What to do with an interrupted run of the same definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Resume it while it is fresh.
    Resume,
    /// The same, if it began at an instant or later: a scheduled run has no answers from before it was due.
    ResumeSince(DateTime<Utc>),
    /// Leave it, and request everything again.
    Leave,
}

/// Definition and time of a new run.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// Name of the definition.
    pub definition: &'a str,
    /// Text of the definition.
    pub text: &'a str,
    /// The service that it asks.
    pub service: &'a ServiceIdentity,
    /// What the answers mean, by what the definition says.
    pub conventions: &'a Conventions,
    /// The current time.
    pub now: DateTime<Utc>,
    /// What to do with an interrupted run.
    pub interrupted: Interrupted,
    /// Cancels sealing.
    pub stop: &'a CancellationToken,
}

/// The answers so far.
#[derive(Debug)]
struct CompleteAnswers {
    by_request: BTreeMap<String, Answer>,
    /// A line per complete answer: its record as JSON.
    journal: File,
}

/// An unsealed run, owned by this process while the value lives.
#[derive(Debug)]
pub struct Unfinished {
    archive: PathBuf,
    path: PathBuf,
    origin: RunOrigin,
    conventions: Conventions,
    files: Arc<AnswerFiles>,
    answers: Mutex<CompleteAnswers>,
    /// Answers of sealed runs that the service may say are as before, by request.
    known: HashMap<String, Arc<KnownAnswer>>,
    stop: CancellationToken,
    /// Why another one was not resumed.
    warnings: Vec<String>,
    /// The lock is released with this, even if the process is killed.
    _lock: File,
}

impl Unfinished {
    /// Resumes the interrupted run of a definition, or starts a new one.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn begin(archive: &Path, beginning: NewRun<'_>) -> Result<Self> {
        let folder = archive.join(FOLDER_OF_UNFINISHED);
        file::create_folders(archive)?;
        links::folder(&folder)?;
        let sealed = Archive::open(archive)?.until(beginning.stop);
        let digest = digest::of(beginning.text.as_bytes());
        let mut warnings = Vec::new();
        let since = match beginning.interrupted {
            Interrupted::Resume => Some(None),
            Interrupted::ResumeSince(since) => Some(Some(since)),
            Interrupted::Leave => None,
        };
        let interrupted = match since {
            Some(since) => Self::resume(&sealed, &folder, beginning, &digest, (since, &mut warnings))?,
            None => None,
        };
        let mut unfinished = match interrupted {
            Some(unfinished) => unfinished,
            None => Self::create(&sealed, &folder, beginning, digest)?,
        };
        unfinished.warnings = warnings;
        Ok(unfinished)
    }

    fn create(sealed: &Archive, folder: &Path, beginning: NewRun<'_>, definition_digest: String) -> Result<Self> {
        let is_free = |name: &str| !folder.join(name).exists() && !is_sealed(sealed, name);
        let run = free_name(beginning.now, is_free);
        let path = folder.join(&run);
        fs::create_dir(&path).map_err(FileError::write(&path))?;
        let origin = RunOrigin {
            layout: LAYOUT,
            run,
            definition: beginning.definition.to_owned(),
            definition_digest,
            definition_text: Some(beginning.text.to_owned()),
            service: beginning.service.clone(),
            started_at: beginning.now,
            sealed_answers: 0,
        };
        let lock = file::create(&path.join(RECORD))?;
        let record = path.join(RECORD);
        let failed = FileError::write(&record);
        // Locked before there is anything in it for another process to resume.
        lock.lock().map_err(failed)?;
        let text = serde_json::to_vec_pretty(&origin).expect("the origin is text and numbers");
        (&lock).write_all(&text).map_err(failed)?;
        Self::of(sealed, path, (origin, beginning.conventions), lock)
    }

    fn resume(
        sealed: &Archive,
        folder: &Path,
        beginning: NewRun<'_>,
        digest: &str,
        (since, warnings): (Option<DateTime<Utc>>, &mut Vec<String>),
    ) -> Result<Option<Self>> {
        for path in runs_in(folder)? {
            let (origin, lock) = match UnfinishedState::of(sealed, &path, beginning.now)? {
                UnfinishedState::Abandoned(_lock) => {
                    discard(&path);
                    continue;
                }
                UnfinishedState::Busy => continue,
                UnfinishedState::Interrupted(origin, lock) => (origin, lock),
            };
            let age = beginning.now - origin.started_at;
            let is_same = origin.definition == beginning.definition
                && origin.definition_digest == digest
                && origin.service == *beginning.service;
            let is_fresh = (TimeDelta::zero()..=RESUME_WITHIN).contains(&age);
            let is_late_enough = since.is_none_or(|since| origin.started_at >= since);
            // Another user may have begun it.
            let is_ours =
                [&path, &path.join(JOURNAL)].into_iter().all(|part| file::is_gone(part) || file::is_writable(part));
            if origin.layout != LAYOUT || !is_same || !is_fresh || !is_late_enough || !is_ours {
                continue;
            }
            let resumed = Self::of(sealed, path, (origin, beginning.conventions), lock)?;
            let is_ahead = |answer: &Arc<AnswerRecord>| answer.request.observed_at - beginning.now > SKEW;
            if resumed.records().iter().any(is_ahead) {
                // It could never be sealed: what it observed is dated later than now.
                let name = resumed.name();
                warnings.push(format!("the clock was ahead during the interrupted run `{name}`, which is not resumed"));
                continue;
            }
            return Ok(Some(resumed));
        }
        Ok(None)
    }

    fn of(
        sealed: &Archive,
        path: PathBuf,
        (origin, conventions): (RunOrigin, &Conventions),
        lock: File,
    ) -> Result<Self> {
        let conventions = conventions.clone();
        let mut answers = CompleteAnswers::of(&path)?;
        let is_sealed = |run: &String| sealed.runs().iter().any(|sealed| sealed.name() == run);
        answers.by_request.retain(|_, answer| answer.record.as_before.as_ref().is_none_or(is_sealed));
        let answers = Mutex::new(answers);
        let known = known_answers(sealed).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read what was answered before, and ask for all of it");
            HashMap::new()
        });
        let files = Arc::new(AnswerFiles::of(path.clone()));
        let (archive, stop) = (sealed.path().to_owned(), sealed.stop().clone());
        let warnings = Vec::new();
        Ok(Self { archive, path, origin, conventions, files, answers, known, stop, warnings, _lock: lock })
    }

    /// Why an interrupted run was not resumed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The name of the run.
    pub fn name(&self) -> &str {
        &self.origin.run
    }

    /// The answer to a request, if there is one.
    pub fn answer_to(&self, request: &str) -> Option<Arc<AnswerRecord>> {
        self.lock().by_request.get(request).map(|answer| Arc::clone(&answer.record))
    }

    /// Number of answered requests.
    pub fn len(&self) -> usize {
        self.lock().by_request.len()
    }

    /// Whether there are no answers.
    pub fn is_empty(&self) -> bool {
        self.lock().by_request.is_empty()
    }

    /// The record of every answer, by request.
    pub fn records(&self) -> Vec<Arc<AnswerRecord>> {
        self.lock().by_request.values().map(|answer| Arc::clone(&answer.record)).collect()
    }

    /// Starts writing an answer.
    pub fn draft(&self) -> Draft {
        Draft::on(&self.files)
    }

    /// Completes an answer; from here on it is not requested again.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn commit(&self, draft: Draft, request: RequestRecord) -> Result<Arc<AnswerRecord>> {
        self.keep(draft.complete(request)?)
    }

    /// The answer to a request that the archive holds whole, as it is read now.
    pub(crate) fn known_answer(&self, request: &str, reading: &str) -> Option<&Arc<KnownAnswer>> {
        self.known.get(request).filter(|known| known.validator().reading == reading)
    }

    /// Completes an answer that is as a known one was.
    pub(crate) fn commit_as_before(&self, known: &KnownAnswer, request: RequestRecord) -> Result<Arc<AnswerRecord>> {
        self.keep(known.again(request))
    }

    /// What the answers mean, by what the definition says.
    pub(crate) fn conventions(&self) -> &Conventions {
        &self.conventions
    }

    fn keep(&self, record: AnswerRecord) -> Result<Arc<AnswerRecord>> {
        let record = Arc::new(record);
        let mut answers = self.lock();
        append(&answers.journal, &record).map_err(FileError::write(&self.path.join(JOURNAL)))?;
        let answer = Answer { folder: self.path.clone(), record: Arc::clone(&record) };
        answers.by_request.insert(record.request.request.clone(), answer);
        Ok(record)
    }

    /// Whether it has answers that no sealed run has.
    pub fn has_news(&self) -> bool {
        self.len() > self.origin.sealed_answers
    }

    /// Seals a run of which every request was answered, as [`seal_as`](Self::seal_as) does.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written, the check fails, or the run is cancelled. The answers are kept in that case.
    pub fn seal(
        &self,
        lost: &[String],
        sealing: impl Fn() -> Result<DateTime<Utc>>,
        check: impl Fn(&SealedRun) -> Result<bool>,
    ) -> Result<Settled> {
        self.seal_as(SealedAs { lost, ..SealedAs::default() }, sealing, check)
    }

    /// Settles the run against everything that the archive knows, and seals it, at the instant that `sealing` returns or
    /// later: after every run that is sealed already. No other run of the archive is sealed meanwhile. `check` sees the run
    /// as it is settled, and may fail. It may bring in more runs and then refuse: the run is settled again, a few times at
    /// most.
    pub(crate) fn seal_as(
        &self,
        sealed_as: SealedAs<'_>,
        sealing: impl Fn() -> Result<DateTime<Utc>>,
        check: impl Fn(&SealedRun) -> Result<bool>,
    ) -> Result<Settled> {
        /// How often a run is settled again because others arrived. Histories that meet later are merged.
        const MOST_TIMES: usize = 3;

        let answers: Vec<Answer> = self.lock().by_request.values().cloned().collect();
        let lock = SealingLock::take(&self.archive, &self.stop)?;
        let mut times = 0;
        let settled = loop {
            times += 1;
            let folder = settle::folder(&self.path)?;
            // Opened now, not when the run started: other runs may have been sealed in between.
            let before = upkeep::open_merged(&self.archive, &self.stop)?;
            let newest = before.runs().iter().map(|run| run.seal().sealed_at + TimeDelta::microseconds(1)).max();
            let sealed_at = newest.map_or_else(&sealing, |newest| Ok(sealing()?.max(newest)))?;
            let (before, origin, answers, conventions) = (&before, &self.origin, &answers, &self.conventions);
            let settling = Settling { before, origin, answers, sealed_at, conventions, sealed_as };
            let (seal, known) = settling.settle(&folder)?;
            let run = |path| SealedRun::of(seal.clone(), Arc::new(Folder::new(path, seal.clone())));
            if !check(&run(folder.clone()))? && times < MOST_TIMES {
                continue;
            }
            cancel::check(&self.stop)?;
            let path = self.archive.join(seal.folder_name());
            file::rename_durably(&folder, &path)?;
            break Settled { run: run(path), known };
        };
        drop(lock);
        if let Err(error) = upkeep::pack_small(&self.archive, &self.stop) {
            // The run is sealed; reads take a little longer until the next one packs it.
            tracing::warn!(%error, "cannot pack runs");
        }
        if sealed_as.resumes {
            match self.resume_as_another(settled.run.seal().sealed_at) {
                Ok(()) => return Ok(settled),
                Err(error) => tracing::warn!(%error, "cannot keep the answers for the next run, which begins anew"),
            }
        }
        // The answers are in the sealed run now. If they cannot be removed, they are ignored leftovers.
        let _ = remove::folder(&self.path);
        Ok(settled)
    }

    /// Leaves the answers of a sealed run to the next one, under another name.
    fn resume_as_another(&self, now: DateTime<Utc>) -> Result<()> {
        let sealed = Archive::open(&self.archive)?;
        let folder = self.archive.join(FOLDER_OF_UNFINISHED);
        let run = free_name(now, |name| !folder.join(name).exists() && !is_sealed(&sealed, name));
        let origin = RunOrigin { run, sealed_answers: self.len(), ..self.origin.clone() };
        let text = serde_json::to_vec_pretty(&origin).expect("the origin is text and numbers");
        // Until the folder has its name, the record is of another run, and nobody resumes it. It stays locked.
        let record = self.path.join(RECORD);
        let mut rewritten = links::rewrite(&record)?;
        rewritten.set_len(0).and_then(|()| rewritten.write_all(&text)).map_err(FileError::write(&record))?;
        let path = folder.join(&origin.run);
        fs::rename(&self.path, &path).map_err(FileError::write(&path))?;
        Ok(())
    }

    /// Removes the run with its answers.
    pub fn discard(self) {
        // Best effort: leftovers are hidden and ignored.
        let _ = remove::folder(&self.path);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CompleteAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_empty() {
            // There is nothing to resume; leftovers are hidden and ignored.
            let _ = remove::folder(&self.path);
        }
    }
}

/// Appends a line in chunks: a line that names every ticker takes many megabytes.
fn append(journal: &File, record: &AnswerRecord) -> io::Result<()> {
    let mut line = BufWriter::with_capacity(1 << 16, journal);
    serde_json::to_writer(&mut line, record)?;
    line.write_all(b"\n")?;
    line.flush()
}

/// Whether a run is sealed, in its own folder or in a pack; run names are unique.
fn is_sealed(archive: &Archive, run: &str) -> bool {
    archive.known_names().contains(run)
}

/// Removes a run that will not be resumed. If that fails, the next run tries again.
fn discard(path: &Path) {
    if let Err(error) = remove::folder(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove an interrupted run");
    }
}

impl RunOrigin {
    /// Reads the origin of an unfinished run; `None` if it is missing or belongs to another run.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let origin: Self = serde_json::from_slice(&links::read(&folder.join(RECORD)).ok()?).ok()?;
        let is_here = folder.file_name().is_some_and(|name| *name == *origin.run);
        (is_unique(&origin.run) && is_here).then_some(origin)
    }
}

impl CompleteAnswers {
    /// The complete answers of a run. One that cannot be read is requested again.
    fn of(run: &Path) -> Result<Self> {
        let path = run.join(JOURNAL);
        let failed = FileError::write(&path);
        let mut journal = links::append(&path)?;
        let text = links::read(&path)?;
        if text.last().is_some_and(|last| *last != b'\n') {
            // The process was killed while it wrote the last line.
            journal.write_all(b"\n").map_err(failed)?;
        }
        let answers = lines(&text).filter_map(|line| Answer::read(run, line));
        let by_request = answers.map(|answer| (answer.record.request.request.clone(), answer)).collect();
        Ok(Self { by_request, journal })
    }
}

/// The folders of unfinished runs.
fn runs_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_run = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_unique);
    Ok(file::entries(folder)?.into_iter().filter(is_run).collect())
}

/// What became of an unfinished run.
enum UnfinishedState {
    /// It will not be resumed. The lock keeps others away from it, unless it never had one.
    Abandoned(Option<File>),
    /// It is in progress, or about to be.
    Busy,
    /// It may be resumed, under this lock.
    Interrupted(RunOrigin, File),
}

impl UnfinishedState {
    fn of(sealed: &Archive, path: &Path, now: DateTime<Utc>) -> Result<Self> {
        links::refuse(path)?;
        let lock = links::open(&path.join(RECORD)).ok();
        if let Some(Err(TryLockError::WouldBlock | TryLockError::Error(_))) = lock.as_ref().map(File::try_lock) {
            return Ok(Self::Busy);
        }
        if is_abandoned(sealed, path, now) {
            return Ok(Self::Abandoned(lock));
        }
        Ok(RunOrigin::read(path).zip(lock).map_or(Self::Busy, |(origin, lock)| Self::Interrupted(origin, lock)))
    }
}

/// Whether a run will not be resumed. If a process holds its lock, it is just being sealed.
fn is_abandoned(sealed: &Archive, path: &Path, now: DateTime<Utc>) -> bool {
    match RunOrigin::read(path) {
        // A run that is incomplete stays in place for a while.
        None => (is_unwritten(&path.join(RECORD)) || is_of_another(path)) && file::is_older(path, file::DAY),
        // One that is sealed was killed before it could remove this folder.
        Some(origin) => is_sealed(sealed, &origin.run) || (now - origin.started_at).abs() > DISCARD_AFTER,
    }
}

/// Whether a folder has the record of another run: the process was killed before it could rename it.
fn is_of_another(path: &Path) -> bool {
    let record = links::read(&path.join(RECORD)).ok();
    let origin = record.and_then(|text| serde_json::from_slice::<RunOrigin>(&text).ok());
    origin.is_some_and(|origin| path.file_name().is_none_or(|name| *name != *origin.run))
}

/// Whether a record was never written whole: the disk was full, or the power failed.
fn is_unwritten(record: &Path) -> bool {
    match links::read(record) {
        Ok(text) => serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_err(),
        Err(error) => FileError::is_missing(&error),
    }
}

/// The unfinished runs of an archive that will not be resumed. No lock is taken, which a resuming run could want.
pub(crate) fn abandoned_runs(archive: &Archive, now: DateTime<Utc>) -> Result<Vec<PathBuf>> {
    let runs = runs_in(&archive.path().join(FOLDER_OF_UNFINISHED))?;
    Ok(runs.into_iter().filter(|path| is_abandoned(archive, path, now)).collect())
}

/// Removes an unfinished run, if it still will not be resumed.
pub(crate) fn remove_abandoned(archive: &Archive, path: &Path, now: DateTime<Utc>) -> Result<()> {
    match UnfinishedState::of(archive, path, now)? {
        UnfinishedState::Abandoned(_lock) => remove::folder(path).map_err(FileError::remove(path)),
        UnfinishedState::Busy | UnfinishedState::Interrupted(..) => Ok(()),
    }
}

/// Number of answered requests of an unfinished run.
fn answer_count(run: &Path) -> usize {
    let text = links::read(&run.join(JOURNAL)).unwrap_or_default();
    let records = lines(&text).filter_map(|line| serde_json::from_str::<AnswerRecord>(line).ok());
    records.map(|record| record.request.request).collect::<BTreeSet<String>>().len()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()).filter(|line| !line.is_empty())
}

/// A run that was interrupted, or is in progress.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnfinishedRun {
    /// Its name.
    pub run: String,
    /// The service that is asked.
    pub service: String,
    /// The name of its definition.
    pub definition: String,
    /// The number of answered requests.
    pub answers: usize,
}

/// The unsealed runs of an archive, oldest first.
pub(crate) fn unfinished_runs(archive: &Path) -> Result<Vec<UnfinishedRun>> {
    let of_folder = |path: PathBuf| {
        let RunOrigin { run, service, definition, .. } = RunOrigin::read(&path)?;
        Some(UnfinishedRun { run, service: service.name, definition, answers: answer_count(&path) })
    };
    Ok(file::entries(&archive.join(FOLDER_OF_UNFINISHED))?.into_iter().filter_map(of_folder).collect())
}

/// The file of the lock. No definition has such a name.
pub(crate) const SEALING_LOCK: &str = ".seal";

/// How often a held lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// The right to seal a run, while the value lives.
pub(super) struct SealingLock {
    _file: Lock,
}

impl SealingLock {
    /// Waits for the right to seal a run.
    pub(super) fn take(archive: &Path, stop: &CancellationToken) -> Result<Self> {
        let folder = archive.join(lock::FOLDER);
        links::folder(&folder)?;
        let path = folder.join(SEALING_LOCK);
        let file = links::rewrite(&path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Lock::new(file) }),
                // Some file systems have no locks: histories that meet are merged.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { _file: Lock::new(file) });
                }
                Err(TryLockError::Error(error)) => return Err(FileError::write(&path)(error)),
                Err(TryLockError::WouldBlock) => wait(stop)?,
            }
        }
    }
}

/// Waits until no run is being sealed. Nothing is written: an archive without the lock has no writer.
pub(crate) fn wait_for_seal(archive: &Path, stop: &CancellationToken) -> Result<()> {
    let path: PathBuf = archive.join(lock::FOLDER).join(SEALING_LOCK);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| links::open(&path).ok()).flatten() else { return Ok(()) };
    while matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        wait(stop)?;
    }
    Ok(())
}

fn wait(stop: &CancellationToken) -> Result<()> {
    cancel::check(stop)?;
    thread::sleep(TRY_EVERY);
    Ok(())
}
