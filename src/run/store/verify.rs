//! Verifies a store: every seal and record, and every file against it.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use super::push::latest_of;
use super::status::{names_of_datasets, unfinished, versions};
use super::{ARCHIVE, DATASETS, RemoteStore};
use crate::archive::contradictions;
use crate::digest;
use crate::error::{Error, Result};
use crate::export::RECORD;
use crate::file::{FileError, FileRecord};
use crate::run::stage::Stage;
use crate::store::{Latest, Object, Sealed, StoreError};

/// The most files read at once.
const FILES_AT_ONCE: usize = 8;

/// The result of verifying a store.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StoreVerified {
    /// Files whose size and checksum were compared.
    pub files: usize,
    /// Folders with an upload in progress, or one that was interrupted. No reader takes them for runs or versions.
    pub unfinished: Vec<String>,
    /// The problems found, one line each.
    pub faults: Vec<String>,
}

impl RemoteStore {
    /// Reads every sealed folder and every version in the store, and compares each file with its record.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn verify(&self) -> Result<StoreVerified> {
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let (archive, datasets) = (archive?, datasets?);
        let mut verified = StoreVerified::default();
        let mut known = HashSet::new();
        let mut folders = self.sealed_folders(&archive, &mut known, &mut verified).await?;
        folders.extend(self.versions(&datasets, &known, &mut verified).await?);
        let files: Vec<(&Sealed, &FileRecord)> =
            folders.iter().flat_map(|folder| folder.files.iter().map(move |file| (folder, file))).collect();
        let stage = Stage::of_files(&self.control, "verify", files.len());
        let faults = files.iter().map(|(folder, file)| async {
            let key = format!("{}/{}", folder.at, file.name);
            let fault = self.store.fault(&key, file).await?;
            stage.done(0, file.bytes);
            Ok::<_, Error>(fault.map(|fault| format!("`{}`: {fault}", self.store.address(&key))))
        });
        let faults: Vec<Option<String>> = stream::iter(faults).buffered(FILES_AT_ONCE).try_collect().await?;
        stage.finish();
        verified.files += files.len();
        verified.faults.extend(faults.into_iter().flatten());
        verified.unfinished = unfinished(&archive).chain(unfinished(&datasets)).collect();
        Ok(verified)
    }

    /// The sealed folders. The runs that they hold, or know to be gone, are added to the `known` ones.
    async fn sealed_folders(
        &self,
        archive: &[Object],
        known: &mut HashSet<String>,
        verified: &mut StoreVerified,
    ) -> Result<Vec<Sealed>> {
        let mut folders = Vec::new();
        for service in self.archives().await? {
            let mut seals = Vec::new();
            for name in service.sealed_names(archive) {
                match self.read_seal(&service, name).await {
                    Ok(Some(seal)) => {
                        folders.push(service.sealed(&seal));
                        known.extend(seal.runs().flat_map(|run| run.lost.iter().chain([&run.run])).cloned());
                        seals.push(seal);
                    }
                    Ok(None) => {}
                    Err(error) => verified.faults.push(fault(error)?),
                }
            }
            let at = self.store.address(&service.there);
            let faults = contradictions(seals.iter()).into_iter();
            verified.faults.extend(faults.map(|fault| format!("`{at}`: {fault}")));
        }
        Ok(folders)
    }

    async fn versions(
        &self,
        datasets: &[Object],
        known: &HashSet<String>,
        verified: &mut StoreVerified,
    ) -> Result<Vec<Sealed>> {
        let mut folders = Vec::new();
        let mut complete: BTreeMap<(&str, &str), Latest> = BTreeMap::new();
        for (name, version) in versions(datasets) {
            match self.read_version(name, version).await {
                Ok(Some((_, whole))) => {
                    let at = format!("{DATASETS}/{name}/{version}");
                    for (name, expected) in whole.describing.iter() {
                        verified.files += 1;
                        let key = format!("{at}/{name}");
                        let found = self.store.read(&key).await?.map(|bytes| digest::of(&bytes));
                        if found.as_deref() != Some(expected) {
                            let key = self.store.address(&key);
                            verified.faults.push(format!("`{key}`: it is missing or does not match its checksum"));
                        }
                    }
                    let lacks = whole.recorded.runs.iter().filter(|run| !known.contains(*run)).map(|run| {
                        let key = self.store.address(&format!("{at}/{RECORD}"));
                        format!("`{key}`: it was built from run `{run}`, which is missing")
                    });
                    verified.faults.extend(lacks);
                    complete.insert((name, version), latest_of(&whole.recorded));
                    folders.push(Sealed { at, record: RECORD, files: whole.files });
                }
                Ok(None) => {}
                Err(error) => verified.faults.push(fault(error)?),
            }
        }
        for name in names_of_datasets(datasets) {
            let at = self.store.address(&format!("{DATASETS}/{name}/latest.json"));
            match self.store.latest(name).await {
                Ok(Some(latest)) => match complete.get(&(name, latest.version.as_str())) {
                    Some(expected) if *expected == latest => {}
                    Some(_) => verified.faults.push(format!("`{at}`: it differs from the record of its version")),
                    None => {
                        verified.faults.push(format!("`{at}`: it names `{}`, which is missing", latest.version));
                    }
                },
                Ok(None) if complete.keys().any(|(of, _)| *of == name) => {
                    verified.faults.push(format!("`{at}`: it is missing, so no machine finds the latest version"));
                }
                Ok(None) => {}
                Err(error) => verified.faults.push(fault(error)?),
            }
        }
        Ok(folders)
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
