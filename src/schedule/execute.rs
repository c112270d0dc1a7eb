//! Runs a definition and keeps its record: the journal, the hooks.
//!
//! Hooks are commands and addresses that are called after a run, with its record as JSON. A hook never changes the outcome
//! of a run. It has a limited time, which shrinks to a few seconds when the program is asked to stop. After that a command
//! is asked to end, and then killed with everything that it started, in whatever session. It gets the variables of the
//! environment that [`PASSED`] lists, none of which holds a secret. Redirects are not followed. Messages name the program or
//! the host only, since an address may be a secret.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bellwether::error::{ErrorKind, Result};
use bellwether::key::without_keys;
use bellwether::net::address::host_of;
use bellwether::net::call;
use bellwether::plan::{Hook, Hooks, Plan};
use bellwether::process::cancel::CancellationToken;
use bellwether::process::child::RunningCommand;
use bellwether::run::{self, Control, Event, Observer, Options, Summary};
use bellwether::text::human::took;
use chrono::{DateTime, Utc};
use reqwest::header::CONTENT_TYPE;
use url::Url;

use super::journal;
use super::record::{Outcome, RunRecord};

/// A run that has ended, with its record.
#[derive(Debug)]
pub struct Execution {
    /// Its record; `None` if another run of the definition was in progress, and nothing was run.
    pub record: Option<RunRecord>,
    /// Its summary, or why it has none.
    pub result: Result<Summary>,
}

/// Fetches, archives and publishes, adds the run to the journal, and calls the hooks of its definition. What goes wrong
/// after the run is a warning.
///
/// # Cancel safety
///
/// As [`run::run`].
pub async fn execute(plan: Plan, options: Options) -> Execution {
    let (own, after) = (plan.clone(), options.clone());
    perform_and_conclude(plan, options, &own, &after).await
}

/// Fetches, archives and publishes, and adds the run to the journal, for programs that see how it ends: hooks are not called.
///
/// # Errors
///
/// As [`run::run`].
///
/// # Cancel safety
///
/// As [`run::run`].
pub async fn run_recorded(plan: Plan, options: Options) -> Result<Summary> {
    let no_hooks = Hooks { on_success: None, on_failure: None, on_later: None, ping: None, ..plan.hooks.clone() };
    let (own, after) = (Plan { hooks: no_hooks, ..plan.clone() }, options.clone());
    perform_and_conclude(plan, options, &own, &after).await.result
}

async fn perform_and_conclude(plan: Plan, options: Options, own: &Plan, after: &Options) -> Execution {
    let execution = perform(plan, options, None).await;
    if let Some(record) = &execution.record
        && let Err(error) = conclude(own, record, after).await
        // If the run failed, the disk may be why, and what failed is reported already.
        && record.outcome != Outcome::Failure
    {
        warn(&after.control, &format!("the run is missing in the journal: {error}"));
    }
    execution
}

/// Runs a definition, for a due time or manually.
pub(super) async fn perform(plan: Plan, mut options: Options, due: Option<DateTime<Utc>>) -> Execution {
    let (begun, clock) = (Instant::now(), options.clock);
    let mut record = RunRecord::begin(&plan.name, due, clock.now());
    record.service = Some(plan.service.name.clone());
    options.known_runs = journal::sealed_runs(&options.data, &plan);
    let naming = Arc::new(Naming { inner: options.control.observer.take(), run: OnceLock::new() });
    options.control.observer = Some(Arc::clone(&naming) as Arc<dyn Observer>);
    let result = match plan.require_trust() {
        Err(error) if !plan.hooks.is_empty() => Err(error),
        _ => run::run(plan, options).await,
    };
    record.ended_at = clock.now().max(record.started_at);
    record.seconds = begun.elapsed().as_secs_f64();
    record.run = naming.run.get().cloned();
    match &result {
        Ok(summary) => record.succeed(summary),
        Err(error) if error.kind() == ErrorKind::Busy => return Execution { record: None, result },
        Err(error) => record.fail(error),
    }
    Execution { record: Some(record), result }
}

/// Adds a record to the journal and calls the hooks, if the definition is trusted to have some.
pub(super) async fn conclude(plan: &Plan, record: &RunRecord, options: &Options) -> Result<()> {
    let appended = journal::append(&options.data, record);
    if plan.hooks.is_empty() {
        return appended;
    }
    match plan.require_trust() {
        Ok(()) => {
            for fault in call_hooks(plan, record, &options.control.stop).await {
                warn(&options.control, &fault);
            }
        }
        Err(_) if record.outcome == Outcome::Failure => {}
        Err(error) => warn(&options.control, &format!("no hook was called: {error}")),
    }
    appended
}

fn warn(control: &Control, message: &str) {
    if let Some(observer) = &control.observer {
        observer.observe(&Event::Warning { message });
    }
}

/// Learns the name of the run.
struct Naming {
    inner: Option<Arc<dyn Observer>>,
    run: OnceLock<String>,
}

impl Observer for Naming {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Named { run } = event {
            let _ = self.run.set((*run).to_owned());
        }
        if let Some(inner) = &self.inner {
            inner.observe(event);
        }
    }
}

/// How much time is left for a hook once the program is asked to stop. The platforms that run it kill what has not ended
/// after a while: systemd, as printed, after two minutes, Kubernetes after half a minute.
const GRACE: Duration = Duration::from_secs(5);

/// The variables of the environment that a command gets, besides those that say which run it is about.
const PASSED: [&str; 19] = [
    "BELLWETHER_DATA",
    "BELLWETHER_ROOT",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
];

/// Calls the hooks of a plan for a record, one after the other. Returns what went wrong, a line per hook.
async fn call_hooks(plan: &Plan, record: &RunRecord, stop: &CancellationToken) -> Vec<String> {
    let hooks = &plan.hooks;
    let (name, hook) = match record.outcome {
        Outcome::Success => ("on_success", &hooks.on_success),
        Outcome::Later => ("on_later", &hooks.on_later),
        Outcome::Failure => ("on_failure", &hooks.on_failure),
        Outcome::Interrupted => return Vec::new(),
    };
    let mut faults = Vec::new();
    if let Some(hook) = hook {
        let text = without_keys(&serde_json::to_string(record).expect("a record is text and numbers"));
        let (called, result) = match hook {
            Hook::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                (format!("`{program}`"), command(words, text, plan, record, stop).await)
            }
            Hook::Address(address) => {
                let url = address.as_url();
                (host_of(url), request(url, Some(text), hooks.timeout, stop).await)
            }
        };
        faults.extend(result.err().map(|fault| format!("the hook `{name}` failed: {called} {fault}")));
    }
    if let Some(address) = hooks.ping.as_ref().filter(|_| record.outcome == Outcome::Success) {
        let url = address.as_url();
        let result = request(url, None, hooks.timeout, stop).await;
        faults.extend(result.err().map(|fault| format!("the ping failed: {} {fault}", host_of(url))));
    }
    faults
}

/// Runs a command in the project's root with a text on its standard input.
async fn command(
    words: &[String],
    text: String,
    plan: &Plan,
    record: &RunRecord,
    stop: &CancellationToken,
) -> Result<(), String> {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if !plan.root.as_os_str().is_empty() {
        command.current_dir(&plan.root);
    }
    command.env_clear();
    for name in PASSED {
        if let Some(value) = std::env::var_os(name)
            && value.to_str().is_none_or(|value| without_keys(value) == value)
        {
            command.env(name, value);
        }
    }
    command.env("BELLWETHER_DEFINITION", &record.definition).env("BELLWETHER_OUTCOME", record.outcome.as_str());
    command.env("BELLWETHER_RUN", record.run.as_deref().unwrap_or_default());
    let (timeout, stop) = (plan.hooks.timeout, stop.clone());
    let waited = tokio::task::spawn_blocking(move || wait(&mut command, text, timeout, &stop)).await;
    waited.unwrap_or_else(|panic| Err(format!("was not run: {panic}")))
}

fn wait(command: &mut Command, text: String, timeout: Duration, stop: &CancellationToken) -> Result<(), String> {
    let begun = Instant::now();
    let mut running = RunningCommand::spawn(command).map_err(|error| format!("cannot be started: {error}"))?;
    if let Some(mut input) = running.child().stdin.take() {
        // A command may leave its input unread; the thread ends when the command does.
        let write = move || drop(input.write_all(text.as_bytes()));
        thread::Builder::new().spawn(write).map_err(|error| format!("was not given its input: {error}"))?;
    }
    let mut stopped: Option<Instant> = None;
    let fault = loop {
        match running.status().map_err(|error| format!("cannot be watched: {error}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("ended with {status}")),
            None => {}
        }
        if stop.is_cancelled() {
            stopped.get_or_insert_with(Instant::now);
        }
        if begun.elapsed() >= timeout {
            break format!("did not finish within {}", took(timeout));
        }
        if stopped.is_some_and(|at| at.elapsed() >= GRACE) {
            break stopped_short();
        }
        thread::sleep(Duration::from_millis(20));
    };
    // It has two seconds after SIGTERM before it is killed.
    running.end(Duration::from_secs(2));
    Err(fault)
}

fn stopped_short() -> String {
    format!("did not finish within {} after bellwether was stopped", took(GRACE))
}

/// Sends a request, with a body or to be answered; any status but a success is a fault.
async fn request(url: &Url, body: Option<String>, timeout: Duration, stop: &CancellationToken) -> Result<(), String> {
    let client = call::client(url, timeout)?;
    let request = match body {
        Some(body) => client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body),
        None => client.get(url.clone()),
    };
    let out_of_time = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let answer = tokio::select! {
        answer = request.send() => answer.map_err(|error| call::failure(error, timeout))?,
        () = out_of_time => return Err(stopped_short()),
    };
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("answered with status {}", status.as_u16())) }
}
