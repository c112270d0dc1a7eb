//! The second half of a run, which needs no service: building a dataset from the archive.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::as_of::knowing_run;
use super::as_of::{note_on_definition, notes_on_watch, view_of_build};
use super::blocking;
use super::builder::{Builder, add_counts, scratch};
use super::checks::{Checking, PreviousVersions, RowChecks};
use super::names::some_of;
use super::observer::Control;
use super::observer::Stage;
use super::report::draw_latest;
use super::scope::archived_scope;
use super::store::{self, RemoteStore, StoreAccess};
use super::summary::{PublishedDataset, Summary};
use crate::archive::View;
use crate::audit::revisions::{Counting, RewrittenSince};
use crate::dataset::{Wide, no_rows};
use crate::definition::changed_keys;
use crate::disk::file::{self, TargetFile};
use crate::error::Result;
use crate::export::{
    Destination, Provenance, Publication, ReuseOutcome, RowEncoding, RowOutput, Staged, built_before, reuse_latest,
};
use crate::facts::{ArticleCounts, Facts, Tally};
use crate::interface::Ticker;
use crate::plan::{AdHoc, Column, Format, NaiveRule, Plan, RowKind, Shape, StoreUrl};
use crate::process::cancel;
use crate::process::trace::work;
use crate::tables::Table;
use crate::text::human::{count_of, group_digits};
use crate::time::{Clock, unique_name};

/// The options of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The archive.
    pub archive: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// Changes to the definition; none for the definition's own dataset.
    pub ad_hoc: AdHoc,
    /// What to do if the latest version of the definition's own dataset would be built again.
    pub when_unchanged: WhenUnchanged,
    /// The object store to use instead of the definition's.
    pub store: Option<StoreUrl>,
    /// Follows and cancels the build.
    pub control: Control,
}

/// What a build does if the latest version has the same rows, from the same runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenUnchanged {
    /// It publishes a version that shares the files of the latest one.
    Publish,
    /// It returns the latest version. A notebook that is run again and again does not make `keep` remove others.
    Return,
}

impl BuildOptions {
    /// The options of a build of the definition's own dataset.
    pub fn new(archive: impl Into<PathBuf>) -> Self {
        let (ad_hoc, control, when_unchanged) = (AdHoc::default(), Control::default(), WhenUnchanged::Publish);
        Self { archive: archive.into(), clock: Clock::System, ad_hoc, when_unchanged, store: None, control }
    }
}

/// Builds the dataset of a plan from the archive alone, and publishes it in a data folder. With a store, fetches the
/// runs that the archive does not have first, and sends the version; an ad hoc build stays on this machine.
///
/// # Errors
///
/// Any error of a stage; when it was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`BuildOptions::control`].
pub async fn build(plan: Plan, data: PathBuf, options: BuildOptions) -> Result<Summary> {
    let begun = Instant::now();
    options.control.warn(&plan.dataset.warnings());
    let (name, is_own) = (plan.name.clone(), options.ad_hoc.is_none());
    let access = if is_own { StoreAccess::Write } else { StoreAccess::Read };
    let store = RemoteStore::of(&plan, options.store.as_ref(), access, &options.archive, &data, &options.control)?;
    let in_store = match &store {
        Some(store) if is_own => store.begin(&name, options.clock).await?,
        Some(store) => {
            store.pull_archive(options.ad_hoc.as_of).await?;
            None
        }
        None => None,
    };
    let (archive, clock, control) = (options.archive.clone(), options.clock, options.control.clone());
    let (drawn, folder) = (Arc::new(plan.clone()), data.clone());
    let built = blocking(move || {
        let datasets = data.join("datasets");
        let before = PreviousVersions { datasets: Some(&datasets), in_store: in_store.as_ref() };
        from_archive(plan, options, before, |work, options, notes| {
            let stage = Stage::begin(&options.control, "dataset");
            let (clock, ad_hoc) = (options.clock, options.ad_hoc.clone());
            let published = work.publish(&data, clock, ad_hoc, options.when_unchanged, &stage)?;
            let timings = vec![stage.finish()];
            let mut summary = Summary::of(work.plan, published, timings, begun.elapsed());
            summary.notes.splice(0..0, notes);
            Ok(summary)
        })
    });
    let mut summary = built.await?;
    if let Some(store) = store.filter(|_| is_own) {
        let sent = Some(store.push_archive().await);
        store::publish(Some(&store), sent, &name, &mut summary).await?;
    }
    if is_own {
        summary.report = draw_latest(drawn, folder, archive, clock, control).await?;
    }
    Ok(summary)
}

/// Builds the dataset of a plan from the archive alone, and writes it to a stream.
///
/// # Errors
///
/// As [`build`], and when the stream cannot be written.
///
/// # Cancel safety
///
/// As [`build`].
pub async fn stream(plan: Plan, format: Format, out: impl Write + Send + 'static, options: BuildOptions) -> Result<()> {
    write(plan, format, Destination::Stream(Box::new(out)), options).await.map(drop)
}

/// Builds the dataset of a plan from the archive alone, and writes it to one file. Returns the number of rows.
///
/// # Errors
///
/// As [`build`], and when the file exists and is not to be replaced.
///
/// # Cancel safety
///
/// As [`build`].
pub async fn save(plan: Plan, format: Format, file: TargetFile, options: BuildOptions) -> Result<u64> {
    write(plan, format, Destination::File(file), options).await
}

/// Builds the dataset of a plan, with the runs that a store has and the archive does not, and writes it to a file or a stream.
/// Returns the number of rows, of which there must be some.
async fn write(plan: Plan, format: Format, to: Destination<'static>, options: BuildOptions) -> Result<u64> {
    // Nothing is published, so there is no folder of datasets.
    let (store, archive) = (options.store.as_ref(), &options.archive);
    if let Some(store) = RemoteStore::of(&plan, store, StoreAccess::Read, archive, archive, &options.control)? {
        store.pull_archive(options.ad_hoc.as_of).await?;
    }
    blocking(move || {
        from_archive(plan, options, PreviousVersions::default(), |work, options, _| {
            let dataset = &work.plan.dataset;
            let schema = Arc::clone(dataset.written.schema());
            let mut out = RowOutput::begin(format.into(), to, schema, &RowEncoding::of(work.plan))?;
            work.control.warn(&work.view.notes_on_runs());
            let mut count = 0;
            work.rows(dataset, scratch(options.clock), None, |rows| {
                count += rows.num_rows() as u64;
                out.write_rows(&dataset.written.part(&rows))
            })?;
            if count == 0 {
                return Err(no_rows(&work.plan.name));
            }
            out.finish()?;
            Ok(count)
        })
    })
    .await
}

/// Finds and checks the inputs of a dataset.
pub(super) fn from_archive<T>(
    mut plan: Plan,
    options: BuildOptions,
    before: PreviousVersions<'_>,
    build: impl FnOnce(Builder<'_>, &BuildOptions, Vec<String>) -> Result<T>,
) -> Result<T> {
    options.ad_hoc.apply(&mut plan)?;
    let view = view_of_build(&plan, &options.archive, &options.ad_hoc, &options.control.stop)?;
    let scope = archived_scope(&plan, &view)?;
    let is_own = options.ad_hoc.is_none();
    let (before, mut notes) = if is_own { before.find(&plan.name, view.archive()) } else { Default::default() };
    let before = before.as_ref();
    let control = &options.control;
    let checking = Checking { plan: &plan, view: &view, scope: &scope, before, control };
    notes.extend(if is_own { checking.newest()? } else { checking.ad_hoc(&options.ad_hoc.filter)? });
    if let (Some(as_of), None) = (options.ad_hoc.as_of, &options.ad_hoc.version) {
        notes.extend(note_on_late_arrivals(&view));
        notes.extend(notes_on_watch(&plan, &view, &scope, as_of)?);
        notes.extend(note_on_definition(&plan, &view));
    }
    control.note(&notes);
    build(Builder { before, ..Builder::new(&plan, &view, &scope, control) }, &options, notes)
}

/// The note on runs that were brought in after the instant of a build.
fn note_on_late_arrivals(view: &View) -> Option<String> {
    let late = view.archive().late_arrivals(view.as_of()) as u64;
    let runs = count_of(late, "run", "runs");
    (late > 0)
        .then(|| format!("{runs} sealed by then became known later; `--as-of VERSION` rebuilds a version without them"))
}

/// A complete version, and the facts of its rows.
struct BuiltVersion {
    staged: Staged,
    facts: Facts,
    /// What was rewritten since the version before; none if nothing can have been.
    rewritten: Option<RewrittenSince>,
    /// Notes for the user.
    notes: Vec<String>,
}

/// The note on an ad hoc build.
fn note(ad_hoc: &AdHoc) -> Option<String> {
    let options: Vec<String> = ad_hoc.options().iter().map(|(name, value)| format!("--{name} {value}")).collect();
    (!ad_hoc.is_none()).then(|| format!("ad hoc build with `{}`: `latest` is unchanged", options.join(" ")))
}

impl Builder<'_> {
    /// Publishes the dataset in a data folder.
    pub(super) fn publish(
        &self,
        data: &Path,
        clock: Clock,
        ad_hoc: AdHoc,
        when_unchanged: WhenUnchanged,
        stage: &Stage<'_>,
    ) -> Result<PublishedDataset> {
        let as_of = self.view.as_of();
        let provenance = Provenance {
            name: self.plan.name.clone(),
            definition: self.plan.text.clone(),
            ad_hoc,
            basis: self.basis("program")?,
            service: self.plan.service.clone(),
            runs: self.view.runs().map(|run| run.name().to_owned()).collect(),
            rebuilt_as_of: knowing_run(self.plan, self.view),
            as_of,
            watched: self.view.watch(self.scope)?,
            built_at: clock.now(),
        };
        let (built_at, is_own) = (provenance.built_at, provenance.ad_hoc.is_none());
        let mut notes: Vec<String> = note(&provenance.ad_hoc).into_iter().collect();
        // It is about the version before, so it is not part of the report.
        let changed = self.changed_definition();
        if (!is_own || when_unchanged == WhenUnchanged::Return)
            && let Some((dataset, facts)) = built_before(&data.join("datasets"), &provenance, &self.control.stop)?
            && let Ok(facts) = Facts::from_json(&facts)
        {
            stage.advance(facts.rows);
            notes.push("already built and unchanged since".to_owned());
            if is_own {
                let (plan, before) = (self.plan, self.before);
                notes.extend(RowChecks { plan, facts: &facts, before, rewritten: None, now: built_at }.check()?);
            }
            notes.extend(self.notes(&facts)?);
            self.control.note(&notes);
            return Ok(PublishedDataset { facts, dataset, as_of, notes });
        }
        let made = match is_own {
            true => self.reuse_or_write(data, provenance, stage)?,
            false => self.write_version(data, provenance, stage)?,
        };
        let BuiltVersion { staged, facts, rewritten, notes: more } = made;
        notes.extend(more);
        if is_own {
            let (plan, before, rewritten) = (self.plan, self.before, rewritten.as_ref());
            notes.extend(RowChecks { plan, facts: &facts, before, rewritten, now: built_at }.check()?);
        }
        notes.extend(self.notes(&facts)?);
        self.control.note(&notes);
        let _work = work!("publish");
        cancel::check(&self.control.stop)?;
        self.control.note(changed.as_slice());
        notes.extend(changed);
        let dataset = staged.publish()?;
        let overtaken = dataset
            .overtaken_by
            .as_ref()
            .map(|newer| format!("`latest` stays at version {newer}, which was published meanwhile and knows more"));
        let of_folder: Vec<String> = overtaken.into_iter().chain(dataset.left.clone()).collect();
        self.control.note(&of_folder);
        notes.extend(of_folder);
        Ok(PublishedDataset { facts, dataset, as_of, notes })
    }

    /// The note on a definition that changed since the version before.
    fn changed_definition(&self) -> Option<String> {
        let recorded = &self.before?.recorded;
        let changed = changed_keys(&recorded.definition, &self.plan.text);
        let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
        let list = || format!("the definition changed since version {}: {}", recorded.version, changed.join("; "));
        (!changed.is_empty()).then(list)
    }

    /// Notes on the rows.
    pub(super) fn notes(&self, facts: &Facts) -> Result<Vec<String>> {
        let mut notes = self.view.notes_on_runs();
        if let Some(claimed) = facts.claimed {
            let (claimed, rows) = (group_digits(claimed), count_of(facts.rows, "row", "rows"));
            notes.push(format!("{claimed} of {rows} rest on claims: `claimed` marks them"));
        }
        notes.extend(self.of_sectors(facts)?);
        if facts.repeated > 0 {
            let count = count_of(facts.repeated, "signal", "signals");
            let rule = self.plan.dataset.dates;
            notes.push(format!(
                "skipped {count}: under `naive = \"{rule}\"` an earlier signal of the series has the same date"
            ));
        }
        if facts.are_early && self.plan.dataset.dates != NaiveRule::Utc {
            notes.push(
                "there are signals of Sundays and none of Fridays: dates are days at midnight in UTC, and `naive = \"utc\"` in \
                 `[dates]` keeps them"
                    .to_owned(),
            );
        }
        if facts.many_times > 0 {
            let tickers = count_of(facts.many_times, "ticker is", "tickers are");
            notes.push(format!(
                "{tickers} dated at many times of day: if a day has one signal, `per = \"day\"` in `[dates]` counts the last"
            ));
        }
        notes.extend(facts.split_days.as_ref().map(|split| split.in_words(self.plan.dataset.dates)));
        if facts.contradictions > 0 {
            let count = count_of(facts.contradictions, "signal differs", "signals differ");
            notes.push(format!(
                "{count} between operations of the service: the latest answer counts; `bellwether audit sources {}` lists them",
                self.plan.name
            ));
        }
        if self.plan.dataset.windows().is_empty() && self.plan.dataset.rows != RowKind::Article {
            return Ok(notes);
        }
        let ArticleCounts { all, unscored, repeated } = facts.articles;
        let of = |count: u64, all: u64| format!("{} of {}", group_digits(count), count_of(all, "article", "articles"));
        if unscored > 0 {
            let of_counted = of(unscored, all - repeated);
            notes.push(format!("{of_counted} without a score: included in `count` and in no other statistic"));
        }
        if repeated > 0 {
            let hint = "set `duplicates = \"keep\"` to count each";
            notes.push(format!("{} repeated exactly and counted once; {hint}", of(repeated, all)));
        }
        Ok(notes)
    }

    /// Notes on tickers without a sector, and with several, if it is a column.
    fn of_sectors(&self, facts: &Facts) -> Result<Vec<String>> {
        if !self.plan.dataset.has_sectors() {
            return Ok(Vec::new());
        }
        let sectors = self.view.all_sectors(Some(self.scope))?;
        let count = |ticker: &str| {
            let ticker: Option<Ticker> = ticker.parse().ok();
            ticker.and_then(|ticker| sectors.get(&ticker)).map_or(0, BTreeSet::len)
        };
        let names = |is_wanted: fn(usize) -> bool| -> Vec<&str> {
            let names = facts.tickers.iter().map(String::as_str);
            names.filter(|name| is_wanted(count(name))).collect()
        };
        let (none, several) = (names(|count| count == 0), names(|count| count > 1));
        let listed = |names: &[&str]| some_of("ticker", names.iter());
        let mut notes = Vec::new();
        if !none.is_empty() {
            notes.push(format!("no sector lists {}", listed(&none)));
        }
        if !several.is_empty() {
            notes.push(format!("several sectors list {}; `sector` is the first by name", listed(&several)));
        }
        Ok(notes)
    }

    /// The latest version again if it has the same basis, or else a new one.
    fn reuse_or_write(&self, data: &Path, provenance: Provenance, stage: &Stage<'_>) -> Result<BuiltVersion> {
        let latest = reuse_latest(&data.join("datasets"), self.plan, &provenance, &self.control.stop)?;
        let mut notes = Vec::new();
        match latest {
            Some(ReuseOutcome::Reused { staged, from, facts }) => {
                // Facts that cannot be read are damaged, or were written by another version of the program.
                if let Ok(facts) = Facts::from_json(&facts) {
                    stage.advance(facts.rows);
                    notes.push(format!("unchanged since version {from}; files reused"));
                    return Ok(BuiltVersion { staged, facts, rewritten: None, notes });
                }
            }
            Some(ReuseOutcome::Damaged(path)) => {
                notes.push(format!("`{}` is damaged: rebuilt the dataset", path.display()));
            }
            None => {}
        }
        Ok(BuiltVersion { notes, ..self.write_version(data, provenance, stage)? })
    }

    /// Builds and writes the rows of a new version.
    fn write_version(&self, data: &Path, provenance: Provenance, stage: &Stage<'_>) -> Result<BuiltVersion> {
        let scratch = file::scratch(data, &unique_name(provenance.built_at));
        let mut publication = Publication::begin(&data.join("datasets"), self.plan, provenance, &self.control.stop)?;
        let mut tally = Tally::new(&self.plan.dataset);
        let mut wide = match &self.plan.dataset.shape {
            Shape::Long => None,
            Shape::Wide(values) => Some(Wide::new(values, Column::Date)),
        };
        // What was rewritten since the version before is checked.
        let subject = self.before.map(|_| self.with_a_past()).transpose()?.flatten();
        let mut counting =
            subject.as_ref().zip(self.before).map(|(subject, before)| Counting::since(subject, before.recorded.as_of));
        let counts = self.rows(&self.plan.dataset, scratch, counting.as_mut(), |rows| {
            stage.advance(rows.num_rows() as u64);
            let write = || match &mut wide {
                Some(wide) => wide.add(&rows),
                None => publication.write(&self.plan.dataset.written.part(&rows)),
            };
            rayon::join(|| tally.count(&rows), write).1
        })?;
        if tally.rows() == 0 {
            return Err(no_rows(&self.plan.name));
        }
        if let Some(wide) = wide {
            wide.finish(|period, regime, value, rows| publication.write_matrix((period, regime), value, rows))?;
        }
        let mut facts = tally.finish();
        add_counts(&mut facts, counts);
        facts.contradictions = self.contradictions()?;
        let mut rewritten = None;
        let facts_as_json = || {
            if let Some(mut counting) = counting {
                counting.add_table(Table::Articles)?;
                rewritten = Some(counting.finish());
            }
            Ok(facts.to_json())
        };
        let staged = publication.complete(self.plan, facts_as_json)?;
        Ok(BuiltVersion { staged, facts, rewritten, notes: Vec::new() })
    }
}
