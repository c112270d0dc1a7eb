//! A service behind TLS on loopback, with a self-signed certificate.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A scripted service that counts connections.
pub(crate) struct TlsService {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl TlsService {
    /// Starts a service that answers each target with a body.
    pub(crate) fn start(answer: fn(&str) -> &'static str) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from_pem_file(file("certificate.pem")).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(file("key.pem")).expect("its key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .expect("they belong together");
        let (config, connections) = (Arc::new(config), Arc::new(AtomicUsize::new(0)));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().take(10_000).flatten() {
                seen.fetch_add(1, Ordering::Relaxed);
                let config = Arc::clone(&config);
                thread::spawn(move || converse(stream, config, answer));
            }
        });
        Self { address, connections }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A file with the certificate of these services.
pub(crate) fn certificate() -> PathBuf {
    file("certificate.pem")
}

/// A file with an unrelated certificate.
pub(crate) fn other_certificate() -> PathBuf {
    file("other.pem")
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/support/tls").join(name)
}

fn converse(stream: TcpStream, config: Arc<ServerConfig>, answer: fn(&str) -> &'static str) {
    let connection = ServerConnection::new(config).expect("a configuration that is right");
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let (mut first, mut line) = (String::new(), String::new());
        if !reader.read_line(&mut first).is_ok_and(|count| count > 0) {
            return;
        }
        while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
            line.clear();
        }
        let body = answer(first.split(' ').nth(1).unwrap_or_default());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        if reader.get_mut().write_all((head + body).as_bytes()).is_err() {
            return;
        }
    }
}
