//! What builds and reports share: the rows of a dataset, and what is counted beside them.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::audits::{PriceInput, prices_of};
use super::checks::PreviousVersion;
use super::observer::Control;
use crate::archive::{Scope, SealedRun, View};
use crate::audit::Subject;
use crate::audit::revisions::{Counting, Revisions, RewrittenSince, revisions};
use crate::audit::sources::contradictions;
use crate::columns::Rows;
use crate::dataset::{self, Articles, Counts, DatasetInput, Observations, SeriesNames};
use crate::error::Result;
use crate::facts::Facts;
use crate::plan::{Column, DatasetPlan, Plan, RowKind, Source};
use crate::prices::Prices;
use crate::process::cancel;
use crate::process::trace::work;
use crate::tables::Table;
use crate::time::{Clock, unique_name};

/// What a dataset is built from.
pub(crate) struct Builder<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) view: &'a View,
    pub(crate) scope: &'a Scope,
    pub(crate) control: &'a Control,
    /// The prices that returns are measured by, if they are columns.
    pub(crate) prices: &'a PriceInput,
    /// The version before, if the next one is to be published.
    pub(crate) before: Option<&'a PreviousVersion>,
}

impl<'a> Builder<'a> {
    /// What is built with the prices of the definition, and without a version before.
    pub(crate) fn new(plan: &'a Plan, view: &'a View, scope: &'a Scope, control: &'a Control) -> Self {
        Self { plan, view, scope, control, prices: &PriceInput::OfDefinition, before: None }
    }

    /// Builds the rows, in order, until it is cancelled. Revisions of signals may be counted on the way, since that reads
    /// the same data.
    pub(crate) fn rows(
        &self,
        dataset: &DatasetPlan,
        scratch: PathBuf,
        mut counting: Option<&mut Counting<'_>>,
        mut deliver: impl FnMut(Rows) -> Result<()>,
    ) -> Result<Counts> {
        let vintage = dataset.vintage;
        let past = dataset.needs_past().then(|| self.view.past(self.scope, dataset)).transpose()?;
        let stop = &self.control.stop;
        if dataset.rows == RowKind::Article {
            let cells = self.view.known_articles(vintage)?;
            let tickers = self.view.members(self.scope)?.into_iter().map(|series| series.ticker).collect();
            let sources = Articles { cells, tickers, past, stop };
            dataset::articles(sources, dataset, scratch, deliver)
        } else if dataset.rows == RowKind::Observation {
            let series = self.view.members(self.scope)?;
            let names = SeriesNames::new(&series, &self.view.sources_of(&series)?);
            let values = || self.view.signals_over_time();
            dataset::observations(Observations { values, series, names, past, stop }, dataset, scratch, deliver)
        } else {
            let slabs = move || {
                let observed = self.view.observed_slabs(self.view.members(self.scope)?, self.scope, vintage)?;
                Ok(observed.map(move |observed| {
                    let observed = observed?;
                    if let Some(counting) = &mut counting {
                        counting.add(&observed.histories()?);
                    }
                    Ok(observed.slab)
                }))
            };
            let members = self.view.members(self.scope)?;
            let names = SeriesNames::new(&members, &self.view.sources_of(&members)?);
            dataset::build(
                DatasetInput { slabs, names, past, prices: self.prices(dataset)?, stop },
                dataset,
                scratch,
                |rows| {
                    cancel::check(stop)?;
                    deliver(rows)
                },
            )
        }
    }

    /// The prices of a dataset that has returns, or entries at the sessions of prices.
    pub(super) fn prices(&self, dataset: &DatasetPlan) -> Result<Option<Prices>> {
        let are_named = !matches!(self.prices, PriceInput::OfDefinition)
            || !self.plan.prices.files.is_empty()
            || matches!(self.plan.source, Source::Demo { .. });
        let is_needed = !dataset.labels.horizons.is_empty();
        if !dataset.columns.contains(&Column::EntryAt) || !(is_needed || are_named) {
            return Ok(None);
        }
        let prices = Prices::read(&prices_of(self.plan, self.prices)?, &self.control.stop)?;
        prices.by_id(&dataset.identity).map(Some)
    }

    /// The number of signals that operations of the service contradict each other about.
    pub(super) fn contradictions(&self) -> Result<u64> {
        if self.plan.dataset.rows == RowKind::Article || self.view.operations().len() < 2 {
            return Ok(0);
        }
        let _work = work!("compare operations");
        let subject = Subject::part(self.view.clone(), self.scope.clone(), &self.plan.dataset)?;
        contradictions(&subject)
    }

    /// The revisions of the series of the dataset; none if only one run has observations.
    pub(super) fn revisions(&self) -> Result<Option<Revisions>> {
        let _work = work!("count revisions");
        self.with_a_past()?.map(|subject| revisions(&subject, None, |_| Ok(()))).transpose()
    }

    /// What was rewritten since an instant; none if nothing can have been.
    pub(super) fn rewritten(&self, since: DateTime<Utc>) -> Result<Option<RewrittenSince>> {
        let Some(subject) = self.with_a_past()? else { return Ok(None) };
        let mut counting = Counting::since(&subject, since);
        counting.add_table(Table::Signals)?;
        counting.add_table(Table::Articles)?;
        Ok(Some(counting.finish()))
    }

    /// The series of the dataset, if they may have been revised; none if only one run has observations.
    pub(super) fn with_a_past(&self) -> Result<Option<Subject>> {
        let has_rows =
            |run: &&SealedRun| [Table::Signals, Table::Articles].iter().any(|table| run.seal().rows(&table.file()) > 0);
        if self.view.runs().filter(has_rows).nth(1).is_none() {
            return Ok(None);
        }
        Subject::part(self.view.clone(), self.scope.clone(), &self.plan.dataset).map(Some)
    }
}

/// Adds the counts of a build to the facts of its rows.
pub(super) fn add_counts(facts: &mut Facts, counts: Counts) {
    (facts.repeated, facts.articles) = (counts.repeated_signals, counts.articles);
    facts.seen_live = counts.seen_live;
}

/// The temporary folder for builds that do not go to an output folder.
pub(crate) fn scratch(clock: Clock) -> PathBuf {
    std::env::temp_dir().join(format!(".bellwether-{}", unique_name(clock.now())))
}
