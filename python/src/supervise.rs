//! Runs an operation on its own thread, while the calling thread checks for signals.
//!
//! The interpreter is released, so other Python threads keep running. Python sets a flag when a signal arrives and runs its
//! handler when the main thread checks: Ctrl-C takes effect within [`LOOK_EVERY`]. The operation is then cancelled and waited
//! for, as on a terminal. A second Ctrl-C stops waiting.

use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use bellwether::error::{Error, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::fault;

/// How often the calling thread checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs an operation on a thread. A signal whose handler raises cancels it.
///
/// `look` is called regularly on the calling thread, and once at the end.
pub(crate) fn supervise<T: Send + 'static>(
    py: Python<'_>,
    look: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    refuse_fork()?;
    let stop = CancellationToken::new();
    let (send, mut receive) = mpsc::channel();
    let worker = thread::Builder::new().name("bellwether".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            // This fails if the caller has stopped waiting.
            let _ = send.send(work(&stop));
        }
    });
    let worker = worker.map_err(|source| fault::exception(py, &Error::start(source)))?;
    let mut raised: Option<PyErr> = None;
    loop {
        let outcome;
        (receive, outcome) = py.detach(move || {
            let outcome = receive.recv_timeout(LOOK_EVERY);
            (receive, outcome)
        });
        match (outcome, raised.take()) {
            (Ok(Ok(_)), Some(error)) => return Err(late(py, error)),
            (Ok(Err(_)), Some(error)) => return Err(error),
            (Ok(Ok(value)), None) => return look().map(|()| value).map_err(|error| late(py, error)),
            (Ok(Err(error)), None) => {
                look()?;
                return Err(fault::exception(py, &error));
            }
            (Err(RecvTimeoutError::Disconnected), earlier) => {
                let _ = py.detach(|| worker.join());
                return Err(earlier.unwrap_or_else(|| panic_exception(py)));
            }
            (Err(RecvTimeoutError::Timeout), earlier) => match (earlier, py.check_signals().and_then(|()| look())) {
                (earlier, Ok(())) => raised = earlier,
                (None, Err(error)) => {
                    stop.cancel();
                    raised = Some(error);
                }
                (Some(_), Err(error)) => return Err(error),
            },
        }
    }
}

/// An interrupt that came when the operation was complete. It says so, where its message would be empty.
fn late(py: Python<'_>, error: PyErr) -> PyErr {
    let interrupt = error.value(py);
    let is_bare = || Ok::<bool, PyErr>(interrupt.getattr("args")?.len()? == 0);
    if error.is_instance_of::<PyKeyboardInterrupt>(py) && is_bare().unwrap_or_default() {
        let _ =
            interrupt.setattr("args", ("interrupted at the end: it was complete, and what it publishes is published",));
    }
    error
}

/// Runs an operation without progress.
pub(crate) fn quietly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    supervise(py, &mut || Ok(()), work)
}

/// Raises in a process that was forked after the library was used: its threads do not exist there, and waiting for them
/// would never end.
#[pyfunction]
pub(crate) fn refuse_fork() -> PyResult<()> {
    match is_forked() {
        false => Ok(()),
        true => Err(Python::attach(|py| fault::fork_exception(py, FORKED, FORKED_HINT))),
    }
}

/// Whether the process was forked after the library was used. The first call marks it as used.
pub(crate) fn is_forked() -> bool {
    static USED_BY: OnceLock<u32> = OnceLock::new();
    let process = std::process::id();
    *USED_BY.get_or_init(|| process) != process
}

pub(crate) const FORKED: &str = "this process was forked after bellwether was used, and threads do not survive a fork";
const FORKED_HINT: &str =
    "start workers with `multiprocessing.get_context(\"spawn\")`, or use bellwether for the first time in the worker";

/// A document of the library, as JSON.
pub(crate) fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("documents are text, numbers and lists")
}

fn panic_exception(py: Python<'_>) -> PyErr {
    fault::exception(py, &Error::bug("it left its message on standard error"))
}
