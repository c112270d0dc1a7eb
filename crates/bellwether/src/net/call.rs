//! One request to an address that a definition names beside the service: of a hook. No
//! redirect is followed, and no message has the address, which may be a secret.

use std::time::Duration;

use reqwest::{Client, redirect};
use url::Url;

use super::{proxies, tls};
use crate::error::causes;
use crate::net::address::is_loopback;
use crate::text::human::took;

/// A client for an address, with a limit for the whole answer.
///
/// # Errors
///
/// A sentence without its subject, if the proxy of the environment cannot be used.
pub fn client(url: &Url, timeout: Duration) -> Result<Client, String> {
    if !is_loopback(url) {
        // The client would ignore a proxy that it cannot use.
        proxies::of_environment().map_err(|error| format!("cannot be reached: {error}"))?;
    }
    let client = tls::client()
        .user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .timeout(timeout);
    // Plain HTTP needs no certificates, and a system without any must not fail.
    let client = if url.scheme() == "http" { client.tls_certs_only([]) } else { client };
    client.build().map_err(|error| failure(error, timeout))
}

/// Why a request with such a client failed: a sentence without its subject.
pub fn failure(error: reqwest::Error, timeout: Duration) -> String {
    let error = error.without_url();
    match causes(&error).last() {
        _ if error.is_timeout() => format!("did not answer within {}", took(timeout)),
        Some(why) => format!("cannot be reached: {why}"),
        None => format!("cannot be reached: {error}"),
    }
}
