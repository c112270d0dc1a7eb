//! The archive of a service as of an instant; and what "as of" names: an instant, a version to build again, or a run of the archive
//! and all that it knew.
//!
//! A seal names the whole past of its run. So the name of a run is enough to have a dataset again that was built from
//! just that, on any machine with the archive, whatever came in later or elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::missing::some_of;
use super::scope::requests_in_words;
use crate::archive::{
    Archive, Scope, SealedRun, View, folders, lost_runs, no_runs, of_service, open_merged_with, services, some_names,
    too_early, wait_for_seal,
};
use crate::definition::{DefinitionFile, changed_keys};
use crate::disk::names::is_unique;
use crate::disk::{digest, file};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{ListedVersion, VersionKind, published_versions};
use crate::plan::{AdHoc, Claims, PinnedVersion, Plan, RowKind, Shape};
use crate::process::cancel::CancellationToken;
use crate::serve::ArchivedServices;
use crate::text::human::{count_of, group_digits};
use crate::time::{self, Clock, to_record};

/// The view of the service of a plan as of an instant, or of its latest state, with claims if the plan includes them.
pub(crate) fn view_of(
    plan: &Plan,
    archive: &Path,
    as_of: Option<DateTime<Utc>>,
    stop: &CancellationToken,
) -> Result<View> {
    let service = of_service(archive, &plan.service.name)?;
    match plan.claims {
        Claims::Included if plan.dataset.shape != Shape::Long => {
            let what = "a wide dataset cannot mark what rests on claims";
            Err(Error::usage(what, "set `layout = \"long\"` in `[output]`, or leave claims out"))
        }
        claims => view(&service, claims, as_of, stop),
    }
}

/// The view of an ad hoc build: as of its instant, and of the runs of its version alone if it has one.
pub(crate) fn view_of_build(plan: &Plan, archive: &Path, ad_hoc: &AdHoc, stop: &CancellationToken) -> Result<View> {
    if let (Some(vintage), RowKind::Observation) = (ad_hoc.vintage, plan.dataset.rows) {
        let what = format!("`--vintage {vintage}` has no effect: `{}` has all vintages", plan.name);
        return Err(Error::usage(what, "leave it out, or build a definition without `vintage = \"all\"`"));
    }
    let view = view_of(plan, archive, ad_hoc.as_of, stop)?;
    match &ad_hoc.version {
        Some(version) => rebuilt(view, version),
        None => Ok(view),
    }
}

/// The view that a version was built from: of its runs alone.
fn rebuilt(view: View, version: &PinnedVersion) -> Result<View> {
    let PinnedVersion { name, runs } = version;
    let forgotten: Vec<&str> = view.archive().forgotten_runs().map(|run| run.run.as_str()).collect();
    let forgotten: Vec<String> = runs.iter().filter(|run| forgotten.contains(&run.as_str())).cloned().collect();
    if !forgotten.is_empty() {
        let count = count_of(forgotten.len() as u64, "of its runs was", "of its runs were");
        let what = format!("cannot rebuild `{name}`: {count} forgotten since: {}", some_names(&forgotten));
        return Err(Error::new(ErrorKind::Storage, what).with_hint(
            "`bellwether list runs` says why; to build it without them, name an instant: `--as-of 2026-03-31`",
        ));
    }
    let known: BTreeSet<&str> = view.runs().map(SealedRun::name).collect();
    let lacking: Vec<String> = runs.iter().filter(|run| !known.contains(run.as_str())).cloned().collect();
    if !lacking.is_empty() {
        let (path, count) = (view.archive().path().display(), group_digits(lacking.len() as u64));
        let names = some_names(&lacking);
        let what = format!("cannot rebuild `{name}`: `{path}` lacks {count} of its runs: {names}");
        return Err(Error::new(ErrorKind::Storage, what)
            .with_hint("restore them from a backup, or fetch them with `bellwether store pull`"));
    }
    view.of_runs(|run| runs.iter().any(|one| one == run))
}

/// The view of a service's archive as of an instant, or of its latest state, read until a token is cancelled.
pub(super) fn view(
    path: &Path,
    claims: Claims,
    as_of: Option<DateTime<Utc>>,
    stop: &CancellationToken,
) -> Result<View> {
    let mut archive = open_merged_with(path, claims, stop)?;
    if let Some(as_of) = as_of.filter(|as_of| newest(&archive).is_none_or(|newest| *as_of > newest)) {
        check_past(as_of)?;
        // A run that is being sealed may count from an instant before this one.
        wait_for_seal(path, stop)?;
        archive = open_merged_with(path, claims, stop)?;
    }
    let (Some(first), Some(newest)) = (first(&archive), newest(&archive)) else {
        return Err(no_runs(archive.path()));
    };
    let missing: Vec<String> = archive.missing().map(ToOwned::to_owned).collect();
    if !missing.is_empty() {
        return Err(lost_runs(archive.path(), &missing, "later runs are based on them"));
    }
    let as_of = as_of.unwrap_or(newest);
    if as_of < first {
        return Err(too_early(as_of, first));
    }
    Ok(View::of(archive, as_of))
}

/// The services of an archive that have some names, or all of them, each as of an instant or of that of each request.
///
/// # Errors
///
/// If the archive cannot be read, if it has no such service, or if a service has no run by the instant, which must not be in
/// the future.
pub fn past(
    archive: &Path,
    names: Vec<String>,
    as_of: Option<DateTime<Utc>>,
    stop: &CancellationToken,
) -> Result<ArchivedServices> {
    as_of.map_or(Ok(()), check_past)?;
    // Claims are served if they are named.
    let known = folders(archive)?;
    let mut served = if names.is_empty() { services(archive)? } else { names };
    served.sort_unstable();
    served.dedup();
    let mut folders = Vec::with_capacity(served.len());
    for name in served {
        if !known.contains(&name) {
            let what = format!("no service `{name}` in `{}`", archive.display());
            let hint = match known.is_empty() {
                true => "run it first: `bellwether run NAME`".to_owned(),
                false => format!("it has {}", known.join(", ")),
            };
            return Err(Error::usage(what, hint));
        }
        let folder = of_service(archive, &name)?;
        view(&folder, Claims::LeftOut, as_of, stop)?;
        folders.push((name, folder));
    }
    if folders.is_empty() {
        return Err(no_runs(archive));
    }
    Ok(ArchivedServices::new(folders, |folder, stop| view(folder, Claims::LeftOut, None, stop), as_of, stop))
}

/// Refuses an instant in the future: what will be known by then is not known yet.
pub(crate) fn check_past(instant: DateTime<Utc>) -> Result<()> {
    let now = Clock::System.now();
    if instant > now {
        let what = format!("{} is in the future: it is now {}", to_record(instant), to_record(now));
        return Err(Error::usage(what, "leave it out for the latest state"));
    }
    Ok(())
}

/// When the first run was sealed.
pub(super) fn first(archive: &Archive) -> Option<DateTime<Utc>> {
    archive.runs().iter().map(|run| run.seal().sealed_at).min()
}

/// The instant of the latest state: two builds without a run in between are as of the same instant.
pub(super) fn newest(archive: &Archive) -> Option<DateTime<Utc>> {
    archive.runs().iter().map(|run| run.seal().sealed_at).max()
}

/// Notes on what was not watched at an instant: what was first asked for later, and that nothing is known since the last
/// answer.
pub(super) fn notes_on_watch(plan: &Plan, view: &View, scope: &Scope, as_of: DateTime<Utc>) -> Result<Vec<String>> {
    let requests = requests_in_words(plan, view, scope)?;
    let answered = view.last_answers(&requests)?;
    let unanswered: Vec<&String> = requests.iter().filter(|request| !answered.contains_key(*request)).collect();
    let mut notes = Vec::new();
    if !unanswered.is_empty() {
        notes.push(format!("not answered by then: {}", some_of("request", unanswered.iter())));
    }
    let last = answered.iter().filter(|(request, _)| scope.requests.contains(*request)).map(|(_, at)| *at).max();
    if let Some(last) = last
        && let days @ 1.. = (as_of - last).num_days()
    {
        let (last, days) = (last.format("%Y-%m-%d %H:%M:%S UTC"), count_of(days as u64, "day", "days"));
        notes.push(format!("the signals were last asked for at {last}: nothing is known of the {days} after that"));
    }
    Ok(notes)
}

/// The note on a definition that was another one in its last run by a view's instant.
pub(super) fn note_on_definition(plan: &Plan, view: &View) -> Option<String> {
    let mut of_runs = view.runs().rev().filter_map(|run| run.seal().definition.as_ref());
    let then = of_runs.find(|definition| definition.name == plan.name)?;
    if then.digest == digest::of(plan.text.as_bytes()) {
        return None;
    }
    let Some(text) = view.archive().definition_text(&then.digest) else {
        return Some("the definition was another one then, whose text the archive does not have".to_owned());
    };
    let changed: Vec<String> = changed_keys(text, &plan.text).iter().map(ToString::to_string).collect();
    (!changed.is_empty()).then(|| format!("the definition was another one then: {}", changed.join("; ")))
}

/// An instant, or what a version or a run knew.
#[derive(Clone, Debug)]
pub enum AsOf {
    /// All that was observed up to it.
    Instant(DateTime<Utc>),
    /// The name of a version, or of a run.
    Named(String),
}

impl AsOf {
    /// The name of a version or a run, or an instant as people type it. The current day means now.
    ///
    /// # Errors
    ///
    /// As [`time::as_of`].
    pub fn parse(text: &str, now: DateTime<Utc>) -> Result<Self, String> {
        if is_unique(text) { Ok(Self::Named(text.to_owned())) } else { time::as_of(text, now).map(Self::Instant) }
    }
}

/// The plan of a definition, and the state of the archive that is meant.
#[derive(Debug)]
pub struct Past {
    /// Of a version or a run, the plan is that of its own definition.
    pub plan: Plan,
    /// None for the latest state.
    pub as_of: Option<DateTime<Utc>>,
    /// The version to build again.
    pub version: Option<PinnedVersion>,
    /// What its user must know.
    pub note: Option<String>,
}

/// Where versions and runs are looked for, and whether claims are to count that the definition leaves out.
#[derive(Clone, Copy, Debug)]
pub struct PastQuery<'a> {
    /// The folder of the data.
    pub data: &'a Path,
    /// The archive.
    pub archive: &'a Path,
    /// Whether claims count.
    pub claims: Claims,
}

impl PastQuery<'_> {
    /// Finds what is meant.
    ///
    /// # Errors
    ///
    /// If there is no such version or run, or if what there is cannot be read.
    pub fn find(&self, plan: Plan, as_of: Option<&AsOf>) -> Result<Past> {
        let name = match as_of {
            Some(AsOf::Named(name)) => name,
            Some(AsOf::Instant(as_of)) => return Ok(Past { plan, as_of: Some(*as_of), version: None, note: None }),
            None => return Ok(Past { plan, as_of: None, version: None, note: None }),
        };
        let mut versions = published_versions(&self.data.join("datasets"))?;
        versions.retain(|version| version.dataset == plan.name && version.kind != VersionKind::AdHoc);
        if let Some(version) = versions.iter().find(|version| version.version == *name) {
            let ListedVersion { definition, as_of, runs, .. } = version.clone();
            let version = Some(PinnedVersion { name: name.clone(), runs });
            return Ok(Past { plan: as_it_was(plan, definition)?, as_of: Some(as_of), version, note: None });
        }
        let what = format!("no version `{name}` of `{}`, and no run of this name", plan.name);
        let known: Vec<&str> = versions.iter().rev().take(8).map(|version| version.version.as_str()).collect();
        let hint = match known.is_empty() {
            true => format!("publish one first: `bellwether run {}`", plan.name),
            false => format!("the versions are {}", known.join(", ")),
        };
        self.of_run(plan, name)?.ok_or_else(|| Error::usage(what, hint))
    }

    /// The plan as it was in a run of its service, and the state of the archive that the run stands for; none if the archive has
    /// no such run.
    fn of_run(&self, mut plan: Plan, run: &str) -> Result<Option<Past>> {
        let folder = of_service(self.archive, &plan.service.name)?;
        if file::is_gone(&folder) {
            return Ok(None);
        }
        let archive = Archive::open(&folder)?;
        let (as_of, runs, note) = if let Some(sealed_at) =
            archive.forgotten_runs().find(|forgotten| forgotten.run == run).and_then(|forgotten| forgotten.sealed_at)
        {
            // That it is forgotten is said where it would be read.
            (sealed_at, vec![run.to_owned()], None)
        } else {
            let Some(known) = archive.known_to(run) else { return Ok(None) };
            let as_of = known.iter().map(|seal| seal.sealed_at).max().expect("a run knows itself");
            let own = known.iter().find(|seal| seal.run == run).and_then(|seal| seal.definition.as_ref());
            let own = own.filter(|definition| definition.name == plan.name);
            let mut note = None;
            match own.and_then(|definition| archive.definition_text(&definition.digest)) {
                Some(definition) => plan = as_it_was(plan, definition.to_owned())?,
                None => {
                    note = Some(format!("run `{run}` has no text of `{}`: its file counts as it is", plan.name));
                }
            }
            (as_of, known.iter().map(|seal| seal.run.clone()).collect(), note)
        };
        if plan.claims == Claims::Included || self.claims == Claims::Included {
            return Err(Error::usage("a run knows no claims", "name an instant, or the version to rebuild"));
        }
        let version = Some(PinnedVersion { name: run.to_owned(), runs });
        Ok(Some(Past { plan, as_of: Some(as_of), version, note }))
    }
}

/// The plan of a definition as it was, in the place where it is.
fn as_it_was(plan: Plan, definition: String) -> Result<Plan> {
    // The text may be a stranger's, where the definition is not: it does not choose the store.
    let (author, store) = (plan.author, plan.store);
    let found = DefinitionFile::new(plan.path, definition)?.below(&plan.root);
    Ok(Plan { author, store, ..Plan::of(found)? })
}

/// The run of a view that knew all others and was of a plan's definition as it is; none if there is no such run, or if
/// claims count, which no run knows.
pub(super) fn knowing_run(plan: &Plan, view: &View) -> Option<String> {
    if plan.claims == Claims::Included {
        return None;
    }
    let archive = view.archive();
    let counted: BTreeSet<&str> = view.runs().map(|run| run.name()).collect();
    let last = view.runs().last()?;
    let definition = last.seal().definition.as_ref()?;
    let is_own = definition.name == plan.name && definition.digest == digest::of(plan.text.as_bytes());
    let is_kept = archive.definition_text(&definition.digest).is_some();
    let known = archive.known_to(last.name())?;
    let is_all = known.iter().map(|seal| seal.run.as_str()).eq(counted);
    (is_own && is_kept && is_all).then(|| last.name().to_owned())
}
