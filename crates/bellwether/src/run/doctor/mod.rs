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

use super::blocking;
use super::observer::Control;
use crate::archive::{
    self, Archive, FOLDER_OF_UNFINISHED, SEALING_LOCK, SKEW, UnfinishedRun, services, unfinished_runs,
};
use crate::disk::footprint::{free_space, nearest};
use crate::disk::lock::{self, LockState, state_of};
use crate::disk::names::JOURNAL;
use crate::disk::{file, links};
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::plan::{Plan, StoreUrl};
use crate::run::as_of::newest;
use crate::run::continuity::{self, Continuity, ExpectedHistory};
use crate::run::start::WhenLost;
use crate::text::human::{bytes, count_of};
use crate::time::Clock;

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

/// The options of the checks.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// The folder of datasets and evidence.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Runs of the definition that are known to have been sealed in the archive of its service.
    pub known_runs: Vec<String>,
    /// The object store to use instead of the definition's.
    pub store: Option<StoreUrl>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the checks.
    pub control: Control,
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
pub async fn doctor(plan: Option<Plan>, options: DoctorOptions) -> Result<Vec<Diagnosis>> {
    let Some(plan) = plan else {
        let mut found = vec![Diagnosis::none("service", "no definition was named")];
        found.extend(blocking(move || Ok(of_machine(&options))).await?);
        return Ok(found);
    };
    let all = async {
        let mut found = service::of_connection(&plan, &options).await;
        let in_store = match service::of_store(&plan, &options).await {
            Some(Ok((diagnosis, in_store))) => {
                found.push(diagnosis);
                in_store
            }
            Some(Err(error)) => {
                found.push(Diagnosis::of_error("store", &error));
                None
            }
            None => None,
        };
        (found, in_store)
    };
    let (mut found, in_store) = tokio::select! {
        all = all => all,
        () = options.control.stop.cancelled() => return Err(Error::interruption()),
    };
    found.extend(blocking(move || Ok(of_plan(&plan, &options, in_store.as_ref()))).await?);
    Ok(found)
}

/// With less space than this there is a warning; a run of all sectors takes about as much.
const LITTLE_SPACE: u64 = 1_000_000_000;

/// With less space than this a run would fail.
const NO_SPACE: u64 = 50_000_000;

/// What every run needs.
fn of_machine(options: &DoctorOptions) -> Vec<Diagnosis> {
    let mut found = of_disks(options, &[options.data.clone(), options.archive.clone()]);
    found.extend(of_archives(options));
    found
}

/// What a run of a plan needs.
fn of_plan(plan: &Plan, options: &DoctorOptions, in_store: Option<&VersionRecord>) -> Vec<Diagnosis> {
    let archive = options.archive.join(&plan.service.name);
    let written = [
        options.data.join("datasets").join(&plan.name),
        options.data.join("evidence"),
        archive.join(".partial"),
        options.archive.join(lock::FOLDER),
    ];
    let mut found = of_disks(options, &written);
    found.extend(of_files(&[
        options.archive.join(lock::FOLDER).join(&plan.name),
        archive.join(lock::FOLDER).join(SEALING_LOCK),
        options.data.join(JOURNAL).join(format!("{}.jsonl", plan.name)),
    ]));
    found.extend(of_hooks(plan));
    found.extend(of_lock(plan, options));
    found.extend(of_history(plan, options, in_store));
    found
}

/// Whether the definition may run its hooks.
fn of_hooks(plan: &Plan) -> Option<Diagnosis> {
    if plan.hooks.is_empty() {
        return None;
    }
    Some(match plan.require_trust() {
        Ok(()) => Diagnosis::ok("hooks", "the definition is trusted to run commands"),
        Err(error) => Diagnosis::of_error("hooks", &error),
    })
}

/// Whether another run of the definition is in progress.
fn of_lock(plan: &Plan, options: &DoctorOptions) -> Option<Diagnosis> {
    match state_of(&options.archive, &plan.name) {
        Ok(LockState::New | LockState::Free(_)) => None,
        Ok(LockState::Held(holder)) => {
            let holder = holder.map_or_else(String::new, |holder| format!(": {holder}"));
            let found = format!("a run of `{}` is in progress{holder}", plan.name);
            Some(Diagnosis::warning("lock", found, "try again when it has finished, or wait for it with `--wait`"))
        }
        Err(error) => Some(Diagnosis::of_error("lock", &error)),
    }
}

/// What keeps a run from writing files that are there: another user may have made them.
fn of_files(files: &[PathBuf]) -> Option<Diagnosis> {
    let denied = files.iter().find(|path| !file::is_gone(path) && !file::is_writable(path))?;
    let found = format!("`{}` cannot be written", denied.display());
    Some(Diagnosis::failure(
        "disk",
        found,
        "make it writable for you, such as with `umask 002` for all users of a group",
    ))
}

/// The disks with the data and the archive, and whether some folders on them can be written.
fn of_disks(options: &DoctorOptions, written: &[PathBuf]) -> Vec<Diagnosis> {
    for path in written {
        for root in [&options.data, &options.archive] {
            if let Err(error) = links::refuse_below(root, path) {
                return vec![Diagnosis::of_error("disk", &error)];
            }
        }
        if let Some(diagnosis) = of_folder(path) {
            return vec![diagnosis];
        }
    }
    let device = |path: &Path| nearest(path).metadata().map(|found| found.dev()).ok();
    let mut found = vec![of_disk(&options.data)];
    if device(&options.archive) != device(&options.data) {
        found.push(of_disk(&options.archive));
    }
    found
}

/// What keeps a run from writing into a folder, which it creates if needed.
fn of_folder(path: &Path) -> Option<Diagnosis> {
    let there = nearest(path);
    let (found, remedy) = if !there.is_dir() {
        ("is not a folder", "move it, or choose another folder with `--data` or `--archive`")
    } else if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        ("cannot be written", "choose a folder that you can write to with `--data` or `--archive`")
    } else {
        return None;
    };
    Some(Diagnosis::failure("disk", format!("`{}` {found}", there.display()), remedy))
}

fn of_disk(folder: &Path) -> Diagnosis {
    let Some(free) = free_space(folder) else {
        return Diagnosis::none("disk", "the system does not report free space");
    };
    let found = format!("{} free for `{}`", bytes(free), folder.display());
    match free {
        ..NO_SPACE => Diagnosis::failure("disk", found, "free some space, or choose another disk with `--data`"),
        NO_SPACE..LITTLE_SPACE => {
            Diagnosis::warning("disk", found, "free some space, or choose another disk with `--data`")
        }
        _ => Diagnosis::ok("disk", found),
    }
}

/// The archives of all services.
fn of_archives(options: &DoctorOptions) -> Vec<Diagnosis> {
    let (root, now) = (&options.archive, options.clock.now());
    match services(root) {
        Err(error) if error.kind() != ErrorKind::NotFound => vec![Diagnosis::of_error("archive", &error)],
        Err(_) => vec![Diagnosis::none("archive", format!("none in `{}` yet", root.display()))],
        Ok(names) => names.iter().map(|name| of_archive(&root.join(name), now)).collect(),
    }
}

/// The archive of the definition's service, and its history.
fn of_history(plan: &Plan, options: &DoctorOptions, in_store: Option<&VersionRecord>) -> Vec<Diagnosis> {
    let (root, now) = (&options.archive, options.clock.now());
    let archive = match archive::of_service(root, &plan.service.name) {
        Ok(archive) => archive,
        Err(error) => return vec![Diagnosis::of_error("archive", &error)],
    };
    let expected = ExpectedHistory {
        plan,
        data: &options.data,
        archive: &archive,
        known_runs: &options.known_runs,
        in_store,
        when_lost: WhenLost::Fail,
    };
    let history = match continuity::check(expected) {
        Ok(Continuity { notes, .. }) => {
            let note = notes.into_iter().next();
            Diagnosis::ok("history", note.unwrap_or_else(|| format!("of service {}", plan.service)))
        }
        Err(error) => Diagnosis::of_error("history", &error),
    };
    vec![of_archive(&archive, now), history]
}

fn of_archive(path: &Path, now: DateTime<Utc>) -> Diagnosis {
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
        return Diagnosis::failure(
            "archive",
            found,
            "restore it from a backup; `bellwether verify` lists all damaged files",
        );
    }
    let missing: Vec<&str> = archive.missing().collect();
    if let Some(first) = missing.first() {
        let runs = count_of(missing.len() as u64, "run", "runs");
        let found = format!("`{}` lacks {runs} that others are based on, such as `{first}`", path.display());
        return Diagnosis::failure(
            "archive",
            found,
            "restore them from a backup, or fetch them with `bellwether store pull`",
        );
    }
    let interrupted = unfinished_runs(path).unwrap_or_default();
    let is_ours = |run: &&UnfinishedRun| file::is_writable(&path.join(FOLDER_OF_UNFINISHED).join(&run.run));
    let to_resume = interrupted.iter().filter(is_ours).count();
    let of_others = interrupted.len() - to_resume;
    let shown = |count: usize, what: &str| match count {
        0 => String::new(),
        _ => format!(", {} {what}", count_of(count as u64, "interrupted run", "interrupted runs")),
    };
    let interrupted = shown(to_resume, "to resume") + &shown(of_others, "of another user");
    let runs = count_of(archive.runs().len() as u64, "run", "runs");
    Diagnosis::ok("archive", format!("{runs}, every file in place{interrupted}"))
}
