//! The turn of a definition that is due: what a scheduler does while it holds the lock of its state.

use std::path::Path;
use std::sync::Arc;

use bellwether::archive::{Interrupted, Seal, SealedRun, open_all};
use bellwether::disk::lock::Lock;
use bellwether::error::{Error, Result};
use bellwether::export;
use bellwether::plan::{Plan, Schedule};
use bellwether::run::Options;
use chrono::{DateTime, Utc};

use super::event::{ScheduleEvent, Watcher};
use super::execute::{conclude, perform};
use super::journal;
use super::memory::{Decision, Memory, MemoryFile, deadline};
use super::record::{Outcome, RunRecord};

/// A run that has ended.
pub(super) struct Ended {
    pub(super) name: String,
    /// None if it did not start.
    pub(super) memory: Option<Memory>,
    pub(super) record: Option<RunRecord>,
    /// What went wrong besides: the memory or the journal cannot be written.
    pub(super) error: Option<Error>,
}

/// A definition that this scheduler has the lock of.
pub(super) struct Turn {
    pub(super) plan: Plan,
    pub(super) schedule: Schedule,
    pub(super) place: MemoryFile,
    pub(super) memory: Memory,
    pub(super) options: Options,
    pub(super) watcher: Arc<dyn Watcher>,
    pub(super) _lock: Lock,
}

impl Turn {
    /// Settles what needs no run, and returns the rest.
    pub(super) fn settle(&mut self, decision: Decision, now: DateTime<Utc>) -> Result<Option<Task>> {
        let definition = &self.plan.name;
        match decision {
            Decision::Wait(_) => Ok(None),
            Decision::Skip { missed } => {
                self.memory.finish(now);
                self.place.write(&self.memory)?;
                self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                Ok(None)
            }
            Decision::GiveUp { due } => Ok(Some(Task::GiveUp { due })),
            Decision::Run { due, attempts, missed } => {
                let run = run_since(&self.options.archive, &self.options.data, definition, due);
                if run.is_some() {
                    self.memory.finish(due);
                    self.place.write(&self.memory)?;
                }
                if missed > 0 {
                    self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                }
                match run {
                    Some(run) => {
                        self.watcher.watch(&ScheduleEvent::AlreadyRun { definition, due, run: &run });
                        Ok(None)
                    }
                    None => Ok(Some(Task::Run { due, attempts })),
                }
            }
        }
    }

    /// Runs the definition or gives it up, and remembers what became of it.
    pub(super) async fn perform(mut self, task: Task) -> Ended {
        let (name, clock) = (self.plan.name.clone(), self.options.clock);
        let (mut record, due, attempts) = match task {
            Task::GiveUp { due } => (Some(self.given_up(due, clock.now())), due, 0),
            Task::Run { due, attempts } => {
                self.watcher.watch(&ScheduleEvent::Started { definition: &name, due, attempt: attempts + 1 });
                let options = Options { interrupted: Interrupted::ResumeSince(due), ..self.options.clone() };
                (perform(self.plan.clone(), options, Some(due)).await.record, due, attempts)
            }
        };
        let outcome = record.as_ref().map(|record| record.outcome);
        // Another run is in progress, or the service does not answer for now.
        let is_later = outcome.is_none_or(|outcome| outcome == Outcome::Later);
        let postpone = || self.memory.postpone(&self.schedule, (due, attempts), clock.now());
        let retry = is_later.then(postpone).flatten();
        match retry {
            Some(_) => {}
            None if outcome == Some(Outcome::Interrupted) => self.memory.interrupt((due, attempts), clock.now()),
            None => self.memory.finish(due),
        }
        match &mut record {
            _ if !is_later || retry.is_some() => {}
            Some(record) => record.give_up(DEADLINE),
            None => {
                self.watcher.watch(&ScheduleEvent::InProgress { definition: &name, retry });
                record = Some(record_of_wait(&name, due, clock.now()));
            }
        }
        let mut error = self.place.write(&self.memory).err();
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

/// What to do about a due definition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Run { due: DateTime<Utc>, attempts: u32 },
    GiveUp { due: DateTime<Utc> },
}

/// Why a run is no longer retried.
const DEADLINE: &str = "the deadline for retries has passed";

/// Why a run waits.
const IN_PROGRESS: &str = "another run of the definition was in progress";

/// The record of a run that waited for another one until its deadline.
fn record_of_wait(name: &str, due: DateTime<Utc>, now: DateTime<Utc>) -> RunRecord {
    let mut record = RunRecord::begin(name, Some(due), now);
    record.reasons.push(IN_PROGRESS.to_owned());
    record.give_up(DEADLINE);
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
