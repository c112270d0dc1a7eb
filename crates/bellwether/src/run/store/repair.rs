//! Repairs a store and this machine from one another.
//!
//! Every object is compared with its seal or record, and so is every file of this machine. A file that is damaged in the
//! store is moved aside there and sent again by a machine that has the same run or version; what is damaged here is set
//! aside and fetched. `latest.json` is derived from the versions. A run or version of which neither has an intact copy is
//! set aside, since one damaged file of it would stop every machine that fetches it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::push::latest_of;
use super::status::{names_of_datasets, versions_with_record};
use super::verify::VerifyScope;
use super::{ARCHIVE, DATASETS, RemoteStore, ServiceArchive};
use crate::archive::{Forgetting, Note, SEAL, Seal, set_aside};
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, Result};
use crate::export::{self, Linking, RECORD, VersionRecord, latest_target};
use crate::run::blocking::blocking;
use crate::run::forget::newest_that_counts;
use crate::run::repair::{InspectedFolders, RepairKind, RepairMode, Repairs, files_of, repair};
use crate::run::stage::Stage;
use crate::store::{Object, Sealed, StoreError};
use crate::time::{Clock, unique_name};

/// The most files read at once.
const FILES_AT_ONCE: usize = 8;

/// A repair in progress.
struct Repairing<'a> {
    of: &'a RemoteStore,
    /// What this machine has.
    here: InspectedFolders,
    /// The name of the folder below `damaged/` for what is set aside.
    name: String,
    repairs: Repairs,
}

/// A folder of the store whose record can be read, and the copy of this machine.
struct Damaged<'a> {
    sealed: Sealed,
    /// What is wrong with each file.
    files: Vec<(FileRecord, String)>,
    /// The local folder with the same record, if it is intact.
    copy: Option<&'a Path>,
}

impl RemoteStore {
    /// Compares everything in the store and on this machine with its seals and records, and repairs each from the other.
    ///
    /// # Errors
    ///
    /// If the store does not honour conditional puts, if a folder cannot be read or moved, and any failure of a request.
    pub async fn repair(&self, mode: RepairMode) -> Result<Repairs> {
        if mode == RepairMode::Repair {
            self.store.probe().await?;
        }
        let (archive, datasets, stop) = (self.archive.clone(), self.datasets.clone(), self.control.stop.clone());
        let here = blocking(move || InspectedFolders::of(&archive, &datasets, &stop)).await?;
        let name = unique_name(Clock::System.now());
        let mut repairing = Repairing { of: self, here, name, repairs: Repairs::new(mode) };
        let services = self.archives().await?;
        let listed = self.store.list(ARCHIVE).await?;
        for service in &services {
            if mode == RepairMode::Repair {
                self.pull_notes(service, &listed).await?;
            }
            repairing.service(service, &listed).await?;
        }
        let listed = self.store.list(DATASETS).await?;
        let intact = repairing.datasets(&listed).await?;
        repairing.send_missing().await?;
        for (name, intact) in &intact {
            repairing.latest(name, intact, &listed).await?;
        }
        if mode == RepairMode::Repair {
            self.push().await?;
        }
        let mut repairs = repairing.repairs;
        if mode == RepairMode::Repair {
            repairs.left = self.verify(&VerifyScope::All).await?.faults;
            let (archive, data, control) = (self.archive.clone(), self.data(), self.control.clone());
            // What `latest` points to here may have been set aside.
            let here = blocking(move || repair(&archive, &data, mode, &control)).await?;
            repairs.repaired.extend(here.repaired);
            repairs.left.extend(here.left);
        }
        Ok(repairs)
    }

    /// What is wrong with some files of a folder in the store.
    async fn faults(&self, at: &str, files: &[FileRecord], stage: &Stage<'_>) -> Result<Vec<(FileRecord, String)>> {
        let faults = files.iter().map(|file| async {
            let fault = self.store.fault(&format!("{at}/{}", file.name), file).await?;
            stage.count(0, file.bytes);
            Ok::<_, Error>(fault.map(|fault| (file.clone(), fault)))
        });
        let faults: Vec<_> = stream::iter(faults).buffered(FILES_AT_ONCE).try_collect().await?;
        Ok(faults.into_iter().flatten().collect())
    }
}

impl Repairing<'_> {
    fn is_dry(&self) -> bool {
        self.repairs.dry_run
    }

    /// Repairs the runs, packs and merges of a service.
    async fn service(&mut self, service: &ServiceArchive, listed: &[Object]) -> Result<()> {
        let stage = Stage::begin(&self.of.control, "repair");
        let name = service.here.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let notes = self.here.notes.get(&name).cloned().unwrap_or_default();
        self.notes::<Forgetting>(service, notes, listed).await?;
        let mut intact_there: Vec<Seal> = Vec::new();
        for folder in service.names_with_record(listed) {
            let at = format!("{}/{folder}", service.there);
            let Some(text) = self.of.store.record(&at, SEAL).await? else { continue };
            let copy = self.here.intact(&name, folder).map(|folder| (folder.path.clone(), folder.intact().cloned()));
            let copy = copy.and_then(|(path, seal)| Some((path, seal?)));
            match Seal::of(&text, Path::new(folder)) {
                Ok(seal) => {
                    let files = self.of.faults(&at, &seal.files, &stage).await?;
                    if files.is_empty() {
                        intact_there.push(seal);
                        continue;
                    }
                    let copy = copy.filter(|(_, own)| own.seal == seal.seal).map(|(path, _)| path);
                    self.mend(Damaged { sealed: service.sealed_folder(&seal), files, copy: copy.as_deref() }).await?;
                }
                Err(error) if is_damage(&error) => match copy {
                    Some((path, seal)) => {
                        let sealed = service.sealed_folder(&seal);
                        let files = self.of.faults(&at, &seal.files, &stage).await?;
                        // Last: until then, another repair knows the folder by its damaged record.
                        self.mend(Damaged { sealed: sealed.clone(), files, copy: Some(&path) }).await?;
                        self.mend_record(&sealed, &path, &error).await?;
                    }
                    None => self.set_aside(&at, SEAL, &in_words(&error)).await?,
                },
                Err(error) => return Err(error),
            }
        }
        self.fetch_damaged(service, &name, &intact_there, &stage).await?;
        stage.finish();
        Ok(())
    }

    /// Repairs the notes of a kind, some of which are damaged here.
    async fn notes<N: Note>(
        &mut self,
        service: &ServiceArchive,
        damaged_here: Vec<(PathBuf, String)>,
        listed: &[Object],
    ) -> Result<()> {
        for folder in service.names(listed, N::FORM) {
            let at = format!("{}/{folder}", service.there);
            let path = service.here.join(folder);
            let Some(text) = self.of.store.record(&at, SEAL).await? else { continue };
            let fault_here = damaged_here.iter().find(|(damaged, _)| *damaged == path).map(|(_, fault)| fault);
            match (N::parse(&text, Path::new(folder)), fault_here) {
                (Ok(note), Some(fault)) => {
                    if !self.is_dry() {
                        set_aside(&path)?;
                        note.add_to(&service.here)?;
                    }
                    self.repairs.add(RepairKind::Fetched, path.display(), fault);
                }
                (Ok(_), None) => {}
                (Err(error), None) if is_damage(&error) && path.exists() => {
                    let sealed = Sealed { at, record: SEAL, files: Vec::new() };
                    self.mend_record(&sealed, &path, &error).await?;
                }
                (Err(error), _) if is_damage(&error) => self.set_aside(&at, SEAL, &in_words(&error)).await?,
                (Err(error), _) => return Err(error),
            }
        }
        for (path, fault) in damaged_here {
            if N::read(&path).is_ok() || file::is_gone(&path) {
                continue;
            }
            let is_there = service.names(listed, N::FORM).any(|folder| path.ends_with(folder));
            if !is_there {
                if !self.is_dry() {
                    set_aside(&path)?;
                }
                self.repairs.add(RepairKind::SetAside, path.display(), fault);
            }
        }
        Ok(())
    }

    /// Replaces the damaged files of a folder in the store, or sets it aside if this machine has no intact copy.
    async fn mend(&mut self, Damaged { sealed, files, copy }: Damaged<'_>) -> Result<()> {
        let Some(copy) = copy else {
            let Some((file, fault)) = files.first() else { return Ok(()) };
            return self.set_aside(&sealed.at, sealed.record, &format!("`{}`: {fault}", file.name)).await;
        };
        if !self.is_dry() {
            let files: Vec<&FileRecord> = files.iter().map(|(file, _)| file).collect();
            self.of.store.mend(&sealed, &files, copy, &self.name).await?;
        }
        for (file, fault) in files {
            let place = self.of.store.address(&format!("{}/{}", sealed.at, file.name));
            self.repairs.add(RepairKind::Sent, place, fault);
        }
        Ok(())
    }

    async fn mend_record(&mut self, sealed: &Sealed, copy: &Path, error: &Error) -> Result<()> {
        if !self.is_dry() {
            self.of.store.mend_record(sealed, copy, &self.name).await?;
        }
        let place = self.of.store.address(&format!("{}/{}", sealed.at, sealed.record));
        self.repairs.add(RepairKind::Sent, place, in_words(error));
        Ok(())
    }

    async fn set_aside(&mut self, at: &str, record: &str, reason: &str) -> Result<()> {
        if !self.is_dry() {
            self.of.store.set_folder_aside(at, record, &self.name).await?;
        }
        let reason = format!("{reason}; this machine has no intact copy");
        self.repairs.add(RepairKind::SetAside, self.of.store.address(at), reason);
        Ok(())
    }

    /// Fetches the folders that are damaged here and intact in the store, and sets the others aside.
    async fn fetch_damaged(
        &mut self,
        service: &ServiceArchive,
        name: &str,
        there: &[Seal],
        stage: &Stage<'_>,
    ) -> Result<()> {
        for folder in self.here.archives.get(name).cloned().unwrap_or_default() {
            let Some(fault) = folder.faults.first() else { continue };
            let intact = there.iter().find(|seal| seal.folder_name() == folder.name());
            if !self.is_dry() {
                set_aside(&folder.path)?;
                if let Some(seal) = intact {
                    self.of.fetch(service, seal, stage).await?;
                }
            }
            let kind = if intact.is_some() { RepairKind::Fetched } else { RepairKind::SetAside };
            self.repairs.add(kind, folder.path.display(), fault);
        }
        Ok(())
    }

    /// Repairs the versions of every dataset. Returns those that are intact then, or are about to be sent.
    async fn datasets(&mut self, listed: &[Object]) -> Result<BTreeMap<String, Vec<VersionRecord>>> {
        let stage = Stage::begin(&self.of.control, "repair");
        let mut all = BTreeMap::new();
        for name in names_of_datasets(listed) {
            let mut intact: Vec<VersionRecord> = Vec::new();
            for (_, version) in versions_with_record(listed).filter(|(of, _)| *of == name) {
                intact.extend(self.version(name, version, &stage).await?);
            }
            self.fetch_damaged_versions(name, &intact).await?;
            // What was pruned from the store is not sent again.
            let pruned = self.of.store.pruned_before(name, listed).await?;
            let is_sent = |whole: &VersionRecord| !pruned.as_ref().is_some_and(|pruned| pruned.covers(&whole.version));
            let here = self.here.versions.get(name).into_iter().flatten().filter(|version| version.faults.is_empty());
            intact.extend(here.filter_map(|version| version.whole.clone()).filter(is_sent));
            all.insert(name.to_owned(), intact);
        }
        stage.finish();
        Ok(all)
    }

    /// Repairs a version, and returns its record if it is intact now, or would be.
    async fn version(&mut self, name: &str, version: &str, stage: &Stage<'_>) -> Result<Option<VersionRecord>> {
        let at = format!("{DATASETS}/{name}/{version}");
        let own = self.here.intact_version(name, version).map(|(path, whole)| (path.to_owned(), whole.clone()));
        match self.of.read_version(name, version).await {
            Ok(None) => Ok(None),
            Ok(Some((text, whole))) => {
                let copy = own.filter(|(path, _)| links::read(&path.join(RECORD)).is_ok_and(|own| own == text));
                self.mend_version(at, whole, copy, stage).await
            }
            Err(error) if is_damage(&error) => match own {
                Some((path, whole)) => {
                    let sealed = Sealed { at: at.clone(), record: RECORD, files: files_of(&path, &whole)? };
                    // The record last, as that of a run.
                    let mended = self.mend_version(at, whole.clone(), Some((path.clone(), whole)), stage).await?;
                    self.mend_record(&sealed, &path, &error).await?;
                    Ok(mended)
                }
                None => {
                    self.set_aside(&at, RECORD, &in_words(&error)).await?;
                    Ok(None)
                }
            },
            Err(error) => Err(error),
        }
    }

    async fn mend_version(
        &mut self,
        at: String,
        whole: VersionRecord,
        copy: Option<(PathBuf, VersionRecord)>,
        stage: &Stage<'_>,
    ) -> Result<Option<VersionRecord>> {
        let (files, faults) = match &copy {
            Some((path, own)) => {
                let files = files_of(path, own)?;
                let faults = self.of.faults(&at, &files, stage).await?;
                (files, faults)
            }
            None => {
                let mut faults = self.of.faults(&at, &whole.files, stage).await?;
                for (name, expected) in whole.describing().iter() {
                    let found = self.of.store.read(&format!("{at}/{name}")).await?.map(|bytes| digest::of(&bytes));
                    if found.as_deref() != Some(expected) {
                        let file = FileRecord { name: name.to_owned(), rows: 0, bytes: 0, blake3: expected.to_owned() };
                        faults.push((file, "it is missing or does not match its checksum".to_owned()));
                    }
                }
                (whole.files.clone(), faults)
            }
        };
        if faults.is_empty() {
            return Ok(Some(whole));
        }
        let copy = copy.map(|(path, _)| path);
        let is_mended = copy.is_some();
        self.mend(Damaged { sealed: Sealed { at, record: RECORD, files }, files: faults, copy: copy.as_deref() })
            .await?;
        Ok(is_mended.then_some(whole))
    }

    /// Fetches the versions that are damaged here and intact in the store, and sets the others aside.
    async fn fetch_damaged_versions(&mut self, name: &str, there: &[VersionRecord]) -> Result<()> {
        let dataset = self.of.datasets.join(name);
        for version in self.here.versions.get(name).cloned().unwrap_or_default() {
            let Some(fault) = version.faults.first() else { continue };
            let is_of_it = |whole: &&VersionRecord| version.path.file_name() == Some(whole.version.as_ref());
            let intact = there.iter().find(is_of_it);
            if !self.is_dry() {
                set_aside(&version.path)?;
                if let Some(whole) = intact {
                    let linking = if latest_target(&dataset).is_some() { Linking::Unchanged } else { Linking::Latest };
                    self.of.fetch_version(name, &whole.version, linking).await?;
                }
            }
            let kind = if intact.is_some() { RepairKind::Fetched } else { RepairKind::SetAside };
            self.repairs.add(kind, version.path.display(), fault);
        }
        Ok(())
    }

    /// Has `latest.json` name the newest intact version that counts, unless it names an intact one.
    async fn latest(&mut self, name: &str, intact: &[VersionRecord], listed: &[Object]) -> Result<()> {
        let reason = match self.of.store.latest(name).await {
            Ok(Some(latest)) if intact.iter().any(|whole| latest_of(whole) == latest) => return Ok(()),
            // Another machine published it meanwhile.
            Ok(Some(latest)) if self.of.is_new(name, &latest.version, listed).await? => return Ok(()),
            Ok(Some(latest)) if intact.iter().any(|whole| whole.version == latest.version) => {
                "it differed from the record of its version".to_owned()
            }
            Ok(Some(latest)) => format!("it named `{}`, which is damaged or missing", latest.version),
            Ok(None) if intact.is_empty() => return Ok(()),
            Ok(None) => "it was missing".to_owned(),
            Err(error) if is_damage(&error) => in_words(&error),
            Err(error) => return Err(error),
        };
        let newest = newest_that_counts(&self.of.archive, intact)?;
        let at = format!("{DATASETS}/{name}/latest.json");
        if !self.is_dry() {
            self.of.store.set_aside(&at, &self.name).await?;
        }
        let place = self.of.store.address(&at);
        match newest {
            Some(one) => {
                if !self.is_dry() {
                    self.of.store.name_latest(&latest_of(one), None).await?;
                }
                self.repairs.add(RepairKind::Rebuilt, place, reason);
            }
            None => self.repairs.add(RepairKind::SetAside, place, reason),
        }
        Ok(())
    }

    /// Sends the runs, packs and versions that the store lacks.
    async fn send_missing(&mut self) -> Result<()> {
        let (archive, datasets) = (self.of.store.list(ARCHIVE).await?, self.of.store.list(DATASETS).await?);
        let there: HashSet<&str> = archive.iter().chain(&datasets).map(|object| object.key.as_str()).collect();
        let mut sealed: Vec<Sealed> = Vec::new();
        for service in self.of.archives().await? {
            let name = service.here.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let intact = || self.here.archives.get(name).into_iter().flatten().filter_map(|folder| folder.intact());
            let packed = self.of.find_packed(&service, intact(), &archive).await?;
            let lacking = intact().filter(|seal| !seal.is_pack() && !seal.is_merge() && !packed.hold(seal));
            sealed.extend(lacking.map(|seal| service.sealed_folder(seal)));
        }
        for (name, here) in &self.here.versions {
            let pruned = self.of.store.pruned_before(name, &datasets).await?;
            let is_kept = |version: &str| pruned.as_ref().is_none_or(|pruned| !pruned.covers(version));
            for version in here.iter().filter(|version| version.faults.is_empty()) {
                if let Some(whole) = version.whole.as_ref().filter(|whole| is_kept(&whole.version)) {
                    let (at, files) = (format!("{DATASETS}/{name}/{}", whole.version), files_of(&version.path, whole)?);
                    sealed.push(Sealed { at, record: RECORD, files });
                }
            }
        }
        for sealed in sealed {
            let is_there = |name: &str| there.contains(format!("{}/{name}", sealed.at).as_str());
            if !is_there(sealed.record) {
                self.repairs.add(RepairKind::Sent, self.of.store.address(&sealed.at), "the store lacked it");
                let files = sealed.files.iter().filter(|file| is_there(&file.name)).cloned().collect::<Vec<_>>();
                if !self.is_dry() {
                    self.set_torn_aside(&sealed.at, &files).await?;
                }
            }
        }
        if !self.is_dry() {
            self.of.push_archive().await?;
            for name in export::names(&self.of.datasets)? {
                self.of.push_versions(&name).await?;
            }
        }
        Ok(())
    }

    /// Sets aside what is damaged of some files whose folder has no record: nothing else can be sent in their place.
    async fn set_torn_aside(&self, at: &str, files: &[FileRecord]) -> Result<()> {
        let stage = Stage::begin(&self.of.control, "repair");
        for (file, _) in self.of.faults(at, files, &stage).await? {
            self.of.store.set_aside(&format!("{at}/{}", file.name), &self.name).await?;
        }
        stage.finish();
        Ok(())
    }
}

/// Whether an error is that of a damaged file or object.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(FileError::Damaged { .. }))
        || matches!(error.downcast_ref(), Some(StoreError::Damaged { .. }))
}

/// A message with its reason.
fn in_words(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}
