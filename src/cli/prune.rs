//! `bellwether prune`: removes old versions, packed runs and other leftovers, here or in a store, or the versions that are
//! named.

use std::path::Path;
use std::time::Duration;

use bellwether::disk::footprint::Footprint;
use bellwether::disk::links;
use bellwether::error::{Error, ErrorKind};
use bellwether::export::{self, ListedVersion, VersionKind};
use bellwether::plan::Days;
use bellwether::project::Project;
use bellwether::run::{
    Prunable, PruneMode, PruneOptions, Pruned, PrunedKind, RemoteStore, StoreAccess, StorePruned, StorePrunedFolder,
    StorePrunedKind, kept_versions,
};
use bellwether::text::human::{bytes, count_of};
use bellwether::time::Clock;

use super::options::{FolderOptions, Folders, StoreSide, definition_value};
use super::progress::{self, Form};
use super::talk::{Aligned, AsJson, Result};
use super::{cancellable, interruptible};

/// Remove old versions, packed runs, evidence and reports.
///
/// Versions: those beyond the newest `keep` of their definition, unless `latest` or another link points to them. Runs:
/// folders whose rows a pack has held for a day, once that is verified, and interrupted runs that can no longer be
/// resumed. Evidence and reports: those older than `--older-than`. Leftovers of killed processes: after a day. Ad hoc
/// builds stay, and so does every row of the archive. It is safe while runs are in progress.
///
/// In a store: versions beyond the newest `keep` of their definition here, and older than the latest; runs whose rows a
/// pack holds, once both are fetched and compared; interrupted uploads. Each a day after it was replaced or interrupted;
/// other machines may read and write meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether prune demo/20261120T213000Z-7f3a
      remove one version
  bellwether prune --store --dry-run
      list what newer versions and packs have replaced in the store")]
pub(super) struct Prune {
    /// Remove these versions instead, which neither `latest` nor another link points to: NAME/VERSION, or
    /// NAME/builds/VERSION for an ad hoc build.
    #[arg(value_name = "NAME/VERSION", conflicts_with_all = ["store", "older_than"])]
    versions: Vec<String>,

    #[command(flatten)]
    side: StoreSide,

    /// Print what would be removed without removing it.
    #[arg(long)]
    dry_run: bool,

    /// The age above which evidence and reports are removed, in days.
    #[arg(long, value_name = "DAYS", default_value = "90d", value_parser = age, env = "BELLWETHER_PRUNE_OLDER_THAN")]
    older_than: Days,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Prune {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let mode = if self.dry_run { PruneMode::List } else { PruneMode::Remove };
        let Folders { definitions, data, archive } = self.folders.of_project(project);
        if let Some(url) = self.side.url(project)? {
            let access = if self.dry_run { StoreAccess::Read } else { StoreAccess::Write };
            return interruptible(progress::observer(Form::Text), async |control| {
                let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
                let pruned = store.prune(&kept_versions(&definitions)?, mode).await?;
                self.json.say(|| &pruned, || store_lines(&pruned))
            });
        }
        if !self.versions.is_empty() {
            return self.remove_versions(&data, mode);
        }
        links::refuse_below(&data, &archive)?;
        let options = PruneOptions {
            data,
            archive,
            keep: kept_versions(&definitions)?,
            older_than: Duration::from_secs(u64::from(self.older_than.count().unsigned_abs()) * 24 * 60 * 60),
            clock: Clock::System,
        };
        let (prunable, result) = cancellable(move |control| {
            let mut prunable = Prunable::of(&options)?;
            let result = if mode == PruneMode::List { Ok(()) } else { prunable.remove(&options, control) };
            Ok((prunable, result))
        })?;
        self.say(&prunable, result)
    }

    fn say(&self, prunable: &Prunable, result: Result<(), Error>) -> Result<()> {
        let was_nothing_removed = result.is_err() && prunable.all.is_empty();
        let text = || if was_nothing_removed { "nothing was removed\n".to_owned() } else { lines(prunable) };
        self.json.say(|| prunable, text)?;
        Ok(result?)
    }

    /// Removes the versions that were named: all are checked before the first is removed.
    fn remove_versions(&self, data: &Path, mode: PruneMode) -> Result<()> {
        let published = export::published_versions(&data.join("datasets"))?;
        let mut found: Vec<&ListedVersion> = Vec::new();
        for name in &self.versions {
            let version = published.iter().find(|version| version.name == *name);
            let version = version.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("no version `{name}`"))
                    .with_hint("`bellwether list datasets` lists the versions")
            })?;
            let pin = version.pins.first().map(String::as_str);
            let kept_by = if version.kind == VersionKind::Latest { Some("latest") } else { pin };
            if let Some(link) = kept_by {
                let hint = match link {
                    "latest" => "publish another version first, or remove the folder of the dataset yourself",
                    _ => "remove the link first",
                };
                let what = format!("`{name}` is in use: the link `{link}` points to it");
                return Err(Error::new(ErrorKind::Storage, what).with_hint(hint).into());
            }
            if !found.iter().any(|other| other.name == *name) {
                found.push(version);
            }
        }
        let mut pruned = Prunable { dry_run: mode == PruneMode::List, all: Vec::new(), kept: Vec::new(), freed: 0 };
        for version in found {
            // Versions may share files with others.
            let footprint = Footprint::of(&version.path);
            if mode == PruneMode::Remove
                && let Err(error) = export::remove(&version.path)
            {
                return self.say(&pruned, Err(error));
            }
            pruned.freed += footprint.freed_bytes();
            pruned.all.push(Pruned { kind: PrunedKind::Version, path: version.path.clone(), bytes: version.bytes });
        }
        self.say(&pruned, Ok(()))
    }
}

/// A number of days that no run or build takes.
fn age(text: &str) -> Result<Days, String> {
    match definition_value::<Days>(text)? {
        days if days.count() < 1 => Err("use at least `1d`: younger files may be in use".to_owned()),
        days => Ok(days),
    }
}

fn lines(Prunable { dry_run, all, kept, freed }: &Prunable) -> String {
    let rows = all.iter().map(|one| [one.kind.in_words().to_owned(), one.path.display().to_string(), bytes(one.bytes)]);
    describe(*dry_run, rows.collect(), kept, *freed, &count_of(all.len() as u64, "place", "places"))
}

fn store_lines(StorePruned { dry_run, removed, kept, freed }: &StorePruned) -> String {
    let row = |StorePrunedFolder { kind, place, bytes: size, .. }: &StorePrunedFolder| {
        let kind = match kind {
            StorePrunedKind::Version => "version",
            StorePrunedKind::PackedRun => "packed run",
            StorePrunedKind::Upload => "interrupted upload",
        };
        [kind.to_owned(), place.clone(), bytes(*size)]
    };
    let objects: usize = removed.iter().map(|folder| folder.objects).sum();
    let objects = count_of(objects as u64, "object", "objects");
    describe(*dry_run, removed.iter().map(row).collect(), kept, *freed, &objects)
}

/// What was removed, what stays although rules match it, and the sum.
fn describe(is_dry_run: bool, rows: Vec<[String; 3]>, kept: &[String], freed: u64, count: &str) -> String {
    let (removed, frees) = if is_dry_run { ("would remove", "would free") } else { ("removed", "freed") };
    let mut text = String::new();
    let is_empty = rows.is_empty();
    if !is_empty {
        let mut table = Aligned::new(2, [removed, "", "size"]);
        rows.into_iter().for_each(|row| table.row(row));
        text.push_str(&format!("{table}\n"));
    }
    kept.iter().for_each(|kept| text.push_str(&format!("{kept}\n")));
    text + &if is_empty { "nothing to prune\n".to_owned() } else { format!("{frees} {} in {count}\n", bytes(freed)) }
}
