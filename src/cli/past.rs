//! What `--as-of` names: an instant, a version to build again, or a run of the archive and all that it knew.

use bellwether::definition::DefinitionFile;
use bellwether::export::{ListedVersion, VersionKind, published};
use bellwether::plan::{Claims, PinnedVersion, Plan};
use bellwether::project::Project;
use bellwether::run::{StateOfRun, state_of_run};
use chrono::{DateTime, Utc};

use super::folders::Folders;
use super::note;
use super::outcome::Result;
use super::typed::{AsOf, plan_of, usage};

/// A definition, and what `--as-of` says of it.
pub(super) struct PastQuery<'a> {
    pub(super) definition: Option<&'a str>,
    pub(super) as_of: Option<&'a AsOf>,
    /// Whether claims are to count that the definition leaves out.
    pub(super) claims: Claims,
}

/// The plan of a definition, and the state of the archive that is meant. A version or a run has its own definition.
pub(super) struct Past {
    pub(super) plan: Plan,
    /// None for the latest state.
    pub(super) as_of: Option<DateTime<Utc>>,
    /// The version to build again.
    pub(super) version: Option<PinnedVersion>,
}

impl PastQuery<'_> {
    /// Finds what is meant.
    pub(super) fn find(&self, folders: &Folders, project: &Project) -> Result<Past> {
        let plan = plan_of(self.definition, project)?;
        let name = match self.as_of {
            Some(AsOf::Version(name)) => name,
            Some(AsOf::Instant(as_of)) => return Ok(Past { plan, as_of: Some(*as_of), version: None }),
            None => return Ok(Past { plan, as_of: None, version: None }),
        };
        let versions = published(&folders.data(project).join("datasets"))?;
        let own = |version: &&ListedVersion| version.dataset == plan.name && version.kind != VersionKind::AdHoc;
        let versions: Vec<&ListedVersion> = versions.iter().filter(own).collect();
        let is_it = |version: &&&ListedVersion| version.version == *name;
        let Some(version) = versions.iter().find(is_it) else {
            if let Some(state) = state_of_run(&folders.archive(project), &plan, name)? {
                return self.of_run(plan, state);
            }
            let what = format!("no version `{name}` of `{}`, and no run of this name", plan.name);
            let known: Vec<&str> = versions.iter().rev().map(|version| version.version.as_str()).collect();
            let hint = match known.get(..known.len().min(8)) {
                Some([]) | None => format!("publish one first: `bellwether run {}`", plan.name),
                Some(some) => format!("the versions are {}", some.join(", ")),
            };
            return Err(usage(&what, &hint));
        };
        let ListedVersion { definition, as_of, runs, .. } = (**version).clone();
        let version = Some(PinnedVersion { name: name.clone(), runs });
        Ok(Past { plan: as_it_was(plan, definition)?, as_of: Some(as_of), version })
    }

    /// The plan as it was in a run, and the state of the archive that the run stands for.
    fn of_run(&self, plan: Plan, state: StateOfRun) -> Result<Past> {
        let StateOfRun { as_of, version, definition } = state;
        let plan = match definition {
            Some(definition) => as_it_was(plan, definition)?,
            None => {
                note(&format!("note: run `{}` has no text of `{}`: its file counts as it is", version.name, plan.name));
                plan
            }
        };
        if plan.claims == Claims::Included || self.claims == Claims::Included {
            return Err(usage("a run knows no claims", "name an instant, or the version to rebuild"));
        }
        Ok(Past { plan, as_of: Some(as_of), version: Some(version) })
    }
}

/// The plan of a definition as it was, in the place where it is.
fn as_it_was(plan: Plan, definition: String) -> Result<Plan> {
    // The text may be a stranger's, where the definition is not: it does not choose the store.
    let (author, store) = (plan.author, plan.store);
    let found = DefinitionFile::new(plan.path, definition)?.below(&plan.root);
    Ok(Plan { author, store, ..Plan::of(found)? })
}
