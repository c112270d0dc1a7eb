//! Addresses: of a service, of an object store, and of what is called after a run.
//!
//! The error for one that is invalid never repeats it, since it may contain a key.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::json_schema;
use serde::Deserialize;
use url::Url;

use super::values::{Refusal, TextOrList, described, parsed_from_text};
use crate::net::address::{self, is_loopback};

/// An address that requests are built on: https, or plain http to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(pub Url);

impl FromStr for BaseUrl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let mut url = address::parse(text)
            .map_err(|fault| format!("{fault}\nuse a full address, such as `https://api.example.com/v1`"))?;
        // With and without a slash at its end it is the same service.
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        refuse_query(&url, "the key comes from the environment, a file or a command")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a user name or password\nremove everything before `@`".to_owned());
        }
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_loopback(&url) => Ok(Self(url)),
            "http" => Err("plain http would send the API key unencrypted\nuse `https://`".to_owned()),
            scheme => Err(format!("unsupported scheme `{scheme}`\nuse `https://`")),
        }
    }
}

parsed_from_text!(
    BaseUrl,
    json_schema!({ "type": "string", "format": "uri", "examples": ["https://api.example.com/v1"] })
);

/// The address is not repeated in the refusal: it may contain a key.
fn refuse_query(url: &Url, hint: &str) -> Result<(), Refusal> {
    match (url.query(), url.fragment()) {
        (None, None) => Ok(()),
        _ => Err(format!("the address must not have a query\nremove everything from `?` or `#` on; {hint}")),
    }
}

/// The address of a service as typed: `https://api.example.com/v1`, or the variable of the environment that holds it,
/// `$VENDOR_URL`. A variable is always the whole address. What it holds is read by the plan, and shown only once it is known
/// to be an address: it may be a secret that was named by mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address.
    Written(BaseUrl),
    /// The name of the variable that holds it.
    Variable(String),
}

impl FromStr for Address {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const WHOLE: &str = "use `$` and the name of a variable that holds the whole address, such as `$VENDOR_URL`";
        if let Some(name) = text.strip_prefix('$') {
            let is_name = !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let variable = is_name.then(|| Self::Variable(name.to_owned()));
            return variable.ok_or_else(|| format!("no name of a variable\n{WHOLE}"));
        }
        let host = text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        if host.is_some_and(|host| host.contains('$')) {
            return Err(format!("a variable in an address\n{WHOLE}"));
        }
        text.parse().map(Self::Written)
    }
}

parsed_from_text!(Address, {
    let pattern = "^(https?://.+|\\$[A-Za-z_][A-Za-z0-9_]*)$";
    json_schema!({ "type": "string", "pattern": pattern, "examples": ["https://api.example.com/v1", "$VENDOR_URL"] })
});

/// What is called after a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TextOrList")]
pub enum Hook {
    /// A program and its arguments, run without a shell.
    Command(Vec<String>),
    /// An address that gets the record of the run by POST.
    Address(HookUrl),
}

/// An address of a web service. Its path or query may be a secret, so that only its host is ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct HookUrl(Url);

impl HookUrl {
    /// The address.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Debug for HookUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HookUrl({})", self.0.host_str().unwrap_or_default())
    }
}

impl FromStr for HookUrl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let hint = "use a full address, such as `https://hooks.example.com/nightly`";
        let url = address::parse(text).map_err(|fault| format!("{fault}\n{hint}"))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self(url)),
            scheme => Err(format!("unsupported scheme `{scheme}`\n{hint}, or a list for a command")),
        }
    }
}

parsed_from_text!(
    HookUrl,
    json_schema!({ "type": "string", "format": "uri", "examples": ["https://hc-ping.com/0c6e"] })
);

impl TryFrom<TextOrList> for Hook {
    type Error = Refusal;

    fn try_from(typed: TextOrList) -> Result<Self, Refusal> {
        match typed {
            TextOrList::Text(text) if text.contains("://") => text.parse().map(Self::Address),
            TextOrList::Text(_) => Err("neither an address nor a list\na command is a list of the program and its \
                                        arguments: `[\"notify\", \"--done\"]`; an address begins with `https://`"
                .to_owned()),
            TextOrList::List(words) if words.is_empty() => {
                Err("an empty command\nput the program first, then its arguments".to_owned())
            }
            TextOrList::List(words) => Ok(Self::Command(words)),
        }
    }
}

described!(
    Hook,
    json_schema!({
        "anyOf": [
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            { "type": "string", "format": "uri" },
        ],
        "examples": [["logger", "--tag", "bellwether"], "https://hooks.example.com/nightly"],
    })
);

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
        let credentials = "credentials come from the environment, a profile or the instance";
        refuse_query(&url, credentials)?;
        if url.password().is_some() {
            return Err(format!("an address with a password\nremove it; {credentials}"));
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

parsed_from_text!(StoreUrl, {
    let (pattern, examples) =
        ("^(s3|s3a|gs|az|abfs|abfss|file)://", ["s3://bucket/prefix", "file:///mnt/share/signals"]);
    json_schema!({ "type": "string", "format": "uri", "pattern": pattern, "examples": examples })
});
