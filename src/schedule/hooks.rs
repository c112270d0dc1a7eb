//! Hooks: commands and addresses that are called after a run, with its record as JSON.
//!
//! A hook never changes the outcome of a run. It has a limited time, after which a command is killed with everything that
//! it started. It never gets the API key: variables of the environment that hold it are removed, and the record has none.
//! Redirects are not followed. Messages name the program or the host only, since an address may be a secret.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, redirect};
use url::Url;

use super::record::{Outcome, RunRecord};
use crate::address::host_of;
use crate::child::Running;
use crate::human::took;
use crate::key_source::VARIABLE;
use crate::plan::{Hook, Hooks};
use crate::secret::without_keys;
use crate::tls;

/// How often to check on a command.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Calls the hooks for a record, one after the other. Returns what went wrong, a line per hook.
pub(super) async fn call(hooks: &Hooks, record: &RunRecord) -> Vec<String> {
    let (name, hook) = match record.outcome {
        Outcome::Success => ("on_success", &hooks.on_success),
        Outcome::Later => ("on_later", &hooks.on_later),
        Outcome::Failure => ("on_failure", &hooks.on_failure),
        Outcome::Interrupted => return Vec::new(),
    };
    let mut faults = Vec::new();
    if let Some(hook) = hook {
        let text = without_keys(&serde_json::to_string(record).expect("a record is text and numbers"));
        let (of, result) = match hook {
            Hook::Command(words) => {
                let of = format!("`{}`", words.first().map_or("", String::as_str));
                (of, command(words.clone(), text, record, hooks.timeout).await)
            }
            Hook::Address(address) => {
                let url = address.as_url();
                (host_of(url), request(Method::POST, url, Some(text), hooks.timeout).await)
            }
        };
        faults.extend(result.err().map(|fault| format!("the hook `{name}` failed: {of} {fault}")));
    }
    if let Some(address) = hooks.ping.as_ref().filter(|_| record.outcome == Outcome::Success) {
        let result = request(Method::GET, address.as_url(), None, hooks.timeout).await;
        faults.extend(result.err().map(|fault| format!("the ping failed: {} {fault}", host_of(address.as_url()))));
    }
    faults
}

/// Runs a command with a text on its standard input.
async fn command(words: Vec<String>, text: String, record: &RunRecord, timeout: Duration) -> Result<(), String> {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let has_key = |value: &str| without_keys(value) != value;
    for (name, value) in std::env::vars_os() {
        if name == VARIABLE || value.to_str().is_some_and(has_key) {
            command.env_remove(name);
        }
    }
    command.env("BELLWETHER_DEFINITION", &record.definition).env("BELLWETHER_OUTCOME", record.outcome.as_str());
    command.env("BELLWETHER_RUN", record.run.as_deref().unwrap_or_default());
    let waited = tokio::task::spawn_blocking(move || wait(&mut command, text, timeout)).await;
    waited.unwrap_or_else(|panic| Err(format!("was not run: {panic}")))
}

fn wait(command: &mut Command, text: String, timeout: Duration) -> Result<(), String> {
    let begun = Instant::now();
    let mut running = Running::spawn(command).map_err(|error| format!("cannot be started: {error}"))?;
    if let Some(mut input) = running.child().stdin.take() {
        // A command may leave its input unread; the thread ends when the command does.
        let write = move || {
            let _ = input.write_all(text.as_bytes());
        };
        thread::Builder::new().spawn(write).map_err(|error| format!("was not given its input: {error}"))?;
    }
    loop {
        match running.status() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended with {status}")),
            Ok(None) if begun.elapsed() >= timeout => return Err(format!("did not finish within {}", took(timeout))),
            Ok(None) => thread::sleep(LOOK_EVERY),
            Err(error) => return Err(format!("cannot be watched: {error}")),
        }
    }
}

/// Sends a request; any status but a success is a fault.
async fn request(method: Method, url: &Url, body: Option<String>, timeout: Duration) -> Result<(), String> {
    let client = tls::client()
        .user_agent(concat!("bellwether/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .timeout(timeout);
    // Plain HTTP needs no certificates, and a system without any must not fail.
    let client = if url.scheme() == "http" { client.tls_certs_only([]) } else { client };
    let failed = |error: reqwest::Error| {
        let error = error.without_url();
        let why = std::iter::successors(std::error::Error::source(&error), |reason| reason.source()).last();
        match why {
            _ if error.is_timeout() => format!("did not answer within {}", took(timeout)),
            Some(why) => format!("cannot be reached: {why}"),
            None => format!("cannot be reached: {error}"),
        }
    };
    let mut request = client.build().map_err(failed)?.request(method, url.clone());
    if let Some(body) = body {
        request = request.header(CONTENT_TYPE, "application/json").body(body);
    }
    let status = request.send().await.map_err(failed)?.status();
    if status.is_success() { Ok(()) } else { Err(format!("answered with status {}", status.as_u16())) }
}
