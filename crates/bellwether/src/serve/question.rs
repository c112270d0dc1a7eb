//! Requests: every parameter is read, validated and given its default, or the request is refused.
//!
//! A request is read to its end before it is rejected, so that one answer names all of its problems, in the wording of
//! the vendor's framework. A query is decoded like a browser's form: invalid UTF-8 and invalid escapes become part of
//! the value, where they match nothing.

use std::borrow::Cow;
use std::num::IntErrorKind;
use std::str::FromStr;

use blake3::Hash;
use http::header::ALLOW;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::error::{Error, causes};
use crate::interface::{Base, ChangeSet, Endpoint, Location, Period, Regime, ValidationProblem};
use crate::net::listen::{Answer, whole};

/// When the service was asked for what an archive answers.
pub(super) const WATCH: HeaderName = HeaderName::from_static("bellwether-watch");

/// A valid request.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) endpoint: Endpoint,
    /// The symbol in the path; empty if the path has none.
    pub(super) symbol: String,
    /// None if the operation takes none.
    pub(super) sector: Option<String>,
    /// In a batch, each ticker has its own period and regime if none is given.
    pub(super) period: Option<Period>,
    pub(super) regime: Option<Regime>,
    /// The most entries of a history.
    pub(super) limit: usize,
    /// The parameters of the operation.
    pub(super) known: Vec<&'static str>,
    /// Parameters of the query that the operation does not have.
    pub(super) unknown: Vec<String>,
}

impl Question {
    /// Reads a request for an operation, given a point of the change record and the digest of the service's key.
    ///
    /// A wrong key is rejected before anything else; a missing one is a problem like any other.
    pub(super) fn read(
        endpoint: Endpoint,
        symbol: String,
        query: &str,
        change_set: ChangeSet,
        key: &Hash,
    ) -> Result<Self, Refusal> {
        let parameters = form_urlencoded::parse(query.as_bytes()).collect();
        let mut query = Query { parameters, known: Vec::new(), problems: Vec::new() };
        // Digests are compared in constant time, so that the key cannot be guessed byte by byte.
        if query.require("api_key").is_some_and(|given| blake3::hash(given.as_bytes()) != *key) {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Invalid API key"));
        }
        let is_by_sector = matches!(endpoint, Endpoint::SignalsHistoryAll | Endpoint::LegacyHistoryAll);
        let sector = if is_by_sector { query.require("sector") } else { None };
        let (mut period, mut regime, mut limit) = (None, None, usize::MAX);
        let is_unparametrized = matches!(endpoint, Endpoint::SignalsHistoryBatchedAll | Endpoint::TickersAvailable);
        if endpoint.base() == Base::Signals && !is_unparametrized {
            period = query.one_of("period", Period::all().map(Period::as_str));
            let regimes = [Regime::Neutral, Regime::Bear, Regime::Bull];
            regime = query.one_of("regime", regimes.into_iter().map(Regime::as_str));
            if is_by_sector || endpoint.is_of_one_ticker() {
                (period, regime) = (period.or(Some(Period::default())), regime.or(Some(Regime::default())));
            }
        }
        // An operation without a limit ignores one, like any unknown parameter.
        if change_set.takes_limit(endpoint) {
            limit = query.limit();
        }
        let Query { parameters, known, problems } = query;
        if !problems.is_empty() {
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, json!(problems)));
        }
        let names = parameters.into_iter().map(|(name, _)| name.into_owned());
        let unknown = names.filter(|name| !known.contains(&name.as_str())).collect();
        Ok(Self { endpoint, symbol, sector, period, regime, limit, known, unknown })
    }
}

/// The parameters of a query, and the problems found so far.
struct Query<'r> {
    parameters: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    /// The names that were looked for.
    known: Vec<&'static str>,
    problems: Vec<ValidationProblem>,
}

impl Query<'_> {
    /// The value of a parameter; the last one if it is repeated.
    fn get(&mut self, name: &'static str) -> Option<&str> {
        self.known.push(name);
        self.parameters.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
    }

    fn require(&mut self, name: &'static str) -> Option<String> {
        let value = self.get(name).map(ToOwned::to_owned);
        if value.is_none() {
            self.note(name, "missing", "Field required".to_owned());
        }
        value
    }

    /// A value of a closed set, if the query has one.
    fn one_of<T: FromStr>(&mut self, name: &'static str, spellings: impl Iterator<Item = &'static str>) -> Option<T> {
        if let Ok(value) = self.get(name).map(T::from_str).transpose() {
            return value;
        }
        let mut quoted: Vec<String> = spellings.map(|spelling| format!("'{spelling}'")).collect();
        let last = quoted.pop().unwrap_or_default();
        self.note(name, "enum", format!("Input should be {} or {last}", quoted.join(", ")));
        None
    }

    /// The most entries of an answer; all if the query does not limit them.
    fn limit(&mut self) -> usize {
        let (kind, message) = match self.get("limit").map(i64::from_str) {
            None => return usize::MAX,
            Some(Ok(limit @ 1..)) => return usize::try_from(limit).unwrap_or(usize::MAX),
            Some(Err(error)) if *error.kind() == IntErrorKind::PosOverflow => return usize::MAX,
            Some(Err(error)) if *error.kind() != IntErrorKind::NegOverflow => {
                ("int_parsing", "Input should be a valid integer, unable to parse string as an integer")
            }
            Some(_) => ("greater_than_equal", "Input should be greater than or equal to 1"),
        };
        self.note("limit", kind, message.to_owned());
        usize::MAX
    }

    fn note(&mut self, name: &str, kind: &str, msg: String) {
        let loc = vec![Location::Name("query".to_owned()), Location::Name(name.to_owned())];
        self.problems.push(ValidationProblem { loc, msg, kind: kind.to_owned() });
    }
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    /// A sentence, or the problems of the parameters.
    detail: Value,
    /// A further header of the answer.
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        let is_of_method = status == StatusCode::METHOD_NOT_ALLOWED;
        let header = is_of_method.then(|| (ALLOW, HeaderValue::from_static("GET")));
        Self { status, detail: detail.into(), header }
    }

    /// No such operation, or not at this change set.
    pub(super) fn no_operation() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// What an archive does not know.
    pub(super) fn unknown(sentence: String) -> Self {
        let header = Some((WATCH, HeaderValue::from_static("not-watched")));
        Self { header, ..Self::new(StatusCode::NOT_FOUND, sentence) }
    }

    /// What is answered.
    pub(super) fn answer(self) -> Answer {
        let mut answer = record(self.status, &json!({ "detail": self.detail }));
        answer.headers_mut().extend(self.header);
        answer
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let because: String = causes(&error).map(|cause| format!(": {cause}")).collect();
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}{because}"))
    }
}

/// A record as an answer.
pub(super) fn record(status: StatusCode, value: &impl Serialize) -> Answer {
    whole(status, "application/json", text(value))
}

/// A record as JSON.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a record is text, numbers and lists, which serialize")
}
