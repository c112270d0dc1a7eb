//! The operations of one point of the change record, as routes.
//!
//! The two base addresses differ, so a client that mixes them up gets a 404.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery};
use axum::response::Response;
use axum::routing::get;

use super::answer::AnswerSource;
use super::key::Key;
use super::question::Request;
use super::refusal::Refusal;
use super::universe::Universe;
use crate::interface::{Base, ChangeSet, Endpoint};

/// The service: its universe, the point of its change record, and its key.
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
    source: Arc<AnswerSource>,
    key: Key,
}

impl Service {
    /// The service of a universe at a point of the change record, for callers with `key`.
    pub fn new(universe: Universe, change_set: ChangeSet, key: String) -> Self {
        Self { source: Arc::new(AnswerSource { universe, change_set }), key: Key::new(key) }
    }

    /// The path of a base address. Universes of different seeds are different services, so it names the seed.
    pub(super) fn path(&self, base: Base) -> String {
        let of_base = match base {
            Base::Signals => "api",
            Base::Sentiment => "sentiment",
        };
        format!("/seed-{}/{of_base}", self.source.universe.seed())
    }

    /// Its operations, those of signals under `/seed-N/api` and those of sentiment under `/seed-N/sentiment`.
    pub fn router(self) -> Router {
        let service = Arc::new(self);
        let change_set = service.source.change_set;
        let mut router = Router::new();
        for endpoint in Endpoint::ALL.into_iter().filter(|&endpoint| change_set.has(endpoint)) {
            let (service, path) = (Arc::clone(&service), service.path(endpoint.base()));
            let answer = move |symbol: Result<Path<String>, PathRejection>, RawQuery(query): RawQuery| async move {
                // A path without a symbol, or with invalid UTF-8, gives the empty symbol, which is not a ticker.
                let symbol = symbol.map(|Path(symbol)| symbol).unwrap_or_default();
                service.answer(Request { endpoint, symbol, query: &query.unwrap_or_default() })
            };
            let route = get(answer).head(method_not_allowed).fallback(method_not_allowed);
            router = router.route(&format!("{path}/{}", endpoint.path()), route);
        }
        router.fallback(not_found)
    }

    fn answer(&self, request: Request<'_>) -> Result<Response, Refusal> {
        let question = request.read(self.source.change_set, &self.key)?;
        self.source.answer(question)
    }
}

async fn not_found() -> Refusal {
    Refusal::NotFound
}

async fn method_not_allowed() -> Refusal {
    Refusal::MethodNotAllowed
}
