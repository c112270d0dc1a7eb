//! `bellwether store`: what an object store has, what is sent to it and fetched from it, and how it is mended and
//! pruned.

use std::path::Path;

use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::plan::{Plan, StoreUrl};
use bellwether::project::Project;
use bellwether::run::{
    Control, DatasetStatus, FetchItem, PruneMode, RemoteStore, RepairMode, StoreAccess, StorePruned, StorePrunedFolder,
    StorePrunedKind, StoreStatus, StoreVerified, TransferCounts, VerifyScope, kept_versions, store_of,
};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, group_digits};

use super::aligned::Aligned;
use super::document::AsJson;
use super::folders::Folders;
use super::help::COMMON;
use super::outcome::{Failure, Result};
use super::repair::{self, RepairArguments};
use super::typed::{definition_value, plan_of, usage};
use super::{interruptible, progress};

/// The store to use.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct StoreOption {
    /// The object store: `s3://bucket/prefix`, `gs://…`, `az://…` or `file:///…`.
    ///
    /// It keeps the archive and the datasets. Default: `BELLWETHER_STORE`, or `url` in `[store]` of the definition.
    #[arg(long = "store", value_name = "URL", value_parser = definition_value::<StoreUrl>, global = true, help_heading = COMMON)]
    store: Option<StoreUrl>,
}

impl StoreOption {
    /// The address from the command line or the environment.
    pub(super) fn url(&self) -> Result<Option<StoreUrl>> {
        self.url_or_own(None)
    }

    /// The address from the command line or the environment, or else that of a definition.
    fn url_or_own(&self, plan: Option<&Plan>) -> Result<Option<StoreUrl>> {
        Ok(store_of(self.store.as_ref(), plan)?)
    }
}

/// Where what is fetched goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalFolders<'a> {
    pub(super) archive: &'a Path,
    pub(super) data: &'a Path,
}

impl StoreOption {
    /// Fetches what this machine does not have of what a command reads, if there is a store.
    pub(super) fn fetch(&self, plan: Option<&Plan>, local: LocalFolders<'_>, items: &[FetchItem<'_>]) -> Result<()> {
        let Some(url) = self.url_or_own(plan)?.filter(|_| !items.is_empty()) else { return Ok(()) };
        Ok(interruptible(async |stop| {
            let control = Control { observer: Some(progress::observer()), stop };
            let store = RemoteStore::open(&url, StoreAccess::Read, local.archive, local.data, &control)?;
            store.pull_items(items).await
        })?)
    }

    /// Fetches a version of a dataset, `NAME/VERSION` or `NAME` for the latest, if there is a store: the one of its
    /// definition, unless another is given.
    pub(super) fn fetch_version(&self, given: &str, data: &Path, project: &Project) -> Result<()> {
        let (dataset, item) = match given.split_once('/') {
            Some((dataset, version)) if is_unique(version) => (dataset, FetchItem::NamedVersion(dataset, version)),
            Some(_) => return Ok(()),
            None => (given, FetchItem::Version(given)),
        };
        if !is_dataset(dataset) {
            return Ok(());
        }
        let local = LocalFolders { archive: &data.join("archive"), data };
        self.fetch(definition_of(dataset, project).as_ref(), local, &[item])
    }
}

/// The definition of a dataset, if it has one here.
pub(super) fn definition_of(dataset: &str, project: &Project) -> Option<Plan> {
    Plan::find(dataset, project).ok()
}

/// Fill, read and verify the store of the archive and the datasets.
#[derive(Debug, clap::Args)]
pub(super) struct Store {
    #[command(subcommand)]
    action: StoreAction,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

#[derive(Debug, clap::Subcommand)]
enum StoreAction {
    /// Show which runs and versions are on this machine, in the store, or in both.
    Status(StoreDefinition),
    /// Send the runs, packs and versions that only this machine has. Clears interrupted uploads that are older than a
    /// day.
    Push(StoreDefinition),
    /// Fetch the runs that only the store has, and the latest version of each dataset; or of one dataset, or one older
    /// version.
    Pull(Pull),
    /// Read everything in the store, and verify every size and checksum.
    Verify(Verify),
    /// Mend what is damaged or missing in the store or on this machine with the copy of the other.
    ///
    /// Reads everything in both. What neither has an intact copy of is moved out of the way, never removed: below
    /// `damaged/` in the store, to `.damaged` on this machine. `latest.json` is made again from the versions.
    Repair(RepairStore),
    /// Remove what newer versions and packs in the store replaced a day ago.
    ///
    /// Versions: those beyond the newest `keep` of their definition here, and older than the latest. Runs: folders whose
    /// rows a pack holds, once both are fetched and compared. Interrupted uploads: after a day. No row of the archive is
    /// lost, and other machines may read and write meanwhile.
    Prune(PruneStore),
}

/// The definition whose store is used.
#[derive(Debug, clap::Args)]
struct StoreDefinition {
    /// A definition with a `[store]`: its name in `pipelines/`, or a path.
    definition: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Pull {
    /// A dataset, whose latest version is fetched, or `NAME/VERSION` for an older one. The store is that of its definition
    /// if no other is named.
    #[arg(value_name = "NAME[/VERSION]")]
    wanted: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Verify {
    #[command(flatten)]
    of: StoreDefinition,

    /// Read only what was made since this run started, by the names of runs, packs and versions. The rest must be there.
    #[arg(long, value_name = "RUN", value_parser = run_name, conflicts_with = "sizes")]
    since: Option<String>,

    /// Compare the sizes that the store lists, and read nothing that this machine has the record of.
    #[arg(long)]
    sizes: bool,
}

/// The name of a run.
fn run_name(text: &str) -> std::result::Result<String, String> {
    let name = text.strip_prefix("run=").unwrap_or(text);
    if is_unique(name) { Ok(name.to_owned()) } else { Err("a run is named like `20261120T213000Z-7f3a`".to_owned()) }
}

impl Verify {
    fn scope(&self) -> VerifyScope {
        match (&self.since, self.sizes) {
            (Some(run), _) => VerifyScope::Since(run.clone()),
            (None, true) => VerifyScope::Sizes,
            (None, false) => VerifyScope::All,
        }
    }
}

/// What a pull fetches.
enum Pulled {
    All,
    Dataset(String),
    Version(String, String),
}

#[derive(Debug, clap::Args)]
struct RepairStore {
    #[command(flatten)]
    of: StoreDefinition,

    #[command(flatten)]
    arguments: RepairArguments,
}

#[derive(Debug, clap::Args)]
struct PruneStore {
    #[command(flatten)]
    of: StoreDefinition,

    /// Print what would be removed without removing it.
    #[arg(long)]
    dry_run: bool,
}

impl PruneStore {
    fn mode(&self) -> PruneMode {
        if self.dry_run { PruneMode::List } else { PruneMode::Remove }
    }
}

impl Store {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let of = |of: &StoreDefinition| Ok((self.url(of.definition.as_deref(), project)?, Pulled::All));
        let (url, pulled) = match &self.action {
            StoreAction::Status(definition) | StoreAction::Push(definition) => of(definition),
            StoreAction::Repair(repair) => of(&repair.of),
            StoreAction::Verify(verify) => of(&verify.of),
            StoreAction::Prune(prune) => of(&prune.of),
            StoreAction::Pull(pull) => self.what_to_fetch(pull.wanted.as_deref(), project),
        }?;
        let (archive, data) = (self.folders.archive(project), self.folders.data(project));
        let (action, json) = (self.action, self.json);
        interruptible(async |stop| {
            let control = Control { observer: Some(progress::observer()), stop };
            let access = match &action {
                StoreAction::Push(_) => StoreAccess::Write,
                StoreAction::Repair(repair) if repair.arguments.mode() == RepairMode::Repair => StoreAccess::Write,
                StoreAction::Prune(prune) if prune.mode() == PruneMode::Remove => StoreAccess::Write,
                StoreAction::Status(_)
                | StoreAction::Pull(_)
                | StoreAction::Verify(_)
                | StoreAction::Repair(_)
                | StoreAction::Prune(_) => StoreAccess::Read,
            };
            let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
            match action {
                StoreAction::Status(_) => {
                    let status = store.status().await?;
                    json.say(|| &status, || describe(&status))
                }
                StoreAction::Push(_) => {
                    let sent = store.push().await?;
                    json.say(|| sent, || transfer_line("sent", sent))
                }
                StoreAction::Pull(_) => {
                    let fetched = match &pulled {
                        Pulled::All => store.pull().await?,
                        Pulled::Dataset(name) => store.pull_dataset(name).await?,
                        Pulled::Version(name, version) => store.pull_version(name, version).await?,
                    };
                    json.say(|| fetched, || transfer_line("fetched", fetched))
                }
                StoreAction::Verify(verify) => report_verified(json, &store.verify(&verify.scope()).await?),
                StoreAction::Repair(RepairStore { arguments, .. }) => {
                    repair::say(json, &store.repair(arguments.mode()).await?)
                }
                StoreAction::Prune(prune) => {
                    let pruned = store.prune(&kept_versions(&project.definitions())?, prune.mode()).await?;
                    json.say(|| &pruned, || prune_lines(&pruned))
                }
            }
        })
    }

    /// What to fetch, and from where: everything, one dataset, or one version. A dataset needs no definition if the store is
    /// named.
    fn what_to_fetch(&self, wanted: Option<&str>, project: &Project) -> Result<(StoreUrl, Pulled)> {
        let of_version = wanted.and_then(|wanted| wanted.split_once('/'));
        let of_version = of_version.filter(|(name, version)| is_dataset(name) && is_unique(version));
        let definition = of_version.map(|(name, _)| name).or(wanted);
        let plan = match definition {
            Some(name) if is_dataset(name) && self.store.url()?.is_some() => definition_of(name, project),
            Some(name) => Some(plan_of(Some(name), project)?),
            None => None,
        };
        let url = self.store.url_or_own(plan.as_ref())?.ok_or_else(no_store)?;
        let pulled = match (of_version, definition) {
            (Some((name, version)), _) => Pulled::Version(name.to_owned(), version.to_owned()),
            (None, Some(name)) => Pulled::Dataset(plan.map_or_else(|| name.to_owned(), |plan| plan.name)),
            (None, None) => Pulled::All,
        };
        Ok((url, pulled))
    }

    fn url(&self, definition: Option<&str>, project: &Project) -> Result<StoreUrl> {
        let plan = definition.map(|name| plan_of(Some(name), project)).transpose()?;
        self.store.url_or_own(plan.as_ref())?.ok_or_else(no_store)
    }
}

fn no_store() -> Failure {
    usage("no store", "name one with `--store`, `BELLWETHER_STORE`, or a definition that has a `[store]`")
}

fn transfer_line(verb: &str, moved: TransferCounts) -> String {
    let TransferCounts { folders, versions, bytes: size, cleared, mended, notes } = moved;
    let mut parts = Vec::new();
    if folders > 0 {
        parts.push(count_of(folders as u64, "run or pack", "runs and packs"));
    }
    if versions > 0 {
        parts.push(count_of(versions as u64, "version", "versions"));
    }
    if notes > 0 {
        parts.push(count_of(notes as u64, "note on a forgotten run", "notes on forgotten runs"));
    }
    if mended > 0 {
        parts.push(count_of(mended as u64, "damaged file", "damaged files"));
    }
    let mut text = match parts.len() {
        0 => "already up to date\n".to_owned(),
        _ => format!("{verb} {}, {}\n", parts.join(" and "), bytes(size)),
    };
    if cleared > 0 {
        text.push_str(&format!("cleared {}\n", count_of(cleared as u64, "interrupted upload", "interrupted uploads")));
    }
    text
}

fn prune_lines(pruned: &StorePruned) -> String {
    let StorePruned { dry_run, removed, kept, freed } = pruned;
    let mut text = String::new();
    if !removed.is_empty() {
        let mut table = Aligned::new(2, [if *dry_run { "would remove" } else { "removed" }, "", "size"]);
        for StorePrunedFolder { kind, place, bytes: size, .. } in removed {
            let kind = match kind {
                StorePrunedKind::Version => "version",
                StorePrunedKind::PackedRun => "packed run",
                StorePrunedKind::Upload => "interrupted upload",
            };
            table.row([kind.to_owned(), escape(place).into_owned(), bytes(*size)]);
        }
        text.push_str(&format!("{table}\n"));
    }
    kept.iter().for_each(|kept| text.push_str(&format!("{kept}\n")));
    let objects: usize = removed.iter().map(|folder| folder.objects).sum();
    let objects = count_of(objects as u64, "object", "objects");
    match (removed.len(), dry_run) {
        (0, _) => text.push_str("nothing to prune\n"),
        (_, true) => text.push_str(&format!("would free {} in {objects}\n", bytes(*freed))),
        (_, false) => text.push_str(&format!("freed {} in {objects}\n", bytes(*freed))),
    }
    text
}

fn describe(status: &StoreStatus) -> String {
    let StoreStatus { url, runs, only_here, only_there, unfinished, objects, bytes: size, datasets } = status;
    let mut text = format!("store       {}\n", escape(url));
    text.push_str(&format!("objects     {}, {}\n", group_digits(*objects as u64), bytes(*size)));
    text.push_str(&format!("runs        {} in both\n", group_digits(*runs as u64)));
    let mut list = |what: &str, names: &[String], hint: &str| {
        if !names.is_empty() {
            let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
            let rest = names.len() - shown.len();
            let rest = if rest > 0 { format!(" and {} more", group_digits(rest as u64)) } else { String::new() };
            text.push_str(&format!("{what:11} {}{rest}{hint}\n", escape(&shown.join(", "))));
        }
    };
    list("only here", only_here, "; `bellwether store push` sends them");
    list("only there", only_there, "; `bellwether store pull` fetches them");
    list("unfinished", unfinished, "; uploads in progress, or interrupted");
    for DatasetStatus { name, latest_here, latest_there, versions, only_here, only_there } in datasets {
        let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "none".to_owned());
        let latest = format!("latest {} here, {} there", version(latest_here), version(latest_there));
        let counts = [*versions, only_here.len(), only_there.len()].map(|count| group_digits(count as u64));
        let [both, here, there] = counts;
        let line =
            format!("dataset     {name}: {latest}; versions: {both} in both, {here} only here, {there} only there");
        text.push_str(&format!("{}\n", escape(&line)));
    }
    text
}

fn report_verified(json: AsJson, verified: &StoreVerified) -> Result<()> {
    json.say(|| verified, || verification_lines(verified))?;
    match verified.faults.len() {
        0 => Ok(()),
        count => Err(Failure::Unverified { count }),
    }
}

fn verification_lines(verified: &StoreVerified) -> String {
    let faults = verified.faults.iter().map(|fault| format!("{}\n", escape(fault)));
    let unfinished = verified.unfinished.iter();
    let unfinished =
        unfinished.map(|folder| format!("note: `{}` is an upload in progress, or was interrupted\n", escape(folder)));
    let mut text: String = faults.chain(unfinished).collect();
    if verified.faults.is_empty() {
        text.push_str(&format!("verified {}\n", count_of(verified.files as u64, "file", "files")));
    }
    text
}
