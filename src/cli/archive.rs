//! `bellwether archive`: packs runs, prunes packed ones, and migrates an archive of an older layout.

use super::folders::Folders;
use super::migrate::MigrateArguments;
use super::outcome::Result;
use super::{cancellable, progress, say};
use crate::archive::{Removal, Seal};
use crate::human::{bytes, counted, grouped};
use crate::links;
use crate::project::Project;
use crate::run::{Control, PruneMode, compact, migrate, prune};

/// Pack the runs of an archive into fewer folders, remove packed runs, and migrate an archive of an older layout.
#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Pack runs into one folder with the same content. The packed runs stay until `archive prune`.
    Compact {
        /// The number of newest runs to leave unpacked.
        #[arg(long, default_value_t = 0, value_name = "RUNS")]
        keep: usize,
    },
    /// Remove packed runs, and nothing else.
    ///
    /// At once: a program that opened the archive before they were packed may fail for want of them. `bellwether prune`
    /// leaves them for a day.
    Prune {
        /// Print what would be removed without removing it.
        #[arg(long)]
        dry_run: bool,
    },
    /// Turn an archive of layout 9 into the current layout, with every observation. The old folders stay in `.layout-9`
    /// until they are removed with `--remove-old`. If it is interrupted, the same command resumes.
    Migrate(MigrateArguments),
}

impl Archive {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let archive = self.folders.archive(project);
        links::refuse_below(&self.folders.data(project), &archive)?;
        match self.action {
            Action::Compact { keep } => {
                let packs = cancellable(move |control| compact(&archive, keep, control))?;
                let line = |pack: &Seal| {
                    let (runs, size) = (counted(pack.members.len() as u64, "run", "runs"), bytes(pack.bytes()));
                    format!("packed {runs} of {} into `pack={}`, {size}\n", pack.service.name, pack.run)
                };
                let text: String = packs.iter().map(line).collect();
                say(if text.is_empty() { "nothing to pack\n" } else { &text })
            }
            Action::Prune { dry_run } => {
                let mode = if dry_run { PruneMode::List } else { PruneMode::Remove };
                let removals = cancellable(move |control| prune(&archive, mode, control))?;
                say(&pruned(&removals, if dry_run { "would remove" } else { "removed" }))
            }
            Action::Migrate(arguments) => {
                let options = arguments.options(&self.folders, project);
                let migration = cancellable(move |control| {
                    let control = Control { observer: Some(progress::shown()), ..control.clone() };
                    migrate(&options, &control)
                })?;
                say(&arguments.outcome(&migration, "bellwether archive migrate"))
            }
        }
    }
}

/// A line for each removed folder, and a total.
fn pruned(removals: &[Removal], verb: &str) -> String {
    let line = |removal: &Removal| {
        let Removal { folder, pack, bytes: size } = removal;
        format!("{verb} `{folder}` ({}), packed in `{pack}`\n", bytes(*size))
    };
    let mut text: String = removals.iter().map(line).collect();
    let size = bytes(removals.iter().map(|removal| removal.bytes).sum());
    text.push_str(&match removals.len() {
        0 => "nothing to prune\n".to_owned(),
        1 => format!("{verb} 1 folder, {size}\n"),
        count => format!("{verb} {} folders, {size}\n", grouped(count as u64)),
    });
    text
}
