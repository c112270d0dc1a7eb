//! Wires the stages: fetch, decode, archive, dataset, export. They meet here and nowhere else.
//!
//! What a run writes does not depend on the order of answers: answers are kept by request and sorted when the run is
//! sealed. A run that is stopped or fails leaves published versions unchanged and keeps its answers; the next run of
//! the same definition resumes from them.

mod as_of;
mod audits;
mod basis;
mod build;
mod builder;
mod checked;
mod checks;
#[cfg(feature = "spark")]
mod cluster;
mod continuity;
mod doctor;
mod forget;
mod gather;
mod missing;
mod observer;
mod offers;
mod prune;
mod report;
mod scope;
mod start;
pub(crate) mod store;
mod summary;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

pub use audits::{
    AuditOptions, PriceInput, SkillOptions, audit_leak, audit_quality, audit_revisions, audit_skill, audit_sources,
    audit_table,
};
pub use build::{BuildOptions, WhenUnchanged, build, save, stream};
pub use checked::{CheckedDefinition, ColumnDocument, PlanDocument};
#[cfg(feature = "spark")]
pub use cluster::{ClusterOptions, build_on_cluster};
pub use continuity::check_history;
pub use doctor::{Diagnosis, Health, doctor};
pub use forget::{Forgot, ForgotRun, forget};
pub use gather::SignalSource;
pub use observer::{CancellationToken, Control, Event, Observer, Progress, Timing, Waiting};
pub use offers::{OfferOptions, OfferedSectors, OfferedTickers, offered_sectors, offered_tickers};
pub use prune::{Prunable, PruneMode, PruneOptions, Pruned, PrunedKind, kept_versions};
pub use report::{ReportOptions, draw, latest_facts, report};
pub use start::{DEMO_SEED, Options, WhenHeld, WhenLost};
pub use store::{
    FetchItem, RemoteStore, StoreAccess, StoreDifference, StorePruned, StorePrunedFolder, StorePrunedKind, StoreUpload,
    StoreVerified, TransferCounts, VerifyScope, store_of, store_of_environment,
};
pub use summary::{Fetched, Summary};
pub use verify::{Repair, RepairKind, Verified, repair, verify};

pub use crate::archive::Interrupted;
use crate::archive::{Oddities, Scope, SealedAs, SealedRun, Settled, Unfinished, of_service};
use crate::audit::answers::answers;
pub use crate::disk::file::{FileRecord, TargetFile, WhenExists};
use crate::disk::{file, links};
use crate::error::{Error, ErrorKind, Result};
use crate::export::VersionRecord;
use crate::fetch::{Client, ClockTrust};
use crate::plan::{AdHoc, Plan, Source};
use crate::project::Project;
use crate::text::human::count_of;
use crate::time::Clock;

pub(crate) use as_of::view_of_build;
pub use as_of::{AsOf, Past, PastQuery, past};
pub(crate) use builder::{Builder, scratch};
pub use builder::{SqlOptions, sql};
use checks::PreviousVersion;
use gather::{Gathered, Gathering};
pub(crate) use missing::{absent_sector, absent_tickers};
use observer::Stage;
pub(crate) use offers::PATIENCE;
pub(crate) use scope::archived_scope;
use scope::{requests_in_words, with_delisted};

impl Project {
    /// Runs a definition of the project, by its name or path, with the default [`Options`].
    ///
    /// # Errors
    ///
    /// When it does not exist, has problems, or is not one of the project's; and those of [`run`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe, as [`run`].
    pub async fn run(&self, name_or_path: &str) -> Result<Summary> {
        let plan = Plan::find(name_or_path, self)?;
        let data = self.data_of(&plan.path)?;
        run(plan, Options::new(data)).await
    }
}

/// Fetches, archives, joins and publishes the data of a plan.
///
/// # Errors
///
/// Any error of a stage; when it was cancelled.
///
/// # Cancel safety
///
/// Not cancel safe: use [`Options::control`], which removes what is incomplete or keeps it for the next run.
pub async fn run(plan: Plan, options: Options) -> Result<Summary> {
    let plan = Arc::new(plan);
    let archive = options.archive.join(&plan.service.name);
    options.control.warn(&plan.dataset.warnings());
    let earlier = run_earlier(&plan, &options, &archive).await?;
    match run_once(Arc::clone(&plan), options.clone()).await {
        Ok(mut summary) => {
            summary.notes.splice(0..0, earlier);
            Ok(summary)
        }
        // A pack holds no more than its runs: without it, the run goes on from the answers that it has.
        Err(error) => match verify::set_pack_aside(&archive, &error)? {
            None => Err(error),
            Some(message) => {
                options.control.warn(&[message]);
                run_once(plan, Options { interrupted: Interrupted::Resume, ..options }).await
            }
        },
    }
}

/// Runs a demo on earlier days of its simulated past first, so that the archive knows what was rewritten since; unless that
/// contradicts what is there already, or elsewhere.
async fn run_earlier(plan: &Arc<Plan>, options: &Options, archive: &Path) -> Result<Option<String>> {
    /// Between two of them.
    const WEEKS: i64 = 4;
    let Source::Demo { earlier_runs: earlier @ 1.. } = plan.source else { return Ok(None) };
    let has_store = options.store.is_some() || plan.store.is_some();
    let is_plain = matches!(options.clock, Clock::System) && options.interrupted == Interrupted::Resume;
    if !is_plain || has_store || !file::is_gone(archive) {
        return Ok(None);
    }
    let now = options.clock.now();
    for index in (1..=i64::from(earlier)).rev() {
        let clock = Clock::Fixed(now - TimeDelta::weeks(WEEKS * index));
        let control = Control { observer: None, stop: options.control.stop.clone() };
        let options = Options { clock, control, when_held: WhenHeld::Fail, ..options.clone() };
        match run_once(Arc::clone(plan), options).await {
            // Another run of the definition has begun: the past is left to it.
            Err(error) if error.kind() == ErrorKind::Busy => return Ok(None),
            made => drop(made?),
        }
    }
    let runs = count_of(earlier.into(), "run", "runs");
    Ok(Some(format!("the demo begins with {runs} of earlier days, {WEEKS} weeks apart; `--fresh` begins today")))
}

async fn run_once(plan: Arc<Plan>, options: Options) -> Result<Summary> {
    let begun = Instant::now();
    if let Source::Remote(remote) = &plan.source {
        options.control.warn(remote.key.warning().as_slice());
    }
    let evidence = options.data.join(start::EVIDENCE);
    let datasets = options.data.join("datasets");
    for path in [&options.archive.join(&plan.service.name), &evidence, &datasets.join(&plan.name)] {
        links::refuse_below(&options.data, path)?;
    }
    let _lock = start::lock(&plan.name, &options).await?;
    // Everything else is about the archive of the service.
    let root = options.archive.clone();
    let options = Options { archive: of_service(&root, &plan.service.name)?, ..options };
    let (clock, control) = (options.clock, options.control.clone());
    let store = RemoteStore::of(&plan, options.store.as_ref(), StoreAccess::Write, &root, &options.data, &control)?;
    // Before the first request: fetch the runs of other machines, and fail early if the store cannot be used.
    let in_store = match &store {
        Some(store) => store.begin(&plan.name, clock).await?,
        None => None,
    };
    let continuity::Continuity { lost, notes } = continuity::check(&plan, &options, in_store.as_ref())?;
    control.note(&notes);
    let now = start::now(&options).await?;
    let (addresses, key, demo) = start::connect(&plan, now.date_naive(), &control.stop).await?;
    // Before the first request: fail early if the output cannot be written.
    let unfinished = start::begin(&plan, &options.archive, now, options.interrupted, &control.stop)?;
    control.warn(unfinished.warnings());
    control.observe(Event::Named { run: unfinished.name() });
    let trust = store.as_ref().map_or(ClockTrust::Unconfirmed, RemoteStore::clock_trust);
    let client = Client::new(addresses, key, plan.limits, clock, evidence)?.trusting(trust);
    let gathered = Gathering::new(&plan, &client, &options, Arc::clone(&unfinished)).gather().await;
    if let Some(demo) = demo {
        demo.stop().await;
    }
    let gathered = match gathered {
        Err(error) if unfinished.is_empty() || !is_of_service(error.kind()) => return Err(error),
        // Another run has them.
        Err(error) if !unfinished.has_news() => return Err(in_part(error, None, unfinished.len())),
        gathered => gathered,
    };
    let (sealed, once_sealed) = oneshot::channel();
    let data = options.data.clone();
    let session = Session {
        plan: Arc::clone(&plan),
        options,
        root: root.clone(),
        unfinished,
        begun_at: now,
        lost,
        store: store.clone(),
        in_store,
    };
    let finished = blocking(move || session.finish(gathered, sealed));
    let (summary, sent) = tokio::join!(finished, store::send_once(store.as_ref(), once_sealed));
    let mut summary = summary?;
    summary.notes.splice(0..0, notes);
    summary.elapsed = begun.elapsed();
    if let Some(fetched) = &mut summary.fetched {
        fetched.retries = client.gauge().retries();
    }
    store::publish(store.as_ref(), sent, &plan.name, &mut summary).await?;
    summary.report = report::draw_latest(plan, data, root, clock, control).await?;
    Ok(summary)
}

/// Runs blocking work off the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::worker(panic)))
}

/// Whether a failure is one of the service, so that what was answered before is what it says.
fn is_of_service(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Service | ErrorKind::Key | ErrorKind::Refused | ErrorKind::Temporary | ErrorKind::Checks)
}

/// The failure of a run that was sealed in part.
fn in_part(error: Error, run: Option<&str>, answers: usize) -> Error {
    let kind = if error.kind() == ErrorKind::Temporary { ErrorKind::Temporary } else { ErrorKind::Checks };
    let answers = count_of(answers as u64, "answer", "answers");
    let kept = match run {
        Some(run) => format!("run `{run}` is sealed in part, with {answers}"),
        None => format!("{answers} were sealed in part before"),
    };
    let kept = format!("nothing was published; {kept}, and the next run asks for the rest");
    let hint = match error.hint() {
        Some(hint) => format!("{hint}; {kept}"),
        None => kept,
    };
    error.as_kind(kind).with_hint(hint)
}

/// A run whose requests were made.
struct Session {
    plan: Arc<Plan>,
    /// Their archive is that of the service.
    options: Options,
    /// The archive of all services.
    root: PathBuf,
    unfinished: Arc<Unfinished>,
    /// By the clock of the machine, which may be set.
    begun_at: DateTime<Utc>,
    /// The runs that are gone and that it goes on without.
    lost: Vec<String>,
    store: Option<RemoteStore>,
    /// The record of the latest version in the store.
    in_store: Option<VersionRecord>,
}

impl Session {
    /// Seals what was answered, tells so, and publishes the dataset if it has all that it needs.
    fn finish(self, gathered: Result<(Scope, SignalSource, Gathered)>, sealed: oneshot::Sender<()>) -> Result<Summary> {
        let (plan, control, records) = (&self.plan, &self.options.control, self.unfinished.records());
        let stage = Stage::begin(control, "archive");
        let (scope, signals, mut gathered) = match gathered {
            Ok(gathered) => gathered,
            Err(error) => {
                let why = error.in_one_line();
                let resumes = error.kind() != ErrorKind::Checks;
                return Err(match self.seal(Some(&why), resumes) {
                    Ok(Settled { run, .. }) => {
                        let _ = sealed.send(());
                        in_part(error, Some(run.name()), records.len())
                    }
                    // What was answered is kept for the next run.
                    Err(failure) => {
                        control.warn(&[format!("what was answered is not sealed: {}", failure.in_one_line())]);
                        error
                    }
                });
            }
        };
        let Settled { run, known } = self.seal(None, false)?;
        // Without a store nothing waits for it.
        let _ = sealed.send(());
        // Freeing the memory of the answers takes the system a while.
        rayon::spawn(move || drop(self.unfinished));
        gathered.timings.push(stage.finish());
        let kept = format!(
            "nothing was published, and the archive keeps what could be read; `bellwether list runs {}` lists what was rejected",
            run.name()
        );
        missing::check_rejects(plan.max_reject_share, &records, &run, &kept)?;
        let view = as_of::view_of(plan, &self.root, None, &control.stop)?;
        let scope = with_delisted(scope, plan, &view)?;
        let mut work = Builder::new(Arc::clone(plan), view, scope, control);
        let datasets = self.options.data.join("datasets");
        let (before, mut found) =
            PreviousVersion::find(Some(&datasets), self.in_store.as_ref(), &plan.name, work.view.archive());
        work.before = before;
        control.note(&found);
        gathered.notes.append(&mut found);
        found = work.check_answers(&records, &gathered)?;
        control.note(&found);
        gathered.notes.append(&mut found);
        let (data, clock) = (&self.options.data, self.options.clock);
        let mut summary = work.publish(data, clock, AdHoc::default(), WhenUnchanged::Publish)?;
        prune::prune_copies(work.view.archive());
        let requests = requests_in_words(plan, &work.view, &work.scope)?;
        let mut oddities = Oddities::default();
        records.iter().for_each(|answer| oddities.add(answer.oddities.clone()));
        summary.fetched = Some(Fetched {
            signals,
            requests: records.len(),
            retries: 0,
            rejects: run.requests()?.iter().map(|record| record.rejects).sum(),
            new_rejects: answers(&work.view, |request| requests.contains(request))?.rejects.new,
            oddities,
            changes: run.seal().changes,
            known,
            run: run.path().to_owned(),
        });
        summary.notes.splice(0..0, gathered.notes);
        summary.timings.splice(0..0, gathered.timings);
        Ok(summary)
    }

    /// Seals the run: as a part of one, if something failed, from which the next run may go on.
    fn seal(&self, in_part: Option<&str>, resumes: bool) -> Result<Settled> {
        let sealing = || start::sealing_instant(&self.unfinished.records(), self.begun_at, self.options.clock);
        let runtime = Handle::current();
        // Whether no other machine has sent a run meanwhile.
        let check = |_: &SealedRun| {
            let Some(store) = &self.store else { return Ok(true) };
            let pulled = runtime.block_on(store.pull_archive(None))?;
            Ok(pulled.folders == 0 && pulled.notes == 0)
        };
        let sealed_as = SealedAs { lost: &self.lost, in_part, resumes, ..SealedAs::default() };
        self.unfinished.seal_as(sealed_as, sealing, check)
    }
}
