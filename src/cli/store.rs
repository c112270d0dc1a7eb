//! `bellwether store`: what is sent to an object store and fetched from it.

use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::plan::Plan;
use bellwether::run::{RemoteStore, StoreAccess, TransferCounts};

use super::prelude::*;

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
        // What is named, and its version if that is named as well.
        let (name, version) = match &self.action {
            StoreAction::Push { definition } => (definition.as_deref(), None),
            StoreAction::Pull { wanted } => match wanted.as_deref().and_then(|wanted| wanted.split_once('/')) {
                Some((name, version)) if is_dataset(name) && is_unique(version) => (Some(name), Some(version)),
                _ => (wanted.as_deref(), None),
            },
        };
        let is_pull = matches!(self.action, StoreAction::Pull { .. });
        let plan = match name {
            // A dataset needs no definition if the store is named.
            Some(name) if is_pull && is_dataset(name) && self.store.url(None)?.is_some() => {
                Plan::find(name, project).ok()
            }
            name => named_plan(name, project)?,
        };
        let url = self.store.url(plan.as_ref())?.ok_or_else(no_store)?;
        interruptible(observer(Form::Text), async |control| {
            let (verb, access) = if is_pull { ("fetched", StoreAccess::Read) } else { ("sent", StoreAccess::Write) };
            let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
            let moved = match (name, version) {
                _ if !is_pull => store.push().await?,
                (Some(name), Some(version)) => store.pull_version(name, version).await?,
                (Some(name), None) => store.pull_dataset(plan.as_ref().map_or(name, |plan| &plan.name)).await?,
                (None, _) => store.pull().await?,
            };
            self.json.say(|| moved, || describe(verb, moved))
        })
    }
}

fn describe(verb: &str, moved: TransferCounts) -> String {
    let mut parts = Vec::new();
    for (count, one, many) in [
        (moved.folders, "run or pack", "runs and packs"),
        (moved.versions, "version", "versions"),
        (moved.notes, "note on a forgotten run", "notes on forgotten runs"),
    ] {
        if count > 0 {
            parts.push(count_of(count as u64, one, many));
        }
    }
    let mut text = match parts.is_empty() {
        true => "already up to date\n".to_owned(),
        false => format!("{verb} {}, {}\n", parts.join(" and "), bytes(moved.bytes)),
    };
    if moved.cleared > 0 {
        let uploads = count_of(moved.cleared as u64, "interrupted upload", "interrupted uploads");
        text += &format!("cleared {uploads}\n");
    }
    text
}
