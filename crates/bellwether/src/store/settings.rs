//! The settings of a client that come from the environment, checked before it is built.
//!
//! The client panics on an address without a host and on a token with a line break, ignores what is not text, and is
//! replaced by ours where it reads options of connections. So each variable that it reads is used or refused, by name. Its
//! value may be a secret, and is never repeated.

use std::env;
use std::ffi::OsStr;

use object_store::ClientConfigKey;
use url::Url;

/// What a setting must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An address with `http://` or `https://` and a host.
    Address,
    /// Part of a host's name.
    #[cfg(any(feature = "aws", feature = "azure"))]
    Name,
    /// Text that may be part of a header.
    Text,
    /// Text of any kind: a path, or JSON.
    Any,
    /// A path on a host.
    #[cfg(feature = "aws")]
    Target,
    /// Nothing: this program does not use it.
    Unsupported,
}

impl Form {
    /// That of an option of connections: all but one are set by this program.
    pub(super) fn of_client(key: ClientConfigKey) -> Self {
        match key {
            ClientConfigKey::AllowHttp => Self::Text,
            _ => Self::Unsupported,
        }
    }

    /// Why a value does not have it; `None` if it does.
    fn fault(self, value: &OsStr) -> Option<&'static str> {
        let Some(text) = value.to_str() else { return Some("is not text") };
        let is_visible = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        match self {
            Self::Address if !is_address(text) => Some("is not an address such as `https://s3.example.com`"),
            #[cfg(any(feature = "aws", feature = "azure"))]
            Self::Name if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) => {
                Some("is not a name of letters, digits and hyphens")
            }
            Self::Text if !is_visible(text) => Some("has a line break or another character that no header may have"),
            #[cfg(feature = "aws")]
            Self::Target if !(text.starts_with('/') && is_visible(text) && !text.contains([' ', '#'])) => {
                Some("is not a path such as `/v2/credentials`")
            }
            Self::Unsupported => Some("is not supported"),
            _ => None,
        }
    }
}

/// Whether the client can reach an address: the parsers of both sides take it, without anything to be dropped.
fn is_address(text: &str) -> bool {
    let is_plain = |url: Url| {
        matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some_and(|host| !host.is_empty())
            && (url.username(), url.password(), url.query(), url.fragment()) == ("", None, None, None)
    };
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    let begins = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    is_visible && begins && text.parse::<http::Uri>().is_ok() && Url::parse(text).is_ok_and(is_plain)
}

/// The variables with a prefix that a client reads, by their names in lower case; `form` has a form for each. An empty
/// one counts as not set.
pub(super) fn variables(
    prefix: &str,
    form: impl Fn(&str) -> Option<Form>,
) -> Result<impl Iterator<Item = (String, String)>, String> {
    let mut known = Vec::new();
    for (name, value) in env::vars_os().filter(|(_, value)| !value.is_empty()) {
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        let lower = name.to_ascii_lowercase();
        let Some(form) = form(&lower) else { continue };
        check(name, form, &value)?;
        known.extend(value.into_string().ok().map(|value| (lower, value)));
    }
    Ok(known.into_iter())
}

/// Checks one setting.
pub(super) fn check(name: &str, form: Form, value: impl AsRef<OsStr>) -> Result<(), String> {
    match form.fault(value.as_ref()) {
        Some(fault) => Err(format!("`{name}` {fault}")),
        None => Ok(()),
    }
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
