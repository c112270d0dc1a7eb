//! What a verdict is based on: the files of state of a definition, each read once.
//!
//! Absent, unreadable, damaged and gone are four things. A file that was never written is no fault. One that cannot be read,
//! says nothing, or is missing although another file proves that it was there, is a fault, a sentence each: what it
//! would have said is unknown, and data that may be stale or failing is not called fresh.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bellwether::archive::{Archive, of_service, services};
use bellwether::disk::file::FileError;
use bellwether::disk::lock::{Holder, LockState, state_of};
use bellwether::error::{Error, ErrorKind, Result};
use bellwether::export::{self, ListedVersion, VersionKind, version_of};
use bellwether::facts::Facts;
use bellwether::plan::Plan;
use bellwether::run::check_history;
use chrono::{DateTime, TimeDelta, Utc};

use super::Folders;
use super::journal::{self, Journal};
use super::memory::{Memory, WRONG_CLOCK};
use super::record::{Fault, Outcome, to_minute};

/// The archives of a project, by service: those that are there, or why the folder of archives cannot be read. An archive that
/// cannot be opened has its own reason.
pub(super) type Archives = Result<BTreeMap<String, Result<OpenArchive>>>;

/// An archive of a service.
pub(super) struct OpenArchive {
    pub(super) archive: Archive,
    /// The file that is missing or has another size, if any.
    misfit: Option<PathBuf>,
}

/// Opens the archives of a project.
pub(super) fn open_archives(root: &Path) -> Archives {
    let names = match services(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    let open = |service: &String| {
        Archive::open(&root.join(service)).map(|archive| OpenArchive { misfit: archive.first_misfit(), archive })
    };
    Ok(names.into_iter().map(|service| (service.clone(), open(&service))).collect())
}

/// What the files of a definition say.
#[derive(Default)]
pub(super) struct Basis {
    /// The journal; none if it cannot be read.
    pub(super) journal: Option<Journal>,
    /// What schedulers remember, of whatever schedule; none if nothing is, or it cannot be read.
    pub(super) memory: Option<Memory>,
    /// The versions and ad hoc builds, oldest first.
    pub(super) versions: Vec<ListedVersion>,
    /// A run that the latest version was built from, and that is forgotten.
    pub(super) taken_back: Option<String>,
    /// The facts about the latest version.
    pub(super) facts: Option<Facts>,
    /// A run that is in progress; the inner one is none if it has not said which it is.
    pub(super) running: Option<Option<Holder>>,
    /// Why some of it is unknown, a sentence each.
    pub(super) faults: Vec<String>,
}

/// Whether the journal of a data folder has a line of the run that last took the lock, unless that is in progress. Each run
/// takes the lock before it begins, and leaves a line when it has ended. Another machine or data folder that shares the
/// archive has a journal of its own.
fn is_complete(lock: &LockState, journal: &Journal, data: &Path) -> bool {
    match lock {
        LockState::New | LockState::Held(_) => true,
        LockState::Free(Some(holder)) if !holder.works_for(data) => true,
        LockState::Free(holder) => {
            let ended = journal.runs.last().map(|last| last.ended_at);
            ended.zip(holder.as_ref()).is_some_and(|(ended, holder)| ended >= holder.since)
        }
    }
}

impl Basis {
    /// Reads the files of a definition. Without a plan, it is broken.
    pub(super) fn read(
        folders: &Folders,
        archives: &Archives,
        name: &str,
        plan: Option<&Plan>,
        now: DateTime<Utc>,
    ) -> Self {
        let mut basis = Self::default();
        basis.read_journal(folders, name);
        basis.read_memory(folders, name, plan);
        basis.read_versions(&folders.data.join("datasets").join(name), name);
        let opened = archives.as_ref().map(|archives| plan.and_then(|plan| archives.get(&plan.service.name)));
        if let Some(plan) = plan
            && let Some(opened) = basis.known(opened)
            && let Some(opened) = basis.known(opened.map(Result::as_ref).transpose())
        {
            basis.check_archive(folders, opened, plan);
        }
        let archive = opened.ok().flatten().and_then(|opened| Some(&opened.as_ref().ok()?.archive));
        basis.check_clock(archive, now);
        basis
    }

    /// What is known; why it is not is a fault.
    fn known<T>(&mut self, read: Result<T, impl Borrow<Error>>) -> Option<T> {
        read.map_err(|error| self.faults.push(Fault::new(error.borrow()).reason())).ok()
    }

    /// The latest version.
    pub(super) fn latest(&self) -> Option<&ListedVersion> {
        self.versions.iter().find(|version| version.kind == VersionKind::Latest)
    }

    fn read_journal(&mut self, folders: &Folders, name: &str) {
        let lock = self.known(state_of(&folders.archive, name)).unwrap_or(LockState::New);
        let is_complete = |journal: &Journal| is_complete(&lock, journal, &folders.data);
        let mut journal = journal::read(&folders.data, name);
        if journal.as_ref().is_ok_and(|journal| !is_complete(journal)) {
            // A run that has just ended is about to write its line.
            thread::sleep(Duration::from_millis(200));
            journal = journal::read(&folders.data, name);
        }
        let Some(journal) = self.known(journal) else { return };
        self.faults.extend(journal.fault.iter().chain(&journal.damage).cloned());
        if !is_complete(&journal) && journal.fault.is_none() {
            let path = journal::path(&folders.data, name);
            let path = path.display();
            self.faults.push(match journal.exists {
                true => format!("the last run has no line in `{path}`: it was killed, or could not write it"),
                false => format!("`{path}` is gone, or the only run was killed"),
            });
        }
        self.journal = Some(journal);
        if let LockState::Held(holder) = lock {
            self.running = Some(holder);
        }
    }

    fn read_memory(&mut self, folders: &Folders, name: &str, plan: Option<&Plan>) {
        let Some(memory) = self.known(Memory::read(&folders.data, name)) else { return };
        self.memory = memory;
        let was_scheduled = self.journal.iter().flat_map(|journal| &journal.runs).any(|run| run.due.is_some());
        if self.memory.is_none() && was_scheduled && plan.is_some_and(|plan| plan.schedule.is_some()) {
            let path = Memory::path(&folders.data, name);
            self.faults.push(format!("`{}` is gone: which times are done is unknown", path.display()));
        }
    }

    fn read_versions(&mut self, dataset: &Path, name: &str) {
        let Some(versions) = self.known(export::published_of(dataset)) else { return };
        self.versions = versions;
        self.versions.retain(|version| version.dataset == name);
        let link = dataset.join("latest");
        let mut runs = self.journal.iter().flat_map(|journal| &journal.runs);
        let success = runs.rfind(|run| run.outcome == Outcome::Success).cloned();
        let Some(latest) = self.latest().cloned() else {
            let has_version = self.versions.iter().any(|version| version.kind != VersionKind::AdHoc);
            if link.symlink_metadata().is_ok() {
                self.faults.push(format!("`{}` does not lead to a version that can be read", link.display()));
            } else if has_version || success.is_some() {
                self.faults.push(format!("`{}` is gone, which was published", link.display()));
            }
            return;
        };
        if let Some(success) = success.filter(|success| latest.built_at < success.started_at) {
            let published = to_minute(success.ended_at);
            self.faults.push(format!("the version that was published at {published} is gone: `latest` is older"));
        }
        let misfit = self.known(export::first_misfit(&latest.path)).flatten();
        self.faults.extend(misfit.as_deref().map(missing));
        let damaged = |reason| FileError::damage(&latest.path, reason);
        let facts = export::facts(&latest.path).and_then(|facts| Facts::from_json(&facts).map_err(damaged));
        self.facts = self.known(facts);
    }

    /// Checks that the archive is there with everything that versions and the journal name.
    fn check_archive(&mut self, folders: &Folders, opened: Option<&OpenArchive>, plan: &Plan) {
        self.faults.extend(opened.and_then(|opened| opened.misfit.as_deref()).map(missing));
        let known_runs = self.journal.as_ref().map_or_else(Vec::new, |journal| journal.sealed(plan));
        let archive = opened.map(|opened| &opened.archive);
        self.taken_back = archive.and_then(|archive| {
            let latest = export::latest(&folders.data.join("datasets"), Some(&plan.name)).ok()??;
            let mut forgotten = archive.forgotten_runs().map(|forgotten| &forgotten.run);
            forgotten.find(|run| latest.runs.contains(run)).cloned()
        });
        let path = of_service(&folders.archive, &plan.service.name);
        self.known(path.and_then(|path| check_history(plan, &folders.data, &path, archive, &known_runs)));
    }

    /// Checks that the clock is not behind what it dated itself.
    fn check_clock(&mut self, archive: Option<&Archive>, now: DateTime<Utc>) {
        let sealed = archive.into_iter().flat_map(Archive::runs).map(|run| run.seal().sealed_at);
        // What a wrong clock dated does not count once it is taken back, or will be mended.
        let forgotten: BTreeSet<&str> =
            archive.into_iter().flat_map(Archive::forgotten_runs).map(|run| run.run.as_str()).collect();
        let is_counted = |version: &&ListedVersion| {
            forgotten.is_empty()
                || version_of(&version.path, Some(&version.path.to_string_lossy()))
                    .map_or(true, |(_, recorded)| !recorded.runs.iter().any(|run| forgotten.contains(run.as_str())))
        };
        // Lines are in the order in which they were written: a later one with an earlier time shows that the clock was wrong then.
        let last = self.journal.as_ref().and_then(|journal| journal.runs.last());
        let last = last.filter(|record| !record.run.as_deref().is_some_and(|run| forgotten.contains(run)));
        let built = self.versions.iter().filter(is_counted).map(|version| version.built_at);
        let done = self.memory.iter().map(|memory| memory.done).filter(|done| *done - now <= WRONG_CLOCK);
        let newest = sealed.chain(last.map(|record| record.ended_at)).chain(built).chain(done).max();
        // The clocks of machines that share a project may be ten seconds apart, as for a run.
        if let Some(newest) = newest.filter(|newest| *newest - now > TimeDelta::seconds(10)) {
            let (now, newest) = (to_minute(now), to_minute(newest));
            self.faults.push(format!("the clock is wrong: it says {now}, and the newest record is of {newest}"));
        }
    }
}

fn missing(path: &Path) -> String {
    format!("`{}` is missing or has another size", path.display())
}
