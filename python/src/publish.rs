//! Runs and builds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether::archive::RunListing;
use bellwether::error::{Error, Result};
use bellwether::key::ApiKey;
use bellwether::key::source::KeySource;
use bellwether::plan::{Plan, Source};
use bellwether::run::{
    BuildOptions, Control, Event, Interrupted, Options, WhenHeld, WhenUnchanged, store_of_environment,
};
use bellwether::time::Clock;
use chrono::{NaiveTime, TimeDelta};
use pyo3::prelude::*;

use crate::arguments::{DataState, day, invalid};
use crate::definition::DefinitionArgument;
use crate::events::Events;
use crate::fault;
use crate::supervise::{json, supervise};

/// When runs of the demo begin whose day is set: none is before its day, or after it.
const NOON: NaiveTime = NaiveTime::from_hms_opt(12, 0, 0).expect("noon is a time");

/// An API key, which is never shown.
#[pyclass(frozen, module = "bellwether._bellwether")]
pub(crate) struct Key(pub(crate) ApiKey);

#[pymethods]
impl Key {
    #[new]
    fn new(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        // A refusal never has the value.
        let refused = |refusal: &str| {
            let error = Error::usage(format!("invalid value for `key`: {refusal}"), "give the API key as text");
            fault::exception(text.py(), &error)
        };
        let key: String = text.extract().map_err(|_| refused("it is not text"))?;
        ApiKey::new(&key).map(Self).ok_or_else(|| refused("it is empty"))
    }

    fn __repr__(&self) -> &'static str {
        "Key(…)"
    }
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
    definition: DefinitionArgument,
    folders: (PathBuf, PathBuf),
    options: RunOptions,
    key: Option<Py<Key>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let key = key.map(|key| key.get().0.clone());
    let RunOptions { fresh, wait, today } = options;
    let when_held = match wait {
        Some(seconds) => WhenHeld::Wait(Duration::try_from_secs_f64(seconds).map_err(|error| {
            fault::exception(py, &invalid("wait", seconds, error, "wait for a number of seconds, such as 900"))
        })?),
        None => WhenHeld::Fail,
    };
    let events = Events::default();
    let observer = events.clone();
    let mut look = || events.pass_on(py, progress.as_ref());
    let summary = supervise(py, &mut look, move |stop| {
        let control = Control { observer: Some(Arc::new(observer)), stop: stop.clone() };
        let mut plan = definition.plan_or_published(&folders.0)?;
        let clock = clock(&plan, today.as_deref(), &folders.1)?;
        take_key(&mut plan, key);
        let options = Options {
            archive: folders.1,
            clock,
            interrupted: if fresh { Interrupted::Leave } else { Interrupted::Resume },
            when_held,
            store: store_of_environment()?,
            control,
            ..Options::new(folders.0)
        };
        block_on(bellwether_cli::schedule::run_recorded(plan, options))
    })?;
    Ok((json(&summary), summary.to_string()))
}

/// Builds and publishes the dataset of a definition from the archive. Returns the summary as JSON, and as text.
#[pyfunction]
pub(crate) fn build(
    py: Python<'_>,
    definition: DefinitionArgument,
    folders: (PathBuf, PathBuf),
    state: (Option<String>, Option<String>, Option<String>),
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let events = Events::default();
    let observer = events.clone();
    let mut look = || events.pass_on(py, progress.as_ref());
    let summary = supervise(py, &mut look, move |stop| {
        let control = Control { observer: Some(Arc::new(observer)), stop: stop.clone() };
        let (as_of, vintage, include) = state;
        let state = DataState { as_of, vintage, include };
        let (plan, ad_hoc, note) =
            state.find(definition.plan_or_published(&folders.0)?, (&folders.0, &folders.1), stop)?;
        note.iter().for_each(|message| control.observe(Event::Warning { message }));
        let store = store_of_environment()?;
        let when_unchanged = WhenUnchanged::Return;
        let options = BuildOptions { ad_hoc, when_unchanged, store, control, ..BuildOptions::new(folders.1) };
        block_on(bellwether::run::build(plan, folders.0, options))
    })?;
    Ok((json(&summary), summary.to_string()))
}

/// The clock of a run; for the demo service, it may be set to an earlier day. Runs of that day follow one another.
fn clock(plan: &Plan, today: Option<&str>, archive: &Path) -> Result<Clock> {
    match (today.map(|text| day("today", text)).transpose()?, &plan.source) {
        (None, _) => Ok(Clock::System),
        (Some(today), Source::Demo { .. }) => {
            let noon = today.and_time(NOON).and_utc();
            let runs = RunListing::of(archive).map(|listed| listed.runs).unwrap_or_default();
            let of_today = runs.iter().map(|run| run.sealed_at).filter(|sealed_at| sealed_at.date_naive() == today);
            let next = of_today.max().map(|last| last + TimeDelta::microseconds(1));
            Ok(Clock::Fixed(next.map_or(noon, |next| next.max(noon))))
        }
        (Some(_), Source::Remote(_)) => Err(Error::usage(
            "`today` is for the demo service: what another service says is observed now",
            "leave it out, or use `service = \"demo\"`",
        )),
    }
}

pub(crate) fn take_key(plan: &mut Plan, key: Option<ApiKey>) {
    if let (Source::Remote(remote), Some(key)) = (&mut plan.source, key) {
        remote.key = KeySource::Given(key);
    }
}

/// Runs asynchronous work on this thread. One thread is enough for the network: bodies are decoded on others.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::start)?.block_on(work)
}
