//! `bellwether summary`: the report of a dataset, in a terminal.

use bellwether::project::Project;

use super::document::AsJson;
use super::outcome::Result;
use super::report::ReportSubject;
use super::wrap::columns;

/// The width of lines outside a terminal.
const WIDTH: usize = 80;

/// Print the report of a published dataset.
#[derive(Debug, clap::Args)]
pub(super) struct Summary {
    #[command(flatten)]
    subject: ReportSubject,

    /// The width of lines. Default: that of the terminal, or 80.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,

    #[command(flatten)]
    json: AsJson,
}

impl Summary {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let width = self.width.or_else(columns).unwrap_or(WIDTH);
        let report = self.subject.build(project)?;
        self.json.say(|| report.summary(), || report.text(width))
    }
}
