//! A dataset that is built from an archive while it is read.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use tokio_util::sync::DropGuard;

use super::Selection;
use crate::archive::{Scope, View};
use crate::dataset::join_failed;
use crate::error::{Error, Result, same};
use crate::interface::{Sector, Ticker};
use crate::plan::{AdHoc, ColumnNames, Plan};
use crate::process::cancel::CancellationToken;
use crate::run::{Builder, Control, PriceInput, archived_scope, scratch, view_of_build};
use crate::tables::SeriesKey;
use crate::time::Clock;

/// The number of batches that are built ahead.
const BATCHES_AHEAD: usize = 2;

/// The inputs of a dataset.
#[derive(Clone, Debug)]
pub(super) struct Built {
    plan: Plan,
    view: View,
    scope: Scope,
    selection: Selection,
    /// The prices of its labels.
    prices: PriceInput,
    /// Cancels reading it.
    stop: CancellationToken,
}

impl Built {
    pub(super) fn of(mut plan: Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        ad_hoc.apply(&mut plan)?;
        let stop = CancellationToken::new();
        let view = view_of_build(&plan, archive, ad_hoc, &stop)?;
        let scope = archived_scope(&plan, &view)?;
        let prices = PriceInput::OfDefinition;
        Ok(Self { plan, view, scope, selection: Selection::default(), prices, stop })
    }

    pub(super) fn select(self, selection: Selection) -> Result<Self> {
        selection.check(self.plan.dataset.written.schema(), self.names())?;
        Ok(Self { selection, ..self })
    }

    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The series of its rows.
    pub(super) fn series(&self) -> Result<HashSet<SeriesKey>> {
        self.view.members(&self.scope)
    }

    /// The sectors that tickers of its rows are or were in.
    pub(super) fn sectors(&self) -> Result<BTreeSet<Sector>> {
        let tickers: HashSet<Ticker> = self.series()?.into_iter().map(|key| key.ticker).collect();
        self.view.sectors_ever(&self.scope, &tickers)
    }

    pub(super) fn names(&self) -> &ColumnNames {
        self.plan.dataset.written.names()
    }

    /// All columns, selected or not.
    pub(super) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(self.plan.dataset.written.schema())
    }

    pub(super) fn with_prices(self, prices: PriceInput) -> Self {
        Self { prices, ..self }
    }

    pub(super) fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    pub(super) fn selected_schema(&self) -> SchemaRef {
        let schema = self.selection.schema(self.plan.dataset.written.schema());
        schema.expect("the columns were found when they were selected")
    }

    /// The rows, built on another thread.
    pub(super) fn rows(&self) -> BuiltRows {
        let (send, receive) = mpsc::sync_channel(BATCHES_AHEAD);
        let stop = self.stop.child_token();
        let built = Self { view: self.view.until(&stop), stop: stop.clone(), ..self.clone() };
        let refused = send.clone();
        let builder = thread::Builder::new().spawn(move || {
            if let Err(error) = built.build(&send) {
                // This fails if the reader was dropped.
                let _ = send.send(Err(error));
            }
        });
        if let Err(error) = &builder {
            // There is room for it: nothing else was sent.
            let _ = refused.send(Err(Error::start(same(error))));
        }
        BuiltRows { receive, builder: builder.ok(), _stop: stop.drop_guard() }
    }

    fn build(mut self, send: &mpsc::SyncSender<Result<RecordBatch>>) -> Result<()> {
        self.plan.dataset.filter = std::mem::take(&mut self.plan.dataset.filter).and(self.selection.filter());
        self.scope.filter = self.plan.dataset.filter.clone();
        let Self { plan, view, scope, selection, prices, stop } = self;
        let control = Control { stop, ..Control::default() };
        let work = Builder { prices, ..Builder::new(Arc::new(plan), view, scope, &control) };
        let deliver = |rows: crate::columns::Rows| {
            let written = &work.plan.dataset.written;
            let part = written.part(&rows).flat().and_then(|rows| selection.part(&rows, written.names()));
            let part = part.map_err(join_failed)?;
            send.send(Ok(part)).map_err(|_| Error::interruption())
        };
        work.rows(&work.plan.dataset, scratch(Clock::System), None, deliver).map(|_| ())
    }
}

/// The batches that a thread builds. Dropping them stops it.
pub(super) struct BuiltRows {
    receive: mpsc::Receiver<Result<RecordBatch>>,
    builder: Option<JoinHandle<()>>,
    _stop: DropGuard,
}

impl Iterator for BuiltRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(rows) = self.receive.recv() {
            return Some(rows);
        }
        // If the thread panicked, rows are missing.
        let panic = self.builder.take()?.join().err()?;
        Some(Err(Error::of_panic(&*panic)))
    }
}
