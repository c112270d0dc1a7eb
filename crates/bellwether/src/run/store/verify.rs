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

use super::contents::Listing;
use super::folder::{Sealed, differs_in_size};
use super::latest::{Latest, latest_of};
use super::objects::MAX_BYTES;
use super::ours::{record_name, record_of};
use super::push::files_of;
use super::{ARCHIVE, DATASETS, RemoteStore};
use crate::archive::{Archive, Forgetting, SEAL, Seal, contradictions, with_source};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::{digest, links};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, FACTS, RECORD, VersionRecord};
use crate::run::blocking;
use crate::run::forget::newest_that_counts;
use crate::run::observer::Stage;
use crate::run::verify::{Repair, RepairKind, inspect};
use crate::time::{Clock, unique_name};

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

/// A verification in progress.
struct Verification<'l> {
    scope: VerifyScope,
    listed: &'l Listing,
    verified: StoreVerified,
    /// The folders with files to compare.
    folders: Vec<Sealed>,
    /// The runs in the store.
    runs: BTreeSet<String>,
    /// These, and the runs that are known to be gone.
    known: HashSet<String>,
}

impl Verification<'_> {
    /// Adds a fault of a folder, or of a single object.
    fn damage(&mut self, at: &str, fault: String) {
        self.verified.damaged.entry(at.to_owned()).or_insert_with(|| fault.clone());
        self.verified.faults.push(fault);
    }
}

/// The message for a damaged record; any other failure ends the verification.
fn fault_of(error: Error) -> Result<String> {
    match error.kind() {
        ErrorKind::Damaged | ErrorKind::Layout => Ok(with_source(&error)),
        _ => Err(error),
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
        let listed = &self.inventory().await?;
        let unfinished = listed.folders().into_iter().filter(|(_, folder)| !folder.is_complete);
        let unfinished = unfinished.map(|(at, _)| at.to_owned()).collect();
        let mut verification = Verification {
            scope: *scope,
            listed,
            verified: StoreVerified { url: self.url().to_string(), unfinished, ..StoreVerified::default() },
            folders: Vec::new(),
            runs: BTreeSet::new(),
            known: HashSet::new(),
        };
        self.verify_seals(&mut verification).await?;
        self.verify_versions(&mut verification).await?;
        let folders = std::mem::take(&mut verification.folders);
        let files: Vec<(&Sealed, &FileRecord)> =
            folders.iter().flat_map(|folder| folder.files.iter().map(move |file| (folder, file))).collect();
        let stage = Stage::of_files(&self.control, "verify", files.len());
        let faults = files.iter().map(|(folder, file)| async {
            let key = format!("{}/{}", folder.at, file.name);
            let fault = match (scope, listed.0.get(&key)) {
                (VerifyScope::All, _) => self.store.fault(&key, file).await?,
                (VerifyScope::Sizes, None) => Some("it is missing".to_owned()),
                (VerifyScope::Sizes, Some(object)) => {
                    (object.bytes != file.bytes).then(|| differs_in_size(object.bytes, file))
                }
            };
            stage.count(0, file.bytes);
            Ok::<_, Error>(fault.map(|fault| (&folder.at, format!("`{}`: {fault}", self.store.address(&key)))))
        });
        let faults: Vec<Option<(&String, String)>> = stream::iter(faults).buffered(8).try_collect().await?;
        stage.finish();
        verification.verified.files += files.len();
        faults.into_iter().flatten().for_each(|(at, fault)| verification.damage(at, fault));
        let Verification { mut verified, runs, .. } = verification;
        verified.difference = self.difference(&runs, listed)?;
        Ok(verified)
    }

    /// Compares this machine with the runs and versions in the store; `None` if what this machine has cannot be read.
    fn difference(&self, runs: &BTreeSet<String>, listed: &Listing) -> Result<Option<StoreDifference>> {
        let archives = self.archives(listed)?;
        let here = || -> Result<(BTreeSet<String>, BTreeSet<String>)> {
            let (mut runs, mut versions) = (BTreeSet::new(), BTreeSet::new());
            for service in archives.iter().filter(|service| !file::is_gone(&service.here)) {
                let archive = Archive::open(&service.here)?;
                runs.extend(archive.names_in_folders().into_iter().map(str::to_owned));
            }
            for name in export::names(&self.datasets())? {
                let own = VersionRecord::of_dataset(&self.datasets(), &name)?.into_iter();
                versions.extend(own.map(|(_, whole)| format!("{name}/{}", whole.version)));
            }
            Ok((runs, versions))
        };
        let Ok((runs_here, versions_here)) = here() else { return Ok(None) };
        let complete = listed.folders().into_iter().filter(|(_, folder)| folder.is_complete);
        let versions = complete.filter_map(|(at, _)| Some(at.strip_prefix("datasets/")?.to_owned()));
        let versions: BTreeSet<String> = versions.collect();
        Ok(Some(StoreDifference {
            runs: runs_here.intersection(runs).count(),
            only_here: runs_here.difference(runs).cloned().collect(),
            only_there: runs.difference(&runs_here).cloned().collect(),
            versions: versions_here.intersection(&versions).count(),
            versions_only_here: versions_here.difference(&versions).cloned().collect(),
            versions_only_there: versions.difference(&versions_here).cloned().collect(),
        }))
    }

    /// Verifies the seals and notes of every service.
    async fn verify_seals(&self, verification: &mut Verification<'_>) -> Result<()> {
        let listed = verification.listed;
        for service in self.archives(listed)? {
            let is_by_size = verification.scope == VerifyScope::Sizes && !file::is_gone(&service.here);
            let here = is_by_size.then(|| Archive::open(&service.here)).transpose()?;
            let own = here.iter().flat_map(Archive::all_seals).map(|seal| (seal.folder_name(), seal));
            let own: HashMap<String, &Seal> = own.collect();
            for name in listed.notes(&service.there) {
                verification.known.extend(name.strip_prefix("forgotten=").map(str::to_owned));
                let at = format!("{}/{name}", service.there);
                let text = self.store.record(&at).await?.unwrap_or_default();
                if let Err(error) = Forgetting::parse(&text, Path::new(&self.store.address(&at))) {
                    verification.damage(&at, fault_of(error)?);
                }
            }
            let mut seals = Vec::new();
            for name in listed.recorded(&service.there) {
                let at = format!("{}/{name}", service.there);
                let own = own.get(name).map(|seal| (service.here.join(name).join(SEAL), (*seal).clone()));
                let Some((seal, _)) = self.verify_record(&at, own, Seal::of, verification).await? else { continue };
                verification.folders.push(service.sealed_folder(&seal));
                verification.runs.extend(seal.runs().map(|run| run.run.clone()));
                verification.known.extend(seal.runs().flat_map(|run| run.lost.iter().chain([&run.run])).cloned());
                seals.push(seal);
            }
            let at = self.store.address(&service.there);
            let faults = contradictions(seals.iter()).into_iter().map(|fault| format!("`{at}`: {fault}"));
            verification.verified.faults.extend(faults);
        }
        Ok(())
    }

    /// The record of a folder, and whether it is in the store alone; `None` if it is damaged, or none. One that this machine
    /// has is not read from the store: its size is compared.
    async fn verify_record<T>(
        &self,
        at: &str,
        own: Option<(PathBuf, T)>,
        parse: impl Fn(&[u8], &Path) -> Result<T>,
        verification: &mut Verification<'_>,
    ) -> Result<Option<(T, bool)>> {
        // One that is too short to be one may be being cleared.
        if let Some((path, record)) = own.filter(|_| verification.listed.has_record(at)) {
            self.compare_size(&record_of(at), &path, verification)?;
            return Ok(Some((record, false)));
        }
        match self.read_record(at, parse).await {
            Ok(read) => Ok(read.map(|(_, record)| (record, true))),
            Err(error) => {
                verification.damage(at, fault_of(error)?);
                Ok(None)
            }
        }
    }

    /// Verifies the records of versions, their facts, and what names the latest of each dataset.
    async fn verify_versions(&self, verification: &mut Verification<'_>) -> Result<()> {
        let listed = verification.listed;
        for name in listed.datasets() {
            let (dataset, mut complete) = (format!("{DATASETS}/{name}"), Vec::new());
            for version in listed.recorded(&dataset) {
                let (at, path) = (format!("{dataset}/{version}"), self.datasets().join(name).join(version));
                let own = if verification.scope == VerifyScope::Sizes { own_version(&path)? } else { None };
                let own = own.map(|whole| (path.join(RECORD), whole));
                let read = self.verify_record(&at, own, VersionRecord::of_version, verification).await?;
                let Some((whole, is_read)) = read else { continue };
                verification.verified.files += 1;
                let facts = format!("{at}/{FACTS}");
                if is_read {
                    let content = self.store.get(&facts, MAX_BYTES).await?;
                    if content.is_none_or(|content| digest::of(&content.bytes) != whole.facts) {
                        let facts = self.store.address(&facts);
                        verification.damage(&at, format!("`{facts}`: it is missing or does not match its checksum"));
                    }
                } else {
                    self.compare_size(&facts, &path.join(FACTS), verification)?;
                }
                let record = self.store.address(&record_of(&at));
                for run in whole.runs.iter().filter(|run| !verification.known.contains(*run)) {
                    let fault = format!("`{record}`: it was built from run `{run}`, which is missing");
                    verification.verified.faults.push(fault);
                }
                complete.push(Latest::from(&whole));
                verification.folders.push(Sealed { at, files: whole.files });
            }
            if let Some(fault) = self.fault_of_latest(name, &complete, listed).await? {
                verification.damage(&latest_of(name), fault);
            }
        }
        Ok(())
    }

    /// What is wrong with what names the latest version of a dataset, of which some versions are complete.
    async fn fault_of_latest(&self, name: &str, complete: &[Latest], listed: &Listing) -> Result<Option<String>> {
        let fault = match self.store.latest(name).await {
            Ok(Some(latest)) => match complete.iter().find(|complete| complete.version == latest.version) {
                Some(expected) if *expected == latest => return Ok(None),
                Some(_) => "it differs from the record of its version".to_owned(),
                None => {
                    let is_listed = listed.has_record(&format!("{DATASETS}/{name}/{}", latest.version));
                    let read = if is_listed { Ok(None) } else { self.read_version(name, &latest.version).await };
                    match read {
                        Err(error) if !FileError::is_damage(&error) => return Err(error),
                        // Another machine published it meanwhile.
                        Ok(Some(_)) => return Ok(None),
                        _ => format!("it names `{}`, which is missing", latest.version),
                    }
                }
            },
            Ok(None) if listed.complete(&format!("{DATASETS}/{name}")).next().is_some() => {
                "it is missing, so no machine finds the latest version".to_owned()
            }
            Ok(None) => return Ok(None),
            Err(error) => return fault_of(error).map(Some),
        };
        Ok(Some(format!("`{}`: {fault}", self.store.address(&latest_of(name)))))
    }

    /// Compares the size of an object in a folder with that of a file of this machine, if it has it.
    fn compare_size(&self, key: &str, own: &Path, verification: &mut Verification<'_>) -> Result<()> {
        let size = match own.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(FileError::read(own))?.len(),
        };
        if verification.listed.0.get(key).is_none_or(|object| object.bytes != size) {
            let fault = format!("`{}`: it is missing or has another size", self.store.address(key));
            verification.damage(key.rsplit_once('/').map_or(key, |(at, _)| at), fault);
        }
        Ok(())
    }

    /// Moves aside what is damaged in the store, and sends what it lacks then. Returns what is wrong afterwards.
    ///
    /// # Errors
    ///
    /// If this machine has damaged files itself, if the store is a folder with links in it, if it does not honour conditional
    /// puts, and any failure of a request.
    pub async fn repair(&self) -> Result<StoreVerified> {
        self.store.probe().await?;
        let (archive, data, control) = (self.archive.clone(), self.data.clone(), self.control.clone());
        let here = blocking(move || inspect(&archive, &data, &control)).await?;
        if let Some((path, _)) = here.damaged.first_key_value() {
            let message = format!("`{}` is damaged, so this machine cannot repair a store", path.display());
            return Err(Error::new(ErrorKind::Damaged, message).with_hint("run `bellwether verify --repair` first"));
        }
        let StoreVerified { mut damaged, difference: before, .. } = self.verify(&VerifyScope::All).await?;
        let listed = self.inventory().await?;
        for (at, _) in listed.folders().into_iter().filter(|(_, folder)| !folder.is_complete) {
            if let Some(fault) = self.torn(at, &listed).await? {
                damaged.entry(at.to_owned()).or_insert(fault);
            }
        }
        let name = unique_name(Clock::System.now());
        for at in damaged.keys() {
            match at.ends_with(".json") {
                true => self.store.set_aside(at, &name).await?,
                false => self.store.set_folder_aside(at, &name).await?,
            }
        }
        let archives = self.list_archives().await?;
        for service in self.archives(&archives)? {
            // What was built from a forgotten run does not become the latest, on a machine without an archive either.
            self.pull_notes(&service, &archives).await?;
        }
        self.push().await?;
        let mut repaired = self.repair_latest(&damaged, &name).await?;
        for (at, fault) in damaged.iter().filter(|(at, _)| !at.ends_with(".json")) {
            repaired.push(match self.store.record(at).await? {
                Some(_) => self.repaired(RepairKind::Sent, at, fault),
                None => {
                    let next = "this machine does not have it: `bellwether store push` on one that has it sends it";
                    self.repaired(RepairKind::SetAside, at, &format!("{fault}; {next}"))
                }
            });
        }
        let after = self.verify(&VerifyScope::All).await?;
        let lacked = |difference: &Option<StoreDifference>| -> BTreeSet<String> {
            let Some(difference) = difference else { return BTreeSet::new() };
            let runs = difference.only_here.iter().map(|run| format!("run={run}"));
            runs.chain(difference.versions_only_here.iter().cloned()).collect()
        };
        for place in lacked(&before).difference(&lacked(&after.difference)).cloned() {
            repaired.push(Repair { kind: RepairKind::Sent, place, reason: "the store lacked it".to_owned() });
        }
        Ok(StoreVerified { repaired, ..after })
    }

    fn repaired(&self, kind: RepairKind, at: &str, reason: &str) -> Repair {
        Repair { kind, place: self.store.address(at), reason: reason.to_owned() }
    }

    /// What is wrong with an upload that was interrupted, if this machine has what was sent: nothing else can be sent in its
    /// place.
    async fn torn(&self, at: &str, listed: &Listing) -> Result<Option<String>> {
        let folder = match at.split_once('/') {
            Some((ARCHIVE, below)) => self.archive.join(below),
            _ => self.data.join(at),
        };
        let Some(text) = own_record(&folder.join(record_name(at)))? else { return Ok(None) };
        let files = match at.starts_with(ARCHIVE) {
            true => Seal::of(&text, &folder)?.files,
            false => files_of(&folder, &VersionRecord::of_version(&text, &folder)?)?,
        };
        for file in files {
            let key = format!("{at}/{}", file.name);
            if listed.0.contains_key(&key)
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
        for name in listed.datasets() {
            let (at, mut intact) = (latest_of(name), Vec::new());
            for version in listed.complete(&format!("{DATASETS}/{name}")) {
                match self.read_version(name, version).await {
                    // It was set aside, and nobody here has it.
                    Err(error) if FileError::is_damage(&error) => {}
                    read => intact.extend(read?.map(|(_, whole)| whole)),
                }
            }
            let latest: Vec<Latest> = intact.iter().map(Latest::from).collect();
            let fault = self.fault_of_latest(name, &latest, &listed).await?;
            if fault.is_some() {
                self.store.set_aside(&at, repair).await?;
            }
            let Some(fault) = damaged.get(&at).or(fault.as_ref()) else { continue };
            let mut kind = RepairKind::SetAside;
            if let Some(newest) = newest_that_counts(&self.archive, &intact)? {
                self.store.name_latest(&Latest::from(newest), None).await?;
                kind = RepairKind::Rebuilt;
            }
            repaired.push(self.repaired(kind, &at, fault));
        }
        Ok(repaired)
    }
}

/// A record of this machine; `None` if it has none.
fn own_record(path: &Path) -> Result<Option<Vec<u8>>> {
    match links::read(path) {
        Err(error) if FileError::is_missing(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// The record of a version of this machine; `None` if it has none.
fn own_version(path: &Path) -> Result<Option<VersionRecord>> {
    own_record(&path.join(RECORD))?.map(|text| VersionRecord::of_version(&text, path)).transpose()
}
