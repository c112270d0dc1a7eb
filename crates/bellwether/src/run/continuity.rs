//! Does a run go on with the history that it belongs to?
//!
//! An archive is the only copy of what a service said. So a run refuses to start where it would begin another history
//! without a word: because the definition asks another service than before, because the service has another address, or
//! because runs are gone that versions, the journal or other runs name (an archive on a volume that is not mounted looks
//! like a new one).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::start::{Options, WhenLost};
use crate::archive::{Archive, claims_of, lost_runs};
use crate::disk::{digest, file};
use crate::error::{Error, ErrorKind, Result};
use crate::export::{self, VersionRecord};
use crate::plan::{Plan, ServiceIdentity};

/// What a run goes on with.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    /// The runs that are gone and that it goes on without.
    pub(super) lost: Vec<String>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// Checks that a run goes on with the history in the archive of its service, by the versions here and by the record of the
/// latest version in the store.
pub(super) fn check(plan: &Plan, options: &Options, in_store: Option<&VersionRecord>) -> Result<Continuity> {
    let look = || match Archive::open(&options.archive) {
        Ok(archive) => check_opened(plan, options, in_store, Some(&archive)),
        Err(error) if error.kind() == ErrorKind::NotFound => check_opened(plan, options, in_store, None),
        Err(error) => Err(error),
    };
    // A version that another run published after the archive was opened names a run that was sealed since.
    look().or_else(|_| look())
}

/// Checks that a run of a plan would go on with the history in the archive of its service, which is open; `None` if there
/// is no archive.
pub fn check_history(
    plan: &Plan,
    data: &Path,
    path: &Path,
    archive: Option<&Archive>,
    known_runs: &[String],
) -> Result<()> {
    let options = Options { archive: path.to_owned(), known_runs: known_runs.to_vec(), ..Options::new(data) };
    check_opened(plan, &options, None, archive).or_else(|_| check(plan, &options, None)).map(drop)
}

fn check_opened(
    plan: &Plan,
    options: &Options,
    in_store: Option<&VersionRecord>,
    archive: Option<&Archive>,
) -> Result<Continuity> {
    let (path, when_lost, datasets) = (&options.archive, options.when_lost, options.data.join("datasets"));
    let own = export::latest(&datasets, Some(&plan.name)).ok().flatten();
    let latest = own.iter().chain(in_store).max_by_key(|one| one.built_at);
    let before = latest.map(|one| &one.service).filter(|before| before.name != plan.service.name);
    if let (Some(before), WhenLost::Fail) = (before, when_lost) {
        let what =
            format!("`{}` used service {before} until now, and its definition now asks {}", plan.name, plan.service);
        let remedy = format!(
            "to go on with that history, write `name = \"{}\"` in `[source]`; to begin a new one, run it with `--new-archive`",
            before.name
        );
        return Err(other_service(plan, what, remedy));
    }
    let mut notes = Vec::new();
    if let Some(moved) = archive.and_then(|archive| moved_service(plan, archive)) {
        if !plan.names_service {
            let addresses = [&plan.service.base_url, &plan.service.sentiment_base_url];
            let addresses: Vec<&str> = addresses.into_iter().flatten().map(String::as_str).collect();
            let what = format!("service {moved} of `{}` has another address: {}", plan.name, addresses.join(", "));
            let remedy = format!(
                "if it is the same service, write `name = \"{}\"` in `[source]`; if not, give it another name",
                moved.name
            );
            return Err(other_service(plan, what, remedy));
        }
        notes.push(format!("the service is now {}; before, {moved}", plan.service));
    }
    if own.is_none() && in_store.is_none() {
        notes.extend(archive.and_then(|archive| note_on_new_name(plan, archive)));
    }
    // The runs of the service that versions and the journal name, each with what names it.
    let mut lost: BTreeMap<String, String> = BTreeMap::new();
    let others = export::names(&datasets)?.into_iter().filter(|name| *name != plan.name);
    let others = others.filter_map(|name| export::latest(&datasets, Some(&name)).ok().flatten());
    for version in own.into_iter().chain(in_store.cloned()).chain(others) {
        if version.service.name == plan.service.name {
            let by = format!("version `{}/{}` was built from them", version.name, version.version);
            lost.extend(version.runs.into_iter().map(|run| (run, by.clone())));
        }
    }
    for run in &options.known_runs {
        lost.entry(run.clone()).or_insert_with(|| format!("the journal of `{}` names them", plan.name));
    }
    let claims = claims_of(path);
    let claims = if file::is_gone(&claims) { None } else { Some(Archive::open(&claims)?) };
    let mut present: BTreeSet<&str> = archive.into_iter().chain(&claims).flat_map(Archive::known_names).collect();
    present.extend(archive.into_iter().flat_map(Archive::runs).flat_map(|run| &run.seal().lost).map(String::as_str));
    lost.retain(|run, _| !present.contains(run.as_str()));
    for run in archive.into_iter().flat_map(Archive::missing) {
        lost.entry(run.to_owned()).or_insert_with(|| "later runs are based on them".to_owned());
    }
    if let (Some(named_by), WhenLost::Fail) = (lost.values().next(), when_lost) {
        return Err(lost_runs(path, &Vec::from_iter(lost.keys().cloned()), named_by));
    }
    Ok(Continuity { lost: lost.into_keys().collect(), notes })
}

/// The note on a definition that seems to have another name now. Versions and schedules go by name.
fn note_on_new_name(plan: &Plan, archive: &Archive) -> Option<String> {
    let digest = digest::of(plan.text.as_bytes());
    let definitions = || archive.runs().iter().filter_map(|run| run.seal().definition.as_ref());
    if definitions().any(|definition| definition.name == plan.name) {
        return None;
    }
    let is_gone = |name: &str| !plan.path.with_file_name(format!("{name}.toml")).exists();
    let before = definitions().rfind(|definition| definition.digest == digest && is_gone(&definition.name))?;
    let (name, before) = (&plan.name, &before.name);
    Some(format!(
        "`{name}` starts anew: the versions and the schedule's memory of `{before}`, which had the same definition, stay under that \
         name; rename the file back to go on with them"
    ))
}

/// The service as the newest run knew it, if it had another address.
fn moved_service(plan: &Plan, archive: &Archive) -> Option<ServiceIdentity> {
    let last = |address: fn(&ServiceIdentity) -> &Option<String>| {
        archive.runs().iter().rev().find_map(|run| address(&run.seal().service).clone())
    };
    let before = ServiceIdentity {
        name: plan.service.name.clone(),
        base_url: last(|service| &service.base_url),
        sentiment_base_url: last(|service| &service.sentiment_base_url),
    };
    let pairs =
        [(&before.base_url, &plan.service.base_url), (&before.sentiment_base_url, &plan.service.sentiment_base_url)];
    let is_moved = pairs.iter().any(|(before, now)| before.is_some() && now.is_some() && before != now);
    is_moved.then_some(before)
}

/// A definition that asks another service than before, with what to do unless variables of the environment name it.
fn other_service(plan: &Plan, what: String, remedy: String) -> Error {
    let names = plan.address_variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    Error::new(ErrorKind::Definition, what).with_hint(match names.as_str() {
        "" => remedy,
        names => format!(
            "set {names} as before to go on with that history; for another service, use another folder with `--data`, or \
             begin a new history with `--new-archive`"
        ),
    })
}
