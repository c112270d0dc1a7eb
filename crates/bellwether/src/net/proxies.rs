//! The proxies that the environment names, for every client of this program.
//!
//! The clients that read these variables ignore what they cannot parse, and connect directly: a slip of the pen would send
//! requests around the proxy that a network asks for. So a variable is used or refused. It may hold a password, and is
//! never repeated.

use std::env;
use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::error::{Error, ErrorKind, Result};

/// The variables with the address of a proxy.
const ADDRESSES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The variables with the hosts that are reached without one.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The proxies of the environment.
pub(crate) fn of_environment() -> Result<Matcher> {
    for variable in ADDRESSES {
        let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { continue };
        if !value.to_str().is_some_and(is_address) {
            return Err(Error::new(ErrorKind::Service, format!("`{variable}` does not have the address of a proxy"))
                .with_hint("use an address such as `http://proxy.example.com:3128`, or unset the variable"));
        }
    }
    for variable in EXCEPTIONS {
        let Some(value) = env::var_os(variable) else { continue };
        let reason = match value.to_str() {
            None => "it is not text".to_owned(),
            Some(text) => match text.split(',').position(|entry| !is_exception(entry.trim())) {
                None => continue,
                Some(index) => format!(
                    "its entry {} is neither a host, a suffix such as `.example.com`, an address, a network nor `*`",
                    index + 1
                ),
            },
        };
        return Err(Error::new(ErrorKind::Service, format!("`{variable}` is not a list of hosts"))
            .with_hint("separate hosts by commas, without ports, or unset the variable")
            .with_source(reason));
    }
    Ok(Matcher::from_env())
}

/// Whether the clients take a text for the address of a proxy. They overlook a port that is none.
fn is_address(text: &str) -> bool {
    let anywhere = Uri::from_static("https://host.invalid/");
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Matcher::builder().all(text).build().intercept(&anywhere).is_some()
        && Url::parse(&whole).is_ok_and(|url| url.host_str().is_some_and(|host| !host.is_empty()))
}

/// Whether an entry of a list of hosts can match one.
fn is_exception(entry: &str) -> bool {
    let is_network = |(address, bits): (&str, &str)| {
        let most = address.parse().ok().map(|address: IpAddr| if address.is_ipv4() { 32 } else { 128 });
        bits.parse::<u8>().ok().zip(most).is_some_and(|(bits, most)| bits <= most)
    };
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    entry.is_empty()
        || entry == "*"
        || entry.parse::<IpAddr>().is_ok()
        || entry.split_once('/').is_some_and(is_network)
        || entry.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::{is_address, is_exception};

    #[test]
    fn addresses_of_proxies() {
        for right in
            ["http://proxy:3128", "proxy:3128", "proxy", "https://me:pass@proxy", "socks5://proxy", "[::1]:3128"]
        {
            assert!(is_address(right), "{right}");
        }
        for wrong in
            [" ", "http://", "ftp://proxy", "http://pro xy", "http://proxy:99999", "proxy:x", "//proxy", "/proxy"]
        {
            assert!(!is_address(wrong), "{wrong}");
        }
    }

    #[test]
    fn entries_that_can_match_a_host() {
        for right in
            ["", "*", "localhost", ".example.com", "10.0.0.0/8", "fd00::/8", "::1", "192.0.2.1", "bücher.example"]
        {
            assert!(is_exception(right), "{right}");
        }
        for wrong in ["*.example.com", "10.0.0.0/33", "10/8", "host:80", "[::1]", "a b", "http://host", "fd00::/129"] {
            assert!(!is_exception(wrong), "{wrong}");
        }
    }
}
