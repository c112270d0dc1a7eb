//! `bellwether datasets`: the published versions.

use std::path::Path;

use bellwether::disk::footprint::Footprint;
use bellwether::export::{self, ListedVersion, VersionKind};
use bellwether::project::Project;
use bellwether::text::human::{bytes, count_of, group_digits};
use bellwether::text::problem::nearest;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use super::aligned::Aligned;
use super::document::AsJson;
use super::folders::DataFolder;
use super::outcome::{Failure, Result};
use super::typed::usage;

/// List the published versions of datasets, or remove versions.
#[derive(Debug, clap::Args)]
pub(super) struct Datasets {
    #[command(subcommand)]
    action: Option<DatasetsAction>,

    /// A dataset. Default: all.
    #[arg(value_name = "DATASET")]
    name: Option<String>,

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
        if let Some(DatasetsAction::Remove(remove)) = self.action {
            if let Some(name) = &self.name {
                let what = format!("`{name}` before `remove`");
                return Err(usage(&what, "name the versions to remove after it: `datasets remove NAME/VERSION`"));
            }
            return remove.execute(project, &self.folder, self.json);
        }
        let datasets = self.folder.datasets(project);
        let mut versions = export::published_versions(&datasets)?;
        if let Some(name) = self.name {
            let known = versions.iter().map(|version| version.dataset.as_str());
            let meant = nearest(&name, known).map(str::to_owned);
            versions.retain(|version| version.dataset == name);
            if versions.is_empty() {
                return Err(Failure::NoDataset { name, meant });
            }
        }
        let mut footprint = Footprint::default();
        versions.iter().flat_map(|version| &version.files).for_each(|file| footprint.add(file));
        let size = footprint.bytes();
        self.json.say(|| Versions { versions: &versions, bytes: size }, || version_lines(&versions, size, &datasets))
    }
}

/// The published versions, by dataset, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Versions<'a> {
    versions: &'a [ListedVersion],
    /// The size of all data files on disk; one that versions share counts once.
    bytes: u64,
}

/// Versions that were removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Removed {
    /// Their names.
    removed: Vec<String>,
    /// What their removal freed; versions may share files with others.
    bytes: u64,
}

fn version_lines(versions: &[ListedVersion], size: u64, datasets: &Path) -> String {
    if versions.is_empty() {
        return format!("no datasets in `{}`; publish one with `bellwether run NAME`\n", datasets.display());
    }
    let mut table = Aligned::new(4, ["version", "", "first date", "last date", "rows", "size"]);
    for version in versions {
        let mut marks: Vec<&str> = match version.kind {
            VersionKind::Latest => vec!["latest"],
            VersionKind::Earlier | VersionKind::AdHoc => Vec::new(),
        };
        marks.extend(version.pins.iter().map(String::as_str));
        let date = |date: Option<NaiveDate>| date.map_or_else(|| "-".to_owned(), |date| date.to_string());
        let (first, last) = (date(version.first_date), date(version.last_date));
        let (rows, size) = (group_digits(version.rows), bytes(version.bytes));
        table.row([version.name.clone(), marks.join(", "), first, last, rows, size]);
    }
    let shared = match versions.iter().map(|version| version.bytes).sum::<u64>().saturating_sub(size) {
        0 => String::new(),
        saved => format!("; sharing files saves {}", bytes(saved)),
    };
    format!("{table}\n{}, {}{shared}\n", count_of(versions.len() as u64, "version", "versions"), bytes(size))
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
