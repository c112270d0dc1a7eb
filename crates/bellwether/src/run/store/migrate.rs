//! Migrates a store of an older layout: fetches its old runs, migrates them together with those of this machine, and
//! sends the result. The old objects stay until they are removed on request.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ARCHIVE, RemoteStore, TransferCounts, VerifyScope};
use crate::archive::{self, IncomingLegacy, LegacySeal, SEAL};
use crate::disk::names::{PACK_FOLDER, RUN_FOLDER, fits};
use crate::error::Result;
use crate::run::blocking::blocking;
use crate::run::migrate::{MigrateMode, MigrateOptions, Migration, migrate, migrate_with};
use crate::run::stage::Stage;
use crate::store::{Object, Sealed, StoreError};

/// The most seals read, or folders fetched, at once.
const AT_ONCE: usize = 4;

/// An old folder in a store.
#[derive(Clone, Debug)]
struct OldFolder {
    /// Its key.
    at: String,
    seal: LegacySeal,
    /// The text of its seal.
    text: Vec<u8>,
}

/// What became of a store of an older layout.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StoreMigration {
    /// What was migrated of the runs of the store and of this machine.
    #[serde(flatten)]
    pub migration: Migration,
    /// What was sent to the store.
    pub sent: TransferCounts,
    /// The number of old folders that are in the store, were removed from it, or would be.
    pub old: usize,
}

impl RemoteStore {
    /// Refuses a store with runs of an older layout that are not migrated.
    pub(super) async fn refuse_older(&self) -> Result<()> {
        if !self.store.names(ARCHIVE).await?.iter().any(|name| is_older(name)) {
            return Ok(());
        }
        let listed = self.store.list(ARCHIVE).await?;
        let new: HashSet<&str> = listed.iter().filter_map(new_folder).collect();
        let left = older(&listed)
            .into_iter()
            .filter(|name| new.is_empty() || (name.starts_with("run=") && !new.contains(name)));
        match left.count() {
            0 => Ok(()),
            folders => Err(StoreError::Older { url: self.url().to_string(), folders }.into()),
        }
    }

    /// Migrates the runs of layout 9 in the store, together with those of this machine, and sends them. If it was
    /// interrupted, it continues.
    ///
    /// # Errors
    ///
    /// As for the archive of a machine; if a folder in the store is damaged, and any failure of a request.
    pub async fn migrate(&self, options: &MigrateOptions) -> Result<StoreMigration> {
        let listed = self.store.list(ARCHIVE).await?;
        let names = older(&listed);
        let seals = names.iter().map(|name| self.old_folder(name));
        let folders: Vec<OldFolder> = stream::iter(seals).buffered(AT_ONCE).try_collect().await?;
        let old = folders.len();
        let (at, stop) = (self.archive.clone(), self.control.stop.clone());
        let known = blocking(move || archive::known_seals(&at, &stop)).await?;
        let wanted = folders_to_migrate(folders.clone(), &known);
        if options.mode == MigrateMode::List {
            let (options, control) = (options.clone(), self.control.clone());
            let seals: Vec<LegacySeal> = wanted.into_iter().map(|folder| folder.seal).collect();
            let migration = blocking(move || migrate_with(&options, &seals, &control)).await?;
            return Ok(StoreMigration { migration, sent: TransferCounts::default(), old });
        }
        self.fetch_old(&wanted).await?;
        // This machine keeps its copy until the old objects are gone.
        let keeping = MigrateOptions { mode: MigrateMode::Keep, ..options.clone() };
        let control = self.control.clone();
        let mut migration = blocking(move || migrate(&keeping, &control)).await?;
        let sent = self.push_archives(self.archives_of_all().await?).await?;
        if options.mode == MigrateMode::Remove {
            if let Some(fault) = self.verify(&VerifyScope::All).await?.faults.into_iter().next() {
                return Err(self.store.damage(ARCHIVE, fault).into());
            }
            for folder in &folders {
                self.store.remove_older(&folder.at).await?;
            }
            let (options, control) = (options.clone(), self.control.clone());
            let removed = blocking(move || migrate(&options, &control)).await?;
            (migration.kept, migration.removed) = (removed.kept, removed.removed || old > 0);
        }
        Ok(StoreMigration { migration, sent, old })
    }

    async fn old_folder(&self, name: &str) -> Result<OldFolder> {
        let at = format!("{ARCHIVE}/{name}");
        let path = PathBuf::from(self.store.address(&at));
        let text = self.store.record(&at, SEAL).await?;
        let text = text.ok_or_else(|| self.store.damage(&at, "its record is gone"))?.to_vec();
        Ok(OldFolder { seal: LegacySeal::of(&text, &path)?, at, text })
    }

    /// Fetches old folders to the folder of what was migrated.
    async fn fetch_old(&self, wanted: &[OldFolder]) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let files = wanted.iter().map(|folder| folder.seal.files.len()).sum();
        let stage = Stage::of_files(&self.control, "pull", files);
        let fetched = wanted.iter().map(|folder| self.fetch_folder(folder, &self.archive, &stage));
        stream::iter(fetched).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        stage.finish();
        Ok(())
    }

    async fn fetch_folder(&self, folder: &OldFolder, archive: &Path, stage: &Stage<'_>) -> Result<()> {
        let incoming = IncomingLegacy::begin(archive, &folder.seal)?;
        let sealed = Sealed { at: folder.at.clone(), record: SEAL, files: folder.seal.files.clone() };
        self.store.fetch(&sealed, incoming.path(), |bytes| stage.count(0, bytes)).await?;
        incoming.finish(&folder.seal, &folder.text)
    }
}

/// The folders that have a run that is not known yet, those with the most runs first.
fn folders_to_migrate(mut folders: Vec<OldFolder>, known: &HashSet<String>) -> Vec<OldFolder> {
    let mut known = known.clone();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.seal.runs().count()));
    folders.retain(|folder| {
        let is_wanted = folder.seal.runs().any(|(_, seal)| !known.contains(seal));
        if is_wanted {
            known.extend(folder.seal.runs().map(|(_, seal)| seal.to_owned()));
        }
        is_wanted
    });
    folders
}

fn is_older(name: &str) -> bool {
    fits(name, RUN_FOLDER) || fits(name, PACK_FOLDER)
}

/// The names of the old folders in a listing that have a record.
fn older(listed: &[Object]) -> Vec<&str> {
    listed.iter().filter(|object| object.may_be_record()).filter_map(|object| old_name(&object.key)).collect()
}

fn old_name(key: &str) -> Option<&str> {
    key.strip_prefix("archive/")?.strip_suffix("/run.json").filter(|name| is_older(name))
}

/// The name of a folder in the archive of a service, by its record.
fn new_folder(object: &Object) -> Option<&str> {
    let (_service, folder) = object.key.strip_prefix("archive/")?.strip_suffix("/run.json")?.split_once('/')?;
    Some(folder).filter(|_| object.may_be_record())
}
