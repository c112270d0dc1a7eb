//! Following and cancelling an operation, and the stages that it is followed by.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::fetch::Gauge;
use crate::process::usage;
use crate::time::as_seconds;

pub use crate::process::cancel::CancellationToken;

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

/// The longest time between two events of a stage that waits for the service.
pub(super) const EVENT_EVERY: Duration = Duration::from_millis(250);

/// A stage in progress.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    control: &'a Control,
    /// The counters of the client, if the stage makes requests.
    gauge: Option<&'a Gauge>,
    begun: Instant,
    /// The processor time of the process when it started.
    used: Option<Duration>,
    /// Without what the client counts.
    progress: Mutex<Progress<'static>>,
}

/// The time that a stage took.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Timing {
    /// Its name.
    pub stage: &'static str,
    /// The wall clock time.
    pub seconds: f64,
    /// The processor time of the process, if the system provides it.
    pub cpu_seconds: Option<f64>,
}

impl<'a> Stage<'a> {
    /// Starts a stage.
    pub(super) fn begin(control: &'a Control, name: &'static str) -> Self {
        Self::start(control, name, None, None)
    }

    /// Starts a stage that makes some requests.
    pub(super) fn of_requests(control: &'a Control, name: &'static str, requests: usize, gauge: &'a Gauge) -> Self {
        Self::start(control, name, Some(requests), Some(gauge))
    }

    /// Starts a stage that goes through some files, or tasks that are planned on the way.
    pub(super) fn of_files(control: &'a Control, name: &'static str, files: usize) -> Self {
        Self::start(control, name, Some(files), None)
    }

    fn start(control: &'a Control, stage: &'static str, total: Option<usize>, gauge: Option<&'a Gauge>) -> Self {
        let (total, elapsed) = (total.map(|total| total as u64), Duration::ZERO);
        let progress = Mutex::new(Progress {
            stage,
            done: 0,
            total,
            rows: 0,
            bytes: 0,
            received: 0,
            retries: 0,
            waiting: None,
            elapsed,
        });
        let stage = Self { control, gauge, begun: Instant::now(), used: usage::processor_time(), progress };
        stage.observe(|progress| Event::Started(progress));
        stage
    }

    /// Sets how many tasks are done, and how many are planned.
    #[cfg(feature = "spark")]
    pub(super) fn tasks(&self, done: u64, planned: u64) {
        self.update(|progress| (progress.done, progress.total) = (done, Some(planned)));
    }

    /// Counts a request that was answered, or a file that was verified.
    pub(super) fn count(&self, rows: u64, bytes: u64) {
        self.update(|progress| {
            progress.done += 1;
            progress.rows += rows;
            progress.bytes += bytes;
        });
    }

    /// Counts rows.
    pub(super) fn advance(&self, rows: u64) {
        self.update(|progress| progress.rows += rows);
    }

    fn update(&self, change: impl FnOnce(&mut Progress<'static>)) {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        self.wait();
    }

    /// Shows that it is still in progress, and what it waits for.
    pub(super) fn wait(&self) {
        self.observe(|progress| Event::Advanced(progress));
    }

    /// Ends the stage.
    pub(super) fn finish(self) -> Timing {
        self.observe(|progress| Event::Finished(progress));
        let processor = usage::processor_time().zip(self.used).map(|(now, then)| now.saturating_sub(then));
        let cpu_seconds = processor.map(|time| time.as_secs_f64());
        let stage = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner).stage;
        Timing { stage, seconds: self.begun.elapsed().as_secs_f64(), cpu_seconds }
    }

    fn observe(&self, event: impl for<'e> FnOnce(&'e Progress<'e>) -> Event<'e>) {
        if self.control.observer.is_none() {
            return;
        }
        let waiting = self.gauge.and_then(Gauge::waiting);
        let counted = *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        self.control.observe(event(&Progress {
            received: self.gauge.map_or(0, Gauge::bytes),
            retries: self.gauge.map_or(0, Gauge::retries),
            waiting: waiting.as_ref().map(|(requests, reason)| Waiting { requests: *requests, reason }),
            elapsed: self.begun.elapsed(),
            ..counted
        }));
    }
}
