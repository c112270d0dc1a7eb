//! Events of an operation, queued for the Python function that observes it.
//!
//! Worker threads never wait for the interpreter: they queue events, and the calling thread delivers them when it checks for
//! signals. Of a stage's progress, only the latest event is kept.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether::key::without_keys;
use bellwether::run::{Event, Observer};
use pyo3::prelude::*;

use crate::supervise::json;

/// Events not delivered yet.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<LastEvent>>>);

/// An event as JSON, and the stage that advanced, if it tells of that.
struct LastEvent(String, Option<&'static str>);

impl Observer for Events {
    fn observe(&self, event: &Event<'_>) {
        let advanced = if let Event::Advanced(progress) = event { Some(progress.stage) } else { None };
        let kept = LastEvent(without_keys(&json(event)), advanced);
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match events.last_mut() {
            Some(last) if advanced.is_some() && last.1 == advanced => *last = kept,
            _ => events.push(kept),
        }
    }
}

impl Events {
    /// Calls a Python function with each event, as JSON.
    pub(crate) fn pass_on(&self, py: Python<'_>, follow: Option<&Py<PyAny>>) -> PyResult<()> {
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(follow) = follow else { return Ok(()) };
        events.iter().try_for_each(|LastEvent(event, _)| follow.call1(py, (event,)).map(|_| ()))
    }
}
