//! Events of an operation, queued for the Python function that observes it.
//!
//! Worker threads never wait for the interpreter: they queue events, and the calling thread delivers them when it checks for
//! signals. Of a stage's progress, only the latest event is kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::run::{Event, Observer, Progress};
use bellwether::secret::without_keys;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Events not delivered yet.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<LastEvent>>>);

/// An owned copy of an event.
#[derive(Default)]
struct LastEvent {
    event: &'static str,
    message: String,
    stage: &'static str,
    done: u64,
    total: Option<u64>,
    rows: u64,
    bytes: u64,
    received: u64,
    retries: u64,
    elapsed: Duration,
}

const ADVANCED: &str = "advanced";

impl Observer for Events {
    fn observe(&self, event: &Event<'_>) {
        let kept = match event {
            Event::Started(progress) => LastEvent::of_stage("started", progress),
            Event::Advanced(progress) => LastEvent::of_stage(ADVANCED, progress),
            Event::Finished(progress) => LastEvent::of_stage("finished", progress),
            Event::Resumed { answers } => LastEvent { done: *answers as u64, ..LastEvent::saying("resumed", "") },
            Event::Note(note) => LastEvent::saying("note", note),
            Event::Warning(warning) => LastEvent::saying("warning", warning),
            _ => return,
        };
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match events.last_mut() {
            Some(last) if kept.event == ADVANCED && last.event == ADVANCED && last.stage == kept.stage => *last = kept,
            _ => events.push(kept),
        }
    }
}

impl Events {
    /// Calls a Python function with each event.
    pub(crate) fn pass_on(&self, py: Python<'_>, follow: Option<&Py<PyAny>>) -> PyResult<()> {
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(follow) = follow else { return Ok(()) };
        events.iter().try_for_each(|event| follow.call1(py, (event.to_dict(py)?,)).map(|_| ()))
    }
}

impl LastEvent {
    fn saying(event: &'static str, message: &str) -> Self {
        Self { event, message: without_keys(message), ..Self::default() }
    }

    fn of_stage(event: &'static str, progress: &Progress<'_>) -> Self {
        let waiting =
            progress.waiting.map(|waiting| format!("{} waiting to retry: {}", waiting.requests, waiting.reason));
        Self {
            stage: progress.stage,
            done: progress.done,
            total: progress.total,
            rows: progress.rows,
            bytes: progress.bytes,
            received: progress.received,
            retries: progress.retries,
            elapsed: progress.elapsed,
            ..Self::saying(event, &waiting.unwrap_or_default())
        }
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("event", self.event)?;
        dict.set_item("message", &self.message)?;
        dict.set_item("stage", self.stage)?;
        dict.set_item("done", self.done)?;
        dict.set_item("total", self.total)?;
        dict.set_item("rows", self.rows)?;
        dict.set_item("bytes", self.bytes)?;
        dict.set_item("received", self.received)?;
        dict.set_item("retries", self.retries)?;
        dict.set_item("seconds", self.elapsed.as_secs_f64())?;
        Ok(dict)
    }
}
