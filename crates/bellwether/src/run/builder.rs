//! What builds, reports and audits share: the dataset of a plan in a state of its archive, its rows, and what is counted
//! beside them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::as_of::{knowing_run, view_of};
use super::audits::{PriceInput, prices_of};
use super::checks::PreviousVersion;
use super::observer::Control;
use super::scope::archived_scope;
use crate::archive::{Scope, View};
use crate::audit::Subject;
use crate::audit::revisions::{Counting, Revisions, RewrittenSince, revisions};
use crate::audit::sources::contradictions;
use crate::columns::Rows;
use crate::dataset::{self, Articles, Counts, DatasetInput, Observations, SeriesNames};
use crate::error::{Error, Result};
use crate::export::Provenance;
use crate::facts::{Facts, Tally};
use crate::plan::{AdHoc, Column, DatasetPlan, Plan, RowKind, Source, TickerSource};
use crate::prices::Prices;
use crate::process::cancel;
use crate::process::trace::work;
use crate::sql::{self, Dialect, Question};
use crate::tables::Table;
use crate::time::{Clock, unique_name};

/// A dataset, and what it is built from.
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    pub(crate) plan: Arc<Plan>,
    pub(crate) view: View,
    pub(crate) scope: Scope,
    pub(crate) control: Control,
    /// The prices that returns are measured by, if they are columns.
    pub(crate) prices: PriceInput,
    /// The version before, if the next one is to be published.
    pub(crate) before: Option<PreviousVersion>,
}

impl Builder {
    /// What is built with the prices of the definition, and without a version before.
    pub(crate) fn new(plan: Arc<Plan>, view: View, scope: Scope, control: &Control) -> Self {
        Self { plan, view, scope, control: control.clone(), prices: PriceInput::OfDefinition, before: None }
    }

    /// The same, of the series that the archive has of the plan.
    pub(super) fn of_archive(plan: Arc<Plan>, view: View, control: &Control) -> Result<Self> {
        let scope = archived_scope(&plan, &view)?;
        Ok(Self::new(plan, view, scope, control))
    }

    /// The same, as of an instant or of the latest state.
    pub(super) fn open(
        plan: Arc<Plan>,
        archive: &Path,
        as_of: Option<DateTime<Utc>>,
        control: &Control,
    ) -> Result<Self> {
        let view = view_of(&plan, archive, as_of, &control.stop)?;
        Self::of_archive(plan, view, control)
    }

    /// The dataset as the subject of an audit.
    pub(super) fn subject(&self) -> Result<Subject> {
        Subject::part(self.view.clone(), self.scope.clone(), &self.plan.dataset)
    }

    /// Where a version comes from whose files are written by a program.
    pub(super) fn provenance(&self, ad_hoc: AdHoc, writer: &str, built_at: DateTime<Utc>) -> Result<Provenance> {
        Ok(Provenance {
            name: self.plan.name.clone(),
            definition: self.plan.text.clone(),
            ad_hoc,
            basis: self.basis(writer)?,
            service: self.plan.service.clone(),
            runs: self.view.runs().map(|run| run.name().to_owned()).collect(),
            rebuilt_as_of: knowing_run(&self.plan, &self.view),
            as_of: self.view.as_of(),
            watched: self.view.watch(&self.scope)?,
            built_at,
        })
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
        let past = dataset.needs_past().then(|| self.view.past(&self.scope, dataset)).transpose()?;
        let (series, stop) = (self.view.members(&self.scope)?, &self.control.stop);
        if dataset.rows == RowKind::Article {
            let cells = self.view.known_articles(vintage)?;
            let tickers = series.into_iter().map(|series| series.ticker).collect();
            return dataset::articles(Articles { cells, tickers, past, stop }, dataset, scratch, deliver);
        }
        let names = SeriesNames::new(&series, &self.view.sources_of(&series)?);
        if dataset.rows == RowKind::Observation {
            let values = || self.view.signals_over_time();
            let sources = Observations { values, series, names, past, stop };
            return dataset::observations(sources, dataset, scratch, deliver);
        }
        let slabs = move || {
            let observed = self.view.observed_slabs(series, &self.scope, vintage)?;
            Ok(observed.map(move |observed| {
                let observed = observed?;
                if let Some(counting) = &mut counting {
                    counting.add(&observed.histories()?);
                }
                Ok(observed.slab)
            }))
        };
        let sources = DatasetInput { slabs, names, past, prices: self.prices(dataset)?, stop };
        dataset::build(sources, dataset, scratch, |rows| {
            cancel::check(stop)?;
            deliver(rows)
        })
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
        let prices = Prices::read(&prices_of(&self.plan, &self.prices)?, &self.control.stop)?;
        prices.by_id(&dataset.identity).map(Some)
    }

    /// The number of signals that operations of the service contradict each other about.
    fn contradictions(&self) -> Result<u64> {
        if self.plan.dataset.rows == RowKind::Article || self.view.operations().len() < 2 {
            return Ok(0);
        }
        let _work = work!("compare operations");
        contradictions(&self.subject()?)
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
        let tables = [Table::Signals, Table::Articles].map(Table::file);
        let mut runs = self.view.runs().filter(|run| tables.iter().any(|table| run.seal().rows(table) > 0));
        if runs.nth(1).is_none() { Ok(None) } else { self.subject().map(Some) }
    }

    /// The dataset as a statement over the archive in some folders.
    pub(super) fn statement(&self, archive: &[String], dialect: Dialect) -> Result<String> {
        let Scope { source, requests, excluded, news, .. } = &self.scope;
        // The tickers whose news is asked for, if they are not those of the signals.
        let news = (*news != TickerSource::Signals).then(|| self.view.news_tickers(&self.scope)).transpose()?;
        let question = Question {
            name: &self.plan.name,
            plan: &self.plan.dataset,
            source: *source,
            requests,
            excluded,
            news: news.as_ref(),
            view: &self.view,
            archive,
            dialect,
        };
        question.statement()
    }

    /// The facts of rows that were counted, with what is counted beside them.
    pub(super) fn facts(&self, tally: Tally, counts: Counts) -> Result<Facts> {
        let mut facts = tally.finish();
        (facts.repeated, facts.articles) = (counts.repeated_signals, counts.articles);
        (facts.seen_live, facts.contradictions) = (counts.seen_live, self.contradictions()?);
        Ok(facts)
    }
}

/// The options of a statement.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// The archive.
    pub archive: PathBuf,
    /// The folder or URL that the statement reads the archive from; none for the folder itself.
    pub location: Option<String>,
    /// Changes to the definition; none for the definition's own dataset.
    pub ad_hoc: AdHoc,
    /// The engine that the statement is for.
    pub dialect: Dialect,
    /// Cancels reading the archive.
    pub control: Control,
}

/// The dataset of a plan as one SQL statement over the files of the archive.
///
/// The archive decides which operation the signals come from and which requests list them; the statement names both.
///
/// # Errors
///
/// When the archive cannot be read or has nothing of the definition, and when SQL cannot compute the dataset;
/// when it was cancelled.
pub fn sql(mut plan: Plan, options: SqlOptions) -> Result<String> {
    let SqlOptions { archive, location, ad_hoc, dialect, control } = options;
    ad_hoc.apply(&mut plan)?;
    let work = Builder::open(Arc::new(plan), &archive, ad_hoc.as_of, &control)?;
    let archive = work.view.archive();
    let folders = match location {
        Some(_) if archive.claims().is_some() => {
            let what = "claims are read from the archive on this machine alone";
            return Err(Error::usage(what, "leave the location out, or the claims"));
        }
        Some(location) => vec![format!("{}/{}", location.trim_end_matches('/'), work.plan.service.name)],
        None => archive.roots().into_iter().map(sql::path_text).collect::<Result<_, _>>()?,
    };
    work.statement(&folders, dialect)
}

/// The temporary folder for builds that do not go to an output folder.
pub(crate) fn scratch(clock: Clock) -> PathBuf {
    std::env::temp_dir().join(format!(".bellwether-{}", unique_name(clock.now())))
}
