//! A child process that does not outlive the value: it is killed with everything that it started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command in a process group of its own, killed on drop unless it has ended.
pub(crate) struct Running {
    child: Child,
    has_ended: bool,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()?, has_ended: false })
    }

    /// The process, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its exit status, once it has ended.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub(crate) fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.has_ended = status.is_some();
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group has the child's process ID, which is not reused before the child is waited for.
        if !self.has_ended {
            if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
