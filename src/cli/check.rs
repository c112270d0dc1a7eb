//! `bellwether check`: checks definitions without running them.

use super::outcome::{Failure, Result};
use super::schedule::next_times;
use super::{complain, say};
use crate::escape::escaped;
use crate::plan::{Plan, Schedule};
use crate::project::Project;

/// Check definitions for errors.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// Definitions: names in `pipelines/`, or paths.
    #[arg(required = true, value_name = "FILE")]
    definitions: Vec<String>,
}

impl Check {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let mut last: Option<Failure> = None;
        for definition in &self.definitions {
            match Plan::find(definition, project) {
                Ok(plan) => {
                    let path = plan.path.to_string_lossy();
                    let path = escaped(&path);
                    for warning in plan.dataset.warnings() {
                        super::note(&format!("warning: {path}: {warning}"));
                    }
                    let times =
                        |schedule: &Schedule| format!("next times in {}:\n{}", schedule.timezone, next_times(schedule));
                    let times = plan.schedule.as_ref().map_or_else(String::new, times);
                    say(&format!("{path}: ok\n{times}"))?;
                }
                Err(error) => {
                    if let Some(earlier) = last.replace(error.into()) {
                        complain(&earlier);
                        super::note("");
                    }
                }
            }
        }
        last.map_or(Ok(()), Err)
    }
}
