//! A stage in progress, and the time that it took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::observer::{Control, Event, Progress, Waiting};
use crate::fetch::Gauge;
use crate::process::usage;

/// The longest time between two events of a stage that waits for the service.
pub(super) const EVENT_EVERY: Duration = Duration::from_millis(250);

/// A stage in progress.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    name: &'static str,
    control: &'a Control,
    /// The counters of the client, if the stage makes requests.
    gauge: Option<&'a Gauge>,
    begun: Instant,
    /// The processor time of the process when it started.
    used: Option<Duration>,
    /// How many requests, files or tasks it has; none if it has none.
    total: Option<AtomicU64>,
    done: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
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
        Self::start(control, name, Some(requests as u64), Some(gauge))
    }

    /// Starts a stage that goes through some files, or tasks that are planned on the way.
    pub(super) fn of_files(control: &'a Control, name: &'static str, files: usize) -> Self {
        Self::start(control, name, Some(files as u64), None)
    }

    /// Sets how many tasks are done, and how many are planned.
    #[cfg(feature = "spark")]
    pub(super) fn tasks(&self, done: u64, planned: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.iter().for_each(|total| total.store(planned, Ordering::Relaxed));
        self.wait();
    }

    fn start(control: &'a Control, name: &'static str, total: Option<u64>, gauge: Option<&'a Gauge>) -> Self {
        let (begun, used) = (Instant::now(), usage::processor_time());
        let [done, rows, bytes] = [0; 3].map(AtomicU64::new);
        let total = total.map(AtomicU64::new);
        let stage = Self { name, control, gauge, begun, used, total, done, rows, bytes };
        stage.observe(|progress| Event::Started(progress));
        stage
    }

    /// Counts a request that was answered, or a file that was verified.
    pub(super) fn count(&self, rows: u64, bytes: u64) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.advance(rows);
    }

    /// Counts rows.
    pub(super) fn advance(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
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
        Timing { stage: self.name, seconds: self.begun.elapsed().as_secs_f64(), cpu_seconds }
    }

    fn observe(&self, event: impl for<'e> FnOnce(&'e Progress<'e>) -> Event<'e>) {
        if self.control.observer.is_none() {
            return;
        }
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let waiting = self.gauge.and_then(Gauge::waiting);
        let progress = Progress {
            stage: self.name,
            done: count(&self.done),
            total: self.total.as_ref().map(count),
            rows: count(&self.rows),
            bytes: count(&self.bytes),
            received: self.gauge.map_or(0, Gauge::bytes),
            retries: self.gauge.map_or(0, Gauge::retries),
            waiting: waiting.as_ref().map(|(requests, reason)| Waiting { requests: *requests, reason }),
            elapsed: self.begun.elapsed(),
        };
        self.control.observe(event(&progress));
    }
}
