//! Where the API key comes from: the environment, a file or a command.
//!
//! Each is bounded. A file must be a regular file, so nothing waits for the other end of a pipe. A command gets no
//! input, half a minute, and an environment without the key. At most 64 KiB are read from either. Their content is
//! never part of an error.

use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::error::{Error, ErrorKind, Result};
use crate::key::ApiKey;
use crate::process::child::{OutputFault, OutputLimits, output};

/// The environment variable that holds the key.
pub const VARIABLE: &str = "BELLWETHER_API_KEY";

/// The environment variable that names a file with the key, if the other one is not set.
pub const FILE_VARIABLE: &str = "BELLWETHER_API_KEY_FILE";

/// The limit on what is read for a key, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// How long a command may take: it may need a person to touch a device.
const PATIENCE: Duration = Duration::from_secs(30);

/// The source of a key.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The environment: the variable with the key, or the one that names a file.
    Environment {
        /// The folder that a relative path is below: the project's root, empty for the current folder.
        root: PathBuf,
    },
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command prints.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// The folder that it runs in: the project's root, empty for the current folder.
        root: PathBuf,
    },
    /// The caller of the library.
    Given(ApiKey),
}

/// Why a source has no key, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct SourceFault {
    reason: String,
    hint: &'static str,
}

impl KeySource {
    /// Reads the key for a host. `is_stopped` is polled while a command runs.
    ///
    /// # Errors
    ///
    /// When there is none, or the file or command fails; when it was cancelled.
    pub fn read(&self, host: &str, is_stopped: &dyn Fn() -> bool) -> Result<ApiKey> {
        let text = match self {
            Self::Environment { root } => match (variable(VARIABLE), variable(FILE_VARIABLE)) {
                (Some(text), _) => text.into_string().map_err(|_| self.failure(SourceFault::not_text()))?,
                (None, Some(path)) => return Self::File(root.join(path)).read(host, is_stopped),
                (None, None) => String::new(),
            },
            Self::File(path) => read_file(path).map_err(|fault| self.failure(fault))?,
            Self::Command { words, root } => {
                let text = run(words, root, PATIENCE, is_stopped).map_err(|fault| self.failure(fault))?;
                text.ok_or_else(Error::interruption)?
            }
            Self::Given(key) => return Ok(key.clone()),
        };
        if text.len() > MAX_BYTES {
            return Err(self.failure(SourceFault::too_long()));
        }
        ApiKey::new(&text).ok_or_else(|| match self {
            Self::Environment { .. } => Error::new(ErrorKind::Service, format!("no API key for {host}")).with_hint(
                "set `BELLWETHER_API_KEY` or `BELLWETHER_API_KEY_FILE`, or `api_key_file` or `api_key_command` in `[source]`",
            ),
            _ => self.failure(SourceFault::new("it is empty", FIRST_LINE)),
        })
    }

    /// The same source, with relative paths below the root of a project.
    #[must_use]
    pub fn below(self, root: &Path) -> Self {
        match self {
            Self::Environment { .. } => Self::Environment { root: root.to_owned() },
            Self::File(path) => Self::File(root.join(path)),
            Self::Command { words, .. } => Self::Command { words, root: root.to_owned() },
            Self::Given(key) => Self::Given(key),
        }
    }

    /// Where the key comes from in this environment, in words.
    pub fn in_use(&self) -> String {
        match (self, self.file_of_environment()) {
            (_, Some(path)) => format!("`{}`, which `{FILE_VARIABLE}` names", path.display()),
            (other, None) => other.to_string(),
        }
    }

    /// The file that the environment names, if the key comes from it.
    fn file_of_environment(&self) -> Option<PathBuf> {
        let Self::Environment { root } = self else { return None };
        let path = variable(FILE_VARIABLE).filter(|_| variable(VARIABLE).is_none())?;
        Some(root.join(path))
    }

    /// A warning about the source: other users can read the file that a definition names. One that the environment names is
    /// the platform's, whose modes are its own: those of systemd and Kubernetes only look open.
    pub fn warning(&self) -> Option<String> {
        const OTHERS: u32 = 0o077;
        let Self::File(path) = self else { return None };
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let shown = path.display();
        (found.permissions().mode() & OTHERS != 0)
            .then(|| format!("other users can read the API key in `{shown}`: run `chmod 600 {shown}`"))
    }

    fn failure(&self, fault: SourceFault) -> Error {
        Error::new(ErrorKind::Service, format!("cannot get the API key from {self}"))
            .with_hint(fault.hint)
            .with_source(fault.reason)
    }
}

/// The place, without anything that could be part of a key.
impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment { .. } => write!(formatter, "`{VARIABLE}`"),
            Self::File(path) => write!(formatter, "`{}`", path.display()),
            Self::Command { words, .. } => {
                write!(formatter, "the command `{}`", words.first().map_or("", String::as_str))
            }
            Self::Given(_) => formatter.write_str("the caller"),
        }
    }
}

const FIRST_LINE: &str = "put the key on the first line of the file, or of the command's output";

impl SourceFault {
    fn new(reason: impl Into<String>, hint: &'static str) -> Self {
        Self { reason: reason.into(), hint }
    }

    fn not_text() -> Self {
        Self::new("it is not UTF-8 text", "save the key as plain text")
    }

    fn too_long() -> Self {
        Self::new("it is longer than 64 KiB", FIRST_LINE)
    }

    fn of_command(fault: OutputFault) -> Self {
        let hint = match fault {
            OutputFault::Long(_) => return Self::too_long(),
            OutputFault::Start(_) => "check `api_key_command`",
            OutputFault::Thread(_) => "raise the limit on threads (`ulimit -u`)",
            OutputFault::Read(_) => "run it again",
            OutputFault::Status(_) => "run the command yourself to see why",
            OutputFault::Slow(_) => "it cannot prompt for input: use another command, or an `api_key_file`",
        };
        Self::new(fault.to_string(), hint)
    }
}

/// A variable of the environment; an empty one counts as not set.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn read_file(path: &Path) -> Result<String, SourceFault> {
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => {
                "check `api_key_file` or `BELLWETHER_API_KEY_FILE`; a relative path is below the project's root"
            }
            io::ErrorKind::PermissionDenied => "let the user that runs bellwether read it",
            _ => "check `api_key_file`",
        };
        SourceFault::new(error.to_string(), hint)
    };
    // Non-blocking: opening a pipe would wait for a writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(SourceFault::new("it is a folder", "name the file with the key"));
    }
    if kind.is_fifo() {
        return Err(SourceFault::new("it is a pipe", "use `api_key_command` for a key that a program prints"));
    }
    if !kind.is_file() {
        return Err(SourceFault::new("it is a device or a socket", "name a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, SourceFault> {
    if bytes.len() > MAX_BYTES {
        return Err(SourceFault::too_long());
    }
    // The conversion error contains the bytes, so it is dropped.
    String::from_utf8(bytes).map_err(|_| SourceFault::not_text())
}

/// Runs a command in a folder and returns its output; none if it was cancelled.
fn run(
    words: &[String],
    root: &Path,
    patience: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<String>, SourceFault> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| SourceFault::new("it names no program", "name one in `api_key_command`"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(VARIABLE);
    if !root.as_os_str().is_empty() {
        command.current_dir(root);
    }
    let limits = OutputLimits { bytes: MAX_BYTES, time: patience };
    let printed = output(&mut command, limits, is_stopped).map_err(SourceFault::of_command)?;
    printed.map(text).transpose()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::{MAX_BYTES, SourceFault, run};

    fn shell(script: &str) -> Result<Option<String>, SourceFault> {
        let words = ["sh", "-c", script].map(str::to_owned);
        run(&words, Path::new(""), Duration::from_millis(500), &|| false)
    }

    #[test]
    fn a_key_command_has_no_input_and_is_bounded_in_bytes_and_time() {
        assert_eq!(shell("cat; echo key"), Ok(Some("key\n".to_owned())));
        let exactly = shell(&format!("head -c {MAX_BYTES} /dev/zero")).unwrap().unwrap();
        assert_eq!(exactly.len(), MAX_BYTES);
        let begun = Instant::now();
        assert_eq!(shell("yes"), Err(SourceFault::too_long()));
        assert!(shell("sleep 60").unwrap_err().reason.contains("did not finish"));
        // The shell ends, but the process that it started keeps the output open.
        assert!(shell("sleep 60 & echo key").unwrap_err().reason.contains("did not finish"));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_key_command_that_times_out_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late");
        let script = format!("(sleep 2; echo late > '{}') & wait", file.display());
        shell(&script).unwrap_err();
        std::thread::sleep(Duration::from_secs(3));
        assert!(!file.exists());
    }

    #[test]
    fn a_key_command_is_killed_when_the_run_is_cancelled() {
        let words = ["sleep", "60"].map(str::to_owned);
        assert_eq!(run(&words, Path::new(""), Duration::from_secs(60), &|| true), Ok(None));
    }
}
