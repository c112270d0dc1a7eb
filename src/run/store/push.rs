//! Sends to the store what only this machine has.

use std::collections::HashSet;
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{DATASETS, RemoteStore, ServiceArchive, TransferCounts};
use crate::archive::{Seal, open_merged};
use crate::error::{Error, Result};
use crate::export::{self, FACTS, RECORD, RecordedVersion};
use crate::file::{self, FileRecord};
use crate::report;
use crate::run::stage::Stage;
use crate::store::{self, Latest, Object, Sealed, Sent};

/// The most folders in transfer at once.
const FOLDERS_AT_ONCE: usize = 4;

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
        for name in export::names(&self.datasets)? {
            moved += self.push_dataset(&name).await?.0;
        }
        moved.cleared += self.store.clear_abandoned(&self.store.list(DATASETS).await?).await?.len();
        store::clear_staged(self.store.url())?;
        Ok(moved)
    }

    /// Sends the runs and packs that only this machine has, and clears interrupted uploads of others.
    pub(in crate::run) async fn push_archive(&self) -> Result<TransferCounts> {
        self.push_archives(self.archives().await?).await
    }

    /// The same for the archives of some services.
    pub(super) async fn push_archives(&self, archives: Vec<ServiceArchive>) -> Result<TransferCounts> {
        let mut moved = TransferCounts::default();
        for archive in archives {
            let listed = self.store.list(&archive.there).await?;
            if archive.here.exists() {
                moved += self.push_missing(&archive, &listed).await?;
            }
            moved.cleared += self.store.clear_abandoned(&listed).await?.len();
        }
        Ok(moved)
    }

    /// Sends the runs, packs and merges that are not in a listing, runs first.
    async fn push_missing(&self, archive: &ServiceArchive, listed: &[Object]) -> Result<TransferCounts> {
        let there: HashSet<&str> = archive.sealed_names(listed).collect();
        let here = open_merged(&archive.here, &self.control.stop)?;
        let missing = here.shared().filter(|(_, seal)| !there.contains(seal.folder_name().as_str()));
        let (packs, runs): (Vec<_>, Vec<_>) = missing.partition(|(_, seal)| seal.is_pack() || seal.is_merge());
        let mut moved = TransferCounts::default();
        if !(packs.is_empty() && runs.is_empty()) {
            let files = packs.iter().chain(&runs).map(|(_, seal)| seal.files.len()).sum();
            let stage = Stage::of_files(&self.control, "push", files);
            for folders in [runs, packs] {
                moved += self.push_folders(archive, &folders, &stage).await?;
            }
            stage.finish();
        }
        Ok(moved)
    }

    async fn push_folders(
        &self,
        archive: &ServiceArchive,
        folders: &[(&Path, &Seal)],
        stage: &Stage<'_>,
    ) -> Result<TransferCounts> {
        let sent = folders.iter().map(|(path, seal)| async move {
            let sent = match self.store.send(&archive.sealed(seal), path, |bytes| stage.done(0, bytes)).await {
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
        let (mut moved, mut notes) = (TransferCounts::default(), Vec::new());
        for (path, whole) in RecordedVersion::of_dataset(&self.datasets, name)? {
            let at = format!("{DATASETS}/{name}/{}", whole.recorded.version);
            if self.store.record(&at, RECORD).await?.is_none() {
                match self.push_version(&path, &whole, at).await {
                    // A newer version replaced it meanwhile.
                    Err(_) if file::is_gone(&path) => {}
                    sent => moved += sent?,
                }
            }
        }
        if let Some(latest) = export::latest(&self.datasets, Some(name))? {
            let instants = (latest.as_of, latest.built_at);
            notes.extend(self.name_latest(&Latest::new(name, &latest.version, instants, &latest.content)).await?);
        }
        Ok((moved, notes))
    }

    /// Makes a version the latest, or returns a note if the store has a later one.
    pub(in crate::run) async fn name_latest(&self, latest: &Latest) -> Result<Option<String>> {
        let later = self.store.name_latest(latest).await?;
        let note =
            |later: Latest| format!("the store has a later version, which stays its latest: `{}`", later.version);
        Ok(later.map(note))
    }

    async fn push_version(&self, path: &Path, whole: &RecordedVersion, at: String) -> Result<TransferCounts> {
        let mut files = whole.files.clone();
        for name in [FACTS, report::FILE] {
            let file = path.join(name);
            if file.is_file() {
                files.push(FileRecord::of(&file, name, 0, &self.control.stop)?);
            }
        }
        let stage = Stage::of_files(&self.control, "push", files.len());
        let bytes = files.iter().map(|file| file.bytes).sum();
        self.store.send(&Sealed { at, record: RECORD, files }, path, |bytes| stage.done(0, bytes)).await?;
        stage.finish();
        Ok(TransferCounts { versions: 1, bytes, ..TransferCounts::default() })
    }
}
