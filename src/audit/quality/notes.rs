//! What the runs noted down of records and fields that they could not use.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMicrosecondType;

use crate::audit::observed::column;
use crate::audit::subject::Subject;
use crate::error::Result;
use crate::interface::{Base, Endpoint};
use crate::tables::Drift;

/// How many reasons are told apart: they are words of the vendor's records, and may be without end.
const MOST: usize = 256;

/// Why records of an operation could not be typed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The operation.
    pub source: String,
    /// The reason; `…` for those beyond the first few hundred.
    pub reason: String,
}

/// The rejects of a subject, counted by operation and reason.
pub(super) fn rejects(subject: &Subject) -> Result<BTreeMap<Unread, u64>> {
    let as_of = subject.view().as_of().timestamp_micros();
    let mut rejects: BTreeMap<Unread, u64> = BTreeMap::new();
    for rows in subject.view().rejects() {
        let rows = rows?;
        let text = |name: &str| column(&rows, name).as_string::<i32>().clone();
        let [requests, tickers, reasons] = ["request", "ticker", "reason"].map(text);
        let seen = column(&rows, "observed_at").as_primitive::<TimestampMicrosecondType>();
        for row in (0..rows.num_rows()).filter(|&row| seen.value(row) <= as_of) {
            let request = requests.value(row);
            let is_asked = match tickers.is_valid(row).then(|| tickers.value(row)) {
                Some(ticker) => subject.has_ticker(ticker),
                None => subject.scope().is_none_or(|scope| scope.requests.contains(request)),
            };
            if is_asked {
                let (source, reason) = (operation(request).to_owned(), reasons.value(row).to_owned());
                let unread = Unread { source, reason };
                let is_told_apart = rejects.len() < MOST || rejects.contains_key(&unread);
                let rest = || Unread { source: "…".to_owned(), reason: "…".to_owned() };
                *rejects.entry(if is_told_apart { unread } else { rest() }).or_default() += 1;
            }
        }
    }
    Ok(rejects)
}

/// The operation of a request in words.
fn operation(request: &str) -> &str {
    let path = request.split(' ').next().unwrap_or_default();
    let is_of = |endpoint: &Endpoint| {
        let name = endpoint.as_str();
        path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
    };
    // The longest name that fits: one operation's may be the beginning of another's.
    let fitting = Endpoint::ALL.iter().filter(|endpoint| is_of(endpoint)).map(|endpoint| endpoint.as_str());
    fitting.max_by_key(|name| name.len()).unwrap_or(path)
}

/// The unknown fields of all runs, of the operations that a subject is of.
pub(super) fn drift(subject: &Subject) -> Vec<Drift> {
    let view = subject.view();
    let is_asked = |endpoint: Endpoint| {
        subject.scope().is_none_or(|scope| endpoint == scope.source || endpoint.base() == Base::Sentiment)
    };
    let runs = view.archive().runs().iter().filter(|run| run.seal().started_at <= view.as_of());
    let mut drift = Vec::new();
    for field in runs.flat_map(|run| &run.seal().drift).filter(|field| is_asked(field.endpoint)) {
        field.clone().add_to(&mut drift);
    }
    drift
}
