//! Runs and builds, and the program `bellwether` as the package installs it.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use bellwether::archive::RunListing;
use bellwether::error::{Error, Result};
use bellwether::plan::{Plan, Source};
use bellwether::run::{BuildOptions, Event, Interrupted, Options, WhenHeld, WhenUnchanged, store_of_environment};
use bellwether::time::Clock;
use chrono::{NaiveTime, TimeDelta};
use pyo3::prelude::*;

use crate::arguments::{Key, Subject, day, invalid, optional, take_key};
use crate::call::{block_on, call, json};

/// Runs the command line and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| bellwether_cli::main_with(arguments))
}

/// The options of a run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunOptions {
    /// Start over instead of resuming an interrupted run.
    fresh: bool,
    /// How long to wait for another run of the definition, in seconds.
    wait: Option<f64>,
    /// The current day of the demo service.
    today: Option<String>,
}

/// Fetches the data of a definition and publishes its dataset. Returns the summary as JSON, and as text.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    subject: Subject,
    options: RunOptions,
    key: Option<Key>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let summary = call(py, progress.as_ref(), move |control| {
        let when_held = match options.wait.map(|seconds| (seconds, Duration::try_from_secs_f64(seconds))) {
            None => WhenHeld::Fail,
            Some((_, Ok(wait))) => WhenHeld::Wait(wait),
            Some((seconds, Err(error))) => {
                let refusal = format!("{error}\nwait for a number of seconds, such as 900");
                return Err(invalid("wait", seconds, &refusal));
            }
        };
        let mut plan = subject.plan()?;
        let clock = clock(&plan, options.today.as_deref(), &subject.archive)?;
        take_key(&mut plan, key);
        let options = Options {
            archive: subject.archive,
            clock,
            interrupted: if options.fresh { Interrupted::Leave } else { Interrupted::Resume },
            when_held,
            store: store_of_environment()?,
            control: control.clone(),
            ..Options::new(subject.data)
        };
        block_on(bellwether_cli::schedule::run_recorded(plan, options))
    })?;
    Ok((json(&summary), summary.to_string()))
}

/// Builds and publishes the dataset of a definition from the archive. Returns the summary as JSON, and as text.
#[pyfunction]
pub(crate) fn build(py: Python<'_>, subject: Subject, progress: Option<Py<PyAny>>) -> PyResult<(String, String)> {
    let summary = call(py, progress.as_ref(), move |control| {
        let (plan, ad_hoc, note) = subject.past(control)?;
        note.iter().for_each(|message| control.observe(Event::Warning { message }));
        let options = BuildOptions {
            ad_hoc,
            when_unchanged: WhenUnchanged::Return,
            store: store_of_environment()?,
            control: control.clone(),
            ..BuildOptions::new(subject.archive)
        };
        block_on(bellwether::run::build(plan, subject.data, options))
    })?;
    Ok((json(&summary), summary.to_string()))
}

/// The clock of a run; for the demo service, it may be set to an earlier day. Runs of that day follow one another.
fn clock(plan: &Plan, today: Option<&str>, archive: &Path) -> Result<Clock> {
    let Some(today) = optional("today", today, day)? else { return Ok(Clock::System) };
    if let Source::Remote(_) = plan.source {
        let what = "`today` is for the demo service: what another service says is observed now";
        return Err(Error::usage(what, "leave it out, or use `service = \"demo\"`"));
    }
    // No run is before its day, or after it.
    let noon = today.and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(12);
    let runs = RunListing::of(archive).map(|listed| listed.runs).unwrap_or_default();
    let of_today = runs.iter().map(|run| run.sealed_at).filter(|sealed_at| sealed_at.date_naive() == today);
    let next = of_today.max().map(|last| last + TimeDelta::microseconds(1));
    Ok(Clock::Fixed(next.map_or(noon, |next| next.max(noon))))
}
