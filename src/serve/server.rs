//! The service on a listener, until it is told to stop.

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

use super::service::{Service, prefix};
use crate::error::{Diagnostic, ErrorKind, Result};
use crate::interface::Base;

/// How long a stop waits for the answers that are being sent.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A service that runs. Dropping it stops it too, without waiting for anything.
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

/// Starts a service on a port of the loopback address, on the runtime that the caller is in; port 0 is any free one.
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
    let (base_url, sentiment_base_url) = (url(address, Base::Signals)?, url(address, Base::Sentiment)?);
    // A body goes out in many small writes; waiting to merge the last ones only delays the answer. Where the option is
    // refused the answer is late and nothing else.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel();
    let server = axum::serve(listener, service.router()).with_graceful_shutdown(async move {
        // An error says that the sender was dropped, which is the other way to stop.
        let _ = stopped.await;
    });
    let server = tokio::spawn(async move {
        // Its accept loop outlives every failure of a connection: there is no error to report.
        let _ = server.await;
    });
    Ok(Running { base_url, sentiment_base_url, stop, server })
}

fn url(address: SocketAddr, base: Base) -> io::Result<Url> {
    Url::parse(&format!("http://{address}{}", prefix(base))).map_err(io::Error::other)
}

impl Running {
    /// Where the signals are.
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// Where news and sentiment are.
    pub fn sentiment_base_url(&self) -> &Url {
        &self.sentiment_base_url
    }

    /// Stops: no new connection, and five seconds at most for the answers that are being sent. A caller who has not
    /// read the whole of one by then is no longer waited for, and loses it when the runtime ends.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the service stops all the same and nothing waits for it.
    pub async fn stop(mut self) {
        // An error says that the server is no longer there to be told.
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
