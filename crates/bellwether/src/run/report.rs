//! A report of a published dataset, from the archive.
//!
//! A dataset is a pure function of its definition, its archive and an instant, so what a report says of the rows of a version
//! is computed from the archive as of then, in the order of the key, whatever the layout, the columns and the formats of its
//! files are.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::audits::{SkillOptions, prices_of};
use super::blocking;
use super::builder::{Builder, scratch};
use super::observer::{Control, Stage};
use super::scope::requests_in_words;
use crate::archive::ForgottenRun;
use crate::audit::answers::answers;
use crate::audit::revisions::RewrittenSince;
use crate::audit::skill::{Skill, skill};
use crate::dataset::{join_failed, no_rows, with_naive_dates};
use crate::definition::DefinitionFile;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::error::{Error, Result};
use crate::export::{self, RECORD, VersionRecord, latest, version_before, version_of};
use crate::facts::{Facts, Tally};
use crate::freshness::{Age, today};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{DatasetPlan, Plan, PricesPlan, RowKind, Vintage};
use crate::prices::Prices;
use crate::process::cancel;
use crate::process::trace::work;
use crate::report::news::News;
use crate::report::numbers::{ColumnNumbers, Counting, Numbers};
use crate::report::{Identity, Report, Since, Version};
use crate::text::human::{count_of, group_digits};
use crate::time::{Clock, MICROS_PER_DAY};

/// The options of a report.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// A version: `NAME` for the latest of a dataset, or `NAME/VERSION`; none for the newest of all.
    pub name: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// The folder that relative paths in the definition are below.
    pub root: PathBuf,
    /// The instant to report as of; none for that of the version.
    pub as_of: Option<DateTime<Utc>>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the report.
    pub control: Control,
}

/// The report of a version of a dataset, or of what its definition gives as of another instant.
///
/// # Errors
///
/// When there is no such dataset, when the archive cannot be read or has no data for it; when it
/// was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`ReportOptions::control`].
pub async fn report(options: ReportOptions) -> Result<Report> {
    blocking(move || {
        let (folder, recorded) = version_of(&options.data.join("datasets"), options.name.as_deref())?;
        let definition = DefinitionFile::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone())?;
        let mut plan = Plan::of(definition.below(&options.root))?;
        recorded.ad_hoc().map_err(|reason| FileError::damage(&folder.join(RECORD), reason))?.apply(&mut plan)?;
        report_of(Arc::new(plan), &folder, &recorded, &options)
    })
    .await
}

/// Writes a page to `reports/NAME.html` in a data folder, and returns that file.
///
/// # Errors
///
/// If it cannot be written.
pub fn draw(report: &Report, data: &Path) -> Result<PathBuf> {
    let reports = data.join("reports");
    links::refuse(&reports)?;
    let file = reports.join(&report.identity.name).with_extension("html");
    file::create_folders(&reports)?;
    file::replace(&file, report.page().as_bytes())?;
    Ok(file)
}

/// Draws the report of the latest version of a plan in a data folder, from an archive, after it was published. Returns the page;
/// none if the definition does not ask for one.
pub(super) async fn draw_latest(
    plan: Arc<Plan>,
    data: PathBuf,
    archive: PathBuf,
    clock: Clock,
    control: Control,
) -> Result<Option<PathBuf>> {
    if !plan.files.report {
        return Ok(None);
    }
    let (name, root) = (Some(plan.name.clone()), PathBuf::new());
    let options = ReportOptions { name, data, archive, root, as_of: None, clock, control };
    blocking(move || {
        let (folder, recorded) = version_of(&options.data.join("datasets"), options.name.as_deref())?;
        draw(&report_of(plan, &folder, &recorded, &options)?, &options.data).map(Some)
    })
    .await
}

/// The report of a version in a folder, whose plan is known.
fn report_of(plan: Arc<Plan>, folder: &Path, recorded: &VersionRecord, options: &ReportOptions) -> Result<Report> {
    let datasets = options.data.join("datasets");
    let control = &options.control;
    let as_of = options.as_of.unwrap_or(recorded.as_of);
    let work = Builder::open(plan, &options.archive, Some(as_of), control)?;
    let Builder { plan, view, scope, .. } = &work;
    let stage = Stage::begin(control, "report");
    let version = match options.as_of {
        Some(_) => None,
        None => Some(Version::new(recorded, version_before(&datasets, recorded)?)),
    };
    let (mut notes, mut before) = (Vec::new(), None);
    if let Some(version) = version.as_ref().and_then(|version| version.before.as_ref()) {
        let read = || {
            let (folder, recorded) = version_of(&datasets, Some(&format!("{}/{version}", recorded.name)))?;
            Ok::<_, Error>((recorded, facts_of(&folder)?))
        };
        match read() {
            Ok(read) => before = Some(read),
            Err(error) => notes.push(format!("nothing was compared with version {version}: {error}")),
        }
    }
    let kept = version.as_ref().map(|_| facts_of(folder)).transpose()?;
    let rewritten = before.as_ref().map(|(before, _)| work.rewritten(before.as_of)).transpose()?.flatten();
    let (counted, revisions) = rayon::join(|| work.numbers(kept, options.clock), || work.revisions());
    let ((facts, numbers, news), revisions, skill) = (counted?, revisions?, work.skill()?);
    cancel::check(&control.stop)?;
    stage.finish();
    if facts.rows == 0 {
        return Err(no_rows(&plan.name));
    }
    let built_at = version.as_ref().map_or(view.as_of(), |version| version.built_at);
    let newest = facts.bounds().map(|(_, last)| last);
    let identity = Identity {
        name: plan.name.clone(),
        description: plan.description.clone(),
        version,
        as_of: view.as_of(),
        watched: view.watch(scope)?,
        live_within: plan.dataset.live_within,
        age: newest.map(|newest| Age::of(newest, today(plan, built_at), &plan.dataset.sessions)),
        definition: plan.text.clone(),
        in_words: plan.dataset.in_words(),
    };
    let asked = view.news_tickers(scope)?;
    let unasked =
        facts.tickers.iter().filter(|name| !name.parse().is_ok_and(|ticker: Ticker| asked.contains(&ticker))).count();
    let sectors = view.sectors(Some(scope))?.into_iter();
    let sectors: HashMap<String, String> =
        sectors.map(|(ticker, sector)| (ticker.to_string(), sector.to_string())).collect();
    let columns = numbers.columns.iter().filter_map(|column| {
        Some(ColumnNumbers { name: plan.dataset.written.name_of(&column.name)?.to_owned(), ..column.clone() })
    });
    let requests = requests_in_words(plan, view, scope)?;
    notes.extend(work.notes(&facts)?);
    notes.extend(members_without_signals(plan, &facts, &numbers));
    for ForgottenRun { run, .. } in view.archive().forgotten_runs() {
        if identity.version.is_some() && recorded.runs.contains(run) {
            notes.push(format!("this version was built from run `{run}`, which was forgotten since; build it again"));
        }
    }
    Ok(Report {
        columns: columns.collect(),
        sectors: numbers.by_sector(&sectors),
        skill,
        revisions,
        work: answers(view, |request| requests.contains(request))?,
        unasked: unasked as u64,
        since: before.map(|(before, then)| since(before, &then, &facts, rewritten)),
        notes,
        identity,
        facts,
        numbers,
        news,
    })
}

/// What changed since the version before, which had some facts.
fn since(before: VersionRecord, then: &Facts, now: &Facts, rewritten: Option<RewrittenSince>) -> Since {
    let rewritten = rewritten.unwrap_or_default();
    Since {
        version: before.version,
        rows: then.rows,
        newest: then.bounds().map(|(_, last)| last),
        appeared: tickers_without(now, then),
        disappeared: tickers_without(then, now),
        signals: (rewritten.signals.known, rewritten.signals.rewritten),
        articles: (rewritten.articles.known, rewritten.articles.rewritten),
    }
}

/// The tickers of some facts that others do not have.
fn tickers_without(one: &Facts, other: &Facts) -> Vec<String> {
    one.tickers.iter().filter(|ticker| other.tickers.binary_search(ticker).is_err()).cloned().collect()
}

/// How many members of the universe have no signals, if the dataset has one.
fn members_without_signals(plan: &Plan, facts: &Facts, numbers: &Numbers) -> Option<String> {
    let universe = plan.dataset.filter.universe.as_ref()?;
    let (first, last) = facts.dates?;
    let day = |micros: i64| micros.div_euclid(MICROS_PER_DAY);
    let start = day(last) * MICROS_PER_DAY;
    let lacking = |within: Range<i64>, has: &dyn Fn(&str) -> bool| {
        let members: Vec<&Ticker> = universe.members_within(&within).collect();
        let missing = members.iter().filter(|ticker| !has(ticker.as_str())).count() as u64;
        format!("{} of {}", group_digits(missing), count_of(members.len() as u64, "member", "members"))
    };
    let ever =
        lacking(first..last + 1, &|name| facts.tickers.binary_search_by(|ticker| ticker.as_str().cmp(name)).is_ok());
    let mut of_newest = String::new();
    if !numbers.tickers.is_empty() {
        let newest =
            numbers.tickers.iter().filter(|ticker| ticker.latest.iter().any(|latest| day(latest.date) == day(last)));
        let newest: BTreeSet<&str> = newest.map(|ticker| ticker.name.as_str()).collect();
        let lacking = lacking(start..start + MICROS_PER_DAY, &|name| newest.contains(name));
        of_newest = format!("{lacking} of {} have no signal of that day; ", facts.bounds()?.1);
    }
    Some(format!("universe: {of_newest}{ever} of all dates have no row at all"))
}

/// The facts of the latest version of a dataset; none if there is none, or if they cannot be read.
pub fn latest_facts(data: &Path, name: &str) -> Option<Facts> {
    let datasets = data.join("datasets");
    let recorded = latest(&datasets, Some(name)).ok()??;
    facts_of(&datasets.join(name).join(recorded.version)).ok()
}

/// The facts of a version in a folder.
fn facts_of(folder: &Path) -> Result<Facts> {
    Facts::from_json(&export::facts(folder)?).map_err(|reason| FileError::damage(folder, reason))
}

impl Builder {
    /// Counts the rows of the dataset without writing them, and the articles about its tickers, if it has news. The facts of
    /// a version are known already, if the archive still has what it was built from.
    fn numbers(&self, kept: Option<Facts>, clock: Clock) -> Result<(Facts, Numbers, Option<News>)> {
        let _work = work!("count rows");
        // In the order of the key, so that nothing has to be sorted.
        let dataset = DatasetPlan { sort: self.plan.dataset.rows.key().to_vec(), ..self.plan.dataset.clone() };
        let (mut tally, mut counting) = (Tally::new(&dataset), Counting::new(&dataset));
        let counts = self.rows(&dataset, scratch(clock), None, |rows| {
            tally.count(&rows);
            let rows = rows.flat().map_err(Error::frame)?;
            match dataset.rows {
                RowKind::Signal | RowKind::Observation => counting.take(&rows),
                RowKind::Article => counting.take_articles(&rows),
            }
        })?;
        let facts = match kept {
            Some(facts) if facts.rows == tally.rows() => facts,
            // A run that the version was built from was forgotten.
            _ => self.facts(tally, counts)?,
        };
        let news = self.news(&facts)?;
        Ok((facts, counting.finish(), news))
    }

    /// The articles about the tickers, if the dataset has news.
    fn news(&self, facts: &Facts) -> Result<Option<News>> {
        let _work = work!("count news");
        let of_each = &self.plan.of_each_ticker;
        let has_news = of_each.contains(&Endpoint::NewsArticles) || self.plan.dataset.rows == RowKind::Article;
        let Some((first, last)) = facts.bounds().filter(|_| has_news) else { return Ok(None) };
        let mut news = News::new(facts.tickers.iter());
        for cells in self.view.known_articles(Vintage::Latest)? {
            let articles = with_naive_dates(&cells?, self.plan.dataset.dates).map_err(join_failed)?;
            news.take(&articles, &(first..=last), self.plan.dataset.duplicates);
        }
        Ok(Some(news))
    }

    /// Whether its signals predicted, or why that cannot be measured; none if the definition has no prices.
    fn skill(&self) -> Result<Option<Result<Skill, String>>> {
        if self.plan.prices == PricesPlan::default() || self.plan.dataset.rows == RowKind::Article {
            return Ok(None);
        }
        let _work = work!("measure skill");
        let found = self.measured_skill();
        cancel::check(&self.control.stop)?;
        Ok(Some(
            found.map_err(|error| error.causes().fold(error.to_string(), |text, cause| format!("{text}: {cause}"))),
        ))
    }

    /// Measures its signals against the prices of its definition.
    fn measured_skill(&self) -> Result<Skill> {
        let source = prices_of(&self.plan, &self.prices)?;
        let prices = Prices::read(&source, &self.control.stop)?.by_id(&self.plan.dataset.identity)?;
        skill(SkillOptions::default().input(&self.plan, &self.subject()?, &prices), |_| Ok(()))
    }
}
