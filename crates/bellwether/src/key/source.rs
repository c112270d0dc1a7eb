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

use crate::error::{Error, ErrorKind, Reason, Result};
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

impl KeySource {
    /// Reads the key for a host. `is_stopped` is polled while a command runs.
    ///
    /// # Errors
    ///
    /// When there is none, or the file or command fails; when it was cancelled.
    pub fn read(&self, host: &str, is_stopped: &dyn Fn() -> bool) -> Result<ApiKey> {
        let text = match self {
            Self::Environment { root } => match (variable(VARIABLE), variable(FILE_VARIABLE)) {
                (Some(text), _) => text.into_encoded_bytes(),
                (None, Some(path)) => return Self::File(root.join(path)).read(host, is_stopped),
                (None, None) => Vec::new(),
            },
            Self::File(path) => self.read_file(path)?,
            Self::Command { words, root } => {
                self.run(words, root, PATIENCE, is_stopped)?.ok_or_else(Error::interruption)?
            }
            Self::Given(key) => return Ok(key.clone()),
        };
        if text.len() > MAX_BYTES {
            return Err(self.too_long());
        }
        // The conversion error contains the bytes, so it is dropped.
        let text =
            String::from_utf8(text).map_err(|_| self.failure("it is not UTF-8 text", "save the key as plain text"))?;
        ApiKey::new(&text).ok_or_else(|| match self {
            Self::Environment { .. } => Error::new(ErrorKind::Service, format!("no API key for {host}")).with_hint(
                "set `BELLWETHER_API_KEY` or `BELLWETHER_API_KEY_FILE`, or `api_key_file` or `api_key_command` in `[source]`",
            ),
            _ => self.failure("it is empty", FIRST_LINE),
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
        match (self, variable(FILE_VARIABLE).filter(|_| variable(VARIABLE).is_none())) {
            (Self::Environment { root }, Some(path)) => {
                format!("`{}`, which `{FILE_VARIABLE}` names", root.join(path).display())
            }
            _ => self.to_string(),
        }
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

    fn failure(&self, reason: impl Into<Reason>, hint: &str) -> Error {
        Error::new(ErrorKind::Service, format!("cannot get the API key from {self}"))
            .with_hint(hint)
            .with_source(reason)
    }

    fn too_long(&self) -> Error {
        self.failure("it is longer than 64 KiB", FIRST_LINE)
    }

    fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    "check `api_key_file` or `BELLWETHER_API_KEY_FILE`; a relative path is below the project's root"
                }
                io::ErrorKind::PermissionDenied => "let the user that runs bellwether read it",
                _ => "check `api_key_file`",
            };
            self.failure(error.to_string(), hint)
        };
        // Non-blocking: opening a pipe would wait for a writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(self.failure("it is a folder", "name the file with the key"));
        }
        if kind.is_fifo() {
            return Err(self.failure("it is a pipe", "use `api_key_command` for a key that a program prints"));
        }
        if !kind.is_file() {
            return Err(self.failure("it is a device or a socket", "name a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Runs a command in a folder and returns its output; none if it was cancelled.
    fn run(
        &self,
        words: &[String],
        root: &Path,
        patience: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(self.failure("it names no program", "name one in `api_key_command`"));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_remove(VARIABLE);
        if !root.as_os_str().is_empty() {
            command.current_dir(root);
        }
        let limits = OutputLimits { bytes: MAX_BYTES, time: patience };
        output(&mut command, limits, is_stopped).map_err(|fault| {
            let hint = match fault {
                OutputFault::Long(_) => return self.too_long(),
                OutputFault::Start(_) => "check `api_key_command`",
                OutputFault::Thread(_) => "raise the limit on threads (`ulimit -u`)",
                OutputFault::Read(_) => "run it again",
                OutputFault::Status(_) => "run the command yourself to see why",
                OutputFault::Slow(_) => "it cannot prompt for input: use another command, or an `api_key_file`",
            };
            self.failure(fault.to_string(), hint)
        })
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

/// A variable of the environment; an empty one counts as not set.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use super::{KeySource, MAX_BYTES};

    /// What a command prints within half a second, or why that is no key.
    fn shell(script: &str) -> Result<Vec<u8>, String> {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let source = KeySource::Command { words: words.clone(), root: PathBuf::new() };
        let printed = source.run(&words, Path::new(""), Duration::from_millis(500), &|| false);
        printed
            .map(|printed| printed.expect("it was not cancelled"))
            .map_err(|error| error.source().unwrap().to_string())
    }

    #[test]
    fn a_key_command_has_no_input_and_is_bounded_in_bytes_and_time() {
        assert_eq!(shell("cat; echo key"), Ok(b"key\n".to_vec()));
        let exactly = shell(&format!("head -c {MAX_BYTES} /dev/zero")).unwrap();
        assert_eq!(exactly.len(), MAX_BYTES);
        let begun = Instant::now();
        assert_eq!(shell("yes").unwrap_err(), "it is longer than 64 KiB");
        assert!(shell("sleep 60").unwrap_err().contains("did not finish"));
        // The shell ends, but the process that it started keeps the output open.
        assert!(shell("sleep 60 & echo key").unwrap_err().contains("did not finish"));
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
        let words = ["sleep", "60"].map(str::to_owned).to_vec();
        let source = KeySource::Command { words: words.clone(), root: PathBuf::new() };
        let printed = source.run(&words, Path::new(""), Duration::from_secs(60), &|| true);
        assert!(printed.unwrap().is_none());
    }
}
