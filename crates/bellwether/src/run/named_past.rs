//! What "as of" names: an instant, a version to build again, or a run of the archive and all that it knew.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::knowing_run::{StateOfRun, state_of_run};
use crate::definition::DefinitionFile;
use crate::disk::names::is_unique;
use crate::error::{Error, Result};
use crate::export::{ListedVersion, VersionKind, published_versions};
use crate::plan::{Claims, PinnedVersion, Plan};
use crate::time;

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
        let versions = published_versions(&self.data.join("datasets"))?;
        let own = |version: &&ListedVersion| version.dataset == plan.name && version.kind != VersionKind::AdHoc;
        let versions: Vec<&ListedVersion> = versions.iter().filter(own).collect();
        let is_it = |version: &&&ListedVersion| version.version == *name;
        let Some(version) = versions.iter().find(is_it) else {
            if let Some(state) = state_of_run(self.archive, &plan, name)? {
                return self.of_run(plan, state);
            }
            let what = format!("no version `{name}` of `{}`, and no run of this name", plan.name);
            let known: Vec<&str> = versions.iter().rev().map(|version| version.version.as_str()).collect();
            let hint = match known.get(..known.len().min(8)) {
                Some([]) | None => format!("publish one first: `bellwether run {}`", plan.name),
                Some(some) => format!("the versions are {}", some.join(", ")),
            };
            return Err(Error::usage(what, hint));
        };
        let ListedVersion { definition, as_of, runs, .. } = (**version).clone();
        let version = Some(PinnedVersion { name: name.clone(), runs });
        Ok(Past { plan: as_it_was(plan, definition)?, as_of: Some(as_of), version, note: None })
    }

    /// The plan as it was in a run, and the state of the archive that the run stands for.
    fn of_run(&self, plan: Plan, state: StateOfRun) -> Result<Past> {
        let StateOfRun { as_of, version, definition, is_forgotten } = state;
        let (plan, note) = match definition {
            Some(definition) => (as_it_was(plan, definition)?, None),
            // That it is forgotten is said where it would be read.
            None if is_forgotten => (plan, None),
            None => {
                let note = format!("run `{}` has no text of `{}`: its file counts as it is", version.name, plan.name);
                (plan, Some(note))
            }
        };
        if plan.claims == Claims::Included || self.claims == Claims::Included {
            return Err(Error::usage("a run knows no claims", "name an instant, or the version to rebuild"));
        }
        Ok(Past { plan, as_of: Some(as_of), version: Some(version), note })
    }
}

/// The plan of a definition as it was, in the place where it is.
fn as_it_was(plan: Plan, definition: String) -> Result<Plan> {
    // The text may be a stranger's, where the definition is not: it does not choose the store.
    let (author, store) = (plan.author, plan.store);
    let found = DefinitionFile::new(plan.path, definition)?.below(&plan.root);
    Ok(Plan { author, store, ..Plan::of(found)? })
}
