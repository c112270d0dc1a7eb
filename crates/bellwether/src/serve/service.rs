//! The operations of one point of the change record, by their addresses, on a listener until it is stopped.
//!
//! The two base addresses differ, so a client that mixes them up gets a 404. An archive has a pair of them for each
//! service, and each again below `/at/INSTANT`. A universe is for this process and those that it knows; an archive is for any
//! client, so its connections are bounded.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bellwether_demo::Universe;
use blake3::Hash;
use http::request::Parts;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use url::Url;

use super::answer::answer;
use super::archived::ArchivedServices;
use super::description::{self, folder_of};
use super::question::{Question, Refusal};
use crate::error::{Context, ErrorKind, Result};
use crate::interface::{Base, ChangeSet, Endpoint};
use crate::net::listen::{Answer, Connections, Hosts, Requests, Site};
use crate::process::cancel::CancellationToken;

/// The service: where its answers come from, the point of its change record, and its key.
///
/// ```
/// use bellwether::interface::ChangeSet;
/// use bellwether::serve::{Service, Universe};
/// use chrono::NaiveDate;
///
/// let today = NaiveDate::from_ymd_opt(2026, 11, 20).ok_or("no such day")?;
/// let service = Service::new(Universe::new(1, today), ChangeSet::All, "s3cret".to_owned());
/// assert!(!format!("{service:?}").contains("s3cret"));
/// # Ok::<_, &str>(())
/// ```
#[derive(Debug)]
pub struct Service {
    source: ServedData,
    change_set: ChangeSet,
    /// The digest of its key.
    key: Hash,
}

/// Where answers come from.
#[derive(Debug)]
enum ServedData {
    Universe(Universe),
    Archive(Arc<ArchivedServices>),
}

/// An operation at an address.
struct Addressed {
    endpoint: Endpoint,
    /// Empty if the operation takes none, or if it is not UTF-8; neither is a ticker.
    symbol: String,
    /// The service of an archive, and the instant in the path.
    service: String,
    instant: Option<String>,
}

impl Service {
    /// The service of a universe at a point of the change record, for callers with `key`.
    pub fn new(universe: Universe, change_set: ChangeSet, key: String) -> Self {
        Self { source: ServedData::Universe(universe), change_set, key: blake3::hash(key.as_bytes()) }
    }

    /// The services of an archive, in the shapes of a point of the change record, for callers with `key`.
    pub fn of_archive(services: ArchivedServices, change_set: ChangeSet, key: String) -> Self {
        let source = ServedData::Archive(Arc::new(services));
        Self { source, change_set, key: blake3::hash(key.as_bytes()) }
    }

    /// The names of its services and their paths before that of a base address. Universes of different seeds are
    /// different services, so a path names the seed.
    fn paths(&self) -> Vec<(String, String)> {
        match &self.source {
            ServedData::Universe(universe) => vec![("demo".to_owned(), format!("/seed-{}", universe.seed()))],
            ServedData::Archive(services) => {
                services.names().map(|name| (name.to_owned(), format!("/archive/{name}"))).collect()
            }
        }
    }

    /// The operations that it offers.
    fn operations(&self) -> impl Iterator<Item = Endpoint> {
        Endpoint::ALL.into_iter().filter(|&endpoint| self.change_set.has(endpoint))
    }

    /// The operation at a path: those of signals are under `…/api`, those of sentiment under `…/sentiment`.
    fn route(&self, path: &str) -> Option<Addressed> {
        let (mut service, mut instant) = (String::new(), None);
        let path = match &self.source {
            ServedData::Universe(universe) => {
                path.strip_prefix("/seed-")?.strip_prefix(&universe.seed().to_string())?
            }
            ServedData::Archive(_) => {
                let mut path = path;
                if let Some(rest) = path.strip_prefix("/at/") {
                    let (at, _) = rest.split_once('/')?;
                    (instant, path) = (Some(decode(at)), &rest[at.len()..]);
                }
                let rest = path.strip_prefix("/archive/")?;
                let (name, _) = rest.split_once('/')?;
                service = decode(name);
                &rest[name.len()..]
            }
        };
        let (endpoint, symbol) = self.operations().find_map(|endpoint| {
            let operation = path.strip_prefix('/')?.strip_prefix(folder_of(endpoint.base()))?.strip_prefix('/')?;
            let Some(before) = endpoint.path().strip_suffix("{ticker}") else {
                return (operation == endpoint.path()).then(|| (endpoint, String::new()));
            };
            let symbol = operation.strip_prefix(before)?;
            (!symbol.is_empty() && !symbol.contains('/')).then(|| (endpoint, decode(symbol)))
        })?;
        Some(Addressed { endpoint, symbol, service, instant })
    }

    async fn respond(&self, request: Parts) -> Result<Answer, Refusal> {
        let Parts { method, uri, .. } = request;
        if method == Method::GET && matches!(self.source, ServedData::Universe(_)) {
            let paths: Vec<String> = self.paths().into_iter().map(|(_, path)| path).collect();
            let operations: Vec<Endpoint> = self.operations().collect();
            if let Some(described) = description::answer(&paths, &operations, uri.path()) {
                return Ok(described);
            }
        }
        let addressed = self.route(uri.path()).ok_or_else(Refusal::no_operation)?;
        if method != Method::GET {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"));
        }
        let Addressed { endpoint, symbol, service, instant } = addressed;
        let (change_set, query) = (self.change_set, uri.query().unwrap_or_default());
        let question = Question::read(endpoint, symbol, query, change_set, &self.key)?;
        let services = match &self.source {
            ServedData::Universe(universe) => return answer(universe, change_set, &question),
            ServedData::Archive(services) => Arc::clone(services),
        };
        let answer = spawn_blocking(move || services.answer(&service, instant.as_deref(), question, change_set));
        let failed = || Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed: a bug");
        answer.await.unwrap_or_else(|_| Err(failed()))
    }
}

impl Site for Service {
    async fn answer(self: Arc<Self>, request: Parts) -> Answer {
        self.respond(request).await.unwrap_or_else(Refusal::answer)
    }
}

/// A segment of a path as text; empty if it is not UTF-8.
fn decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8().unwrap_or_default().into_owned()
}

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
    let mut addresses = Vec::new();
    for (name, path) in service.paths() {
        let url = |base| Url::parse(&format!("http://{address}{path}/{}", folder_of(base))).map_err(io::Error::other);
        let (base_url, sentiment_base_url) = (url(Base::Signals)?, url(Base::Sentiment)?);
        addresses.push(ServedAddresses { service: name, base_url, sentiment_base_url });
    }
    let stop = CancellationToken::new();
    let is_of_archive = matches!(service.source, ServedData::Archive(_));
    let connections = Connections {
        site: Arc::new(service),
        hosts: Arc::new(Hosts::default()),
        requests: if is_of_archive { Requests::Many } else { Requests::Unbounded },
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
        if timeout(Duration::from_secs(5), &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}
