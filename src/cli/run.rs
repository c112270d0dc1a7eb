//! `bellwether run`: fetch, archive, join, publish.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::{interruptible, say};
use crate::error::Result;
use crate::plan::Plan;
use crate::run::{self, Options, Progress};
use crate::time::Clock;

/// Fetch what a definition asks for and publish its dataset.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// A definition: its name in `pipelines/`, or a path.
    definition: String,

    /// The folder for archive and datasets.
    #[arg(long, default_value = "output", value_name = "FOLDER")]
    output: PathBuf,

    /// Say nothing but errors.
    #[arg(long, short)]
    quiet: bool,
}

impl Run {
    pub(super) fn execute(self) -> Result<()> {
        let plan = Plan::find(&self.definition)?;
        let progress = match () {
            () if self.quiet => Progress::Quiet,
            () if io::stderr().is_terminal() => Progress::bars(),
            () => Progress::Lines,
        };
        let summary = interruptible(async |stop| {
            run::run(plan, Options { output: self.output, clock: Clock::System, progress, stop }).await
        })?;
        if self.quiet { Ok(()) } else { say(&summary.to_string()) }
    }
}
