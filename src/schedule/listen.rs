//! The scheduler's answers over HTTP: `/` is the status as a page, `/status` as JSON, `/metrics` for Prometheus, `/healthz`
//! for probes (200 if the scheduler works, and 503 if its last look failed), and `/reports/NAME` the report of a dataset.
//! Everything is read-only, and read for each request, for a few requests at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bellwether::cancel::CancellationToken;
use bellwether::error::{Diagnostic, ErrorKind, Result};
use bellwether::export::REPORT;
use bellwether::links;
use bellwether::listen::{Connections, HostName, Hosts, Requests};
use bellwether::names;
use bellwether::time::Clock;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::document::StatusDocument;
use super::event::{ScheduleEvent, Watcher};
use super::look::Looks;
use super::metrics;
use super::page::{Links, page};
use super::status::{Folders, Overview};

/// How long a stop waits for answers that are being sent.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// How many answers are made at once: each reads the records of all definitions.
const AT_ONCE: usize = 2;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

impl Diagnostic for ListenError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Service
    }

    fn hint(&self) -> Option<String> {
        Some("choose another port, or stop the program that listens on it".to_owned())
    }
}

/// A server of the status.
pub struct Listening {
    address: SocketAddr,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Site {
    folders: Arc<Folders>,
    looks: Arc<Looks>,
    clock: Clock,
    free: Arc<Semaphore>,
}

/// What a server needs.
pub struct ListenOptions {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Names of the server, besides those of this machine and the address.
    pub hosts: Vec<HostName>,
    /// What the status is of.
    pub folders: Folders,
    /// What the scheduler found.
    pub looks: Arc<Looks>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Is told of connections that are closed unanswered.
    pub watcher: Arc<dyn Watcher>,
    /// Stops the server.
    pub stop: CancellationToken,
}

/// Starts to answer for a scheduler on an address, until a token is cancelled.
///
/// # Errors
///
/// If the address cannot be listened on.
///
/// # Cancel safety
///
/// Nothing is started if it is dropped.
pub async fn listen(options: ListenOptions) -> Result<Listening> {
    let ListenOptions { address, hosts, folders, looks, clock, watcher, stop } = options;
    let failed = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let router = Router::new()
        .route("/", get(overview_page))
        .route("/status", get(status))
        .route("/metrics", get(prometheus))
        .route("/healthz", get(health))
        .route("/reports/{name}", get(dataset_report))
        .with_state(Site { folders: Arc::new(folders), looks, clock, free: Arc::new(Semaphore::new(AT_ONCE)) });
    let unanswered = move |reason: &str| watcher.watch(&ScheduleEvent::Unanswered { reason });
    let connections = Connections {
        router,
        hosts: Arc::new(Hosts::with(hosts)),
        requests: Requests::One,
        misdirected: "this host is not served here; `--listen-host NAME` adds one\n",
        unanswered: Arc::new(unanswered),
    };
    let server = tokio::spawn(connections.serve(listener, stop));
    Ok(Listening { address, server })
}

impl Listening {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits a moment for answers that are being sent, once the token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the server to the runtime.
    pub async fn finish(mut self) {
        if tokio::time::timeout(STOP_LIMIT, &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}

async fn overview_page(State(site): State<Site>) -> Response {
    site.answered("text/html; charset=utf-8", |overview| page(&overview, Links::Served)).await
}

async fn status(State(site): State<Site>) -> Response {
    site.answered("application/json", |overview| StatusDocument::of(&overview).line()).await
}

async fn prometheus(State(site): State<Site>) -> Response {
    site.answered(metrics::CONTENT_TYPE, |overview| metrics::text(&overview)).await
}

/// Whether the scheduler works. Invalid definitions keep it from nothing else, and a probe that restarted it for them would
/// interrupt the runs of the others.
async fn health(State(site): State<Site>) -> Response {
    let last = site.looks.last();
    let (failed, invalid) = (last.reasons(site.clock.now()), last.invalid().collect::<Vec<_>>());
    let (status, lines) = match (failed.is_empty(), invalid.is_empty()) {
        (true, true) => (StatusCode::OK, vec!["ok".to_owned()]),
        (true, false) => (StatusCode::OK, [vec!["invalid definitions".to_owned()], invalid].concat()),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, [failed, invalid].concat()),
    };
    answer(status, "text/plain; charset=utf-8", lines.join("\n") + "\n")
}

async fn dataset_report(State(site): State<Site>, Path(name): Path<String>) -> Response {
    let folder = site.folders.data.join("datasets").join(&name).join("latest");
    let read = tokio::task::spawn_blocking(move || links::read(&folder.join(REPORT)).ok());
    let is_name = names::is_dataset(&name);
    match read.await.ok().flatten().filter(|_| is_name) {
        Some(page) => answer(StatusCode::OK, "text/html; charset=utf-8", page),
        None => answer(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "no such report\n".to_owned()),
    }
}

impl Site {
    /// An answer made from the status of all definitions.
    async fn answered(self, kind: &'static str, text: impl FnOnce(Overview) -> String + Send + 'static) -> Response {
        let free = Arc::clone(&self.free);
        let _permit = free.acquire().await.expect("the semaphore is never closed");
        let look = self.looks.last();
        let overview = move || Overview::of(&self.folders, &[], Some(look), self.clock.now());
        let made = tokio::task::spawn_blocking(move || overview().map(text));
        match made.await {
            Ok(Ok(text)) => answer(StatusCode::OK, kind, text),
            Ok(Err(error)) => {
                answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n"))
            }
            Err(_) => answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", "failed\n".to_owned()),
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body.into()).into_response()
}
