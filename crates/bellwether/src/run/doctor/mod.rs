//! Checks of everything that a run needs: the key, the service, the clock, the disk and the archive.
//!
//! What a run would refuse before its first request, a check finds. Each is bounded in time and independent of the others,
//! as far as it can be. Nothing is written but a small object in the store, which is removed again.

mod local;
mod service;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::blocking;
use super::observer::Control;
use crate::error::{Error, Result};
use crate::plan::{Plan, StoreUrl};
use crate::time::Clock;

/// The check of the clock.
const CLOCK: &str = "clock";

/// The result of a check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// What was checked.
    pub check: &'static str,
    /// Its status.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// How to fix it.
    pub remedy: Option<String>,
}

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// No problem.
    Ok,
    /// A run would succeed, but there is something to fix.
    Warning,
    /// A run would fail.
    Failed,
    /// There is nothing to check.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Diagnosis {
    /// A check without a problem.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, health: Health::Ok, found: found.into(), remedy: None }
    }

    fn none(check: &'static str, found: impl Into<String>) -> Self {
        Self { health: Health::NotApplicable, ..Self::ok(check, found) }
    }

    fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Warning, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    fn failure(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Failed, ..Self::warning(check, found, remedy) }
    }

    fn of_error(check: &'static str, error: &Error) -> Self {
        let found = error.causes().fold(error.to_string(), |found, cause| format!("{found}: {cause}"));
        Self { check, health: Health::Failed, found, remedy: error.hint().map(str::to_owned) }
    }
}

/// The options of the checks.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// The folder of datasets and evidence.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// Runs of the definition that are known to have been sealed in the archive of its service.
    pub known_runs: Vec<String>,
    /// The object store to use instead of the definition's.
    pub store: Option<StoreUrl>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the checks.
    pub control: Control,
}

/// Checks everything that a run of a plan needs, or without a plan what every run needs.
///
/// # Errors
///
/// [`ErrorKind::Interrupted`](crate::error::ErrorKind::Interrupted) when it was cancelled. What is wrong with the project is in the diagnoses.
///
/// # Cancel safety
///
/// Dropping it ends the checks.
pub async fn doctor(plan: Option<Plan>, options: DoctorOptions) -> Result<Vec<Diagnosis>> {
    let Some(plan) = plan else {
        let mut found = vec![Diagnosis::none("service", "no definition was named")];
        found.extend(blocking(move || Ok(local::of_machine(&options))).await?);
        return Ok(found);
    };
    let all = async {
        let mut found = service::of_connection(&plan, &options).await;
        let in_store = match service::of_store(&plan, &options).await {
            Some(Ok((diagnosis, in_store))) => {
                found.push(diagnosis);
                in_store
            }
            Some(Err(error)) => {
                found.push(Diagnosis::of_error("store", &error));
                None
            }
            None => None,
        };
        (found, in_store)
    };
    let (mut found, in_store) = tokio::select! {
        all = all => all,
        () = options.control.stop.cancelled() => return Err(Error::interruption()),
    };
    found.extend(blocking(move || Ok(local::of_plan(&plan, &options, in_store.as_ref()))).await?);
    Ok(found)
}
