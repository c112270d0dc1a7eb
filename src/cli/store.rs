//! `bellwether store`: what is sent to an object store and fetched from it.

use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{RemoteStore, StoreAccess, TransferCounts};
use bellwether::text::human::{bytes, count_of};

use super::interruptible;
use super::options::{FolderOptions, Folders, StoreOption, named_plan, no_store, plan_of};
use super::progress::{self, Form};
use super::talk::{AsJson, Result};

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
    folders: FolderOptions,
}

#[derive(Debug, clap::Subcommand)]
enum StoreAction {
    /// Send the runs, packs and versions that only this machine has. Clears interrupted uploads that are older than a
    /// day.
    Push {
        /// A definition with a `[store]`: its name in `pipelines/`, or a path.
        definition: Option<String>,
    },
    /// Fetch the runs that only the store has, and the latest version of each dataset; or of one dataset, or one older
    /// version.
    Pull {
        /// A dataset, whose latest version is fetched, or `NAME/VERSION` for an older one. The store is that of its definition
        /// if no other is named.
        #[arg(value_name = "NAME[/VERSION]")]
        wanted: Option<String>,
    },
}

impl Store {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let Folders { archive, data, .. } = self.folders.of_project(project);
        let (json, observer) = (self.json, progress::observer(Form::Text));
        match &self.action {
            StoreAction::Push { definition } => {
                let plan = named_plan(definition.as_deref(), project)?;
                let url = self.store.url(plan.as_ref())?.ok_or_else(no_store)?;
                interruptible(observer, async |control| {
                    let sent = RemoteStore::open(&url, StoreAccess::Write, &archive, &data, &control)?.push().await?;
                    json.say(|| sent, || transfer_line("sent", sent))
                })
            }
            StoreAction::Pull { wanted } => {
                let wanted = wanted.as_deref();
                let of_version = wanted.and_then(|wanted| wanted.split_once('/'));
                let of_version = of_version.filter(|(name, version)| is_dataset(name) && is_unique(version));
                let definition = of_version.map(|(name, _)| name).or(wanted);
                // A dataset needs no definition if the store is named.
                let plan = match definition {
                    Some(name) if is_dataset(name) && self.store.url(None)?.is_some() => Plan::find(name, project).ok(),
                    Some(name) => Some(plan_of(Some(name), project)?),
                    None => None,
                };
                let url = self.store.url(plan.as_ref())?.ok_or_else(no_store)?;
                interruptible(observer, async |control| {
                    let store = RemoteStore::open(&url, StoreAccess::Read, &archive, &data, &control)?;
                    let fetched = match (of_version, definition) {
                        (Some((name, version)), _) => store.pull_version(name, version).await?,
                        (None, Some(name)) => {
                            store.pull_dataset(plan.as_ref().map_or(name, |plan| plan.name.as_str())).await?
                        }
                        (None, None) => store.pull().await?,
                    };
                    json.say(|| fetched, || transfer_line("fetched", fetched))
                })
            }
        }
    }
}

fn transfer_line(verb: &str, moved: TransferCounts) -> String {
    let TransferCounts { folders, versions, bytes: size, cleared, notes } = moved;
    let parts = [
        (folders, "run or pack", "runs and packs"),
        (versions, "version", "versions"),
        (notes, "note on a forgotten run", "notes on forgotten runs"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, one, many)| count_of(count as u64, one, many)).collect();
    let mut text = match parts.len() {
        0 => "already up to date\n".to_owned(),
        _ => format!("{verb} {}, {}\n", parts.join(" and "), bytes(size)),
    };
    if cleared > 0 {
        text.push_str(&format!("cleared {}\n", count_of(cleared as u64, "interrupted upload", "interrupted uploads")));
    }
    text
}
