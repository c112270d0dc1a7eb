//! Following and cancelling an operation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

pub use crate::process::cancel::CancellationToken;
use crate::time::as_seconds;

/// Observes an operation. The library prints nothing: callers get events instead.
///
/// The threads that do the work call it, so it should return quickly. A closure is an observer.
pub trait Observer: Send + Sync {
    /// Called for each event.
    fn observe(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}

/// What happens during an operation. As JSON, an event is the same for `--log json` and for Python.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event<'a> {
    /// Another run of the definition is in progress, and this one waits for it.
    Held {
        /// Whose it is, since when, and for how long this one waits.
        message: &'a str,
    },
    /// The run has its name, which its folder in the archive will have. A resumed run keeps its name.
    Named {
        /// The name.
        run: &'a str,
    },
    /// A stage started. Stages follow one another. A stage that fails, or is replaced by another, does not finish.
    Started(&'a Progress<'a>),
    /// A stage advanced, or waits for the service.
    Advanced(&'a Progress<'a>),
    /// A stage finished.
    Finished(&'a Progress<'a>),
    /// An interrupted run is resumed.
    Resumed {
        /// The number of requests that it has answers for.
        answers: usize,
    },
    /// A remark on the result, which is also in its summary. It may quote the service: escape it before printing it.
    Note {
        /// The remark.
        message: &'a str,
    },
    /// Something to correct, although the operation can continue.
    Warning {
        /// What to correct.
        message: &'a str,
    },
}

/// The progress of a stage.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The name of the stage.
    pub stage: &'static str,
    /// The number of requests that are answered, of files that are verified, or of tasks that are done.
    pub done: u64,
    /// How many there are so far; none if the stage has none.
    pub total: Option<u64>,
    /// Rows so far.
    pub rows: u64,
    /// Bytes of the answers that are complete.
    pub bytes: u64,
    /// Bytes received in all stages, including answers in progress.
    pub received: u64,
    /// Retries in all stages.
    pub retries: u64,
    /// The requests that wait to be retried, if any.
    pub waiting: Option<Waiting<'a>>,
    /// The time since the stage started.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    #[schemars(with = "f64")]
    pub elapsed: Duration,
}

/// Requests that wait to be retried.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Waiting<'a> {
    /// How many.
    pub requests: u32,
    /// Why the latest one waits. It may quote the service: escape it before printing it.
    pub reason: &'a str,
}

/// Follows and cancels an operation. By default it is neither observed nor cancelled.
///
/// ```
/// use bellwether::run::{Control, Event};
///
/// let control = Control::observed_by(|event: &Event<'_>| {
///     if let Event::Finished(progress) = event {
///         println!("{}: {} rows", progress.stage, progress.rows);
///     }
/// });
/// let stop = control.stop.clone(); // `stop.cancel()` cancels it, from any thread
/// # assert!(!stop.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Control {
    /// Follows the operation.
    pub observer: Option<Arc<dyn Observer>>,
    /// Cancels the operation.
    pub stop: CancellationToken,
}

impl Control {
    /// With an observer.
    pub fn observed_by(observer: impl Observer + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..Self::default() }
    }

    /// Tells the observer, if there is one.
    pub fn observe(&self, event: Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe(&event);
        }
    }

    /// Warnings are shown at once, also where nothing else is.
    pub(super) fn warn(&self, warnings: &[String]) {
        warnings.iter().for_each(|message| self.observe(Event::Warning { message }));
    }

    pub(super) fn note(&self, notes: &[String]) {
        notes.iter().for_each(|message| self.observe(Event::Note { message }));
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Control").field("stop", &self.stop.is_cancelled()).finish_non_exhaustive()
    }
}
