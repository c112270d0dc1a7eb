//! What keeps a scheduler from its work. Each is reported once, again when the reason changes, and once more when it is
//! gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether::error::Error;

use super::event::{ScheduleEvent, Watcher};
use super::look::LookFault;
use super::record::Fault;

/// What does not work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The look at the definitions: nothing is started.
    Look,
    /// The record of the last look.
    Record,
    /// A definition.
    Definition(String),
}

/// Of what kind an obstacle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObstacleKind {
    /// Files of state cannot be read or written.
    State,
    /// The definition itself is invalid.
    Invalid,
}

/// The obstacles of a scheduler.
pub(super) struct Obstacles {
    watcher: Arc<dyn Watcher>,
    known: BTreeMap<Subject, (ObstacleKind, Fault)>,
}

impl Obstacles {
    pub(super) fn new(watcher: Arc<dyn Watcher>) -> Self {
        Self { watcher, known: BTreeMap::new() }
    }

    /// Takes note of an obstacle whose error is reported elsewhere. Returns whether it is new.
    pub(super) fn note(&mut self, subject: Subject, kind: ObstacleKind, error: &Error) -> bool {
        let obstacle = (kind, Fault::of(error));
        self.known.insert(subject, obstacle.clone()) != Some(obstacle)
    }

    /// Reports an obstacle, unless it is reported already.
    pub(super) fn report(&mut self, subject: Subject, kind: ObstacleKind, error: &Error) {
        if self.note(subject.clone(), kind, error) {
            self.watcher.watch(&match &subject {
                Subject::Look | Subject::Record => ScheduleEvent::LookFailed { error },
                Subject::Definition(definition) => ScheduleEvent::Broken { definition, error },
            });
        }
    }

    /// Reports that there is no obstacle of a kind any more, if there was one.
    pub(super) fn clear(&mut self, subject: &Subject, kind: ObstacleKind) {
        if self.known.get(subject).is_some_and(|(known, _)| *known == kind) {
            self.known.remove(subject);
            let definition = match subject {
                Subject::Look | Subject::Record => None,
                Subject::Definition(name) => Some(name.as_str()),
            };
            self.watcher.watch(&ScheduleEvent::Recovered { definition });
        }
    }

    /// Forgets a definition that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.known.remove(&Subject::Definition(name.to_owned()));
    }

    /// What keeps a definition from being run.
    pub(super) fn of(&self, name: &str) -> Option<&Fault> {
        self.known.get(&Subject::Definition(name.to_owned())).map(|(_, fault)| fault)
    }

    /// The worst of them: state before invalid definitions.
    pub(super) fn worst(&self) -> Option<&Fault> {
        self.known.values().min_by_key(|(kind, _)| *kind).map(|(_, fault)| fault)
    }

    /// All of them, for the record of a look.
    pub(super) fn faults(&self) -> Vec<LookFault> {
        let of = |(subject, (kind, fault)): (&Subject, &(ObstacleKind, Fault))| LookFault {
            definition: match subject {
                Subject::Look | Subject::Record => None,
                Subject::Definition(name) => Some(name.clone()),
            },
            reason: fault.reason(),
            is_invalid: *kind == ObstacleKind::Invalid,
        };
        self.known.iter().map(of).collect()
    }
}
