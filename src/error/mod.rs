//! What can go wrong, as one type.
//!
//! A variant names an operation with its coordinates. `Display` says what failed and `source()` says why, never both.
//! [`Error::hint`] is the action that a person can take, and [`Error::exit_code`] what a scheduler acts on: 0 means that
//! exactly what was asked for is there, and [`EXIT_CODES`] says what every other one means. No variant holds a key, nor an
//! address with its query.

mod advice;

use std::fmt;
use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::interface::ValidationFault;
use crate::lock::Holder;
use crate::numbers::{self, counted, grouped, percent};
use crate::problem::Problems;
use crate::time::to_record;

/// The result of an operation of Bellwether.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The exit code for what a person typed: arguments and definitions.
pub const EXIT_USAGE: u8 = 2;

/// The exit code for an answer that was asked to be a failure: more was rewritten than may be, or versions differ.
pub const EXIT_FOUND: u8 = 3;

/// The exit code for data that is not what was asked for.
pub const EXIT_CHECKS: u8 = 4;

/// The exit code for what does not work now: the same command goes on later.
pub const EXIT_LATER: u8 = 75;

/// The exit code of a run that was asked to stop.
pub const EXIT_INTERRUPTED: u8 = 130;

/// What each exit code means, as `--help` says it.
pub const EXIT_CODES: [(u8, &str); 7] = [
    (0, "exactly what was asked for is there"),
    (1, "failed; see the error message"),
    (EXIT_USAGE, "invalid arguments or an invalid definition"),
    (EXIT_FOUND, "versions differ, or too much was rewritten"),
    (EXIT_CHECKS, "a check of the data failed, and nothing was published"),
    (EXIT_LATER, "temporary failure: run the same command later to resume"),
    (EXIT_INTERRUPTED, "interrupted: run the same command to resume"),
];

/// A reason of another crate, kept for `source()`.
pub type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Some records or series of an operation that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The operation.
    pub operation: &'static str,
    /// Records or series.
    pub what: &'static str,
    /// How many could not be read.
    pub lost: u64,
    /// Of how many.
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
    /// Some findings; none where there are none.
    pub fn of(found: impl DoubleEndedIterator<Item = String>) -> Option<Self> {
        found.rev().fold(None, |next, what| Some(Self { what, next: next.map(Box::new) }))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        std::iter::successors(Some(self), |one| one.next.as_deref()).count() as u64
    }
}

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A definition that is not right.
    #[error("{0}")]
    Definition(Problems),

    /// A definition that is not there.
    #[error("no definition `{given}`: `{}` does not exist", path.display())]
    NoDefinition {
        /// What was asked for.
        given: String,
        /// Where it was looked for.
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

    /// A definition that is longer than any that is read.
    #[error("definition `{}` is larger than {}", path.display(), numbers::bytes(*limit))]
    LongDefinition {
        /// The file.
        path: PathBuf,
        /// The most bytes that it may have.
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

    /// A file that is there already, where an answer would be written.
    #[error("`{}` is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// Something of somebody else's that stands where a file or folder would be written.
    #[error("`{}` is {found}, where {wanted} should be", path.display())]
    Occupied {
        /// Where it stands.
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
    #[error("`{}` is a link, and links are not followed there", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },

    /// More folders than can be written at once.
    #[error("folders by `{column}` need more than {most} files to be written at once")]
    TooManyFolders {
        /// The column with the most values.
        column: &'static str,
        /// How many folders may be under way.
        most: usize,
    },

    /// Columns that cannot be encoded into a file.
    #[error("cannot write rows to `{}`", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Reason,
    },

    /// A file whose columns cannot be read.
    #[error("cannot read the rows of `{}`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Reason,
    },

    /// An archive or a dataset of another layout.
    #[error("`{}` has layout {layout}; this version reads layout {known}", path.display())]
    Layout {
        /// The record that says so.
        path: PathBuf,
        /// Its layout.
        layout: u64,
        /// The layout that is read.
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

    /// A definition that another process runs on the same archive.
    #[error("another run of `{name}` is under way on `{}`{}", archive.display(), by(holder.as_ref()))]
    Held {
        /// The definition.
        name: String,
        /// The archive.
        archive: PathBuf,
        /// Who runs it, where that is known.
        holder: Option<Holder>,
    },

    /// A clock that is behind what the archive knows.
    #[error("the clock says {}, but the newest run in the archive was sealed at {}", to_record(*now), to_record(*sealed_at))]
    ClockBehind {
        /// The folder of the newest run; none where it is in a pack.
        run: Option<PathBuf>,
        /// When it was sealed.
        sealed_at: DateTime<Utc>,
        /// What the clock says.
        now: DateTime<Utc>,
    },

    /// A clock that went back during a run.
    #[error("the clock went back during the run, from {} to {}", to_record(*before), to_record(*now))]
    ClockWentBack {
        /// When the run began, or its last answer was complete.
        before: DateTime<Utc>,
        /// What the clock says.
        now: DateTime<Utc>,
    },

    /// An archive that is not there.
    #[error("there is no archive: `{}` does not exist", path.display())]
    MissingArchive {
        /// Where it was looked for.
        path: PathBuf,
    },

    /// An archive without runs.
    #[error("`{}` has no sealed run", path.display())]
    NoArchive {
        /// The archive.
        path: PathBuf,
    },

    /// A dataset that was never published.
    #[error("no dataset {}in `{}`", name.as_ref().map_or_else(String::new, |name| format!("`{name}` ")), datasets.display())]
    NoDataset {
        /// What was asked for; none for any.
        name: Option<String>,
        /// The folder of datasets.
        datasets: PathBuf,
    },

    /// An archive that knows nothing of what a definition asks for.
    #[error("the archive has nothing of what `{name}` asks for")]
    NothingArchived {
        /// The definition.
        name: String,
    },

    /// An instant before anything was known.
    #[error("nothing was known as of {}: the first run was sealed at {}", to_record(*as_of), to_record(*first))]
    TooEarly {
        /// What was asked for.
        as_of: DateTime<Utc>,
        /// The end of the first run.
        first: DateTime<Utc>,
    },

    /// Observations that cannot be put together.
    #[error("cannot put together what was observed")]
    Settle {
        /// Why.
        source: Reason,
    },

    /// A run that is not there.
    #[error("no run `{run}` in `{}`", archive.display())]
    NoRun {
        /// What was asked for.
        run: String,
        /// The archive.
        archive: PathBuf,
    },

    /// Files that are not what was written.
    #[error("{count} files are not what was written")]
    Unverified {
        /// How many.
        count: usize,
    },

    /// A dataset that the future reaches: a defect of ours.
    #[error("{count} trials found that the future reaches the past of `{name}`; this is a defect of bellwether")]
    Leak {
        /// The dataset.
        name: String,
        /// In how many trials.
        count: usize,
    },

    /// A version of a dataset that is not there.
    #[error("no version `{given}` in `{}`", datasets.display())]
    NoVersion {
        /// What was asked for.
        given: String,
        /// Where it was looked for.
        datasets: PathBuf,
        /// Those that could have been meant.
        known: Vec<String>,
    },

    /// A version of a dataset that has matrices where rows are needed.
    #[error("`{}` is wide: its matrices have no rows that could be compared", path.display())]
    Wide {
        /// Its folder.
        path: PathBuf,
    },

    /// Versions of datasets with other columns.
    #[error(
        "`{before}` and `{after}` have different columns: {only_before} only in the one, {only_after} only in the other"
    )]
    OtherColumns {
        /// The one.
        before: String,
        /// The other.
        after: String,
        /// The columns of the one alone.
        only_before: String,
        /// The columns of the other alone.
        only_after: String,
    },

    /// Rows that cannot be compared.
    #[error("cannot compare the rows of two versions")]
    Compare {
        /// Why.
        source: Reason,
    },

    /// More of the past that was rewritten than may be.
    #[error("{} of what was known was rewritten since, more than {}", percent(*found), percent(*allowed))]
    Rewritten {
        /// The share that was found.
        found: f64,
        /// The share that may be.
        allowed: f64,
    },

    /// The standard output that is gone: its reader has seen enough.
    #[error("standard output is closed")]
    BrokenPipe,

    /// The standard output that cannot be written for another reason.
    #[error("cannot write to standard output")]
    Stdout {
        /// Why.
        source: io::Error,
    },

    /// A key that nothing gives.
    #[error("no API key for {host}")]
    NoKey {
        /// The service's host.
        host: String,
    },

    /// A key that cannot be had from where the definition says it is.
    #[error("cannot get the API key from {place}")]
    KeySource {
        /// The file or command, without its output.
        place: String,
        /// Why.
        source: Reason,
        /// What to do.
        hint: &'static str,
    },

    /// A key that the service does not take.
    #[error("{host} refused the API key with status {status}")]
    KeyRefused {
        /// The service's host.
        host: String,
        /// The HTTP status.
        status: u16,
    },

    /// A service that does not answer, now.
    #[error("{host} did not answer `{request}` in {attempts} attempts")]
    Later {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// How often it was asked.
        attempts: u32,
        /// Why the last attempt failed.
        source: Reason,
    },

    /// A proxy that cannot be used.
    #[error("cannot ask {host} through the proxy `{proxy}`")]
    Proxy {
        /// Host and port of the service.
        host: String,
        /// Host and port of the proxy, without its credentials.
        proxy: String,
        /// Why.
        source: Reason,
    },

    /// A service that could not prove who it is.
    #[error("cannot trust the certificate of {host}")]
    Certificate {
        /// Host and port.
        host: String,
        /// Why.
        source: Reason,
    },

    /// A base address at which nothing of the service is found.
    #[error("`GET {address}` answered {status}: is `{setting}` right?")]
    Address {
        /// What was asked for, without the query.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The setting that holds the base address.
        setting: &'static str,
        /// What it was asked for.
        lacking: String,
    },

    /// An answer that would do harm.
    #[error("the answer of {host} to `{request}` is refused")]
    Refused {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// Why.
        source: Reason,
    },

    /// A service that has none of the operations that could be asked.
    #[error("the service no longer offers what `{name}` asks for: {lacking}")]
    NoOperation {
        /// The definition.
        name: String,
        /// What it was asked for.
        lacking: String,
    },

    /// An operation that is gone, and another one that gives other tickers.
    #[error("the service no longer offers {lacking}, and {instead} lists other tickers: {}", shift(missing, new))]
    OtherTickers {
        /// The definition.
        name: String,
        /// What is gone.
        lacking: String,
        /// What was asked in its place.
        instead: &'static str,
        /// The tickers that it does not list; empty where it lists all.
        missing: String,
        /// The tickers that it lists beside them; empty where it lists no others.
        new: String,
    },

    /// Data that is not what was asked for.
    #[error("nothing was published for `{name}`: {}", counted(source.count(), "check failed", "checks failed"))]
    Checks {
        /// The definition.
        name: String,
        /// What to do.
        hint: &'static str,
        /// What the checks found.
        source: Box<Findings>,
    },

    /// Too much that could not be read.
    #[error("{} rejected, more than {}", joined(rejected), percent(*max_share))]
    TooManyRejects {
        /// What was rejected.
        rejected: Vec<Rejected>,
        /// The share that may be.
        max_share: f64,
        /// Where the rejected records are.
        kept: PathBuf,
        /// What is known of why.
        source: Option<Reason>,
    },

    /// A request that the service finds invalid.
    #[error("{host} says that `{request}` is invalid: {fault}")]
    Invalid {
        /// Host and port.
        host: String,
        /// The request, without the key.
        request: String,
        /// What it says.
        fault: ValidationFault,
    },

    /// A status that nothing can be done with.
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
    #[error("the answer to `{request}` cannot be read: {reason} at byte {offset}")]
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

    /// A join that the data frames refuse.
    #[error("cannot join signals with news")]
    Join {
        /// Why.
        source: Reason,
    },

    /// A dataset without rows.
    #[error("`{name}` has no rows: there are no signals for it")]
    Empty {
        /// The definition.
        name: String,
    },

    /// A person or a scheduler that asked to stop.
    #[error("interrupted; nothing was published, and what was fetched is kept for the next run")]
    Interrupted,

    /// A failure that was told already.
    #[error("failed with code {code}")]
    Told {
        /// Its exit code.
        code: u8,
    },

    /// A process that cannot have what it needs to work at all.
    #[error("cannot start to work")]
    Start {
        /// Why.
        source: io::Error,
    },

    /// A thread that died: a defect of ours.
    #[error("a worker stopped unexpectedly; this is a defect of bellwether")]
    Worker {
        /// What it said.
        source: Reason,
    },
}

impl Error {
    /// A worker that panicked: a defect, unless the system gave it no thread. The standard library and the pools of threads
    /// panic then, and only the text of the panic tells.
    pub(crate) fn worker(panic: tokio::task::JoinError) -> Self {
        const NO_THREAD: [&str; 3] =
            ["failed to spawn thread", "OS can't spawn worker thread", "thread pool has not been initialized"];
        let text = panic.to_string();
        match NO_THREAD.iter().any(|sign| text.contains(sign)) {
            true => Self::Start { source: io::Error::other("the system gives it no more threads or memory") },
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
