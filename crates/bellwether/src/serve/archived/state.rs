//! The archive of a service, opened once for many requests.
//!
//! A run appears in the folder as a whole, so the names there tell whether what was opened is current.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::key_of;
use crate::archive::{SeriesReader, View, wait_for_seal};
use crate::disk::file;
use crate::error::Result;
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::process::cancel::CancellationToken;
use crate::tables::Table;

/// The most views that are kept open. Each holds the listings of the archive.
const MAX_VIEWS: usize = 4;

/// Opens the latest state of an archive.
pub(super) type Open = fn(&Path, &CancellationToken) -> Result<View>;

/// The archive of a service.
pub(super) struct ServiceFolder {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) open: Open,
    pub(super) stop: CancellationToken,
    pub(super) opened: Mutex<Option<Arc<OpenedArchive>>>,
}

/// An archive as it was opened.
pub(super) struct OpenedArchive {
    names: Vec<PathBuf>,
    latest: View,
    /// When each request was answered.
    pub(super) answered: BTreeMap<String, Watch>,
    views: Mutex<Vec<View>>,
    readers: Mutex<HashMap<Table, Arc<SeriesReader>>>,
}

/// When the service was asked for something, over all runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) endpoint: Endpoint,
    /// When the first run was sealed that knows of it.
    pub(super) since: DateTime<Utc>,
    /// The first answer.
    pub(super) from: DateTime<Utc>,
    /// The last answer.
    pub(super) until: DateTime<Utc>,
}

impl ServiceFolder {
    /// The archive with all runs that count at an instant; without one, with those that have appeared.
    pub(super) fn open(&self, instant: Option<DateTime<Utc>>) -> Result<Arc<OpenedArchive>> {
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
    pub(super) fn instants(&self) -> impl DoubleEndedIterator<Item = DateTime<Utc>> {
        self.latest.runs().map(|run| run.seal().sealed_at)
    }

    /// A reader of a table.
    pub(super) fn reader(&self, table: Table) -> Result<Arc<SeriesReader>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = readers.get(&table) {
            return Ok(Arc::clone(reader));
        }
        let reader = Arc::new(self.latest.series_reader(table)?);
        readers.insert(table, Arc::clone(&reader));
        Ok(reader)
    }

    /// What was known at an instant, or is known now; none before the first run. It is as of the seal of a run.
    pub(super) fn view(&self, instant: Option<DateTime<Utc>>) -> Option<View> {
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
    pub(super) fn watch(&self, request: &Request, view: &View) -> Result<Option<Watch>> {
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
}

impl Watch {
    /// Both.
    fn and(self, other: Self) -> Self {
        let (since, from) = (self.since.min(other.since), self.from.min(other.from));
        Self { since, from, until: self.until.max(other.until), ..self }
    }
}
