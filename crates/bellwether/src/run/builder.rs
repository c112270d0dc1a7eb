//! What builds and reports share: the rows of a dataset, and the parts of a report that do not come from them.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use arrow::array::RecordBatch;

use super::checks::PreviousVersion;
use super::observer::Control;
use super::scope::requests_in_words;
use super::skill::{has_prices, skill_of};
use crate::archive::{FoldedObservations, Scope, SealedRun, View};
use crate::audit::Subject;
use crate::audit::answers::answers;
use crate::audit::revisions::{Counting, Revisions, RewrittenSince, revisions};
use crate::audit::skill::Skill;
use crate::audit::sources::contradictions;
use crate::columns::Rows;
use crate::dataset::{self, Articles, Counts, DatasetInput, SeriesNames, join_failed};
use crate::error::Result;
use crate::interface::{Endpoint, Sector, Ticker};
use crate::plan::{DatasetPlan, Plan, RowKind, Vintage};
use crate::process::cancel;
use crate::process::trace::work;
use crate::report::facts::{self, ColumnFacts, Facts, News, NewsTally};
use crate::report::{Identity, Report, Version};
use crate::tables::{Table, Watch};
use crate::time::{Clock, unique_name};

/// What a dataset is built from.
pub(crate) struct Builder<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) view: &'a View,
    pub(crate) scope: &'a Scope,
    pub(crate) control: &'a Control,
    /// The version before, if the next one is to be published.
    pub(crate) before: Option<&'a PreviousVersion>,
    /// How long archiving took, if it was part of the same run.
    pub(crate) archived_in: Option<Duration>,
}

/// What was counted while rows were built.
pub(crate) struct Counted<'s> {
    pub(super) counts: Counts,
    /// What was rewritten in signals since the version before; none if nothing can have been.
    pub(super) counting: Option<Counting<'s>>,
}

/// The parts of a report that do not come from the rows.
pub(super) struct ReportContext {
    skill: Option<Result<Skill, String>>,
    revisions: Option<Revisions>,
    sectors: HashMap<Ticker, Sector>,
    watched: Option<Watch>,
    /// The tickers whose news was asked for.
    asked: BTreeSet<Ticker>,
    work: facts::Activity,
}

impl Builder<'_> {
    /// Builds the rows, in order, until it is cancelled. What was rewritten since the version
    /// before is counted on the way, in the series of the subject, since that reads the same data.
    pub(crate) fn rows<'s>(
        &self,
        dataset: &DatasetPlan,
        scratch: PathBuf,
        subject: Option<&'s Subject>,
        mut deliver: impl FnMut(Rows) -> Result<()>,
    ) -> Result<Counted<'s>> {
        let vintage = dataset.vintage;
        let past = dataset.needs_past().then(|| self.view.past(self.scope, dataset)).transpose()?;
        let stop = &self.control.stop;
        let counting = |(subject, before): (_, &PreviousVersion)| Counting::since(subject, before.recorded.as_of);
        let mut counting = subject.zip(self.before).map(counting);
        let counts = if dataset.rows == RowKind::Article {
            let cells = self.view.known_articles(vintage)?;
            let tickers = self.view.members(self.scope)?.into_iter().map(|series| series.ticker).collect();
            let sources = Articles { cells, tickers, past, stop };
            dataset::articles(sources, dataset, scratch, deliver)?
        } else {
            let mut counted = counting.as_mut();
            let slabs = move || {
                let observed = self.view.observed_slabs(self.view.members(self.scope)?, self.scope, vintage)?;
                Ok(observed.map(move |observed| {
                    let observed = observed?;
                    if let Some(counting) = &mut counted {
                        counting.add(&observed.histories()?);
                    }
                    Ok(observed.slab)
                }))
            };
            let unfiltered = self.scope.without_filter();
            let whole = || self.view.slabs(&unfiltered, vintage);
            let members = self.view.members(self.scope)?;
            let names = SeriesNames::of(&members, self.view.sources_of(&members)?);
            dataset::build(DatasetInput { slabs, whole, names, past, stop }, dataset, scratch, |rows| {
                cancel::check(stop)?;
                deliver(rows)
            })?
        };
        Ok(Counted { counts, counting })
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

    /// The articles of the tickers of some rows, none if the dataset has no news; and what was rewritten since the version
    /// before, if that of signals was counted. Both are counted on one way through the archive.
    pub(super) fn news(
        &self,
        facts: &Facts,
        mut counting: Option<Counting<'_>>,
    ) -> Result<(Option<News>, Option<RewrittenSince>)> {
        let _work = work!("count news");
        let takes_news =
            self.plan.of_each_ticker.contains(&Endpoint::NewsArticles) || self.plan.dataset.rows == RowKind::Article;
        let mut news = takes_news.then(|| NewsTally::of(facts, self.plan.dataset.duplicates));
        let mut count = |articles: RecordBatch| {
            let Some(news) = &mut news else { return Ok(()) };
            news.count(&dataset::with_naive_dates(&articles, self.plan.dataset.dates).map_err(join_failed)?);
            Ok(())
        };
        match &mut counting {
            Some(counting) => counting.add_table(Table::Articles, FoldedObservations::latest_articles, &mut count)?,
            None if takes_news => self.view.known_articles(Vintage::Latest)?.try_for_each(|cells| count(cells?))?,
            None => {}
        }
        Ok((news.map(NewsTally::finish), counting.map(Counting::finish)))
    }

    /// The parts of the report that do not come from the rows.
    pub(super) fn report_context(&self) -> Result<ReportContext> {
        let _work = work!("read answers");
        let requests = requests_in_words(self.plan, self.view, self.scope)?;
        let (sectors, watched) = (self.view.sectors(Some(self.scope))?, self.view.watch(self.scope)?);
        Ok(ReportContext {
            skill: self.skill()?,
            revisions: self.revisions()?,
            sectors,
            watched,
            asked: self.view.news_tickers(self.scope)?,
            work: answers(self.view, |request| requests.contains(request))?.into(),
        })
    }

    /// Whether its signals predicted, or why that cannot be measured; none if the definition has no prices.
    fn skill(&self) -> Result<Option<Result<Skill, String>>> {
        if !has_prices(self.plan) {
            return Ok(None);
        }
        let _work = work!("measure skill");
        let found = skill_of(self.plan, self.view, self.scope, &self.control.stop);
        // A run is not held up by its report.
        cancel::check(&self.control.stop)?;
        Ok(Some(
            found.map_err(|error| error.causes().fold(error.to_string(), |text, cause| format!("{text}: {cause}"))),
        ))
    }

    /// The revisions of the series of the dataset; none if only one run has observations.
    fn revisions(&self) -> Result<Option<Revisions>> {
        let _work = work!("count revisions");
        self.with_a_past()?.map(|subject| revisions(&subject, None, |_| Ok(()))).transpose()
    }

    /// What was rewritten since the version before; none if nothing can have been.
    pub(super) fn rewritten(&self) -> Result<Option<RewrittenSince>> {
        let (Some(subject), Some(before)) = (self.with_a_past()?, self.before) else { return Ok(None) };
        let mut counting = Counting::since(&subject, before.recorded.as_of);
        counting.add_table(Table::Signals, |_| Ok(()), Ok)?;
        counting.add_table(Table::Articles, |_| Ok(()), Ok)?;
        Ok(Some(counting.finish()))
    }

    /// The whole report.
    pub(super) fn report(&self, facts: Facts, context: ReportContext, version: Option<Version>) -> Report {
        let ReportContext { skill, revisions, sectors, watched, asked, work } = context;
        let is_asked = |name: &str| name.parse().is_ok_and(|ticker: Ticker| asked.contains(&ticker));
        let unasked = facts.tickers.iter().filter(|ticker| !is_asked(&ticker.name)).count() as u64;
        let sectors = facts.by_sector(&sectors);
        let identity = Identity {
            name: self.plan.name.clone(),
            description: self.plan.description.clone(),
            version,
            as_of: self.view.as_of(),
            watched,
            live_within: self.plan.dataset.live_within,
            definition: self.plan.text.clone(),
            in_words: self.plan.dataset.in_words(),
        };
        let written = |column: &ColumnFacts| {
            let name = self.plan.dataset.written.name_of(&column.name)?.to_owned();
            Some(ColumnFacts { name, ..column.clone() })
        };
        let columns = facts.columns.iter().filter_map(written).collect();
        let notes = self.view.notes_on_runs();
        Report { identity, columns, sectors, skill, revisions, work, unasked, stages: Vec::new(), notes, facts }
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
    facts.seen_live = Some(counts.seen_live);
}

/// The temporary folder for builds that do not go to an output folder.
pub(crate) fn scratch(clock: Clock) -> PathBuf {
    std::env::temp_dir().join(format!(".bellwether-{}", unique_name(clock.now())))
}
