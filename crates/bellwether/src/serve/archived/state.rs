//! The archive of a service at an instant, opened once for many requests.
//!
//! A run appears in the folder as a whole, so the names there tell whether what was opened is current.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::memento::Watch;
use crate::archive::{SealedRun, SeriesReader, View, wait_for_seal};
use crate::disk::digest;
use crate::disk::file;
use crate::error::Result;
use crate::interface::Endpoint;
use crate::process::cancel::CancellationToken;
use crate::tables::Table;

/// The most states that are kept open. Each holds the listings of the archive.
const MOST_STATES: usize = 4;

/// Opens the latest state of an archive.
pub(super) type Open = fn(&Path, &CancellationToken) -> Result<View>;

/// The archive of a service.
pub(super) struct ServiceFolder {
    folder: PathBuf,
    open: Open,
    stop: CancellationToken,
    opened: Mutex<Option<Arc<OpenedArchive>>>,
}

/// An archive as it was opened.
pub(super) struct OpenedArchive {
    names: Vec<PathBuf>,
    pub(super) latest: View,
    /// Each request that was answered, and when.
    pub(super) answered: HashMap<String, (Endpoint, Watch)>,
    states: Mutex<Vec<Arc<ArchiveState>>>,
    /// Readers of the tables that were asked for.
    readers: Mutex<HashMap<Table, Arc<SeriesReader>>>,
}

/// What was known at the seal of a run.
pub(super) struct ArchiveState {
    pub(super) view: View,
    /// When the run was sealed.
    pub(super) at: DateTime<Utc>,
    /// The run, and a digest of all that count.
    pub(super) etag: String,
}

impl ServiceFolder {
    pub(super) fn of(folder: PathBuf, open: Open, stop: CancellationToken) -> Self {
        Self { folder, open, stop, opened: Mutex::default() }
    }

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
        let current = Arc::new(OpenedArchive::of(names, latest)?);
        *opened = Some(Arc::clone(&current));
        Ok(current)
    }
}

impl OpenedArchive {
    fn of(names: Vec<PathBuf>, latest: View) -> Result<Self> {
        let mut answered: HashMap<String, (Endpoint, Watch)> = HashMap::new();
        latest.each_answered(
            |_| true,
            |run, record| {
                let (since, at) = (run.seal().sealed_at, record.observed_at);
                let answer = Watch { since, from: at, until: at };
                let known = answered.entry(record.request.to_owned()).or_insert((record.endpoint, answer));
                known.1 = known.1.and(answer);
            },
        )?;
        Ok(Self { names, latest, answered, states: Mutex::default(), readers: Mutex::default() })
    }

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

    /// The state at an instant, or the latest one; none before the first run.
    pub(super) fn state(&self, instant: Option<DateTime<Utc>>) -> Option<Arc<ArchiveState>> {
        let at = self.instants().rev().find(|sealed| instant.is_none_or(|instant| *sealed <= instant))?;
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let known = states.iter().position(|state| state.at == at);
        let state = known.map_or_else(|| Arc::new(ArchiveState::of(&self.latest, at)), |index| states.remove(index));
        states.insert(0, Arc::clone(&state));
        states.truncate(MOST_STATES);
        Some(state)
    }
}

impl ArchiveState {
    fn of(latest: &View, at: DateTime<Utc>) -> Self {
        let is_latest = latest.as_of() == at;
        let view = if is_latest { latest.clone() } else { View::of(latest.archive().clone(), at) };
        let names: Vec<&str> = view.runs().map(SealedRun::name).collect();
        let run = names.last().copied().unwrap_or_default();
        let etag = format!("\"{run}-{}\"", &digest::of(names.join("\n").as_bytes())[..8]);
        Self { view, at, etag }
    }
}

impl Watch {
    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { since: self.since.min(other.since), from: self.from.min(other.from), until: self.until.max(other.until) }
    }
}
