//! What can go wrong, as one type.
//!
//! A variant names an operation with its coordinates. `Display` says what failed and `source()` says why, never both.
//! [`Error::kind`] says which of a few kinds it is, and [`Error::hint`] what to do about it. No variant holds a key or an
//! address with its query.

mod hint;
mod kind;

use std::fmt;
use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

pub use crate::lock::Holder;
pub use kind::Kind;

use crate::human::{self, counted, grouped, percent};
use crate::interface::ValidationFault;
use crate::problem::Problems;
use crate::project::ProjectError;
use crate::time::to_record;

/// The result of an operation of Bellwether.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of another crate, kept for `source()`.
pub type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Rejected records or series of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The operation.
    pub operation: &'static str,
    /// Records or series.
    pub what: &'static str,
    /// How many were rejected.
    pub lost: u64,
    /// How many there were.
    pub of: u64,
}

impl fmt::Display for Rejected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, lost, of, .. } = self;
        write!(formatter, "{} of {} {what}", grouped(*lost), grouped(*of))
    }
}

/// `9 of 10 records and 9 of 10 series of signals-history-all`, and so on.
fn joined(rejected: &[Rejected]) -> String {
    let by_operation = rejected.chunk_by(|one, other| one.operation == other.operation).map(|of_operation| {
        let parts: Vec<String> = of_operation.iter().map(Rejected::to_string).collect();
        format!("{} of {}", parts.join(" and "), of_operation[0].operation)
    });
    by_operation.collect::<Vec<_>>().join(", ")
}

/// `missing A, B; new C`, and so on.
fn shift(missing: &str, new: &str) -> String {
    let parts = [("missing", missing), ("new", new)].into_iter().filter(|(_, names)| !names.is_empty());
    parts.map(|(what, names)| format!("{what} {names}")).collect::<Vec<_>>().join("; ")
}

/// Several reasons for one failure, each the source of the one before it.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Findings {
    what: String,
    #[source]
    next: Option<Box<Self>>,
}

impl Findings {
    /// A chain of findings; none if there are none.
    pub fn of(found: impl DoubleEndedIterator<Item = String>) -> Option<Self> {
        found.rev().fold(None, |next, what| Some(Self { what, next: next.map(Box::new) }))
    }

    /// The number of findings.
    pub fn count(&self) -> u64 {
        std::iter::successors(Some(self), |one| one.next.as_deref()).count() as u64
    }
}

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A definition with problems.
    #[error("{0}")]
    Definition(Problems),

    /// A project that cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),

    /// A definition that does not exist.
    #[error("no definition `{given}`: `{}` does not exist", path.display())]
    NoDefinition {
        /// What was asked for.
        given: String,
        /// The file that does not exist.
        path: PathBuf,
        /// The nearest names.
        hint: String,
    },

    /// A definition whose file name cannot name a dataset.
    #[error("`{}` cannot name a dataset", path.display())]
    DefinitionName {
        /// The file.
        path: PathBuf,
    },

    /// A definition that is larger than the limit.
    #[error("definition `{}` is larger than {}", path.display(), human::bytes(*limit))]
    LongDefinition {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },

    /// A file or folder that cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A file or folder that cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// An output file that already exists.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// Something else where a file or folder of ours should be.
    #[error("`{}` is {found}, expected {wanted}", path.display())]
    Occupied {
        /// Its path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What should be there.
        wanted: &'static str,
    },

    /// A file or folder that cannot be removed.
    #[error("cannot remove `{}`", path.display())]
    Remove {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A link where something of ours should be.
    #[error("`{}` is a symbolic link, which is not followed", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },

    /// More partitions than can be written at once.
    #[error("partitioning by `{column}` needs more than {most} files open at once")]
    TooManyFolders {
        /// The column with the most values.
        column: &'static str,
        /// The limit.
        most: usize,
    },

    /// Rows that cannot be encoded.
    #[error("cannot write rows to `{}`", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Reason,
    },

    /// A file with damaged content.
    #[error("`{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Reason,
    },

    /// An archive or a dataset with another layout.
    #[error("`{}` has layout {layout}; this version reads layout {known}", path.display())]
    Layout {
        /// The file that declares the layout.
        path: PathBuf,
        /// Its layout.
        layout: u64,
        /// The supported layout.
        known: u32,
    },

    /// Arguments that do not go together.
    #[error("{what}")]
    Usage {
        /// What is asked for.
        what: String,
        /// What to do.
        hint: &'static str,
    },

    /// Another run of the same definition on the same archive.
    #[error("another run of `{name}` is in progress on `{}`{}", archive.display(), by(holder.as_ref()))]
    Held {
        /// The definition.
        name: String,
        /// The archive.
        archive: PathBuf,
        /// The process that runs it, if known.
        holder: Option<Holder>,
    },

    /// A clock that is behind the newest run of the archive.
    #[error("the clock says {}, but the newest run in the archive was sealed at {}", to_record(*now), to_record(*sealed_at))]
    ClockBehind {
        /// The folder of the newest run; none if it is packed.
        run: Option<PathBuf>,
        /// When it was sealed.
        sealed_at: DateTime<Utc>,
        /// What the clock says.
        now: DateTime<Utc>,
    },

    /// A clock that moved backwards during a run.
    #[error("the clock moved backwards during the run, from {} to {}", to_record(*before), to_record(*now))]
    ClockWentBack {
        /// When the run began, or its last answer was complete.
        before: DateTime<Utc>,
        /// What the clock says.
        now: DateTime<Utc>,
    },

    /// An archive that does not exist.
    #[error("no archive: `{}` does not exist", path.display())]
    MissingArchive {
        /// Its folder.
        path: PathBuf,
    },

    /// An archive without runs.
    #[error("no sealed runs in `{}`", path.display())]
    NoArchive {
        /// The archive.
        path: PathBuf,
    },

    /// A dataset that was never published.
    #[error("no dataset {}in `{}`", name.as_ref().map_or_else(String::new, |name| format!("`{name}` ")), datasets.display())]
    NoDataset {
        /// Its name; none for any dataset.
        name: Option<String>,
        /// The folder of datasets.
        datasets: PathBuf,
    },

    /// An archive without data for a definition.
    #[error("the archive has no data for `{name}`")]
    NothingArchived {
        /// The definition.
        name: String,
    },

    /// An instant before the first run.
    #[error("no data as of {}: the first run was sealed at {}", to_record(*as_of), to_record(*first))]
    TooEarly {
        /// What was asked for.
        as_of: DateTime<Utc>,
        /// The end of the first run.
        first: DateTime<Utc>,
    },

    /// Observations that cannot be merged.
    #[error("cannot merge observations")]
    Settle {
        /// Why.
        source: Reason,
    },

    /// A version of a dataset that does not exist.
    #[error("no version `{given}` in `{}`", datasets.display())]
    NoVersion {
        /// What was asked for.
        given: String,
        /// The folder of datasets.
        datasets: PathBuf,
        /// The names that exist.
        known: Vec<String>,
    },

    /// A wide version where rows are needed.
    #[error("`{}` is wide: only long datasets can be compared", path.display())]
    Wide {
        /// Its folder.
        path: PathBuf,
    },

    /// Versions with different columns.
    #[error(
        "`{before}` and `{after}` have different columns: {only_before} only in the first, {only_after} only in the second"
    )]
    OtherColumns {
        /// The first.
        before: String,
        /// The second.
        after: String,
        /// The columns of the first only.
        only_before: String,
        /// The columns of the second only.
        only_after: String,
    },

    /// Rows that cannot be compared.
    #[error("cannot compare the rows of two versions")]
    Compare {
        /// Why.
        source: Reason,
    },

    /// A stream that cannot be written, or was closed by its reader.
    #[error("cannot write to the stream")]
    Stream {
        /// Why.
        source: io::Error,
    },

    /// No API key.
    #[error("no API key for {host}")]
    NoKey {
        /// The service's host.
        host: String,
    },

    /// An API key that cannot be read from its source.
    #[error("cannot get the API key from {place}")]
    KeySource {
        /// The file or command, without its output.
        place: String,
        /// Why.
        source: Reason,
        /// What to do.
        hint: &'static str,
    },

    /// An API key that the service refused.
    #[error("{host} refused the API key with status {status}")]
    KeyRefused {
        /// The service's host.
        host: String,
        /// The HTTP status.
        status: u16,
    },

    /// A service that does not answer for now.
    #[error("{host} did not answer `{request}` in {}", counted(u64::from(*attempts), "attempt", "attempts"))]
    Later {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// The number of attempts.
        attempts: u32,
        /// Why the last attempt failed.
        source: Reason,
    },

    /// A proxy that cannot be used.
    #[error("cannot reach {host} through the proxy `{proxy}`")]
    Proxy {
        /// Host and port of the service.
        host: String,
        /// Host and port of the proxy, without its credentials.
        proxy: String,
        /// Why.
        source: Reason,
    },

    /// A certificate that cannot be verified.
    #[error("cannot verify the certificate of {host}")]
    Certificate {
        /// Host and port.
        host: String,
        /// Why.
        source: Reason,
    },

    /// A base address without the service.
    #[error("`GET {address}` answered {status}: is `{setting}` correct?")]
    Address {
        /// What was asked for, without the query.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The setting that holds the base address.
        setting: &'static str,
        /// The operations that were asked for.
        lacking: String,
    },

    /// An answer that exceeds a limit or has a form that is not accepted.
    #[error("refused the answer of {host} to `{request}`")]
    Refused {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// Why.
        source: Reason,
    },

    /// A service that offers none of the operations that a definition could use.
    #[error("the service no longer offers what `{name}` asks for: {lacking}")]
    NoOperation {
        /// The definition.
        name: String,
        /// The operations that were asked for.
        lacking: String,
    },

    /// An operation that is no longer offered, and a fallback that lists different tickers.
    #[error("the service no longer offers {lacking}, and {instead} lists different tickers: {}", shift(missing, new))]
    OtherTickers {
        /// The definition.
        name: String,
        /// The operation that is no longer offered.
        lacking: String,
        /// The fallback.
        instead: &'static str,
        /// The tickers that it does not list, if any.
        missing: String,
        /// The tickers that only it lists, if any.
        new: String,
    },

    /// Data that fails a check.
    #[error("nothing was published for `{name}`: {}", counted(source.count(), "check failed", "checks failed"))]
    Checks {
        /// The definition.
        name: String,
        /// What to do.
        hint: &'static str,
        /// What the checks found.
        source: Box<Findings>,
    },

    /// Too many rejected records or series.
    #[error("rejected {}, above the limit of {}", joined(rejected), percent(*max_share))]
    TooManyRejects {
        /// What was rejected.
        rejected: Vec<Rejected>,
        /// The limit.
        max_share: f64,
        /// Where the rejected records are.
        kept: PathBuf,
        /// Why, if known.
        source: Option<Reason>,
    },

    /// A request that the service calls invalid.
    #[error("{host} says `{request}` is invalid: {fault}")]
    Invalid {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// What it says.
        fault: ValidationFault,
    },

    /// An unexpected status.
    #[error("{host} answered `{request}` with status {status}")]
    Status {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// The HTTP status.
        status: u16,
    },

    /// A body that is not what the interface describes.
    #[error("cannot parse the answer to `{request}`: {reason} at byte {offset}")]
    Malformed {
        /// The request, without the key.
        request: String,
        /// What is wrong with it.
        reason: String,
        /// Where, counted from the start of the body.
        offset: u64,
        /// Where the body is kept.
        evidence: Option<PathBuf>,
    },

    /// An HTTP client that cannot be set up.
    #[error("cannot set up the HTTP client")]
    Client {
        /// Why.
        source: Reason,
    },

    /// A service that cannot be started.
    #[error("cannot serve on {address}")]
    Serve {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },

    /// A join that failed.
    #[error("cannot join signals with news")]
    Join {
        /// Why.
        source: Reason,
    },

    /// Rows that Polars does not take.
    #[error("cannot make a frame of the dataset")]
    Frame {
        /// Why.
        source: Reason,
    },

    /// A dataset without rows.
    #[error("`{name}` has no rows: no signals match")]
    Empty {
        /// The definition.
        name: String,
    },

    /// A dataset that SQL cannot compute.
    #[error(transparent)]
    Sql(#[from] crate::sql::Refusal),

    /// An operation that its caller cancelled. A run keeps what was fetched for the next one.
    #[error("interrupted")]
    Interrupted,

    /// A process that the system denies threads or memory.
    #[error("cannot start")]
    Start {
        /// Why.
        source: io::Error,
    },

    /// A worker thread that panicked: a bug.
    #[error("a worker thread panicked; this is a bug in bellwether")]
    Worker {
        /// What it said.
        source: Reason,
    },
}

impl Error {
    /// A worker that panicked: a bug, unless the system was out of threads. The standard library and the thread pools
    /// panic in that case, and only the text of the panic tells the two apart.
    pub(crate) fn worker(panic: tokio::task::JoinError) -> Self {
        const NO_THREAD: [&str; 3] =
            ["failed to spawn thread", "OS can't spawn worker thread", "thread pool has not been initialized"];
        let text = panic.to_string();
        match NO_THREAD.iter().any(|sign| text.contains(sign)) {
            true => Self::Start { source: io::Error::other("the system is out of threads or memory") },
            false => Self::Worker { source: panic.into() },
        }
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(": {holder}"))
}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Self::Definition(problems)
    }
}
