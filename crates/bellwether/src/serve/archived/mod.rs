//! An archive as a service: the interface, answered with what was known at an instant.
//!
//! A request is answered from its series, whichever operation said it; a sector or a batch has the series that its latest
//! answer by then listed. What no run asked for by then is not known, so it is refused, with the nearest request that was
//! asked. An answer says when the service was asked: between two answers a value was not rewritten, as far as anyone saw;
//! after the last one, nothing is known of it.
//!
//! An instant that is misread and answered with today's value spoils whatever is built on the answer, so nothing about it
//! is guessed: without an offset, or after now, it is refused, and so is a parameter that the operation does not have.
//!
//! The record of an instant does not tell some shapes apart: whether a history was spelled `items` or `predictions`, and
//! whether a score was a string. Those of the change set of the server are written.

mod records;
mod state;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use http::{HeaderValue, StatusCode};

use super::answer::object;
use super::question::{Question, Read};
use super::refusal::{Refusal, WATCH, json};
use crate::archive::View;
use crate::error::Result;
use crate::interface::{ChangeSet, Endpoint, HistoryKey};
use crate::net::listen::{Answer, whole};
use crate::plan::Request;
use crate::process::cancel::CancellationToken;
use crate::tables::{SeriesKey, Table};
use crate::text::problem::{choices, nearest};
use crate::time::{self, Clock, to_record};
use records::HistoryForm;
use state::{Open, OpenedArchive, ServiceFolder};

/// The services of an archive.
#[derive(Debug)]
pub struct ArchivedServices {
    folders: Vec<ServiceFolder>,
    as_of: Option<DateTime<Utc>>,
}

/// A request to an archive.
pub(super) struct Given {
    pub(super) endpoint: Endpoint,
    pub(super) change_set: ChangeSet,
    pub(super) service: String,
    /// The instant in the path.
    pub(super) instant: Option<String>,
}

impl ArchivedServices {
    /// Services with the folders of their runs, as of an instant or of that of each request.
    pub(crate) fn new(
        services: Vec<(String, PathBuf)>,
        open: Open,
        as_of: Option<DateTime<Utc>>,
        stop: &CancellationToken,
    ) -> Self {
        let served =
            |(name, folder)| ServiceFolder { name, folder, open, stop: stop.clone(), opened: Mutex::default() };
        Self { folders: services.into_iter().map(served).collect(), as_of }
    }

    /// The names of the services.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(|folder| folder.name.as_str())
    }

    /// The answer to a question. It reads files.
    pub(super) fn answer(&self, given: &Given, read: Read) -> Result<Answer, Refusal> {
        let unclear = |sentence: String| Refusal::new(StatusCode::BAD_REQUEST, sentence);
        let folder =
            self.folders.iter().find(|folder| folder.name == given.service).ok_or_else(Refusal::no_operation)?;
        if let Some(unknown) = read.unknown.first() {
            let (name, known) = (unknown.chars().take(80).collect::<String>(), choices(read.known));
            let (endpoint, hint) = (given.endpoint, "an instant is named in the path, `/at/2026-03-31T20:00:00Z/…`");
            return Err(unclear(format!("`{endpoint}` has no parameter `{name}`, it takes {known}; {hint}")));
        }
        let now = Clock::System.now();
        let instant = self.instant_of(given.instant.as_deref(), now).map_err(unclear)?;
        let opened = folder.open(instant)?;
        let view = opened.view(instant).ok_or_else(|| {
            let first = opened.instants().next().map(to_record).unwrap_or_default();
            Refusal::unknown(format!("nothing was known by then: the first run was sealed at {first}"))
        })?;
        let request = request_of(given.endpoint, &read.question)
            .ok_or_else(|| Refusal::unknown("not watched: no ticker and no sector has this name".to_owned()))?;
        let watch = opened.watch(&request, &view)?.ok_or_else(|| not_watched(&opened, &view, &request, instant))?;
        let mut answer = answer(&opened, &view, &request, &read.question, given.change_set)?;
        // After the last answer, nothing is known of it.
        let state = if instant.unwrap_or(now) <= watch.until { "watched" } else { "not-watched" };
        let header = format!("{state}; from={}; until={}", to_record(watch.from), to_record(watch.until));
        answer.headers_mut().insert(WATCH, HeaderValue::try_from(header).expect("instants are ASCII"));
        Ok(answer)
    }

    /// The instant of a request, by the server's own one and that of the path; none for the latest state.
    fn instant_of(&self, path: Option<&str>, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, String> {
        let Some(text) = path else { return Ok(self.as_of) };
        if !text.contains(':') {
            return Err(format!("`{text}` in the path is no instant: write it as `/at/2026-03-31T20:00:00Z/…`"));
        }
        let instant = time::instant(text).map_err(|wrong| format!("`{text}` in the path: {wrong}"))?;
        if instant > now {
            let (at, now) = (to_record(instant), to_record(now));
            return Err(format!("{at} is in the future, it is now {now}: leave out `/at/…` for the latest state"));
        }
        if let Some(own) = self.as_of.filter(|own| *own != instant).map(to_record) {
            let hint = "leave out `/at/…`, or start it without `--as-of`";
            return Err(format!("this server answers as of {own} alone: {hint}"));
        }
        Ok(Some(instant))
    }
}

/// What is asked for, as requests of runs are written; none if it names no ticker or sector that there can be.
fn request_of(endpoint: Endpoint, question: &Question) -> Option<Request> {
    let mut request = Request::bare(endpoint);
    match question {
        Question::Tickers => {}
        Question::Batch { period, regime, .. } => (request.period, request.regime) = (*period, *regime),
        Question::Sector { outlook, sector } => {
            request.sector = Some(sector.parse().ok()?);
            (request.period, request.regime) = (Some(outlook.period), Some(outlook.regime));
        }
        Question::History { outlook, symbol, .. } | Question::Latest { outlook, symbol } => {
            return Some(Request::of_series(endpoint, symbol.parse().ok()?, outlook.period, outlook.regime));
        }
        Question::Summary { symbol } | Question::Articles { symbol } | Question::DailySentiment { symbol } => {
            request.ticker = Some(symbol.parse().ok()?);
        }
    }
    Some(request)
}

/// The refusal of a request that no run had asked for.
fn not_watched(opened: &OpenedArchive, view: &View, request: &Request, instant: Option<DateTime<Utc>>) -> Refusal {
    let words = request.to_string();
    let mut sentence = format!("not watched: no run had asked for `{words}`");
    if let Some(instant) = instant {
        sentence += &format!(" by {}", to_record(instant));
    }
    if let Some(later) = opened.answered.get(&words) {
        sentence += &format!("; it is known since {}", to_record(later.since));
    }
    let by_then = opened.answered.iter().filter(|(_, watch)| watch.since <= view.as_of());
    let of_table = by_then.filter(|(_, watch)| Table::of(watch.endpoint) == Table::of(request.endpoint));
    let like: Vec<&str> = of_table.map(|(request, _)| request.as_str()).collect();
    if let Some(nearest) = nearest(&words, like.iter().copied()).or(like.first().copied()) {
        sentence += &format!("; the nearest request that was asked is `{nearest}`");
    }
    Refusal::unknown(sentence)
}

/// What was known of a request.
fn answer(
    opened: &OpenedArchive,
    view: &View,
    request: &Request,
    question: &Question,
    change_set: ChangeSet,
) -> Result<Answer, Refusal> {
    let table = Table::of(request.endpoint).unwrap_or(Table::Signals);
    let reader = opened.reader(table)?;
    let form = HistoryForm { key: HistoryKey::Predictions, is_batched: false, limit: usize::MAX };
    let form = match question {
        Question::Batch { limit, .. } => HistoryForm { key: HistoryKey::Items, is_batched: true, limit: *limit },
        Question::History { limit, .. } => HistoryForm { key: change_set.history_key(), limit: *limit, ..form },
        _ => form,
    };
    let Some(key) = key_of(request) else {
        let listed = view.listing(&BTreeSet::from([request.to_string()]))?;
        let mut series = Vec::from_iter(listed.into_values().flatten());
        series.dedup_by(|next, one| next.ticker == one.ticker);
        if *question == Question::Tickers {
            return Ok(json(StatusCode::OK, &series.into_iter().map(|key| key.ticker).collect::<Vec<_>>()));
        }
        // A few tickers at a time bound the memory of a long answer.
        let (view, parts) = (view.clone(), series.chunks(16).map(<[_]>::to_vec).collect());
        return Ok(object(parts, move |part: Vec<SeriesKey>| {
            let known = reader.known_cells(&view, &part).map_err(std::io::Error::other)?;
            // A ticker needs no escaping in JSON.
            let members =
                known.iter().map(|(key, rows)| format!("\"{}\":{}", key.ticker, records::history(key, rows, form)));
            Ok(members.collect::<Vec<_>>().join(","))
        }));
    };
    let may_be_empty = !matches!(question, Question::Latest { .. } | Question::Summary { .. });
    let known = reader.known_cells(view, std::slice::from_ref(&key))?.into_iter().next().map(|(_, rows)| rows);
    let rows = known.or_else(|| may_be_empty.then(|| RecordBatch::new_empty(table.known_schema())));
    let text = rows.map(|rows| match question {
        Question::Latest { .. } => records::latest(&key, &rows, || view.last_latest(&key), change_set),
        Question::Summary { .. } => Ok(Some(records::summary(&key, &rows, change_set))),
        Question::Articles { .. } => Ok(Some(records::articles(&rows))),
        Question::DailySentiment { .. } => Ok(Some(records::sentiment_history(&rows))),
        _ => Ok(Some(records::history(&key, &rows, form))),
    });
    let empty = || Refusal::unknown(format!("the service answered `{request}` without a value"));
    Ok(whole(StatusCode::OK, "application/json", text.transpose()?.flatten().ok_or_else(empty)?))
}

/// The series that a request is about; none if it is about many.
fn key_of(request: &Request) -> Option<SeriesKey> {
    let ticker = request.ticker.clone()?;
    Some(SeriesKey { ticker, period: request.period, regime: request.regime, table: Table::of(request.endpoint) })
}

#[cfg(test)]
mod tests {
    use super::ArchivedServices;
    use crate::time::instant;

    #[test]
    fn an_instant_that_may_be_misread_is_refused_with_a_sentence() {
        let read = |pinned: Option<&str>, path: Option<&str>| {
            let as_of = pinned.map(|text| instant(text).unwrap());
            let services = ArchivedServices { folders: Vec::new(), as_of };
            services.instant_of(path, instant("2026-11-20T21:30:00.25Z").unwrap())
        };
        let march = "2026-03-31T20:00:00Z";
        assert_eq!(read(None, None), Ok(None));
        assert_eq!(read(Some(march), Some(march)), Ok(Some(instant(march).unwrap())));
        assert_eq!(read(None, Some("2026-03-31T22:00:00+02:00")), Ok(Some(instant(march).unwrap())));
        for (pinned, path, sentence) in [
            (None, "2026-03-31", "`2026-03-31` in the path is no instant: write it as"),
            (None, "2026-03-31T20:00:00", "no offset from UTC: for a time in UTC, write `2026-03-31T20:00:00Z`"),
            (None, "2026-02-30T20:00:00Z", "2026-02 has no day 30"),
            (None, "20260331200000", "is no instant"),
            (None, "latest", "is no instant"),
            (None, "2026-11-20T21:30:00.250001Z", "is in the future, it is now 2026-11-20T21:30:00.250000Z"),
            (Some(march), "2026-03-30T20:00:00Z", "this server answers as of 2026-03-31T20"),
        ] {
            let refusal = read(pinned, Some(path)).expect_err(sentence);
            assert!(refusal.contains(sentence), "{refusal}");
        }
    }
}
