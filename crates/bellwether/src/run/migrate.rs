//! Migrates an archive of an older layout: tells the service of each old run, and has the archive rewrite them.
//!
//! A run names the digest of its definition. The text with that digest is that of a definition in `pipelines/`, or of a
//! published version, which keeps the one that it was built with; its `[source]` says which service the run asked. If a
//! definition names the service at these addresses by now, that name is used: it is the one that runs will use. What
//! nothing tells has to be named.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::observer::Control;
use super::stage::Stage;
use crate::archive::{self, DefinitionRecord, KEPT, Legacy, LegacyRun, LegacySeal, MigrateError, open_all, pending};
use crate::definition::{self, DefinitionFile};
use crate::disk::digest;
use crate::disk::file::{self, FileError};
use crate::error::Result;
use crate::export;
use crate::plan::{Plan, ServiceIdentity};

/// What migrating does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrateMode {
    /// It says what it would do.
    List,
    /// It migrates, and keeps the old folders.
    Keep,
    /// It migrates, and removes the old folders.
    Remove,
}

/// The options of migrating an archive.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// The archive.
    pub archive: PathBuf,
    /// The folder of datasets.
    pub data: PathBuf,
    /// The folder of definitions.
    pub definitions: PathBuf,
    /// The service of the runs that nothing else tells.
    pub service: Option<String>,
    /// What to do.
    pub mode: MigrateMode,
}

/// What was migrated, or would be.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Migration {
    /// The services, by name.
    pub services: Vec<MigratedService>,
    /// The old runs that were in the new archive already.
    pub done_before: usize,
    /// The runs whose service nothing tells, with their definitions; only in a list.
    pub unknown: Vec<String>,
    /// Size of the old folders.
    pub bytes: u64,
    /// Where the old folders are kept; none if there are none, or they were removed.
    #[serde(serialize_with = "file::as_text_if_any")]
    #[schemars(with = "Option<String>")]
    pub kept: Option<PathBuf>,
    /// Whether old folders were removed, or would be.
    pub removed: bool,
}

/// What was migrated of a service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MigratedService {
    /// The service.
    #[serde(serialize_with = "as_name")]
    #[schemars(with = "String")]
    pub service: ServiceIdentity,
    /// The number of its runs.
    pub runs: usize,
}

fn as_name<S: Serializer>(service: &ServiceIdentity, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&service.name)
}

/// Migrates an archive of layout 9 to the current layout. If it was interrupted, it continues.
///
/// # Errors
///
/// When nothing tells the service of a run and none is named, when an old file is damaged, or when the archive cannot be
/// written; [`ErrorKind::Interrupted`](crate::error::ErrorKind) when it was cancelled.
pub fn migrate(options: &MigrateOptions, control: &Control) -> Result<Migration> {
    migrate_with(options, &[], control)
}

/// The same, with the seals of folders that are not here; these can only be listed.
pub(super) fn migrate_with(options: &MigrateOptions, elsewhere: &[LegacySeal], control: &Control) -> Result<Migration> {
    /// How often runs may be sealed meanwhile by an older version of the program.
    const MOST_ROUNDS: usize = 4;

    if let Some(name) = options.service.as_ref().filter(|name| !ServiceIdentity::is_name(name)) {
        return Err(MigrateError::Name { name: name.clone() }.into());
    }
    let MigrateOptions { archive, mode, .. } = options;
    let mut migration = Migration::default();
    for _ in 0..MOST_ROUNDS {
        let legacy = Legacy::open(archive, elsewhere, &control.stop)?;
        let services = services(&legacy, options)?;
        migration.bytes = legacy.bytes();
        if *mode == MigrateMode::List {
            return list(&legacy, &services, options, migration);
        }
        let services = services_of_runs(&legacy, services, options)?;
        let pending = pending(&legacy, &services)?;
        if pending.is_empty() && legacy.unmoved_count() == 0 {
            break;
        }
        let stage = Stage::of_files(control, "migrate", pending.len());
        let migrated = archive::migrate(&legacy, &services, |seal| stage.count(0, seal.bytes()))?;
        stage.finish();
        if migration.services.is_empty() {
            migration.done_before = legacy.runs().len() - migrated.len();
        }
        migration.add(&services, &migrated);
    }
    if archive::has_kept(archive) {
        migration.removed = *mode == MigrateMode::Remove;
        match mode {
            MigrateMode::Remove => remove(options, control)?,
            _ => migration.kept = Some(archive.join(KEPT)),
        }
    }
    Ok(migration)
}

impl Migration {
    fn add(&mut self, services: &[ServiceIdentity], pending: &BTreeSet<usize>) {
        let mut counts: BTreeMap<&str, (usize, &ServiceIdentity)> = BTreeMap::new();
        for &run in pending {
            counts.entry(&services[run].name).or_insert((0, &services[run])).0 += 1;
        }
        self.services
            .extend(counts.into_values().map(|(runs, service)| MigratedService { service: service.clone(), runs }));
    }
}

/// What migrating would do.
fn list(
    legacy: &Legacy,
    services: &[Option<ServiceIdentity>],
    options: &MigrateOptions,
    mut migration: Migration,
) -> Result<Migration> {
    let is_unknown = |run: &(&LegacyRun, &Option<ServiceIdentity>)| run.1.is_none();
    let unknown = legacy.runs().iter().zip(services).filter(is_unknown);
    migration.unknown = unknown.map(|(run, _)| describe(run)).collect();
    // Of no service; the name is that of no folder.
    let nobody = ServiceIdentity { name: ".unknown".to_owned(), base_url: None, sentiment_base_url: None };
    let services: Vec<ServiceIdentity> =
        services.iter().map(|service| service.clone().unwrap_or_else(|| nobody.clone())).collect();
    let mut pending = pending(legacy, &services)?;
    let runs = legacy.runs().len();
    migration.done_before = runs - pending.len();
    pending.retain(|run| services[*run] != nobody);
    migration.add(&services, &pending);
    migration.removed = options.mode == MigrateMode::Remove && runs > 0;
    migration.kept = archive::has_kept(&options.archive).then(|| options.archive.join(KEPT));
    Ok(migration)
}

/// Removes the old folders, once everything in the new archive is verified.
fn remove(options: &MigrateOptions, control: &Control) -> Result<()> {
    let archives = open_all(&options.archive)?;
    let files = archives.iter().map(|(_, archive)| archive.file_count()).sum();
    let stage = Stage::of_files(control, "verify", files);
    for (_, archive) in archives {
        let archive = archive.until(&control.stop);
        if let Some(fault) = archive::verify(&archive, |file| stage.count(0, file.bytes))?.faults.into_iter().next() {
            return Err(FileError::damage(archive.path(), fault));
        }
    }
    stage.finish();
    archive::remove_kept(&options.archive, &control.stop)
}

/// The service of each old run, as far as something tells it: itself, if it was migrated before, its definition, or other
/// runs of that.
fn services(legacy: &Legacy, options: &MigrateOptions) -> Result<Vec<Option<ServiceIdentity>>> {
    let migrated = archive::services_of_migrated(legacy)?;
    let known = KnownDefinitions::of(options)?;
    let named = options.service.clone().map(|name| ServiceIdentity { name, base_url: None, sentiment_base_url: None });
    let runs = || legacy.runs().iter().enumerate();
    let of_definitions: HashMap<&str, &ServiceIdentity> =
        runs().filter_map(|(index, run)| Some((run.definition()?.digest.as_str(), migrated.get(&index)?))).collect();
    let service = |(index, run): (usize, &LegacyRun)| {
        let before = migrated.get(&index).cloned();
        let of_definition = || of_definitions.get(run.definition()?.digest.as_str()).copied().cloned();
        before.or_else(|| known.service(run.definition()?)).or_else(of_definition).or_else(|| named.clone())
    };
    Ok(runs().map(service).collect())
}

/// The services of all runs.
fn services_of_runs(
    legacy: &Legacy,
    services: Vec<Option<ServiceIdentity>>,
    options: &MigrateOptions,
) -> Result<Vec<ServiceIdentity>> {
    let unknown: Vec<&LegacyRun> =
        legacy.runs().iter().zip(&services).filter(|(_, service)| service.is_none()).map(|(run, _)| run).collect();
    if unknown.is_empty() {
        return Ok(services.into_iter().flatten().collect());
    }
    let names: BTreeSet<&str> = unknown.iter().filter_map(|run| Some(run.definition()?.name.as_str())).collect();
    let current = KnownDefinitions::of(options)?.current;
    let now: BTreeSet<&str> = names.iter().filter_map(|name| Some(current.get(*name)?.service.name.as_str())).collect();
    let only = now.iter().next().filter(|_| now.len() == 1);
    Err(MigrateError::Services {
        runs: unknown.into_iter().map(describe).collect(),
        definitions: names.iter().map(|name| (*name).to_owned()).collect(),
        now: only.map(|name| (*name).to_owned()),
    }
    .into())
}

/// A run with its definition.
fn describe(run: &LegacyRun) -> String {
    match run.definition() {
        Some(definition) => format!("`{}` of `{}`", run.name(), definition.name),
        None => format!("`{}`", run.name()),
    }
}

/// The definitions in the project, and those that versions were built with.
struct KnownDefinitions {
    /// The texts, by their digest, each with a name.
    texts: HashMap<String, (String, String)>,
    /// The plans of the definitions in the project, by name.
    current: BTreeMap<String, Plan>,
}

impl KnownDefinitions {
    fn of(options: &MigrateOptions) -> Result<Self> {
        let mut texts = HashMap::new();
        let mut current = BTreeMap::new();
        for name in definition::names(&options.definitions)? {
            // A definition that cannot be used tells nothing.
            let Ok(found) = definition::find(&name, &options.definitions) else { continue };
            texts.insert(digest::of(found.text.as_bytes()), (name.clone(), found.text.clone()));
            if let Ok(plan) = Plan::of(found) {
                current.insert(name, plan);
            }
        }
        for (name, text) in export::definitions(&options.data.join("datasets"))? {
            texts.entry(digest::of(text.as_bytes())).or_insert((name, text));
        }
        Ok(Self { texts, current })
    }

    /// The service of a definition, if its text is known.
    fn service(&self, definition: &DefinitionRecord) -> Option<ServiceIdentity> {
        let (_, text) = self.texts.get(&definition.digest)?;
        let found = DefinitionFile::new(format!("{}.toml", definition.name).into(), text.clone());
        let plan = found.and_then(Plan::of).ok()?;
        Some(self.named_since(&definition.name, &plan).unwrap_or(plan.service))
    }

    /// The name that a definition gives the service of a plan, which does not name it: the definition of the same name,
    /// or all others that name it.
    fn named_since(&self, name: &str, plan: &Plan) -> Option<ServiceIdentity> {
        let is_same = |other: &&Plan| {
            let (one, other) = (&plan.service, &other.service);
            let is_same_news = one.sentiment_base_url == other.sentiment_base_url
                || one.sentiment_base_url.is_none()
                || other.sentiment_base_url.is_none();
            one.base_url == other.base_url && is_same_news
        };
        let names_it = |other: &&Plan| !plan.names_service && other.names_service && is_same(other);
        let own = self.current.get(name).filter(names_it);
        let others: BTreeSet<&str> =
            self.current.values().filter(names_it).map(|plan| plan.service.name.as_str()).collect();
        let only = others.iter().next().copied().filter(|_| others.len() == 1);
        let name = own.map(|own| own.service.name.as_str()).or(only)?;
        Some(ServiceIdentity { name: name.to_owned(), ..plan.service.clone() })
    }
}
