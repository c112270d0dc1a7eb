//! `bellwether summary`: what a dataset holds, in a terminal.

use console::Term;

use super::report::Subject;
use super::say;
use crate::error::Result;

/// How wide lines are where nobody says.
const WIDTH: usize = 80;

/// Tell what a published dataset holds, and what its vendor did to its past.
#[derive(Debug, clap::Args)]
pub(super) struct Summary {
    #[command(flatten)]
    subject: Subject,

    /// How many columns lines may have; as many as the terminal, or 80, if it is not given.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

impl Summary {
    pub(super) fn execute(self) -> Result<()> {
        let terminal = || Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let width = self.width.or_else(terminal).unwrap_or(WIDTH);
        say(&self.subject.told()?.text(width))
    }
}
