//! `bellwether store`: what is sent to an object store and fetched from it.

use std::path::Path;

use bellwether::definition;
use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::plan::{Plan, StoreUrl};
use bellwether::project::Project;
use bellwether::run::{Control, FetchItem, RemoteStore, StoreAccess, TransferCounts, store_of, store_of_environment};
use bellwether::text::human::{bytes, count_of};

use super::document::AsJson;
use super::folders::Folders;
use super::help::COMMON;
use super::outcome::{Failure, Result};
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

/// The store of a command that is about this machine or about a store.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct StoreSide {
    /// The object store instead of this machine: its address, or a definition with a `[store]`.
    ///
    /// Without a value, it is that of `BELLWETHER_STORE`, or of the definitions if they have one alone.
    #[arg(long = "store", value_name = "DEFINITION|URL", num_args = 0..=1)]
    store: Option<Option<String>>,
}

impl StoreSide {
    /// The address of the store; `None` if this machine is meant.
    pub(super) fn url(&self, project: &Project) -> Result<Option<StoreUrl>> {
        let named = match &self.store {
            None => return Ok(None),
            Some(Some(named)) => named,
            Some(None) => {
                if let Some(url) = store_of_environment()? {
                    return Ok(Some(url));
                }
                let mut stores = stores_of(project)?;
                return match stores.len() {
                    0 => Err(no_store()),
                    1 => Ok(stores.pop()),
                    count => {
                        let what = format!("the definitions have {count} stores");
                        Err(usage(&what, "name one: `--store DEFINITION`, or its address"))
                    }
                };
            }
        };
        match named.contains("://") {
            true => named.parse().map(Some).map_err(|refusal: String| {
                usage(&format!("invalid value `{named}` for `--store`"), &refusal.replace('\n', "; "))
            }),
            false => {
                let plan = plan_of(Some(named), project)?;
                Ok(Some(store_of(None, Some(&plan))?.ok_or_else(no_store)?))
            }
        }
    }
}

/// The store that `BELLWETHER_STORE` names, or else those of the valid definitions of a project, each once.
pub(super) fn stores_of(project: &Project) -> Result<Vec<StoreUrl>> {
    if let Some(store) = store_of_environment()? {
        return Ok(vec![store]);
    }
    let mut stores: Vec<StoreUrl> = Vec::new();
    for name in definition::names(&project.definitions())? {
        let Ok(plan) = Plan::find(&name, project) else { continue };
        if let Some(store) = plan.trusted_store()?.filter(|store| !stores.contains(store)) {
            stores.push(store.clone());
        }
    }
    Ok(stores)
}

/// Fill and read the object store that keeps the archive and the datasets.
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
    /// Send the runs, packs and versions that only this machine has. Clears interrupted uploads that are older than a
    /// day.
    Push(StoreDefinition),
    /// Fetch the runs that only the store has, and the latest version of each dataset; or of one dataset, or one older
    /// version.
    Pull(Pull),
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

/// What a pull fetches.
enum Pulled {
    All,
    Dataset(String),
    Version(String, String),
}

impl Store {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let of = |of: &StoreDefinition| Ok((self.url(of.definition.as_deref(), project)?, Pulled::All));
        let (url, pulled) = match &self.action {
            StoreAction::Push(definition) => of(definition),
            StoreAction::Pull(pull) => self.what_to_fetch(pull.wanted.as_deref(), project),
        }?;
        let (archive, data) = (self.folders.archive(project), self.folders.data(project));
        let (action, json) = (self.action, self.json);
        interruptible(async |stop| {
            let control = Control { observer: Some(progress::observer()), stop };
            let access = match &action {
                StoreAction::Push(_) => StoreAccess::Write,
                StoreAction::Pull(_) => StoreAccess::Read,
            };
            let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
            match action {
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
    let TransferCounts { folders, versions, bytes: size, cleared, notes } = moved;
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
    let mut text = match parts.len() {
        0 => "already up to date\n".to_owned(),
        _ => format!("{verb} {}, {}\n", parts.join(" and "), bytes(size)),
    };
    if cleared > 0 {
        text.push_str(&format!("cleared {}\n", count_of(cleared as u64, "interrupted upload", "interrupted uploads")));
    }
    text
}
