//! Calls of the library: an operation runs on its own thread, while the calling thread checks for signals. Its errors are
//! exceptions of `bellwether._errors`.
//!
//! The interpreter is released, so other Python threads keep running. Python sets a flag when a signal arrives and runs its
//! handler when the main thread checks: Ctrl-C takes effect within [`LOOK_EVERY`]. The operation is then cancelled and waited
//! for, as on a terminal. A second Ctrl-C stops waiting.
//!
//! Worker threads never wait for the interpreter: they queue events, and the calling thread delivers them when it checks for
//! signals.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bellwether::error::{Error, ErrorKind, Result};
use bellwether::key::without_keys;
use bellwether::run::{Control, Event, Observer};
use bellwether::text::problem::{PlacedProblem, Problems};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// How often the calling thread checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs an operation on a thread. A signal whose handler raises cancels it, and so does a function of its progress that
/// raises.
pub(crate) fn call<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    refuse_fork()?;
    let (events, stop) = (Events::default(), CancellationToken::new());
    let observer = progress.map(|_| Arc::new(events.clone()) as Arc<dyn Observer>);
    let control = Control { observer, stop: stop.clone() };
    let (send, mut receive) = mpsc::channel();
    let worker = thread::Builder::new().name("bellwether".to_owned()).spawn(move || {
        // This fails if the caller has stopped waiting.
        let _ = send.send(work(&control));
    });
    worker.map_err(|source| raise(Error::start(source)))?;
    let mut raised: Option<PyErr> = None;
    let ended = loop {
        let outcome;
        (receive, outcome) = py.detach(move || {
            let outcome = receive.recv_timeout(LOOK_EVERY);
            (receive, outcome)
        });
        if !matches!(outcome, Err(RecvTimeoutError::Timeout)) {
            break outcome;
        }
        if let Err(error) = py.check_signals().and_then(|()| events.deliver(py, progress)) {
            if raised.is_some() {
                return Err(error);
            }
            stop.cancel();
            raised = Some(error);
        }
    };
    match (ended, raised) {
        (Ok(Ok(_)), Some(error)) => Err(late(py, error)),
        (_, Some(error)) => Err(error),
        (Ok(Ok(value)), None) => events.deliver(py, progress).map(|()| value).map_err(|error| late(py, error)),
        (Ok(Err(error)), None) => {
            events.deliver(py, progress)?;
            Err(raise(error))
        }
        (Err(_), None) => Err(raise(Error::bug("it left its message on standard error"))),
    }
}

/// An interrupt that came when the operation was complete. It says so, where its message would be empty.
fn late(py: Python<'_>, error: PyErr) -> PyErr {
    let interrupt = error.value(py);
    let is_bare = interrupt.getattr("args").and_then(|args| args.is_empty()).unwrap_or_default();
    if error.is_instance_of::<PyKeyboardInterrupt>(py) && is_bare {
        let _ =
            interrupt.setattr("args", ("interrupted at the end: it was complete, and what it publishes is published",));
    }
    error
}

/// Runs asynchronous work on this thread. One thread is enough for the network: bodies are decoded on others.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::start)?.block_on(work)
}

/// A document of the library, as JSON.
pub(crate) fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("documents are text, numbers and lists")
}

/// An event as JSON, with the stage that advanced if it tells of that.
type PendingEvent = (String, Option<&'static str>);

/// Events that are not delivered yet. Only the latest event of a stage's progress is kept.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<PendingEvent>>>);

impl Observer for Events {
    fn observe(&self, event: &Event<'_>) {
        let advanced = if let Event::Advanced(progress) = event { Some(progress.stage) } else { None };
        let text = without_keys(&json(event));
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.pop_if(|(_, last)| advanced.is_some() && *last == advanced);
        events.push((text, advanced));
    }
}

impl Events {
    /// Calls the function that follows the operation with each event.
    fn deliver(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else { return Ok(()) };
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        events.iter().try_for_each(|(event, _)| progress.call1(py, (event,)).map(drop))
    }
}

/// The exception for an error of the library, with its causes, and with the problems of a definition.
pub(crate) fn raise(error: Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Usage => "UsageError",
        ErrorKind::Definition => "DefinitionError",
        ErrorKind::Key | ErrorKind::Refused | ErrorKind::Service => "ServiceError",
        ErrorKind::Temporary | ErrorKind::Busy | ErrorKind::Clock => "TemporaryError",
        ErrorKind::Checks => "ChecksError",
        ErrorKind::Data => "DataError",
        // In Python a file that does not exist is a `FileNotFoundError`.
        ErrorKind::NotFound | ErrorKind::NoDefinition => "NotFoundError",
        ErrorKind::Damaged
        | ErrorKind::Layout
        | ErrorKind::Read
        | ErrorKind::Storage
        | ErrorKind::Stream
        | ErrorKind::Write => "StorageError",
        ErrorKind::Interrupted => "Interrupted",
        _ => "BellwetherError",
    };
    let reasons = error.causes().map(|cause| without_keys(&cause.to_string())).collect();
    let problems = error.problems().map(Problems::list).unwrap_or_default();
    let places = problems.into_iter().map(|it: PlacedProblem| (it.message, it.hint, it.line, it.column)).collect();
    exception(class, (without_keys(&error.to_string()), error.hint().map(without_keys), reasons, places))
}

/// A problem of a definition: message, hint, line and column.
type Place = (String, Option<String>, Option<usize>, Option<usize>);

fn exception(class: &str, arguments: (String, Option<String>, Vec<String>, Vec<Place>)) -> PyErr {
    Python::attach(|py| {
        let class = py.import("bellwether._errors").and_then(|errors| errors.getattr(class));
        class.and_then(|class| class.call1(arguments)).map_or_else(|error| error, PyErr::from_value)
    })
}

/// Raises in a process that was forked after the library was used: its threads do not exist there, and waiting for them
/// would never end.
#[pyfunction]
pub(crate) fn refuse_fork() -> PyResult<()> {
    if !is_forked() {
        return Ok(());
    }
    let hint = "start workers with `multiprocessing.get_context(\"spawn\")`, or use bellwether for the first time in the \
                worker";
    Err(exception("ForkedError", (FORKED.to_owned(), Some(hint.to_owned()), Vec::new(), Vec::new())))
}

/// Whether the process was forked after the library was used. The first call marks it as used.
pub(crate) fn is_forked() -> bool {
    static USED_BY: OnceLock<u32> = OnceLock::new();
    let process = std::process::id();
    *USED_BY.get_or_init(|| process) != process
}

pub(crate) const FORKED: &str = "this process was forked after bellwether was used, and threads do not survive a fork";
