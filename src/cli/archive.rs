//! `bellwether archive`: keeps the archive small.

use super::folders::Folders;
use super::say;
use crate::archive::{compact, prune};
use crate::error::Result;
use crate::numbers::grouped;
use crate::time::Clock;

/// Keep the archive small: merge old runs, and remove those that were merged.
#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Merge old runs into one that says all that they say. They stay where they are until they are pruned.
    Compact {
        /// How many of the newest runs are left as they are.
        #[arg(long, default_value_t = 0, value_name = "RUNS")]
        keep: usize,
    },
    /// Remove the runs whose place a compacted run has taken, and nothing else.
    Prune,
}

impl Archive {
    pub(super) fn execute(self) -> Result<()> {
        let archive = self.folders.archive();
        match self.what {
            What::Compact { keep } => match compact(&archive, keep, Clock::System.now())? {
                Some(run) => {
                    let seal = run.seal();
                    let (count, bytes) = (grouped(seal.replaces.len() as u64), grouped(seal.bytes()));
                    say(&format!("{} replaces {count} runs, {bytes} bytes\n", run.path().display()))
                }
                None => say("there are no two runs to be merged\n"),
            },
            What::Prune => {
                let removed = prune(&archive)?;
                let names: String = removed.iter().map(|run| format!("removed {run}\n")).collect();
                say(if names.is_empty() { "no run is replaced by another one\n" } else { &names })
            }
        }
    }
}
