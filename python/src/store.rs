//! The object store of a call: what only it has is fetched before it is read, as by the program.

use std::path::Path;

use bellwether::disk::names::is_dataset;
use bellwether::error::Result;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{Control, FetchItem, RemoteStore, StoreAccess, store_of};
use tokio_util::sync::CancellationToken;

use crate::publish::block_on;

/// Fetches what this machine does not have, if the environment or the definition names a store. The folders are those of the
/// data and of the archive.
pub(crate) fn fetch(
    plan: Option<&Plan>,
    (data, archive): (&Path, &Path),
    items: &[FetchItem<'_>],
    stop: &CancellationToken,
) -> Result<()> {
    let Some(url) = store_of(None, plan)?.filter(|_| !items.is_empty()) else { return Ok(()) };
    let control = Control { stop: stop.clone(), ..Control::default() };
    block_on(async {
        let store = RemoteStore::open(&url, StoreAccess::Read, archive, data, &control)?;
        store.pull_items(items).await
    })
}

/// Fetches the latest version of a dataset, if it is named alone, and what else is needed of it.
pub(crate) fn fetch_version(
    name: &str,
    folders: (&Path, &Path),
    more: &[FetchItem<'_>],
    stop: &CancellationToken,
) -> Result<()> {
    let (dataset, is_alone) = (name.split('/').next().unwrap_or(name), is_dataset(name));
    let version = is_alone.then_some(FetchItem::Version(name));
    let items: Vec<FetchItem<'_>> = version.into_iter().chain(more.iter().copied()).collect();
    if items.is_empty() || !is_dataset(dataset) {
        return Ok(());
    }
    let plan = Project::find().and_then(|project| Plan::find(dataset, &project)).ok();
    fetch(plan.as_ref(), folders, &items, stop)
}
