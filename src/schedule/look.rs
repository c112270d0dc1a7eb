//! What a scheduler found when it last looked at the clock and the files: for `/healthz`, the metrics and `status`.
//!
//! A look fails if the folder of definitions, or the state of a definition, cannot be read or written, or a due run does
//! not start. The scheduler of a project keeps its last look in `schedule/.look.json`, and holds a lock while it lives: a
//! record without one is of a scheduler that has ended, and says nothing. A second scheduler of the project keeps its
//! looks to itself.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether::disk::file::{self, FileError};
use bellwether::disk::links;
use bellwether::disk::lock::{Attempt, Holder, Lock, LockState, state_of};
use bellwether::disk::names::SCHEDULE;
use bellwether::error::Result;
use bellwether::time::as_record;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the record, and of its lock. No definition has such a name.
const NAME: &str = ".look";

/// Version of the record.
const VERSION: u32 = 1;

/// How often it is written at least.
const WRITE_EVERY: TimeDelta = TimeDelta::seconds(60);

/// A scheduler that has not looked for this long does not work. It looks every few seconds, and says so every minute.
const LONG_AGO: TimeDelta = TimeDelta::seconds(180);

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
    /// Why the scheduler does not work, a sentence each.
    pub(super) fn reasons(&self, now: DateTime<Utc>) -> Vec<String> {
        let of = |fault: &LookFault| match &fault.definition {
            Some(definition) => format!("the scheduler's last look failed: {definition}: {}", fault.reason),
            None => format!("the scheduler's last look failed: {}", fault.reason),
        };
        let mut reasons: Vec<String> = self.faults.iter().filter(|fault| !fault.is_invalid).map(of).collect();
        if now - self.last_look > LONG_AGO {
            reasons.push(format!("the scheduler has not looked since {}", super::to_minute(self.last_look)));
        }
        reasons
    }

    /// What is wrong with definitions themselves, a sentence each.
    pub(super) fn invalid(&self) -> impl Iterator<Item = String> {
        let invalid = self.faults.iter().filter(|fault| fault.is_invalid);
        invalid.map(|fault| format!("{}: {}", fault.definition.as_deref().unwrap_or_default(), fault.reason))
    }
}

/// The looks of a scheduler, shared with what answers for it.
#[derive(Debug)]
pub struct Looks(Mutex<LookRecord>);

impl Looks {
    pub(super) fn new(now: DateTime<Utc>) -> Self {
        Self(Mutex::new(LookRecord {
            version: VERSION,
            running_since: now,
            last_look: now,
            failed_looks: 0,
            faults: Vec::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, LookRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last look.
    pub fn last(&self) -> LookRecord {
        self.state().clone()
    }

    /// Adds a look.
    pub(super) fn add(&self, faults: Vec<LookFault>, now: DateTime<Utc>) {
        let mut state = self.state();
        state.failed_looks = if faults.iter().any(|fault| !fault.is_invalid) { state.failed_looks + 1 } else { 0 };
        (state.last_look, state.faults) = (now, faults);
    }
}

/// Keeps the last look of the scheduler of a project in its file.
#[derive(Debug, Default)]
pub(super) struct LookFile {
    lock: Option<Lock>,
    written: Option<LookRecord>,
}

impl LookFile {
    /// Writes the last look, if there is news or it is time to. Another scheduler of the project may do so instead.
    pub(super) fn keep(&mut self, data: &Path, last: &LookRecord) -> Result<()> {
        let folder = data.join(SCHEDULE);
        if self.lock.is_none() {
            links::refuse(&folder)?;
            match Lock::try_take(&folder, NAME, &Holder::this(last.running_since))? {
                Attempt::Taken(lock) => self.lock = Some(lock),
                Attempt::Held(_) => return Ok(()),
            }
        }
        let is_news = |written: &LookRecord| {
            let since = last.last_look - written.last_look;
            written.faults != last.faults || since >= WRITE_EVERY || since < TimeDelta::zero()
        };
        if self.written.as_ref().is_none_or(is_news) {
            let text = serde_json::to_vec_pretty(last).expect("a look is text and numbers");
            file::replace(&folder.join(NAME).with_extension("json"), &text)?;
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
