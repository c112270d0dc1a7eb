//! Reads the old rows of a series back, out of the runs that hold them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::bundle::Part;
use super::by_ticker::ByTicker;
use super::index::Archive;
use super::keys;
use super::remembered::Name;
use crate::error::Result;
use crate::interface::Ticker;
use crate::tables::{SeriesKey, Table};

/// The old rows of an archive. Tickers are asked for in their order, so that each file is read once at most.
pub(super) struct Past<'a> {
    archive: &'a Archive,
    files: HashMap<(Name, Table), ByTicker>,
}

/// What each run observed of some series.
pub(super) type Observed = HashMap<SeriesKey, Vec<(Name, RecordBatch)>>;

impl<'a> Past<'a> {
    pub(super) fn of(archive: &'a Archive) -> Self {
        Self { archive, files: HashMap::new() }
    }

    /// Adds what was observed of some series of a ticker, each in the runs that are needed of it.
    pub(super) fn read(
        &mut self,
        (table, ticker): (Table, &Ticker),
        needed: &HashMap<&SeriesKey, BTreeSet<Name>>,
        observed: &mut Observed,
    ) -> Result<()> {
        // In the order in which they were sealed, which is that of their observations unless runs were made at once.
        let runs: BTreeSet<&Name> = needed.values().flatten().collect();
        let places = runs.iter().map(|run| Ok((self.archive.place(run)?, *run))).collect::<Result<BTreeSet<_>>>()?;
        for (place, run) in places {
            let name = (Arc::clone(run), table);
            if !self.files.contains_key(&name) {
                let Part { run, file, .. } = Part::all(&self.archive.runs()[place], table);
                self.files.insert(name.clone(), ByTicker::open(run, &file, &table.schema())?);
            }
            let file = self.files.get_mut(&name).expect("it was put there");
            let rows = file.take_only(ticker.as_str())?;
            for (key, range) in keys::ranges(&rows).map_err(|error| file.damaged(error))? {
                if needed.get(&key).is_some_and(|runs| runs.contains(run)) {
                    observed.entry(key).or_default().push((Arc::clone(run), rows.slice(range.start, range.len())));
                }
            }
        }
        Ok(())
    }
}
