//! Opens the store at an address, with the credentials that the provider's own tools would use.

use std::fs;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use super::list::{Listed, SkippedKeys};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::plan::{StoreKind, StoreUrl};
use crate::process::cancel::CancellationToken;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read what is in it. A folder must exist.
    Read,
    /// To write to it too. A folder is created.
    Write,
}

/// An open store, how it is listed, and the prefix of its keys.
pub(super) struct Opened {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) listed: Listed,
    pub(super) prefix: String,
}

/// Opens a store. Nothing is sent to it yet.
#[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "only S3 needs all of them"))]
pub(super) fn open(url: &StoreUrl, access: Access, skipped: &SkippedKeys, stop: &CancellationToken) -> Result<Opened> {
    match url.kind() {
        StoreKind::Folder => folder(url, access),
        #[cfg(feature = "aws")]
        StoreKind::S3 => super::cloud::s3(url, skipped, stop),
        #[cfg(feature = "gcp")]
        StoreKind::Google => super::cloud::google(url, skipped),
        #[cfg(feature = "azure")]
        StoreKind::Azure => super::cloud::azure(url, skipped),
        #[cfg(not(feature = "aws"))]
        StoreKind::S3 => Err(missing(url, "aws")),
        #[cfg(not(feature = "gcp"))]
        StoreKind::Google => Err(missing(url, "gcp")),
        #[cfg(not(feature = "azure"))]
        StoreKind::Azure => Err(missing(url, "azure")),
    }
}

/// The error for a store that cannot be opened: its credentials or settings are missing or invalid.
pub(super) fn failure(url: &StoreUrl, reason: impl Into<Reason>) -> Error {
    let hint = match url.kind() {
        StoreKind::Folder => "check the path; the folder that it is in must exist, and you must be able to write there",
        _ => CHECK_CREDENTIALS,
    };
    Error::new(ErrorKind::Storage, format!("cannot open the store `{url}`")).with_hint(hint).with_source(reason)
}

/// What to do about a bucket that cannot be opened, or refuses an operation.
pub(super) const CHECK_CREDENTIALS: &str =
    "check the address, and the credentials in the environment, the profile or the instance";

#[cfg(not(all(feature = "aws", feature = "gcp", feature = "azure")))]
fn missing(url: &StoreUrl, feature: &str) -> Error {
    Error::usage(format!("this build cannot use `{url}`"), format!("install bellwether with `--features {feature}`"))
}

fn folder(url: &StoreUrl, access: Access) -> Result<Opened> {
    let folder = url.folder().ok_or_else(|| failure(url, "it is not the path of a folder"))?;
    // The parent is not created: it may be a mount point without its file system.
    match fs::metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(failure(url, "it is not a folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && access == Access::Write => {
            fs::create_dir(&folder).map_err(|error| failure(url, error.to_string()))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::new(ErrorKind::Storage, format!("the store `{url}` does not exist"))
                .with_hint("check the address; `bellwether run` and `bellwether store push` create the folder"));
        }
        Err(error) => return Err(failure(url, error.to_string())),
    }
    let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|_| failure(url, "it is not a folder"))?;
    let objects = objects.with_fsync(true).with_automatic_cleanup(true);
    Ok(Opened { objects: Arc::new(objects), listed: Listed::Folder(folder), prefix: String::new() })
}
