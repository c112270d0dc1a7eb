//! Fetches from the store what this machine does not have; and which store that is.

use std::collections::HashSet;
use std::env;
use std::path::Path;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, future, stream};

use super::contents::Listing;
use super::folder::Sealed;
use super::latest::Latest;
use super::objects::MAX_BYTES;
use super::ours::record_of;
use super::push::of_other_service;
use super::{DATASETS, FOLDERS_AT_ONCE, RemoteStore, ServiceArchive, TransferCounts, by_basis};
use crate::archive::{self, Archive, Forgetting, HiddenFolder, Seal};
use crate::disk::digest;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, FACTS, IncomingVersion, Linking, VersionRecord};
use crate::plan::{Plan, StoreUrl};
use crate::run::AsOf;
use crate::run::observer::Stage;
use crate::time::Clock;

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
    let Some(text) = env::var_os("BELLWETHER_STORE").filter(|text| !text.is_empty()) else { return Ok(None) };
    text.to_string_lossy().parse().map(Some).map_err(|refusal: String| {
        let what = format!("invalid `BELLWETHER_STORE`: {}", refusal.replace('\n', "; "));
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
    /// As [`pull_archive`](Self::pull_archive), and if the folder of a dataset cannot be written.
    pub async fn pull_items(&self, items: &[FetchItem<'_>]) -> Result<()> {
        for item in items {
            match item {
                FetchItem::Runs(until) => _ = self.pull_archive(*until).await?,
                FetchItem::Version(name) => _ = self.pull_latest(name).await?,
                FetchItem::NamedVersion(name, version) => _ = self.pull_if_there(name, version).await?,
            }
        }
        Ok(())
    }

    /// Fetches the runs that only the store has, and the latest version of each of its datasets.
    ///
    /// # Errors
    ///
    /// As [`RemoteStore::pull_items`].
    pub async fn pull(&self) -> Result<TransferCounts> {
        let mut moved = self.pull_archive(None).await?;
        for name in self.store.list(DATASETS).await?.datasets() {
            moved += self.pull_latest(name).await?.unwrap_or_default();
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
        let pulled = self.pull_latest(name).await?;
        moved += pulled.ok_or_else(|| self.absent(format!("version of `{name}`")))?;
        Ok(moved)
    }

    /// Fetches one version of a dataset, unless it is here. `latest` points to it only if there is none.
    ///
    /// # Errors
    ///
    /// If the store does not have it; and as [`RemoteStore::pull`].
    pub async fn pull_version(&self, name: &str, version: &str) -> Result<TransferCounts> {
        let pulled = self.pull_if_there(name, version).await?;
        pulled.ok_or_else(|| self.absent(format!("version `{name}/{version}`")))
    }

    /// Fetches one version of a dataset, unless it is here; `None` if the store does not have it either.
    async fn pull_if_there(&self, name: &str, version: &str) -> Result<Option<TransferCounts>> {
        let dataset = self.datasets().join(name);
        // One that is here needs no store that answers.
        if !file::is_gone(&dataset.join(version)) {
            return Ok(Some(TransferCounts::default()));
        }
        let linking = if export::latest_target(&dataset).is_some() { Linking::Unchanged } else { Linking::Latest };
        match self.read_version(name, version).await? {
            Some(read) => self.fetch_version((name, version), read, linking).await.map(Some),
            None => Ok(None),
        }
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
        let listed = self.list_archives().await?;
        for archive in self.archives(&listed)? {
            moved += self.pull_service(&archive, &listed, until).await?;
        }
        Ok(moved)
    }

    /// Fetches the missing runs of a service. It is listed again while others prune it.
    async fn pull_service(
        &self,
        archive: &ServiceArchive,
        mut listed: &Listing,
        until: Option<DateTime<Utc>>,
    ) -> Result<TransferCounts> {
        let mut again;
        for _ in 0..5 {
            let damage = match self.pull_listed(archive, listed, until).await {
                Ok(Some(moved)) => return Ok(moved),
                Ok(None) => None,
                Err(error) if FileError::is_damage(&error) => Some(error),
                Err(error) => return Err(error),
            };
            let now = self.store.list(&archive.there).await?;
            let is_there = |name: &str| now.has_record(&format!("{}/{name}", archive.there));
            // If a folder was pruned meanwhile, a pack stands for it.
            if let Some(error) = damage.filter(|_| listed.complete(&archive.there).all(is_there)) {
                return Err(error);
            }
            again = now;
            listed = &again;
        }
        Err(self.store.later("list", &archive.there, "other machines keep pruning it"))
    }

    /// Fetches the missing runs of a listing; `None` if a folder of it is gone.
    async fn pull_listed(
        &self,
        archive: &ServiceArchive,
        listed: &Listing,
        until: Option<DateTime<Utc>>,
    ) -> Result<Option<TransferCounts>> {
        let folder = &archive.here;
        let mut there = listed.complete(&archive.there).chain(listed.notes(&archive.there));
        if there.next().is_none() && file::is_gone(folder) {
            return Ok(Some(TransferCounts::default()));
        }
        file::create_folders(folder)?;
        let notes = self.pull_notes(archive, listed).await?;
        let here = Archive::open(folder)?;
        let Some(there) = self.seals(archive, &here, listed).await? else { return Ok(None) };
        let wanted = by_basis(archive::missing_folders(&here, &there, until));
        if !wanted.is_empty() {
            let stage = Stage::of_files(&self.control, "pull", wanted.iter().map(|seal| seal.files.len()).sum());
            // Several are fetched at once, and appear one after the other: what is interrupted leaves no run without its
            // basis.
            let fetched = wanted.iter().map(|&seal| {
                let stage = &stage;
                async move { Ok((self.download(archive, seal, stage).await?, seal)) }
            });
            let arrived = stream::iter(fetched).buffered(FOLDERS_AT_ONCE);
            arrived.try_for_each(|(incoming, seal)| future::ready(incoming.add_to(folder, seal))).await?;
            stage.finish();
        }
        let bytes = wanted.iter().map(|seal| seal.bytes()).sum();
        Ok(Some(TransferCounts { folders: wanted.len(), bytes, notes, ..TransferCounts::default() }))
    }

    /// Fetches the notes on forgotten runs that only the store has, and returns their number.
    pub(super) async fn pull_notes(&self, archive: &ServiceArchive, listed: &Listing) -> Result<usize> {
        let mut count = 0;
        for name in listed.notes(&archive.there).filter(|name| file::is_gone(&archive.here.join(name))) {
            let at = format!("{}/{name}", archive.there);
            if let Some(text) = self.store.record(&at).await? {
                file::create_folders(&archive.here)?;
                Forgetting::parse(&text, Path::new(&self.store.address(&at)))?.add_to(&archive.here)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Fetches the files of a folder to a hidden one in an archive.
    pub(super) async fn download(
        &self,
        archive: &ServiceArchive,
        seal: &Seal,
        stage: &Stage<'_>,
    ) -> Result<HiddenFolder> {
        let incoming = HiddenFolder::begin(&archive.here, &seal.run)?;
        self.store.fetch(&archive.sealed_folder(seal), &incoming.path, |bytes| stage.count(0, bytes)).await?;
        Ok(incoming)
    }

    /// The seals in the store that may cover runs missing from the archive; `None` if a listed folder is gone.
    async fn seals(&self, archive: &ServiceArchive, here: &Archive, listed: &Listing) -> Result<Option<Vec<Seal>>> {
        let known = here.names_in_folders();
        let (packs, others): (Vec<&str>, Vec<&str>) =
            listed.complete(&archive.there).partition(|name| name.starts_with("pack="));
        let packs = packs.into_iter().filter(|name| !here.has_folder(name));
        let Some(mut seals) = self.read_seals(archive, packs).await? else { return Ok(None) };
        let missing = |run: &Seal| !known.contains(&*run.run);
        let whole = seals.iter().filter(|pack| pack.runs().all(missing));
        let packed: HashSet<&str> = whole.flat_map(Seal::runs).map(|run| &*run.run).collect();
        let is_wanted = |run: &str| !known.contains(run) && !packed.contains(run);
        let runs = others.into_iter().filter(|name| name.strip_prefix("run=").is_some_and(is_wanted));
        let Some(runs) = self.read_seals(archive, runs).await? else { return Ok(None) };
        seals.extend(runs);
        Ok(Some(seals))
    }

    /// The seals of some folders; `None` if one is gone.
    async fn read_seals<'a>(
        &self,
        archive: &ServiceArchive,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Vec<Seal>>> {
        let seals = stream::iter(names.map(|name| self.known_seal(archive, name))).buffer_unordered(8);
        let seals: Vec<Option<Seal>> = seals.try_collect().await?;
        Ok(seals.into_iter().collect())
    }

    /// The seal of a folder in the store; `None` if it is gone. That of a pack is cached in the archive: it never changes.
    pub(super) async fn known_seal(&self, archive: &ServiceArchive, name: &str) -> Result<Option<Seal>> {
        let folder = archive.here.join(".seals");
        let (cache, is_cached) = (folder.join(format!("{name}.json")), name.starts_with("pack="));
        if is_cached && let Ok(seal) = links::read(&cache).and_then(|text| Seal::of(&text, Path::new(name))) {
            return Ok(Some(seal));
        }
        let seal = self.read_seal(archive, name).await?;
        if let Some(seal) = seal.as_ref().filter(|_| is_cached)
            && let Err(error) = links::folder(&folder).and_then(|()| file::replace(&cache, seal.text().as_bytes()))
        {
            tracing::debug!(%error, "cannot keep the seal of a pack");
        }
        Ok(seal)
    }

    /// The seal of a folder, read from the store; `None` if it is gone.
    pub(super) async fn read_seal(&self, archive: &ServiceArchive, name: &str) -> Result<Option<Seal>> {
        let read = self.read_record(&format!("{}/{name}", archive.there), Seal::of).await?;
        Ok(read.map(|(_, seal)| seal))
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
        self.read_record(&format!("{DATASETS}/{name}/{version}"), VersionRecord::of_version).await
    }

    /// The record of a folder in the store, as text and parsed; `None` if there is none. Its damage is not that of a local
    /// file.
    pub(super) async fn read_record<T>(
        &self,
        at: &str,
        parse: impl Fn(&[u8], &Path) -> Result<T>,
    ) -> Result<Option<(Bytes, T)>> {
        let Some(text) = self.store.record(at).await? else { return Ok(None) };
        match parse(&text, Path::new(&self.store.address(at))) {
            Ok(record) => Ok(Some((text, record))),
            Err(error) => Err(match std::error::Error::source(&error) {
                Some(source) if error.kind() == ErrorKind::Damaged => {
                    self.store.damage(&record_of(at), source.to_string())
                }
                _ => error,
            }),
        }
    }

    /// Fetches the latest version of a dataset and makes it the latest here, unless this machine has a later one that counts;
    /// `None` if the store has none.
    async fn pull_latest(&self, name: &str) -> Result<Option<TransferCounts>> {
        let Some(Latest { version, as_of, built_at, .. }) = self.store.latest(name).await? else { return Ok(None) };
        let here = export::latest(&self.datasets(), Some(name))?;
        if let Some(here) = &here
            && (here.as_of, here.built_at) >= (as_of, built_at)
            && self.forgotten_run_of(here)?.is_none()
        {
            return Ok(Some(TransferCounts::default()));
        }
        let Some((text, there)) = self.read_version(name, &version).await? else {
            return Err(self.store.damage(&format!("{DATASETS}/{name}/{version}"), "it has no record"));
        };
        let other_service = of_other_service("did not fetch the", here.as_ref(), Some(&there));
        let refusal = match (other_service, self.forgotten_run_of(&there)?) {
            (None, None) => {
                return self.fetch_version((name, &version), (text, there), Linking::Latest).await.map(Some);
            }
            (Some(refusal), _) => refusal,
            (None, Some(run)) => format!(
                "did not fetch `{name}/{version}`: it was built from run `{run}`, which is forgotten; `bellwether build {name}` \
                 makes another version"
            ),
        };
        self.control.warn(&[refusal]);
        Ok(Some(TransferCounts::default()))
    }

    /// Fetches a version of a dataset, given its record.
    async fn fetch_version(
        &self,
        (name, version): (&str, &str),
        (text, VersionRecord { files, facts, .. }): (Bytes, VersionRecord),
        linking: Linking,
    ) -> Result<TransferCounts> {
        let arriving = IncomingVersion::begin(&self.datasets(), name, version, Clock::System.now())?;
        let sealed = Sealed { at: format!("{DATASETS}/{name}/{version}"), files };
        let stage = Stage::of_files(&self.control, "pull", sealed.files.len());
        self.store.fetch(&sealed, &arriving.path(), |bytes| stage.count(0, bytes)).await?;
        let key = format!("{}/{FACTS}", sealed.at);
        match self.store.get(&key, MAX_BYTES).await? {
            None => return Err(self.store.damage(&key, "it is missing")),
            Some(content) if digest::of(&content.bytes) != facts => {
                return Err(self.store.damage(&key, "it does not match its checksum"));
            }
            Some(content) => file::write_bytes(&arriving.path().join(FACTS), &content.bytes)?,
        }
        arriving.publish(&text, &sealed.files, linking)?;
        stage.finish();
        Ok(TransferCounts { versions: 1, bytes: sealed.bytes(), ..TransferCounts::default() })
    }
}

impl ServiceArchive {
    /// A sealed folder of the archive in the store.
    pub(super) fn sealed_folder(&self, seal: &Seal) -> Sealed {
        Sealed { at: format!("{}/{}", self.there, seal.folder_name()), files: seal.files.clone() }
    }
}
