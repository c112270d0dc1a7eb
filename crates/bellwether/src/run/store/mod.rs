//! The archive and the datasets in an object store: fetching, sending, and what keeps concurrent machines safe.
//!
//! ```text
//! s3://bucket/prefix/
//!     archive/acme/run=20261120T213000Z-7f3a/      the files of a sealed run of a service, `run.json` last
//!     archive/acme/pack=20261120T213000Z-01c2/     the files of a pack, and likewise of a merge
//!     datasets/demo/20261120T213000Z-7f3a/         the files of a published version, `dataset.json` last
//!     datasets/demo/latest.json                    names the latest version
//!     datasets/demo/pruned.json                    names the oldest version that was not pruned
//! ```
//!
//! A folder exists once its record does (`run.json`, `dataset.json`), which is put last and only if absent. A sealed
//! folder never changes, so a copy of one is never stale. The only objects that two machines change are `latest.json` and
//! `pruned.json`, which are replaced only if they are unchanged since they were read. In a bucket, nothing relies on renames, on the
//! order of a listing, on links or on locks. File systems have no conditional puts: in a `file:///` store, objects are
//! linked only if absent, and these two are replaced under a lock.
//!
//! A conditional put that failed may have succeeded: its acknowledgement may be lost and the retry refused, and some stores
//! answer 409 to both of two writers. So the outcome is always read back: ours, absent, or another's. Before anything is sent,
//! a [`probe`](Store::probe) tests that the store honours the conditions at all.
//!
//! The smallest file of a folder is sent first and only if absent, which claims the folder's name. An upload that was killed
//! has no record. The machine that has the folder resumes it, or any other clears it after a day. Clearing first puts a note in
//! place of the record, only if absent, so an upload and its clearing exclude each other.
//!
//! What was replaced long ago is removed on request alone, in the same way ([`Store::remove_folder`]). A repair moves what is
//! damaged and removes nothing ([`Store::set_aside`]). The
//! `object_store` crate reads credentials from where each provider's own tools keep them, and messages quote only the status
//! and error code of an answer.
//!
//! A store is not trusted: every answer is bounded in bytes and time, a redirect is not followed, what is not a listing is
//! not taken for an empty one, and what nothing of ours can be called is skipped.
//!
//! `objects` is a store to put, get and list objects in, over the connections of `cloud` and `traffic`; `folder`, `latest` and
//! `ours` are what we keep there; `push`, `pull`, `verify` and `prune` compare it with this machine, a listing each.

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "cloud")]
mod cloud;
mod contents;
mod fault;
mod folder;
mod latest;
#[cfg(any(feature = "cloud", feature = "harness"))]
pub(crate) mod listing;
mod objects;
mod ours;
mod prune;
mod pull;
mod push;
#[cfg(test)]
mod tests;
#[cfg(feature = "cloud")]
mod traffic;
mod verify;

use std::collections::{BTreeSet, HashSet};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

use super::forget;
use super::observer::Control;
use super::summary::Summary;
use crate::archive::{Seal, claims_of, folders, of_service};
use crate::disk::file;
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::ClockTrust;
use crate::plan::{Claims, Plan, ServiceIdentity, StoreKind, StoreUrl};
use crate::time::Clock;

use contents::Listing;

#[cfg(feature = "spark")]
pub(super) use folder::Sealed;
#[cfg(feature = "spark")]
pub(super) use latest::Latest;
pub(super) use objects::Store;
pub use objects::StoreAccess;
pub use prune::{StorePruned, StorePrunedFolder, StorePrunedKind};
pub use pull::{FetchItem, store_of, store_of_environment};
pub use verify::{StoreDifference, StoreVerified, VerifyScope};

/// The folder of the archive in a store, with a folder for each service.
const ARCHIVE: &str = "archive";

/// The folder of the datasets in a store.
const DATASETS: &str = "datasets";

/// The most folders in transfer at once.
const FOLDERS_AT_ONCE: usize = 4;

/// A store, and the local folders that it mirrors.
#[derive(Clone, Debug)]
pub struct RemoteStore {
    store: Store,
    /// The local archive.
    archive: PathBuf,
    /// The service whose runs are fetched and sent, and its claims; none for all.
    service: Option<(String, Claims)>,
    /// The local folder of the datasets and the archive.
    data: PathBuf,
    control: Control,
}

/// The archive of one service, here and in a store.
#[derive(Clone, Debug)]
struct ServiceArchive {
    /// The local folder.
    here: PathBuf,
    /// The folder in the store.
    there: String,
}

impl RemoteStore {
    /// Opens a store to read or to write. Nothing is sent to it yet.
    ///
    /// # Errors
    ///
    /// If this build has no client for it, its settings are incomplete or invalid, or it is a folder that does not exist
    /// and is only read.
    pub fn open(url: &StoreUrl, access: StoreAccess, archive: &Path, output: &Path, control: &Control) -> Result<Self> {
        let store = Store::open(url, access, control)?;
        Ok(Self {
            store,
            archive: archive.to_owned(),
            service: None,
            data: output.to_owned(),
            control: control.clone(),
        })
    }

    /// A store of any client, with the archive in one folder and the datasets in another.
    #[cfg(all(feature = "cloud", feature = "harness"))]
    pub fn of_client<C: object_store::ObjectStore + object_store::list::PaginatedListStore>(
        client: std::sync::Arc<C>,
        url: &StoreUrl,
        output: &Path,
        control: &Control,
    ) -> Self {
        let client = objects::Client { objects: client.clone(), pages: Some(client), prefix: String::new() };
        let store = Store::new(client, url, contents::SkippedKeys::default(), control);
        Self {
            store,
            archive: output.join("archive"),
            service: None,
            data: output.to_owned(),
            control: control.clone(),
        }
    }

    /// The same store, for one service.
    #[must_use]
    pub fn of_service(self, service: &str, claims: Claims) -> Self {
        Self { service: Some((service.to_owned(), claims)), ..self }
    }

    /// Opens the store of a plan, or the one that overrides it; `None` if there is neither.
    pub(super) fn of(
        plan: &Plan,
        instead: Option<&StoreUrl>,
        access: StoreAccess,
        archive: &Path,
        output: &Path,
        control: &Control,
    ) -> Result<Option<Self>> {
        let url = match instead {
            Some(url) => Some(url),
            None => plan.trusted_store()?,
        };
        let store = url.map(|url| Self::open(url, access, archive, output, control)).transpose()?;
        Ok(store.map(|store| store.of_service(&plan.service.name, plan.claims)))
    }

    /// The archives of the services: of the one, or of all that are here or in a listing.
    fn archives(&self, listed: &Listing) -> Result<Vec<ServiceArchive>> {
        let mut names: BTreeSet<String> = listed.services().into_iter().map(str::to_owned).collect();
        if let Some((service, claims)) = &self.service {
            let folder = of_service(&self.archive, service)?;
            let of_claims = ServiceIdentity::claims_of(service);
            let has_claims = names.contains(&of_claims) || !file::is_gone(&claims_of(&folder));
            names = [service.clone()].into();
            names.extend((*claims == Claims::Included && has_claims).then_some(of_claims));
        } else if !file::is_gone(&self.archive) {
            names.extend(folders(&self.archive)?);
        }
        let names = names.into_iter();
        let archive =
            |name: String| ServiceArchive { there: format!("{ARCHIVE}/{name}"), here: self.archive.join(name) };
        Ok(names.map(archive).collect())
    }

    /// What is in the archives of the services: of the one, or of all.
    async fn list_archives(&self) -> Result<Listing> {
        let Some((service, claims)) = &self.service else { return self.store.list(ARCHIVE).await };
        let mut listed = self.store.list(&format!("{ARCHIVE}/{service}")).await?;
        if *claims == Claims::Included {
            let of_claims = format!("{ARCHIVE}/{}", ServiceIdentity::claims_of(service));
            listed.0.append(&mut self.store.list(&of_claims).await?.0);
        }
        Ok(listed)
    }

    /// All that is in the store, without what was moved aside.
    async fn inventory(&self) -> Result<Listing> {
        let (archive, datasets) = tokio::join!(self.store.list(ARCHIVE), self.store.list(DATASETS));
        let mut listed = archive?;
        listed.0.append(&mut datasets?.0);
        Ok(listed)
    }

    /// The store itself.
    #[cfg(feature = "spark")]
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The local folder of the datasets.
    fn datasets(&self) -> PathBuf {
        self.data.join(DATASETS)
    }

    /// A forgotten run that a version was built from, if there is one.
    fn forgotten_run_of(&self, version: &VersionRecord) -> Result<Option<String>> {
        forget::forgotten_run_of(&self.archive, version)
    }

    /// Its address.
    pub fn url(&self) -> &StoreUrl {
        self.store.url()
    }

    /// Fails unless the store can be read.
    pub(super) async fn test_reading(&self) -> Result<()> {
        self.store.list(DATASETS).await.map(drop)
    }

    /// What a run would need of the store, without the runs. Returns the record of the latest version in it.
    pub(super) async fn test(&self, name: &str) -> Result<Option<VersionRecord>> {
        self.store.probe().await?;
        self.latest_record(name).await
    }

    /// Before a run or a build: tests the store, and fetches the runs that the archive does not have. Returns the record of
    /// the latest version in the store.
    pub(super) async fn begin(&self, name: &str, clock: Clock) -> Result<Option<VersionRecord>> {
        // A version comes after its runs: what is read of it first names none that the listing lacks.
        let pulled = async {
            let latest = self.latest_record(name).await?;
            self.pull_archive(None).await?;
            Ok::<_, Error>(latest)
        };
        let (probed, latest) = tokio::join!(self.store.probe(), pulled);
        let skew = probed?;
        if skew.is_too_large() && matches!(clock, Clock::System) {
            let what = format!("this machine's clock is {skew} that of `{}`", self.url());
            return Err(Error::new(ErrorKind::Temporary, what)
                .with_hint("synchronize this machine's clock and run the same command again; nothing was requested"));
        }
        latest
    }

    /// Whether the store has a clock of its own, which has confirmed this machine's once a run has begun. The times of files
    /// may be this machine's own.
    pub(super) fn clock_trust(&self) -> ClockTrust {
        if self.url().kind() == StoreKind::Folder { ClockTrust::Unconfirmed } else { ClockTrust::Confirmed }
    }
}

/// Sends the archive to a store once a run is sealed; `None` if there is no store, or no run was sealed.
pub(super) async fn send_once(
    store: Option<&RemoteStore>,
    sealed: oneshot::Receiver<()>,
) -> Option<Result<TransferCounts>> {
    let store = store?;
    sealed.await.ok()?;
    Some(store.push_archive().await)
}

/// Sends the versions of a dataset, once the runs that they were built from are in the store.
pub(super) async fn publish(
    store: Option<&RemoteStore>,
    sent: Option<Result<TransferCounts>>,
    name: &str,
    summary: &mut Summary,
) -> Result<()> {
    let (Some(store), Some(sent)) = (store, sent) else { return Ok(()) };
    let both = async {
        let mut moved = sent?;
        let (versions, notes) = store.push_dataset(name).await?;
        moved += versions;
        Ok::<_, Error>((moved, notes))
    };
    match both.await {
        Ok((moved, notes)) => {
            store.control.note(&notes);
            summary.notes.extend(notes);
            summary.stored = Some(StoreUpload { url: store.url().to_string(), moved });
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        Err(error) => {
            let what = format!("the results are on this machine, but not all of them are in `{}`", store.url());
            let behind = Error::new(error.kind(), what).with_source(error);
            Err(behind.with_hint("`bellwether store push` sends the rest; so does the next run"))
        }
    }
}

/// Seals in an order in which each comes after those that it is based on. Clocks of machines may differ, so a run may be sealed
/// before its basis.
fn by_basis(mut seals: Vec<&Seal>) -> Vec<&Seal> {
    seals.sort_by(|one, other| (one.sealed_at, &one.run).cmp(&(other.sealed_at, &other.run)));
    let mut awaited: HashSet<&str> = seals.iter().flat_map(|seal| seal.runs()).map(|run| run.run.as_str()).collect();
    let mut ordered = Vec::with_capacity(seals.len());
    while !seals.is_empty() {
        let is_ready = |seal: &&Seal| {
            let mut basis = seal.runs().flat_map(|run| &run.basis).map(|parent| parent.run.as_str());
            basis.all(|parent| !awaited.contains(parent) || seal.runs().any(|own| own.run == parent))
        };
        // Packs may be based on one another; then no order is right.
        let seal = seals.remove(seals.iter().position(is_ready).unwrap_or(0));
        seal.runs().for_each(|run| _ = awaited.remove(run.run.as_str()));
        ordered.push(seal);
    }
    ordered
}

/// What was sent to a store, or fetched from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransferCounts {
    /// Runs and packs.
    pub folders: usize,
    /// Versions of datasets.
    pub versions: usize,
    /// Their size.
    pub bytes: u64,
    /// Interrupted uploads that were cleared.
    pub cleared: usize,
    /// Notes on forgotten runs.
    pub notes: usize,
}

impl AddAssign for TransferCounts {
    fn add_assign(&mut self, other: Self) {
        self.folders += other.folders;
        self.versions += other.versions;
        self.bytes += other.bytes;
        self.cleared += other.cleared;
        self.notes += other.notes;
    }
}

/// What was sent to an object store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreUpload {
    /// The store.
    pub url: String,
    /// What was sent.
    #[serde(flatten)]
    pub moved: TransferCounts,
}
