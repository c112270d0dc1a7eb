//! The state of an archive that one run stands for: what it knew when it was sealed, itself included.
//!
//! A seal names the whole past of its run. So the name of a run is enough to have a dataset again that was built from
//! just that, on any machine with the archive, whatever came in later or elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::archive::{Archive, View, of_service};
use crate::disk::digest;
use crate::disk::file;
use crate::error::Result;
use crate::plan::{Claims, PinnedVersion, Plan};

/// The state of an archive that a run stands for.
#[derive(Clone, Debug)]
pub(super) struct StateOfRun {
    /// When the last of its runs was sealed.
    pub(super) as_of: DateTime<Utc>,
    /// Its runs, under the name of the run.
    pub(super) version: PinnedVersion,
    /// The text of the definition as it was in the run, if the run was of it and the archive has it.
    pub(super) definition: Option<String>,
    /// Whether the run is forgotten, so that nothing can be built of it.
    pub(super) is_forgotten: bool,
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
pub(super) fn state_of_run(archive: &Path, plan: &Plan, run: &str) -> Result<Option<StateOfRun>> {
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
