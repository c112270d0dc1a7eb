//! The events of a scheduler.

use std::sync::Arc;

use bellwether::error::Error;
use bellwether::run::Observer;
use chrono::{DateTime, Utc};

use super::record::RunRecord;

/// Follows a scheduler. The library prints nothing.
pub trait Watcher: Send + Sync {
    /// Takes note of an event.
    fn watch(&self, event: &ScheduleEvent<'_>);

    /// The observer of a definition's runs.
    fn observer(&self, definition: &str) -> Option<Arc<dyn Observer>>;
}

/// What happens in a scheduler.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ScheduleEvent<'a> {
    /// A definition with a schedule is new, or was changed.
    Scheduled {
        /// The definition.
        definition: &'a str,
        /// Its next time.
        next: Option<DateTime<Utc>>,
    },
    /// A definition is no longer scheduled: it was removed, or lost its `[schedule]`.
    Unscheduled {
        /// The definition.
        definition: &'a str,
    },
    /// A definition cannot be used, or what is remembered of it cannot be read or written. It is reported once, and again
    /// when the reason changes.
    Broken {
        /// The definition.
        definition: &'a str,
        /// Why.
        error: &'a Error,
    },
    /// A look at the definitions failed, so nothing is started. It is reported once, and again when the reason changes.
    LookFailed {
        /// Why.
        error: &'a Error,
    },
    /// What was reported as broken or failed works again.
    Recovered {
        /// The definition; none for the look.
        definition: Option<&'a str>,
    },
    /// A run was due and did not start.
    NotStarted {
        /// Its record.
        record: &'a RunRecord,
    },
    /// Times were missed that will not be run.
    Missed {
        /// The definition.
        definition: &'a str,
        /// How many, up to a thousand.
        missed: usize,
    },
    /// A run started.
    Started {
        /// The definition.
        definition: &'a str,
        /// The time that it is for.
        due: DateTime<Utc>,
        /// The number of attempts before.
        attempts: u32,
    },
    /// A run ended.
    Ended {
        /// Its record.
        record: &'a RunRecord,
        /// When it is retried, if it is.
        retry: Option<DateTime<Utc>>,
    },
    /// Another run of the definition is in progress, started manually or by another scheduler.
    InProgress {
        /// The definition.
        definition: &'a str,
        /// When the run is retried; none if its deadline has passed.
        retry: Option<DateTime<Utc>>,
    },
    /// A due time is covered by a later run, started manually or by another scheduler.
    AlreadyRun {
        /// The definition.
        definition: &'a str,
        /// The time.
        due: DateTime<Utc>,
        /// The run.
        run: &'a str,
    },
    /// Connections to the status page were closed without an answer; at most once an hour.
    Unanswered {
        /// Why.
        reason: &'a str,
    },
    /// The scheduler stops, once the runs in progress have stopped.
    Stopping {
        /// The number of runs in progress.
        running: usize,
    },
}
