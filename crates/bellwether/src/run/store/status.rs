//! Compares this machine with the store.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{ARCHIVE, DATASETS, RemoteStore};
use crate::archive::{Archive, Seal};
use crate::disk::file;
use crate::disk::names::{is_dataset, is_unique};
use crate::error::Result;
use crate::export::{self, VersionRecord};
use crate::store::{Object, by_folder, record_of};

/// The difference between this machine and the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreStatus {
    /// The store.
    pub url: String,
    /// Runs that both have.
    pub runs: usize,
    /// Runs that only this machine has: `store push` sends them.
    pub only_here: Vec<String>,
    /// Runs that only the store has: `store pull` fetches them.
    pub only_there: Vec<String>,
    /// Folders in the store with an upload in progress, or one that was interrupted.
    pub unfinished: Vec<String>,
    /// Objects of the archive and the datasets in the store.
    pub objects: usize,
    /// Their size.
    pub bytes: u64,
    /// The datasets.
    pub datasets: Vec<DatasetStatus>,
}

/// The versions of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DatasetStatus {
    /// Its name.
    pub name: String,
    /// Its latest version on this machine.
    pub latest_here: Option<String>,
    /// Its latest version in the store.
    pub latest_there: Option<String>,
    /// Versions that both have.
    pub versions: usize,
    /// Versions that only this machine has.
    pub only_here: Vec<String>,
    /// Versions that only the store has.
    pub only_there: Vec<String>,
}

impl RemoteStore {
    /// Compares this machine with the store.
    ///
    /// # Errors
    ///
    /// If the archive or a seal cannot be read, and any failure of a request.
    pub async fn status(&self) -> Result<StoreStatus> {
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let (archive, datasets) = (archive?, datasets?);
        let (mut here, mut there): (BTreeSet<String>, BTreeSet<String>) = Default::default();
        for service in self.archives().await? {
            if !file::is_gone(&service.here) {
                here.extend(Archive::open(&service.here)?.names_in_folders().into_iter().map(str::to_owned));
            }
            for name in service.sealed_names(&archive) {
                match name.strip_prefix("run=") {
                    Some(run) => _ = there.insert(run.to_owned()),
                    None if name.starts_with("merge=") => {}
                    None => {
                        let seal = self.known_seal(&service, name).await?;
                        there.extend(seal.iter().flat_map(Seal::runs).map(|run| run.run.clone()));
                    }
                }
            }
        }
        let unfinished = unfinished_folders(&archive).chain(unfinished_folders(&datasets)).collect();
        Ok(StoreStatus {
            url: self.url().to_string(),
            runs: here.intersection(&there).count(),
            only_here: here.difference(&there).cloned().collect(),
            only_there: there.difference(&here).cloned().collect(),
            unfinished,
            objects: archive.len() + datasets.len(),
            bytes: archive.iter().chain(&datasets).map(|object| object.bytes).sum(),
            datasets: self.datasets(&datasets).await?,
        })
    }

    async fn datasets(&self, listed: &[Object]) -> Result<Vec<DatasetStatus>> {
        let mut there: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, version) in versions(listed) {
            there.entry(name.to_owned()).or_default().insert(version.to_owned());
        }
        for name in export::names(&self.datasets)? {
            there.entry(name).or_default();
        }
        let mut datasets = Vec::new();
        for (name, there) in there {
            let here = VersionRecord::of_dataset(&self.datasets, &name)?;
            let here: BTreeSet<String> = here.into_iter().map(|(_, whole)| whole.version).collect();
            let latest = export::latest(&self.datasets, Some(&name)).ok().flatten();
            datasets.push(DatasetStatus {
                latest_here: latest.map(|latest| latest.version),
                latest_there: self.store.latest(&name).await?.map(|latest| latest.version),
                versions: here.intersection(&there).count(),
                only_here: here.difference(&there).cloned().collect(),
                only_there: there.difference(&here).cloned().collect(),
                name,
            });
        }
        Ok(datasets)
    }
}

/// The complete versions in a listing of datasets: dataset and version.
pub(super) fn versions(listed: &[Object]) -> impl Iterator<Item = (&str, &str)> {
    listed.iter().filter(|object| object.may_be_record()).filter_map(version_of)
}

/// The same, with versions whose record is cut off.
pub(super) fn versions_with_record(listed: &[Object]) -> impl Iterator<Item = (&str, &str)> {
    listed.iter().filter_map(version_of)
}

/// The names of the datasets in a listing that have any object, in order.
pub(super) fn names_of_datasets(listed: &[Object]) -> BTreeSet<&str> {
    let keys = listed.iter().map(|object| object.key.as_str());
    let names = keys.filter_map(|key| Some(key.strip_prefix("datasets/")?.split_once('/')?.0));
    names.filter(|name| is_dataset(name)).collect()
}

/// The dataset and the version whose record an object is.
fn version_of(object: &Object) -> Option<(&str, &str)> {
    let (name, version) = object.key.strip_prefix("datasets/")?.strip_suffix("/dataset.json")?.split_once('/')?;
    (is_dataset(name) && is_unique(version)).then_some((name, version))
}

/// The folders in a listing that have objects and no record.
pub(super) fn unfinished_folders(listed: &[Object]) -> impl Iterator<Item = String> {
    by_folder(listed.to_vec()).into_iter().filter_map(|(folder, objects)| {
        let record = format!("{folder}/{}", record_of(&folder));
        objects.iter().all(|object| object.key != record || !object.may_be_record()).then_some(folder)
    })
}
