//! The address of an object store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::json_schema;
use url::Url;

use super::values::{Refusal, parsed_from_text};
use crate::net::address;

/// The address of a folder in an object store: `s3://bucket/prefix`, `gs://…`, `az://…`, or `file:///…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    url: Url,
    kind: StoreKind,
}

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Amazon S3, and stores with its interface.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
    /// A folder, such as a network file system.
    Folder,
}

impl StoreUrl {
    /// Its kind.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// The address.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The folder of a `file:///` store.
    pub fn folder(&self) -> Option<PathBuf> {
        (self.kind == StoreKind::Folder).then(|| self.url.to_file_path().ok())?
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

const HINT: &str = "use an address such as `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or \
                    `file:///folder`";

impl FromStr for StoreUrl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let url = address::parse(text).map_err(|fault| format!("{fault}\n{HINT}"))?;
        if url.scheme() == "file" && !text.trim_start()["file:".len()..].starts_with("///") {
            return Err("not the absolute path of a folder\nwrite three slashes, such as `file:///mnt/share/signals`"
                .to_owned());
        }
        // The address is not repeated in the error: it may contain a key.
        if url.query().is_some() || url.fragment().is_some() {
            return Err(
                "the address must not have a query\nremove everything from `?` or `#` on; credentials come from the \
                        environment, a profile or the instance"
                    .to_owned(),
            );
        }
        if url.password().is_some() {
            return Err("an address with a password\nremove it; credentials come from the environment, a profile or \
                        the instance"
                .to_owned());
        }
        let kind = match url.scheme() {
            "s3" | "s3a" => StoreKind::S3,
            "gs" => StoreKind::Google,
            "az" | "abfs" | "abfss" => StoreKind::Azure,
            "file" => StoreKind::Folder,
            scheme => return Err(format!("unsupported scheme `{scheme}`\n{HINT}")),
        };
        let has_place = match kind {
            StoreKind::Folder => url.host().is_none() && url.path() != "/",
            // `abfss://container@account.dfs.core.windows.net/…` names the container before `@`.
            StoreKind::Azure => url.host().is_some(),
            StoreKind::S3 | StoreKind::Google => url.host().is_some() && url.username().is_empty(),
        };
        let is_named = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte));
        if kind != StoreKind::Folder && !(is_named(url.host_str().unwrap_or_default()) && is_named(url.username())) {
            return Err(format!("the name of a bucket has letters, digits, hyphens and dots only\n{HINT}"));
        }
        if has_place { Ok(Self { url, kind }) } else { Err(format!("an address without a bucket or folder\n{HINT}")) }
    }
}

parsed_from_text!(
    StoreUrl,
    json_schema!({ "type": "string",
            "format": "uri",
            "pattern": "^(s3|s3a|gs|az|abfs|abfss|file)://",
            "examples": ["s3://bucket/prefix", "file:///mnt/share/signals"], })
);
