//! What a scheduler found when it last looked at the clock and the files: for `/healthz`, the metrics and `status`.
//!
//! A look fails if the folder of definitions, or the state of a definition, cannot be read or written, or a due run does
//! not start. The scheduler of a project keeps its last look in `schedule/.look.json`, and holds a lock while it lives: a
//! record without one is of a scheduler that has ended, and says nothing. A second scheduler of the project keeps its
//! looks to itself.
//!
//! What keeps a scheduler from its work is reported once, again when the reason changes, and once more when it is gone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bellwether::disk::file::{self, FileError};
use bellwether::disk::links;
use bellwether::disk::lock::{Lock, LockState, state_of};
use bellwether::disk::names::SCHEDULE;
use bellwether::error::{Error, Result};
use bellwether::time::as_record;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{ScheduleEvent, Watcher};
use super::memory::lock;
use super::record::{Fault, to_minute};

/// The name of the record, and of its lock. No definition has such a name.
const NAME: &str = ".look";

/// The last look of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookRecord {
    version: u32,
    /// When the scheduler was started.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub running_since: DateTime<Utc>,
    /// When it last looked.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub last_look: DateTime<Utc>,
    /// How many looks in a row have failed, up to the last one.
    pub failed_looks: u64,
    /// Why the last one failed, and what is wrong with definitions.
    pub faults: Vec<LookFault>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookFault {
    /// The definition; none if it concerns all.
    pub definition: Option<String>,
    /// What it is, on one line.
    pub reason: String,
    /// Whether the definition itself is invalid, which is no failure of the look.
    pub is_invalid: bool,
}

impl LookRecord {
    /// That of a scheduler that is being started.
    pub(super) fn new(now: DateTime<Utc>) -> Self {
        Self { version: 1, running_since: now, last_look: now, failed_looks: 0, faults: Vec::new() }
    }

    /// Adds a look.
    pub(super) fn add(&mut self, faults: Vec<LookFault>, now: DateTime<Utc>) {
        self.failed_looks = if faults.iter().any(|fault| !fault.is_invalid) { self.failed_looks + 1 } else { 0 };
        (self.last_look, self.faults) = (now, faults);
    }

    /// Why the scheduler does not work, a sentence each.
    pub(super) fn reasons(&self, now: DateTime<Utc>) -> Vec<String> {
        let mut reasons = Vec::new();
        for LookFault { definition, reason, .. } in self.faults.iter().filter(|fault| !fault.is_invalid) {
            let subject = definition.as_ref().map_or_else(String::new, |definition| format!("{definition}: "));
            reasons.push(format!("the scheduler's last look failed: {subject}{reason}"));
        }
        // It looks every few seconds, and says so every minute.
        if now - self.last_look > TimeDelta::seconds(180) {
            reasons.push(format!("the scheduler has not looked since {}", to_minute(self.last_look)));
        }
        reasons
    }

    /// What is wrong with definitions themselves, a sentence each.
    pub(super) fn invalid(&self) -> impl Iterator<Item = String> {
        let invalid = self.faults.iter().filter(|fault| fault.is_invalid);
        invalid.map(|fault| format!("{}: {}", fault.definition.as_deref().unwrap_or_default(), fault.reason))
    }
}

/// What keeps a scheduler from its work, by the definition that it concerns; of the others, [`LOOK`] keeps it from all, and
/// [`RECORD`] is the record of the last look.
pub(super) struct Obstacles {
    watcher: Arc<dyn Watcher>,
    known: BTreeMap<String, Obstacle>,
}

pub(super) const LOOK: &str = "";
pub(super) const RECORD: &str = NAME;

#[derive(PartialEq, Eq)]
struct Obstacle {
    /// Whether the definition itself is invalid; else files of state cannot be read or written.
    is_invalid: bool,
    fault: Fault,
}

fn definition_of(subject: &str) -> Option<&str> {
    (subject != LOOK && subject != RECORD).then_some(subject)
}

impl Obstacles {
    pub(super) fn new(watcher: Arc<dyn Watcher>) -> Self {
        Self { watcher, known: BTreeMap::new() }
    }

    /// Takes note of an obstacle whose error is reported elsewhere. Returns whether it is new.
    pub(super) fn note(&mut self, subject: &str, is_invalid: bool, error: &Error) -> bool {
        let obstacle = Obstacle { is_invalid, fault: Fault::new(error) };
        let is_new = self.known.get(subject) != Some(&obstacle);
        self.known.insert(subject.to_owned(), obstacle);
        is_new
    }

    /// Reports that files of state cannot be read or written, unless that is reported already.
    pub(super) fn report(&mut self, subject: &str, error: &Error) {
        if self.note(subject, false, error) {
            self.watcher.watch(&match definition_of(subject) {
                None => ScheduleEvent::LookFailed { error },
                Some(definition) => ScheduleEvent::Broken { definition, error },
            });
        }
    }

    /// Reports that files of state can be read and written again, if they could not.
    pub(super) fn clear(&mut self, subject: &str) {
        if self.known.get(subject).is_some_and(|obstacle| !obstacle.is_invalid) {
            self.clear_all(subject);
        }
    }

    /// Reports that there is no obstacle any more, if there was one.
    pub(super) fn clear_all(&mut self, subject: &str) {
        if self.forget(subject) {
            self.watcher.watch(&ScheduleEvent::Recovered { definition: definition_of(subject) });
        }
    }

    /// Forgets the obstacle of a definition that is gone. Returns whether there was one.
    pub(super) fn forget(&mut self, subject: &str) -> bool {
        self.known.remove(subject).is_some()
    }

    /// What keeps a definition from being run.
    pub(super) fn fault(&self, name: &str) -> Option<&Fault> {
        self.known.get(name).map(|obstacle| &obstacle.fault)
    }

    /// The worst of them: state before invalid definitions.
    pub(super) fn worst(&self) -> Option<&Fault> {
        self.known.values().min_by_key(|obstacle| obstacle.is_invalid).map(|obstacle| &obstacle.fault)
    }

    /// All of them, for the record of a look.
    pub(super) fn faults(&self) -> Vec<LookFault> {
        let faults = self.known.iter().map(|(subject, Obstacle { is_invalid, fault })| LookFault {
            definition: definition_of(subject).map(str::to_owned),
            reason: fault.reason(),
            is_invalid: *is_invalid,
        });
        faults.collect()
    }
}

/// Keeps the last look of the scheduler of a project in its file.
#[derive(Default)]
pub(super) struct LookFile {
    lock: Option<Lock>,
    written: Option<LookRecord>,
}

impl LookFile {
    /// Writes the last look, if there is news, or each minute. Another scheduler of the project may do so instead.
    pub(super) fn keep(&mut self, data: &Path, last: &LookRecord) -> Result<()> {
        if self.lock.is_none() {
            self.lock = lock(data, NAME, last.running_since)?;
        }
        let is_news = |written: &LookRecord| {
            let since = last.last_look - written.last_look;
            written.faults != last.faults || !(TimeDelta::zero()..TimeDelta::seconds(60)).contains(&since)
        };
        if self.lock.is_some() && self.written.as_ref().is_none_or(is_news) {
            let text = serde_json::to_vec_pretty(last).expect("a look is text and numbers");
            file::replace(&data.join(SCHEDULE).join(NAME).with_extension("json"), &text)?;
            self.written = Some(last.clone());
        }
        Ok(())
    }
}

/// The last look of the scheduler of a project; `None` if none is running.
pub(super) fn last_look(data: &Path) -> Result<Option<LookRecord>> {
    let folder = data.join(SCHEDULE);
    links::refuse(&folder)?;
    if !matches!(state_of(&folder, NAME)?, LockState::Held(_)) {
        return Ok(None);
    }
    let path = folder.join(NAME).with_extension("json");
    match links::read(&path) {
        // It has only just been started.
        Err(error) if FileError::is_missing(&error) => Ok(None),
        text => serde_json::from_slice(&text?).map(Some).map_err(|error| FileError::damage(&path, error)),
    }
}
