//! Sends to the store what only this machine has.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive, TransferCounts, by_basis, versions};
use crate::archive::{Archive, ForgottenCause, SEAL, Seal, open_merged};
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::{Error, Result};
use crate::export::{self, FACTS, RECORD, VersionRecord};
use crate::run::observer::Stage;
use crate::store::{self, Latest, Object, Sealed, Sent};

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
        for name in export::names(&self.datasets)? {
            // Runs begin another history by intent; copies never do.
            let latest = (export::latest(&self.datasets, Some(&name))?, self.latest_record(&name).await?);
            match of_other_service("the store keeps its", latest.0.as_ref(), latest.1.as_ref()) {
                Some(refusal) => {
                    self.control.warn(&[refusal]);
                    moved += self.push_versions(&name).await?;
                }
                None => moved += self.push_dataset(&name).await?.0,
            }
        }
        store::clear_staged(self.store.url())?;
        Ok(moved)
    }

    /// Sends the runs and packs that only this machine has, and clears interrupted uploads of others.
    pub(in crate::run) async fn push_archive(&self) -> Result<TransferCounts> {
        let mut moved = TransferCounts::default();
        for archive in self.archives().await? {
            let listed = self.store.list(&archive.there).await?;
            // First, since what was half cleared cannot be sent.
            moved.cleared += self.store.clear_abandoned(&listed).await?.len();
            if !file::is_gone(&archive.here) {
                // A version that was built from a forgotten run does not become the latest.
                self.pull_notes(&archive, &listed).await?;
                moved += self.push_missing(&archive, &listed).await?;
            }
        }
        Ok(moved)
    }

    /// Sends the runs, packs and merges that are not in a listing, runs first.
    async fn push_missing(&self, archive: &ServiceArchive, listed: &[Object]) -> Result<TransferCounts> {
        let there: HashSet<&str> = archive.whole_names(listed).collect();
        let here = open_merged(&archive.here, &self.control.stop)?;
        let missing = here.folders_to_share().filter(|(_, seal)| !there.contains(seal.folder_name().as_str()));
        let mut missing: Vec<(&Path, &Seal)> = missing.collect();
        if !missing.is_empty() {
            let packed = self.find_packed(archive, here.all_seals(), listed).await?;
            missing.retain(|(_, seal)| !packed.hold(seal));
        }
        let (packs, runs): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|(_, seal)| seal.is_pack() || seal.is_merge());
        let notes = self.push_notes(archive, &here, listed).await?;
        let mut moved = TransferCounts { notes, ..TransferCounts::default() };
        if !(packs.is_empty() && runs.is_empty()) {
            let files = packs.iter().chain(&runs).map(|(_, seal)| seal.files.len()).sum();
            let stage = Stage::of_files(&self.control, "push", files);
            // One after the other: whoever reads meanwhile has what a run is based on.
            for run in by_basis(runs, |(_, seal)| seal) {
                moved += self.push_folders(archive, &[run], &stage).await?;
            }
            moved += self.push_folders(archive, &packs, &stage).await?;
            stage.finish();
        }
        Ok(moved)
    }

    /// What the packs in the store stand for, some of whose seals are here. One that is damaged stands for nothing.
    async fn find_packed<'s>(
        &self,
        archive: &ServiceArchive,
        own: impl Iterator<Item = &'s Seal>,
        listed: &[Object],
    ) -> Result<Packed> {
        let own: HashMap<String, &Seal> = own.map(|seal| (seal.folder_name(), seal)).collect();
        let mut packed = Packed::default();
        for name in archive.whole_names(listed).filter(|name| name.starts_with("pack=")) {
            match own.get(name) {
                Some(seal) => packed.add(seal),
                None => match self.known_seal(archive, name).await {
                    Ok(seal) => seal.iter().for_each(|seal| packed.add(seal)),
                    Err(error) if FileError::is_damage(&error) => {}
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(packed)
    }

    /// Sends the notes on forgotten runs that only this machine has, and returns their number. If two machines forget a run,
    /// the first note stays.
    async fn push_notes(&self, archive: &ServiceArchive, here: &Archive, listed: &[Object]) -> Result<usize> {
        let there: HashSet<&str> = archive.note_names(listed).collect();
        let mut count = 0;
        for forgotten in here.forgotten_runs() {
            let ForgottenCause::Noted(note) = &forgotten.cause else { continue };
            if !there.contains(note.folder_name().as_str()) {
                let at = format!("{}/{}/{SEAL}", archive.there, note.folder_name());
                self.store.put_if_absent(&at, note.text().into_bytes()).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn push_folders(
        &self,
        archive: &ServiceArchive,
        folders: &[(&Path, &Seal)],
        stage: &Stage<'_>,
    ) -> Result<TransferCounts> {
        let sent = folders.iter().map(|(path, seal)| async move {
            let sent = match self.store.send(&archive.sealed_folder(seal), path, |bytes| stage.count(0, bytes)).await {
                // It was pruned meanwhile: the pack that has its runs is sent after the runs.
                Err(_) if file::is_gone(path) => return Ok(TransferCounts::default()),
                sent => sent?,
            };
            let folders = usize::from(sent == Sent::Now);
            Ok::<_, Error>(TransferCounts { folders, bytes: seal.bytes(), ..TransferCounts::default() })
        });
        let sent: Vec<TransferCounts> = stream::iter(sent).buffer_unordered(FOLDERS_AT_ONCE).try_collect().await?;
        let mut all = TransferCounts::default();
        sent.into_iter().for_each(|one| all += one);
        Ok(all)
    }

    /// Sends the versions of a dataset that only this machine has, and updates `latest.json`. Also returns notes.
    pub(super) async fn push_dataset(&self, name: &str) -> Result<(TransferCounts, Vec<String>)> {
        let (moved, mut notes) = (self.push_versions(name).await?, Vec::new());
        if let Some(latest) = export::latest(&self.datasets, Some(name))?
            && self.forgotten_run_of(&latest)?.is_none()
        {
            match self.read_version(name, &latest.version).await? {
                Some(_) => notes.extend(self.name_latest(&latest_of(&latest)).await?),
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
        let listed = self.store.list(&format!("{DATASETS}/{name}")).await?;
        let complete: HashSet<&str> = versions(&listed).map(|(_, version)| version).collect();
        let pruned_before = self.store.pruned_before(name, &listed).await?;
        for (path, whole) in VersionRecord::of_dataset(&self.datasets, name)? {
            let is_pruned = pruned_before.as_ref().is_some_and(|pruned| pruned.covers(&whole.version));
            if is_pruned || complete.contains(whole.version.as_str()) {
                continue;
            }
            let pushed = async {
                let at = format!("{DATASETS}/{name}/{}", whole.version);
                self.push_version(&path, &Sealed { at, record: RECORD, files: files_of(&path, &whole)? }).await
            };
            match pushed.await {
                // A newer version replaced it meanwhile.
                Err(_) if file::is_gone(&path) => {}
                sent => moved += sent?,
            }
        }
        Ok(moved)
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
        let note =
            |later: Latest| format!("the store has a later version, which stays its latest: `{}`", later.version);
        Ok(later.map(note))
    }

    async fn push_version(&self, path: &Path, sealed: &Sealed) -> Result<TransferCounts> {
        let stage = Stage::of_files(&self.control, "push", sealed.files.len());
        let bytes = sealed.files.iter().map(|file| file.bytes).sum();
        self.store.send(sealed, path, |bytes| stage.count(0, bytes)).await?;
        stage.finish();
        Ok(TransferCounts { versions: 1, bytes, ..TransferCounts::default() })
    }
}

/// The files of a version with their sizes, the facts about its rows last.
pub(super) fn files_of(path: &Path, whole: &VersionRecord) -> Result<Vec<FileRecord>> {
    let (mut files, facts) = (whole.files.clone(), path.join(FACTS));
    let bytes = links::open(&facts)?.metadata().map_err(FileError::read(&facts))?.len();
    files.push(FileRecord { name: FACTS.to_owned(), rows: 0, bytes, blake3: whole.facts.clone() });
    Ok(files)
}

/// What some packs stand for.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// The seals of the runs and merges in each pack.
    packs: Vec<HashSet<String>>,
    /// The names of these.
    names: HashSet<String>,
}

impl Packed {
    pub(super) fn of<'s>(packs: impl Iterator<Item = &'s Seal>) -> Self {
        let mut packed = Self::default();
        packs.for_each(|pack| packed.add(pack));
        packed
    }

    fn add(&mut self, pack: &Seal) {
        self.packs.push(pack.parts().iter().map(|part| part.seal.clone()).collect());
        self.names.extend(pack.parts().iter().map(|part| part.run.clone()));
    }

    /// Whether one of the packs stands for a folder.
    pub(super) fn hold(&self, folder: &Seal) -> bool {
        self.packs.iter().any(|pack| folder.parts().iter().all(|part| pack.contains(&part.seal)))
    }

    /// Whether one of the packs stands for another pack, and for more.
    pub(super) fn hold_more_than(&self, other: &Seal) -> bool {
        let parts = other.parts();
        self.packs.iter().any(|pack| pack.len() > parts.len() && parts.iter().all(|part| pack.contains(&part.seal)))
    }

    /// Whether a run or merge of this name is in one of the packs.
    pub(super) fn name(&self, run: &str) -> bool {
        self.names.contains(run)
    }
}

/// That the latest versions of a dataset here and in a store are of two services: neither replaces the other.
pub(super) fn of_other_service(
    refused: &str,
    here: Option<&VersionRecord>,
    there: Option<&VersionRecord>,
) -> Option<String> {
    let (here, there) = (here?, there?);
    let (ours, theirs) = (&here.service, &there.service);
    (ours.name != theirs.name).then(|| {
        format!(
            "{refused} latest version of `{name}`: it is data of the service {ours} here, and of {theirs} in the store; \
             give one of the definitions another name",
            name = here.name
        )
    })
}

/// What names a version as the latest of its dataset.
pub(super) fn latest_of(recorded: &VersionRecord) -> Latest {
    let VersionRecord { name, version, as_of, built_at, content, .. } = recorded;
    Latest::new(name, version, (*as_of, *built_at), content)
}
