//! `bellwether schedule`: runs definitions at their times.

mod print;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bellwether::disk::file;
use bellwether::run::{Control, Observer};
use bellwether::text::human::took;
use tokio::sync::{Notify, watch};

use super::log::{CommandEvent, Level, LogLine, warn};
use super::prelude::*;
use super::process::interruptible_with;
use crate::schedule::{
    Fault, HostName, LookRecord, Outcome, RunRecord, ScheduleEvent, Scheduler, SchedulerOptions, StatusDocument,
    StatusSite, Watcher, listen, metrics, to_minute, upcoming,
};
use print::Platform;

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

    #[command(flatten)]
    log: LogOptions,
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
                let hint = "leave it out: the platform decides what it calls";
                return Err(usage("`--once` has no effect on `print`", hint));
            }
            return say(&self.print(platform, project.root(), &folders)?);
        }
        self.log.begin(None);
        self.log.end(self.run(folders), None)
    }

    fn run(&self, folders: Folders) -> Result<()> {
        self.metrics.as_deref().map(file::target_of).transpose()?;
        let store = self.store.url(None)?;
        let [look, changed] = [(); 2].map(|()| Arc::new(Notify::new()));
        let hangup = (!self.once).then(|| Arc::clone(&look));
        interruptible_with(hangup, None, async |Control { stop, .. }| {
            let form = self.log.form;
            let watcher: Arc<dyn Watcher> =
                Arc::new(EventPrinter { form, hides_schedules: self.once, changed: Arc::clone(&changed) });
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
                match form {
                    LogForm::Text => note(&format!("listening on http://{address}/")),
                    LogForm::Json => LogLine::now(Level::Info, CommandEvent::Listening { address }).print(),
                }
                listening = Some(server);
            }
            // The metrics are written whenever something has changed, and every minute.
            let keep_metrics = async {
                loop {
                    self.write_metrics(&folders, &looks).await;
                    let _ = tokio::time::timeout(Duration::from_secs(60), changed.notified()).await;
                }
            };
            let result = tokio::select! {
                result = scheduler.run(&look) => result,
                never = keep_metrics => never,
            };
            self.write_metrics(&folders, &looks).await;
            if let Some(listening) = listening {
                listening.finish().await;
            }
            result.map_err(Failure::from)
        })
    }

    async fn write_metrics(&self, folders: &Folders, looks: &watch::Receiver<LookRecord>) {
        let Some(path) = self.metrics.clone() else { return };
        let (folders, look) = (folders.clone(), Some(looks.borrow().clone()));
        let write = move || metrics::write(&path, &StatusDocument::read(&folders, &[], look, Clock::System.now())?);
        let written = tokio::task::spawn_blocking(write).await;
        if let Err(error) = written.unwrap_or_else(|panic| Err(Error::worker(panic))) {
            warn(self.log.form, &format!("cannot write the metrics: {error}"));
        }
    }
}

/// The outcome of the due runs: the first failure, or else what kept a definition from being looked at, or else the first run
/// that will be retried.
fn outcome(records: &[RunRecord], fault: Option<&Fault>) -> Result<()> {
    let of = |outcome: Outcome| records.iter().find(|record| record.outcome == outcome).map(|record| record.exit_code);
    let code = of(Outcome::Failure).or(fault.map(|fault| fault.exit_code));
    let code = code.or_else(|| of(Outcome::Interrupted)).or_else(|| of(Outcome::Later));
    code.map_or(Ok(()), |code| Err(Failure::Told(code)))
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
        let (level, text) = describe(event);
        match self.form {
            LogForm::Text => note(&text),
            LogForm::Json => LogLine::now(level, event).print(),
        }
        self.changed.notify_one();
    }

    fn observer(&self, definition: &str) -> Option<Arc<dyn Observer>> {
        observer(match self.form {
            LogForm::Text => Form::Quiet(self.form),
            LogForm::Json => Form::Json(Some(definition.to_owned())),
        })
    }
}

/// The next times of a schedule, a line each, on its own clock, and in UTC if that is another one.
pub(super) fn next_times(schedule: &bellwether::plan::Schedule) -> String {
    let line = |time: DateTime<Utc>| {
        let there = time.with_timezone(&schedule.timezone.0).format("%a %Y-%m-%d %H:%M:%S %Z").to_string();
        if there.ends_with(" UTC") { format!("  {there}\n") } else { format!("  {there}, {}\n", to_minute(time)) }
    };
    upcoming(schedule, Clock::System.now()).take(5).map(line).collect()
}

/// The level of an event, and its text for people.
fn describe(event: &ScheduleEvent<'_>) -> (Level, String) {
    use Level::{Error, Info, Warn};
    match event {
        ScheduleEvent::Scheduled { definition, next } => {
            let next = next.map_or_else(|| "never".to_owned(), to_minute);
            (Info, format!("{definition}: scheduled, next {next}"))
        }
        ScheduleEvent::Unscheduled { definition } => (Info, format!("{definition}: no longer scheduled")),
        ScheduleEvent::Broken { definition, error } => {
            (Error, format!("{definition}: not scheduled until this is fixed\n{}", explain(error)))
        }
        ScheduleEvent::LookFailed { error } => {
            (Error, format!("nothing is started until this is fixed\n{}", explain(error)))
        }
        ScheduleEvent::Recovered { definition: Some(definition) } => (Info, format!("{definition}: fixed")),
        ScheduleEvent::Recovered { definition: None } => (Info, "fixed".to_owned()),
        ScheduleEvent::NotStarted { record } => {
            let due = record.due.map_or_else(String::new, |due| format!(" at {}", to_minute(due)));
            (Error, format!("{}: was due{due} and did not start", record.definition))
        }
        ScheduleEvent::Missed { definition, missed } => {
            let times = count_of(*missed as u64, "missed time", "missed times");
            (Warn, format!("{definition}: skipped {times}"))
        }
        ScheduleEvent::Started { definition, due, attempt } => {
            let again = if *attempt > 1 { " again" } else { "" };
            let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            (Info, format!("{definition}: started{again}, due {}{attempt}", to_minute(*due)))
        }
        ScheduleEvent::Ended { record, retry } => describe_end(record, *retry),
        ScheduleEvent::InProgress { definition, retry } => {
            let until = retry.map(|at| format!("in progress, retry at {}", to_minute(at)));
            let until = until.unwrap_or_else(|| "still in progress, gave up at the deadline".to_owned());
            (Warn, format!("{definition}: another run is {until}"))
        }
        ScheduleEvent::AlreadyRun { definition, due, run } => {
            (Info, format!("{definition}: run {run} already covers {}", to_minute(*due)))
        }
        ScheduleEvent::Unanswered { reason } => {
            let what = "connections to the status page were closed unanswered";
            (Warn, format!("warning: {what}: {}", escape(reason)))
        }
        ScheduleEvent::Stopping { running: 0 } => (Info, "stopping".to_owned()),
        ScheduleEvent::Stopping { running } => {
            (Info, format!("stopping, interrupting {}", count_of(*running as u64, "run", "runs")))
        }
    }
}

/// An error with its reasons and its hint.
fn explain(error: &Error) -> String {
    // The problems of a file print their own headers and hints.
    if let Some(problems) = error.problems() {
        return problems.to_string();
    }
    format!("error: {}{}", escape(&error.in_one_line()), hint_line(error.hint()))
}

fn hint_line(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("\nhint: {}", escape(hint)))
}

fn describe_end(record: &RunRecord, retry: Option<DateTime<Utc>>) -> (Level, String) {
    let definition = &record.definition;
    let time = took(Duration::try_from_secs_f64(record.seconds).unwrap_or_default());
    let reason = escape(&record.reason().unwrap_or_default()).into_owned();
    match (record.outcome, &record.published) {
        (Outcome::Success, Some(published)) => {
            let newest = published.dates.as_ref().map(|[_, newest]| format!(", newest date {newest}"));
            let (rows, newest) = (group_digits(published.rows), newest.unwrap_or_default());
            (Level::Info, format!("{definition}: published {rows} rows in {time}{newest}"))
        }
        (Outcome::Success, None) => (Level::Info, format!("{definition}: published in {time}")),
        (Outcome::Later, _) => {
            let at = retry.map_or_else(String::new, |at| format!(", retry at {}", to_minute(at)));
            (Level::Warn, format!("{definition}: temporary failure after {time}{at}: {reason}"))
        }
        (Outcome::Failure, _) => {
            let hint = hint_line(record.hint.as_deref());
            (Level::Error, format!("{definition}: failed after {time}: {reason}{hint}"))
        }
        (Outcome::Interrupted, _) => (Level::Info, format!("{definition}: interrupted after {time}")),
    }
}
