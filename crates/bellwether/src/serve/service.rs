//! The operations of one point of the change record, by their addresses.
//!
//! The two base addresses differ, so a client that mixes them up gets a 404. An archive has a pair of them for each
//! service, and each again below `/at/INSTANT`.

use std::sync::Arc;

use bellwether_demo::Universe;
use http::request::Parts;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use tokio::task::spawn_blocking;

use super::answer::AnswerSource;
use super::archived::{ArchivedServices, Given};
use super::description::{self, folder_of};
use super::question::{Key, ReceivedRequest};
use super::refusal::Refusal;
use crate::interface::{ChangeSet, Endpoint};
use crate::net::listen::{Answer, Site};

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
    key: Key,
}

/// Where answers come from.
#[derive(Debug)]
enum ServedData {
    Universe(Arc<AnswerSource>),
    Archive(Arc<ArchivedServices>),
}

/// An operation at an address.
struct Addressed {
    endpoint: Endpoint,
    /// Empty if the operation takes none, or if it is not UTF-8; neither is a ticker.
    symbol: String,
    /// The service of an archive, and the instant in the path.
    archived: Option<(String, Option<String>)>,
}

impl Service {
    /// The service of a universe at a point of the change record, for callers with `key`.
    pub fn new(universe: Universe, change_set: ChangeSet, key: String) -> Self {
        let source = ServedData::Universe(Arc::new(AnswerSource { universe, change_set }));
        Self { source, change_set, key: Key::new(key) }
    }

    /// The services of an archive, in the shapes of a point of the change record, for callers with `key`.
    pub fn of_archive(services: ArchivedServices, change_set: ChangeSet, key: String) -> Self {
        Self { source: ServedData::Archive(Arc::new(services)), change_set, key: Key::new(key) }
    }

    /// Whether it answers from an archive.
    pub(super) fn is_of_archive(&self) -> bool {
        matches!(self.source, ServedData::Archive(_))
    }

    /// The names of its services and their paths before that of a base address. Universes of different seeds are
    /// different services, so a path names the seed.
    pub(super) fn paths(&self) -> Vec<(String, String)> {
        match &self.source {
            ServedData::Universe(source) => vec![("demo".to_owned(), format!("/seed-{}", source.universe.seed()))],
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
        let (archived, path) = match &self.source {
            ServedData::Universe(source) => {
                (None, path.strip_prefix("/seed-")?.strip_prefix(&source.universe.seed().to_string())?)
            }
            ServedData::Archive(_) => {
                let (instant, path) = match path.strip_prefix("/at/") {
                    Some(rest) => {
                        let (instant, _) = rest.split_once('/')?;
                        (Some(decode(instant)), &rest[instant.len()..])
                    }
                    None => (None, path),
                };
                let rest = path.strip_prefix("/archive/")?;
                let (service, _) = rest.split_once('/')?;
                (Some((decode(service), instant)), &rest[service.len()..])
            }
        };
        let symbol_in = |endpoint: Endpoint| -> Option<String> {
            let operation = path.strip_prefix('/')?.strip_prefix(folder_of(endpoint.base()))?.strip_prefix('/')?;
            match endpoint.path().strip_suffix("{ticker}") {
                Some(before) => operation.strip_prefix(before).filter(|symbol| is_segment(symbol)).map(decode),
                None => (operation == endpoint.path()).then(String::new),
            }
        };
        let (endpoint, symbol) = self.operations().find_map(|endpoint| Some((endpoint, symbol_in(endpoint)?)))?;
        Some(Addressed { endpoint, symbol, archived })
    }

    async fn respond(&self, request: Parts) -> Result<Answer, Refusal> {
        let Parts { method, uri, .. } = request;
        if method == Method::GET && !self.is_of_archive() {
            let paths: Vec<String> = self.paths().into_iter().map(|(_, path)| path).collect();
            let operations: Vec<Endpoint> = self.operations().collect();
            if let Some(described) = description::answer(&paths, &operations, uri.path()) {
                return Ok(described);
            }
        }
        let Addressed { endpoint, symbol, archived } = self.route(uri.path()).ok_or_else(Refusal::no_operation)?;
        if method != Method::GET {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"));
        }
        let query = uri.query().unwrap_or_default();
        let read = ReceivedRequest { endpoint, symbol, query }.read(self.change_set, &self.key)?;
        let (services, (service, instant)) = match (&self.source, archived) {
            (ServedData::Universe(source), _) => return source.answer(read.question),
            (ServedData::Archive(services), Some(archived)) => (Arc::clone(services), archived),
            (ServedData::Archive(_), None) => return Err(Refusal::no_operation()),
        };
        let given = Given { endpoint, change_set: self.change_set, service, instant };
        let answer = spawn_blocking(move || services.answer(&given, read));
        let failed = || Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed: a bug");
        answer.await.unwrap_or_else(|_| Err(failed()))
    }
}

impl Site for Service {
    async fn answer(self: Arc<Self>, request: Parts) -> Answer {
        self.respond(request).await.unwrap_or_else(Refusal::answer)
    }
}

/// Whether a text is one segment of a path.
fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

/// A segment of a path as text; empty if it is not UTF-8.
fn decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8().unwrap_or_default().into_owned()
}
