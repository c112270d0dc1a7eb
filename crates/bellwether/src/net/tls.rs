//! HTTP clients whose TLS is rustls with *ring*, which builds in a fraction of the time that rustls' default takes.

use reqwest::ClientBuilder;
use rustls::crypto::ring::default_provider;

/// A client to configure.
pub(crate) fn client() -> ClientBuilder {
    use_ring();
    reqwest::Client::builder()
}

/// Sets the cryptography of this process, unless the program around this library has chosen its own.
pub(crate) fn use_ring() {
    let _ = default_provider().install_default();
}
