//! The turn of a definition that is due: what a scheduler does while it holds the lock of its state.

use std::path::Path;
use std::sync::Arc;

use bellwether::archive::{Interrupted, SealedRun, open_all};
use bellwether::disk::lock::Lock;
use bellwether::error::{Error, Result};
use bellwether::export;
use bellwether::plan::{Plan, Schedule};
use bellwether::run::Options;
use chrono::{DateTime, Utc};

use super::event::{ScheduleEvent, Watcher};
use super::execute::{conclude, perform};
use super::journal;
use super::memory::{Decision, Memory, deadline};
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
    pub(super) memory: Memory,
    pub(super) options: Options,
    pub(super) watcher: Arc<dyn Watcher>,
    pub(super) _lock: Lock,
}

impl Turn {
    /// Settles what needs no run. Returns the time to run for, with the number of attempts before; those are none if the
    /// run is given up.
    pub(super) fn settle(
        &mut self,
        decision: Decision,
        now: DateTime<Utc>,
    ) -> Result<Option<(DateTime<Utc>, Option<u32>)>> {
        let (definition, data) = (&self.plan.name, &self.options.data);
        match decision {
            Decision::Wait(_) => Ok(None),
            Decision::Skip { missed } => {
                self.memory.finish(now);
                self.memory.write(data, definition)?;
                self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                Ok(None)
            }
            Decision::GiveUp { due } => Ok(Some((due, None))),
            Decision::Run { due, attempts, missed } => {
                let run = run_since(&self.options.archive, data, definition, due);
                if run.is_some() {
                    self.memory.finish(due);
                    self.memory.write(data, definition)?;
                }
                if missed > 0 {
                    self.watcher.watch(&ScheduleEvent::Missed { definition, missed });
                }
                match run {
                    Some(run) => {
                        self.watcher.watch(&ScheduleEvent::AlreadyRun { definition, due, run: &run });
                        Ok(None)
                    }
                    None => Ok(Some((due, Some(attempts)))),
                }
            }
        }
    }

    /// Runs the definition or gives it up, and remembers what became of it.
    pub(super) async fn perform(mut self, due: DateTime<Utc>, attempts: Option<u32>) -> Ended {
        let (name, clock) = (self.plan.name.clone(), self.options.clock);
        let mut record = match attempts {
            None => Some(self.given_up(due, clock.now())),
            Some(attempts) => {
                self.watcher.watch(&ScheduleEvent::Started { definition: &name, due, attempt: attempts + 1 });
                let options = Options { interrupted: Interrupted::ResumeSince(due), ..self.options.clone() };
                perform(self.plan.clone(), options, Some(due)).await.record
            }
        };
        let attempts = attempts.unwrap_or_default();
        let outcome = record.as_ref().map(|record| record.outcome);
        // Another run is in progress, or the service does not answer for now.
        let is_later = outcome.is_none_or(|outcome| outcome == Outcome::Later);
        let mut retry = None;
        if is_later {
            retry = self.memory.postpone(&self.schedule, (due, attempts), clock.now());
        }
        if outcome == Some(Outcome::Interrupted) {
            self.memory.interrupt((due, attempts), clock.now());
        } else if retry.is_none() {
            self.memory.finish(due);
        }
        if is_later && retry.is_none() {
            let record = record.get_or_insert_with(|| {
                self.watcher.watch(&ScheduleEvent::InProgress { definition: &name, retry });
                let mut waited = RunRecord::begin(&name, Some(due), clock.now());
                waited.reasons.push(IN_PROGRESS.to_owned());
                waited
            });
            record.give_up(DEADLINE);
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
