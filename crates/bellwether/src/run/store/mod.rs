//! Connects the object store to the archive and the datasets: fetches what a run or build needs, and sends its results.

mod prune;
mod pull;
mod push;
mod verify;

use std::collections::{BTreeSet, HashSet};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

pub use prune::{StorePruned, StorePrunedFolder, StorePrunedKind};
pub use pull::{FetchItem, store_of, store_of_environment};
pub use verify::{StoreDifference, StoreVerified, VerifyScope};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

use super::forget::forgotten_run_of;
use super::observer::{Control, Event};
use super::summary::Summary;
use crate::archive::{Seal, claims_of, folders, of_service};
use crate::disk::file;
use crate::disk::names::{is_dataset, is_unique};
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::ClockTrust;
use crate::plan::{Claims, Plan, ServiceIdentity, StoreKind, StoreUrl};
pub use crate::store::Access as StoreAccess;
use crate::store::{Object, Store};
use crate::time::Clock;

/// The folder of the archive in a store, with a folder for each service.
const ARCHIVE: &str = "archive";

/// The most folders in transfer at once.
const FOLDERS_AT_ONCE: usize = 4;

/// The folder of the datasets in a store.
const DATASETS: &str = "datasets";

/// A store, and the local folders that it mirrors.
#[derive(Clone, Debug)]
pub struct RemoteStore {
    store: Store,
    /// The local archive.
    archive: PathBuf,
    /// The service whose runs are fetched and sent, and its claims; none for all.
    service: Option<(String, Claims)>,
    datasets: PathBuf,
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
        let told = control.clone();
        let store = Store::open(url, access, &control.stop, move |message| told.observe(Event::Warning { message }))?;
        let (archive, datasets) = (archive.to_owned(), output.join("datasets"));
        Ok(Self { store, archive, service: None, datasets, control: control.clone() })
    }

    /// A store of any client, with the archive in one folder and the datasets in another.
    #[cfg(all(feature = "cloud", feature = "harness"))]
    pub fn of_client<C: object_store::ObjectStore + object_store::list::PaginatedListStore>(
        client: std::sync::Arc<C>,
        url: &StoreUrl,
        output: &Path,
        control: &Control,
    ) -> Self {
        let store = Store::with_client(client, url, &control.stop);
        let (archive, datasets) = (output.join("archive"), output.join("datasets"));
        Self { store, archive, service: None, datasets, control: control.clone() }
    }

    /// The same store, for one service.
    #[must_use]
    pub fn of_service(self, service: &str, claims: Claims) -> Self {
        Self { service: Some((service.to_owned(), claims)), ..self }
    }

    /// The archives of the services: of the one, or of all that are here or in the store.
    async fn archives(&self) -> Result<Vec<ServiceArchive>> {
        let names: BTreeSet<String> = match &self.service {
            Some((service, Claims::LeftOut)) => {
                of_service(&self.archive, service)?;
                [service.clone()].into()
            }
            Some((service, Claims::Included)) => {
                let folder = of_service(&self.archive, service)?;
                let claims = ServiceIdentity::claims_of(service);
                let has_claims =
                    !file::is_gone(&claims_of(&folder)) || self.store.names(ARCHIVE).await?.contains(&claims);
                std::iter::once(service.clone()).chain(has_claims.then_some(claims)).collect()
            }
            None => {
                let there = self.store.names(ARCHIVE).await?.into_iter();
                let there = there.filter(|name| ServiceIdentity::is_folder(name));
                let here = if file::is_gone(&self.archive) { Vec::new() } else { folders(&self.archive)? };
                here.into_iter().chain(there).collect()
            }
        };
        let archive =
            |name: String| ServiceArchive { here: self.archive.join(&name), there: format!("{ARCHIVE}/{name}") };
        Ok(names.into_iter().map(archive).collect())
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
        let open =
            |url| Ok(Self::open(url, access, archive, output, control)?.of_service(&plan.service.name, plan.claims));
        url.map(open).transpose()
    }

    /// The store itself.
    #[cfg(feature = "spark")]
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// A forgotten run that a version was built from, if there is one.
    fn forgotten_run_of(&self, version: &VersionRecord) -> Result<Option<String>> {
        forgotten_run_of(&self.archive, version)
    }

    /// The folder of the datasets and the archive.
    fn data(&self) -> PathBuf {
        self.datasets.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// Its address.
    pub fn url(&self) -> &StoreUrl {
        self.store.url()
    }

    /// Fails unless the store can be read.
    pub(super) async fn test_reading(&self) -> Result<()> {
        self.store.names(DATASETS).await.map(drop)
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

    /// Whether the store has a clock of its own, which has confirmed this machine's once a run has begun.
    pub(super) fn clock_trust(&self) -> ClockTrust {
        match self.url().kind() {
            // The times of files may be this machine's own.
            StoreKind::Folder => ClockTrust::Unconfirmed,
            StoreKind::S3 | StoreKind::Google | StoreKind::Azure => ClockTrust::Confirmed,
        }
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

/// The complete versions in a listing of datasets: dataset and version.
fn versions(listed: &[Object]) -> impl Iterator<Item = (&str, &str)> {
    listed.iter().filter(|object| object.may_be_record()).filter_map(version_of)
}

/// The names of the datasets in a listing that have any object, in order.
fn names_of_datasets(listed: &[Object]) -> BTreeSet<&str> {
    let keys = listed.iter().map(|object| object.key.as_str());
    let names = keys.filter_map(|key| Some(key.strip_prefix("datasets/")?.split_once('/')?.0));
    names.filter(|name| is_dataset(name)).collect()
}

/// The dataset and the version whose record an object is.
fn version_of(object: &Object) -> Option<(&str, &str)> {
    let (name, version) = object.key.strip_prefix("datasets/")?.strip_suffix("/dataset.json")?.split_once('/')?;
    (is_dataset(name) && is_unique(version)).then_some((name, version))
}

/// Folders in an order in which each comes after those that it is based on. Clocks of machines may differ, so a run may be sealed
/// before its basis.
fn by_basis<T>(mut folders: Vec<T>, seal: impl Fn(&T) -> &Seal) -> Vec<T> {
    folders.sort_by(|one, other| (seal(one).sealed_at, &seal(one).run).cmp(&(seal(other).sealed_at, &seal(other).run)));
    let runs = folders.iter().flat_map(|folder| seal(folder).runs());
    let mut awaited: HashSet<String> = runs.map(|run| run.run.clone()).collect();
    let mut ordered = Vec::with_capacity(folders.len());
    while !folders.is_empty() {
        let is_ready = |folder: &T| {
            let is_own = |name: &str| seal(folder).runs().any(|run| run.run == name);
            let mut basis = seal(folder).runs().flat_map(|run| &run.basis);
            basis.all(|parent| !awaited.contains(&parent.run) || is_own(&parent.run))
        };
        // Packs may be based on one another; then no order is right.
        let folder = folders.remove(folders.iter().position(is_ready).unwrap_or(0));
        seal(&folder).runs().for_each(|run| _ = awaited.remove(&run.run));
        ordered.push(folder);
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

#[cfg(test)]
mod tests {
    use super::TransferCounts;

    #[test]
    fn what_was_sent_in_several_steps_adds_up() {
        let mut all = TransferCounts { folders: 1, versions: 2, bytes: 3, cleared: 4, notes: 6 };
        all += TransferCounts { folders: 10, versions: 20, bytes: 30, cleared: 40, notes: 60 };
        let sum = TransferCounts { folders: 11, versions: 22, bytes: 33, cleared: 44, notes: 66 };
        assert_eq!(all, sum);
    }
}
