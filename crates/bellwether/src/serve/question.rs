//! Parses requests: every parameter is read, validated and given its default.
//!
//! A request is read to its end before it is rejected, so that one answer names all of its problems, in the wording of
//! the vendor's framework. A query is decoded like a browser's form: invalid UTF-8 and invalid escapes become part of
//! the value, where they match nothing.

use std::borrow::Cow;
use std::fmt;
use std::hint::black_box;
use std::num::IntErrorKind;
use std::str::FromStr;

use bellwether_demo::prediction::{Model, Outlook};
use http::StatusCode;
use serde_json::json;
use url::form_urlencoded;

use super::refusal::Refusal;
use crate::interface::{ChangeSet, Endpoint, Location, Period, Regime, ValidationProblem};

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) enum Question {
    /// The histories of a sector.
    Sector { outlook: Outlook, sector: String },
    /// The histories of all tickers; each has its own period and regime if none is given.
    Batch { model: Model, period: Option<Period>, regime: Option<Regime>, limit: usize },
    /// The history of one ticker.
    History { outlook: Outlook, symbol: String, limit: usize },
    /// The latest signal of one ticker.
    Latest { outlook: Outlook, symbol: String },
    /// The symbols of all tickers.
    Tickers,
    /// The sentiment summary of one ticker.
    Summary { symbol: String },
    /// The news articles of one ticker.
    Articles { symbol: String },
    /// The daily sentiment of one ticker.
    DailySentiment { symbol: String },
}

/// A request as received.
#[derive(Debug)]
pub(super) struct ReceivedRequest<'r> {
    pub(super) endpoint: Endpoint,
    /// The symbol in the path; empty if the path has none.
    pub(super) symbol: String,
    /// The query, still encoded.
    pub(super) query: &'r str,
}

/// The parameters of a query, and the problems found so far.
struct Query<'r> {
    parameters: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    /// The names that were looked for.
    known: Vec<&'static str>,
    problems: Vec<ValidationProblem>,
}

/// A valid request, and what is odd about it.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) question: Question,
    /// The parameters of the operation.
    pub(super) known: Vec<&'static str>,
    /// Parameters of the query that the operation does not have.
    pub(super) unknown: Vec<String>,
}

/// A parameter was invalid; the reason is among the problems.
struct InvalidParameter;

impl ReceivedRequest<'_> {
    /// Parses the request, given a point of the change record and the key of the service.
    ///
    /// A wrong key is rejected before anything else; a missing one is a problem like any other.
    pub(super) fn read(self, change_set: ChangeSet, key: &Key) -> Result<Read, Refusal> {
        let mut query = Query::new(self.query);
        let given = query.require("api_key");
        if given.as_ref().is_ok_and(|given| !key.is(given)) {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Invalid API key"));
        }
        let question = self.question(&mut query, change_set);
        match (given, question) {
            (Ok(_), Ok(question)) => Ok(query.read(question)),
            _ => {
                let problems = query.problems.into_iter().map(|problem| json!(problem)).collect::<Vec<_>>();
                Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, problems))
            }
        }
    }

    fn question(self, query: &mut Query<'_>, change_set: ChangeSet) -> Result<Question, InvalidParameter> {
        let (symbol, model) = (self.symbol, Model::behind(self.endpoint));
        // An operation without a limit ignores one, like any unknown parameter.
        let limit = |query: &mut Query<'_>| {
            if change_set.takes_limit(self.endpoint) { query.limit() } else { Ok(usize::MAX) }
        };
        Ok(match self.endpoint {
            Endpoint::SignalsHistoryAll | Endpoint::LegacyHistoryAll => {
                let (sector, outlook) = (query.require("sector"), query.outlook(model));
                Question::Sector { outlook: outlook?, sector: sector? }
            }
            Endpoint::SignalsHistoryBatchedAll => {
                Question::Batch { model, period: None, regime: None, limit: usize::MAX }
            }
            Endpoint::SignalsHistoryBatched | Endpoint::LegacyHistoryBatched => {
                let (period, regime, limit) = (query.period(), query.regime(), limit(query));
                Question::Batch { model, period: period?, regime: regime?, limit: limit? }
            }
            Endpoint::SignalsHistory | Endpoint::LegacyHistory => {
                let (outlook, limit) = (query.outlook(model), limit(query));
                Question::History { outlook: outlook?, symbol, limit: limit? }
            }
            Endpoint::Signals | Endpoint::LegacySignals => Question::Latest { outlook: query.outlook(model)?, symbol },
            Endpoint::TickersAvailable => Question::Tickers,
            Endpoint::SocialSentiment => Question::Summary { symbol },
            Endpoint::NewsArticles => Question::Articles { symbol },
            Endpoint::HistoricalSentiment => Question::DailySentiment { symbol },
        })
    }
}

impl<'r> Query<'r> {
    fn new(query: &'r str) -> Self {
        Self { parameters: form_urlencoded::parse(query.as_bytes()).collect(), known: Vec::new(), problems: Vec::new() }
    }

    fn read(self, question: Question) -> Read {
        let Self { parameters, known, .. } = self;
        let is_unknown = |name: &Cow<'_, str>| !known.contains(&name.as_ref());
        let names = parameters.into_iter().map(|(name, _)| name);
        Read { question, unknown: names.filter(is_unknown).map(Cow::into_owned).collect(), known }
    }

    /// The value of a parameter; the last one if it is repeated.
    fn get(&mut self, name: &'static str) -> Option<&str> {
        self.known.push(name);
        self.parameters.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
    }

    fn require(&mut self, name: &'static str) -> Result<String, InvalidParameter> {
        match self.get(name).map(ToOwned::to_owned) {
            Some(value) => Ok(value),
            None => Err(self.note(name, "missing", "Field required".to_owned())),
        }
    }

    fn outlook(&mut self, model: Model) -> Result<Outlook, InvalidParameter> {
        let (period, regime) = (self.period(), self.regime());
        Ok(Outlook { model, period: period?.unwrap_or_default(), regime: regime?.unwrap_or_default() })
    }

    fn period(&mut self) -> Result<Option<Period>, InvalidParameter> {
        self.one_of("period", Period::all().map(Period::as_str))
    }

    fn regime(&mut self) -> Result<Option<Regime>, InvalidParameter> {
        self.one_of("regime", [Regime::Neutral, Regime::Bear, Regime::Bull].map(Regime::as_str).into_iter())
    }

    /// A value of a closed set, if the query has one.
    fn one_of<T: FromStr>(
        &mut self,
        name: &'static str,
        spellings: impl Iterator<Item = &'static str>,
    ) -> Result<Option<T>, InvalidParameter> {
        if let Ok(value) = self.get(name).map(T::from_str).transpose() {
            return Ok(value);
        }
        let mut quoted: Vec<String> = spellings.map(|spelling| format!("'{spelling}'")).collect();
        let last = quoted.pop().unwrap_or_default();
        Err(self.note(name, "enum", format!("Input should be {} or {last}", quoted.join(", "))))
    }

    /// The most entries of an answer; all if the query does not limit them.
    fn limit(&mut self) -> Result<usize, InvalidParameter> {
        let (kind, message) = match self.get("limit").map(i64::from_str) {
            None => return Ok(usize::MAX),
            Some(Ok(limit @ 1..)) => return Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
            Some(Err(error)) if *error.kind() == IntErrorKind::PosOverflow => return Ok(usize::MAX),
            Some(Err(error)) if *error.kind() != IntErrorKind::NegOverflow => {
                ("int_parsing", "Input should be a valid integer, unable to parse string as an integer")
            }
            Some(_) => ("greater_than_equal", "Input should be greater than or equal to 1"),
        };
        Err(self.note("limit", kind, message.to_owned()))
    }

    fn note(&mut self, name: &str, kind: &str, msg: String) -> InvalidParameter {
        let loc = vec![Location::Name("query".to_owned()), Location::Name(name.to_owned())];
        self.problems.push(ValidationProblem { loc, msg, kind: kind.to_owned() });
        InvalidParameter
    }
}

/// The key that the service accepts.
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(key: String) -> Self {
        Self(key)
    }

    /// Whether the given key is this one. The time does not depend on the first different byte or the length, so the
    /// key cannot be guessed byte by byte.
    pub(super) fn is(&self, given: &str) -> bool {
        let given = given.as_bytes();
        let mut difference = self.0.len() ^ given.len();
        for (position, byte) in self.0.bytes().enumerate() {
            difference |= usize::from(byte ^ given.get(position).copied().unwrap_or(0));
        }
        black_box(difference) == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn only_the_whole_key_matches() {
        let key = Key::new("s3cret".to_owned());
        assert!(key.is("s3cret"));
        for other in ["", "s", "s3cre", "s3cret ", "s3crets3cret", "S3cret", "s3creT", "s3cret\0"] {
            assert!(!key.is(other), "{other:?}");
        }
        assert!(Key::new(String::new()).is("") && !Key::new(String::new()).is("\0"));
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new("s3cret".to_owned())), "Key(…)");
    }
}
