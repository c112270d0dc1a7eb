//! Which `Host` a request may have.
//!
//! A page in a browser can resolve a name of its own to an address of ours ("DNS rebinding") and read our answers as its
//! own. It cannot change the name that the browser sends, so a request has to name this machine, the address that it came
//! to, or a name that the user gave.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// The name or address of a host, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text is not repeated in the error: it may be an address with a password.
        let address: Option<IpAddr> = strip_brackets(text).parse().ok();
        let is_name = || text.parse::<Uri>().is_ok_and(|uri| uri.host() == Some(text) && uri.port().is_none());
        match address {
            Some(address) => Ok(Self(address.to_canonical().to_string())),
            None if is_name() => Ok(Self(text.to_owned())),
            None => Err("not the name of a host\ngive the name alone, such as `status.example.com`".to_owned()),
        }
    }
}

/// The hosts that are served.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<HostName>);

impl Hosts {
    /// The hosts of this machine, and these.
    pub fn with(more: Vec<HostName>) -> Self {
        Self(more)
    }

    /// Whether the host and port of a request to a local address may be answered. The port may be that of a tunnel.
    pub(super) fn has(&self, authority: &str, local: Option<IpAddr>) -> bool {
        let uri: Option<Uri> = authority.parse().ok();
        let Some(host) = uri.as_ref().filter(|uri| uri.path().is_empty()).and_then(Uri::host) else { return false };
        if authority.contains('@') {
            return false;
        }
        let given = |name: &str| self.0.iter().any(|HostName(known)| known.eq_ignore_ascii_case(name));
        match strip_brackets(host).parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(address) => {
                address.is_loopback()
                    || local.is_some_and(|local| local.to_canonical() == address)
                    || given(&address.to_string())
            }
            Err(_) => host.eq_ignore_ascii_case("localhost") || given(host),
        }
    }
}

/// An address of version 6 as written in a URL, without its brackets.
fn strip_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::{HostName, Hosts};

    #[test]
    fn only_this_machine_its_address_and_given_hosts_are_served() {
        let given = ["status.example.com", "10.9.9.9", "[fd00::9]"].map(|name| name.parse().expect("a host"));
        let hosts = Hosts::with(given.to_vec());
        let has = |authority: &str| hosts.has(authority, Some("::ffff:10.1.2.3".parse().expect("an address")));
        for ours in [
            "localhost",
            "LocalHost:9464",
            "127.0.0.1",
            "127.8.9.1:80",
            "[::1]:9464",
            "[::1]",
            "10.1.2.3:9464",
            "[::ffff:10.1.2.3]",
            "status.example.com",
            "STATUS.example.com:80",
            "10.9.9.9",
            "[fd00::9]:1",
        ] {
            assert!(has(ours), "{ours}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example:9464",
            "127.0.0.1.evil.example",
            "status.example.com.evil.example",
            "x.status.example.com",
            "10.1.2.4",
            "0.0.0.0",
            "[::2]",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost/..",
            "http://localhost",
            "localhost localhost",
        ] {
            assert!(!has(other), "{other}");
        }
    }

    #[test]
    fn a_host_is_given_without_scheme_port_and_path() {
        for wrong in ["", "http://a.example", "a.example:80", "a.example/x", "me@a.example", "*", "a b"] {
            let refusal = wrong.parse::<HostName>().expect_err(wrong);
            assert!(refusal.starts_with("not the name of a host\n"), "{wrong}: {refusal}");
        }
    }
}
