//! `bellwether datasets remove`: removes published versions.

use bellwether::disk::footprint::Footprint;
use bellwether::export::{self, VersionKind};
use bellwether::project::Project;
use bellwether::text::human::bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::AsJson;
use super::folders::DataFolder;
use super::outcome::{Failure, Result};

/// Remove published versions.
#[derive(Debug, clap::Args)]
pub(super) struct Datasets {
    #[command(subcommand)]
    action: DatasetsAction,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folder: DataFolder,
}

#[derive(Debug, clap::Subcommand)]
enum DatasetsAction {
    Remove(Remove),
}

/// Remove versions that are neither the latest nor pinned by a link.
#[derive(Debug, clap::Args)]
struct Remove {
    /// Versions: NAME/VERSION, or NAME/builds/VERSION for an ad hoc build.
    #[arg(required = true, value_name = "VERSION")]
    versions: Vec<String>,
}

impl Datasets {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let DatasetsAction::Remove(remove) = self.action;
        remove.execute(project, &self.folder, self.json)
    }
}

/// Versions that were removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Removed {
    /// Their names.
    removed: Vec<String>,
    /// What their removal freed; versions may share files with others.
    bytes: u64,
}

impl Remove {
    fn execute(self, project: &Project, folder: &DataFolder, json: AsJson) -> Result<()> {
        let datasets = folder.datasets(project);
        let published = export::published_versions(&datasets)?;
        let mut found = Vec::new();
        // All are checked before the first is removed.
        for name in &self.versions {
            let version = published.iter().find(|version| version.name == *name);
            let version = version.ok_or_else(|| Failure::NoVersion { name: name.clone() })?;
            let pin = version.pins.first().map(String::as_str);
            let kept_by = if version.kind == VersionKind::Latest { Some("latest") } else { pin };
            if let Some(link) = kept_by {
                return Err(Failure::Pinned { name: name.clone(), link: link.to_owned() });
            }
            found.push(version);
        }
        let (mut names, mut freed, mut failed) = (Vec::new(), 0, None);
        for version in found {
            // Versions may share files with others.
            let footprint = Footprint::of(&version.path);
            if let Err(error) = export::remove(&version.path) {
                failed = Some(error);
                break;
            }
            freed += footprint.freed_bytes();
            names.push(version.name.clone());
        }
        let text = || {
            let removed: String = names.iter().map(|name| format!("removed `{name}`\n")).collect();
            if names.is_empty() { removed } else { format!("{removed}freed {}\n", bytes(freed)) }
        };
        json.say(|| Removed { removed: names.clone(), bytes: freed }, text)?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}
