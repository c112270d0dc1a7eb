//! This machine: the disks, the lock of the definition, and the archive with its history.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use rustix::fs::{Access, access};

use super::{Diagnosis, DoctorOptions};
use crate::archive::{
    self, Archive, FOLDER_OF_UNFINISHED, SEALING_LOCK, SKEW, UnfinishedRun, services, unfinished_runs,
};
use crate::disk::file;
use crate::disk::footprint::{free_space, nearest};
use crate::disk::links;
use crate::disk::lock::{self, LockState, state_of};
use crate::disk::names::JOURNAL;
use crate::error::ErrorKind;
use crate::export::VersionRecord;
use crate::plan::Plan;
use crate::run::as_of::newest;
use crate::run::continuity::{self, Continuity, ExpectedHistory};
use crate::run::options::WhenLost;
use crate::text::human::{bytes, count_of};

/// With less space than this there is a warning; a run of all sectors takes about as much.
const LITTLE_SPACE: u64 = 1_000_000_000;

/// With less space than this a run would fail.
const NO_SPACE: u64 = 50_000_000;

/// What every run needs.
pub(super) fn of_machine(options: &DoctorOptions) -> Vec<Diagnosis> {
    let mut found = of_disks(options, &[options.data.clone(), options.archive.clone()]);
    found.extend(of_archives(options));
    found
}

/// What a run of a plan needs.
pub(super) fn of_plan(plan: &Plan, options: &DoctorOptions, in_store: Option<&VersionRecord>) -> Vec<Diagnosis> {
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
