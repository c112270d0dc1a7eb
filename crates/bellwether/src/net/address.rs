//! Addresses: which are on this machine, and how much of one a message may show.

use url::{Host, ParseError, Url};

/// Reads an address. The fault does not repeat it, since it may contain a secret.
pub fn parse(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => "not an address: it has no scheme".to_owned(),
        error => format!("not an address: {error}"),
    })
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Host and port of an address, never its credentials or query.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What may be a secret in a text that was meant as an address, whether or not it is one: the password, or a user name
/// without one, each value of the query, the fragment, and a token among parameters. What is too short to be a secret is
/// part of many words.
pub fn secrets(text: &str) -> Vec<&str> {
    let (address, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let after_scheme = address.find("://").map(|at| at + 3);
    let user = address.rfind('@').map(|end| &address[after_scheme.filter(|at| *at <= end).unwrap_or_default()..end]);
    // `abfss://container@account` names a container there.
    let is_azure = address.contains("abfs://") || address.contains("abfss://");
    let of_user = match user.map(|user| user.split_once(':').ok_or(user)) {
        Some(Ok((_, password))) => Some(password).filter(|password| password.len() >= 4),
        Some(Err(user)) if after_scheme.is_some() && !is_azure => Some(user).filter(|user| user.len() >= 8),
        _ => None,
    };
    let values = rest.split(['?', '#', '&', ';']).filter_map(|pair| match pair.split_once('=') {
        // The parameters of the interface.
        Some(("sector" | "period" | "regime", _)) => None,
        Some((_, value)) => Some(value),
        None => Some(pair),
    });
    let tokens = address.split([';', '/']).filter_map(|pair| pair.strip_prefix("token="));
    of_user.into_iter().chain(values.chain(tokens).filter(|value| value.len() >= 4)).collect()
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{is_loopback, secrets};

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        let is_here = |address: &str| is_loopback(&Url::parse(address).expect("an address"));
        for address in ["http://127.0.0.1:8000/a", "https://127.8.9.1", "http://[::1]:1/", "http://localhost:1/a"] {
            assert!(is_here(address), "{address}");
        }
        for address in ["https://localhost.example/a", "https://10.0.0.1/a", "https://[::2]/"] {
            assert!(!is_here(address), "{address}");
        }
    }

    #[test]
    fn secrets_are_found_in_addresses_and_in_what_should_be_one() {
        for (text, expected) in [
            ("https://v/v1?api_key=SECRET", &["SECRET"][..]),
            ("--base-url=https://v/v1?a=5d&api_key=SECRET#OTHER", &["SECRET", "OTHER"]),
            ("signals-history-all?sector=energy&regime=neutral&api_key=SECRET", &["SECRET"]),
            ("https://user:PASSWORD@v/v1", &["PASSWORD"]),
            ("https://LONG-TOKEN@v/v1", &["LONG-TOKEN"]),
            ("https://user@v/v1", &[]),
            ("https://user:pa/ss@wo:rd@v", &["pa/ss@wo:rd"]),
            ("user:PASSWORD@v", &["PASSWORD"]),
            ("v/v1?SECRET", &["SECRET"]),
            ("sc://cluster:15002/;use_ssl=true;token=SECRET", &["SECRET"]),
            ("abfss://container@account.dfs.core.windows.net/prefix", &[]),
            ("https://v/v1", &[]),
            ("name@version", &[]),
            ("?", &[]),
        ] {
            assert_eq!(secrets(text), expected, "{text}");
        }
    }
}
