//! `bellwether prune`: removes old versions, packed runs and other leftovers, here or in a store, or the versions that are
//! named.

use std::time::Duration;

use bellwether::disk::footprint::Footprint;
use bellwether::disk::links;
use bellwether::export::{self, ListedVersion, VersionKind};
use bellwether::plan::Days;
use bellwether::run::{
    Prunable, PruneMode, PruneOptions, Pruned, PrunedKind, RemoteStore, StoreAccess, StorePruned, StorePrunedKind,
    kept_versions,
};

use super::prelude::*;

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
            return interruptible(observer(Form::Text), async |control| {
                let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
                let pruned = store.prune(&kept_versions(&definitions)?, mode).await?;
                self.json.say(|| &pruned, || describe_store(&pruned))
            });
        }
        let (prunable, result) = if self.versions.is_empty() {
            links::refuse_below(&data, &archive)?;
            let older_than = Duration::from_secs(u64::from(self.older_than.count().unsigned_abs()) * 24 * 60 * 60);
            let keep = kept_versions(&definitions)?;
            let options = PruneOptions { data, archive, keep, older_than, clock: Clock::System };
            cancellable(move |control| {
                let mut prunable = Prunable::of(&options)?;
                let result = if mode == PruneMode::List { Ok(()) } else { prunable.remove(&options, control) };
                Ok((prunable, result))
            })?
        } else {
            self.remove_versions(&data)?
        };
        let was_nothing_removed = result.is_err() && prunable.all.is_empty();
        let text = || if was_nothing_removed { "nothing was removed\n".to_owned() } else { describe(&prunable) };
        self.json.say(|| &prunable, text)?;
        Ok(result?)
    }

    /// Removes the versions that were named: all are checked before the first is removed.
    fn remove_versions(&self, data: &Path) -> error::Result<(Prunable, error::Result<()>)> {
        let published = export::published_versions(&data.join("datasets"))?;
        let mut found: Vec<&ListedVersion> = Vec::new();
        for name in &self.versions {
            let version = published.iter().find(|version| version.name == *name).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("no version `{name}`"))
                    .with_hint("`bellwether list datasets` lists the versions")
            })?;
            let latest = (version.kind == VersionKind::Latest).then_some("latest");
            if let Some(link) = latest.or(version.pins.first().map(String::as_str)) {
                let hint = match link {
                    "latest" => "publish another version first, or remove the folder of the dataset yourself",
                    _ => "remove the link first",
                };
                let what = format!("`{name}` is in use: the link `{link}` points to it");
                return Err(Error::new(ErrorKind::Storage, what).with_hint(hint));
            }
            if !found.iter().any(|other| other.name == *name) {
                found.push(version);
            }
        }
        let mut pruned = Prunable { dry_run: self.dry_run, all: Vec::new(), kept: Vec::new(), freed: 0 };
        for ListedVersion { path, bytes, .. } in found {
            // Versions may share files with others.
            let footprint = Footprint::of(path);
            if !self.dry_run
                && let Err(error) = export::remove(path)
            {
                return Ok((pruned, Err(error)));
            }
            pruned.freed += footprint.freed_bytes();
            pruned.all.push(Pruned { kind: PrunedKind::Version, path: path.clone(), bytes: *bytes });
        }
        Ok((pruned, Ok(())))
    }
}

/// A number of days that no run or build takes.
fn age(text: &str) -> Result<Days, String> {
    match definition_value::<Days>(text)? {
        days if days.count() < 1 => Err("use at least `1d`: younger files may be in use".to_owned()),
        days => Ok(days),
    }
}

fn describe(Prunable { dry_run, all, kept, freed }: &Prunable) -> String {
    let rows = all.iter().map(|one| [one.kind.in_words().to_owned(), one.path.display().to_string(), bytes(one.bytes)]);
    lines(*dry_run, rows.collect(), kept, *freed, &count_of(all.len() as u64, "place", "places"))
}

fn describe_store(StorePruned { dry_run, removed, kept, freed }: &StorePruned) -> String {
    let (mut rows, mut objects) = (Vec::new(), 0);
    for folder in removed {
        let kind = match folder.kind {
            StorePrunedKind::Version => "version",
            StorePrunedKind::PackedRun => "packed run",
            StorePrunedKind::Upload => "interrupted upload",
        };
        rows.push([kind.to_owned(), folder.place.clone(), bytes(folder.bytes)]);
        objects += folder.objects as u64;
    }
    lines(*dry_run, rows, kept, *freed, &count_of(objects, "object", "objects"))
}

/// What was removed, what stays although rules match it, and the sum.
fn lines(is_dry_run: bool, rows: Vec<[String; 3]>, kept: &[String], freed: u64, count: &str) -> String {
    let (removed, frees) = if is_dry_run { ("would remove", "would free") } else { ("removed", "freed") };
    let mut text = String::new();
    let mut sum = "nothing to prune\n".to_owned();
    if !rows.is_empty() {
        let mut table = Aligned::new(2, [removed, "", "size"]);
        rows.into_iter().for_each(|row| table.row(row));
        text = format!("{table}\n");
        sum = format!("{frees} {} in {count}\n", bytes(freed));
    }
    kept.iter().for_each(|kept| text += &format!("{kept}\n"));
    text + &sum
}
