//! The scheduler: runs each definition of a folder at its times.
//!
//! A definition is run by one scheduler at a time: the one that holds the lock of its state. Before it starts a run, it
//! reads the state again and searches the archive for a run that already covers the due time. So two schedulers on a
//! folder, or one that was killed after publishing, run each due time once. A scheduled run takes the same lock as any
//! run, so it never overlaps one that was started manually.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::definitions::{Change, Definitions};
use super::event::{ScheduleEvent, Watcher};
use super::execute::{conclude, perform};
use super::memory::{Decision, Memory, Place};
use super::record::{Outcome, RunRecord};
use crate::archive::{Interrupted, Seal, SealedRun, open_all};
use crate::cancel::CancellationToken;
use crate::error::{Error, Result};
use crate::export;
use crate::lock::Lock;
use crate::plan::{Plan, Schedule, StoreUrl};
use crate::run::{Control, Options, WhenHeld, WhenLost};
use crate::time::Clock;

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
}

/// A due definition.
#[derive(Clone, Debug)]
struct Due {
    name: String,
    due: DateTime<Utc>,
}

/// A run that has ended.
struct Ended {
    name: String,
    memory: Memory,
    record: Option<RunRecord>,
}

impl Scheduler {
    /// A scheduler that has not looked at anything yet.
    pub fn new(options: SchedulerOptions) -> Self {
        Self {
            definitions: Definitions::of(options.definitions.clone()),
            options,
            memories: BTreeMap::new(),
            paused: BTreeMap::new(),
            running: FuturesUnordered::new(),
            names: BTreeSet::new(),
        }
    }

    /// Runs what is due now, each definition once, and returns the records of the runs.
    ///
    /// # Errors
    ///
    /// If the folder of definitions cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: use [`SchedulerOptions::stop`].
    pub async fn once(&mut self) -> Result<Vec<RunRecord>> {
        let (mut records, mut tried) = (Vec::new(), BTreeSet::new());
        loop {
            let (due, _) = self.look()?;
            let due = due.into_iter().filter(|due| !tried.contains(&due.name)).collect();
            tried.extend(self.start(due));
            match self.running.next().await {
                Some(ended) => records.extend(self.ended(ended)),
                None => return Ok(records),
            }
        }
    }

    /// Runs definitions at their times until it is stopped. A notification makes it look at once.
    ///
    /// # Errors
    ///
    /// If the folder of definitions cannot be read at the start.
    ///
    /// # Cancel safety
    ///
    /// As [`once`](Self::once).
    pub async fn run(&mut self, look: &Notify) -> Result<()> {
        let mut found = Some(self.look()?);
        let stop = self.options.stop.clone();
        while !stop.is_cancelled() {
            // The folder may be on a disk that is away for a moment.
            let (due, wake) = found.take().unwrap_or_else(|| self.look().unwrap_or_default());
            self.start(due);
            let now = self.options.clock.now();
            let wait = wake.map_or(LOOK_EVERY, |wake| (wake - now).to_std().unwrap_or_default().min(LOOK_EVERY));
            let is_idle = self.running.is_empty();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(ended) = self.running.next(), if !is_idle => drop(self.ended(ended)),
                () = look.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.options.watcher.watch(&ScheduleEvent::Stopping { running: self.running.len() });
        while let Some(ended) = self.running.next().await {
            self.ended(ended);
        }
        Ok(())
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

    /// Reads changed definitions. Returns what is due, oldest first, and when to look again.
    fn look(&mut self) -> Result<(Vec<Due>, Option<DateTime<Utc>>)> {
        let now = self.options.clock.now();
        for change in self.definitions.refresh()? {
            self.changed(change, now);
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
                Decision::Run { due: at, .. } => due.push(Due { name, due: at }),
                Decision::Skip { .. } | Decision::GiveUp { .. } => due.push(Due { name, due: now }),
            }
        }
        due.sort_by(|one, other| (one.due, &one.name).cmp(&(other.due, &other.name)));
        Ok((due, wake))
    }

    fn changed(&mut self, change: Change, now: DateTime<Utc>) {
        let watcher = Arc::clone(&self.options.watcher);
        match change {
            Change::Read(name) => {
                let was_known = self.memories.remove(&name).is_some();
                self.paused.remove(&name);
                let schedule = self.definitions.plan(&name).and_then(|plan| plan.schedule.clone());
                match schedule {
                    Some(schedule) => {
                        let next = super::times::upcoming(&schedule, now).next();
                        watcher.watch(&ScheduleEvent::Scheduled { definition: &name, next });
                    }
                    None if was_known => watcher.watch(&ScheduleEvent::Unscheduled { definition: &name }),
                    None => {}
                }
            }
            Change::Removed(name) => {
                if self.memories.remove(&name).is_some() {
                    watcher.watch(&ScheduleEvent::Unscheduled { definition: &name });
                }
            }
            Change::Broken(name, error) => watcher.watch(&ScheduleEvent::Broken { definition: &name, error: &error }),
        }
    }

    /// The state of a definition; a new one if there is none.
    fn memory(&mut self, name: &str, schedule: &Schedule, now: DateTime<Utc>) -> Option<&Memory> {
        if !self.memories.contains_key(name) {
            let place = Place::of(&self.options.data, name);
            let new = || {
                let memory = Memory::new(schedule, now);
                place.write(&memory).map(|()| memory)
            };
            match place.read(schedule).and_then(|memory| memory.map_or_else(new, Ok)) {
                Ok(memory) => drop(self.memories.insert(name.to_owned(), memory)),
                Err(error) => self.pause(name, &error, now),
            }
        }
        self.memories.get(name)
    }

    /// Leaves a definition alone for a while.
    fn pause(&mut self, name: &str, error: &Error, now: DateTime<Utc>) {
        self.options.watcher.watch(&ScheduleEvent::Broken { definition: name, error });
        self.paused.insert(name.to_owned(), now + LOOK_AGAIN);
    }

    /// Starts as many due definitions as may run at once. Returns those that were tried.
    fn start(&mut self, due: Vec<Due>) -> Vec<String> {
        let mut tried = Vec::new();
        for Due { name, .. } in due {
            if self.running.len() >= self.options.jobs.get() || self.options.stop.is_cancelled() {
                break;
            }
            tried.push(name.clone());
            let now = self.options.clock.now();
            match self.begin(&name, now) {
                Ok(Some(run)) => {
                    self.names.insert(name);
                    self.running.push(run);
                }
                Ok(None) => {}
                Err(error) => self.pause(&name, &error, now),
            }
        }
        tried
    }

    /// Starts the due run of a definition, if it is still due once this scheduler has its lock.
    fn begin(&mut self, name: &str, now: DateTime<Utc>) -> Result<Option<Pin<Box<dyn Future<Output = Ended>>>>> {
        let Some(plan) = self.definitions.plan(name).cloned() else { return Ok(None) };
        let Some(schedule) = plan.schedule.clone() else { return Ok(None) };
        let place = Place::of(&self.options.data, name);
        let Some(lock) = place.lock(now)? else {
            self.paused.insert(name.to_owned(), now + LOOK_AGAIN);
            return Ok(None);
        };
        // Another scheduler may have been faster. What could not be written is still known here.
        let cached = self.memories.get(name).cloned();
        let stored = place.read(&schedule)?;
        let newer = |one: Memory, other: Memory| if other.done > one.done { other } else { one };
        let memory = match (stored, cached) {
            (Some(stored), Some(cached)) => newer(stored, cached),
            (one, other) => one.or(other).unwrap_or_else(|| Memory::new(&schedule, now)),
        };
        let watcher = Arc::clone(&self.options.watcher);
        let mut turn = Turn { plan, schedule, place, memory, options: self.options(name), watcher, _lock: lock };
        let decision = turn.memory.decide(&turn.schedule, now);
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

    fn ended(&mut self, ended: Ended) -> Option<RunRecord> {
        let Ended { name, memory, record } = ended;
        self.names.remove(&name);
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

/// A definition that this scheduler has the lock of.
struct Turn {
    plan: Plan,
    schedule: Schedule,
    place: Place,
    memory: Memory,
    options: Options,
    watcher: Arc<dyn Watcher>,
    _lock: Lock,
}

impl Turn {
    /// Settles what needs no run, and returns the rest.
    fn settle(&mut self, decision: Decision, now: DateTime<Utc>) -> Result<Option<Task>> {
        let definition = &self.plan.name;
        match decision {
            Decision::Wait(_) => Ok(None),
            Decision::Skip { missed } => {
                self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                self.memory.finish(now);
                self.place.write(&self.memory).map(|()| None)
            }
            Decision::GiveUp { due } => Ok(Some(Task::GiveUp { due })),
            Decision::Run { due, attempts, missed } => {
                if missed > 0 {
                    self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                }
                if let Some(run) = run_since(&self.options.archive, &self.options.data, definition, due) {
                    self.watcher.watch(&ScheduleEvent::AlreadyRun { definition, due, run: &run });
                    self.memory.finish(due);
                    return self.place.write(&self.memory).map(|()| None);
                }
                Ok(Some(Task::Run { due, attempts }))
            }
        }
    }

    /// Runs the definition or gives it up, and remembers what became of it.
    async fn perform(mut self, task: Task) -> Ended {
        let (name, clock) = (self.plan.name.clone(), self.options.clock);
        let (mut record, due, attempts) = match task {
            Task::GiveUp { due } => (Some(given_up(&name, due, clock.now())), due, 0),
            Task::Run { due, attempts } => {
                self.watcher.watch(&ScheduleEvent::Started { definition: &name, due, attempts });
                (perform(self.plan.clone(), self.options.clone(), Some(due)).await.record, due, attempts)
            }
        };
        let mut retry = None;
        match record.as_mut() {
            Some(record) if record.outcome == Outcome::Interrupted => {}
            Some(record) if record.outcome != Outcome::Later => self.memory.finish(due),
            // Another run is in progress, or the service does not answer for now.
            record => {
                retry = self.memory.postpone(&self.schedule, (due, attempts), clock.now());
                if retry.is_none() {
                    self.memory.finish(due);
                    record.into_iter().for_each(|record| record.give_up());
                }
            }
        }
        if let Err(error) = self.place.write(&self.memory) {
            self.watcher.watch(&ScheduleEvent::Broken { definition: &name, error: &error });
        }
        match &record {
            Some(record) => {
                conclude(&self.plan, record, &self.options).await;
                self.watcher.watch(&ScheduleEvent::Ended { record, retry });
            }
            None => self.watcher.watch(&ScheduleEvent::InProgress { definition: &name, retry }),
        }
        Ended { name, memory: self.memory, record }
    }
}

/// What to do about a due definition.
#[derive(Clone, Copy, Debug)]
enum Task {
    Run { due: DateTime<Utc>, attempts: u32 },
    GiveUp { due: DateTime<Utc> },
}

/// The record of a run that is no longer retried.
fn given_up(name: &str, due: DateTime<Utc>, now: DateTime<Utc>) -> RunRecord {
    let mut record = RunRecord::begun(name, Some(due), now);
    record.give_up();
    record
}

/// The run of a definition that began at or after an instant, if its dataset was published.
fn run_since(archive: &Path, data: &Path, definition: &str, due: DateTime<Utc>) -> Option<String> {
    let archives = open_all(archive).ok()?;
    let is_own = |name: &str| name == definition;
    let mut seals: Vec<&Seal> = archives.iter().flat_map(|(_, archive)| archive.runs()).map(SealedRun::seal).collect();
    seals.sort_by_key(|seal| seal.sealed_at);
    let seals = seals.into_iter();
    let seal = seals
        .filter(|seal| seal.definition.as_ref().is_some_and(|definition| is_own(&definition.name)))
        .rfind(|seal| seal.started_at >= due)?;
    let latest = export::latest(&data.join("datasets"), Some(definition)).ok()??;
    (latest.built_at >= seal.sealed_at).then(|| seal.run.clone())
}
