//! Runs the service on a listener until it is stopped. A universe is for this process and those that it knows; an archive is
//! for any client, so its connections are bounded.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use url::Url;

use super::description::folder_of;
use super::service::Service;
use crate::error::{Context, ErrorKind, Result};
use crate::interface::Base;
use crate::net::listen::{Connections, Hosts, Requests};
use crate::process::cancel::CancellationToken;

/// How long a stop waits for answers in progress.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A running service. Dropping it stops it without waiting.
#[derive(Debug)]
#[must_use = "a service stops when it is dropped"]
pub struct RunningService {
    addresses: Vec<ServedAddresses>,
    stop: DropGuard,
    server: JoinHandle<()>,
}

/// The base addresses of a service.
#[derive(Clone, Debug)]
pub struct ServedAddresses {
    /// The name of the service.
    pub service: String,
    /// That of signals.
    pub base_url: Url,
    /// That of news and sentiment.
    pub sentiment_base_url: Url,
}

/// Starts a service on a port of the loopback address, on the caller's runtime; port 0 is any free one.
///
/// # Errors
///
/// When the port cannot be listened on.
///
/// # Panics
///
/// Outside a tokio runtime.
pub async fn start(service: Service, port: u16) -> Result<RunningService> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listening = async { listen(service, TcpListener::bind(address).await?) };
    listening.await.context(ErrorKind::Service, || format!("cannot serve on {address}"))
}

fn listen(service: Service, listener: TcpListener) -> io::Result<RunningService> {
    let address = listener.local_addr()?;
    let url =
        |path: &str, base| Url::parse(&format!("http://{address}{path}/{}", folder_of(base))).map_err(io::Error::other);
    let served = |(service, path): (String, String)| -> io::Result<ServedAddresses> {
        let (base_url, sentiment_base_url) = (url(&path, Base::Signals)?, url(&path, Base::Sentiment)?);
        Ok(ServedAddresses { service, base_url, sentiment_base_url })
    };
    let addresses = service.paths().into_iter().map(served).collect::<io::Result<Vec<_>>>()?;
    let stop = CancellationToken::new();
    let connections = Connections {
        hosts: Arc::new(Hosts::default()),
        requests: if service.is_of_archive() { Requests::Many } else { Requests::Unbounded },
        site: Arc::new(service),
        misdirected: "this host is not served here\n",
        unanswered: Arc::new(|_| {}),
    };
    let server = tokio::spawn(connections.serve(listener, stop.clone()));
    Ok(RunningService { addresses, stop: stop.drop_guard(), server })
}

impl RunningService {
    /// The base addresses of its services.
    pub fn addresses(&self) -> &[ServedAddresses] {
        &self.addresses
    }

    /// The base address of signals, of the first service.
    pub fn base_url(&self) -> &Url {
        &self.addresses[0].base_url
    }

    /// The base address of news and sentiment, of the first service.
    pub fn sentiment_base_url(&self) -> &Url {
        &self.addresses[0].sentiment_base_url
    }

    /// Stops accepting connections, and waits at most five seconds for answers in progress. Unfinished ones are lost
    /// when the runtime ends.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the service still stops, without waiting.
    pub async fn stop(mut self) {
        self.stop.disarm().cancel();
        if timeout(STOP_LIMIT, &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}
