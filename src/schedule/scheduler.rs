//! The scheduler: runs each definition of a folder at its times.
//!
//! A definition is run by one scheduler at a time: the one that holds the lock of its state. Before it starts a run, it
//! reads the state again and searches the archive for a run that already covers the due time. So two schedulers on a
//! folder, or one that was killed after publishing, run each due time once. A scheduled run takes the same lock as any
//! run, so it never overlaps one that was started manually.
//!
//! What keeps a definition from being run is reported once, and again when the reason changes. A run that was due and did
//! not start is a failure like any other: it has a line in the journal and calls the hook.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether::archive::{Interrupted, SealedRun, open_all};
use bellwether::definition::{self, DefinitionFile};
use bellwether::disk::file::{self, FileError};
use bellwether::disk::lock::Lock;
use bellwether::error::{Error, Result};
use bellwether::export;
use bellwether::plan::{Plan, Schedule, StoreUrl};
use bellwether::process::cancel::CancellationToken;
use bellwether::run::{Control, Options};
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};

use super::event::{ScheduleEvent, Watcher};
use super::execute::{conclude, perform};
use super::journal;
use super::look::{LOOK, LookFile, LookRecord, Obstacles, RECORD};
use super::memory::{Decision, Memory, deadline, lock, newest_due, upcoming};
use super::record::{Fault, Outcome, RunRecord};

/// How often to look at the clock and the files at least. A machine that slept, or a clock that was set, is noticed
/// then.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long to wait for another scheduler's run, and after a failure to read or write the state.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(5);

/// The options of a scheduler.
#[derive(Clone)]
pub struct SchedulerOptions {
    /// The folder of definitions.
    pub definitions: PathBuf,
    /// The folder of datasets.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// The object store to use instead of those of the definitions.
    pub store: Option<StoreUrl>,
    /// How many definitions may run at once.
    pub jobs: NonZeroUsize,
    /// Where the time comes from.
    pub clock: Clock,
    /// Follows the scheduler.
    pub watcher: Arc<dyn Watcher>,
    /// Stops the scheduler: runs in progress are interrupted, and can be resumed.
    pub stop: CancellationToken,
}

/// A scheduler.
pub struct Scheduler {
    options: SchedulerOptions,
    known: BTreeMap<String, KnownDefinition>,
    running: FuturesUnordered<RunningTurn>,
    obstacles: Obstacles,
    looks: watch::Sender<LookRecord>,
    look_file: LookFile,
}

type RunningTurn = Pin<Box<dyn Future<Output = Ended>>>;

/// A definition: its file, what that means, what ran and what is due.
#[derive(Default)]
struct KnownDefinition {
    /// The content of the file; none if it cannot be read.
    bytes: Option<Vec<u8>>,
    /// The plan as it is now, or was when it was last valid.
    plan: Option<Plan>,
    is_broken: bool,
    /// The memory, as last read or written, or to be written.
    memory: Option<Memory>,
    /// Whether the file of the memory was read since the definition was changed, and says the same.
    is_loaded: bool,
    /// It is left alone until then.
    paused: Option<DateTime<Utc>>,
    is_running: bool,
    /// The newest due time that was reported as not started.
    not_started: Option<DateTime<Utc>>,
    /// The due time that waits until fewer others run: it is not missed, however long that takes.
    waiting: Option<DateTime<Utc>>,
}

impl KnownDefinition {
    /// The schedule, if the definition has one and can be used.
    fn schedule(&self) -> Option<&Schedule> {
        self.plan.as_ref().filter(|_| !self.is_broken)?.schedule.as_ref()
    }
}

/// What is due, oldest first, and when to look again.
type Found = (Vec<(DateTime<Utc>, String, Decision)>, Option<DateTime<Utc>>);

/// The files of definitions in a folder, by name. Whatever is in the place of one counts: a definition that cannot be read is
/// broken, not absent.
pub(crate) fn files(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for path in file::entries(folder)? {
        if path.extension().is_some_and(|extension| extension == "toml")
            && !file::is_hidden(&path)
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            files.insert(name.to_owned(), path);
        }
    }
    Ok(files)
}

/// That no definition in a folder has a schedule.
pub(crate) fn nothing_scheduled(folder: &Path) -> Error {
    let what = format!("no definition in `{}` has a `[schedule]`", folder.display());
    Error::usage(what, "add one, such as `cron = \"30 18 * * MON-FRI\"`")
}

fn plan(path: PathBuf, bytes: Vec<u8>) -> Result<Plan> {
    let text = definition::text_of(&path, bytes)?;
    let root = path.parent().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    Plan::of(DefinitionFile::new(path, text)?.of_file().below(&root))
}

impl Scheduler {
    /// A scheduler that has not looked at anything yet.
    pub fn new(options: SchedulerOptions) -> Self {
        Self {
            known: BTreeMap::new(),
            running: FuturesUnordered::new(),
            obstacles: Obstacles::new(Arc::clone(&options.watcher)),
            looks: watch::Sender::new(LookRecord::new(options.clock.now())),
            look_file: LookFile::default(),
            options,
        }
    }

    /// Runs what is due now, each definition once, and returns the records of the runs, also of those that did not start.
    /// Afterwards [`fault`](Self::fault) tells whether every definition could be looked at.
    ///
    /// # Errors
    ///
    /// If the folder of definitions cannot be read, or nothing is scheduled.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: use [`SchedulerOptions::stop`].
    pub async fn once(&mut self) -> Result<Vec<RunRecord>> {
        let (mut records, mut tried) = (Vec::new(), BTreeSet::new());
        loop {
            let (due, failure) = match self.look() {
                Ok((due, _)) => (due, None),
                Err(error) => {
                    // The caller reports it.
                    self.obstacles.note(LOOK, false, &error);
                    (Vec::new(), Some(error))
                }
            };
            let due = due.into_iter().filter(|(_, name, _)| !tried.contains(name)).collect();
            tried.extend(self.start(due));
            self.note_look();
            match self.running.next().await {
                Some(ended) => records.extend(self.record_end(ended)),
                None => {
                    self.note_look();
                    return failure.map_or(Ok(records), Err);
                }
            }
        }
    }

    /// Runs definitions at their times until it is stopped. A notification makes it look at once.
    ///
    /// # Errors
    ///
    /// If the folder of definitions cannot be read at the start, or nothing is scheduled then.
    ///
    /// # Cancel safety
    ///
    /// As [`once`](Self::once).
    pub async fn run(&mut self, look: &Notify) -> Result<()> {
        let (mut due, mut wake) = self.look()?;
        let stop = self.options.stop.clone();
        while !stop.is_cancelled() {
            self.start(due);
            self.note_look();
            match self.look_file.keep(&self.options.data, &self.looks.borrow()) {
                Ok(()) => self.obstacles.clear(RECORD),
                Err(error) => self.obstacles.report(RECORD, &error),
            }
            let now = self.options.clock.now();
            let wait = wake.map_or(LOOK_EVERY, |wake| (wake - now).to_std().unwrap_or_default().min(LOOK_EVERY));
            let is_idle = self.running.is_empty();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.running.next(), if !is_idle => drop(self.record_end(ended)),
                () = look.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
            // The folder may be on a disk that is away for a moment.
            (due, wake) = match self.look() {
                Ok(found) => {
                    self.obstacles.clear(LOOK);
                    found
                }
                Err(error) => {
                    self.obstacles.report(LOOK, &error);
                    (Vec::new(), None)
                }
            };
        }
        self.options.watcher.watch(&ScheduleEvent::Stopping { running: self.running.len() });
        while let Some(ended) = self.running.next().await {
            self.record_end(ended);
        }
        Ok(())
    }

    /// What keeps it from its work, if anything does: files that cannot be read or written before invalid definitions.
    pub fn fault(&self) -> Option<&Fault> {
        self.obstacles.worst()
    }

    /// Its looks, as they are made.
    pub fn looks(&self) -> watch::Receiver<LookRecord> {
        self.looks.subscribe()
    }

    /// When something is due next, as far as is known; `None` if nothing is.
    pub fn next(&self) -> Option<DateTime<Utc>> {
        let now = self.options.clock.now();
        let wake = |known: &KnownDefinition| match known.memory.as_ref()?.decide(known.schedule()?, now) {
            Decision::Wait(at) => at,
            _ => Some(now),
        };
        self.known.values().filter_map(wake).min()
    }

    /// Takes note of a look.
    fn note_look(&self) {
        let (faults, now) = (self.obstacles.faults(), self.options.clock.now());
        self.looks.send_modify(|look| look.add(faults, now));
    }

    /// Reads changed definitions, and finds what is due.
    fn look(&mut self) -> Result<Found> {
        let now = self.options.clock.now();
        self.refresh(now)?;
        let (mut due, mut wake, mut is_empty) = (Vec::new(), None, true);
        for name in self.known.keys().cloned().collect::<Vec<_>>() {
            let known = &self.known[&name];
            // An invalid definition may have a schedule, and is reported itself.
            if !known.is_broken && known.schedule().is_none() {
                continue;
            }
            is_empty = false;
            if known.is_broken {
                self.note_not_started(&name, now);
                continue;
            }
            match self.decide(&name, now) {
                None => {}
                Some(Decision::Wait(at)) => wake = wake.into_iter().chain(at).min(),
                Some(decision @ Decision::Run { due: at, .. }) => due.push((at, name, decision)),
                Some(decision @ (Decision::Skip { .. } | Decision::GiveUp { .. })) => due.push((now, name, decision)),
            }
        }
        if is_empty {
            return Err(nothing_scheduled(&self.options.definitions));
        }
        due.sort();
        Ok((due, wake))
    }

    /// Reads what has changed in the folder of definitions.
    fn refresh(&mut self, now: DateTime<Utc>) -> Result<()> {
        let files = files(&self.options.definitions)?;
        let watcher = Arc::clone(&self.options.watcher);
        for (name, known) in self.known.extract_if(.., |name, _| !files.contains_key(name)) {
            self.obstacles.forget(&name);
            if known.memory.is_some() {
                watcher.watch(&ScheduleEvent::Unscheduled { definition: &name });
            }
        }
        for (name, path) in files {
            let read = definition::read(&path).map_err(FileError::read(&path));
            let bytes = read.as_ref().ok().cloned();
            if self.known.get(&name).is_some_and(|known| known.bytes == bytes) {
                continue;
            }
            let known = self.known.entry(name.clone()).or_default();
            known.bytes = bytes;
            match read.and_then(|bytes| plan(path, bytes)) {
                Ok(plan) => {
                    let schedule = plan.schedule.clone();
                    let was_scheduled = known.memory.is_some();
                    known.memory.take_if(|memory| !schedule.as_ref().is_some_and(|schedule| memory.is_of(schedule)));
                    (known.is_loaded, known.paused, known.waiting) = (false, None, None);
                    (known.plan, known.is_broken) = (Some(plan), false);
                    self.obstacles.clear_all(&name);
                    if let Some(schedule) = schedule {
                        let next = upcoming(&schedule, now).next();
                        watcher.watch(&ScheduleEvent::Scheduled { definition: &name, next });
                    } else if was_scheduled {
                        watcher.watch(&ScheduleEvent::Unscheduled { definition: &name });
                    }
                }
                Err(error) => {
                    known.is_broken = true;
                    if self.obstacles.note(&name, true, &error) {
                        watcher.watch(&ScheduleEvent::Broken { definition: &name, error: &error });
                    }
                }
            }
        }
        Ok(())
    }

    /// What to do about a definition; `None` if it is running, or its memory cannot be read or written.
    fn decide(&mut self, name: &str, now: DateTime<Utc>) -> Option<Decision> {
        let known = self.known.get_mut(name)?;
        if known.is_running {
            return None;
        }
        known.paused.take_if(|until| *until <= now || *until - now > LOOK_AGAIN);
        if known.paused.is_some() {
            return Some(Decision::Wait(known.paused));
        }
        if !known.is_loaded {
            match known.load(&self.options.data, name, now) {
                Ok(()) => self.obstacles.clear(name),
                Err(error) => {
                    self.pause(name, &error, now);
                    return None;
                }
            }
        }
        let known = self.known.get_mut(name)?;
        let schedule = known.plan.as_ref()?.schedule.as_ref()?;
        // The clock may have been set since it was read.
        let memory = known.memory.take()?.mend(schedule, now, name);
        Some(known.memory.insert(memory).decide(schedule, now))
    }

    /// Leaves a definition alone for a while.
    fn pause(&mut self, name: &str, error: &Error, now: DateTime<Utc>) {
        self.obstacles.report(name, error);
        self.note_not_started(name, now);
        if let Some(known) = self.known.get_mut(name) {
            known.paused = Some(now + LOOK_AGAIN);
        }
    }

    /// If a definition was due and cannot be started, that is a failure: once for each due time.
    fn note_not_started(&mut self, name: &str, now: DateTime<Utc>) {
        let options = self.options(name);
        let (Some(known), Some(fault)) = (self.known.get_mut(name), self.obstacles.fault(name)) else { return };
        let due = match (&known.memory, known.schedule()) {
            (Some(memory), _) => memory.newest_open(now),
            // What is done cannot be read: the journal knows as well.
            (None, Some(schedule)) => newest_due(schedule, now),
            (None, None) => {
                let memory = Memory::read(&options.data, name);
                memory.ok().flatten().and_then(|memory| memory.newest_open(now))
            }
        };
        let Some(due) = due.filter(|due| known.not_started.is_none_or(|before| before < *due)) else { return };
        known.not_started = Some(due);
        if known.is_running || journal::read(&options.data, name).is_ok_and(|journal| journal.covers(due)) {
            return;
        }
        known.is_running = true;
        let record = RunRecord::not_started(name, due, now, fault);
        let (name, plan, watcher) = (name.to_owned(), known.plan.clone(), Arc::clone(&self.options.watcher));
        self.running.push(Box::pin(async move {
            watcher.watch(&ScheduleEvent::NotStarted { record: &record });
            let error = match plan {
                Some(plan) => conclude(&plan, &record, &options).await,
                None => journal::append(&options.data, &record),
            };
            Ended { name, memory: None, record: Some(record), error: error.err() }
        }));
    }

    /// Starts as many due definitions as may run at once. Returns those that were tried; of one that gave up a run, the next
    /// one is still to come.
    fn start(&mut self, due: Vec<(DateTime<Utc>, String, Decision)>) -> Vec<String> {
        let mut tried = Vec::new();
        for (_, name, decision) in due {
            if self.running.len() >= self.options.jobs.get() || self.options.stop.is_cancelled() {
                if let (Decision::Run { due, .. }, Some(known)) = (decision, self.known.get_mut(&name)) {
                    known.waiting = Some(due);
                }
                continue;
            }
            if !matches!(decision, Decision::GiveUp { .. }) {
                tried.push(name.clone());
            }
            let now = self.options.clock.now();
            match self.begin(&name, now) {
                Ok(Some(run)) => self.running.push(run),
                // Another scheduler runs it, or nothing is left to do.
                Ok(None) => self.obstacles.clear(&name),
                Err(error) => self.pause(&name, &error, now),
            }
        }
        tried
    }

    /// Starts the due run of a definition, if it is still due once this scheduler has its lock.
    fn begin(&mut self, name: &str, now: DateTime<Utc>) -> Result<Option<RunningTurn>> {
        let options = self.options(name);
        let Some(known) = self.known.get_mut(name) else { return Ok(None) };
        let (Some(plan), Some(schedule)) = (known.plan.clone(), known.schedule().cloned()) else { return Ok(None) };
        let Some(lock) = lock(&options.data, name, now)? else {
            known.paused = Some(now + LOOK_AGAIN);
            return Ok(None);
        };
        // Another scheduler may have been faster. What could not be written is still known here.
        let stored = Memory::read(&options.data, name)?.filter(|memory| memory.is_of(&schedule));
        let both = stored.into_iter().chain(known.memory.clone()).map(|memory| memory.mend(&schedule, now, name));
        let memory = both.reduce(|stored, own| if own.done > stored.done { own } else { stored });
        let memory = memory.unwrap_or_else(|| Memory::new(&schedule, now));
        let decision = match (memory.decide(&schedule, now), known.waiting.take()) {
            (Decision::Skip { missed }, Some(due)) if due > memory.done => {
                Decision::Run { due, attempts: 0, missed: missed.saturating_sub(1) }
            }
            (decision, _) => decision,
        };
        let watcher = Arc::clone(&self.options.watcher);
        let mut turn = Turn { plan, schedule, memory, options, watcher, _lock: lock };
        let to_run = turn.settle(decision, now)?;
        known.memory = Some(turn.memory.clone());
        known.is_running = to_run.is_some();
        Ok(to_run.map(|(due, attempts)| Box::pin(turn.perform(due, attempts)) as RunningTurn))
    }

    fn options(&self, name: &str) -> Options {
        let SchedulerOptions { data, archive, store, clock, watcher, stop, .. } = &self.options;
        Options {
            archive: archive.clone(),
            clock: *clock,
            store: store.clone(),
            control: Control { observer: watcher.observer(name), stop: stop.clone() },
            ..Options::new(data)
        }
    }

    fn record_end(&mut self, ended: Ended) -> Option<RunRecord> {
        let Ended { name, memory, record, error } = ended;
        match &error {
            Some(error) => self.obstacles.report(&name, error),
            None if memory.is_some() => self.obstacles.clear(&name),
            // What kept it from being started is as it was.
            None => {}
        }
        if let Some(known) = self.known.get_mut(&name) {
            known.is_running = false;
            if memory.is_some() {
                // The definition may have been changed meanwhile: then it is as new.
                known.memory = memory.filter(|memory| known.schedule().is_some_and(|schedule| memory.is_of(schedule)));
                known.is_loaded = known.memory.is_some();
            }
        }
        record
    }
}

impl KnownDefinition {
    /// Reads the memory. A definition that has none is first seen now, even if that can be written later only.
    fn load(&mut self, data: &Path, name: &str, now: DateTime<Utc>) -> Result<()> {
        let Some(schedule) = self.schedule().cloned() else { return Ok(()) };
        match Memory::read(data, name)?.filter(|memory| memory.is_of(&schedule)) {
            Some(memory) => self.memory = Some(memory),
            None => self.memory.get_or_insert_with(|| Memory::new(&schedule, now)).write(data, name)?,
        }
        self.is_loaded = true;
        Ok(())
    }
}

/// A run that has ended, or did not start.
struct Ended {
    name: String,
    /// None if it did not start.
    memory: Option<Memory>,
    record: Option<RunRecord>,
    /// What went wrong besides: the memory or the journal cannot be written.
    error: Option<Error>,
}

/// A definition that this scheduler has the lock of.
struct Turn {
    plan: Plan,
    schedule: Schedule,
    memory: Memory,
    options: Options,
    watcher: Arc<dyn Watcher>,
    _lock: Lock,
}

impl Turn {
    /// Settles what needs no run. Returns the time to run for, with the number of attempts before; those are none if the
    /// run is given up.
    fn settle(&mut self, decision: Decision, now: DateTime<Utc>) -> Result<Option<(DateTime<Utc>, Option<u32>)>> {
        let (definition, data) = (&self.plan.name, &self.options.data);
        let (done, missed, run) = match decision {
            Decision::Wait(_) => return Ok(None),
            Decision::GiveUp { due } => return Ok(Some((due, None))),
            Decision::Skip { missed } => (now, missed, None),
            Decision::Run { due, missed, .. } => (due, missed, run_since(&self.options.archive, data, definition, due)),
        };
        let to_run = match decision {
            Decision::Run { due, attempts, .. } if run.is_none() => Some((due, Some(attempts))),
            _ => None,
        };
        if to_run.is_none() {
            self.memory.finish(done);
            self.memory.write(data, definition)?;
        }
        if missed > 0 {
            self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
        }
        if let Some(run) = &run {
            self.watcher.watch(&ScheduleEvent::AlreadyRun { definition, due: done, run });
        }
        Ok(to_run)
    }

    /// Runs the definition or gives it up, and remembers what became of it.
    async fn perform(mut self, due: DateTime<Utc>, attempts: Option<u32>) -> Ended {
        let (name, clock) = (self.plan.name.clone(), self.options.clock);
        let mut record = match attempts {
            None => Some(self.given_up(due, clock.now())),
            Some(attempts) => {
                self.watcher.watch(&ScheduleEvent::Started { definition: &name, due, attempt: attempts + 1 });
                let options = Options { interrupted: Interrupted::ResumeSince(due), ..self.options.clone() };
                perform(self.plan.clone(), options, Some(due)).await.record
            }
        };
        let (tried, now) = ((due, attempts.unwrap_or_default()), clock.now());
        let mut retry = None;
        match record.as_ref().map(|record| record.outcome) {
            Some(Outcome::Success | Outcome::Failure) => self.memory.finish(due),
            Some(Outcome::Interrupted) => self.memory.interrupt(tried, now),
            // Another run is in progress, or the service does not answer for now.
            None | Some(Outcome::Later) => {
                retry = self.memory.postpone(&self.schedule, tried, now);
                if retry.is_none() {
                    self.memory.finish(due);
                    let record = record.get_or_insert_with(|| {
                        self.watcher.watch(&ScheduleEvent::InProgress { definition: &name, retry });
                        let mut waited = RunRecord::begin(&name, Some(due), now);
                        waited.reasons.push(IN_PROGRESS.to_owned());
                        waited
                    });
                    record.give_up(DEADLINE);
                }
            }
        }
        let mut error = self.memory.write(&self.options.data, &name).err();
        match &record {
            Some(record) => {
                error = conclude(&self.plan, record, &self.options).await.err().or(error);
                self.watcher.watch(&ScheduleEvent::Ended { record, retry });
            }
            None => self.watcher.watch(&ScheduleEvent::InProgress { definition: &name, retry }),
        }
        Ended { name, memory: Some(self.memory), record, error }
    }

    /// The record of a run that is no longer retried, with the reasons of its last attempt.
    fn given_up(&self, due: DateTime<Utc>, now: DateTime<Utc>) -> RunRecord {
        let mut record = RunRecord::begin(&self.plan.name, Some(due), now);
        // What cannot be read is reported where it is to be written.
        if let Ok(journal) = journal::read(&self.options.data, &self.plan.name) {
            let last = journal.runs.into_iter().rev().find(|run| run.due == Some(due));
            // An attempt that waits for another run leaves no line.
            record.reasons = last.map_or_else(|| vec![IN_PROGRESS.to_owned()], |run| run.reasons);
        }
        let is_late = now - due > deadline(&self.schedule);
        record.give_up(if is_late { DEADLINE } else { "the next run is due" });
        record
    }
}

/// Why a run is no longer retried.
const DEADLINE: &str = "the deadline for retries has passed";

/// Why a run waits.
const IN_PROGRESS: &str = "another run of the definition was in progress";

/// The run of a definition that began at or after an instant, if its dataset was published.
fn run_since(archive: &Path, data: &Path, definition: &str, due: DateTime<Utc>) -> Option<String> {
    let archives = open_all(archive).ok()?;
    let seals = archives.iter().flat_map(|(_, archive)| archive.runs()).map(SealedRun::seal);
    let own = seals.filter(|seal| seal.definition.as_ref().is_some_and(|own| own.name == definition));
    let seal = own.filter(|seal| seal.started_at >= due).max_by_key(|seal| seal.sealed_at)?;
    let latest = export::latest(&data.join("datasets"), Some(definition)).ok()??;
    (latest.built_at >= seal.sealed_at).then(|| seal.run.clone())
}
