//! Sends to the store what only this machine has.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::contents::Listing;
use super::folder::Sealed;
use super::latest::{Latest, second};
use super::ours::clear_staged;
use super::{DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive, TransferCounts, by_basis};
use crate::archive::{Archive, ForgottenCause, SEAL, Seal, open_merged};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::Result;
use crate::export::{self, FACTS, VersionRecord};
use crate::run::observer::Stage;

impl RemoteStore {
    /// Tests that the store honours conditional puts, and sends every run, pack and version that only this machine has.
    /// Clears interrupted uploads that were abandoned for a day.
    ///
    /// # Errors
    ///
    /// If the store does not, if a local file is damaged, and any failure of a request.
    pub async fn push(&self) -> Result<TransferCounts> {
        self.store.probe().await?;
        let mut moved = self.push_archive().await?;
        moved.cleared += self.store.clear_abandoned(&self.store.list(DATASETS).await?).await?.len();
        for name in export::names(&self.datasets())? {
            // Runs begin another history by intent; copies never do.
            let (here, there) = (export::latest(&self.datasets(), Some(&name))?, self.latest_record(&name).await?);
            if let Some(refusal) = of_other_service("the store keeps its", here.as_ref(), there.as_ref()) {
                self.control.warn(&[refusal]);
                moved += self.push_versions(&name).await?;
            } else {
                moved += self.push_dataset(&name).await?.0;
            }
        }
        clear_staged(self.url())?;
        Ok(moved)
    }

    /// Sends the runs and packs that only this machine has, and clears interrupted uploads of others.
    pub(in crate::run) async fn push_archive(&self) -> Result<TransferCounts> {
        let listed = self.list_archives().await?;
        // First, since what was half cleared cannot be sent.
        let cleared = self.store.clear_abandoned(&listed).await?.len();
        let mut moved = TransferCounts { cleared, ..TransferCounts::default() };
        for archive in self.archives(&listed)?.into_iter().filter(|archive| !file::is_gone(&archive.here)) {
            // A version that was built from a forgotten run does not become the latest.
            self.pull_notes(&archive, &listed).await?;
            moved += self.push_missing(&archive, &listed).await?;
        }
        Ok(moved)
    }

    /// Sends the runs, packs, merges and notes that are not in a listing, runs first.
    async fn push_missing(&self, archive: &ServiceArchive, listed: &Listing) -> Result<TransferCounts> {
        let there: HashSet<&str> = listed.complete(&archive.there).collect();
        let here = open_merged(&archive.here, &self.control.stop)?;
        let mut missing: Vec<&Seal> = here.folders_to_share().map(|(_, seal)| seal).collect();
        missing.retain(|seal| !there.contains(&*seal.folder_name()));
        if !missing.is_empty() {
            let packs = self.packs(archive, &here, listed).await?;
            missing.retain(|seal| !packs.iter().any(|pack| holds(pack, seal)));
        }
        let mut moved = TransferCounts { notes: self.push_notes(archive, &here, listed).await?, ..Default::default() };
        if missing.is_empty() {
            return Ok(moved);
        }
        let stage = Stage::of_files(&self.control, "push", missing.iter().map(|seal| seal.files.len()).sum());
        let (packs, runs): (Vec<&Seal>, Vec<&Seal>) =
            missing.into_iter().partition(|seal| seal.is_pack() || seal.is_merge());
        // One after the other: whoever reads meanwhile has what a run is based on.
        for run in by_basis(runs) {
            moved += self.push_folder(archive, run, &stage).await?;
        }
        let packs = packs.into_iter().map(|pack| self.push_folder(archive, pack, &stage));
        let sent: Vec<TransferCounts> = stream::iter(packs).buffer_unordered(FOLDERS_AT_ONCE).try_collect().await?;
        sent.into_iter().for_each(|one| moved += one);
        stage.finish();
        Ok(moved)
    }

    /// The packs in the store, some of whose seals are here. One that is damaged stands for nothing.
    async fn packs(&self, archive: &ServiceArchive, here: &Archive, listed: &Listing) -> Result<Vec<Seal>> {
        let own: HashMap<String, &Seal> = here.all_seals().map(|seal| (seal.folder_name(), seal)).collect();
        let mut packs = Vec::new();
        for name in listed.complete(&archive.there).filter(|name| name.starts_with("pack=")) {
            match own.get(name) {
                Some(seal) => packs.push((*seal).clone()),
                None => match self.known_seal(archive, name).await {
                    Err(error) if FileError::is_damage(&error) => {}
                    seal => packs.extend(seal?),
                },
            }
        }
        Ok(packs)
    }

    /// Sends the notes on forgotten runs that only this machine has, and returns their number. If two machines forget a run,
    /// the first note stays.
    async fn push_notes(&self, archive: &ServiceArchive, here: &Archive, listed: &Listing) -> Result<usize> {
        let there: HashSet<&str> = listed.notes(&archive.there).collect();
        let mut count = 0;
        for forgotten in here.forgotten_runs() {
            if let ForgottenCause::Noted(note) = &forgotten.cause
                && !there.contains(&*note.folder_name())
            {
                let at = format!("{}/{}/{SEAL}", archive.there, note.folder_name());
                self.store.put(&at, note.text().into_bytes().into(), None).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn push_folder(&self, archive: &ServiceArchive, seal: &Seal, stage: &Stage<'_>) -> Result<TransferCounts> {
        let path = archive.here.join(seal.folder_name());
        match self.store.send(&archive.sealed_folder(seal), &path, |bytes| stage.count(0, bytes)).await {
            // It was pruned meanwhile: the pack that has its runs is sent after the runs.
            Err(_) if file::is_gone(&path) => Ok(TransferCounts::default()),
            sent => Ok(TransferCounts { folders: sent?.into(), bytes: seal.bytes(), ..Default::default() }),
        }
    }

    /// Sends the versions of a dataset that only this machine has, and updates `latest.json`. Also returns notes.
    pub(super) async fn push_dataset(&self, name: &str) -> Result<(TransferCounts, Vec<String>)> {
        let (moved, mut notes) = (self.push_versions(name).await?, Vec::new());
        if let Some(latest) = export::latest(&self.datasets(), Some(name))?
            && self.forgotten_run_of(&latest)?.is_none()
        {
            match self.read_version(name, &latest.version).await? {
                Some(_) => notes.extend(self.name_latest(&Latest::from(&latest)).await?),
                None => notes.push(format!(
                    "`{name}/{}` is the latest version here and was pruned from the store, whose `latest.json` stays as it is: \
                     `bellwether build {name}` makes another one",
                    latest.version
                )),
            }
        }
        Ok((moved, notes))
    }

    /// Sends the versions of a dataset that only this machine has.
    async fn push_versions(&self, name: &str) -> Result<TransferCounts> {
        let mut moved = TransferCounts::default();
        let dataset = format!("{DATASETS}/{name}");
        let listed = self.store.list(&dataset).await?;
        let there: HashSet<&str> = listed.complete(&dataset).collect();
        let pruned_before = self.store.pruned_before(name, &listed).await?;
        for (path, whole) in VersionRecord::of_dataset(&self.datasets(), name)? {
            // Of the same second as the oldest that was kept, none was pruned.
            let is_pruned = pruned_before.as_ref().is_some_and(|kept| second(&whole.version) < second(kept));
            if is_pruned || there.contains(&*whole.version) {
                continue;
            }
            match self.push_version(&dataset, &path, &whole).await {
                // A newer version replaced it meanwhile.
                Err(_) if file::is_gone(&path) => {}
                sent => {
                    moved.bytes += sent?;
                    moved.versions += 1;
                }
            }
        }
        Ok(moved)
    }

    /// Sends a version, and returns its size.
    async fn push_version(&self, dataset: &str, path: &Path, whole: &VersionRecord) -> Result<u64> {
        let sealed = Sealed { at: format!("{dataset}/{}", whole.version), files: files_of(path, whole)? };
        let stage = Stage::of_files(&self.control, "push", sealed.files.len());
        self.store.send(&sealed, path, |bytes| stage.count(0, bytes)).await?;
        stage.finish();
        Ok(sealed.bytes())
    }

    /// Makes a version the latest, or returns a note if the store has a later one.
    pub(in crate::run) async fn name_latest(&self, latest: &Latest) -> Result<Option<String>> {
        let mut later = self.store.name_latest(latest, None).await?;
        if let Some(there) = &later
            && let Some((_, whole)) = self.read_version(&there.name, &there.version).await?
            && self.forgotten_run_of(&whole)?.is_some()
        {
            later = self.store.name_latest(latest, Some(&there.version)).await?;
        }
        Ok(later.map(|later| format!("the store has a later version, which stays its latest: `{}`", later.version)))
    }
}

/// The files of a version with their sizes, the facts about its rows last.
pub(super) fn files_of(path: &Path, whole: &VersionRecord) -> Result<Vec<FileRecord>> {
    let (mut files, facts) = (whole.files.clone(), path.join(FACTS));
    let bytes = links::open(&facts)?.metadata().map_err(FileError::read(&facts))?.len();
    files.push(FileRecord { name: FACTS.to_owned(), rows: 0, bytes, blake3: whole.facts.clone() });
    Ok(files)
}

/// Whether a pack stands for a folder: it has each of its runs and merges.
pub(super) fn holds(pack: &Seal, folder: &Seal) -> bool {
    let has = |part: &Seal| pack.parts().iter().any(|own| own.seal == part.seal);
    folder.parts().iter().all(has)
}

/// That the latest versions of a dataset here and in a store are of two services: neither replaces the other.
pub(super) fn of_other_service(
    refused: &str,
    here: Option<&VersionRecord>,
    there: Option<&VersionRecord>,
) -> Option<String> {
    let (here, there) = (here?, there?);
    let (name, ours, theirs) = (&here.name, &here.service, &there.service);
    (ours.name != theirs.name).then(|| {
        format!(
            "{refused} latest version of `{name}`: it is data of the service {ours} here, and of {theirs} in the store; \
             give one of the definitions another name"
        )
    })
}
