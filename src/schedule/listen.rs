//! The scheduler's answers over HTTP: `/` is the status as a page, `/status` as JSON, `/metrics` for Prometheus, `/healthz`
//! for probes (200 if the scheduler works, and 503 if its last look failed), and `/reports/NAME` the report of a dataset.
//! Everything is read-only, and read for each request, for a few requests at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether::disk::links;
use bellwether::disk::names;
use bellwether::error::{Context, ErrorKind, Hint, Result};
use bellwether::net::listen::{self, Answer, Connections, HostName, Hosts, Requests, whole};
use bellwether::process::cancel::CancellationToken;
use bellwether::time::Clock;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::Folders;
use super::event::{ScheduleEvent, Watcher};
use super::look::LookRecord;
use super::metrics;
use super::page::{Links, page, report_of};
use super::status::StatusDocument;

/// A server of the status.
pub struct Listening {
    /// The address that it listens on.
    pub address: SocketAddr,
    server: JoinHandle<()>,
}

/// What is answered from.
pub struct StatusSite {
    folders: Arc<Folders>,
    looks: watch::Receiver<LookRecord>,
    clock: Clock,
    free: Semaphore,
}

/// Starts to answer for a scheduler on an address, until a token is cancelled. `hosts` are names of the server, besides those of
/// this machine and the address; the watcher is told of connections that are closed unanswered.
///
/// # Errors
///
/// If the address cannot be listened on.
///
/// # Cancel safety
///
/// Nothing is started if it is dropped.
pub async fn listen(
    address: SocketAddr,
    hosts: Vec<HostName>,
    site: StatusSite,
    watcher: Arc<dyn Watcher>,
    stop: CancellationToken,
) -> Result<Listening> {
    let listener = TcpListener::bind(address).await;
    let (address, listener) = listener
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .context(ErrorKind::Service, || format!("cannot listen on {address}"))
        .hint("choose another port, or stop the program that listens on it")?;
    let connections = Connections {
        site: Arc::new(site),
        hosts: Arc::new(Hosts::with(hosts)),
        requests: Requests::One,
        misdirected: "this host is not served here; `--listen-host NAME` adds one\n",
        unanswered: Arc::new(move |reason: &str| watcher.watch(&ScheduleEvent::Unanswered { reason })),
    };
    let server = tokio::spawn(connections.serve(listener, stop));
    Ok(Listening { address, server })
}

impl Listening {
    /// Waits a moment for answers that are being sent, once the token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the server to the runtime.
    pub async fn finish(mut self) {
        if tokio::time::timeout(Duration::from_secs(2), &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}

impl listen::Site for StatusSite {
    async fn answer(self: Arc<Self>, request: Parts) -> Answer {
        let mut answer = match request.method {
            Method::GET | Method::HEAD => self.page(request.uri.path()).await,
            _ => {
                let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "everything here is read-only\n");
                answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                answer
            }
        };
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer
    }
}

impl StatusSite {
    /// A site with the status of a project, and what its scheduler found.
    pub fn new(folders: Folders, looks: watch::Receiver<LookRecord>, clock: Clock) -> Self {
        // Two answers are made at once: each reads the records of all definitions.
        Self { folders: Arc::new(folders), looks, clock, free: Semaphore::new(2) }
    }

    async fn page(&self, path: &str) -> Answer {
        match path {
            "/" => {
                let data = self.folders.data.clone();
                self.with_status(HTML, move |status| page(status, Links::Served(&data))).await
            }
            "/healthz" => self.health(),
            "/metrics" => self.with_status(metrics::CONTENT_TYPE, metrics::text).await,
            "/status" => self.with_status("application/json", StatusDocument::line).await,
            path => match path.strip_prefix("/reports/") {
                Some(name) => self.report(name).await,
                None => text(StatusCode::NOT_FOUND, "no such page\n"),
            },
        }
    }

    /// Whether the scheduler works. Invalid definitions keep it from nothing else, and a probe that restarted it for them
    /// would interrupt the runs of the others.
    fn health(&self) -> Answer {
        let last = self.looks.borrow().clone();
        let mut lines = last.reasons(self.clock.now());
        let status = if lines.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let invalid: Vec<String> = last.invalid().collect();
        if lines.is_empty() {
            lines.push(if invalid.is_empty() { "ok" } else { "invalid definitions" }.to_owned());
        }
        text(status, [lines, invalid].concat().join("\n") + "\n")
    }

    /// The report of a dataset.
    async fn report(&self, name: &str) -> Answer {
        let file = names::is_dataset(name).then(|| report_of(&self.folders.data, name));
        let read = tokio::task::spawn_blocking(move || file.and_then(|file| links::read(&file).ok()));
        match read.await {
            Ok(Some(page)) => whole(StatusCode::OK, HTML, page),
            _ => text(StatusCode::NOT_FOUND, "no such report\n"),
        }
    }

    /// An answer made from the status of all definitions.
    async fn with_status(
        &self,
        kind: &'static str,
        render: impl FnOnce(&StatusDocument) -> String + Send + 'static,
    ) -> Answer {
        let _permit = self.free.acquire().await.expect("the semaphore is never closed");
        let (folders, look, now) = (Arc::clone(&self.folders), self.looks.borrow().clone(), self.clock.now());
        let made = tokio::task::spawn_blocking(move || {
            StatusDocument::read(&folders, &[], Some(look), now).map(|status| render(&status))
        });
        match made.await {
            Ok(Ok(made)) => whole(StatusCode::OK, kind, made),
            Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "failed\n"),
        }
    }
}

const HTML: &str = "text/html; charset=utf-8";

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    whole(status, "text/plain; charset=utf-8", text)
}
