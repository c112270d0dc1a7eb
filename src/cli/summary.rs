//! `bellwether summary`: the report of a dataset, in a terminal.

use super::outcome::Result;
use console::Term;

use super::report::Subject;
use super::say;
use crate::project::Project;

/// The width of lines outside a terminal.
const WIDTH: usize = 80;

/// Summarize a published dataset: what it holds, and how the vendor revised it.
#[derive(Debug, clap::Args)]
pub(super) struct Summary {
    #[command(flatten)]
    subject: Subject,

    /// The width of lines. Default: that of the terminal, or 80.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

impl Summary {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let terminal = || Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let width = self.width.or_else(terminal).unwrap_or(WIDTH);
        say(&self.subject.told(project)?.text(width))
    }
}
