//! The start of a run: its options, the lock of its definition, a clock that is not behind the archive, and the way to the service.
//! The demo service runs in this process, for as long as it is needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::blocking;
use super::observer::{CancellationToken, Control, Event};
use crate::archive::{AnswerRecord, Archive, Interrupted, NewRun, SKEW, Unfinished};
use crate::disk::lock::{Attempt, Holder, Lock};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Addresses;
use crate::interface::ChangeSet;
use crate::key::ApiKey;
use crate::net::address::host_of;
use crate::plan::{Asking, Plan, Source, StoreUrl};
use crate::serve::{self, RunningService, Service, Universe};
use crate::text::human::duration;
use crate::time::{Clock, to_record};

/// Takes the lock of a definition on the archive.
pub(super) async fn lock(definition: &str, options: &Options) -> Result<Lock> {
    let mut patience = match options.when_held {
        WhenHeld::Fail => Duration::ZERO,
        WhenHeld::Wait(patience) => patience,
    };
    // What was said of the holder. Others may wait as well, and be first.
    let mut told = String::new();
    loop {
        let this = Holder::this(options.clock.now()).working_for(&options.data);
        let by = match Lock::try_take(&options.archive, definition, &this)? {
            Attempt::Taken(lock) => return Ok(lock),
            Attempt::Held(holder) => holder.map_or_else(String::new, |holder| format!(": {holder}")),
        };
        let in_progress =
            format!("another run of `{definition}` is in progress on `{}`{by}", options.archive.display());
        if patience.is_zero() {
            return Err(Error::new(ErrorKind::Busy, in_progress)
                .with_hint("try again when that run has finished, or wait for it with `--wait`"));
        }
        if told != in_progress {
            let message = format!("{in_progress}; waiting for it, for up to {}", duration(patience));
            options.control.observe(Event::Held { message: &message });
            told = in_progress;
        }
        let pause = Duration::from_millis(200).min(patience);
        patience -= pause;
        sleep(pause, &options.control.stop).await?;
    }
}

/// The current instant, which is not before the newest run of the archive was sealed.
///
/// What is known as of an instant is ordered by when it was observed. Observations made with a clock that is behind
/// would be older than those they follow, and never be seen.
pub(super) async fn now(options: &Options) -> Result<DateTime<Utc>> {
    let archive = match Archive::open(&options.archive) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(options.clock.now()),
        archive => archive?,
    };
    let Some(newest) = archive.runs().iter().max_by_key(|run| run.seal().sealed_at) else {
        return Ok(options.clock.now());
    };
    let sealed_at = newest.seal().sealed_at;
    loop {
        let now = options.clock.now();
        let ahead = sealed_at - now;
        if ahead <= TimeDelta::zero() {
            return Ok(now);
        }
        if ahead > SKEW || !matches!(options.clock, Clock::System) {
            let [now, sealed_at] = [now, sealed_at].map(to_record);
            let what = format!("the clock says {now}, but the newest run in the archive was sealed at {sealed_at}");
            return Err(Error::new(ErrorKind::Storage, what).with_hint(format!(
                "set the clock if it is behind; if it is correct, the clock was ahead during that run: take it back with \
                 `bellwether forget {} --reason TEXT`",
                newest.name()
            )));
        }
        sleep(ahead.to_std().unwrap_or_default(), &options.control.stop).await?;
    }
}

/// Begins a run of a plan in an archive of its service.
pub(super) fn begin(
    plan: &Plan,
    archive: &Path,
    now: DateTime<Utc>,
    interrupted: Interrupted,
    stop: &CancellationToken,
) -> Result<Arc<Unfinished>> {
    let Plan { name: definition, text, service, conventions, .. } = plan;
    let beginning = NewRun { definition, text, service, conventions, now, interrupted, stop };
    Unfinished::begin(archive, beginning).map(Arc::new)
}

/// The instant at which a run is sealed: not before it began, nor before its last answer was complete.
pub(super) fn sealing_instant(
    answers: &[Arc<AnswerRecord>],
    begun_at: DateTime<Utc>,
    clock: Clock,
) -> Result<DateTime<Utc>> {
    let now = clock.now();
    let before = answers.iter().map(|answer| answer.request.observed_at).fold(begun_at, DateTime::max);
    if before - now > SKEW {
        let what =
            format!("the clock moved backwards during the run, from {} to {}", to_record(before), to_record(now));
        return Err(Error::new(ErrorKind::Storage, what)
            .with_hint("correct the clock and run the same command again, which begins anew; nothing was archived"));
    }
    Ok(before.max(now))
}

async fn sleep(time: Duration, stop: &CancellationToken) -> Result<()> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Error::interruption()),
        () = tokio::time::sleep(time) => Ok(()),
    }
}

/// The folder of evidence in the data folder.
pub(super) const EVIDENCE: &str = "evidence";

/// The options of a run, besides its plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that datasets and evidence are in.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// What to do with an interrupted run of the same definition.
    pub interrupted: Interrupted,
    /// What to do while another run of the same definition is in progress.
    pub when_held: WhenHeld,
    /// What to do if runs are gone, or the definition asks another service than before.
    pub when_lost: WhenLost,
    /// Runs of the definition that are known to have been sealed in the archive of its service.
    pub known_runs: Vec<String>,
    /// The object store to use instead of the definition's.
    pub store: Option<StoreUrl>,
    /// Follows and cancels the run.
    pub control: Control,
}

impl Options {
    /// The default options: the archive is the folder `archive` in the data folder, an interrupted run is resumed, and
    /// the run fails while another one of the same definition is in progress.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self {
            archive: data.join("archive"),
            data,
            clock: Clock::System,
            interrupted: Interrupted::Resume,
            when_held: WhenHeld::Fail,
            when_lost: WhenLost::Fail,
            known_runs: Vec::new(),
            store: None,
            control: Control::default(),
        }
    }
}

/// What a run does while another run of the same definition is in progress on the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHeld {
    /// It fails.
    Fail,
    /// It waits, up to a limit.
    Wait(Duration),
}

/// What a run does if it does not go on with the history that its definition had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLost {
    /// It fails.
    Fail,
    /// It begins a new history, or goes on without the runs that are gone.
    BeginAnew,
}

/// The seed of the demo universe.
pub const DEMO_SEED: u64 = 500;

/// The addresses and the key of a service; and the demo service as of a day, if it is the one. It is to be stopped: if it is
/// dropped, it stays until the end of the process.
pub(super) async fn connect(
    plan: &Plan,
    today: NaiveDate,
    stop: &CancellationToken,
) -> Result<(Addresses, ApiKey, Option<RunningService>)> {
    match &plan.source {
        Source::Demo { .. } => {
            let key = ApiKey::of_the_demo();
            let service = Service::new(Universe::new(DEMO_SEED, today), ChangeSet::All, key.expose().to_owned());
            // On a free port of the loopback address.
            let demo = serve::start(service, 0).await?;
            let (signals, sentiment) = (demo.base_url().clone(), demo.sentiment_base_url().clone());
            Ok((Addresses { signals, sentiment, asking: Asking::default() }, key, Some(demo)))
        }
        Source::Remote(remote) => {
            // It chooses the source of the key, and whom the key is sent to.
            plan.require_trust()?;
            let (source, host, stop) = (remote.key.clone(), host_of(&remote.base_url), stop.clone());
            let key = blocking(move || source.read(&host, &|| stop.is_cancelled())).await?;
            let (signals, sentiment) = (remote.base_url.clone(), remote.sentiment_base_url.clone());
            Ok((Addresses { signals, sentiment, asking: remote.asking.clone() }, key, None))
        }
    }
}
