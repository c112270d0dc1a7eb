//! `bellwether audit`: one file per audit. `arguments` has what those of the archive share.

mod arguments;
mod leak;
mod quality;
mod revisions;
mod skill;
mod sources;
mod table;

use bellwether::project::Project;

pub use skill::skill_in_words;

use crate::cli::outcome::Result;

/// Audit the archive, or a table of your own: look-ahead, revisions, quality, skill, sources.
#[derive(Debug, clap::Args)]
pub(super) struct Audit {
    #[command(subcommand)]
    action: AuditAction,
}

#[derive(Debug, clap::Subcommand)]
enum AuditAction {
    Leak(leak::Leak),
    Revisions(revisions::Revisions),
    Quality(quality::Quality),
    Sources(sources::Sources),
    Skill(skill::Skill),
    Table(table::Table),
}

impl Audit {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        match self.action {
            AuditAction::Leak(audit) => audit.execute(project),
            AuditAction::Revisions(audit) => audit.execute(project),
            AuditAction::Quality(audit) => audit.execute(project),
            AuditAction::Sources(audit) => audit.execute(project),
            AuditAction::Skill(audit) => audit.execute(project),
            AuditAction::Table(audit) => audit.execute(project),
        }
    }
}
