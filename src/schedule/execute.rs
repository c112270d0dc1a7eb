//! Runs a definition and keeps its record: the journal, the hooks.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bellwether::error::{Error, ErrorKind, Result};
use bellwether::plan::Plan;
use bellwether::run::{self, Control, Event, Observer, Options, Summary};
use chrono::{DateTime, Utc};

use super::record::{Outcome, RunRecord};
use super::{hooks, journal};

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
    let execution = perform(plan, options, None).await;
    if let Some(record) = &execution.record
        && let Err(error) = conclude(&own, record, &after).await
    {
        warn_of_journal(&after.control, record, &error);
    }
    execution
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
    let after = options.clone();
    let Execution { record, result } = perform(plan, options, None).await;
    if let Some(record) = record
        && let Err(error) = journal::append(&after.data, &record)
    {
        warn_of_journal(&after.control, &record, &error);
    }
    result
}

/// Runs a definition, for a due time or manually.
pub(super) async fn perform(plan: Plan, mut options: Options, due: Option<DateTime<Utc>>) -> Execution {
    let (begun, clock) = (Instant::now(), options.clock);
    let mut record = RunRecord::begin(&plan.name, due, clock.now());
    record.service = Some(plan.service.name.clone());
    options.known_runs = journal::sealed_runs(&options.data, &plan);
    let naming = Arc::new(Naming { inner: options.control.observer.take(), run: OnceLock::new() });
    options.control.observer = Some(Arc::clone(&naming) as Arc<dyn Observer>);
    let trusted = if plan.hooks.is_empty() { Ok(()) } else { plan.require_trust() };
    let result = match trusted {
        Ok(()) => run::run(plan, options).await,
        Err(error) => Err(error),
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
            for fault in hooks::call(plan, record, &options.control.stop).await {
                warn(&options.control, &fault);
            }
        }
        Err(_) if record.outcome == Outcome::Failure => {}
        Err(error) => warn(&options.control, &format!("no hook was called: {error}")),
    }
    appended
}

/// Warns that the line of a run is missing. If the run failed, the disk may be why, and what failed is reported already.
fn warn_of_journal(control: &Control, record: &RunRecord, error: &Error) {
    if record.outcome != Outcome::Failure {
        warn(control, &format!("the run is missing in the journal: {error}"));
    }
}

fn warn(control: &Control, text: &str) {
    if let Some(observer) = &control.observer {
        observer.observe(&Event::Warning { message: text });
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
