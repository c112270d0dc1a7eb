//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use super::observer::Control;
use crate::archive::Interrupted;
use crate::time::Clock;

/// The options of a run, besides its plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that datasets and evidence are in.
    pub output: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// What to do with an interrupted run of the same definition.
    pub interrupted: Interrupted,
    /// What to do while another run of the same definition is in progress.
    pub when_held: WhenHeld,
    /// Follows and cancels the run.
    pub control: Control,
}

impl Options {
    pub(super) fn evidence(&self) -> PathBuf {
        self.output.join("evidence")
    }
}

/// What a run does while another run of the same definition is in progress on the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHeld {
    /// It fails.
    Fail,
    /// It waits, up to a limit.
    Wait(Duration),
}
