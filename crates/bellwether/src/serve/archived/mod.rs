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

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use http::{HeaderValue, StatusCode};

use super::answer::object;
use super::question::{Question, Refusal, WATCH, record};
use crate::archive::{SeriesReader, View, wait_for_seal};
use crate::disk::file;
use crate::error::Result;
use crate::interface::{ChangeSet, Endpoint};
use crate::net::listen::{Answer, whole};
use crate::plan::Request;
use crate::process::cancel::CancellationToken;
use crate::tables::{SeriesKey, Table};
use crate::text::problem::{choices, nearest};
use crate::time::{self, Clock, to_record};

/// The services of an archive.
#[derive(Debug)]
pub struct ArchivedServices {
    folders: Vec<ServiceFolder>,
    as_of: Option<DateTime<Utc>>,
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

    /// The answer of a service to a question, as of the instant in the path. It reads files.
    pub(super) fn answer(
        &self,
        service: &str,
        path: Option<&str>,
        question: Question,
        change_set: ChangeSet,
    ) -> Result<Answer, Refusal> {
        let unclear = |sentence: String| Refusal::new(StatusCode::BAD_REQUEST, sentence);
        let folder = self.folders.iter().find(|folder| folder.name == service).ok_or_else(Refusal::no_operation)?;
        if let Some(unknown) = question.unknown.first() {
            let (name, known) = (unknown.chars().take(80).collect::<String>(), choices(question.known));
            let (endpoint, hint) = (question.endpoint, "an instant is named in the path, `/at/2026-03-31T20:00:00Z/…`");
            return Err(unclear(format!("`{endpoint}` has no parameter `{name}`, it takes {known}; {hint}")));
        }
        let now = Clock::System.now();
        let instant = self.instant_of(path, now).map_err(unclear)?;
        let opened = folder.open(instant)?;
        let view = opened.view(instant).ok_or_else(|| {
            let first = opened.instants().next().map(to_record).unwrap_or_default();
            Refusal::unknown(format!("nothing was known by then: the first run was sealed at {first}"))
        })?;
        let request = request_of(&question)
            .ok_or_else(|| Refusal::unknown("not watched: no ticker and no sector has this name".to_owned()))?;
        let watch = opened.watch(&request, &view)?.ok_or_else(|| opened.not_watched(&view, &request, instant))?;
        let mut answer = opened.answer(&view, &request, question, change_set)?;
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
fn request_of(question: &Question) -> Option<Request> {
    let Question { endpoint, symbol, sector, period, regime, .. } = question;
    let ticker = if endpoint.is_of_one_ticker() { Some(symbol.parse().ok()?) } else { None };
    let sector = sector.as_ref().map(|sector| sector.parse()).transpose().ok()?;
    Some(Request { endpoint: *endpoint, ticker, sector, period: *period, regime: *regime })
}

/// The series that a request is about; none if it is about many.
fn key_of(request: &Request) -> Option<SeriesKey> {
    let ticker = request.ticker.clone()?;
    Some(SeriesKey { ticker, period: request.period, regime: request.regime, table: Table::of(request.endpoint) })
}

/// The most views that are kept open. Each holds the listings of the archive.
const MAX_VIEWS: usize = 4;

/// Opens the latest state of an archive.
pub(crate) type Open = fn(&Path, &CancellationToken) -> Result<View>;

/// The archive of a service.
struct ServiceFolder {
    name: String,
    folder: PathBuf,
    open: Open,
    stop: CancellationToken,
    opened: Mutex<Option<Arc<OpenedArchive>>>,
}

/// An archive as it was opened.
struct OpenedArchive {
    names: Vec<PathBuf>,
    latest: View,
    /// When each request was answered.
    answered: BTreeMap<String, Watch>,
    views: Mutex<Vec<View>>,
    readers: Mutex<HashMap<Table, Arc<SeriesReader>>>,
}

/// When the service was asked for something, over all runs.
#[derive(Clone, Copy, Debug)]
struct Watch {
    endpoint: Endpoint,
    /// When the first run was sealed that knows of it.
    since: DateTime<Utc>,
    /// The first answer.
    from: DateTime<Utc>,
    /// The last answer.
    until: DateTime<Utc>,
}

impl ServiceFolder {
    /// The archive with all runs that count at an instant; without one, with those that have appeared.
    fn open(&self, instant: Option<DateTime<Utc>>) -> Result<Arc<OpenedArchive>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = opened.as_ref().and_then(|opened| opened.instants().last());
        if instant.is_some_and(|instant| newest.is_none_or(|newest| instant > newest)) {
            // A run that is being sealed may count from an instant before this one.
            wait_for_seal(&self.folder, &self.stop)?;
        }
        let names = file::entries(&self.folder)?;
        if let Some(opened) = opened.as_ref().filter(|opened| opened.names == names) {
            return Ok(Arc::clone(opened));
        }
        let latest = (self.open)(&self.folder, &self.stop)?;
        let mut answered: BTreeMap<String, Watch> = BTreeMap::new();
        latest.each_answered(
            |_| true,
            |run, record| {
                let (endpoint, since, at) = (record.endpoint, run.seal().sealed_at, record.observed_at);
                let answer = Watch { endpoint, since, from: at, until: at };
                let known = answered.entry(record.request.to_owned()).or_insert(answer);
                *known = known.and(answer);
            },
        )?;
        let (views, readers) = (Mutex::default(), Mutex::default());
        let current = Arc::new(OpenedArchive { names, latest, answered, views, readers });
        *opened = Some(Arc::clone(&current));
        Ok(current)
    }
}

impl fmt::Debug for ServiceFolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServiceFolder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl OpenedArchive {
    /// When the runs were sealed, in order.
    fn instants(&self) -> impl DoubleEndedIterator<Item = DateTime<Utc>> {
        self.latest.runs().map(|run| run.seal().sealed_at)
    }

    /// A reader of a table.
    fn reader(&self, table: Table) -> Result<Arc<SeriesReader>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = readers.get(&table) {
            return Ok(Arc::clone(reader));
        }
        let reader = Arc::new(self.latest.series_reader(table)?);
        readers.insert(table, Arc::clone(&reader));
        Ok(reader)
    }

    /// What was known at an instant, or is known now; none before the first run. It is as of the seal of a run.
    fn view(&self, instant: Option<DateTime<Utc>>) -> Option<View> {
        let at = self.instants().rev().find(|sealed| instant.is_none_or(|instant| *sealed <= instant))?;
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let known = views.iter().position(|view| view.as_of() == at).map(|index| views.remove(index));
        let view = known.unwrap_or_else(|| View::of(self.latest.archive().clone(), at));
        views.insert(0, view.clone());
        views.truncate(MAX_VIEWS);
        Some(view)
    }

    /// When the service was asked for something, as far as a view knows of it: a history or a latest signal is known from
    /// whatever answers listed its series.
    fn watch(&self, request: &Request, view: &View) -> Result<Option<Watch>> {
        let mut watch = self.answered.get(&request.to_string()).copied().filter(|own| own.since <= view.as_of());
        let is_of_series = matches!(request.endpoint, Endpoint::SignalsHistory | Endpoint::Signals);
        let Some(key) = key_of(request).filter(|_| is_of_series) else { return Ok(watch) };
        let today = self.latest.listed_by(&key)?;
        for by in view.listed_by(&key)? {
            let Some(of_list) = self.answered.get(&by.request) else { continue };
            // After an answer that no longer lists it, nothing is known of it, whatever else that request was answered.
            let gone = today.iter().find(|today| today.request == by.request).and_then(|today| today.gone);
            let listed = Watch { since: by.since, until: gone.unwrap_or(of_list.until), ..*of_list };
            watch = Some(watch.map_or(listed, |watch| watch.and(listed)));
        }
        Ok(watch)
    }

    /// The refusal of a request that no run had asked for.
    fn not_watched(&self, view: &View, request: &Request, instant: Option<DateTime<Utc>>) -> Refusal {
        let words = request.to_string();
        let mut sentence = format!("not watched: no run had asked for `{words}`");
        if let Some(instant) = instant {
            sentence += &format!(" by {}", to_record(instant));
        }
        if let Some(later) = self.answered.get(&words) {
            sentence += &format!("; it is known since {}", to_record(later.since));
        }
        let by_then = self.answered.iter().filter(|(_, watch)| watch.since <= view.as_of());
        let of_table = by_then.filter(|(_, watch)| Table::of(watch.endpoint) == Table::of(request.endpoint));
        let like: Vec<&str> = of_table.map(|(request, _)| request.as_str()).collect();
        if let Some(nearest) = nearest(&words, like.iter().copied()).or(like.first().copied()) {
            sentence += &format!("; the nearest request that was asked is `{nearest}`");
        }
        Refusal::unknown(sentence)
    }

    /// What was known of a request.
    fn answer(
        &self,
        view: &View,
        request: &Request,
        question: Question,
        change_set: ChangeSet,
    ) -> Result<Answer, Refusal> {
        let table = Table::of(request.endpoint).unwrap_or(Table::Signals);
        let reader = self.reader(table)?;
        let Some(key) = key_of(request) else {
            let listed = view.listing(&BTreeSet::from([request.to_string()]))?;
            let mut series = Vec::from_iter(listed.into_values().flatten());
            series.dedup_by(|next, one| next.ticker == one.ticker);
            if request.endpoint == Endpoint::TickersAvailable {
                return Ok(record(StatusCode::OK, &series.into_iter().map(|key| key.ticker).collect::<Vec<_>>()));
            }
            // A few tickers at a time bound the memory of a long answer.
            let (view, parts) = (view.clone(), series.chunks(16).map(<[_]>::to_vec).collect());
            return Ok(object(parts, move |part: Vec<SeriesKey>| {
                let known = reader.known_cells(&view, &part).map_err(io::Error::other)?;
                // A ticker needs no escaping in JSON.
                let members = known.iter().map(|(key, rows)| {
                    format!("\"{}\":{}", key.ticker, records::history(key, rows, &question, change_set))
                });
                Ok(members.collect::<Vec<_>>().join(","))
            }));
        };
        let mut known = reader.known_cells(view, std::slice::from_ref(&key))?.into_iter().map(|(_, rows)| rows);
        let rows = known.next().unwrap_or_else(|| RecordBatch::new_empty(table.known_schema()));
        let text = match request.endpoint {
            Endpoint::Signals | Endpoint::LegacySignals => {
                records::latest(&key, &rows, || view.last_latest(&key), change_set)?
            }
            Endpoint::SocialSentiment if rows.num_rows() == 0 => None,
            Endpoint::SocialSentiment => Some(records::summary(&key, &rows, change_set)),
            Endpoint::NewsArticles => Some(records::articles(&rows)),
            Endpoint::HistoricalSentiment => Some(records::sentiment_history(&rows)),
            _ => Some(records::history(&key, &rows, &question, change_set)),
        };
        let empty = || Refusal::unknown(format!("the service answered `{request}` without a value"));
        Ok(whole(StatusCode::OK, "application/json", text.ok_or_else(empty)?))
    }
}

impl Watch {
    /// Both.
    fn and(self, other: Self) -> Self {
        let (since, from) = (self.since.min(other.since), self.from.min(other.from));
        Self { since, from, until: self.until.max(other.until), ..self }
    }
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
