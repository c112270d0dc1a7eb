//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use super::observer::Control;
use crate::archive::Interrupted;
use crate::plan::StoreUrl;
use crate::time::Clock;

/// The folder of evidence in the data folder.
pub(super) const EVIDENCE: &str = "evidence";

/// The options of a run, besides its plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that datasets and evidence are in.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// What to do with an interrupted run of the same definition.
    pub interrupted: Interrupted,
    /// What to do while another run of the same definition is in progress.
    pub when_held: WhenHeld,
    /// What to do if runs are gone, or the definition asks another service than before.
    pub when_lost: WhenLost,
    /// Runs of the definition that are known to have been sealed in the archive of its service.
    pub known_runs: Vec<String>,
    /// The object store to use instead of the definition's.
    pub store: Option<StoreUrl>,
    /// Follows and cancels the run.
    pub control: Control,
}

impl Options {
    /// The default options: the archive is the folder `archive` in the data folder, an interrupted run is resumed, and
    /// the run fails while another one of the same definition is in progress.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self {
            archive: data.join("archive"),
            data,
            clock: Clock::System,
            interrupted: Interrupted::Resume,
            when_held: WhenHeld::Fail,
            when_lost: WhenLost::Fail,
            known_runs: Vec::new(),
            store: None,
            control: Control::default(),
        }
    }

    pub(super) fn evidence(&self) -> PathBuf {
        self.data.join(EVIDENCE)
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

/// What a run does if it does not go on with the history that its definition had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLost {
    /// It fails.
    Fail,
    /// It begins a new history, or goes on without the runs that are gone.
    BeginAnew,
}
