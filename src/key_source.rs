//! Where the key comes from: the environment, a file or a command.
//!
//! Each is bounded. A file is a regular file, so nothing waits for the other end of a pipe; a command has no input, half a
//! minute, and not the key of the environment. Of both at most 64 KiB are read. What they gave is never part of an error.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{Error, Result};
use crate::secret::ApiKey;

/// The environment variable that holds the key.
pub const VARIABLE: &str = "BELLWETHER_API_KEY";

/// The most bytes that a key may come with.
const MOST_BYTES: usize = 64 << 10;

/// How long a command may take: it may ask a person for a touch or a word.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a command is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Where a definition says that the key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The environment variable.
    Environment,
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command prints.
    Command(Vec<String>),
}

/// Why a source gives no key, and what to do.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    reason: String,
    hint: &'static str,
}

impl KeySource {
    /// Reads the key. `host` is the service that it is for; `is_stopped` is asked from time to time whether to go on.
    ///
    /// # Errors
    ///
    /// When there is none, or the file or command fails; [`Error::Interrupted`] when it was told to stop.
    pub fn read(&self, host: &str, is_stopped: &dyn Fn() -> bool) -> Result<ApiKey> {
        let text = match self {
            Self::Environment => match std::env::var_os(VARIABLE) {
                Some(text) => text.into_string().map_err(|_| self.failed(Fault::not_text()))?,
                None => String::new(),
            },
            Self::File(path) => read_file(path).map_err(|fault| self.failed(fault))?,
            Self::Command(words) => {
                let text = run(words, PATIENCE, is_stopped).map_err(|fault| self.failed(fault))?;
                text.ok_or(Error::Interrupted)?
            }
        };
        if text.len() > MOST_BYTES {
            return Err(self.failed(Fault::too_long()));
        }
        ApiKey::new(&text).ok_or_else(|| match self {
            Self::Environment => Error::NoKey { host: host.to_owned() },
            _ => self.failed(Fault::new("it is empty", FIRST_LINE)),
        })
    }

    /// What is wrong with the place of the key, though the key can be read: a file that others can read too.
    pub fn warning(&self) -> Option<String> {
        const OTHERS: u32 = 0o077;
        let Self::File(path) = self else { return None };
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let shown = path.display();
        (found.permissions().mode() & OTHERS != 0)
            .then(|| format!("other users can read the API key in `{shown}`: run `chmod 600 {shown}`"))
    }

    fn failed(&self, fault: Fault) -> Error {
        let place = match self {
            Self::Environment => format!("`{VARIABLE}`"),
            Self::File(path) => format!("`{}`", path.display()),
            Self::Command(words) => format!("the command `{}`", words.first().map_or("", String::as_str)),
        };
        Error::KeySource { place, source: fault.reason.into(), hint: fault.hint }
    }
}

const FIRST_LINE: &str = "put the key on the first line of the file, or of the command's output";

impl Fault {
    fn new(reason: impl Into<String>, hint: &'static str) -> Self {
        Self { reason: reason.into(), hint }
    }

    fn not_text() -> Self {
        Self::new("it is not UTF-8 text", "save the key as plain text")
    }

    fn too_long() -> Self {
        Self::new("it is longer than 64 KiB", FIRST_LINE)
    }
}

fn read_file(path: &Path) -> Result<String, Fault> {
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "check `api_key_file`; a relative path is relative to the working directory",
            io::ErrorKind::PermissionDenied => "let the user that runs bellwether read it",
            _ => "check `api_key_file`",
        };
        Fault::new(error.to_string(), hint)
    };
    // Without waiting, or a pipe would hold up the program until somebody writes to it.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(Fault::new("it is a folder", "name the file with the key"));
    }
    if kind.is_fifo() {
        return Err(Fault::new("it is a pipe", "use `api_key_command` for a key that a program prints"));
    }
    if !kind.is_file() {
        return Err(Fault::new("it is a device or a socket", "name a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, Fault> {
    if bytes.len() > MOST_BYTES {
        return Err(Fault::too_long());
    }
    // The bytes of what is not text are part of the error of the conversion: they are not kept.
    String::from_utf8(bytes).map_err(|_| Fault::not_text())
}

/// Runs a command and gives what it prints; none when it was told to stop.
fn run(words: &[String], patience: Duration, is_stopped: &dyn Fn() -> bool) -> Result<Option<String>, Fault> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| Fault::new("it names no program", "name one in `api_key_command`"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(VARIABLE).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| Fault::new(error.to_string(), "check `api_key_command`"))?;
    let mut running = Running { child, has_ended: false };
    let (printed, reading) = mpsc::channel();
    if let Some(out) = running.child.stdout.take() {
        // Where it cannot be killed, with the process that it waits for, it ends with this program.
        let read = move || {
            let mut bytes = Vec::new();
            let result = out.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes);
            let _ = printed.send(result.map(|_| bytes));
        };
        let started = thread::Builder::new().spawn(read);
        started.map_err(|error| Fault::new(error.to_string(), "raise the limit on threads (`ulimit -u`)"))?;
    }
    let begun = Instant::now();
    let again = |error: io::Error| Fault::new(error.to_string(), "run it again");
    let mut output = None;
    loop {
        if let Ok(bytes) = reading.try_recv() {
            output = Some(text(bytes.map_err(again)?)?);
        }
        // First all of its output, then how it ended: until somebody has asked for that, its number is nobody else's.
        if let Some(text) = &mut output
            && let Some(status) = running.status().map_err(again)?
        {
            let failed = || Fault::new(format!("it failed with {status}"), "run the command yourself to see why");
            return if status.success() { Ok(Some(std::mem::take(text))) } else { Err(failed()) };
        }
        if is_stopped() {
            return Ok(None);
        }
        if begun.elapsed() >= patience {
            let reason = format!("it did not finish within {} s", patience.as_secs());
            return Err(Fault::new(reason, "it cannot prompt for input: use another command, or an `api_key_file`"));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// A command that is killed, with all that it started, unless it ends by itself.
struct Running {
    child: Child,
    has_ended: bool,
}

impl Running {
    fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.has_ended = status.is_some();
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group has the child's number, which is not given to another process before the child is waited for.
        if !self.has_ended {
            if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Fault, MOST_BYTES, run};

    fn shell(script: &str) -> Result<Option<String>, Fault> {
        let words = ["sh", "-c", script].map(str::to_owned);
        run(&words, Duration::from_millis(500), &|| false)
    }

    #[test]
    fn a_command_has_no_input_and_an_end_in_bytes_and_in_time() {
        assert_eq!(shell("cat; echo key"), Ok(Some("key\n".to_owned())));
        let exactly = shell(&format!("head -c {MOST_BYTES} /dev/zero")).unwrap().unwrap();
        assert_eq!(exactly.len(), MOST_BYTES);
        let begun = Instant::now();
        assert_eq!(shell("yes"), Err(Fault::too_long()));
        assert!(shell("sleep 60").unwrap_err().reason.contains("did not finish"));
        // The shell ends, and what it started holds its output open.
        assert!(shell("sleep 60 & echo key").unwrap_err().reason.contains("did not finish"));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_command_that_is_given_up_is_killed_with_all_that_it_started() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("late");
        let script = format!("(sleep 2; echo late > '{}') & wait", file.display());
        shell(&script).unwrap_err();
        std::thread::sleep(Duration::from_secs(3));
        assert!(!file.exists());
    }

    #[test]
    fn a_command_is_given_up_when_the_run_is_told_to_stop() {
        let words = ["sleep", "60"].map(str::to_owned);
        assert_eq!(run(&words, Duration::from_secs(60), &|| true), Ok(None));
    }
}
