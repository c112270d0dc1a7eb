//! The route to a service: direct, or through the proxy that the environment sets for it.
//!
//! `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (or lower-case) work as in curl. A service on this machine is always
//! reached directly, and a proxy only ever sees TLS: plain HTTP would show it the key.

use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::{ClientBuilder, Proxy};
use url::Url;

use super::retry::RateLimiter;
use crate::error::{Error, ErrorKind, Result};
use crate::net::address::{host_of, is_loopback};
use crate::net::proxies;

/// The route to a base address.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) address: Url,
    /// Host and port of the service.
    pub(super) host: String,
    proxy: Option<Intercept>,
    /// Requests per second.
    pub(super) pace: Arc<RateLimiter>,
}

impl Route {
    /// The route to an address in this environment.
    pub(super) fn to(address: &Url, pace: Arc<RateLimiter>) -> Result<Self> {
        let is_direct = is_loopback(address);
        let proxies = if is_direct { Matcher::builder().build() } else { proxies::of_environment()? };
        Self::by(&proxies, address, pace)
    }

    fn by(proxies: &Matcher, address: &Url, pace: Arc<RateLimiter>) -> Result<Self> {
        let proxy = address.as_str().parse::<Uri>().ok().and_then(|uri| proxies.intercept(&uri));
        let route = Self { address: address.clone(), host: host_of(address), proxy, pace };
        let Some((proxy, name)) = route.proxy.as_ref().zip(route.proxy()) else { return Ok(route) };
        let reason = match (proxy.uri().scheme_str(), address.scheme()) {
            (Some("http" | "https"), "https") => return Ok(route),
            (Some("http" | "https"), _) => "plain http would expose the API key to the proxy",
            _ => "only proxies with an `http://` or `https://` address are supported",
        };
        Err(Error::new(ErrorKind::Service, format!("cannot reach {} through the proxy `{name}`", route.host))
            .with_hint("use `https://` and an HTTP proxy, or name the host in `NO_PROXY`")
            .with_source(reason))
    }

    /// Host and port of the proxy, without credentials; `None` without a proxy.
    pub(super) fn proxy(&self) -> Option<String> {
        let uri = self.proxy.as_ref()?.uri();
        let host = uri.host().unwrap_or("?");
        Some(uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// Configures a client to use this route.
    pub(super) fn add_to(&self, client: ClientBuilder) -> ClientBuilder {
        let Some(proxy) = &self.proxy else { return client };
        let (host, uri) = (self.host.clone(), proxy.uri().to_string());
        let route = Proxy::custom(move |url| (host_of(url) == host).then(|| uri.clone()));
        client.proxy(match proxy.basic_auth() {
            Some(credentials) => route.custom_http_auth(credentials.clone()),
            None => route,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::sync::Arc;

    use hyper_util::client::proxy::matcher::Matcher;
    use url::Url;

    use super::{RateLimiter, Route};

    fn route(proxy: &str, no: &str, address: &str) -> Result<Option<String>, String> {
        let proxies = Matcher::builder().all(proxy).no(no).build();
        let pace = Arc::new(RateLimiter::new(None));
        let route = Route::by(&proxies, &Url::parse(address).expect("an address"), pace);
        route.map(|route| route.proxy()).map_err(|error| format!("{error}: {}", error.source().expect("a reason")))
    }

    #[test]
    fn hosts_in_no_proxy_are_reached_directly() {
        let proxy = Ok(Some("proxy:3128".to_owned()));
        for (no, address, expected) in [
            ("api.example.com", "https://api.example.com/v1", &Ok(None)),
            ("API.example.com", "https://api.example.com/v1", &Ok(None)),
            ("example.com", "https://api.example.com/v1", &Ok(None)),
            (".example.com", "https://api.example.com/v1", &Ok(None)),
            (" other.com , example.com ", "https://api.example.com/v1", &Ok(None)),
            ("*", "https://api.example.com/v1", &Ok(None)),
            ("10.1.0.0/16", "https://10.1.2.3/v1", &Ok(None)),
            ("10.1.2.3", "https://10.1.2.3/v1", &Ok(None)),
            ("fd00::/8", "https://[fd12::1]/v1", &Ok(None)),
            ("ample.com", "https://api.example.com/v1", &proxy),
            ("api.example.com", "https://example.com/v1", &proxy),
            ("10.1.0.0/16", "https://10.2.2.3/v1", &proxy),
            ("", "https://api.example.com/v1", &proxy),
        ] {
            assert_eq!(&route("http://proxy:3128", no, address), expected, "{no}: {address}");
        }
    }

    #[test]
    fn a_proxy_is_named_without_its_credentials() {
        for proxy in ["http://me:S3CRET@proxy:3128", "me:S3CRET@proxy:3128", "https://me:S3CRET@proxy:3128/x"] {
            assert_eq!(route(proxy, "", "https://api.example.com"), Ok(Some("proxy:3128".to_owned())), "{proxy}");
        }
    }

    #[test]
    fn unsupported_proxies_and_those_that_would_see_the_key_are_refused() {
        assert_eq!(
            route("http://me:S3CRET@proxy:3128", "", "http://api.example.com/v1"),
            Err("cannot reach api.example.com:80 through the proxy `proxy:3128`: plain http would expose the API key to the proxy"
                .to_owned())
        );
        assert_eq!(
            route("socks5://proxy", "", "https://api.example.com/v1"),
            Err("cannot reach api.example.com:443 through the proxy `proxy`: \
                 only proxies with an `http://` or `https://` address are supported"
                .to_owned())
        );
    }
}
