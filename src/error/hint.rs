//! What to do about a failure.

use std::fmt;
use std::io;

use super::Error;

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint: &dyn fmt::Display = match self {
            Self::Project(fault) => return Some(fault.hint()),
            Self::NoDefinition { hint, .. } => hint,
            Self::DefinitionName { .. } => &"use at most 64 letters, digits, `-` and `_` in the name of the file",
            Self::LongDefinition { .. } => &"split it into several definitions, or use `tickers = \"available\"`",
            Self::NoKey { .. } => &KEY_PLACES,
            Self::KeyRefused { .. } => &"check the key in `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`",
            Self::Proxy { .. } => &"use `https://` and an HTTP proxy, or name the host in `NO_PROXY`",
            Self::Certificate { .. } => {
                &"if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`"
            }
            Self::Client { .. } => {
                &"https needs CA certificates: install `ca-certificates`, or provide them with `SSL_CERT_FILE`"
            }
            Self::Address { lacking, .. } => {
                return Some(format!("check the address; if it is correct, the service no longer offers {lacking}"));
            }
            Self::KeySource { hint, .. } => hint,
            Self::Linked { .. } => {
                &"remove the link; to keep data or the archive on another disk, use `--data` or `--archive`"
            }
            Self::Held { .. } => &"try again when that run has finished, or wait for it with `--wait`",
            Self::ClockBehind { run: None, .. } => {
                &"set the clock if it is behind; if it is correct, a clock was ahead during a run that is now packed: restore the archive from a backup made before that run"
            }
            Self::ClockBehind { run: Some(run), .. } => {
                return Some(format!(
                    "set the clock if it is behind; if it is correct, the clock was ahead during that run: move `{}` out of \
                     the archive",
                    run.display()
                ));
            }
            Self::ClockWentBack { .. } => &"correct the clock and run it again with `--fresh`; nothing was archived",
            Self::Start { .. } => &"raise the limits of the process; `ulimit -a` lists them",
            Self::Later { .. } => &"run the same command later to resume; what was fetched is kept",
            Self::Malformed { evidence: Some(path), .. } => {
                return Some(format!("the body is kept in `{}`: report it to the vendor", path.display()));
            }
            Self::NoOperation { .. } => &"ask the vendor what replaced it, or change `history` or `[sentiment]`",
            Self::TooManyRejects { kept, .. } => {
                return Some(format!(
                    "the rejected records are in `{}`; to allow more, raise `max_share` in `[rejects]`",
                    kept.display()
                ));
            }
            Self::Checks { hint, .. } => {
                return Some(format!("the archive keeps what was fetched, and `latest` is unchanged; {hint}"));
            }
            Self::OtherTickers { .. } => &"if this is expected, choose the operation with `history` in `[signals]`",
            Self::Empty { .. } => &"check the sectors, periods and regimes, and the filters",
            Self::Write { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                &"choose a folder that you can write to with `--data`"
            }
            Self::Remove { source, .. } if source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                &"move your own files to another folder"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                &"free some space and run it again; published versions are unchanged"
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                &"raise the limit on the size of files (`ulimit -f`); published versions are unchanged"
            }
            Self::Write { source, .. } | Self::Read { source, .. } if is_out_of_files(source) => {
                &"raise the limit on open files (`ulimit -n`)"
            }
            Self::NoVersion { known, .. } if known.is_empty() => &"publish one first: `bellwether run NAME`",
            Self::NoVersion { known, .. } => {
                let some: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
                return Some(format!("known names: {}; the folder of a version works too", some.join(", ")));
            }
            Self::Wide { .. } => &"build both with `layout = \"long\"` and compare those; the values are the same",
            Self::OtherColumns { .. } => {
                &"build both from the same definition: `bellwether build NAME --as-of INSTANT` rebuilds the earlier state with its columns"
            }
            Self::Exists { .. } => &"move it, or choose another file with `--output`",
            Self::Occupied { .. } => &"move it, or choose another folder with `--data`",
            Self::TooManyFolders { column, .. } => {
                return Some(format!("sort by `{column}` first, or remove it from `partition_by`"));
            }
            Self::Status { status: 404, .. } => &"the service may no longer offer this operation",
            Self::Layout { layout, known, .. } if *layout < u64::from(*known) => {
                &"move the archive elsewhere and run the definition again; the version that wrote it can still read it"
            }
            Self::Layout { .. } => &"use the version of bellwether that wrote it, or a newer one",
            Self::Usage { hint, .. } => hint,
            Self::Sql(refusal) => return Some(refusal.hint().to_owned()),
            Self::NoArchive { .. } | Self::MissingArchive { .. } | Self::NothingArchived { .. } => {
                &"run it first: `bellwether run NAME`; or choose another archive with `--archive`"
            }
            Self::NoDataset { .. } => {
                &"publish it first: `bellwether run NAME`; or choose another folder with `--data`"
            }
            Self::TooEarly { .. } => &"`bellwether runs` lists the runs",
            Self::Damaged { .. } => &"restore it from a backup; `bellwether verify` lists all damaged files",
            _ => return None,
        };
        Some(hint.to_string())
    }
}

/// Whether the process or the system is at its limit of open files.
fn is_out_of_files(error: &io::Error) -> bool {
    let error = rustix::io::Errno::from_io_error(error);
    matches!(error, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

/// The places that a key can come from.
const KEY_PLACES: &str = "set `BELLWETHER_API_KEY`, or `api_key_file` or `api_key_command` in `[source]`";
