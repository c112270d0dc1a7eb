//! `bellwether archive`: packs runs, prunes packed ones, forgets bad ones, repairs damage, and migrates an archive of an older layout.

use bellwether::archive::{ForgetReason, Removal, Seal};
use bellwether::disk::links;
use bellwether::project::Project;
use bellwether::run::{Control, Forgot, PruneMode, compact, forget, migrate, prune, repair};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, group_digits};

use super::document::AsJson;
use super::folders::Folders;
use super::migrate::MigrateArguments;
use super::outcome::Result;
use super::repair::RepairArguments;
use super::{cancellable, progress, say};

/// Pack the runs of an archive into fewer folders, remove packed runs, take bad runs back, repair damage, and migrate an
/// archive of an older layout.
#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    #[command(subcommand)]
    action: ArchiveAction,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum ArchiveAction {
    /// Pack runs into one folder with the same content. The packed runs stay until `archive prune`.
    Compact {
        /// The number of newest runs to leave unpacked.
        #[arg(long, default_value_t = 0, value_name = "RUNS")]
        keep: usize,
    },
    /// Remove packed runs, and nothing else.
    ///
    /// At once: a program that opened the archive before they were packed may need them and fail. `bellwether prune` leaves
    /// them for a day.
    Prune {
        /// Print what would be removed without removing it.
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a bad run back: no command counts it any more.
    ///
    /// The run stays, beside a note that says why. The note is sent to the store and fetched from it like a run, so that
    /// every machine leaves the run out, also as of instants before the note; whatever leaves it out says so.
    Forget(Forget),
    /// Set damaged runs, packs and versions aside, and make again what the others can make.
    ///
    /// Nothing is removed: they are moved to the hidden folder `.damaged` beside them, so that they block no command. A
    /// run that no intact pack has either is then missing, until `bellwether store repair` or a backup restores it.
    Repair(RepairArguments),
    /// Turn an archive of layout 9 into the current layout, with every observation. The old folders stay in `.layout-9`
    /// until they are removed with `--remove-old`. If it is interrupted, the same command resumes.
    Migrate(MigrateArguments),
}

#[derive(Debug, clap::Args)]
struct Forget {
    /// The name of the run.
    run: String,

    /// Why, in a line: it is shown wherever the run is left out.
    #[arg(long, value_name = "TEXT")]
    reason: ForgetReason,

    #[command(flatten)]
    json: AsJson,
}

impl Archive {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let archive = self.folders.archive(project);
        links::refuse_below(&self.folders.data(project), &archive)?;
        match self.action {
            ArchiveAction::Compact { keep } => {
                let packs = cancellable(move |control| compact(&archive, keep, control))?;
                let line = |pack: &Seal| {
                    let (runs, size) = (count_of(pack.members.len() as u64, "run", "runs"), bytes(pack.bytes()));
                    format!("packed {runs} of {} into `pack={}`, {size}\n", pack.service.name, pack.run)
                };
                let text: String = packs.iter().map(line).collect();
                say(if text.is_empty() { "nothing to pack\n" } else { &text })
            }
            ArchiveAction::Prune { dry_run } => {
                let mode = if dry_run { PruneMode::List } else { PruneMode::Remove };
                let removals = cancellable(move |control| prune(&archive, mode, control))?;
                say(&removal_lines(&removals, if dry_run { "would remove" } else { "removed" }))
            }
            ArchiveAction::Forget(Forget { run, reason, json }) => {
                let name = run.strip_prefix("run=").unwrap_or(&run).to_owned();
                let forgot = cancellable(move |control| forget(&archive, &name, &reason, control))?;
                json.say(|| &forgot, || forget_message(&forgot))
            }
            ArchiveAction::Repair(arguments) => {
                let (data, mode) = (self.folders.data(project), arguments.mode());
                arguments.say(&cancellable(move |control| repair(&archive, &data, mode, control))?)
            }
            ArchiveAction::Migrate(arguments) => {
                let options = arguments.options(&self.folders, project);
                let migration = cancellable(move |control| {
                    let control = Control { observer: Some(progress::observer()), ..control.clone() };
                    migrate(&options, &control)
                })?;
                say(&arguments.outcome(&migration, "bellwether archive migrate"))
            }
        }
    }
}

/// A line for each removed folder, and a total.
fn removal_lines(removals: &[Removal], verb: &str) -> String {
    let line = |removal: &Removal| {
        let Removal { folder, pack, bytes: size } = removal;
        format!("{verb} `{folder}` ({}), packed in `{pack}`\n", bytes(*size))
    };
    let mut text: String = removals.iter().map(line).collect();
    let size = bytes(removals.iter().map(|removal| removal.bytes).sum());
    text.push_str(&match removals.len() {
        0 => "nothing to prune\n".to_owned(),
        1 => format!("{verb} 1 folder, {size}\n"),
        count => format!("{verb} {} folders, {size}\n", group_digits(count as u64)),
    });
    text
}

fn forget_message(Forgot { run, reason, is_new, .. }: &Forgot) -> String {
    let reason = escape(reason);
    match is_new {
        true => format!(
            "run `{run}` is forgotten: {reason}\nthe next run leaves it out, and sends the note to the store; so does \
             `bellwether store push`\n"
        ),
        false => format!("run `{run}` is forgotten already: {reason}\n"),
    }
}
