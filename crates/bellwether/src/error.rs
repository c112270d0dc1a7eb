//! What can go wrong, as one type.
//!
//! `Display` says what failed and `source()` says why, never both. [`Error::kind`] is one of a few kinds, for callers that
//! handle them differently, and [`Error::hint`] says what to do. No error holds a key or an address with its query.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;

use crate::text::problem::Problems;

/// The result of an operation of Bellwether.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of another crate, kept for `source()`.
pub type Reason = Box<dyn std::error::Error + Send + Sync>;

/// An operation that failed.
#[derive(Debug)]
pub struct Error(Box<Parts>);

#[derive(Debug)]
struct Parts {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Reason>,
    problems: Option<Problems>,
    path: Option<PathBuf>,
}

/// Adds what failed to why it failed.
pub trait Context<T> {
    /// The error, as the source of one of this kind with this message.
    fn context(self, kind: ErrorKind, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Reason>> Context<T> for Result<T, E> {
    fn context(self, kind: ErrorKind, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::new(kind, message()).with_source(source))
    }
}

/// Adds what to do about a failure.
pub trait Hint {
    /// The same result, its error with this hint.
    #[must_use]
    fn hint(self, hint: impl Into<String>) -> Self;
}

impl<T> Hint for Result<T> {
    fn hint(self, hint: impl Into<String>) -> Self {
        self.map_err(|error| error.with_hint(hint))
    }
}

/// The kind of a failure, for callers that handle kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Arguments that do not go together, or a name that does not exist.
    Usage,
    /// An invalid definition.
    Definition,
    /// No such definition.
    NoDefinition,
    /// The service, the way to it, or the key for it.
    Service,
    /// The service refused the key.
    Key,
    /// The service refused the request: it calls it invalid, or does not know what it asks for.
    Refused,
    /// Our clock and that of the service disagree.
    Clock,
    /// The same call may succeed later; a run resumes.
    Temporary,
    /// Another process holds the lock. The same call succeeds later.
    Busy,
    /// The data failed a check: nothing was published, and the fetched data is kept.
    Checks,
    /// Findings that an option turns into a failure: more was rewritten than allowed.
    Found,
    /// The data does not allow the operation.
    Data,
    /// There is no such archive, run, dataset or version, or no data in it.
    NotFound,
    /// A file or folder that cannot be read.
    Read,
    /// A file or folder that cannot be written.
    Write,
    /// A file whose content is not what was written.
    Damaged,
    /// A folder of another layout than this version reads.
    Layout,
    /// Files and folders: in the way, lost, or not what they should be.
    Storage,
    /// The output stream of the caller cannot be written; its reader may be gone.
    Stream,
    /// Cancelled by the caller. A run keeps its fetched data for the next one.
    Interrupted,
    /// A bug, or a process without threads or memory.
    Internal,
}

impl ErrorKind {
    /// The exit code of the program for it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Definition | Self::NoDefinition => 2,
            Self::Found => 3,
            Self::Checks => 4,
            Self::Temporary | Self::Clock | Self::Busy => 75,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

impl Error {
    /// A failure, without a hint or a source. The message says what failed: lower case, values in backticks, no full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let parts = Parts { kind, message: message.into(), hint: None, source: None, problems: None, path: None };
        Self(Box::new(parts))
    }

    /// The same failure with an action that mends it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same failure with its reason.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Reason>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same failure of a file, whose path callers ask for.
    #[must_use]
    pub fn with_path(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// The same failure with several reasons, each the source of the one before it.
    #[must_use]
    pub fn with_reasons(self, reasons: impl IntoIterator<Item = String, IntoIter: DoubleEndedIterator>) -> Self {
        let kind = self.kind();
        let reasons = reasons.into_iter().rev().map(|reason| Self::new(kind, reason));
        let first = reasons.reduce(|next, reason| reason.with_source(next));
        first.into_iter().fold(self, Self::with_source)
    }

    /// A definition with problems, each at its place.
    pub fn invalid_definition(problems: Problems) -> Self {
        let mut error = Self::new(ErrorKind::Definition, problems.to_string());
        error.0.problems = Some(problems);
        error
    }

    /// An invalid combination of arguments, with a hint.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what).with_hint(hint)
    }

    /// An operation that its caller cancelled.
    pub fn interruption() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted")
    }

    /// A process that the system denies threads or memory.
    pub fn start(source: io::Error) -> Self {
        Self::new(ErrorKind::Internal, "cannot start")
            .with_hint("raise the limits of the process; `ulimit -a` lists them")
            .with_source(source)
    }

    /// A thread that ended without a result: a bug.
    pub fn bug(source: impl Into<Reason>) -> Self {
        Self::new(ErrorKind::Internal, "a worker thread panicked; this is a bug in bellwether").with_source(source)
    }

    /// Rows that Polars or Arrow do not take.
    pub fn frame(source: impl Into<Reason>) -> Self {
        Self::new(ErrorKind::Internal, "cannot make a frame of the dataset").with_source(source)
    }

    /// The error in a failure of a stream of record batches: one of Bellwether's, or one of Arrow's own.
    pub fn of_stream(failure: ArrowError) -> Self {
        match failure {
            ArrowError::ExternalError(source) => source.downcast().map_or_else(Self::frame, |error| *error),
            failure => Self::frame(failure),
        }
    }

    /// A worker that panicked: a bug, unless the system was out of threads.
    pub fn worker(panic: tokio::task::JoinError) -> Self {
        if is_want_of_threads(&panic.to_string()) { Self::out_of_threads() } else { Self::bug(panic) }
    }

    /// What a thread panicked with: a bug, unless the system was out of threads.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = text_of(panic);
        if is_want_of_threads(text) { Self::out_of_threads() } else { Self::bug(text) }
    }

    fn out_of_threads() -> Self {
        Self::start(io::Error::other("the system is out of threads or memory"))
    }

    /// The same failure as one of another kind.
    #[must_use]
    pub fn as_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What failed and why, in one line.
    pub fn in_one_line(&self) -> String {
        let causes = self.causes().map(ToString::to_string);
        std::iter::once(self.to_string()).chain(causes).collect::<Vec<_>>().join(": ")
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The file that is damaged, if that is what failed.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The problems of a definition, if that is what failed.
    pub fn problems(&self) -> Option<&Problems> {
        self.0.problems.as_ref()
    }

    /// The error of the system that is the reason, if one is.
    pub fn io_source(&self) -> Option<&io::Error> {
        std::error::Error::source(self)?.downcast_ref()
    }

    /// Its causes, from the nearest to the innermost.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
        causes(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.source.as_ref()?.as_ref())
    }
}

/// The causes of an error, from the nearest to the innermost.
pub fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}

/// The text of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message")
}

/// Whether a panic means that the system has no thread to spare. The standard library and the thread pools panic in that
/// case, and only their texts tell it from a bug.
pub fn is_want_of_threads(panic: &str) -> bool {
    const SIGNS: [&str; 5] = [
        "failed to spawn thread",
        "OS can't spawn worker thread",
        "thread pool has not been initialized",
        "could not spawn threads",
        "ThreadPoolBuildError",
    ];
    SIGNS.iter().any(|sign| panic.contains(sign))
}

/// The same error of the system, which cannot be cloned.
pub fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The system's error in a chain of reasons: its kind decides on the hint, and its text is the system's.
pub(crate) fn system_error(error: &Reason) -> Option<io::Error> {
    let error: &(dyn std::error::Error + 'static) = error.as_ref();
    let chain = || std::iter::once(error).chain(causes(error));
    if let Some(found) = chain().find_map(|cause| cause.downcast_ref()) {
        return Some(same(found));
    }
    // Arrow keeps only the text of what the Parquet reader met.
    let text = chain().last()?.to_string();
    let number = text.strip_suffix(')')?.rsplit_once("(os error ")?.1;
    number.parse().ok().map(io::Error::from_raw_os_error)
}
