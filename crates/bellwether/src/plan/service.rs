//! The identity of a service: whose data it is.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::disk::digest;

/// A service, as definitions and archives know it. Data of services with different names never meets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceIdentity {
    /// Its name, which is that of its folder in an archive.
    pub name: String,
    /// The address of its signals; none for the built-in demo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The address of its news; none if no news is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentiment_base_url: Option<String>,
}

/// The longest name.
const MOST_CHARACTERS: usize = 80;

/// The end of the name of the folder with the claims of a service, which no service has.
const OF_CLAIMS: &str = ".claimed";

impl ServiceIdentity {
    /// The name of the built-in service.
    pub const DEMO: &'static str = "demo";

    /// The built-in service.
    pub fn demo() -> Self {
        Self { name: Self::DEMO.to_owned(), base_url: None, sentiment_base_url: None }
    }

    /// The name of the folder with the claims of a service.
    pub fn claims_of(name: &str) -> String {
        format!("{name}{OF_CLAIMS}")
    }

    /// Whether a name is that of a folder with the claims of a service.
    pub(crate) fn is_of_claims(text: &str) -> bool {
        text.strip_suffix(OF_CLAIMS).is_some_and(Self::is_name)
    }

    /// Whether a name is that of a folder with what a service said, or is claimed to have said.
    pub(crate) fn is_folder(text: &str) -> bool {
        Self::is_name(text) || Self::is_of_claims(text)
    }

    /// Whether a text may be the name of a service: that of a visible folder, which is no folder of a run and has no claims.
    pub fn is_name(text: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        text.len() <= MOST_CHARACTERS
            && !text.ends_with(OF_CLAIMS)
            && text.bytes().all(is_plain)
            && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
    }

    /// The name that follows from an address: its host, port and path.
    pub(crate) fn name_of(address: &Url) -> String {
        let host = address.host_str().unwrap_or_default();
        let port = address.port().map(|port| format!("-{port}")).unwrap_or_default();
        let path = address.path().trim_matches('/');
        let slash = if path.is_empty() { "" } else { "-" };
        let text = format!("{host}{port}{slash}{path}");
        let plain = |letter: char| match letter {
            letter if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.') => letter,
            _ => '-',
        };
        let name: String = text.chars().map(plain).collect::<String>().trim_start_matches(['-', '_', '.']).to_owned();
        // Names of other addresses must differ from it, and the demo's is taken.
        let is_whole = text.chars().all(|letter| plain(letter) == letter || letter == '/');
        if is_whole && Self::is_name(&name) && name != Self::DEMO {
            return name;
        }
        let digest = digest::of(text.as_bytes());
        let start: String = name.chars().take(MOST_CHARACTERS - 9).collect();
        format!("{}-{}", if start.is_empty() { "service" } else { &start }, &digest[..8])
    }
}

impl fmt::Display for ServiceIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base_url {
            Some(address) => write!(formatter, "`{}` ({address})", self.name),
            None => write!(formatter, "`{}`", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::ServiceIdentity;

    #[test]
    fn a_name_is_made_of_host_port_and_path() {
        for (address, name) in [
            ("https://signals.example.com/v1", "signals.example.com-v1"),
            ("https://signals.example.com/v1/", "signals.example.com-v1"),
            ("https://signals.example.com", "signals.example.com"),
            ("http://127.0.0.1:8080/seed-500/api", "127.0.0.1-8080-seed-500-api"),
            ("https://Signals.Example.com:8443/a/b", "signals.example.com-8443-a-b"),
        ] {
            assert_eq!(ServiceIdentity::name_of(&Url::parse(address).unwrap()), name);
        }
        for odd in ["http://[::1]:80/", "http://a.com/%7Eme/", "http://demo/", "http://a.com/v=1"] {
            let name = ServiceIdentity::name_of(&Url::parse(odd).unwrap());
            assert!(ServiceIdentity::is_name(&name) && name != "demo", "{name}");
        }
        let long = ServiceIdentity::name_of(&Url::parse(&format!("http://a.com/{}", "x".repeat(300))).unwrap());
        assert!(ServiceIdentity::is_name(&long), "{long}");
    }

    #[test]
    fn a_name_is_that_of_a_visible_folder() {
        for name in ["acme", "Acme-2", "a.b_c", "7"] {
            assert!(ServiceIdentity::is_name(name), "{name}");
        }
        for odd in ["", ".", "..", ".a", "a/b", "a b", "run=x", "-a", "ä", "acme.claimed"] {
            assert!(!ServiceIdentity::is_name(odd), "{odd}");
        }
    }
}
