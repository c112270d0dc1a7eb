//! `bellwether audit leak`: does the future reach the past?

use super::folders::Folders;
use super::say;
use crate::error::{Error, Result};
use crate::file;
use crate::numbers::grouped;
use crate::plan::Plan;
use crate::run::audit_leak;
use crate::time::{Clock, unique_name};

/// Try to make the future reach the past of a dataset: take it away, and plant canaries in a copy of the archive.
#[derive(Debug, clap::Args)]
pub(super) struct Leak {
    /// A definition: its name in `pipelines/`, or a path.
    definition: String,

    #[command(flatten)]
    folders: Folders,
}

impl Leak {
    pub(super) fn ask(self) -> Result<()> {
        let plan = Plan::find(&self.definition)?;
        let scratch = file::scratch(&self.folders.output, &unique_name(Clock::System.now()));
        let leak = audit_leak(&plan, &self.folders.archive(), &scratch)?;
        for trial in &leak.trials {
            let outcome = if trial.is_sound { "as it should be" } else { "LEAK" };
            say(&format!("{:15}  {:>12} rows  {}\n", outcome, grouped(trial.rows), trial.what))?;
        }
        let count = leak.trials.iter().filter(|trial| !trial.is_sound).count();
        match count {
            0 => say(&format!("{} trials: nothing of the future reached the past\n", leak.trials.len())),
            count => Err(Error::Leak { name: plan.name, count }),
        }
    }
}
