//! An archive as a service: the interface, answered with what was known at an instant.
//!
//! A request is answered from its series, whichever operation said it; a sector or a batch has the series that its latest
//! answer by then listed. What no run asked for by then is not known, so it is refused, with the nearest request that can
//! be answered. An answer says when the service was asked: between two answers a value was not rewritten, as far as anyone
//! saw; after the last one, nothing is known of it.
//!
//! The record of an instant does not tell some shapes apart: whether a history was spelled `items` or `predictions`, and
//! whether a score was a string. Those of the change set of the server are written.

mod memento;
mod moment;
mod nearest;
mod records;
mod state;
mod stream;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::question::{Question, Read};
use super::refusal::{Refusal, WATCH};
use crate::archive::{ListedBy, View};
use crate::error::{Error, causes};
use crate::interface::{ChangeSet, Endpoint, HistoryKey, Sector, Ticker};
use crate::net::listen::{Answer, whole};
use crate::plan::Request;
use crate::process::cancel::CancellationToken;
use crate::tables::{SeriesKey, Table};
use crate::time::{Clock, to_record};
use memento::{Mementos, Original, Watch};
use moment::Moment;
use records::{DateForm, DateTexts, HistoryForm};
use state::{ArchiveState, Open, OpenedArchive, ServiceFolder};

/// The services of an archive.
pub struct ArchivedServices {
    services: Vec<(String, ServiceFolder)>,
    as_of: Option<DateTime<Utc>>,
    clock: Clock,
}

/// A request to an archive.
pub(super) struct Given {
    pub(super) endpoint: Endpoint,
    pub(super) change_set: ChangeSet,
    pub(super) service: String,
    /// The instant in the path.
    pub(super) instant: Option<String>,
    /// What is asked for.
    pub(super) subject: AddressSubject,
    /// The path below the instant, as it was sent.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
}

/// What is asked of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressSubject {
    /// Its answer.
    Answer,
    /// The states that the answer had.
    States,
}

impl ArchivedServices {
    /// Services with the folders of their runs, as of an instant or of that of each request.
    pub(crate) fn of(
        services: Vec<(String, PathBuf)>,
        open: Open,
        as_of: Option<DateTime<Utc>>,
        stop: &CancellationToken,
    ) -> Self {
        let of_service = |(name, folder): (String, PathBuf)| (name, ServiceFolder::of(folder, open, stop.clone()));
        Self { services: services.into_iter().map(of_service).collect(), as_of, clock: Clock::System }
    }

    /// The names of the services.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|(name, _)| name.as_str())
    }

    /// The answer to a question. It reads files.
    pub(super) fn answer(&self, given: &Given, read: Read) -> Result<Answer, Refusal> {
        let (_, folder) = self.services.iter().find(|(name, _)| *name == given.service).ok_or(Refusal::NotFound)?;
        refuse_unknown(given, &read)?;
        let moment = Moment::of(self.as_of, given.instant.as_deref(), &given.headers, self.clock);
        let moment = moment.map_err(Refusal::Unclear)?;
        let opened = folder.open(moment.instant()).map_err(unreadable)?;
        let asked = Asked::of(given, &read.question);
        let (state, watch) = known_state(&opened, &asked, moment)?;
        let instant = moment.instant().unwrap_or_else(|| self.clock.now());
        let instants = opened.instants().filter(|at| *at >= watch.since && self.as_of.is_none_or(|_| *at == state.at));
        let mut instants: Vec<DateTime<Utc>> = instants.collect();
        instants.dedup();
        let original = Original::of(&given.path, &given.query);
        let mementos = Mementos { original, instants, current: state.at, pinned: self.as_of };
        if given.subject == AddressSubject::States {
            return Ok(states(&mementos, &given.headers));
        }
        let etag = HeaderValue::try_from(state.etag.as_str());
        let is_same = |known: &HeaderValue| etag.as_ref().is_ok_and(|etag| holds(known, etag));
        let mut answer = if given.headers.get_all(IF_NONE_MATCH).iter().any(is_same) {
            let mut same = Answer::default();
            *same.status_mut() = StatusCode::NOT_MODIFIED;
            same
        } else {
            answer(&opened, &state, &asked, given, read.question)?
        };
        mementos.add_to(answer.headers_mut(), &state.etag);
        answer.headers_mut().insert(WATCH, watch.header(instant));
        Ok(answer)
    }
}

impl fmt::Debug for ArchivedServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        formatter.debug_struct("ArchivedServices").field("services", &names).field("as_of", &self.as_of).finish()
    }
}

/// What is asked for, as requests of runs are written.
pub(super) struct Asked {
    endpoint: Endpoint,
    /// None if it names no ticker or sector that there can be.
    request: Option<Request>,
    /// The target as it was sent, without the key.
    target: String,
}

impl Asked {
    fn of(given: &Given, question: &Question) -> Self {
        let endpoint = given.endpoint;
        let ticker = |symbol: &String| symbol.parse::<Ticker>().ok();
        let request = match question {
            Question::Sector { outlook, sector } => {
                let (period, regime) = (Some(outlook.period), Some(outlook.regime));
                let sector = sector.parse::<Sector>().ok();
                sector.map(|sector| Request { sector: Some(sector), period, regime, ..Request::bare(endpoint) })
            }
            Question::Batch { period, regime, .. } => {
                Some(Request { period: *period, regime: *regime, ..Request::bare(endpoint) })
            }
            Question::History { outlook, symbol, .. } | Question::Latest { outlook, symbol } => {
                let of = |ticker| Request::of_series(endpoint, ticker, outlook.period, outlook.regime);
                ticker(symbol).map(of)
            }
            Question::Tickers => Some(Request::bare(endpoint)),
            Question::Summary { symbol } | Question::Articles { symbol } | Question::DailySentiment { symbol } => {
                ticker(symbol).map(|ticker| Request::of_ticker(endpoint, ticker))
            }
        };
        let target = request.as_ref().map_or_else(|| endpoint.as_str().to_owned(), Request::target);
        Self { endpoint, request, target }
    }

    /// The series of signals that is asked for, if it is one that any operation may have said.
    fn series(&self) -> Option<SeriesKey> {
        let request = self.request.as_ref()?;
        let is_of_series = matches!(self.endpoint, Endpoint::SignalsHistory | Endpoint::Signals);
        let (ticker, period, regime) = (request.ticker.clone()?, request.period, request.regime);
        is_of_series.then_some(SeriesKey { ticker, period, regime, table: Some(Table::Signals) })
    }

    /// When the service was asked for it, as far as a state knows of it.
    fn watch(&self, opened: &OpenedArchive, state: &ArchiveState) -> Result<Option<Watch>, Refusal> {
        let Some(request) = &self.request else { return Ok(None) };
        let answered = |request: &str| opened.answered.get(request).map(|(_, watch)| *watch);
        let own = answered(&request.to_string()).filter(|watch| watch.since <= state.at);
        let Some(key) = self.series() else { return Ok(own) };
        let listed_in = |view: &View| {
            let series = view.series_of(&key.ticker).map_err(unreadable)?.into_iter();
            Ok(series.filter(|(known, _)| *known == key).flat_map(|(_, by)| by).collect::<Vec<ListedBy>>())
        };
        let today = listed_in(&opened.latest)?;
        let of_listing = |by: &ListedBy| {
            // After an answer that no longer lists it, nothing is known of it, whatever else that request was answered.
            let gone = today.iter().find(|today| today.request == by.request).and_then(|today| today.gone);
            let watch = answered(&by.request)?;
            Some(Watch { since: by.since, until: gone.unwrap_or(watch.until), ..watch })
        };
        Ok(listed_in(&state.view)?.iter().filter_map(of_listing).chain(own).reduce(Watch::and))
    }
}

/// The state that answers, and when the service was asked.
fn known_state(opened: &OpenedArchive, asked: &Asked, moment: Moment) -> Result<(Arc<ArchiveState>, Watch), Refusal> {
    let Some(state) = opened.state(moment.instant()) else {
        let first = opened.instants().next().map(to_record).unwrap_or_default();
        return Err(Refusal::Unknown(format!("nothing was known by then: the first run was sealed at {first}")));
    };
    if let Some(watch) = asked.watch(opened, &state)? {
        return Ok((state, watch));
    }
    let mut sentence = format!("not watched: no run had asked for `{}`", asked.target);
    if let Some(instant) = moment.instant() {
        sentence += &format!(" by {}", to_record(instant));
    }
    let later = asked.request.as_ref().and_then(|request| opened.answered.get(&request.to_string()));
    if let Some((_, later)) = later {
        sentence += &format!("; it is known since {}", to_record(later.since));
    }
    if let Some(nearest) = nearest::of(opened, &state, asked).map_err(unreadable)? {
        sentence += &format!("; the nearest that can be answered is `{nearest}`");
    }
    Err(Refusal::Unknown(sentence))
}

/// What a state answers.
fn answer(
    opened: &OpenedArchive,
    state: &ArchiveState,
    asked: &Asked,
    given: &Given,
    question: Question,
) -> Result<Answer, Refusal> {
    let request = asked.request.as_ref().ok_or(Refusal::NotFound)?;
    let history_key = given.change_set.history_key();
    let batched = |limit| HistoryForm { key: HistoryKey::Items, dates: DateForm::Batched, limit };
    let of_sector = HistoryForm { key: HistoryKey::Predictions, dates: DateForm::Offset, limit: usize::MAX };
    let listed = || {
        let listing = state.view.listing(&BTreeSet::from([request.to_string()])).map_err(unreadable)?;
        Ok(listing.into_values().flatten().collect::<Vec<SeriesKey>>())
    };
    let histories = |form| {
        let reader = opened.reader(Table::Signals).map_err(unreadable)?;
        stream::histories(reader, state.view.clone(), listed()?, form).map_err(unreadable)
    };
    let of_series = |write: &WriteSeries<'_>| of_series(opened, state, asked, write);
    match question {
        Question::Sector { .. } => histories(of_sector),
        Question::Batch { limit, .. } => histories(batched(limit)),
        Question::Tickers => {
            let tickers: Vec<Ticker> = listed()?.into_iter().map(|key| key.ticker).collect();
            Ok(super::refusal::json(StatusCode::OK, &tickers))
        }
        Question::History { limit, .. } => {
            let form = HistoryForm { key: history_key, dates: DateForm::Offset, limit };
            of_series(&|key, rows| {
                let mut texts = DateTexts::default();
                texts.add(rows, form);
                Ok(Some(records::history(String::new(), key, rows, form, &texts)))
            })
        }
        Question::Latest { .. } => {
            let last = |key: &SeriesKey| state.view.last_latest(key).map_err(unreadable);
            of_series(&|key, rows| {
                let last = if records::has_undated(rows) { last(key)? } else { None };
                Ok(records::latest(key, rows, last, given.change_set))
            })
        }
        Question::Summary { .. } => of_series(&|key, rows| Ok(Some(records::summary(key, rows, given.change_set)))),
        Question::Articles { .. } => of_series(&|_, rows| Ok(Some(records::articles(rows)))),
        Question::DailySentiment { .. } => of_series(&|_, rows| Ok(Some(records::sentiment_history(rows)))),
    }
}

/// Writes the rows of a series; none if they have no value.
type WriteSeries<'a> = dyn Fn(&SeriesKey, &RecordBatch) -> Result<Option<String>, Refusal> + 'a;

/// What a state answers about one series.
fn of_series(
    opened: &OpenedArchive,
    state: &ArchiveState,
    asked: &Asked,
    write: &WriteSeries<'_>,
) -> Result<Answer, Refusal> {
    let ticker = asked.request.as_ref().and_then(|request| request.ticker.clone()).ok_or(Refusal::NotFound)?;
    let table = Table::of(asked.endpoint).ok_or(Refusal::NotFound)?;
    let key = asked.series().unwrap_or_else(|| SeriesKey::of_ticker(asked.endpoint, ticker.clone()));
    let reader = opened.reader(table).map_err(unreadable)?;
    let known = reader.known_cells(&state.view, std::slice::from_ref(&key)).map_err(unreadable)?;
    let rows = known.into_iter().next().map(|(_, rows)| rows);
    let may_be_empty =
        matches!(table, Table::Articles | Table::SentimentHistory) || asked.endpoint == Endpoint::SignalsHistory;
    let rows = rows.or_else(|| may_be_empty.then(|| RecordBatch::new_empty(table.known_schema())));
    let text = rows.map(|rows| write(&key, &rows)).transpose()?.flatten();
    let empty = || Refusal::Unknown(format!("the service answered `{}` without a value", asked.target));
    Ok(whole(StatusCode::OK, "application/json", text.ok_or_else(empty)?))
}

/// The states of an answer, as JSON if that is asked for, else in the link format.
fn states(mementos: &Mementos, headers: &HeaderMap) -> Answer {
    let is_json = |accept: &HeaderValue| accept.to_str().is_ok_and(|accept| accept.contains("application/json"));
    match headers.get_all(ACCEPT).iter().any(is_json) {
        true => whole(StatusCode::OK, "application/json", mementos.as_json()),
        false => whole(StatusCode::OK, "application/link-format", mementos.as_links()),
    }
}

/// Refuses parameters that the operation does not have: one of them may have been meant to name an instant.
fn refuse_unknown(given: &Given, read: &Read) -> Result<(), Refusal> {
    let Some(unknown) = read.unknown.first() else { return Ok(()) };
    let known: Vec<String> = read.known.iter().map(|name| format!("`{name}`")).collect();
    Err(Refusal::Unclear(format!(
        "`{}` has no parameter `{}`, it takes {}; an instant is named in the path, `/at/2026-03-31T20:00:00Z/…`, or by \
         `Accept-Datetime`",
        given.endpoint,
        unknown.chars().take(80).collect::<String>(),
        known.join(", ")
    )))
}

/// Whether a list of tags has one, or any.
fn holds(list: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(list), Ok(etag)) = (list.to_str(), etag.to_str()) else { return false };
    list.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == etag || tag == "*")
}

fn unreadable(error: Error) -> Refusal {
    let because: Vec<String> = causes(&error).map(|cause| format!(": {cause}")).collect();
    Refusal::Unreadable(format!("{error}{}", because.concat()))
}
