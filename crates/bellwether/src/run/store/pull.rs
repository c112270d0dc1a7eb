//! Fetches from the store what this machine does not have; and which store that is.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, future, stream};

use super::push::of_other_service;
use super::{DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive, TransferCounts, by_basis, versions};
use crate::archive::{self, Archive, Forgetting, HiddenFolder, SEAL, Seal};
use crate::disk::digest;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names::{FORGOTTEN_FOLDER, MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits, is_dataset};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, FACTS, IncomingVersion, Linking, RECORD, VersionRecord};
use crate::plan::{Plan, StoreUrl};
use crate::run::AsOf;
use crate::run::observer::Stage;
use crate::store::{Object, Sealed};
use crate::time::Clock;

/// The most records read at once.
const RECORDS_AT_ONCE: usize = 8;

/// The most times that the store is listed while others prune it.
const MOST_LOOKS: u32 = 5;

/// The folder in an archive that caches the seals of packs in the store. Seals never change.
const SEALS: &str = ".seals";

/// The variable with the address of a store.
const VARIABLE: &str = "BELLWETHER_STORE";

/// What is read, which may only be in a store.
#[derive(Clone, Copy, Debug)]
pub enum FetchItem<'a> {
    /// The runs that started by an instant, or all of them.
    Runs(Option<DateTime<Utc>>),
    /// The latest version of a dataset.
    Version(&'a str),
    /// A version of a dataset, if the store has it.
    NamedVersion(&'a str, &'a str),
}

impl<'a> FetchItem<'a> {
    /// What tells which version or run of a dataset a name is: nothing is fetched for an instant.
    pub fn of_name(dataset: &'a str, as_of: Option<&'a AsOf>) -> Vec<Self> {
        match as_of {
            Some(AsOf::Named(name)) => vec![Self::Runs(None), Self::NamedVersion(dataset, name)],
            Some(AsOf::Instant(_)) | None => Vec::new(),
        }
    }
}

/// The store that `BELLWETHER_STORE` names.
///
/// # Errors
///
/// If it is no address of a store.
pub fn store_of_environment() -> Result<Option<StoreUrl>> {
    let Some(text) = env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.to_string_lossy().parse().map(Some).map_err(|refusal: String| {
        let what = format!("invalid `{VARIABLE}`: {}", refusal.replace('\n', "; "));
        Error::usage(what, "correct the variable, or unset it")
    })
}

/// The store that is named, or else that of the environment, or else that of a definition.
///
/// # Errors
///
/// As [`store_of_environment`] and [`Plan::trusted_store`].
pub fn store_of(named: Option<&StoreUrl>, plan: Option<&Plan>) -> Result<Option<StoreUrl>> {
    let given = match named {
        Some(named) => Some(named.clone()),
        None => store_of_environment()?,
    };
    match (given, plan) {
        (None, Some(plan)) => Ok(plan.trusted_store()?.cloned()),
        (given, _) => Ok(given),
    }
}

impl RemoteStore {
    /// Fetches what is not here of some items.
    ///
    /// # Errors
    ///
    /// As [`pull_archive`](Self::pull_archive) and [`pull_latest`](Self::pull_latest).
    pub async fn pull_items(&self, items: &[FetchItem<'_>]) -> Result<()> {
        for item in items {
            match item {
                FetchItem::Runs(until) => self.pull_archive(*until).await?,
                FetchItem::Version(name) => self.pull_latest(name).await?,
                // One that is here needs no store that answers.
                FetchItem::NamedVersion(name, version) if !file::is_gone(&self.datasets.join(name).join(version)) => {
                    continue;
                }
                FetchItem::NamedVersion(name, version) => match self.read_version(name, version).await? {
                    Some(_) => self.pull_version(name, version).await?,
                    None => continue,
                },
            };
        }
        Ok(())
    }

    /// Fetches the runs that only the store has, and the latest version of each of its datasets.
    ///
    /// # Errors
    ///
    /// As [`RemoteStore::pull_archive`] and [`RemoteStore::pull_latest`].
    pub async fn pull(&self) -> Result<TransferCounts> {
        let mut moved = self.pull_archive(None).await?;
        for name in self.store.names(DATASETS).await?.iter().filter(|name| is_dataset(name)) {
            moved += self.pull_latest(name).await?;
        }
        Ok(moved)
    }

    /// Fetches the runs that only the store has, and the latest version of one dataset.
    ///
    /// # Errors
    ///
    /// If the store has no version of the dataset; and as [`RemoteStore::pull`].
    pub async fn pull_dataset(&self, name: &str) -> Result<TransferCounts> {
        let mut moved = self.pull_archive(None).await?;
        if self.store.latest(name).await?.is_none() {
            return Err(self.absent(format!("version of `{name}`")));
        }
        moved += self.pull_latest(name).await?;
        Ok(moved)
    }

    /// Fetches one version of a dataset, unless it is here. `latest` points to it only if there is none.
    ///
    /// # Errors
    ///
    /// If the store does not have it; and as [`RemoteStore::pull_latest`].
    pub async fn pull_version(&self, name: &str, version: &str) -> Result<TransferCounts> {
        if !file::is_gone(&self.datasets.join(name).join(version)) {
            return Ok(TransferCounts::default());
        }
        if self.read_version(name, version).await?.is_none() {
            return Err(self.absent(format!("version `{name}/{version}`")));
        }
        let has_latest = export::latest_target(&self.datasets.join(name)).is_some();
        self.fetch_version(name, version, if has_latest { Linking::Unchanged } else { Linking::Latest }).await
    }

    fn absent(&self, what: String) -> Error {
        Error::new(ErrorKind::NotFound, format!("`{}` has no {what}", self.url()))
            .with_hint("`bellwether verify --store --sizes --json` lists what only the store has")
    }

    /// Fetches missing runs that were sealed by an instant, as packs if that is less, and checks each file against its
    /// seal.
    ///
    /// # Errors
    ///
    /// If a seal or a file is damaged, if the archive cannot be written, and any failure of a request.
    pub async fn pull_archive(&self, until: Option<DateTime<Utc>>) -> Result<TransferCounts> {
        let mut moved = TransferCounts::default();
        for archive in self.archives().await? {
            moved += self.pull_service(&archive, until).await?;
        }
        Ok(moved)
    }

    async fn pull_service(&self, archive: &ServiceArchive, until: Option<DateTime<Utc>>) -> Result<TransferCounts> {
        let mut looks = 0;
        loop {
            looks += 1;
            let mut wanted = Vec::new();
            match self.pull_listed(archive, until, &mut wanted).await {
                // A folder was pruned meanwhile: a pack stands for it.
                Err(error)
                    if looks < MOST_LOOKS
                        && FileError::is_damage(&error)
                        && self.is_any_gone(archive, &wanted).await? => {}
                Ok(None) if looks < MOST_LOOKS => {}
                Ok(None) => {
                    return Err(self.store.later("list", &archive.there, "other machines keep pruning it"));
                }
                Ok(Some(moved)) => return Ok(moved),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a folder that was in the store is not any more.
    async fn is_any_gone(&self, archive: &ServiceArchive, folders: &[String]) -> Result<bool> {
        let listed = self.store.list(&archive.there).await?;
        let there: HashSet<&str> = archive.whole_names(&listed).collect();
        Ok(folders.iter().any(|folder| !there.contains(folder.as_str())))
    }

    /// Fetches the runs of one listing; `None` if one that it has is gone.
    async fn pull_listed(
        &self,
        archive: &ServiceArchive,
        until: Option<DateTime<Utc>>,
        folders: &mut Vec<String>,
    ) -> Result<Option<TransferCounts>> {
        let ServiceArchive { here: folder, there: at } = archive;
        let listed = self.store.list(at).await?;
        if listed.is_empty() && file::is_gone(folder) {
            return Ok(Some(TransferCounts::default()));
        }
        file::create_folders(folder)?;
        let notes = self.pull_notes(archive, &listed).await?;
        let here = Archive::open(folder)?;
        let Some(there) = self.seals(archive, &here, &listed).await? else { return Ok(None) };
        let wanted = archive::missing_folders(&here, &there, until);
        if wanted.is_empty() {
            return Ok(Some(TransferCounts { notes, ..TransferCounts::default() }));
        }
        folders.extend(wanted.iter().map(|seal| seal.folder_name()));
        let files = wanted.iter().map(|seal| seal.files.len()).sum();
        let stage = Stage::of_files(&self.control, "pull", files);
        // Several are fetched at once, and appear one after the other: what is interrupted leaves no run without its basis.
        let wanted = by_basis(wanted, |seal| seal);
        let fetched = wanted.iter().map(|&seal| {
            let stage = &stage;
            async move { Ok((self.download(archive, seal, stage).await?, seal)) }
        });
        let arrived = stream::iter(fetched).buffered(FOLDERS_AT_ONCE);
        arrived.try_for_each(|(incoming, seal)| future::ready(incoming.add_to(folder, seal))).await?;
        stage.finish();
        let bytes = wanted.iter().map(|seal| seal.bytes()).sum();
        Ok(Some(TransferCounts { folders: wanted.len(), bytes, notes, ..TransferCounts::default() }))
    }

    /// Fetches the notes on forgotten runs that only the store has, and returns their number.
    pub(super) async fn pull_notes(&self, archive: &ServiceArchive, listed: &[Object]) -> Result<usize> {
        let mut count = 0;
        for name in archive.note_names(listed).filter(|name| file::is_gone(&archive.here.join(name))) {
            let at = format!("{}/{name}", archive.there);
            if let Some(text) = self.store.record(&at, SEAL).await? {
                file::create_folders(&archive.here)?;
                Forgetting::parse(&text, &PathBuf::from(self.store.address(&at)))?.add_to(&archive.here)?;
                count += 1;
            }
        }
        Ok(count)
    }

    pub(super) async fn fetch(&self, archive: &ServiceArchive, seal: &Seal, stage: &Stage<'_>) -> Result<()> {
        self.download(archive, seal, stage).await?.add_to(&archive.here, seal)
    }

    async fn download(&self, archive: &ServiceArchive, seal: &Seal, stage: &Stage<'_>) -> Result<HiddenFolder> {
        let sealed = archive.sealed_folder(seal);
        let incoming = HiddenFolder::begin(&archive.here, &seal.run)?;
        self.store.fetch(&sealed, &incoming.path, |bytes| stage.count(0, bytes)).await?;
        Ok(incoming)
    }

    /// The seals in the store that may cover runs missing from the archive; `None` if a listed folder is gone.
    pub(super) async fn seals(
        &self,
        archive: &ServiceArchive,
        here: &Archive,
        listed: &[Object],
    ) -> Result<Option<Vec<Seal>>> {
        let names: Vec<&str> = archive.whole_names(listed).collect();
        let known = here.names_in_folders();
        let packs = names.iter().filter(|name| name.starts_with("pack=") && !here.has_folder(name));
        let Some(packs) = self.read_seals(archive, packs.copied()).await? else { return Ok(None) };
        let is_missing = |run: &Seal| !known.contains(run.run.as_str());
        let whole = packs.iter().filter(|pack| pack.runs().all(is_missing));
        let packed: HashSet<&str> = whole.flat_map(Seal::runs).map(|run| run.run.as_str()).collect();
        let is_wanted = |run: &&str| !known.contains(run) && !packed.contains(run);
        let runs = names.iter().filter(|name| name.strip_prefix("run=").is_some_and(|run| is_wanted(&run)));
        let Some(mut seals) = self.read_seals(archive, runs.copied()).await? else { return Ok(None) };
        seals.extend(packs);
        Ok(Some(seals))
    }

    /// The seals of some folders; `None` if one is gone.
    async fn read_seals<'a>(
        &self,
        archive: &ServiceArchive,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Vec<Seal>>> {
        let seals = names.map(|name| self.known_seal(archive, name));
        let seals: Vec<Option<Seal>> = stream::iter(seals).buffer_unordered(RECORDS_AT_ONCE).try_collect().await?;
        Ok(seals.into_iter().collect())
    }

    /// The seal of a folder in the store; `None` if it is gone. The seal of a pack is cached.
    pub(super) async fn known_seal(&self, archive: &ServiceArchive, name: &str) -> Result<Option<Seal>> {
        if !name.starts_with("pack=") {
            return self.read_seal(archive, name).await;
        }
        let cached = archive.here.join(SEALS).join(format!("{name}.json"));
        let folder = Path::new(name);
        if let Some(seal) = links::read(&cached).ok().and_then(|text| Seal::of(&text, folder).ok()) {
            return Ok(Some(seal));
        }
        let seal = self.read_seal(archive, name).await?;
        if let Some(seal) = &seal {
            let kept =
                links::folder(&archive.here.join(SEALS)).and_then(|()| file::replace(&cached, seal.text().as_bytes()));
            if let Err(error) = kept {
                tracing::debug!(%error, "cannot keep the seal of a pack");
            }
        }
        Ok(seal)
    }

    /// The seal of a folder, read from the store; `None` if it is gone.
    pub(super) async fn read_seal(&self, archive: &ServiceArchive, name: &str) -> Result<Option<Seal>> {
        let at = format!("{}/{name}", archive.there);
        let Some(text) = self.store.record(&at, SEAL).await? else { return Ok(None) };
        let seal = Seal::of(&text, &PathBuf::from(self.store.address(&at)));
        seal.map(Some).map_err(|error| self.in_store(&format!("{at}/{SEAL}"), error))
    }

    /// The record of the latest version of a dataset in the store.
    pub(in crate::run) async fn latest_record(&self, name: &str) -> Result<Option<VersionRecord>> {
        let Some(latest) = self.store.latest(name).await? else { return Ok(None) };
        let version = self.read_version(name, &latest.version).await?;
        Ok(version.map(|(_, whole)| whole))
    }

    /// The record of a version in the store, as text and parsed; `None` if there is none.
    pub(in crate::run) async fn read_version(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<(Bytes, VersionRecord)>> {
        let at = format!("{DATASETS}/{name}/{version}");
        let Some(text) = self.store.record(&at, RECORD).await? else { return Ok(None) };
        let whole = VersionRecord::of_version(&text, &PathBuf::from(self.store.address(&at)));
        Ok(Some((text, whole.map_err(|error| self.in_store(&format!("{at}/{RECORD}"), error))?)))
    }

    /// Whether a version was published since the store was listed.
    pub(super) async fn is_new(&self, name: &str, version: &str, listed: &[Object]) -> Result<bool> {
        if versions(listed).any(|it| it == (name, version)) {
            return Ok(false);
        }
        match self.read_version(name, version).await {
            Err(error) if FileError::is_damage(&error) => Ok(false),
            read => Ok(read?.is_some()),
        }
    }

    /// An error of a record in the store, whose damage is not that of a local file.
    fn in_store(&self, key: &str, error: Error) -> Error {
        match std::error::Error::source(&error) {
            Some(source) if error.kind() == ErrorKind::Damaged => self.store.damage(key, source.to_string()),
            _ => error,
        }
    }

    /// Fetches the latest version of a dataset and makes it the latest here, unless this machine has a later one that counts.
    ///
    /// # Errors
    ///
    /// If the record or a file is damaged, if the folder cannot be written, and any failure of a request.
    pub async fn pull_latest(&self, name: &str) -> Result<TransferCounts> {
        let Some(latest) = self.store.latest(name).await? else { return Ok(TransferCounts::default()) };
        let here = export::latest(&self.datasets, Some(name))?;
        if let Some(here) = &here
            && (here.as_of, here.built_at) >= (latest.as_of, latest.built_at)
            && self.forgotten_run_of(here)?.is_none()
        {
            return Ok(TransferCounts::default());
        }
        let there = self.read_version(name, &latest.version).await?.map(|(_, whole)| whole);
        if let Some(refusal) = of_other_service("did not fetch the", here.as_ref(), there.as_ref()) {
            self.control.warn(&[refusal]);
            return Ok(TransferCounts::default());
        }
        if let Some(whole) = &there
            && let Some(run) = self.forgotten_run_of(whole)?
        {
            self.control.warn(&[format!(
                "did not fetch `{name}/{}`: it was built from run `{run}`, which is forgotten; `bellwether build {name}` makes \
                 another version",
                latest.version
            )]);
            return Ok(TransferCounts::default());
        }
        self.fetch_version(name, &latest.version, Linking::Latest).await
    }

    /// Fetches a version of a dataset.
    async fn fetch_version(&self, name: &str, version: &str, linking: Linking) -> Result<TransferCounts> {
        let at = format!("{DATASETS}/{name}/{version}");
        let Some((text, whole)) = self.read_version(name, version).await? else {
            return Err(self.store.damage(&at, "it has no record"));
        };
        let arriving = IncomingVersion::begin(&self.datasets, name, version, Clock::System.now())?;
        let sealed = Sealed { at, record: RECORD, files: whole.files.clone() };
        let stage = Stage::of_files(&self.control, "pull", sealed.files.len());
        self.store.fetch(&sealed, &arriving.path(), |bytes| stage.count(0, bytes)).await?;
        let key = format!("{}/{FACTS}", sealed.at);
        match self.store.read(&key).await? {
            None => return Err(self.store.damage(&key, "it is missing")),
            Some(bytes) if digest::of(&bytes) != whole.facts => {
                return Err(self.store.damage(&key, "it does not match its checksum"));
            }
            Some(bytes) => file::write_bytes(&arriving.path().join(FACTS), &bytes)?,
        }
        arriving.publish(&text, &sealed.files, linking)?;
        stage.finish();
        let bytes = sealed.files.iter().map(|file| file.bytes).sum();
        Ok(TransferCounts { versions: 1, bytes, ..TransferCounts::default() })
    }
}

impl ServiceArchive {
    /// The names of the sealed folders among some objects of the archive.
    pub(super) fn sealed_names<'o>(&self, listed: impl Iterator<Item = &'o Object>) -> impl Iterator<Item = &'o str> {
        self.names(listed, &[RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER])
    }

    /// The names of the sealed folders in a listing whose record is whole.
    pub(super) fn whole_names<'o>(&self, listed: &'o [Object]) -> impl Iterator<Item = &'o str> {
        self.sealed_names(listed.iter().filter(|object| object.may_be_record()))
    }

    /// The names of the folders with notes on forgotten runs.
    pub(super) fn note_names<'o>(&self, listed: &'o [Object]) -> impl Iterator<Item = &'o str> {
        self.names(listed.iter(), &[FORGOTTEN_FOLDER])
    }

    /// The names of the folders of some forms that have a record.
    fn names<'o>(
        &self,
        listed: impl Iterator<Item = &'o Object>,
        forms: &'static [&'static str],
    ) -> impl Iterator<Item = &'o str> {
        let prefix = format!("{}/", self.there);
        let name = move |object: &'o Object| object.key.strip_prefix(&prefix)?.strip_suffix("/run.json");
        listed.filter_map(name).filter(move |name| forms.iter().any(|form| fits(name, form)))
    }

    /// A sealed folder of the archive, as `store` describes it.
    pub(super) fn sealed_folder(&self, seal: &Seal) -> Sealed {
        Sealed { at: format!("{}/{}", self.there, seal.folder_name()), record: SEAL, files: seal.files.clone() }
    }
}
