//! Runs the service on a listener until it is stopped.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use super::service::Service;
use crate::error::{Diagnostic, ErrorKind, Result};
use crate::interface::Base;

/// How long a stop waits for answers in progress.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A running service. Dropping it stops it without waiting.
#[must_use = "a service stops when it is dropped"]
pub struct Running {
    base_url: Url,
    sentiment_base_url: Url,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

/// A service that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve on {address}")]
struct ServeError {
    address: SocketAddr,
    source: io::Error,
}

impl Diagnostic for ServeError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Service
    }
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
pub async fn start(service: Service, port: u16) -> Result<Running> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listening = async { listen(service, TcpListener::bind(address).await?) };
    listening.await.map_err(|source| ServeError { address, source }.into())
}

fn listen(service: Service, listener: TcpListener) -> io::Result<Running> {
    let address = listener.local_addr()?;
    let url = |base| Url::parse(&format!("http://{address}{}", service.path(base))).map_err(io::Error::other);
    let (base_url, sentiment_base_url) = (url(Base::Signals)?, url(Base::Sentiment)?);
    // A body is sent in many small writes; waiting to merge the last ones only delays the answer. Failing to set the
    // option is harmless.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel();
    let server = axum::serve(listener, service.router()).with_graceful_shutdown(async move {
        // An error means that the sender was dropped, which also stops the service.
        let _ = stopped.await;
    });
    let server = tokio::spawn(async move {
        // The accept loop survives failed connections, so there is no error to report.
        let _ = server.await;
    });
    Ok(Running { base_url, sentiment_base_url, stop, server })
}

impl Running {
    /// The base address of signals.
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// The base address of news and sentiment.
    pub fn sentiment_base_url(&self) -> &Url {
        &self.sentiment_base_url
    }

    /// Stops accepting connections, and waits at most five seconds for answers in progress. Unfinished ones are lost
    /// when the runtime ends.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the service still stops, without waiting.
    pub async fn stop(mut self) {
        // An error means that the server has already ended.
        let _ = self.stop.send(());
        if timeout(STOP_LIMIT, &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, sentiment) = (self.base_url.as_str(), self.sentiment_base_url.as_str());
        formatter.debug_struct("Running").field("base_url", &base).field("sentiment_base_url", &sentiment).finish()
    }
}
