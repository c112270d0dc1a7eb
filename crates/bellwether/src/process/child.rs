//! A child process that does not outlive the value, nor the program: it is killed with everything that it started. Where
//! there is `/proc`, that includes what began a session of its own: each command has a mark in its environment, which its
//! children inherit.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// How often to check on a command.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The process groups of this program. The ID of a group is not reused before its first process is waited for, which
/// removes it here under the same lock.
static GROUPS: Mutex<Groups> = Mutex::new(Groups { running: Vec::new(), is_closed: false });

struct Groups {
    running: Vec<Pid>,
    /// Whether the program ends, so that nothing may be started.
    is_closed: bool,
}

/// The variable of the environment with the mark of a command.
const MARK: &str = "BELLWETHER_COMMAND";

/// A command in a process group of its own, killed on drop unless it has ended.
pub struct RunningCommand {
    child: Child,
    group: Pid,
    mark: String,
    has_ended: bool,
}

/// Kills every running command, before the program ends without dropping them. Nothing can be started any more.
pub fn kill_all() {
    let mut groups = groups();
    groups.is_closed = true;
    for group in &groups.running {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    kill_marked(&format!("{}-", std::process::id()));
}

fn groups() -> MutexGuard<'static, Groups> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunningCommand {
    /// Starts a command.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut groups = groups();
        if groups.is_closed {
            return Err(io::Error::other("the program is ending"));
        }
        let mark = format!("{}-{:016x}", std::process::id(), crate::time::random());
        let child = command.env(MARK, &mark).process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        groups.running.push(group);
        Ok(Self { child, group, mark, has_ended: false })
    }

    /// The process, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its exit status, once it has ended.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut groups = groups();
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.has_ended = true;
            groups.running.retain(|group| *group != self.group);
        }
        Ok(status)
    }

    /// Asks it to end with SIGTERM, and kills what is left of it after a while.
    pub fn end(self, within: Duration) {
        let _ = kill_process_group(self.group, Signal::TERM);
        let begun = Instant::now();
        // It is not waited for, so that its group can still be killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while begun.elapsed() < within && matches!(waitid(WaitId::Pid(self.group), options), Ok(None)) {
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut groups = groups();
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
            groups.running.retain(|group| *group != self.group);
            kill_marked(&self.mark);
        }
    }
}

/// Kills what commands started in other sessions, by the beginning of their marks, a few times: they may start more meanwhile.
fn kill_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |process: &fs::DirEntry| {
        fs::read(process.path().join("environ")).is_ok_and(|environment| {
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(wanted.as_bytes()))
        })
    };
    for _ in 0..3 {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_marked);
        let numbers =
            processes.filter_map(|process| process.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        let marked: Vec<Pid> = numbers.filter(|process| *process != rustix::process::getpid()).collect();
        if marked.is_empty() {
            return;
        }
        for process in marked {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// The limits of a command whose output is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputLimits {
    /// The most bytes that it may print.
    pub(crate) bytes: usize,
    /// How long it may take.
    pub(crate) time: Duration,
}

/// Why there is no output of a command. The output itself, which may be a secret, is never part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputFault {
    #[error("{0}")]
    Start(io::Error),

    /// No thread to read the output.
    #[error("{0}")]
    Thread(io::Error),

    #[error("{0}")]
    Read(io::Error),

    #[error("it failed with {0}")]
    Status(ExitStatus),

    #[error("its output is longer than {} KiB", .0 >> 10)]
    Long(usize),

    #[error("it did not finish within {} s", .0.as_secs())]
    Slow(Duration),
}

/// Runs a command without input, and returns what it prints; `None` if it was cancelled, which `is_stopped` says.
pub(crate) fn output(
    command: &mut Command,
    limits: OutputLimits,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>, OutputFault> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = RunningCommand::spawn(command).map_err(OutputFault::Start)?;
    let (printed, reading) = mpsc::channel();
    if let Some(out) = running.child().stdout.take() {
        // If the command cannot be killed, this thread ends with the program.
        let read = move || {
            let mut bytes = Vec::new();
            let result = out.take(limits.bytes as u64 + 1).read_to_end(&mut bytes);
            let _ = printed.send(result.map(|_| bytes));
        };
        thread::Builder::new().spawn(read).map_err(OutputFault::Thread)?;
    }
    let begun = Instant::now();
    let mut output = None;
    loop {
        if let Ok(bytes) = reading.try_recv() {
            let bytes = bytes.map_err(OutputFault::Read)?;
            if bytes.len() > limits.bytes {
                return Err(OutputFault::Long(limits.bytes));
            }
            output = Some(bytes);
        }
        // First all of the output, then the status: until it is waited for, the process ID is not reused.
        if let Some(bytes) = &mut output
            && let Some(status) = running.status().map_err(OutputFault::Read)?
        {
            return if status.success() { Ok(Some(std::mem::take(bytes))) } else { Err(OutputFault::Status(status)) };
        }
        if is_stopped() {
            return Ok(None);
        }
        if begun.elapsed() >= limits.time {
            return Err(OutputFault::Slow(limits.time));
        }
        thread::sleep(LOOK_EVERY);
    }
}
