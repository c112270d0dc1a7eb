//! What "as of" names: an instant, a version to build again, or a run of the archive and all that it knew.
//!
//! A seal names the whole past of its run. So the name of a run is enough to have a dataset again that was built from
//! just that, on any machine with the archive, whatever came in later or elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::archive::{Archive, View, of_service};
use crate::definition::DefinitionFile;
use crate::disk::digest;
use crate::disk::file;
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

/// The state of an archive that a run stands for.
#[derive(Clone, Debug)]
struct StateOfRun {
    /// When the last of its runs was sealed.
    as_of: DateTime<Utc>,
    /// Its runs, under the name of the run.
    version: PinnedVersion,
    /// The text of the definition as it was in the run, if the run was of it and the archive has it.
    definition: Option<String>,
    /// Whether the run is forgotten, so that nothing can be built of it.
    is_forgotten: bool,
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

/// The state of an archive that a run of a plan's service stands for; none if the archive has no such run.
fn state_of_run(archive: &Path, plan: &Plan, run: &str) -> Result<Option<StateOfRun>> {
    let folder = of_service(archive, &plan.service.name)?;
    if file::is_gone(&folder) {
        return Ok(None);
    }
    let archive = Archive::open(&folder)?;
    let forgotten =
        archive.forgotten_runs().find(|forgotten| forgotten.run == run).and_then(|forgotten| forgotten.sealed_at);
    if let Some(as_of) = forgotten {
        // Whoever builds it is told so.
        let version = PinnedVersion { name: run.to_owned(), runs: vec![run.to_owned()] };
        return Ok(Some(StateOfRun { as_of, version, definition: None, is_forgotten: true }));
    }
    let Some(known) = archive.known_to(run) else { return Ok(None) };
    let as_of = known.iter().map(|seal| seal.sealed_at).max().expect("a run knows itself");
    let own = known.iter().find(|seal| seal.run == run).and_then(|seal| seal.definition.as_ref());
    let definition = own.filter(|definition| definition.name == plan.name);
    let definition = definition.and_then(|definition| archive.definition_text(&definition.digest)).map(str::to_owned);
    let runs = known.iter().map(|seal| seal.run.clone()).collect();
    Ok(Some(StateOfRun {
        as_of,
        version: PinnedVersion { name: run.to_owned(), runs },
        definition,
        is_forgotten: false,
    }))
}
