//! Errors that prevent a run from starting or publishing.

use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::disk::lock::Holder;
use crate::error::{Diagnostic, Error, ErrorKind, Reason};
use crate::plan::ServiceIdentity;
#[cfg(feature = "spark")]
use crate::spark::SparkError;
use crate::text::human::{count_of, group_digits, percent};
use crate::time::to_record;

/// A run that cannot start, or publishes nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Another run of the same definition on the same archive.
    #[error("another run of `{name}` is in progress on `{}`{}", archive.display(), by(holder.as_ref()))]
    InProgress { name: String, archive: PathBuf, holder: Option<Holder> },

    /// Another process that prunes the same archive.
    #[error("another process is pruning `{}`{}", archive.display(), by(holder.as_ref()))]
    PruneInProgress { archive: PathBuf, holder: Option<Holder> },

    /// A definition that asks another service than before.
    #[error("`{name}` used service {before} until now, and its definition now asks {now}")]
    OtherService { name: String, before: ServiceIdentity, now: ServiceIdentity, variables: Vec<String> },

    /// A service with another address.
    #[error("service {before} of `{name}` has another address: {}", addresses(now))]
    ServiceMoved { name: String, before: ServiceIdentity, now: ServiceIdentity, variables: Vec<String> },

    /// A clock that is behind the newest run of the archive.
    #[error("the clock says {}, but the newest run in the archive was sealed at {}", to_record(*now), to_record(*sealed_at))]
    ClockBehind { run: String, sealed_at: DateTime<Utc>, now: DateTime<Utc> },

    /// A clock that moved backwards during a run.
    #[error("the clock moved backwards during the run, from {} to {}", to_record(*before), to_record(*now))]
    ClockWentBack { before: DateTime<Utc>, now: DateTime<Utc> },

    /// A base address without the service.
    #[error("`GET {address}` answered {status}: is `{setting}` correct?")]
    Address { address: String, status: u16, setting: &'static str, lacking: String },

    /// A base address with web pages.
    #[error("`GET {address}` answered with a web page: is `{setting}` correct?")]
    WebPage { address: String, setting: &'static str },

    /// A service that offers none of the operations that a definition could use.
    #[error("the service no longer offers operations that `{name}` needs: {lacking}")]
    NoOperation { name: String, lacking: String },

    /// An operation that is no longer offered, and a fallback that lists different tickers.
    #[error("the service no longer offers {lacking}, and {instead} lists different tickers: {}", shift(missing, new))]
    OtherTickers { name: String, lacking: String, instead: &'static str, missing: String, new: String },

    /// Data that fails a check.
    #[error("nothing was published for `{name}`: {}", count_of(source.count(), "check failed", "checks failed"))]
    Checks { name: String, hint: String, source: Box<Findings> },

    /// Files of a cluster with other rows than its statement computes.
    #[cfg(feature = "spark")]
    #[error("`{at}` does not hold the rows that the statement computes: {} rows, expected {}", group_digits(*found), group_digits(*expected))]
    OtherRows { at: String, found: u64, expected: u64 },

    /// Too many rejected records or series.
    #[error("rejected {}, above the limit of {}", join(rejected), percent(*max_share))]
    TooManyRejects { rejected: Vec<Rejected>, max_share: f64, kept: PathBuf, source: Option<Reason> },
}

/// Whether nothing was run because another run of the definition is in progress.
pub fn is_in_progress(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::InProgress { .. }))
}

impl Diagnostic for RunError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::InProgress { .. } | Self::PruneInProgress { .. } => ErrorKind::Temporary,
            Self::OtherService { .. } | Self::ServiceMoved { .. } => ErrorKind::Definition,
            Self::ClockBehind { .. } | Self::ClockWentBack { .. } => ErrorKind::Storage,
            Self::Address { .. } | Self::WebPage { .. } | Self::NoOperation { .. } => ErrorKind::Service,
            #[cfg(feature = "spark")]
            Self::OtherRows { .. } => ErrorKind::Checks,
            Self::OtherTickers { .. } | Self::Checks { .. } | Self::TooManyRejects { .. } => ErrorKind::Checks,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::InProgress { .. } => "try again when that run has finished, or wait for it with `--wait`",
            Self::PruneInProgress { .. } => "try again when it has finished",
            Self::OtherService { variables, .. } | Self::ServiceMoved { variables, .. } if !variables.is_empty() => {
                let names = variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
                return Some(format!(
                    "set {names} as before to go on with that history; for another service, use another folder with \
                     `--data`, or begin a new history with `--new-archive`"
                ));
            }
            Self::OtherService { before, .. } => {
                return Some(format!(
                    "to go on with that history, write `name = \"{}\"` in `[source]`; to begin a new one, run it with \
                     `--new-archive`",
                    before.name
                ));
            }
            Self::ServiceMoved { before, .. } => {
                return Some(format!(
                    "if it is the same service, write `name = \"{}\"` in `[source]`; if not, give it another name",
                    before.name
                ));
            }
            Self::ClockBehind { run, .. } => {
                return Some(format!(
                    "set the clock if it is behind; if it is correct, the clock was ahead during that run: take it back \
                     with `bellwether archive forget {run} --reason TEXT`"
                ));
            }
            Self::ClockWentBack { .. } => "correct the clock and run it again with `--fresh`; nothing was archived",
            Self::Address { lacking, .. } => {
                return Some(format!("check the address; if it is correct, the service no longer offers {lacking}"));
            }
            Self::WebPage { .. } => "check the address",
            Self::NoOperation { .. } => "ask the vendor what replaced it, or change `history` or `[sentiment]`",
            Self::OtherTickers { .. } => "if this is expected, choose the operation with `history` in `[signals]`",
            Self::Checks { hint, .. } => {
                return Some(format!("the archive keeps what was fetched, and `latest` is unchanged; {hint}"));
            }
            #[cfg(feature = "spark")]
            Self::OtherRows { .. } => "nothing was published; run the same command again",
            Self::TooManyRejects { kept, .. } => {
                return Some(format!(
                    "the rejected records are in `{}`; to allow more, raise `max_share` in `[rejects]`",
                    kept.display()
                ));
            }
        };
        Some(hint.to_owned())
    }
}

/// Rejected records or series of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
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
        write!(formatter, "{} of {} {what}", group_digits(*lost), group_digits(*of))
    }
}

/// Several reasons for one failure, each the source of the one before it.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Findings {
    what: String,
    #[source]
    next: Option<Box<Self>>,
}

impl Findings {
    /// A chain of findings; none if there are none.
    pub(super) fn of(found: impl DoubleEndedIterator<Item = String>) -> Option<Self> {
        found.rev().fold(None, |next, what| Some(Self { what, next: next.map(Box::new) }))
    }

    /// The number of findings.
    fn count(&self) -> u64 {
        std::iter::successors(Some(self), |one| one.next.as_deref()).count() as u64
    }
}

/// `9 of 10 records and 9 of 10 series of signals-history-all`, and so on.
fn join(rejected: &[Rejected]) -> String {
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

/// The addresses of a service.
fn addresses(service: &ServiceIdentity) -> String {
    let addresses = [&service.base_url, &service.sentiment_base_url];
    addresses.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(": {holder}"))
}

#[cfg(feature = "spark")]
impl Diagnostic for SparkError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. } => ErrorKind::Temporary,
            _ => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreachable { .. } => {
                "check that a Spark Connect server listens there (`sbin/start-connect-server.sh`), and run the same \
                 command again"
            }
            Self::Denied { .. } => {
                "set `SPARK_CONNECT_AUTHENTICATE_TOKEN`, which is sent with `/;use_ssl=true` at the end of the address, or to \
                 this machine"
            }
            Self::Refused { .. } => {
                "every worker must be able to read the archive: keep it in a store, or on a file system that all of them have"
            }
            Self::Failed { .. } => {
                "the log of the driver says more; every worker must be able to read the archive and write the output"
            }
            Self::Answer { .. } => "use Spark 4",
        };
        Some(hint.to_owned())
    }
}
