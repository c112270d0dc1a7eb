//! What is read and may only be in a store: which store that is, and what is fetched before.

use std::env;

use chrono::{DateTime, Utc};

use super::RemoteStore;
use crate::disk::file;
use crate::error::{Error, Result};
use crate::plan::{Plan, StoreUrl};
use crate::run::AsOf;

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
}
