//! The kinds of failures.

use super::Error;

/// The kind of a failure, for callers that handle kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Arguments that do not go together, or a name that does not exist.
    Usage,
    /// An invalid definition, or none.
    Definition,
    /// The service, the way to it, or the key for it.
    Service,
    /// The same call may succeed later; a run resumes.
    Temporary,
    /// The data fail a check: nothing was published, and what was fetched is kept.
    Checks,
    /// The data do not allow what was asked for.
    Data,
    /// There is no such archive, run, dataset or version, or no data in it.
    NotFound,
    /// Files and folders: unreadable, unwritable, damaged, or in the way.
    Storage,
    /// Cancelled by the caller.
    Interrupted,
    /// A bug, or a process without threads or memory.
    Internal,
}

impl Error {
    /// The kind of the failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Usage { .. } | Self::Project(_) => Kind::Usage,
            Self::Definition(_)
            | Self::NoDefinition { .. }
            | Self::DefinitionName { .. }
            | Self::LongDefinition { .. } => Kind::Definition,
            Self::NoKey { .. }
            | Self::KeySource { .. }
            | Self::KeyRefused { .. }
            | Self::Proxy { .. }
            | Self::Certificate { .. }
            | Self::Address { .. }
            | Self::Refused { .. }
            | Self::NoOperation { .. }
            | Self::Invalid { .. }
            | Self::Status { .. }
            | Self::Malformed { .. }
            | Self::Client { .. }
            | Self::Serve { .. } => Kind::Service,
            Self::Later { .. } | Self::Held { .. } => Kind::Temporary,
            Self::Checks { .. } | Self::OtherTickers { .. } | Self::TooManyRejects { .. } => Kind::Checks,
            Self::Wide { .. } | Self::OtherColumns { .. } | Self::TooManyFolders { .. } => Kind::Data,
            Self::MissingArchive { .. }
            | Self::NoArchive { .. }
            | Self::NoDataset { .. }
            | Self::NoVersion { .. }
            | Self::NothingArchived { .. }
            | Self::TooEarly { .. }
            | Self::Empty { .. } => Kind::NotFound,
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Stream { .. }
            | Self::Remove { .. }
            | Self::Exists { .. }
            | Self::Occupied { .. }
            | Self::Linked { .. }
            | Self::Encode { .. }
            | Self::Damaged { .. }
            | Self::Layout { .. }
            | Self::ClockBehind { .. }
            | Self::ClockWentBack { .. } => Kind::Storage,
            Self::Sql(refusal) => refusal.kind(),
            Self::Interrupted => Kind::Interrupted,
            Self::Settle { .. }
            | Self::Join { .. }
            | Self::Compare { .. }
            | Self::Frame { .. }
            | Self::Start { .. }
            | Self::Worker { .. } => Kind::Internal,
        }
    }
}
