//! The library's errors as exceptions of `bellwether._errors`.

use bellwether::error::{Error, ErrorKind};
use bellwether::key::without_keys;
use bellwether::text::problem::{PlacedProblem, Problems};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception of an error.
fn class_of(error: &Error) -> &'static str {
    match error.kind() {
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
    }
}

/// An exception for an error of the library, with its causes.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let reasons: Vec<String> = error.causes().map(|cause| without_keys(&cause.to_string())).collect();
    let problems = error.problems().map(places).unwrap_or_default();
    let hint = error.hint().map(without_keys);
    let made = class(py, class_of(error))
        .and_then(|class| class.call1((without_keys(&error.to_string()), hint, reasons, problems)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A problem of a definition: message, hint, line and column.
type Place = (String, Option<String>, Option<usize>, Option<usize>);

fn places(problems: &Problems) -> Vec<Place> {
    let place = |PlacedProblem { message, hint, line, column }| (message, hint, line, column);
    problems.list().into_iter().map(place).collect()
}

/// An exception in a process that was forked.
pub(crate) fn fork_exception(py: Python<'_>, message: &str, hint: &str) -> PyErr {
    class(py, "ForkedError")
        .and_then(|class| class.call1((message, hint)))
        .map_or_else(|error| error, PyErr::from_value)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let errors = ERRORS.get_or_try_init(py, || py.import("bellwether._errors").map(Bound::unbind))?;
    Ok(errors.bind(py).getattr(name)?.cast_into()?)
}
