//! Checks of everything that a run needs: the key, the service, the clock, the disk and the archive.
//!
//! What a run would refuse before its first request, a check finds. Each is bounded in time and independent of the others,
//! as far as it can be. Nothing is written but a small object in the store, which is removed again.

mod service;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use rustix::fs::{Access, access};
use schemars::JsonSchema;
use serde::Serialize;

use super::as_of::newest;
use super::blocking;
use super::continuity;
use super::start::{Options, WhenLost};
use crate::archive::{Archive, FOLDER_OF_UNFINISHED, SEALING_LOCK, SKEW, of_service, services, unfinished_runs};
use crate::disk::footprint::{free_space, nearest};
use crate::disk::lock::{self, LockState, state_of};
use crate::disk::names::JOURNAL;
use crate::disk::{file, links};
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::plan::Plan;
use crate::text::human::{bytes, count_of};

/// The check of the clock.
const CLOCK: &str = "clock";

/// The result of a check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// What was checked.
    pub check: &'static str,
    /// Its status.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// How to fix it.
    pub remedy: Option<String>,
}

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// No problem.
    Ok,
    /// A run would succeed, but there is something to fix.
    Warning,
    /// A run would fail.
    Failed,
    /// There is nothing to check.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Diagnosis {
    /// A check without a problem.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, health: Health::Ok, found: found.into(), remedy: None }
    }

    fn none(check: &'static str, found: impl Into<String>) -> Self {
        Self { health: Health::NotApplicable, ..Self::ok(check, found) }
    }

    fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Warning, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    fn failure(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Failed, ..Self::warning(check, found, remedy) }
    }

    fn of_error(check: &'static str, error: &Error) -> Self {
        let found = error.causes().fold(error.to_string(), |found, cause| format!("{found}: {cause}"));
        Self { check, health: Health::Failed, found, remedy: error.hint().map(str::to_owned) }
    }
}

/// Checks everything that a run of a plan needs, or without a plan what every run needs.
///
/// # Errors
///
/// [`ErrorKind::Interrupted`](crate::error::ErrorKind::Interrupted) when it was cancelled. What is wrong with the project is in the diagnoses.
///
/// # Cancel safety
///
/// Dropping it ends the checks.
pub async fn doctor(plan: Option<Plan>, options: Options) -> Result<Vec<Diagnosis>> {
    let Some(plan) = plan else {
        let mut found = vec![Diagnosis::none("service", "no definition was named")];
        found.extend(blocking(move || Ok(check_machine(&options))).await?);
        return Ok(found);
    };
    let asked = async {
        let mut found = service::check_connection(&plan, &options).await;
        let in_store = service::check_store(&plan, &options, &mut found).await;
        (found, in_store)
    };
    let (mut found, in_store) = tokio::select! {
        asked = asked => asked,
        () = options.control.stop.cancelled() => return Err(Error::interruption()),
    };
    found.extend(blocking(move || Ok(check_plan(&plan, options, in_store.as_ref()))).await?);
    Ok(found)
}

/// What every run needs.
fn check_machine(options: &Options) -> Vec<Diagnosis> {
    let (root, now) = (&options.archive, options.clock.now());
    let mut found = check_disks(options, &[options.data.clone(), root.clone()]);
    match services(root) {
        Ok(names) => found.extend(names.iter().map(|name| check_archive(&root.join(name), now))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            found.push(Diagnosis::none("archive", format!("none in `{}` yet", root.display())));
        }
        Err(error) => found.push(Diagnosis::of_error("archive", &error)),
    }
    found
}

/// What a run of a plan needs.
fn check_plan(plan: &Plan, options: Options, in_store: Option<&VersionRecord>) -> Vec<Diagnosis> {
    let (data, root) = (&options.data, &options.archive);
    let archive = root.join(&plan.service.name);
    let folders = [
        data.join("datasets").join(&plan.name),
        data.join("evidence"),
        archive.join(".partial"),
        root.join(lock::FOLDER),
    ];
    let mut found = check_disks(&options, &folders);
    // Another user may have made them.
    let files = [
        root.join(lock::FOLDER).join(&plan.name),
        archive.join(lock::FOLDER).join(SEALING_LOCK),
        data.join(JOURNAL).join(format!("{}.jsonl", plan.name)),
    ];
    if let Some(denied) = files.iter().find(|path| !file::is_gone(path) && !file::is_writable(path)) {
        let remedy = "make it writable for you, such as with `umask 002` for all users of a group";
        found.push(Diagnosis::failure("disk", format!("`{}` cannot be written", denied.display()), remedy));
    }
    if !plan.hooks.is_empty() {
        found.push(match plan.require_trust() {
            Ok(()) => Diagnosis::ok("hooks", "the definition is trusted to run commands"),
            Err(error) => Diagnosis::of_error("hooks", &error),
        });
    }
    match state_of(root, &plan.name) {
        Ok(LockState::New | LockState::Free(_)) => {}
        Ok(LockState::Held(holder)) => {
            let holder = holder.map_or_else(String::new, |holder| format!(": {holder}"));
            let what = format!("a run of `{}` is in progress{holder}", plan.name);
            let remedy = "try again when it has finished, or wait for it with `--wait`";
            found.push(Diagnosis::warning("lock", what, remedy));
        }
        Err(error) => found.push(Diagnosis::of_error("lock", &error)),
    }
    let archive = match of_service(root, &plan.service.name) {
        Ok(archive) => archive,
        Err(error) => {
            found.push(Diagnosis::of_error("archive", &error));
            return found;
        }
    };
    found.push(check_archive(&archive, options.clock.now()));
    let options = Options { archive, when_lost: WhenLost::Fail, ..options };
    found.push(match continuity::check(plan, &options, in_store) {
        Ok(history) => {
            let note = history.notes.into_iter().next();
            Diagnosis::ok("history", note.unwrap_or_else(|| format!("of service {}", plan.service)))
        }
        Err(error) => Diagnosis::of_error("history", &error),
    });
    found
}

/// The disks with the data and the archive, and whether some folders on them can be written, which a run creates if needed.
fn check_disks(options: &Options, written: &[PathBuf]) -> Vec<Diagnosis> {
    for path in written {
        for root in [&options.data, &options.archive] {
            if let Err(error) = links::refuse_below(root, path) {
                return vec![Diagnosis::of_error("disk", &error)];
            }
        }
        let there = nearest(path);
        let (what, remedy) = if !there.is_dir() {
            ("is not a folder", "move it, or choose another folder with `--data` or `--archive`")
        } else if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            ("cannot be written", "choose a folder that you can write to with `--data` or `--archive`")
        } else {
            continue;
        };
        return vec![Diagnosis::failure("disk", format!("`{}` {what}", there.display()), remedy)];
    }
    let [data, archive] =
        [&options.data, &options.archive].map(|folder| nearest(folder).metadata().map(|found| found.dev()).ok());
    let mut found = vec![check_disk(&options.data)];
    if data != archive {
        found.push(check_disk(&options.archive));
    }
    found
}

fn check_disk(folder: &Path) -> Diagnosis {
    let Some(free) = free_space(folder) else {
        return Diagnosis::none("disk", "the system does not report free space");
    };
    let found = format!("{} free for `{}`", bytes(free), folder.display());
    let remedy = "free some space, or choose another disk with `--data`";
    match free {
        // A run would fail.
        ..50_000_000 => Diagnosis::failure("disk", found, remedy),
        // A run of all sectors takes about as much.
        50_000_000..1_000_000_000 => Diagnosis::warning("disk", found, remedy),
        _ => Diagnosis::ok("disk", found),
    }
}

fn check_archive(path: &Path, now: DateTime<Utc>) -> Diagnosis {
    let archive = match Archive::open(path) {
        Ok(archive) => archive,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Diagnosis::none("archive", format!("none in `{}` yet", path.display()));
        }
        Err(error) => return Diagnosis::of_error("archive", &error),
    };
    // A run waits for a clock that is behind by less.
    if newest(&archive).is_some_and(|newest| newest - now > SKEW) {
        let found = "the clock is behind the archive's newest run";
        return Diagnosis::failure("archive", found, "set the clock; a run refuses to start until it is later");
    }
    if let Some(file) = archive.first_misfit() {
        let found = format!("`{}` is missing or has another size", file.display());
        let remedy = "restore it from a backup; `bellwether verify` lists all damaged files";
        return Diagnosis::failure("archive", found, remedy);
    }
    let missing: Vec<&str> = archive.missing().collect();
    if let Some(first) = missing.first() {
        let runs = count_of(missing.len() as u64, "run", "runs");
        let found = format!("`{}` lacks {runs} that others are based on, such as `{first}`", path.display());
        let remedy = "restore them from a backup, or fetch them with `bellwether store pull`";
        return Diagnosis::failure("archive", found, remedy);
    }
    let mut found = format!("{}, every file in place", count_of(archive.runs().len() as u64, "run", "runs"));
    let (ours, of_others): (Vec<_>, Vec<_>) = unfinished_runs(path)
        .unwrap_or_default()
        .into_iter()
        .partition(|run| file::is_writable(&path.join(FOLDER_OF_UNFINISHED).join(&run.run)));
    for (runs, what) in [(ours, "to resume"), (of_others, "of another user")] {
        if !runs.is_empty() {
            let count = count_of(runs.len() as u64, "interrupted run", "interrupted runs");
            found += &format!(", {count} {what}");
        }
    }
    Diagnosis::ok("archive", found)
}
