//! Opens buckets: settings from the environment and, for S3, the profile, and clients whose answers are bounded.
//!
//! The client panics on an address without a host and on a token with a line break, ignores what is not text, and is
//! replaced by ours where it reads options of connections. So each variable that it reads is used or refused, by name. Its
//! value may be a secret, and is never repeated.

use std::env;
use std::ffi::OsStr;
use std::str::FromStr;
use std::sync::Arc;

use object_store::list::PaginatedListStore;
use object_store::{ClientConfigKey, ObjectStore};
use url::Url;

use super::contents::SkippedKeys;
use super::objects::{Client, cannot_open};
use super::traffic::{Connector, retries};
use crate::error::Result;
#[cfg(any(feature = "azure", feature = "gcp"))]
use crate::key;
use crate::net::proxies;
use crate::plan::StoreUrl;
#[cfg(feature = "aws")]
use crate::process::cancel::CancellationToken;

/// The connections to a store.
fn connector(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Connector> {
    // A proxy that cannot be used is refused, not ignored.
    let proxies = proxies::of_environment().map_err(|error| cannot_open(url, error))?;
    Ok(Connector { proxies: Arc::new(proxies), skipped: skipped.clone() })
}

/// The client of a bucket, if it takes the settings. Its own error may quote one, which may be a secret.
fn in_bucket<S: ObjectStore + PaginatedListStore>(
    url: &StoreUrl,
    built: object_store::Result<S>,
    settings: &str,
) -> Result<Client> {
    let incomplete = format!("the settings {settings} are incomplete or invalid");
    let bucket = Arc::new(built.map_err(|_| cannot_open(url, incomplete))?);
    let parsed = object_store::ObjectStoreScheme::parse(url.as_url());
    let (_, prefix) = parsed.map_err(|error| cannot_open(url, error.to_string()))?;
    Ok(Client { objects: Arc::clone(&bucket) as _, pages: Some(bucket), prefix: prefix.to_string() })
}

#[cfg(feature = "aws")]
pub(super) fn s3(url: &StoreUrl, skipped: &SkippedKeys, stop: &CancellationToken) -> Result<Client> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

    let settings = variables(url, "AWS_", |key: &Key| match key {
        Key::Endpoint
        | Key::S3Endpoint
        | Key::StsEndpoint
        | Key::MetadataEndpoint
        | Key::ContainerCredentialsFullUri => Form::Address,
        Key::ContainerCredentialsRelativeUri => Form::Target,
        Key::WebIdentityTokenFile | Key::ContainerAuthorizationTokenFile => Form::Any,
        Key::Region | Key::DefaultRegion => Form::Name,
        Key::Client(key) => Form::from_client_key(*key),
        _ => Form::Text,
    })?;
    let builder = AmazonS3Builder::new();
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    // Not every store with the interface of S3 has bulk deletes.
    let builder = builder.with_url(url.as_url().as_str()).with_disable_bulk_delete(true).with_retry(retries());
    let builder = builder.with_http_connector(connector(url, skipped)?);
    let builder = super::aws::apply_profile(builder, stop).map_err(|reason| cannot_open(url, reason))?;
    let built = super::aws::check_given(builder).and_then(AmazonS3Builder::build);
    in_bucket(url, built, "in the environment (`AWS_…`) or in the profile")
}

#[cfg(feature = "gcp")]
pub(super) fn google(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Client> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

    let settings = variables(url, "GOOGLE_", |key: &Key| match key {
        Key::BaseUrl => Form::Address,
        Key::ServiceAccount | Key::ServiceAccountKey | Key::ApplicationCredentials => Form::Any,
        Key::Client(key) => Form::from_client_key(*key),
        _ => Form::Text,
    })?;
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Ok(path) = env::var("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    key::mask(builder.get_config_value(&Key::BearerToken));
    let builder = builder.with_url(url.as_url().as_str()).with_retry(retries());
    let built = builder.with_http_connector(connector(url, skipped)?).build();
    in_bucket(url, built, "in the environment (`GOOGLE_…`)")
}

#[cfg(feature = "azure")]
pub(super) fn azure(url: &StoreUrl, skipped: &SkippedKeys) -> Result<Client> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

    /// The variable of Azure's hosts with the address of their managed identity.
    const IDENTITY: &str = "IDENTITY_ENDPOINT";

    let settings = variables(url, "AZURE_", |key: &Key| match key {
        Key::Endpoint | Key::AuthorityHost | Key::MsiEndpoint | Key::FabricTokenServiceUrl => Form::Address,
        Key::AccountName => Form::Name,
        Key::FederatedTokenFile => Form::Any,
        Key::Client(key) => Form::from_client_key(*key),
        _ => Form::Text,
    })?;
    let builder = MicrosoftAzureBuilder::new();
    let mut builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    if let Ok(identity) = env::var(IDENTITY) {
        check_setting(IDENTITY, Form::Address, &identity).map_err(|reason| cannot_open(url, reason))?;
        builder = builder.with_msi_endpoint(identity);
    }
    let secrets = [Key::AccessKey, Key::ClientSecret, Key::SasKey, Key::Token];
    key::mask(secrets.iter().filter_map(|key| builder.get_config_value(key)));
    let builder = builder.with_url(url.as_url().as_str()).with_retry(retries());
    let built = builder.with_http_connector(connector(url, skipped)?).build();
    in_bucket(url, built, "in the environment (`AZURE_…`)")
}

/// What a setting must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only the settings of S3 have all forms"))]
pub(super) enum Form {
    /// An address with `http://` or `https://` and a host.
    Address,
    /// Part of a host's name.
    Name,
    /// Text that may be part of a header.
    Text,
    /// Text of any kind: a path, or JSON.
    Any,
    /// A path on a host.
    Target,
    /// Nothing: this program does not use it.
    Unsupported,
}

impl Form {
    /// That of an option of connections: all but one are set by this program.
    fn from_client_key(key: ClientConfigKey) -> Self {
        if key == ClientConfigKey::AllowHttp { Self::Text } else { Self::Unsupported }
    }

    /// Why a value does not have it; `None` if it does.
    fn fault(self, value: &OsStr) -> Option<&'static str> {
        let Some(text) = value.to_str() else { return Some("is not text") };
        let is_visible = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let (has_it, fault) = match self {
            Self::Address => (is_address(text), "is not an address such as `https://s3.example.com`"),
            Self::Name => (text.bytes().all(is_name), "is not a name of letters, digits and hyphens"),
            Self::Text => (is_visible(text), "has a line break or another character that no header may have"),
            Self::Any => (true, ""),
            Self::Target => {
                let is_path = text.starts_with('/') && is_visible(text) && !text.contains([' ', '#']);
                (is_path, "is not a path such as `/v2/credentials`")
            }
            Self::Unsupported => (false, "is not supported"),
        };
        (!has_it).then_some(fault)
    }
}

/// Whether the client can reach an address: the parsers of both sides take it, without anything to be dropped.
fn is_address(text: &str) -> bool {
    let is_plain = |url: Url| {
        url.host_str().is_some_and(|host| !host.is_empty())
            && (url.username(), url.password(), url.query(), url.fragment()) == ("", None, None, None)
    };
    let begins = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_visible && begins && text.parse::<http::Uri>().is_ok() && Url::parse(text).is_ok_and(is_plain)
}

/// The settings in the variables with a prefix that a client reads, in a form for each. An empty one counts as not set.
fn variables<K: FromStr>(url: &StoreUrl, prefix: &str, form: impl Fn(&K) -> Form) -> Result<Vec<(K, String)>> {
    let mut settings = Vec::new();
    for (name, value) in env::vars_os().filter(|(_, value)| !value.is_empty()) {
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        let Ok(key) = name.to_ascii_lowercase().parse::<K>() else { continue };
        check_setting(name, form(&key), &value).map_err(|reason| cannot_open(url, reason))?;
        settings.extend(value.into_string().ok().map(|value| (key, value)));
    }
    Ok(settings)
}

/// Checks one setting.
pub(super) fn check_setting(name: &str, form: Form, value: impl AsRef<OsStr>) -> Result<(), String> {
    form.fault(value.as_ref()).map_or(Ok(()), |fault| Err(format!("`{name}` {fault}")))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::Form;

    #[test]
    fn addresses_that_a_client_would_panic_on_are_refused() {
        let is_taken = |text: &str| Form::Address.fault(OsStr::new(text)).is_none();
        for right in ["http://127.0.0.1:9000", "https://s3.example.com", "https://s3.example.com/x/", "http://[::1]:1"]
        {
            assert!(is_taken(right), "{right}");
        }
        for wrong in [
            "",
            "s3.example.com",
            "localhost:9000",
            "http://",
            "http:///x",
            "http:s3.example.com",
            "HTTP://s3.example.com",
            "http://s3.example.com:99999",
            "http://s3.example.com\n",
            " http://s3.example.com",
            "ftp://s3.example.com",
            "http://me:pass@s3.example.com",
            "http://s3.example.com?a=b",
            "http://[::1",
            "http://s3 example.com",
        ] {
            assert!(!is_taken(wrong), "{wrong:?}");
        }
    }
}
