//! `bellwether archive`: packs runs, prunes packed ones, forgets bad ones, and repairs damage.

use bellwether::archive::{ForgetReason, Removal, Seal};
use bellwether::disk::links;
use bellwether::plan::ServiceIdentity;
use bellwether::project::Project;
use bellwether::run::{self, Forgot, ForgotRun, PruneMode, compact, forget, prune};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of};
use schemars::JsonSchema;
use serde::Serialize;

use super::cancellable;
use super::document::AsJson;
use super::folders::Folders;
use super::outcome::Result;
use super::repair::{self, RepairArguments};

/// Pack the runs of an archive into fewer folders, remove packed runs, take bad runs back, and repair damage.
#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    #[command(subcommand)]
    action: ArchiveAction,

    #[command(flatten)]
    json: AsJson,

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
    /// Take bad runs back: no command counts them any more.
    ///
    /// A run stays, beside a note that says why. The note is sent to the store and fetched from it like a run, so that
    /// every machine leaves the run out, also as of instants before the note; whatever leaves it out says so.
    Forget(Forget),
    /// Set damaged runs, packs and versions aside, and make again what the others can make.
    ///
    /// Nothing is removed: they are moved to the hidden folder `.damaged` beside them, so that they block no command. A
    /// run that no intact pack has either is then missing, until `bellwether store repair` or a backup restores it.
    Repair(RepairArguments),
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether archive forget 20261120T213000Z-7f3a --reason \"wrong clock\"
      leave this run out from now on")]
struct Forget {
    /// The names of the runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    /// Why, in a line: it is shown wherever the runs are left out.
    #[arg(long, value_name = "TEXT")]
    reason: ForgetReason,
}

/// The packs that were made.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Compacted {
    packs: Vec<NewPack>,
}

/// A pack that was made.
#[derive(Debug, Serialize, JsonSchema)]
struct NewPack {
    /// Its name.
    pack: String,
    /// The service of its runs, or the folder of its claims.
    service: String,
    /// The number of its runs.
    runs: usize,
    /// Its size.
    bytes: u64,
}

/// The packed runs that were removed, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PackedRuns {
    /// Whether nothing was removed.
    dry_run: bool,
    removed: Vec<Removal>,
    /// The bytes that this frees.
    freed: u64,
}

impl Archive {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (archive, json) = (self.folders.archive(project), self.json);
        links::refuse_below(&self.folders.data(project), &archive)?;
        match self.action {
            ArchiveAction::Compact { keep } => {
                let packs = cancellable(move |control| compact(&archive, keep, control))?;
                let compacted = Compacted { packs: packs.iter().map(NewPack::of).collect() };
                json.say(|| &compacted, || compacted.in_words())
            }
            ArchiveAction::Prune { dry_run } => {
                let mode = if dry_run { PruneMode::List } else { PruneMode::Remove };
                let removed = cancellable(move |control| prune(&archive, mode, control))?;
                let freed = removed.iter().map(|removal| removal.bytes).sum();
                let runs = PackedRuns { dry_run, removed, freed };
                json.say(|| &runs, || runs.in_words())
            }
            ArchiveAction::Forget(Forget { runs, reason }) => {
                let name = |run: &String| run.strip_prefix("run=").unwrap_or(run).to_owned();
                let runs: Vec<String> = runs.iter().map(name).collect();
                let forgot = cancellable(move |control| forget(&archive, &runs, &reason, control))?;
                json.say(|| &forgot, || forget_message(&forgot))
            }
            ArchiveAction::Repair(arguments) => {
                let (data, mode) = (self.folders.data(project), arguments.mode());
                repair::say(json, &cancellable(move |control| run::repair(&archive, &data, mode, control))?)
            }
        }
    }
}

impl NewPack {
    fn of(pack: &Seal) -> Self {
        let (name, is_of_claims) = (&pack.service.name, pack.members.iter().any(|run| run.claimed.is_some()));
        Self {
            pack: pack.run.clone(),
            service: if is_of_claims { ServiceIdentity::claims_of(name) } else { name.clone() },
            runs: pack.members.len(),
            bytes: pack.bytes(),
        }
    }
}

impl Compacted {
    fn in_words(&self) -> String {
        let line = |NewPack { pack, service, runs, bytes: size }: &NewPack| {
            let (runs, size) = (count_of(*runs as u64, "run", "runs"), bytes(*size));
            format!("packed {runs} of {service} into `pack={pack}`, {size}\n")
        };
        if self.packs.is_empty() { "nothing to pack\n".to_owned() } else { self.packs.iter().map(line).collect() }
    }
}

impl PackedRuns {
    /// A line for each removed folder, and a total.
    fn in_words(&self) -> String {
        let verb = if self.dry_run { "would remove" } else { "removed" };
        let line = |Removal { folder, pack, bytes: size }: &Removal| {
            format!("{verb} `{folder}` ({}), packed in `{pack}`\n", bytes(*size))
        };
        let mut text: String = self.removed.iter().map(line).collect();
        text.push_str(&match self.removed.len() as u64 {
            0 => "nothing to prune\n".to_owned(),
            count => format!("{verb} {}, {}\n", count_of(count, "folder", "folders"), bytes(self.freed)),
        });
        text
    }
}

fn forget_message(Forgot { runs }: &Forgot) -> String {
    let told = runs.iter().map(|ForgotRun { run, reason, is_new, .. }| {
        let already = if *is_new { "" } else { " already" };
        format!("run `{run}` is forgotten{already}: {}\n", escape(reason))
    });
    let (these, notes) = if runs.len() == 1 { ("it", "the note") } else { ("them", "the notes") };
    let next =
        format!("the next run leaves {these} out, and sends {notes} to the store; so does `bellwether store push`\n");
    let is_new = runs.iter().any(|run| run.is_new);
    told.collect::<String>() + if is_new { &next } else { "" }
}
