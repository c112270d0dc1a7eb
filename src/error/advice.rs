//! What follows from a failure: the action that a person can take, and the code that a scheduler acts on.

use std::fmt;
use std::io;

use super::{EXIT_CHECKS, EXIT_FOUND, EXIT_INTERRUPTED, EXIT_LATER, EXIT_USAGE, Error};

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint: &dyn fmt::Display = match self {
            Self::NoDefinition { hint, .. } => hint,
            Self::DefinitionName { .. } => &"name the file with letters, digits, `-` and `_`, at most 64 of them",
            Self::LongDefinition { .. } => &"split it into several definitions, or ask for `tickers = \"available\"`",
            Self::NoKey { .. } => &KEY_PLACES,
            Self::KeyRefused { .. } => &"check the key in `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`",
            Self::Proxy { .. } => &"use `https://` and an HTTP proxy, or name the host in `NO_PROXY`",
            Self::Certificate { .. } => {
                &"if its issuer is your own or your proxy's, name a file with the issuer's certificate in `SSL_CERT_FILE`"
            }
            Self::Client { .. } => {
                &"https needs CA certificates: install `ca-certificates`, or name a file of them in `SSL_CERT_FILE`"
            }
            Self::Address { lacking, .. } => {
                return Some(format!("check the address; if it is right, the service no longer offers {lacking}"));
            }
            Self::KeySource { hint, .. } => hint,
            Self::Linked { .. } => {
                &"remove the link; to keep output or archive on another disk, name the folder there with `--output` or `--archive`"
            }
            Self::Held { .. } => &"run it again when that one has ended, or wait for it with `--wait`",
            Self::ClockBehind { run: None, .. } => {
                &"set the clock, if it is behind; if it is right, a pack holds a run made by a clock that was ahead: restore the archive from a copy made before that run"
            }
            Self::ClockBehind { run: Some(run), .. } => {
                return Some(format!(
                    "set the clock, if it is behind; if it is right, the run was made by a clock that was ahead: move \
                     `{}` out of the archive",
                    run.display()
                ));
            }
            Self::ClockWentBack { .. } => &"when the clock is right, run it again with `--fresh`: nothing was archived",
            Self::Start { .. } => &"raise the limits of the process: `ulimit -a` lists them",
            Self::Later { .. } => &"what was fetched is kept: run it again later, and it goes on from there",
            Self::Malformed { evidence: Some(path), .. } => {
                return Some(format!("the body is kept in `{}`, to be shown to the vendor", path.display()));
            }
            Self::NoOperation { .. } => &"ask the vendor what took its place, or change `history` or `[sentiment]`",
            Self::TooManyRejects { kept, .. } => {
                return Some(format!("look at `{}`; `max_share` in `[rejects]` allows for more", kept.display()));
            }
            Self::Checks { hint, .. } => {
                return Some(format!("the archive keeps what was fetched, and `latest` is unchanged; {hint}"));
            }
            Self::OtherTickers { .. } => &"if that is expected, name the operation with `history` in `[signals]`",
            Self::Empty { .. } => &"check the sectors, periods and regimes, and the filters",
            Self::Write { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                &"choose a folder that you may write to with `--output`"
            }
            Self::Remove { source, .. } if source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                &"move what is yours to another folder"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                &"free some space and run it again; what was published before is untouched"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                &"raise the limit on the size of a file (`ulimit -f`); what was published before is untouched"
            }
            Self::Write { source, .. } | Self::Read { source, .. } if is_out_of_files(source) => {
                &"raise the limit on open files (`ulimit -n`)"
            }
            Self::NoVersion { known, .. } if known.is_empty() => &"publish one first: `bellwether run NAME`",
            Self::NoVersion { known, .. } => {
                let some: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
                return Some(format!("there is {}; or name the folder of a version", some.join(", ")));
            }
            Self::Wide { .. } => &"build both with `layout = \"long\"` and compare these; they have the same values",
            Self::OtherColumns { .. } => {
                &"build both from one definition: `bellwether build NAME --as-of INSTANT` gives the earlier state its columns"
            }
            Self::Exists { .. } => &"move it away, or name another file with `--output`",
            Self::Rewritten { .. } => {
                &"`--format csv --output FILE` writes the changed cells; `--fail-above` allows for more"
            }
            Self::Occupied { .. } => &"move it away, or choose another folder with `--output`",
            Self::TooManyFolders { column, .. } => {
                return Some(format!("sort by `{column}` first, or take it out of `partition_by`"));
            }
            Self::Status { status: 404, .. } => &"this service may not have that operation any more",
            Self::Layout { layout, known, .. } if *layout < u64::from(*known) => {
                &"move the archive away and run the definition again; read the old one with the version that wrote it"
            }
            Self::Layout { .. } => &"use the version of bellwether that wrote it, or a later one",
            Self::Usage { hint, .. } => hint,
            Self::NoArchive { .. } | Self::MissingArchive { .. } | Self::NothingArchived { .. } => {
                &"run it first: `bellwether run NAME`; or name the archive with `--archive`"
            }
            Self::NoDataset { .. } => &"publish it first: `bellwether run NAME`; or name the folder with `--output`",
            Self::TooEarly { .. } => &"`bellwether runs` says which instants there are",
            Self::NoRun { .. } => &"`bellwether runs` lists those that are there",
            Self::Unverified { .. } => &"put them back from a copy, or move the run or version that holds them away",
            Self::Damaged { .. } => {
                &"`bellwether verify` says what else is not as it was written; put it back from a copy"
            }
            _ => return None,
        };
        Some(hint.to_string())
    }

    /// The exit code that tells a scheduler what kind of failure it was.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Definition(_)
            | Self::NoDefinition { .. }
            | Self::DefinitionName { .. }
            | Self::LongDefinition { .. }
            | Self::Usage { .. } => EXIT_USAGE,
            Self::Told { code } => *code,
            Self::Later { .. } | Self::Held { .. } => EXIT_LATER,
            Self::Rewritten { .. } => EXIT_FOUND,
            Self::Checks { .. } | Self::OtherTickers { .. } | Self::TooManyRejects { .. } => EXIT_CHECKS,
            Self::Interrupted => EXIT_INTERRUPTED,
            _ => 1,
        }
    }
}

/// Whether a process, or the system, has as many files open as it may.
fn is_out_of_files(error: &io::Error) -> bool {
    let error = rustix::io::Errno::from_io_error(error);
    matches!(error, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

/// Where a key may come from.
const KEY_PLACES: &str = "set `BELLWETHER_API_KEY`, or name an `api_key_file` or an `api_key_command` in `[source]`";
