//! Opens buckets: settings from the environment and, for S3, the profile, and clients whose answers are bounded.

#[cfg(any(feature = "azure", feature = "gcp"))]
use std::env;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::list::PaginatedListStore;

use super::list::{Listed, SkippedKeys};
use super::open::{Opened, failure};
#[cfg(feature = "azure")]
use super::settings::check;
use super::settings::{Form, variables};
use super::traffic::{Connector, retries};
use crate::error::{Error, Result};
#[cfg(any(feature = "azure", feature = "gcp"))]
use crate::key;
use crate::net::proxies;
use crate::plan::StoreUrl;
#[cfg(feature = "aws")]
use crate::process::cancel::CancellationToken;

/// The connections to a store.
fn connector(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Connector> {
    // A proxy that cannot be used is refused, not ignored.
    let proxies = proxies::of_environment().map_err(|error| failure(url, error))?;
    Ok(Connector { proxies: Arc::new(proxies), skipped: skipped.clone() })
}

fn in_bucket<S: ObjectStore + PaginatedListStore>(url: &StoreUrl, store: S) -> Result<Opened> {
    let parsed = object_store::ObjectStoreScheme::parse(url.as_url());
    let (_, prefix) = parsed.map_err(|error| failure(url, error.to_string()))?;
    let store = Arc::new(store);
    Ok(Opened { objects: Arc::clone(&store) as _, listed: Listed::Pages(store), prefix: prefix.to_string() })
}

/// The error for settings that the client refuses. Its own may quote one, which may be a secret.
fn refusal(url: &StoreUrl, settings: &str) -> Error {
    failure(url, format!("the settings {settings} are incomplete or invalid"))
}

#[cfg(feature = "aws")]
pub(super) fn s3(url: &StoreUrl, skipped: &SkippedKeys, stop: &CancellationToken) -> Result<Opened> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

    let form = |name: &str| {
        Some(match name.parse().ok()? {
            Key::Endpoint
            | Key::S3Endpoint
            | Key::StsEndpoint
            | Key::MetadataEndpoint
            | Key::ContainerCredentialsFullUri => Form::Address,
            Key::ContainerCredentialsRelativeUri => Form::Target,
            Key::WebIdentityTokenFile | Key::ContainerAuthorizationTokenFile => Form::Any,
            Key::Region | Key::DefaultRegion => Form::Name,
            Key::Client(key) => Form::of_client(key),
            _ => Form::Text,
        })
    };
    let mut builder = AmazonS3Builder::new();
    for (name, value) in variables("AWS_", form).map_err(|reason| failure(url, reason))? {
        let Ok(key) = name.parse::<Key>() else { continue };
        builder = builder.with_config(key, value);
    }
    // Not every store with the interface of S3 has bulk deletes.
    let builder = builder.with_url(url.as_url().as_str()).with_disable_bulk_delete(true).with_retry(retries());
    let builder = builder.with_http_connector(connector(url, skipped)?);
    let builder = super::profile::apply(builder, stop).map_err(|reason| failure(url, reason))?;
    let refused = |_| refusal(url, "in the environment (`AWS_…`) or in the profile");
    let builder = super::credentials::check(builder).map_err(refused)?;
    in_bucket(url, builder.build().map_err(refused)?)
}

#[cfg(feature = "gcp")]
pub(super) fn google(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Opened> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

    let form = |name: &str| {
        Some(match name.parse().ok()? {
            Key::BaseUrl => Form::Address,
            Key::ServiceAccount | Key::ServiceAccountKey | Key::ApplicationCredentials => Form::Any,
            Key::Client(key) => Form::of_client(key),
            _ => Form::Text,
        })
    };
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Ok(path) = env::var("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (name, value) in variables("GOOGLE_", form).map_err(|reason| failure(url, reason))? {
        let Ok(key) = name.parse::<Key>() else { continue };
        builder = builder.with_config(key, value);
    }
    key::mask(builder.get_config_value(&Key::BearerToken));
    let builder = builder.with_url(url.as_url().as_str()).with_retry(retries());
    let built = builder.with_http_connector(connector(url, skipped)?).build();
    in_bucket(url, built.map_err(|_| refusal(url, "in the environment (`GOOGLE_…`)"))?)
}

#[cfg(feature = "azure")]
pub(super) fn azure(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Opened> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

    /// The variable of Azure's hosts with the address of their managed identity.
    const IDENTITY: &str = "IDENTITY_ENDPOINT";

    let form = |name: &str| {
        Some(match name.parse().ok()? {
            Key::Endpoint | Key::AuthorityHost | Key::MsiEndpoint | Key::FabricTokenServiceUrl => Form::Address,
            Key::AccountName => Form::Name,
            Key::FederatedTokenFile => Form::Any,
            Key::Client(key) => Form::of_client(key),
            _ => Form::Text,
        })
    };
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in variables("AZURE_", form).map_err(|reason| failure(url, reason))? {
        let Ok(key) = name.parse::<Key>() else { continue };
        builder = builder.with_config(key, value);
    }
    if let Ok(identity) = env::var(IDENTITY) {
        check(IDENTITY, Form::Address, &identity).map_err(|reason| failure(url, reason))?;
        builder = builder.with_msi_endpoint(identity);
    }
    let secrets = [Key::AccessKey, Key::ClientSecret, Key::SasKey, Key::Token];
    key::mask(secrets.iter().filter_map(|key| builder.get_config_value(key)));
    let builder = builder.with_url(url.as_url().as_str()).with_retry(retries());
    let built = builder.with_http_connector(connector(url, skipped)?).build();
    in_bucket(url, built.map_err(|_| refusal(url, "in the environment (`AZURE_…`)"))?)
}
