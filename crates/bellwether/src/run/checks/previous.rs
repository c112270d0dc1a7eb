//! The version that a definition published before.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::NaiveDate;

use crate::archive::Archive;
use crate::definition::DefinitionFile;
use crate::export::{self, VersionRecord};
use crate::plan::Plan;

/// The latest version of a definition, here or in its store.
#[derive(Clone, Debug)]
pub(crate) struct PreviousVersion {
    pub(in crate::run) recorded: VersionRecord,
    /// What its definition meant; none if this version of the program does not accept it.
    pub(in crate::run) plan: Option<Plan>,
    /// Its newest date; none if its facts cannot be read, or are on another machine.
    pub(super) newest: Option<NaiveDate>,
}

/// Where the versions of definitions are.
#[derive(Clone, Copy, Default)]
pub(in crate::run) struct PreviousVersions<'a> {
    /// The folder of published datasets; none if nothing is published.
    pub(in crate::run) datasets: Option<&'a Path>,
    /// The record of the latest version in the store.
    pub(in crate::run) in_store: Option<&'a VersionRecord>,
}

impl PreviousVersions<'_> {
    /// The latest version of a definition that was built from none of the runs that are forgotten in an archive, if there
    /// is one, and notes for the user.
    pub(in crate::run) fn find(self, name: &str, archive: &Archive) -> (Option<PreviousVersion>, Vec<String>) {
        let Some(datasets) = self.datasets else { return (None, Vec::new()) };
        let forgotten: BTreeSet<&str> = archive.forgotten_runs().map(|run| run.run.as_str()).collect();
        let counts = |one: &&VersionRecord| !one.runs.iter().any(|run| forgotten.contains(run.as_str()));
        let found = export::latest(datasets, Some(name)).and_then(|here| {
            let all: Vec<&VersionRecord> = here.iter().chain(self.in_store).collect();
            let newest = all.iter().copied().filter(counts).max_by_key(|one| one.built_at).cloned();
            if newest.is_some() || all.is_empty() {
                return Ok(newest);
            }
            let older = VersionRecord::of_dataset(datasets, name)?.into_iter().map(|(_, whole)| whole);
            Ok(older.filter(|one| counts(&one)).max_by_key(|one| one.built_at))
        });
        match found {
            Ok(newest) => (newest.map(|recorded| PreviousVersion::of(datasets, &recorded)), Vec::new()),
            Err(error) => (None, vec![format!("nothing was compared with the previous version: {error}")]),
        }
    }
}

impl PreviousVersion {
    fn of(datasets: &Path, recorded: &VersionRecord) -> Self {
        let file = DefinitionFile::new(format!("{}.toml", recorded.name).into(), recorded.definition.clone());
        let facts = export::facts(&datasets.join(&recorded.name).join(&recorded.version)).ok();
        let newest = facts.and_then(|facts| export::dates_of(&facts)).map(|(_, last)| last);
        Self { recorded: recorded.clone(), plan: file.and_then(Plan::of).ok(), newest }
    }
}
