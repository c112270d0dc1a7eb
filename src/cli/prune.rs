//! `bellwether prune`: removes old versions, packed runs and other leftovers.

use std::time::Duration;

use bellwether::disk::links;
use bellwether::error::Error;
use bellwether::plan::Days;
use bellwether::project::Project;
use bellwether::run::{Control, Prunable, PruneMode, PruneOptions, kept_versions};
use bellwether::text::human::{bytes, count_of};
use bellwether::time::Clock;

use super::aligned::Aligned;
use super::document::AsJson;
use super::folders::Folders;
use super::interruptible;
use super::outcome::Result;
use super::typed::definition_value;

/// Remove old versions, packed runs, evidence and reports.
///
/// Versions: those beyond the newest `keep` of their definition, unless `latest` or another link points to them. Runs:
/// folders whose rows a pack has held for a day, once that is verified, and interrupted runs that can no longer be
/// resumed. Evidence and reports: those older than `--older-than`. Leftovers of killed processes: after a day. Ad hoc
/// builds stay, and so does every row of the archive. It is safe while runs are in progress.
#[derive(Debug, clap::Args)]
pub(super) struct Prune {
    /// Print what would be removed without removing it.
    #[arg(long)]
    dry_run: bool,

    /// The age above which evidence and reports are removed, in days.
    #[arg(long, value_name = "DAYS", default_value = "90d", value_parser = age, env = "BELLWETHER_PRUNE_OLDER_THAN")]
    older_than: Days,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

impl Prune {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (data, archive) = (self.folders.data(project), self.folders.archive(project));
        links::refuse_below(&data, &archive)?;
        let options = PruneOptions {
            data,
            archive,
            keep: kept_versions(&project.definitions())?,
            older_than: Duration::from_secs(u64::from(self.older_than.count().unsigned_abs()) * 24 * 60 * 60),
            clock: Clock::System,
        };
        let mode = if self.dry_run { PruneMode::List } else { PruneMode::Remove };
        let (prunable, result) = interruptible(async |stop| {
            let work = move || {
                let mut prunable = Prunable::of(options)?;
                let control = Control { stop, ..Control::default() };
                let result = if mode == PruneMode::List { Ok(()) } else { prunable.remove(&control) };
                Ok::<_, Error>((prunable, result))
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::worker(panic)))
        })?;
        let was_nothing_removed = result.is_err() && prunable.all.is_empty();
        let text = || if was_nothing_removed { "nothing was removed\n".to_owned() } else { describe(&prunable, mode) };
        self.json.say(|| &prunable, text)?;
        Ok(result?)
    }
}

/// A number of days that no run or build takes.
fn age(text: &str) -> Result<Days, String> {
    match definition_value::<Days>(text)? {
        days if days.count() < 1 => Err("use at least `1d`: younger files may be in use".to_owned()),
        days => Ok(days),
    }
}

fn describe(prunable: &Prunable, mode: PruneMode) -> String {
    let mut text = String::new();
    let (removed, freed) = match mode {
        PruneMode::List => ("would remove", "would free"),
        PruneMode::Remove => ("removed", "freed"),
    };
    if !prunable.all.is_empty() {
        let mut table = Aligned::new(2, [removed, "", "size"]);
        for pruned in &prunable.all {
            table.row([pruned.kind.in_words().to_owned(), pruned.path.display().to_string(), bytes(pruned.bytes)]);
        }
        text.push_str(&format!("{table}\n"));
    }
    prunable.kept.iter().for_each(|kept| text.push_str(&format!("{kept}\n")));
    let (count, size) = (prunable.all.len() as u64, bytes(prunable.freed));
    match count {
        0 => text.push_str("nothing to prune\n"),
        _ => text.push_str(&format!("{freed} {size} in {}\n", count_of(count, "place", "places"))),
    }
    text
}
