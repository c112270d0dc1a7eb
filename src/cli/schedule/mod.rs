//! `bellwether schedule`: runs definitions at their times.

mod print;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether::disk::file;
use bellwether::error::Error;
use bellwether::project::Project;
use bellwether::run::{Control, Observer};
use bellwether::text::escape::escape;
use bellwether::text::human::{count_of, group_digits, took};
use bellwether::time::Clock;
use chrono::{DateTime, Utc};
use tokio::sync::{Notify, watch};

use super::interruptible_with;
use super::log::{self, CommandEvent, Level, LogForm, LogLevel, LogLine};
use super::options::{FolderOptions, PROGRESS, StoreOption, definition_value, usage};
use super::progress::{self, Form};
use super::talk::{Failure, Result, note, say};
use crate::schedule::{
    Fault, Folders, HostName, LookRecord, Outcome, RunRecord, ScheduleEvent, Scheduler, SchedulerOptions,
    StatusDocument, StatusSite, Watcher, listen, metrics, to_minute, upcoming,
};
use print::Platform;

/// How often the file of metrics is written if nothing happens.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Run every definition that has a `[schedule]` at its times.
///
/// Runs of a definition never overlap, including those started manually. If times were missed while the scheduler was
/// down, the newest is run once, unless it is older than `catch_up`. A run that ends with exit code 75 is retried until
/// `deadline`; one that was due and cannot be started is a failure. Changed definitions are reloaded within seconds, or
/// immediately on SIGHUP; an invalid one does not affect the others. On SIGTERM the runs in progress are interrupted, and
/// the next start resumes them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether schedule --listen 127.0.0.1:9464
      run definitions at their times, and answer /metrics
  bellwether schedule --once
      run due definitions and exit")]
pub(super) struct Schedule {
    #[command(subcommand)]
    action: Option<ScheduleAction>,

    /// Run due definitions and exit, for a cron job every few minutes.
    #[arg(long, conflicts_with = "listen")]
    once: bool,

    /// How many definitions may run at once.
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = jobs, env = "BELLWETHER_JOBS")]
    jobs: NonZeroUsize,

    /// Answer `/`, `/status`, `/metrics` and `/healthz` on an address, such as `127.0.0.1:9464`.
    #[arg(long, value_name = "ADDRESS", env = "BELLWETHER_LISTEN")]
    listen: Option<SocketAddr>,

    /// Another name that requests may have in their `Host`, besides `localhost` and the address that they come to; can be
    /// given several times.
    #[arg(long, value_name = "HOST", value_parser = definition_value::<HostName>, requires = "listen")]
    listen_host: Vec<HostName>,

    /// Write metrics for Prometheus to a file, after each run and every minute.
    #[arg(long, value_name = "FILE", env = "BELLWETHER_METRICS", help_heading = PROGRESS)]
    metrics: Option<PathBuf>,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,

    /// The format of events on standard error.
    #[arg(long, value_enum, default_value_t = LogForm::Text, value_name = "FORM", env = "BELLWETHER_LOG", help_heading = PROGRESS)]
    log: LogForm,

    /// The level of log messages on standard error.
    #[arg(long, value_enum, default_value_t = LogLevel::Off, value_name = "LEVEL", env = "BELLWETHER_LOG_LEVEL", help_heading = PROGRESS)]
    log_level: LogLevel,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleAction {
    /// Print a systemd unit or a line for a crontab that runs the definitions.
    Print {
        /// The platform.
        #[arg(long = "for", value_enum, value_name = "PLATFORM")]
        platform: Platform,
    },
}

/// How many runs there are at once.
fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "use a whole number from 1 on".to_owned())
}

impl Schedule {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let folders = self.folders.of_project(project);
        if let Some(ScheduleAction::Print { platform }) = self.action {
            if self.once {
                return Err(usage(
                    "`--once` has no effect on `print`",
                    "leave it out: the platform decides what it calls",
                ));
            }
            return say(&self.print(platform, project.root(), &folders)?);
        }
        log::begin(self.log, self.log_level, None);
        log::end(self.run(folders), self.log, None)
    }

    fn run(&self, folders: Folders) -> Result<()> {
        self.metrics.as_deref().map(file::target_of).transpose()?;
        let store = self.store.url(None)?;
        let [look, changed] = [(); 2].map(|()| Arc::new(Notify::new()));
        let hangup = (!self.once).then(|| Arc::clone(&look));
        interruptible_with(hangup, None, async |Control { stop, .. }| {
            let watcher: Arc<dyn Watcher> =
                Arc::new(EventPrinter { form: self.log, hides_schedules: self.once, changed: Arc::clone(&changed) });
            let mut scheduler = Scheduler::new(SchedulerOptions {
                definitions: folders.definitions.clone(),
                data: folders.data.clone(),
                archive: folders.archive.clone(),
                store,
                jobs: self.jobs,
                clock: Clock::System,
                watcher: Arc::clone(&watcher),
                stop: stop.clone(),
            });
            let looks = scheduler.looks();
            if self.once {
                let records = scheduler.once().await;
                self.write_metrics(&folders, &looks).await;
                return outcome(&records?, scheduler.fault());
            }
            let mut listening = None;
            if let Some(address) = self.listen {
                let site = StatusSite::new(folders.clone(), looks.clone(), Clock::System);
                let server = listen(address, self.listen_host.clone(), site, watcher, stop.clone()).await?;
                let address = server.address;
                match self.log {
                    LogForm::Text => note(&format!("listening on http://{address}/")),
                    LogForm::Json => LogLine::now(Level::Info, CommandEvent::Listening { address }).print(),
                }
                listening = Some(server);
            }
            let result = tokio::select! {
                result = scheduler.run(&look) => result,
                never = self.keep_metrics(&folders, &looks, &changed) => never,
            };
            self.write_metrics(&folders, &looks).await;
            if let Some(listening) = listening {
                listening.finish().await;
            }
            result.map_err(Failure::from)
        })
    }

    /// Writes the metrics whenever something has changed, and every minute.
    async fn keep_metrics(
        &self,
        folders: &Folders,
        looks: &watch::Receiver<LookRecord>,
        changed: &Notify,
    ) -> bellwether::error::Result<()> {
        loop {
            self.write_metrics(folders, looks).await;
            let _ = tokio::time::timeout(METRICS_EVERY, changed.notified()).await;
        }
    }

    async fn write_metrics(&self, folders: &Folders, looks: &watch::Receiver<LookRecord>) {
        let Some(path) = self.metrics.clone() else { return };
        let (folders, look) = (folders.clone(), Some(looks.borrow().clone()));
        let write = move || metrics::write(&path, &StatusDocument::read(&folders, &[], look, Clock::System.now())?);
        let written = tokio::task::spawn_blocking(write).await;
        if let Err(error) = written.unwrap_or_else(|panic| Err(Error::worker(panic))) {
            progress::warn(self.log, &format!("cannot write the metrics: {error}"));
        }
    }
}

/// The outcome of the due runs: the first failure, or else what kept a definition from being looked at, or else the first run
/// that will be retried.
fn outcome(records: &[RunRecord], fault: Option<&Fault>) -> Result<()> {
    let of = |outcome: Outcome| records.iter().find(|record| record.outcome == outcome).map(|record| record.exit_code);
    let code = of(Outcome::Failure).or(fault.map(|fault| fault.exit_code));
    let code = code.or_else(|| of(Outcome::Interrupted)).or_else(|| of(Outcome::Later));
    code.map_or(Ok(()), |code| Err(Failure::Told { code }))
}

/// Events on standard error.
struct EventPrinter {
    form: LogForm,
    /// Whether the schedules are left out, which `--once` would repeat each time.
    hides_schedules: bool,
    changed: Arc<Notify>,
}

impl Watcher for EventPrinter {
    fn watch(&self, event: &ScheduleEvent<'_>) {
        if self.hides_schedules && matches!(event, ScheduleEvent::Scheduled { .. } | ScheduleEvent::Unscheduled { .. })
        {
            return;
        }
        match self.form {
            LogForm::Text => note(&line(event)),
            LogForm::Json => LogLine::now(level(event), event).print(),
        }
        self.changed.notify_one();
    }

    fn observer(&self, definition: &str) -> Option<Arc<dyn Observer>> {
        progress::observer(match self.form {
            LogForm::Text => Form::Quiet(self.form),
            LogForm::Json => Form::Json(Some(definition.to_owned())),
        })
    }
}

/// The next times of a schedule, a line each, on its own clock, and in UTC if that is another one.
pub(super) fn next_times(schedule: &bellwether::plan::Schedule) -> String {
    const SHOWN: usize = 5;
    let line = |time: DateTime<Utc>| {
        let there = time.with_timezone(&schedule.timezone.0).format("%a %Y-%m-%d %H:%M:%S %Z").to_string();
        if there.ends_with(" UTC") { format!("  {there}\n") } else { format!("  {there}, {}\n", to_minute(time)) }
    };
    upcoming(schedule, Clock::System.now()).take(SHOWN).map(line).collect()
}

fn line(event: &ScheduleEvent<'_>) -> String {
    let at = |instant: Option<_>| instant.map_or_else(|| "never".to_owned(), to_minute);
    match event {
        ScheduleEvent::Scheduled { definition, next } => format!("{definition}: scheduled, next {}", at(*next)),
        ScheduleEvent::Unscheduled { definition } => format!("{definition}: no longer scheduled"),
        ScheduleEvent::Broken { definition, error } => {
            format!("{definition}: not scheduled until this is fixed\n{}", explain(error))
        }
        ScheduleEvent::LookFailed { error } => format!("nothing is started until this is fixed\n{}", explain(error)),
        ScheduleEvent::Recovered { definition: Some(definition) } => format!("{definition}: fixed"),
        ScheduleEvent::Recovered { definition: None } => "fixed".to_owned(),
        ScheduleEvent::NotStarted { record } => {
            let due = record.due.map_or_else(String::new, |due| format!(" at {}", to_minute(due)));
            format!("{}: was due{due} and did not start", record.definition)
        }
        ScheduleEvent::Missed { definition, missed } => {
            format!("{definition}: skipped {}", count_of(*missed as u64, "missed time", "missed times"))
        }
        ScheduleEvent::Started { definition, due, attempt: 1 } => {
            format!("{definition}: started, due {}", to_minute(*due))
        }
        ScheduleEvent::Started { definition, due, attempt } => {
            format!("{definition}: started again, due {}, attempt {attempt}", to_minute(*due))
        }
        ScheduleEvent::Ended { record, retry } => ended_line(record, *retry),
        ScheduleEvent::InProgress { definition, retry: Some(at) } => {
            format!("{definition}: another run is in progress, retry at {}", to_minute(*at))
        }
        ScheduleEvent::InProgress { definition, retry: None } => {
            format!("{definition}: another run is still in progress, gave up at the deadline")
        }
        ScheduleEvent::AlreadyRun { definition, due, run } => {
            format!("{definition}: run {run} already covers {}", to_minute(*due))
        }
        ScheduleEvent::Unanswered { reason } => {
            format!("warning: connections to the status page were closed unanswered: {}", escape(reason))
        }
        ScheduleEvent::Stopping { running: 0 } => "stopping".to_owned(),
        ScheduleEvent::Stopping { running } => {
            format!("stopping, interrupting {}", count_of(*running as u64, "run", "runs"))
        }
    }
}

/// An error with its reasons and its hint.
fn explain(error: &Error) -> String {
    let text = error.to_string();
    if text.starts_with("error: ") {
        return text;
    }
    let reasons: String = error.causes().map(|cause| format!(": {cause}")).collect();
    let hint = error.hint().map_or_else(String::new, |hint| format!("\nhint: {}", escape(hint)));
    format!("error: {}{hint}", escape(&format!("{text}{reasons}")))
}

fn ended_line(record: &RunRecord, retry: Option<DateTime<Utc>>) -> String {
    let RunRecord { definition, outcome, seconds, .. } = record;
    let time = took(Duration::try_from_secs_f64(*seconds).unwrap_or_default());
    let reason = escape(&record.reason().unwrap_or_default()).into_owned();
    match (outcome, &record.published) {
        (Outcome::Success, Some(published)) => {
            let newest =
                published.dates.as_ref().map_or_else(String::new, |[_, newest]| format!(", newest date {newest}"));
            format!("{definition}: published {} rows in {time}{newest}", group_digits(published.rows))
        }
        (Outcome::Success, None) => format!("{definition}: published in {time}"),
        (Outcome::Later, _) => {
            let at = retry.map_or_else(String::new, |at| format!(", retry at {}", to_minute(at)));
            format!("{definition}: temporary failure after {time}{at}: {reason}")
        }
        (Outcome::Failure, _) => {
            let hint = record.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {}", escape(hint)));
            format!("{definition}: failed after {time}: {reason}{hint}")
        }
        (Outcome::Interrupted, _) => format!("{definition}: interrupted after {time}"),
    }
}

fn level(event: &ScheduleEvent<'_>) -> Level {
    match event {
        ScheduleEvent::Broken { .. } | ScheduleEvent::LookFailed { .. } | ScheduleEvent::NotStarted { .. } => {
            Level::Error
        }
        ScheduleEvent::Missed { .. } | ScheduleEvent::InProgress { .. } | ScheduleEvent::Unanswered { .. } => {
            Level::Warn
        }
        ScheduleEvent::Ended { record, .. } => match record.outcome {
            Outcome::Success | Outcome::Interrupted => Level::Info,
            Outcome::Later => Level::Warn,
            Outcome::Failure => Level::Error,
        },
        ScheduleEvent::Scheduled { .. }
        | ScheduleEvent::Unscheduled { .. }
        | ScheduleEvent::Recovered { .. }
        | ScheduleEvent::Started { .. }
        | ScheduleEvent::AlreadyRun { .. }
        | ScheduleEvent::Stopping { .. } => Level::Info,
    }
}
