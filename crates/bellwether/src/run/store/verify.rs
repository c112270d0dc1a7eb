//! Verifies a store: every seal and record, and every file against it; and repairs it from this machine: what is damaged in it is
//! moved aside and sent again by a machine that has the same run or version.
//!
//! A run or version of which this machine has no intact copy is moved aside too, since one damaged file of it would stop
//! every machine that fetches it. Another one that has it sends it again. `latest.json` is made again from the versions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::push::{files_of, latest_of};
use super::{ARCHIVE, DATASETS, RemoteStore, ServiceArchive, names_of_datasets, version_of, versions};
use crate::archive::{Archive, Forgetting, SEAL, Seal, contradictions};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::{digest, links};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, FACTS, RECORD, VersionRecord};
use crate::run::blocking;
use crate::run::forget::newest_that_counts;
use crate::run::observer::Stage;
use crate::run::verify::{Repair, RepairKind, inspect};
use crate::store::{Latest, Object, Sealed, by_folder, record_of};
use crate::time::{Clock, unique_name};

/// The most files read at once.
const FILES_AT_ONCE: usize = 8;

/// What of a store is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyScope {
    /// Every object.
    #[default]
    All,
    /// The records that this machine does not have. Of everything else, sizes are compared, as the store lists them.
    Sizes,
}

/// The result of verifying a store.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StoreVerified {
    /// The store.
    pub url: String,
    /// Files whose size, and unless sizes were asked for, checksum was compared.
    pub files: usize,
    /// Folders with an upload in progress, or one that was interrupted. No reader takes them for runs or versions.
    pub unfinished: Vec<String>,
    /// What was repaired.
    pub repaired: Vec<Repair>,
    /// The problems found, one line each; after a repair, those that are left.
    pub faults: Vec<String>,
    /// How this machine and the store differ; none if what this machine has cannot be read.
    pub difference: Option<StoreDifference>,
    /// The damaged folders, notes and files that name the latest version, each with what is wrong with it first.
    #[serde(skip)]
    pub(super) damaged: BTreeMap<String, String>,
}

/// The difference between this machine and a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreDifference {
    /// The number of runs that both have.
    pub runs: usize,
    /// Runs that only this machine has: `store push` sends them.
    pub only_here: Vec<String>,
    /// Runs that only the store has: `store pull` fetches them.
    pub only_there: Vec<String>,
    /// The number of versions that both have.
    pub versions: usize,
    /// Versions that only this machine has: `store push` sends them, unless they were pruned from the store.
    pub versions_only_here: Vec<String>,
    /// Versions that only the store has: `store pull` fetches the latest of each dataset.
    pub versions_only_there: Vec<String>,
}

impl StoreVerified {
    /// Adds a fault of a folder, or of a single object.
    fn damage(&mut self, at: &str, fault: String) {
        self.damaged.entry(at.to_owned()).or_insert_with(|| fault.clone());
        self.faults.push(fault);
    }
}

impl RemoteStore {
    /// Reads every sealed folder and every version in the store, or those of a scope, and compares each file with its
    /// record; and compares the store with this machine.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn verify(&self, scope: &VerifyScope) -> Result<StoreVerified> {
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let (archive, datasets) = (archive?, datasets?);
        let mut verified = StoreVerified { url: self.url().to_string(), ..StoreVerified::default() };
        let (mut runs, mut known) = (BTreeSet::new(), HashSet::new());
        let mut folders = self.sealed_folders(&archive, scope, (&mut runs, &mut known), &mut verified).await?;
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
                (VerifyScope::All, _) => self.store.fault(&key, file).await?,
            };
            stage.count(0, file.bytes);
            Ok::<_, Error>(fault.map(|fault| (&folder.at, format!("`{}`: {fault}", self.store.address(&key)))))
        });
        let faults: Vec<Option<(&String, String)>> = stream::iter(faults).buffered(FILES_AT_ONCE).try_collect().await?;
        stage.finish();
        verified.files += files.len();
        faults.into_iter().flatten().for_each(|(at, fault)| verified.damage(at, fault));
        verified.unfinished = unfinished_folders(&archive).chain(unfinished_folders(&datasets)).collect();
        let versions = versions(&datasets).map(|(name, version)| format!("{name}/{version}")).collect();
        verified.difference = self.difference(&runs, &versions).await?;
        Ok(verified)
    }

    /// Compares this machine with the runs and versions in the store; `None` if what this machine has cannot be read.
    async fn difference(
        &self,
        runs: &BTreeSet<String>,
        versions: &BTreeSet<String>,
    ) -> Result<Option<StoreDifference>> {
        let archives = self.archives().await?;
        let here = || -> Result<(BTreeSet<String>, BTreeSet<String>)> {
            let (mut runs, mut versions) = (BTreeSet::new(), BTreeSet::new());
            for service in archives.iter().filter(|service| !file::is_gone(&service.here)) {
                let archive = Archive::open(&service.here)?;
                runs.extend(archive.names_in_folders().into_iter().map(str::to_owned));
            }
            for name in export::names(&self.datasets)? {
                let own = VersionRecord::of_dataset(&self.datasets, &name)?.into_iter();
                versions.extend(own.map(|(_, whole)| format!("{name}/{}", whole.version)));
            }
            Ok((runs, versions))
        };
        let Ok((runs_here, versions_here)) = here() else { return Ok(None) };
        Ok(Some(StoreDifference {
            runs: runs_here.intersection(runs).count(),
            only_here: runs_here.difference(runs).cloned().collect(),
            only_there: runs.difference(&runs_here).cloned().collect(),
            versions: versions_here.intersection(versions).count(),
            versions_only_here: versions_here.difference(versions).cloned().collect(),
            versions_only_there: versions.difference(&versions_here).cloned().collect(),
        }))
    }

    /// The sealed folders. The runs that they hold are added to some, and with those that they know to be gone, to the
    /// `known` ones.
    async fn sealed_folders(
        &self,
        archive: &[Object],
        scope: &VerifyScope,
        (runs, known): (&mut BTreeSet<String>, &mut HashSet<String>),
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
                let (text, place) = (self.store.record(&at, SEAL).await?.unwrap_or_default(), self.store.address(&at));
                if let Err(error) = Forgetting::parse(&text, Path::new(&place)) {
                    verified.damage(&at, fault(error)?);
                }
            }
            let mut seals = Vec::new();
            // One whose record is too short to be one may be being cleared.
            let is_verified = |object: &&Object| *scope == VerifyScope::All || object.may_be_record();
            for name in service.sealed_names(archive.iter().filter(is_verified)) {
                let at = format!("{}/{name}", service.there);
                let seal = match own.get(name) {
                    Some(seal) => {
                        self.compare_size(archive, (&at, SEAL), &service.here.join(name), verified)?;
                        Ok(Some(seal.clone()))
                    }
                    None => self.read_seal(&service, name).await,
                };
                match seal {
                    Ok(Some(seal)) => {
                        folders.push(service.sealed_folder(&seal));
                        runs.extend(seal.runs().map(|run| run.run.clone()));
                        known.extend(seal.runs().flat_map(|run| run.lost.iter().chain([&run.run])).cloned());
                        seals.push(seal);
                    }
                    Ok(None) => {}
                    Err(error) => verified.damage(&at, fault(error)?),
                }
            }
            let at = self.store.address(&service.there);
            verified.faults.extend(contradictions(seals.iter()).into_iter().map(|fault| format!("`{at}`: {fault}")));
        }
        Ok(folders)
    }

    /// The seals that this machine has of a service, by the name of the folder, if they are enough.
    fn own_seals(&self, service: &ServiceArchive, scope: &VerifyScope) -> Result<HashMap<String, Seal>> {
        if *scope == VerifyScope::All || file::is_gone(&service.here) {
            return Ok(HashMap::new());
        }
        let archive = Archive::open(&service.here)?;
        Ok(archive.all_seals().map(|seal| (seal.folder_name(), seal.clone())).collect())
    }

    async fn versions(
        &self,
        datasets: &[Object],
        scope: &VerifyScope,
        known: &HashSet<String>,
        verified: &mut StoreVerified,
    ) -> Result<Vec<Sealed>> {
        let mut folders = Vec::new();
        let mut complete: BTreeMap<&str, Vec<Latest>> = BTreeMap::new();
        let is_read = |object: &&Object| *scope == VerifyScope::All || object.may_be_record();
        for (name, version) in datasets.iter().filter(is_read).filter_map(version_of) {
            let at = format!("{DATASETS}/{name}/{version}");
            let own = if *scope == VerifyScope::Sizes { self.own_version(name, version)? } else { None };
            let read = match own {
                Some((path, whole)) => Ok(Some((Some(path), whole))),
                None => self.read_version(name, version).await.map(|read| read.map(|(_, whole)| (None, whole))),
            };
            let (path, whole) = match read {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(error) => {
                    verified.damage(&at, fault(error)?);
                    continue;
                }
            };
            verified.files += 1;
            if let Some(path) = &path {
                self.compare_size(datasets, (&at, RECORD), path, verified)?;
                self.compare_size(datasets, (&at, FACTS), path, verified)?;
            } else {
                let key = format!("{at}/{FACTS}");
                let found = self.store.read(&key).await?.map(|bytes| digest::of(&bytes));
                if found.as_deref() != Some(&*whole.facts) {
                    let key = self.store.address(&key);
                    verified.damage(&at, format!("`{key}`: it is missing or does not match its checksum"));
                }
            }
            let lacks = whole.runs.iter().filter(|run| !known.contains(*run)).map(|run| {
                let key = self.store.address(&format!("{at}/{RECORD}"));
                format!("`{key}`: it was built from run `{run}`, which is missing")
            });
            verified.faults.extend(lacks);
            complete.entry(name).or_default().push(latest_of(&whole));
            folders.push(Sealed { at, record: RECORD, files: whole.files });
        }
        for name in names_of_datasets(datasets) {
            let complete = complete.get(name).map_or(&[][..], Vec::as_slice);
            if let Some(fault) = self.fault_of_latest(name, complete, datasets).await? {
                verified.damage(&format!("{DATASETS}/{name}/latest.json"), fault);
            }
        }
        Ok(folders)
    }

    /// What is wrong with what names the latest version of a dataset, of which some versions are complete.
    async fn fault_of_latest(&self, name: &str, complete: &[Latest], listed: &[Object]) -> Result<Option<String>> {
        let at = self.store.address(&format!("{DATASETS}/{name}/latest.json"));
        Ok(match self.store.latest(name).await {
            Ok(Some(latest)) => match complete.iter().find(|complete| complete.version == latest.version) {
                Some(expected) if *expected == latest => None,
                Some(_) => Some(format!("`{at}`: it differs from the record of its version")),
                // Another machine published it meanwhile.
                None if self.is_new(name, &latest.version, listed).await? => None,
                None => Some(format!("`{at}`: it names `{}`, which is missing", latest.version)),
            },
            Ok(None) if versions(listed).any(|(of, _)| of == name) => {
                Some(format!("`{at}`: it is missing, so no machine finds the latest version"))
            }
            Ok(None) => None,
            Err(error) => Some(fault(error)?),
        })
    }

    /// Compares the size of an object in a folder with that of a file of this machine, if it has it.
    fn compare_size(
        &self,
        listed: &[Object],
        (at, name): (&str, &str),
        own: &Path,
        verified: &mut StoreVerified,
    ) -> Result<()> {
        let (own, key) = (own.join(name), format!("{at}/{name}"));
        let size = match own.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(FileError::read(&own))?.len(),
        };
        if listed.iter().find(|object| object.key == key).is_none_or(|object| object.bytes != size) {
            verified.damage(at, format!("`{}`: it is missing or has another size", self.store.address(&key)));
        }
        Ok(())
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
    let is_fault = matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Layout);
    if !is_fault {
        return Err(error);
    }
    let reason = std::error::Error::source(&error).map(|reason| format!(": {reason}"));
    Ok(format!("{error}{}", reason.unwrap_or_default()))
}

/// The folders in a listing that have objects and no record.
fn unfinished_folders(listed: &[Object]) -> impl Iterator<Item = String> {
    by_folder(listed.to_vec()).into_iter().filter_map(|(folder, objects)| {
        let record = format!("{folder}/{}", record_of(&folder));
        objects.iter().all(|object| object.key != record || !object.may_be_record()).then_some(folder)
    })
}

impl RemoteStore {
    /// Moves aside what is damaged in the store, and sends what it lacks then. Returns what is wrong afterwards.
    ///
    /// # Errors
    ///
    /// If this machine has damaged files itself, if the store is a folder with links in it, if it does not honour conditional
    /// puts, and any failure of a request.
    pub async fn repair(&self) -> Result<StoreVerified> {
        self.store.probe().await?;
        let (archive, data, control) = (self.archive.clone(), self.data(), self.control.clone());
        let here = blocking(move || inspect(&archive, &data, &control)).await?;
        if let Some((path, _)) = here.damaged.first_key_value() {
            let message = format!("`{}` is damaged, so this machine cannot repair a store", path.display());
            return Err(Error::new(ErrorKind::Damaged, message).with_hint("run `bellwether verify --repair` first"));
        }
        let StoreVerified { mut damaged, difference: before, .. } = self.verify(&VerifyScope::All).await?;
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        for (at, objects) in by_folder([archive?, datasets?].concat()) {
            if let Some(fault) = self.torn(&at, &objects).await? {
                damaged.entry(at).or_insert(fault);
            }
        }
        let name = unique_name(Clock::System.now());
        for at in damaged.keys() {
            match at.ends_with(".json") {
                true => self.store.set_aside(at, &name).await?,
                false => self.store.set_folder_aside(at, record_of(at), &name).await?,
            }
        }
        for service in self.archives().await? {
            // What was built from a forgotten run does not become the latest, on a machine without an archive either.
            self.pull_notes(&service, &self.store.list(&service.there).await?).await?;
        }
        self.push().await?;
        let mut repaired = self.repair_latest(&damaged, &name).await?;
        for (at, fault) in damaged.iter().filter(|(at, _)| !at.ends_with(".json")) {
            repaired.push(match self.store.record(at, record_of(at)).await? {
                Some(_) => self.repaired(RepairKind::Sent, at, fault),
                None => {
                    let next = "this machine does not have it: `bellwether store push` on one that has it sends it";
                    self.repaired(RepairKind::SetAside, at, &format!("{fault}; {next}"))
                }
            });
        }
        let after = self.verify(&VerifyScope::All).await?;
        let lacked = |difference: &Option<StoreDifference>| -> BTreeSet<String> {
            let lists = difference
                .iter()
                .map(|it| (it.only_here.iter().map(|run| format!("run={run}")), &it.versions_only_here));
            lists.flat_map(|(runs, versions)| runs.chain(versions.iter().cloned())).collect()
        };
        for name in lacked(&before).difference(&lacked(&after.difference)) {
            let (kind, reason) = (RepairKind::Sent, "the store lacked it".to_owned());
            repaired.push(Repair { kind, place: name.clone(), reason });
        }
        Ok(StoreVerified { repaired, ..after })
    }

    fn repaired(&self, kind: RepairKind, at: &str, reason: &str) -> Repair {
        Repair { kind, place: self.store.address(at), reason: reason.to_owned() }
    }

    /// What is wrong with an upload that was interrupted, if this machine has what was sent: nothing else can be sent in its
    /// place.
    async fn torn(&self, at: &str, objects: &[Object]) -> Result<Option<String>> {
        let record = record_of(at);
        if objects.iter().any(|object| object.key == format!("{at}/{record}") && object.may_be_record()) {
            return Ok(None);
        }
        let (root, below) = at.split_once('/').unwrap_or_default();
        let folder = if root == ARCHIVE { self.archive.join(below) } else { self.datasets.join(below) };
        if file::is_gone(&folder.join(record)) {
            return Ok(None);
        }
        let text = links::read(&folder.join(record))?;
        let files: Vec<FileRecord> = match record {
            SEAL => Seal::of(&text, &folder)?.files,
            _ => files_of(&folder, &VersionRecord::of_version(&text, &folder)?)?,
        };
        for file in files {
            let key = format!("{at}/{}", file.name);
            if objects.iter().any(|object| object.key == key)
                && let Some(fault) = self.store.fault(&key, &file).await?
            {
                return Ok(Some(format!("`{}`: {fault}", file.name)));
            }
        }
        Ok(None)
    }

    /// Has `latest.json` of each dataset name the newest version that counts, unless it names an intact one and was not
    /// damaged.
    async fn repair_latest(&self, damaged: &BTreeMap<String, String>, repair: &str) -> Result<Vec<Repair>> {
        let mut repaired = Vec::new();
        let listed = self.store.list(DATASETS).await?;
        for name in names_of_datasets(&listed) {
            let at = format!("{DATASETS}/{name}/latest.json");
            let mut intact = Vec::new();
            for (_, version) in versions(&listed).filter(|(of, _)| *of == name) {
                match self.read_version(name, version).await {
                    // It was set aside, and nobody here has it.
                    Err(error) if FileError::is_damage(&error) => {}
                    read => intact.extend(read?.map(|(_, whole)| whole)),
                }
            }
            let latest: Vec<Latest> = intact.iter().map(latest_of).collect();
            let fault = self.fault_of_latest(name, &latest, &listed).await?;
            if fault.is_some() {
                self.store.set_aside(&at, repair).await?;
            }
            let Some(fault) = damaged.get(&at).or(fault.as_ref()) else { continue };
            let newest = newest_that_counts(&self.archive, &intact)?;
            if let Some(newest) = newest {
                self.store.name_latest(&latest_of(newest), None).await?;
            }
            let kind = if newest.is_some() { RepairKind::Rebuilt } else { RepairKind::SetAside };
            repaired.push(self.repaired(kind, &at, fault));
        }
        Ok(repaired)
    }
}
