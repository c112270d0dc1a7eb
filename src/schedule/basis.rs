//! What a verdict is based on: the files of state of a definition, each read once.
//!
//! Absent, unreadable, damaged and gone are four things. A file that was never written is no fault. One that cannot be read,
//! says nothing, or is missing although another file proves that it was there, is a fault, a sentence each: what it
//! would have said is unknown, and data that may be stale or failing is not called fresh.

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

use super::journal::{self, Journal};
use super::memory::{Memory, WRONG_CLOCK};
use super::record::{Fault, Outcome};
use super::status::{Folders, to_minute};

/// How long a run that has ended may take to write its line.
const WRITE_TIME: Duration = Duration::from_millis(200);

/// How far the clocks of machines that share a project may be apart, as for a run.
const SKEW: TimeDelta = TimeDelta::seconds(10);

/// The archives of a project, by service: those that are there, or why the folder of archives cannot be read. An archive that
/// cannot be opened has its own reason.
pub(super) type Archives = Result<BTreeMap<String, Result<OpenArchive>>>;

/// An archive of a service.
pub(super) struct OpenArchive {
    pub(super) archive: Archive,
    /// The file that is missing or has another size, if any.
    misfit: Option<PathBuf>,
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

/// Opens the archives of a project.
pub(super) fn open_archives(root: &Path) -> Archives {
    let names = match services(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    let mut archives = BTreeMap::new();
    for service in names {
        let opened = Archive::open(&root.join(&service));
        let opened = opened.map(|archive| OpenArchive { misfit: archive.first_misfit(), archive });
        archives.insert(service, opened);
    }
    Ok(archives)
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
        if let Some(plan) = plan {
            basis.check_archive(folders, archives, plan);
        }
        basis.check_clock(archives, plan, now);
        basis
    }

    /// The latest version.
    pub(super) fn latest(&self) -> Option<&ListedVersion> {
        self.versions.iter().find(|version| version.kind == VersionKind::Latest)
    }

    fn fault(&mut self, error: &Error) {
        self.faults.push(Fault::new(error).reason());
    }

    fn read_journal(&mut self, folders: &Folders, name: &str) {
        let lock = match state_of(&folders.archive, name) {
            Ok(lock) => lock,
            Err(error) => {
                self.fault(&error);
                LockState::New
            }
        };
        let is_complete = |journal: &Journal| is_complete(&lock, journal, &folders.data);
        let journal = match journal::read(&folders.data, name) {
            // A run that has just ended is about to write its line.
            Ok(journal) if !is_complete(&journal) => {
                thread::sleep(WRITE_TIME);
                journal::read(&folders.data, name)
            }
            read => read,
        };
        let journal = match journal {
            Ok(journal) => journal,
            Err(error) => return self.fault(&error),
        };
        self.faults.extend(journal.fault.clone());
        self.faults.extend(journal.damage.clone());
        if !is_complete(&journal) && journal.fault.is_none() {
            let path = journal::path(&folders.data, name);
            self.faults.push(match journal.exists {
                true => {
                    format!("the last run has no line in `{}`: it was killed, or could not write it", path.display())
                }
                false => format!("`{}` is gone, or the only run was killed", path.display()),
            });
        }
        self.journal = Some(journal);
        if let LockState::Held(holder) = lock {
            self.running = Some(holder);
        }
    }

    fn read_memory(&mut self, folders: &Folders, name: &str, plan: Option<&Plan>) {
        match Memory::read(&folders.data, name) {
            Ok(memory) => self.memory = memory,
            Err(error) => return self.fault(&error),
        }
        let was_scheduled = self.journal.iter().flat_map(|journal| &journal.runs).any(|run| run.due.is_some());
        if self.memory.is_none() && was_scheduled && plan.is_some_and(|plan| plan.schedule.is_some()) {
            let path = Memory::path(&folders.data, name);
            self.faults.push(format!("`{}` is gone: which times are done is unknown", path.display()));
        }
    }

    fn read_versions(&mut self, dataset: &Path, name: &str) {
        match export::published_of(dataset) {
            Ok(versions) => self.versions = versions,
            Err(error) => return self.fault(&error),
        }
        self.versions.retain(|version| version.dataset == name);
        let link = dataset.join("latest");
        let success =
            self.journal.iter().flat_map(|journal| &journal.runs).rfind(|run| run.outcome == Outcome::Success);
        let Some(latest) = self.latest() else {
            let has_version = self.versions.iter().any(|version| version.kind != VersionKind::AdHoc);
            if link.symlink_metadata().is_ok() {
                self.faults.push(format!("`{}` does not lead to a version that can be read", link.display()));
            } else if has_version || success.is_some() {
                self.faults.push(format!("`{}` is gone, which was published", link.display()));
            }
            return;
        };
        let mut faults = Vec::new();
        if let Some(success) = success.filter(|success| latest.built_at < success.started_at) {
            let published = to_minute(success.ended_at);
            faults.push(format!("the version that was published at {published} is gone: `latest` is older"));
        }
        match export::first_misfit(&latest.path) {
            Ok(None) => {}
            Ok(Some(path)) => faults.push(format!("`{}` is missing or has another size", path.display())),
            Err(error) => faults.push(Fault::new(&error).reason()),
        }
        let damaged = |reason| FileError::damage(&latest.path, reason);
        match export::facts(&latest.path).and_then(|facts| Facts::from_json(&facts).map_err(damaged)) {
            Ok(facts) => self.facts = Some(facts),
            Err(error) => faults.push(Fault::new(&error).reason()),
        }
        self.faults.append(&mut faults);
    }

    /// Checks that the archive is there with everything that versions and the journal name.
    fn check_archive(&mut self, folders: &Folders, archives: &Archives, plan: &Plan) {
        let service = &plan.service.name;
        let opened = match archives.as_ref().map(|archives| archives.get(service)) {
            Ok(None) => None,
            Ok(Some(Ok(opened))) => Some(opened),
            Ok(Some(Err(error))) | Err(error) => return self.fault(error),
        };
        if let Some(misfit) = opened.and_then(|opened| opened.misfit.as_ref()) {
            self.faults.push(format!("`{}` is missing or has another size", misfit.display()));
        }
        let known_runs = self.journal.as_ref().map_or_else(Vec::new, |journal| journal::runs_in(journal, plan));
        self.taken_back = opened.and_then(|opened| {
            let latest = export::latest(&folders.data.join("datasets"), Some(&plan.name)).ok()??;
            let mut forgotten = opened.archive.forgotten_runs().map(|forgotten| &forgotten.run);
            forgotten.find(|run| latest.runs.contains(run)).cloned()
        });
        let path = of_service(&folders.archive, service);
        let archive = opened.map(|opened| &opened.archive);
        let checked = path.and_then(|path| check_history(plan, &folders.data, &path, archive, &known_runs));
        if let Err(error) = checked {
            self.fault(&error);
        }
    }

    /// Checks that the clock is not behind what it dated itself.
    fn check_clock(&mut self, archives: &Archives, plan: Option<&Plan>, now: DateTime<Utc>) {
        let opened = plan.and_then(|plan| archives.as_ref().ok()?.get(&plan.service.name)?.as_ref().ok());
        let archive = opened.map(|opened| &opened.archive);
        let sealed = archive.into_iter().flat_map(Archive::runs).map(|run| run.seal().sealed_at);
        // What a wrong clock dated does not count once it is taken back, or will be mended.
        let forgotten: BTreeSet<&str> =
            archive.into_iter().flat_map(Archive::forgotten_runs).map(|run| run.run.as_str()).collect();
        let counts = |run: &str| !forgotten.contains(run);
        let is_counted = |version: &&ListedVersion| {
            forgotten.is_empty()
                || version_of(&version.path, Some(&version.path.to_string_lossy()))
                    .map_or(true, |(_, recorded)| recorded.runs.iter().all(|run| counts(run)))
        };
        // Lines are in the order in which they were written: a later one with an earlier time shows that the clock was wrong then.
        let last = self.journal.as_ref().and_then(|journal| journal.runs.last());
        let ended = last.filter(|record| record.run.as_deref().is_none_or(counts)).map(|record| record.ended_at);
        let built = self.versions.iter().filter(is_counted).map(|version| version.built_at);
        let done = self.memory.iter().map(|memory| memory.done).filter(|done| *done - now <= WRONG_CLOCK);
        if let Some(newest) = sealed.chain(ended).chain(built).chain(done).max().filter(|newest| *newest - now > SKEW) {
            let (now, newest) = (to_minute(now), to_minute(newest));
            self.faults.push(format!("the clock is wrong: it says {now}, and the newest record is of {newest}"));
        }
    }
}
