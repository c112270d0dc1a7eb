//! The operations of one point of the change record, as routes.
//!
//! The two base addresses differ, so a client that mixes them up gets a 404. An archive has a pair of them for each
//! service, and each again below `/at/INSTANT` and `/timemap`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::get;
use bellwether_demo::Universe;
use tokio::task::spawn_blocking;

use super::answer::AnswerSource;
use super::archived::{ArchivedServices, Given, Subject};
use super::key::Key;
use super::question::Request;
use super::refusal::Refusal;
use crate::interface::{Base, ChangeSet, Endpoint};

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
    source: Source,
    change_set: ChangeSet,
    key: Key,
}

/// Where answers come from.
#[derive(Debug)]
enum Source {
    Universe(Arc<AnswerSource>),
    Archive(Arc<ArchivedServices>),
}

/// The folders of an address that precede the path of an operation.
const INSTANT: &str = "/at/{instant}";
const STATES: &str = "/timemap";

impl Service {
    /// The service of a universe at a point of the change record, for callers with `key`.
    pub fn new(universe: Universe, change_set: ChangeSet, key: String) -> Self {
        let source = Source::Universe(Arc::new(AnswerSource { universe, change_set }));
        Self { source, change_set, key: Key::new(key) }
    }

    /// The services of an archive, in the shapes of a point of the change record, for callers with `key`.
    pub fn of_archive(services: ArchivedServices, change_set: ChangeSet, key: String) -> Self {
        Self { source: Source::Archive(Arc::new(services)), change_set, key: Key::new(key) }
    }

    /// Whether it answers from an archive.
    pub(super) fn is_of_archive(&self) -> bool {
        matches!(self.source, Source::Archive(_))
    }

    /// The names of its services and their paths before that of a base address. Universes of different seeds are
    /// different services, so a path names the seed.
    pub(super) fn paths(&self) -> Vec<(String, String)> {
        match &self.source {
            Source::Universe(source) => vec![("demo".to_owned(), format!("/seed-{}", source.universe.seed()))],
            Source::Archive(services) => {
                services.names().map(|name| (name.to_owned(), format!("/archive/{name}"))).collect()
            }
        }
    }

    /// Its operations, those of signals under `…/api` and those of sentiment under `…/sentiment`.
    pub fn router(self) -> Router {
        let service = Arc::new(self);
        let places: Vec<String> = match &service.source {
            Source::Universe(source) => vec![format!("/seed-{}", source.universe.seed())],
            Source::Archive(_) => ["", INSTANT, STATES].map(|before| format!("{before}/archive/{{service}}")).to_vec(),
        };
        let mut router = Router::new();
        for endpoint in Endpoint::ALL.into_iter().filter(|&endpoint| service.change_set.has(endpoint)) {
            for place in &places {
                let service = Arc::clone(&service);
                let answer =
                    move |names: Result<Path<HashMap<String, String>>, PathRejection>, uri: Uri, headers: HeaderMap| {
                        // A path with invalid UTF-8 gives the empty symbol, which is not a ticker.
                        let names = names.map(|Path(names)| names).unwrap_or_default();
                        service.answer(endpoint, names, uri, headers)
                    };
                let route = get(answer).head(method_not_allowed).fallback(method_not_allowed);
                router = router.route(&format!("{place}/{}/{}", folder_of(endpoint.base()), endpoint.path()), route);
            }
        }
        router.fallback(not_found)
    }

    async fn answer(
        self: Arc<Self>,
        endpoint: Endpoint,
        mut names: HashMap<String, String>,
        uri: Uri,
        headers: HeaderMap,
    ) -> Result<Response, Refusal> {
        let query = uri.query().unwrap_or_default();
        // A path without a symbol gives the empty one.
        let symbol = names.remove("ticker").unwrap_or_default();
        let read = Request { endpoint, symbol, query }.read(self.change_set, &self.key)?;
        let services = match &self.source {
            Source::Universe(source) => return source.answer(read.question),
            Source::Archive(services) => Arc::clone(services),
        };
        let instant = names.remove("instant");
        let (subject, path) = match (uri.path().strip_prefix(STATES), &instant) {
            (Some(path), None) => (Subject::States, path),
            (_, None) => (Subject::Answer, uri.path()),
            // An instant has no slash.
            (_, Some(_)) => (Subject::Answer, uri.path().get(1..).and_then(after_instant).unwrap_or_default()),
        };
        let given = Given {
            endpoint,
            change_set: self.change_set,
            service: names.remove("service").unwrap_or_default(),
            path: path.to_owned(),
            query: query.to_owned(),
            instant,
            subject,
            headers,
        };
        let answer = spawn_blocking(move || services.answer(&given, read));
        answer.await.unwrap_or_else(|_| Err(Refusal::Unreadable("the answer failed: a bug".to_owned())))
    }
}

/// The rest of `at/INSTANT/…`.
fn after_instant(path: &str) -> Option<&str> {
    let after = path.find('/')? + 1;
    let end = path[after..].find('/')?;
    Some(&path[after + end..])
}

/// The folder of a base address.
pub(super) fn folder_of(base: Base) -> &'static str {
    match base {
        Base::Signals => "api",
        Base::Sentiment => "sentiment",
    }
}

async fn not_found() -> Refusal {
    Refusal::NotFound
}

async fn method_not_allowed() -> Refusal {
    Refusal::MethodNotAllowed
}
