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
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether::archive::Interrupted;
use bellwether::error::{Error, Result};
use bellwether::plan::{Plan, Schedule, StoreUrl};
use bellwether::process::cancel::CancellationToken;
use bellwether::run::{Control, Options, WhenHeld, WhenLost};
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::definitions::{Definitions, FileChange};
use super::event::{ScheduleEvent, Watcher};
use super::execute::conclude;
use super::journal;
use super::look::{LookFile, Looks};
use super::memory::{Decision, Memory, MemoryFile};
use super::obstacles::{ObstacleKind, Obstacles, Subject};
use super::record::{Fault, RunRecord};
use super::times::{newest_due, upcoming};
use super::turn::{Ended, Turn};

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
    definitions: Definitions,
    /// The state, as last read or written.
    memories: BTreeMap<String, Memory>,
    /// Definitions that are left alone until an instant.
    paused: BTreeMap<String, DateTime<Utc>>,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = Ended>>>>,
    names: BTreeSet<String>,
    obstacles: Obstacles,
    /// The state of new definitions that cannot be written.
    unwritten: BTreeMap<String, Memory>,
    /// The newest due time of a definition that was reported as not started.
    not_started: BTreeMap<String, DateTime<Utc>>,
    /// The due times that wait until fewer others run: they are not missed, however long that takes.
    waiting: BTreeMap<String, DateTime<Utc>>,
    looks: Arc<Looks>,
    look_file: LookFile,
}

/// A due definition.
#[derive(Clone, Debug)]
struct Due {
    name: String,
    due: DateTime<Utc>,
    /// What is next of it.
    decision: Decision,
}

impl Scheduler {
    /// A scheduler that has not looked at anything yet.
    pub fn new(options: SchedulerOptions) -> Self {
        Self {
            definitions: Definitions::of(options.definitions.clone()),
            looks: Arc::new(Looks::new(options.clock.now())),
            look_file: LookFile::default(),
            obstacles: Obstacles::new(Arc::clone(&options.watcher)),
            unwritten: BTreeMap::new(),
            not_started: BTreeMap::new(),
            waiting: BTreeMap::new(),
            options,
            memories: BTreeMap::new(),
            paused: BTreeMap::new(),
            running: FuturesUnordered::new(),
            names: BTreeSet::new(),
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
                    self.obstacles.note(Subject::Look, ObstacleKind::State, &error);
                    (Vec::new(), Some(error))
                }
            };
            let due = due.into_iter().filter(|due| !tried.contains(&due.name)).collect();
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
        let mut found = Some(self.look()?);
        let stop = self.options.stop.clone();
        while !stop.is_cancelled() {
            let (due, wake) = match found.take() {
                Some(found) => found,
                None => self.look_again(),
            };
            self.start(due);
            self.note_look();
            self.keep_look();
            let now = self.options.clock.now();
            let wait = wake.map_or(LOOK_EVERY, |wake| (wake - now).to_std().unwrap_or_default().min(LOOK_EVERY));
            let is_idle = self.running.is_empty();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = self.running.next(), if !is_idle => drop(self.record_end(ended)),
                () = look.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
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
    pub fn looks(&self) -> Arc<Looks> {
        Arc::clone(&self.looks)
    }

    /// When something is due next, as far as is known; `None` if nothing is.
    pub fn next(&self) -> Option<DateTime<Utc>> {
        let now = self.options.clock.now();
        let wake = |plan: &Plan| match self.memories.get(&plan.name)?.decide(plan.schedule.as_ref()?, now) {
            Decision::Wait(at) => at,
            _ => Some(now),
        };
        self.definitions.plans().filter_map(wake).min()
    }

    /// Looks again. The folder may be on a disk that is away for a moment.
    fn look_again(&mut self) -> (Vec<Due>, Option<DateTime<Utc>>) {
        match self.look() {
            Ok(found) => {
                self.obstacles.clear(&Subject::Look, ObstacleKind::State);
                found
            }
            Err(error) => {
                self.obstacles.report(Subject::Look, ObstacleKind::State, &error);
                (Vec::new(), None)
            }
        }
    }

    /// Takes note of a look.
    fn note_look(&self) {
        self.looks.add(self.obstacles.faults(), self.options.clock.now());
    }

    /// Keeps the last look for others to see.
    fn keep_look(&mut self) {
        match self.look_file.keep(&self.options.data, &self.looks.last()) {
            Ok(()) => self.obstacles.clear(&Subject::Record, ObstacleKind::State),
            Err(error) => self.obstacles.report(Subject::Record, ObstacleKind::State, &error),
        }
    }

    /// Reads changed definitions. Returns what is due, oldest first, and when to look again.
    fn look(&mut self) -> Result<(Vec<Due>, Option<DateTime<Utc>>)> {
        let now = self.options.clock.now();
        for change in self.definitions.refresh()? {
            self.apply_change(change, now);
        }
        let broken: Vec<String> = self.definitions.broken_names().map(ToOwned::to_owned).collect();
        broken.iter().for_each(|name| self.note_not_started(name, now));
        // An invalid definition may have one, and is reported itself.
        if broken.is_empty() {
            self.definitions.check_scheduled()?;
        }
        let (mut due, mut wake) = (Vec::new(), None);
        let mut wake_at = |at: DateTime<Utc>| wake = Some(wake.map_or(at, |wake: DateTime<Utc>| wake.min(at)));
        let plans: Vec<(String, Schedule)> =
            self.definitions.plans().filter_map(|plan| Some((plan.name.clone(), plan.schedule.clone()?))).collect();
        for (name, schedule) in plans {
            if self.names.contains(&name) {
                continue;
            }
            match self.paused.get(&name) {
                Some(until) if *until > now && *until - now <= LOOK_AGAIN => {
                    wake_at(*until);
                    continue;
                }
                _ => drop(self.paused.remove(&name)),
            }
            let Some(memory) = self.memory(&name, &schedule, now) else { continue };
            match memory.decide(&schedule, now) {
                Decision::Wait(at) => at.into_iter().for_each(&mut wake_at),
                decision @ Decision::Run { due: at, .. } => due.push(Due { name, due: at, decision }),
                decision @ (Decision::Skip { .. } | Decision::GiveUp { .. }) => {
                    due.push(Due { name, due: now, decision });
                }
            }
        }
        due.sort_by(|one, other| (one.due, &one.name).cmp(&(other.due, &other.name)));
        Ok((due, wake))
    }

    fn apply_change(&mut self, change: FileChange, now: DateTime<Utc>) {
        let watcher = Arc::clone(&self.options.watcher);
        match change {
            FileChange::Read(name) => {
                let was_known = self.memories.remove(&name).is_some();
                self.paused.remove(&name);
                self.waiting.remove(&name);
                for kind in [ObstacleKind::State, ObstacleKind::Invalid] {
                    self.obstacles.clear(&Subject::Definition(name.clone()), kind);
                }
                let schedule = self.definitions.plan(&name).and_then(|plan| plan.schedule.clone());
                match schedule {
                    Some(schedule) => {
                        let next = upcoming(&schedule, now).next();
                        watcher.watch(&ScheduleEvent::Scheduled { definition: &name, next });
                    }
                    None if was_known => watcher.watch(&ScheduleEvent::Unscheduled { definition: &name }),
                    None => {}
                }
            }
            FileChange::Removed(name) => {
                self.obstacles.forget(&name);
                self.waiting.remove(&name);
                if self.memories.remove(&name).is_some() {
                    watcher.watch(&ScheduleEvent::Unscheduled { definition: &name });
                }
            }
            FileChange::Broken(name, error) => {
                self.obstacles.report(Subject::Definition(name), ObstacleKind::Invalid, &error);
            }
        }
    }

    /// The state of a definition; a new one if there is none.
    fn memory(&mut self, name: &str, schedule: &Schedule, now: DateTime<Utc>) -> Option<&Memory> {
        if !self.memories.contains_key(name) {
            let place = MemoryFile::of(&self.options.data, name);
            let unwritten = &mut self.unwritten;
            let new = || {
                // It is first seen now, even if that can be written later only.
                let memory = unwritten.remove(name).filter(|memory| memory.is_of(schedule));
                let memory = memory.unwrap_or_else(|| Memory::new(schedule, now));
                let written = place.write(&memory);
                written.inspect_err(|_| drop(unwritten.insert(name.to_owned(), memory.clone()))).map(|()| memory)
            };
            match place.read_of(schedule).and_then(|memory| memory.map_or_else(new, Ok)) {
                Ok(memory) => {
                    let memory = memory.mend(schedule, now, name);
                    self.obstacles.clear(&Subject::Definition(name.to_owned()), ObstacleKind::State);
                    self.memories.insert(name.to_owned(), memory);
                }
                Err(error) => self.pause(name, &error, now),
            }
        }
        // The clock may have been set since it was read.
        let memory = self.memories.get_mut(name)?;
        *memory = memory.clone().mend(schedule, now, name);
        Some(memory)
    }

    /// Leaves a definition alone for a while.
    fn pause(&mut self, name: &str, error: &Error, now: DateTime<Utc>) {
        self.obstacles.report(Subject::Definition(name.to_owned()), ObstacleKind::State, error);
        self.note_not_started(name, now);
        self.paused.insert(name.to_owned(), now + LOOK_AGAIN);
    }

    /// If a definition was due and cannot be started, that is a failure: once for each due time.
    fn note_not_started(&mut self, name: &str, now: DateTime<Utc>) {
        let Some(fault) = self.obstacles.of(name) else { return };
        let schedule = self.definitions.plan(name).and_then(|plan| plan.schedule.as_ref());
        let due = match (self.memories.get(name).or_else(|| self.unwritten.get(name)), schedule) {
            (Some(memory), _) => memory.newest_open(now),
            // What is done cannot be read: the journal knows as well.
            (None, Some(schedule)) => newest_due(schedule, now),
            (None, None) => {
                let memory = MemoryFile::of(&self.options.data, name).read();
                memory.ok().flatten().and_then(|memory| memory.newest_open(now))
            }
        };
        let Some(due) = due.filter(|due| self.not_started.get(name).is_none_or(|before| before < due)) else { return };
        self.not_started.insert(name.to_owned(), due);
        if self.names.contains(name) || journal::read(&self.options.data, name).is_ok_and(|journal| journal.covers(due))
        {
            return;
        }
        let record = RunRecord::not_started(name, due, now, fault);
        let (options, watcher) = (self.options(name), Arc::clone(&self.options.watcher));
        let (name, plan) = (name.to_owned(), self.definitions.last_plan(name).cloned());
        self.names.insert(name.clone());
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
    fn start(&mut self, due: Vec<Due>) -> Vec<String> {
        let mut tried = Vec::new();
        for Due { name, decision, .. } in due {
            if self.running.len() >= self.options.jobs.get() || self.options.stop.is_cancelled() {
                if let Decision::Run { due, .. } = decision {
                    self.waiting.insert(name, due);
                }
                continue;
            }
            if !matches!(decision, Decision::GiveUp { .. }) {
                tried.push(name.clone());
            }
            let now = self.options.clock.now();
            match self.begin(&name, now) {
                Ok(Some(run)) => {
                    self.names.insert(name);
                    self.running.push(run);
                }
                // Another scheduler runs it, or nothing is left to do.
                Ok(None) => self.obstacles.clear(&Subject::Definition(name), ObstacleKind::State),
                Err(error) => self.pause(&name, &error, now),
            }
        }
        tried
    }

    /// Starts the due run of a definition, if it is still due once this scheduler has its lock.
    fn begin(&mut self, name: &str, now: DateTime<Utc>) -> Result<Option<Pin<Box<dyn Future<Output = Ended>>>>> {
        let Some(plan) = self.definitions.plan(name).cloned() else { return Ok(None) };
        let Some(schedule) = plan.schedule.clone() else { return Ok(None) };
        let place = MemoryFile::of(&self.options.data, name);
        let Some(lock) = place.lock(now)? else {
            self.paused.insert(name.to_owned(), now + LOOK_AGAIN);
            return Ok(None);
        };
        // Another scheduler may have been faster. What could not be written is still known here.
        let mend = |memory: Memory| memory.mend(&schedule, now, name);
        let cached = self.memories.get(name).cloned().map(mend);
        let stored = place.read_of(&schedule)?.map(mend);
        let newer = |one: Memory, other: Memory| if other.done > one.done { other } else { one };
        let memory = match (stored, cached) {
            (Some(stored), Some(cached)) => newer(stored, cached),
            (one, other) => one.or(other).unwrap_or_else(|| Memory::new(&schedule, now)),
        };
        let watcher = Arc::clone(&self.options.watcher);
        let mut turn = Turn { plan, schedule, place, memory, options: self.options(name), watcher, _lock: lock };
        let decision = match (turn.memory.decide(&turn.schedule, now), self.waiting.remove(name)) {
            (Decision::Skip { missed }, Some(due)) if due > turn.memory.done => {
                Decision::Run { due, attempts: 0, missed: missed.saturating_sub(1) }
            }
            (decision, _) => decision,
        };
        let run = turn.settle(decision, now)?;
        self.memories.insert(name.to_owned(), turn.memory.clone());
        Ok(run.map(|task| Box::pin(turn.perform(task)) as Pin<Box<dyn Future<Output = Ended>>>))
    }

    fn options(&self, name: &str) -> Options {
        let SchedulerOptions { data, archive, store, clock, watcher, stop, .. } = &self.options;
        Options {
            data: data.clone(),
            archive: archive.clone(),
            clock: *clock,
            interrupted: Interrupted::Resume,
            when_held: WhenHeld::Fail,
            when_lost: WhenLost::Fail,
            known_runs: Vec::new(),
            store: store.clone(),
            control: Control { observer: watcher.observer(name), stop: stop.clone() },
        }
    }

    fn record_end(&mut self, ended: Ended) -> Option<RunRecord> {
        let Ended { name, memory, record, error } = ended;
        self.names.remove(&name);
        let subject = Subject::Definition(name.clone());
        match error {
            Some(error) => self.obstacles.report(subject, ObstacleKind::State, &error),
            None if memory.is_some() => self.obstacles.clear(&subject, ObstacleKind::State),
            // What kept it from being started is as it was.
            None => {}
        }
        let Some(memory) = memory else { return record };
        // The definition may have been changed meanwhile: then it is as new.
        let schedule = self.definitions.plan(&name).and_then(|plan| plan.schedule.as_ref());
        if schedule.is_some_and(|schedule| memory.is_of(schedule)) {
            self.memories.insert(name, memory);
        } else {
            self.memories.remove(&name);
        }
        record
    }
}
