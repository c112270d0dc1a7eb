//! `bellwether audit`: one file per audit.

mod leak;
mod quality;
mod revisions;
mod sources;

use super::aligned;
use super::cancellable;
use super::documents;
use super::folders;
use super::outcome::{self, Result};
use super::rows;
use super::say;
use super::store;
use super::typed;
use crate::plan::Plan;
use crate::project::Project;

/// The line with the subject of the audit.
fn about(plan: Option<&Plan>) -> String {
    let what = plan
        .map_or_else(|| "the whole archive, all definitions".to_owned(), |plan| format!("definition `{}`", plan.name));
    format!("scope   {what}\n")
}

/// Audit the archive: look-ahead, revisions, quality, and disagreements between operations.
#[derive(Debug, clap::Args)]
pub(super) struct Audit {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Leak(leak::Leak),
    Revisions(revisions::Revisions),
    Quality(quality::Quality),
    Sources(sources::Sources),
}

impl Audit {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        match self.action {
            Action::Leak(question) => question.ask(project),
            Action::Revisions(question) => question.ask(project),
            Action::Quality(question) => question.ask(project),
            Action::Sources(question) => question.ask(project),
        }
    }
}
