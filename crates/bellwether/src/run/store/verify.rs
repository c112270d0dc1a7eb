//! Verifies a store: every seal and record, and every file against it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::push::latest_of;
use super::status::{names_of_datasets, unfinished_folders, versions};
use super::{ARCHIVE, DATASETS, RemoteStore, ServiceArchive};
use crate::archive::{Archive, Forgetting, Note, SEAL, Seal, contradictions};
use crate::disk::digest;
use crate::disk::file;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, Result};
use crate::export::{RECORD, VersionRecord};
use crate::run::stage::Stage;
use crate::store::{Latest, Object, Sealed, StoreError};

/// The most files read at once.
const FILES_AT_ONCE: usize = 8;

/// What of a store is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VerifyScope {
    /// Every object is read.
    #[default]
    All,
    /// The runs, packs and versions whose names begin with an instant that is not before that of a run; the others must be
    /// there.
    Since(String),
    /// The sizes of all objects, as the store lists them. What this machine has the records of is not read.
    Sizes,
}

impl VerifyScope {
    /// Whether a folder is read, by its name.
    fn reads(&self, folder: &str) -> bool {
        match self {
            Self::Since(run) => second(folder) >= second(run),
            Self::All | Self::Sizes => true,
        }
    }
}

/// The second in the name of a folder. What follows it in a name tells nothing of the order.
fn second(folder: &str) -> &str {
    let name = folder.rsplit('=').next().unwrap_or(folder);
    name.split('-').next().unwrap_or(name)
}

/// The result of verifying a store.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StoreVerified {
    /// Files whose size, and unless sizes were asked for, checksum was compared.
    pub files: usize,
    /// Folders with an upload in progress, or one that was interrupted. No reader takes them for runs or versions.
    pub unfinished: Vec<String>,
    /// The problems found, one line each.
    pub faults: Vec<String>,
}

impl RemoteStore {
    /// Reads every sealed folder and every version in the store, or those of a scope, and compares each file with its
    /// record.
    ///
    /// # Errors
    ///
    /// If the store does not have the run that the scope names, and any failure of a request.
    pub async fn verify(&self, scope: &VerifyScope) -> Result<StoreVerified> {
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let (archive, datasets) = (archive?, datasets?);
        let mut verified = StoreVerified::default();
        let mut known = HashSet::new();
        let mut folders = self.sealed_folders(&archive, scope, &mut known, &mut verified).await?;
        if let VerifyScope::Since(run) = scope
            && !known.contains(run)
        {
            return Err(StoreError::Absent { url: self.url().to_string(), what: format!("run `{run}`") }.into());
        }
        folders.extend(self.versions(&datasets, scope, &known, &mut verified).await?);
        let files: Vec<(&Sealed, &FileRecord)> =
            folders.iter().flat_map(|folder| folder.files.iter().map(move |file| (folder, file))).collect();
        let stage = Stage::of_files(&self.control, "verify", files.len());
        let sizes: HashMap<&str, u64> =
            archive.iter().chain(&datasets).map(|object| (object.key.as_str(), object.bytes)).collect();
        let faults = files.iter().map(|(folder, file)| async {
            let key = format!("{}/{}", folder.at, file.name);
            let fault = match (scope, sizes.get(key.as_str())) {
                (VerifyScope::Sizes, None) => Some("it is missing".to_owned()),
                (VerifyScope::Sizes, Some(bytes)) if *bytes == file.bytes => None,
                (VerifyScope::Sizes, Some(bytes)) => Some(format!("it has {bytes} bytes, expected {}", file.bytes)),
                _ => self.store.fault(&key, file).await?,
            };
            stage.count(0, file.bytes);
            Ok::<_, Error>(fault.map(|fault| format!("`{}`: {fault}", self.store.address(&key))))
        });
        let faults: Vec<Option<String>> = stream::iter(faults).buffered(FILES_AT_ONCE).try_collect().await?;
        stage.finish();
        verified.files += files.len();
        verified.faults.extend(faults.into_iter().flatten());
        verified.unfinished = unfinished_folders(&archive).chain(unfinished_folders(&datasets)).collect();
        Ok(verified)
    }

    /// The sealed folders. The runs that they hold, or know to be gone, are added to the `known` ones.
    async fn sealed_folders(
        &self,
        archive: &[Object],
        scope: &VerifyScope,
        known: &mut HashSet<String>,
        verified: &mut StoreVerified,
    ) -> Result<Vec<Sealed>> {
        let mut folders = Vec::new();
        for service in self.archives().await? {
            let own = self.own_seals(&service, scope)?;
            known.extend(
                service.note_names(archive).filter_map(|name| name.strip_prefix("forgotten=")).map(str::to_owned),
            );
            for name in service.note_names(archive) {
                let at = format!("{}/{name}", service.there);
                let text = self.store.record(&at, SEAL).await?.unwrap_or_default();
                if let Err(error) = Forgetting::parse(&text, &PathBuf::from(self.store.address(&at))) {
                    verified.faults.push(fault(error)?);
                }
            }
            let mut seals = Vec::new();
            for name in service.sealed_names(archive) {
                if !scope.reads(name) && name.starts_with("run=") {
                    known.extend(name.strip_prefix("run=").map(str::to_owned));
                }
                let seal = match own.get(name) {
                    Some(seal) => {
                        if scope.reads(name) {
                            let key = format!("{}/{name}/{SEAL}", service.there);
                            verified.faults.extend(self.misfit(archive, &key, &service.here.join(name).join(SEAL))?);
                        }
                        Ok(Some(seal.clone()))
                    }
                    None if scope.reads(name) => self.read_seal(&service, name).await,
                    None if name.starts_with("pack=") => self.known_seal(&service, name).await,
                    None => Ok(None),
                };
                match seal {
                    Ok(Some(seal)) => {
                        if scope.reads(name) {
                            folders.push(service.sealed_folder(&seal));
                        }
                        known.extend(seal.runs().flat_map(|run| run.lost.iter().chain([&run.run])).cloned());
                        seals.push(seal);
                    }
                    Ok(None) => {}
                    Err(error) => verified.faults.push(fault(error)?),
                }
            }
            let at = self.store.address(&service.there);
            let faults = match scope {
                VerifyScope::All | VerifyScope::Sizes => contradictions(seals.iter()),
                VerifyScope::Since(_) => {
                    let parents = seals.iter().flat_map(Seal::runs).flat_map(|run| &run.basis);
                    let missing: BTreeSet<&str> = parents.map(|parent| parent.run.as_str()).collect();
                    let missing = missing.into_iter().filter(|run| !known.contains(*run));
                    missing.map(|run| format!("it lacks run `{run}`, which later runs are based on")).collect()
                }
            };
            verified.faults.extend(faults.into_iter().map(|fault| format!("`{at}`: {fault}")));
        }
        Ok(folders)
    }

    /// The seals that this machine has of a service, by the name of the folder, if they are enough.
    fn own_seals(&self, service: &ServiceArchive, scope: &VerifyScope) -> Result<HashMap<String, Seal>> {
        if *scope == VerifyScope::All || file::is_gone(&service.here) {
            return Ok(HashMap::new());
        }
        let archive = Archive::open(&service.here)?;
        let seals =
            archive.all_seals().filter(|seal| *scope == VerifyScope::Sizes || !scope.reads(&seal.folder_name()));
        Ok(seals.map(|seal| (seal.folder_name(), seal.clone())).collect())
    }

    async fn versions(
        &self,
        datasets: &[Object],
        scope: &VerifyScope,
        known: &HashSet<String>,
        verified: &mut StoreVerified,
    ) -> Result<Vec<Sealed>> {
        let mut folders = Vec::new();
        let mut complete: BTreeMap<(&str, &str), Latest> = BTreeMap::new();
        for (name, version) in versions(datasets).filter(|(_, version)| scope.reads(version)) {
            let at = format!("{DATASETS}/{name}/{version}");
            let own = if *scope == VerifyScope::Sizes { self.own_version(name, version)? } else { None };
            let read = match own {
                Some((path, whole)) => Ok(Some((Some(path), whole))),
                None => self.read_version(name, version).await.map(|read| read.map(|(_, whole)| (None, whole))),
            };
            match read {
                Ok(Some((path, whole))) => {
                    if let Some(path) = &path {
                        let key = format!("{at}/{RECORD}");
                        verified.faults.extend(self.misfit(datasets, &key, &path.join(RECORD))?);
                    }
                    for (name, expected) in whole.describing().iter() {
                        let key = format!("{at}/{name}");
                        verified.files += 1;
                        if let Some(path) = &path {
                            verified.faults.extend(self.misfit(datasets, &key, &path.join(name))?);
                            continue;
                        }
                        let found = self.store.read(&key).await?.map(|bytes| digest::of(&bytes));
                        if found.as_deref() != Some(expected) {
                            let key = self.store.address(&key);
                            verified.faults.push(format!("`{key}`: it is missing or does not match its checksum"));
                        }
                    }
                    let lacks = whole.runs.iter().filter(|run| !known.contains(*run)).map(|run| {
                        let key = self.store.address(&format!("{at}/{RECORD}"));
                        format!("`{key}`: it was built from run `{run}`, which is missing")
                    });
                    verified.faults.extend(lacks);
                    complete.insert((name, version), latest_of(&whole));
                    folders.push(Sealed { at, record: RECORD, files: whole.files });
                }
                Ok(None) => {}
                Err(error) => verified.faults.push(fault(error)?),
            }
        }
        for name in names_of_datasets(datasets) {
            let at = self.store.address(&format!("{DATASETS}/{name}/latest.json"));
            match self.store.latest(name).await {
                Ok(Some(latest)) if !scope.reads(&latest.version) => {
                    if !versions(datasets).any(|it| it == (name, &*latest.version))
                        && !self.is_new(name, &latest.version, datasets).await?
                    {
                        verified.faults.push(format!("`{at}`: it names `{}`, which is missing", latest.version));
                    }
                }
                Ok(Some(latest)) => match complete.get(&(name, latest.version.as_str())) {
                    Some(expected) if *expected == latest => {}
                    Some(_) => verified.faults.push(format!("`{at}`: it differs from the record of its version")),
                    None if self.is_new(name, &latest.version, datasets).await? => {}
                    None => {
                        verified.faults.push(format!("`{at}`: it names `{}`, which is missing", latest.version));
                    }
                },
                Ok(None) if versions(datasets).any(|(of, _)| of == name) => {
                    verified.faults.push(format!("`{at}`: it is missing, so no machine finds the latest version"));
                }
                Ok(None) => {}
                Err(error) => verified.faults.push(fault(error)?),
            }
        }
        Ok(folders)
    }
}

impl RemoteStore {
    /// What is wrong with the size of an object that this machine has a file of, if it has one.
    fn misfit(&self, listed: &[Object], key: &str, own: &Path) -> Result<Option<String>> {
        let size = match own.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(FileError::read(own))?.len(),
        };
        let is_other = listed.iter().find(|object| object.key == key).is_none_or(|object| object.bytes != size);
        Ok(is_other.then(|| format!("`{}`: it is missing or has another size", self.store.address(key))))
    }

    /// A version of this machine, whose record need not be read from the store.
    fn own_version(&self, name: &str, version: &str) -> Result<Option<(PathBuf, VersionRecord)>> {
        let path = self.datasets.join(name).join(version);
        match links::read(&path.join(RECORD)) {
            Ok(text) => Ok(Some((path.clone(), VersionRecord::of_version(&text, &path)?))),
            Err(error) if FileError::is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The message for a damaged record; any other failure ends the verification.
fn fault(error: Error) -> Result<String> {
    let is_fault = matches!(error.downcast_ref(), Some(FileError::Damaged { .. } | FileError::Layout { .. }))
        || matches!(error.downcast_ref(), Some(StoreError::Damaged { .. }));
    if !is_fault {
        return Err(error);
    }
    let reason = std::error::Error::source(&error).map(|reason| format!(": {reason}"));
    Ok(format!("{error}{}", reason.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::VerifyScope;

    #[test]
    fn since_a_run_is_since_its_second() {
        let since = VerifyScope::Since("20261120T213000Z-7f3a".to_owned());
        for read in ["run=20261120T213000Z-7f3a", "20261120T213000Z-0001", "pack=20261120T213001Z-0000"] {
            assert!(since.reads(read), "{read}");
        }
        assert!(!since.reads("run=20261120T212959Z-ffff"));
    }
}
