//! How a command ends if it does not succeed: an error of the library, or an ending that was already told.
//!
//! 0 means that everything requested is there; the program's help lists the meaning of the others.

use std::io;

use bellwether::error::{Error, ErrorKind};

/// The exit code for invalid arguments and definitions.
pub(super) const USAGE: u8 = 2;

/// The exit code for findings that options turn into failures: versions differ, too much was rewritten, or data is stale.
pub(super) const FOUND: u8 = 3;

/// The exit code of `status` if it cannot tell whether data is fresh.
pub(super) const UNKNOWN: u8 = 5;

/// The exit code of an interrupted command.
pub(super) const INTERRUPTED: u8 = 130;

/// The result of a command.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A command that did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// With an error to be told.
    Failed(Error),
    /// With nothing left to tell: what it found was printed.
    Told {
        /// Its exit code.
        code: u8,
    },
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        match error.io_source().map(io::Error::kind) {
            // Whoever read standard output has enough.
            Some(io::ErrorKind::BrokenPipe) if error.kind() == ErrorKind::Stream => Self::Told { code: 0 },
            _ => Self::Failed(error),
        }
    }
}

impl Failure {
    /// A failure to write to standard output.
    pub(super) fn of_stdout(source: io::Error) -> Self {
        Error::new(ErrorKind::Stream, "cannot write to standard output").with_source(source).into()
    }

    /// What an interrupted run, or one that failed, says.
    pub(super) fn of_run(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Interrupted => {
                let what = "interrupted; nothing was published, and what was fetched is kept for the next run";
                Error::new(ErrorKind::Interrupted, what).into()
            }
            _ => error.into(),
        }
    }

    /// The exit code, by the kind of failure.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(error) => error.kind().exit_code(),
            Self::Told { code } => *code,
        }
    }
}
