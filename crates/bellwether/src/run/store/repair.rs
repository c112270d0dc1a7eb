//! Repairs a store from this machine: what is damaged in it is moved aside and sent again by a machine that has the same run
//! or version.
//!
//! A run or version of which this machine has no intact copy is moved aside too, since one damaged file of it would stop
//! every machine that fetches it. Another one that has it sends it again. `latest.json` is made again from the versions.

use std::collections::{BTreeMap, BTreeSet};

use super::push::{files_of, latest_of};
use super::verify::{StoreDifference, StoreVerified, VerifyScope};
use super::{ARCHIVE, DATASETS, RemoteStore, names_of_datasets, versions};
use crate::archive::{SEAL, Seal};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::run::blocking;
use crate::run::forget::newest_that_counts;
use crate::run::verify::{Repair, RepairKind, inspect};
use crate::store::{Latest, Object, by_folder, record_of};
use crate::time::{Clock, unique_name};

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
