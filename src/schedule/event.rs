//! The events of a scheduler.

use std::sync::Arc;

use bellwether::error::Error;
use bellwether::run::Observer;
use bellwether::time::as_record;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::record::RunRecord;
use crate::explanation::Explanation;

/// Follows a scheduler. The library prints nothing.
pub trait Watcher: Send + Sync {
    /// Takes note of an event.
    fn watch(&self, event: &ScheduleEvent<'_>);

    /// The observer of a definition's runs.
    fn observer(&self, definition: &str) -> Option<Arc<dyn Observer>>;
}

/// What happens in a scheduler. As JSON, it is what `--log json` prints.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScheduleEvent<'a> {
    /// A definition with a schedule is new, or was changed.
    Scheduled {
        /// The definition.
        definition: &'a str,
        /// Its next time.
        #[serde(serialize_with = "as_record::serialize_if_any")]
        #[schemars(with = "Option<String>")]
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
        #[serde(serialize_with = "Explanation::serialize_of")]
        #[schemars(with = "Explanation")]
        error: &'a Error,
    },
    /// A look at the definitions failed, so nothing is started. It is reported once, and again when the reason changes.
    LookFailed {
        /// Why.
        #[serde(serialize_with = "Explanation::serialize_of")]
        #[schemars(with = "Explanation")]
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
        #[serde(flatten)]
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
        #[serde(with = "as_record")]
        #[schemars(with = "String")]
        due: DateTime<Utc>,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// A run ended.
    Ended {
        /// Its record.
        #[serde(flatten)]
        record: &'a RunRecord,
        /// When it is retried, if it is.
        #[serde(serialize_with = "as_record::serialize_if_any")]
        #[schemars(with = "Option<String>")]
        retry: Option<DateTime<Utc>>,
    },
    /// Another run of the definition is in progress, started manually or by another scheduler.
    InProgress {
        /// The definition.
        definition: &'a str,
        /// When the run is retried; none if its deadline has passed.
        #[serde(serialize_with = "as_record::serialize_if_any")]
        #[schemars(with = "Option<String>")]
        retry: Option<DateTime<Utc>>,
    },
    /// A due time is covered by a later run, started manually or by another scheduler.
    AlreadyRun {
        /// The definition.
        definition: &'a str,
        /// The time.
        #[serde(with = "as_record")]
        #[schemars(with = "String")]
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
