//! Opens the store at an address, with the credentials that the provider's own tools would use.

use std::fs;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use super::{Result, StoreError};
use crate::plan::{StoreKind, StoreUrl};
use crate::proxies;
#[cfg(feature = "azure")]
use crate::secret;

#[cfg(feature = "cloud")]
use super::traffic::{Connector, retries};

/// An open store, and the prefix of its keys.
pub(super) struct Opened {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) prefix: String,
}

/// Opens a store. Nothing is sent to it yet.
pub(super) fn open(url: &StoreUrl) -> Result<Opened> {
    if url.kind() != StoreKind::Folder {
        // The clients of stores would ignore a proxy that they cannot use.
        proxies::of_environment().map_err(|error| StoreError::Open { url: url.to_string(), source: error.into() })?;
    }
    match url.kind() {
        StoreKind::Folder => folder(url),
        #[cfg(feature = "aws")]
        StoreKind::S3 => in_bucket(url, s3(url)?),
        #[cfg(feature = "gcp")]
        StoreKind::Google => in_bucket(url, google(url)?),
        #[cfg(feature = "azure")]
        StoreKind::Azure => in_bucket(url, azure(url)?),
        #[cfg(not(feature = "aws"))]
        StoreKind::S3 => Err(missing(url, "aws")),
        #[cfg(not(feature = "gcp"))]
        StoreKind::Google => Err(missing(url, "gcp")),
        #[cfg(not(feature = "azure"))]
        StoreKind::Azure => Err(missing(url, "azure")),
    }
}

#[cfg(feature = "cloud")]
fn in_bucket(url: &StoreUrl, objects: Arc<dyn ObjectStore>) -> Result<Opened> {
    let parsed = object_store::ObjectStoreScheme::parse(url.as_url());
    let (_, prefix) = parsed.map_err(|error| failed(url, error.to_string()))?;
    Ok(Opened { objects, prefix: prefix.to_string() })
}

fn failed(url: &StoreUrl, reason: impl Into<String>) -> StoreError {
    StoreError::Open { url: url.to_string(), source: reason.into().into() }
}

#[cfg(not(all(feature = "aws", feature = "gcp", feature = "azure")))]
fn missing(url: &StoreUrl, feature: &'static str) -> StoreError {
    StoreError::Feature { url: url.to_string(), feature }
}

fn folder(url: &StoreUrl) -> Result<Opened> {
    let folder = url.folder().ok_or_else(|| failed(url, "it is not the path of a folder"))?;
    // The parent is not created: it may be a mount point without its file system.
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(url, error.to_string())),
        _ => {}
    }
    let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|_| failed(url, "it is not a folder"))?;
    Ok(Opened { objects: Arc::new(objects.with_fsync(true)), prefix: String::new() })
}

#[cfg(feature = "aws")]
fn s3(url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    let builder = AmazonS3Builder::from_env();
    let builder = super::profile::applied(builder).map_err(|reason| failed(url, reason))?;
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
        .iter()
        .find_map(|key| builder.get_config_value(key));
    let builder = if is_local(endpoint) { builder.with_allow_http(true) } else { builder };
    // Not every store with the interface of S3 has bulk deletes.
    let builder = builder.with_url(url.as_url().as_str()).with_disable_bulk_delete(true).with_retry(retries());
    let objects = builder.with_http_connector(Connector).build();
    // The error may quote a setting, which may be a secret.
    objects.map(|objects| Arc::new(objects) as _).map_err(|_| {
        failed(url, "the settings in the environment (`AWS_…`) or in the profile are incomplete or invalid")
    })
}

#[cfg(feature = "gcp")]
fn google(url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
    let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_url(url.as_url().as_str());
    let objects = builder.with_retry(retries()).with_http_connector(Connector).build();
    objects
        .map(|objects| Arc::new(objects) as _)
        .map_err(|_| failed(url, "the settings in the environment (`GOOGLE_…`) are incomplete or invalid"))
}

#[cfg(feature = "azure")]
fn azure(url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

    let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_url().as_str());
    let secrets = [Key::AccessKey, Key::ClientSecret, Key::SasKey, Key::Token];
    secret::mask(secrets.iter().filter_map(|key| builder.get_config_value(key)));
    let is_local = is_local(builder.get_config_value(&Key::Endpoint));
    let builder = if is_local { builder.with_allow_http(true) } else { builder };
    let objects = builder.with_retry(retries()).with_http_connector(Connector).build();
    objects
        .map(|objects| Arc::new(objects) as _)
        .map_err(|_| failed(url, "the settings in the environment (`AZURE_…`) are incomplete or invalid"))
}

/// Whether an endpoint is on this machine, where requests need no TLS.
#[cfg(any(feature = "aws", feature = "azure"))]
fn is_local(endpoint: Option<String>) -> bool {
    endpoint.and_then(|endpoint| url::Url::parse(&endpoint).ok()).is_some_and(|url| crate::address::is_loopback(&url))
}
