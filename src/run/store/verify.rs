//! Verifies a store: every seal and record, and every file against it.

use std::collections::HashSet;
use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use super::status::{unfinished, versions};
use super::{ARCHIVE, DATASETS, RemoteStore};
use crate::archive::missing;
use crate::digest;
use crate::error::{Error, Result};
use crate::export::{FACTS, RECORD};
use crate::file::{FileError, FileRecord};
use crate::run::stage::Stage;
use crate::store::{Object, Sealed, StoreError};

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
            let lacks = |run: String| format!("`{at}`: it lacks run `{run}`, which later runs are based on");
            verified.faults.extend(missing(&seals).into_iter().map(lacks));
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
        let mut names: Vec<&str> = Vec::new();
        for (name, version) in versions(datasets) {
            if names.last() != Some(&name) {
                names.push(name);
            }
            match self.read_version(name, version).await {
                Ok(Some((_, whole))) => {
                    let at = format!("{DATASETS}/{name}/{version}");
                    verified.files += 1;
                    let key = format!("{at}/{FACTS}");
                    let facts = self.store.read(&key).await?.map(|facts| digest::of(&facts));
                    if facts != whole.facts {
                        let key = self.store.address(&key);
                        verified.faults.push(format!("`{key}`: it is missing or does not match its checksum"));
                    }
                    let lacks = whole.recorded.runs.iter().filter(|run| !known.contains(*run)).map(|run| {
                        let key = self.store.address(&format!("{at}/{RECORD}"));
                        format!("`{key}`: it was built from run `{run}`, which is missing")
                    });
                    verified.faults.extend(lacks);
                    folders.push(Sealed { at, record: RECORD, files: whole.files });
                }
                Ok(None) => {}
                Err(error) => verified.faults.push(fault(error)?),
            }
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            match self.store.latest(name).await {
                Ok(Some(latest)) if !versions(datasets).any(|it| it == (name, &*latest.version)) => {
                    let at = PathBuf::from(self.store.address(DATASETS)).join(name).join("latest.json");
                    verified.faults.push(format!(
                        "`{}`: it names `{}`, which is missing",
                        at.display(),
                        latest.version
                    ));
                }
                Ok(_) => {}
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
