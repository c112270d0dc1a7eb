//! `bellwether audit`: questions asked of the archive.

use super::folders::Folders;
use super::say;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::run::{audit_leak, grouped};
use crate::time::{Clock, unique_name};

/// Ask questions of the archive.
#[derive(Debug, clap::Args)]
pub(super) struct Audit {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Try to make the future reach the past of a dataset: take it away, and plant canaries in a copy of the archive.
    Leak {
        /// A definition: its name in `pipelines/`, or a path.
        definition: String,
    },
}

impl Audit {
    pub(super) fn execute(self) -> Result<()> {
        let What::Leak { definition } = &self.what;
        let plan = Plan::find(definition)?;
        let scratch = self.folders.output.join(format!(".audit-{}", unique_name(Clock::System.now())));
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
