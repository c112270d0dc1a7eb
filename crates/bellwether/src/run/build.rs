//! The second half of a run, which needs no service: building a dataset from the archive.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::as_of::{note_on_definition, notes_on_watch, view_of_build};
use super::blocking;
use super::builder::{Builder, scratch};
use super::checks::PreviousVersion;
use super::missing::some_of;
use super::observer::{Control, Stage};
use super::report::draw_latest;
use super::store::{self, RemoteStore, StoreAccess};
use super::summary::Summary;
use crate::audit::revisions::{Counting, RewrittenSince};
use crate::dataset::{Wide, no_rows};
use crate::definition::changed_keys;
use crate::disk::file::{self, TargetFile};
use crate::error::Result;
use crate::export::{
    Destination, Provenance, Publication, ReuseOutcome, RowEncoding, RowOutput, Staged, VersionRecord, built_before,
    reuse_latest,
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
    let (plan, built, folder) = (Arc::new(plan), options.clone(), data.clone());
    let own = Plan::clone(&plan);
    let mut summary = blocking(move || {
        let datasets = folder.join("datasets");
        let (work, notes) = from_archive(own, &built, Some(&datasets), in_store.as_ref())?;
        let BuildOptions { clock, ad_hoc, when_unchanged, .. } = built;
        let mut summary = work.publish(&folder, clock, ad_hoc, when_unchanged)?;
        summary.notes.splice(0..0, notes);
        summary.elapsed = begun.elapsed();
        Ok(summary)
    })
    .await?;
    if let Some(store) = store.filter(|_| is_own) {
        let sent = Some(store.push_archive().await);
        store::publish(Some(&store), sent, &name, &mut summary).await?;
    }
    if is_own {
        summary.report = draw_latest(plan, data, options.archive, options.clock, options.control).await?;
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
        let (work, _) = from_archive(plan, &options, None, None)?;
        let dataset = &work.plan.dataset;
        let schema = Arc::clone(dataset.written.schema());
        let mut out = RowOutput::begin(format.into(), to, schema, &RowEncoding::of(&work.plan))?;
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
    .await
}

/// Finds and checks the inputs of a dataset, against the version before in a folder of datasets or in the store. Returns notes,
/// too.
pub(super) fn from_archive(
    mut plan: Plan,
    options: &BuildOptions,
    datasets: Option<&Path>,
    in_store: Option<&VersionRecord>,
) -> Result<(Builder, Vec<String>)> {
    let BuildOptions { archive, ad_hoc, control, .. } = options;
    ad_hoc.apply(&mut plan)?;
    let view = view_of_build(&plan, archive, ad_hoc, &control.stop)?;
    let mut work = Builder::of_archive(Arc::new(plan), view, control)?;
    let (plan, view) = (Arc::clone(&work.plan), work.view.clone());
    let mut notes = Vec::new();
    if ad_hoc.is_none() {
        (work.before, notes) = PreviousVersion::find(datasets, in_store, &plan.name, view.archive());
        notes.extend(work.check_archived()?);
    } else {
        notes.extend(work.check_selected(&ad_hoc.filter)?);
    }
    if let (Some(as_of), None) = (ad_hoc.as_of, &ad_hoc.version) {
        let late = view.archive().late_arrivals(view.as_of()) as u64;
        if late > 0 {
            let runs = count_of(late, "run", "runs");
            notes.push(format!(
                "{runs} sealed by then became known later; `--as-of VERSION` rebuilds a version without them"
            ));
        }
        notes.extend(notes_on_watch(&plan, &view, &work.scope, as_of)?);
        notes.extend(note_on_definition(&plan, &view));
    }
    control.note(&notes);
    Ok((work, notes))
}

impl Builder {
    /// Publishes the dataset in a data folder, as a stage.
    pub(super) fn publish(
        &self,
        data: &Path,
        clock: Clock,
        ad_hoc: AdHoc,
        when_unchanged: WhenUnchanged,
    ) -> Result<Summary> {
        let stage = Stage::begin(&self.control, "dataset");
        let provenance = self.provenance(ad_hoc, "program", clock.now())?;
        let (built_at, is_own) = (provenance.built_at, provenance.ad_hoc.is_none());
        let mut notes = Vec::new();
        if !is_own {
            let options: Vec<String> =
                provenance.ad_hoc.options().iter().map(|(name, value)| format!("--{name} {value}")).collect();
            notes.push(format!("ad hoc build with `{}`: `latest` is unchanged", options.join(" ")));
        }
        let datasets = data.join("datasets");
        if (!is_own || when_unchanged == WhenUnchanged::Return)
            && let Some((dataset, facts)) = built_before(&datasets, &provenance, &self.control.stop)?
            && let Ok(facts) = Facts::from_json(&facts)
        {
            stage.advance(facts.rows);
            notes.push("already built and unchanged since".to_owned());
            if is_own {
                notes.extend(self.check_rows(&facts, None, built_at)?);
            }
            notes.extend(self.notes(&facts)?);
            self.control.note(&notes);
            return Ok(Summary::new(self, &facts, dataset, notes, vec![stage.finish()]));
        }
        // The latest version again, if it has the same basis.
        let latest = is_own.then(|| reuse_latest(&datasets, &self.plan, &provenance, &self.control.stop));
        let mut reused = None;
        match latest.transpose()?.flatten() {
            Some(ReuseOutcome::Reused { staged, from, facts }) => {
                // Facts that cannot be read are damaged, or were written by another version of the program.
                if let Ok(facts) = Facts::from_json(&facts) {
                    stage.advance(facts.rows);
                    notes.push(format!("unchanged since version {from}; files reused"));
                    reused = Some((staged, facts, None));
                }
            }
            Some(ReuseOutcome::Damaged(path)) => {
                notes.push(format!("`{}` is damaged: rebuilt the dataset", path.display()));
            }
            None => {}
        }
        let (staged, facts, rewritten) = match reused {
            Some(reused) => reused,
            None => self.write_version(data, provenance, &stage)?,
        };
        if is_own {
            notes.extend(self.check_rows(&facts, rewritten.as_ref(), built_at)?);
        }
        notes.extend(self.notes(&facts)?);
        self.control.note(&notes);
        let _work = work!("publish");
        cancel::check(&self.control.stop)?;
        // They are about the version before and the folder, so they are not part of the report.
        let mut of_folder = Vec::new();
        if let Some(recorded) = self.before.as_ref().map(|before| &before.recorded) {
            let changed = changed_keys(&recorded.definition, &self.plan.text);
            let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
            if !changed.is_empty() {
                let since = &recorded.version;
                of_folder.push(format!("the definition changed since version {since}: {}", changed.join("; ")));
            }
        }
        let dataset = staged.publish()?;
        of_folder.extend(
            dataset.overtaken_by.as_ref().map(|newer| {
                format!("`latest` stays at version {newer}, which was published meanwhile and knows more")
            }),
        );
        of_folder.extend(dataset.left.clone());
        self.control.note(&of_folder);
        notes.extend(of_folder);
        Ok(Summary::new(self, &facts, dataset, notes, vec![stage.finish()]))
    }

    /// Notes on the rows.
    pub(super) fn notes(&self, facts: &Facts) -> Result<Vec<String>> {
        let mut notes = self.view.notes_on_runs();
        if let Some(claimed) = facts.claimed {
            let (claimed, rows) = (group_digits(claimed), count_of(facts.rows, "row", "rows"));
            notes.push(format!("{claimed} of {rows} rest on claims: `claimed` marks them"));
        }
        if self.plan.dataset.has_sectors() {
            let sectors = self.view.all_sectors(Some(&self.scope))?;
            let (mut none, mut several) = (Vec::new(), Vec::new());
            for name in &facts.tickers {
                match name.parse().ok().and_then(|ticker: Ticker| sectors.get(&ticker)).map_or(0, BTreeSet::len) {
                    0 => none.push(name),
                    1 => {}
                    _ => several.push(name),
                }
            }
            if !none.is_empty() {
                notes.push(format!("no sector lists {}", some_of("ticker", none.iter())));
            }
            if !several.is_empty() {
                let tickers = some_of("ticker", several.iter());
                notes.push(format!("several sectors list {tickers}; `sector` is the first by name"));
            }
        }
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

    /// Builds and writes the rows of a new version. Returns their facts, too, and what was rewritten since the version before, if
    /// anything can have been.
    fn write_version(
        &self,
        data: &Path,
        provenance: Provenance,
        stage: &Stage<'_>,
    ) -> Result<(Staged, Facts, Option<RewrittenSince>)> {
        let scratch = file::scratch(data, &unique_name(provenance.built_at));
        let mut publication = Publication::begin(&data.join("datasets"), &self.plan, provenance, &self.control.stop)?;
        let mut tally = Tally::new(&self.plan.dataset);
        let mut wide = match &self.plan.dataset.shape {
            Shape::Long => None,
            Shape::Wide(values) => Some(Wide::new(values, Column::Date)),
        };
        // What was rewritten since the version before is checked.
        let before = self.before.as_ref().map(|before| before.recorded.as_of);
        let subject = before.map(|_| self.with_a_past()).transpose()?.flatten();
        let mut counting = subject.as_ref().zip(before).map(|(subject, since)| Counting::since(subject, since));
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
        let facts = self.facts(tally, counts)?;
        let mut rewritten = None;
        let facts_as_json = || {
            if let Some(mut counting) = counting {
                counting.add_table(Table::Articles)?;
                rewritten = Some(counting.finish());
            }
            Ok(facts.to_json())
        };
        let staged = publication.complete(&self.plan, facts_as_json)?;
        Ok((staged, facts, rewritten))
    }
}
