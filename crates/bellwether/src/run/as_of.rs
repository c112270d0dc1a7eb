//! The archive of a service as of an instant.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::names::some_of;
use super::scope::requests_in_words;
use crate::archive::{
    Archive, Scope, SealedRun, View, folders, lost_runs, no_runs, of_service, open_merged_with, services, some_names,
    too_early, wait_for_seal,
};
use crate::definition::changed_keys;
use crate::disk::digest;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{AdHoc, Claims, PinnedVersion, Plan, RowKind, Shape};
use crate::process::cancel::CancellationToken;
use crate::serve::ArchivedServices;
use crate::text::human::{count_of, group_digits};
use crate::time::{Clock, to_record};

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
        claims => view_with(&service, claims, as_of, stop),
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
    let forgotten: BTreeSet<&str> = view.archive().forgotten_runs().map(|run| run.run.as_str()).collect();
    let runs: Vec<String> = version.runs.iter().filter(|run| forgotten.contains(run.as_str())).cloned().collect();
    if !runs.is_empty() {
        let count = match runs.len() {
            1 => "1 of its runs was".to_owned(),
            more => format!("{} of its runs were", group_digits(more as u64)),
        };
        let what = format!("cannot rebuild `{}`: {count} forgotten since: {}", version.name, some_names(&runs));
        return Err(Error::new(ErrorKind::Storage, what).with_hint(
            "`bellwether list runs` says why; to build it without them, name an instant: `--as-of 2026-03-31`",
        ));
    }
    let known: BTreeSet<&str> = view.runs().map(SealedRun::name).collect();
    let runs: Vec<String> = version.runs.iter().filter(|run| !known.contains(run.as_str())).cloned().collect();
    if !runs.is_empty() {
        let what = format!(
            "cannot rebuild `{}`: `{}` lacks {}: {}",
            version.name,
            view.archive().path().display(),
            count_of(runs.len() as u64, "of its runs", "of its runs"),
            some_names(&runs)
        );
        return Err(Error::new(ErrorKind::Storage, what)
            .with_hint("restore them from a backup, or fetch them with `bellwether store pull`"));
    }
    let runs: BTreeSet<&str> = version.runs.iter().map(String::as_str).collect();
    view.of_runs(|run| runs.contains(run))
}

/// The view of a service's archive as of an instant, or of its latest state, read until a token is cancelled.
pub(crate) fn view(archive: &Path, as_of: Option<DateTime<Utc>>, stop: &CancellationToken) -> Result<View> {
    view_with(archive, Claims::LeftOut, as_of, stop)
}

fn view_with(path: &Path, claims: Claims, as_of: Option<DateTime<Utc>>, stop: &CancellationToken) -> Result<View> {
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
            let hint = if known.is_empty() {
                "run it first: `bellwether run NAME`".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            return Err(Error::usage(what, hint));
        }
        let folder = of_service(archive, &name)?;
        view(&folder, as_of, stop)?;
        folders.push((name, folder));
    }
    if folders.is_empty() {
        return Err(no_runs(archive));
    }
    Ok(ArchivedServices::new(folders, |folder, stop| view(folder, None, stop), as_of, stop))
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
    let unknown = last.map(|last| (last, (as_of - last).num_days())).filter(|(_, days)| *days > 0);
    notes.extend(unknown.map(|(last, days)| {
        let (last, days) = (last.format("%Y-%m-%d %H:%M:%S UTC"), count_of(days as u64, "day", "days"));
        format!("the signals were last asked for at {last}: nothing is known of the {days} after that")
    }));
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
