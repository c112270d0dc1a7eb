//! How a command ends if it does not succeed: the message, the hint, and the exit code for schedulers.
//!
//! 0 means that everything requested is there; the program's help lists the meaning of the others.

use std::io;
use std::path::PathBuf;

use bellwether::error::{Error, ErrorKind, same};
use bellwether::text::human::{count_of, group_digits, percent};

/// The exit code for invalid arguments and definitions.
pub(super) const USAGE: u8 = 2;

/// The exit code for findings that options turn into failures: versions differ, or too much was rewritten.
const FOUND: u8 = 3;

/// The exit code of `status` if it cannot tell whether data is fresh.
const UNKNOWN: u8 = 5;

/// The exit code of an interrupted command.
pub(super) const INTERRUPTED: u8 = 130;

/// The result of a command.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A command that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// An operation failed.
    #[error(transparent)]
    Library(Error),

    /// A run was interrupted.
    #[error("interrupted; nothing was published, and what was fetched is kept for the next run")]
    RunInterrupted,

    /// A run that does not count.
    #[error("{what}")]
    ForgottenRun {
        /// Which run, and why.
        what: String,
    },

    /// A run that does not exist.
    #[error("no run `{run}` in `{}`", archive.display())]
    NoRun {
        /// The requested name.
        run: String,
        /// The archive.
        archive: PathBuf,
    },

    /// The beginning of the names of several runs.
    #[error("`{run}` begins the names of {}", count_of(candidates.len() as u64, "run", "runs"))]
    SeveralRuns {
        /// The requested name.
        run: String,
        /// The runs whose names begin with it.
        candidates: Vec<String>,
    },

    /// Files that fail verification.
    #[error("verification found {}", count_of(*count as u64, "fault", "faults"))]
    Unverified {
        /// How many.
        count: usize,
    },

    /// A dataset with look-ahead: a bug.
    #[error("{} found look-ahead in `{name}`; this is a bug in bellwether", count_of(*count as u64, "trial", "trials"))]
    Leak {
        /// The dataset.
        name: String,
        /// The number of trials that found it.
        count: usize,
    },

    /// More of the past was rewritten than allowed.
    #[error("{} of the known cells were rewritten since, above the limit of {}", percent(*found), percent(*allowed))]
    Rewritten {
        /// The share that was rewritten.
        found: f64,
        /// The limit.
        allowed: f64,
    },

    /// No such definition, or none named; with the existing ones.
    #[error("{what}")]
    NoDefinition {
        /// What is missing.
        what: String,
        /// What to do.
        hint: String,
        /// The definitions, a line each.
        known: String,
    },

    /// Checks of `doctor` that failed.
    #[error("{} failed", count_of(*count as u64, "check", "checks"))]
    Unhealthy {
        /// How many.
        count: usize,
    },

    /// A file that `init` would overwrite.
    #[error("`{}` already exists", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },

    /// A dataset that does not exist.
    #[error("no dataset `{name}`")]
    NoDataset {
        /// The requested name.
        name: String,
        /// The name that is meant, if one is close.
        meant: Option<String>,
    },

    /// A version that does not exist.
    #[error("no version `{name}`")]
    NoVersion {
        /// The requested name.
        name: String,
    },

    /// A version that a link points to.
    #[error("`{name}` is in use: the link `{link}` points to it")]
    Pinned {
        /// The version.
        name: String,
        /// The link.
        link: String,
    },

    /// A browser that does not start, or fails.
    #[error("cannot open the report with `{}`", browser.display())]
    Browser {
        /// The program.
        browser: PathBuf,
        /// What it should open.
        page: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// An answer that cannot be read from the terminal.
    #[error("cannot read the answer")]
    NoAnswer {
        /// Why.
        source: io::Error,
    },

    /// Versions that differ, which was already printed.
    #[error("the versions differ")]
    Differ,

    /// Stale data or failing runs, which were already printed.
    #[error("data is stale, or runs fail")]
    NotFresh,

    /// Data of which it is unknown whether it is fresh, which was already printed.
    #[error("it is unknown whether data is fresh")]
    Unknown,

    /// A failure that was already reported.
    #[error("failed with code {code}")]
    Reported {
        /// Its exit code.
        code: u8,
    },

    /// Standard output that was closed by its reader.
    #[error("standard output is closed")]
    BrokenPipe,

    /// Standard output that cannot be written for another reason.
    #[error("cannot write to standard output")]
    Stdout {
        /// Why.
        source: io::Error,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.io_source() {
            Some(source) if error.kind() == ErrorKind::Stream => Self::of_stdout(same(source)),
            _ => Self::Library(error),
        }
    }
}

impl Failure {
    /// A failure to write to standard output.
    pub(super) fn of_stdout(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Stdout { source },
        }
    }

    /// What an interrupted run, or one that failed, says.
    pub(super) fn of_run(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Interrupted => Self::RunInterrupted,
            _ => error.into(),
        }
    }

    /// What to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Library(error) => error.hint().map(str::to_owned),
            Self::NoDefinition { hint, .. } => Some(hint.clone()),
            Self::Taken { .. } => Some("choose another name, or edit the file".to_owned()),
            Self::NoDataset { meant: Some(meant), .. } => Some(format!("did you mean `{meant}`?")),
            Self::NoDataset { .. } => Some("`bellwether list` lists the datasets".to_owned()),
            Self::NoVersion { .. } => Some("`bellwether list` lists the versions".to_owned()),
            Self::Pinned { link, .. } if link == "latest" => {
                Some("publish another version first, or remove the folder of the dataset yourself".to_owned())
            }
            Self::Pinned { .. } => Some("remove the link first".to_owned()),
            Self::Browser { page, .. } => {
                Some(format!("name a browser in `BROWSER`, or open `{}` yourself", page.display()))
            }
            Self::NoRun { .. } | Self::ForgottenRun { .. } => Some("`bellwether list runs` lists the runs".to_owned()),
            Self::SeveralRuns { candidates, .. } => Some(one_of(candidates)),
            Self::Unverified { .. } => {
                Some(
                    "`bellwether verify --repair` gets what is damaged here from a store, and `verify --store --repair` sends \
                     what is damaged there; restore the rest from a backup"
                        .to_owned(),
                )
            }
            Self::Rewritten { .. } => Some(
                "list the changed cells with `--format csv --output FILE`; allow more with `--fail-above`".to_owned(),
            ),
            _ => None,
        }
    }

    /// The exit code, by the kind of failure.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Differ | Self::Rewritten { .. } | Self::NotFresh => FOUND,
            Self::Unknown => UNKNOWN,
            Self::NoDefinition { .. } | Self::SeveralRuns { .. } => USAGE,
            Self::Reported { code } => *code,
            Self::RunInterrupted => INTERRUPTED,
            Self::Library(error) => error.kind().exit_code(),
            _ => 1,
        }
    }
}

/// The names to choose from, the last first.
fn one_of(candidates: &[String]) -> String {
    /// How many are listed.
    const SHOWN: usize = 8;
    let shown: Vec<&str> = candidates.iter().rev().take(SHOWN).map(String::as_str).collect();
    let more = match candidates.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {} more", group_digits(more as u64)),
    };
    format!("the candidates are {}{more}", shown.join(", "))
}
