//! `bellwether check`: checks definitions without running them.

use bellwether::definition;
use bellwether::freshness::today;
use bellwether::plan::{Plan, Schedule};
use bellwether::project::Project;
use bellwether::run::latest_facts;
use bellwether::text::escape::escape;
use bellwether::text::problem::PlacedProblem;
use bellwether::time::Clock;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{AsJson, document};
use super::outcome::{Failure, Result, USAGE};
use super::schedule::next_times;
use super::typed::plan_of;
use super::{complain, say};

/// Definitions that were checked.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checked {
    definitions: Vec<Definition>,
}

/// A definition that was checked.
#[derive(Debug, Serialize, JsonSchema)]
struct Definition {
    /// Its file.
    path: String,
    /// Whether it can be run.
    ok: bool,
    /// Warnings.
    warnings: Vec<String>,
    /// What is wrong.
    problems: Vec<PlacedProblem>,
}

/// Warnings about the settings of a plan, and about its latest version.
fn warnings(plan: &Plan, project: &Project) -> Vec<String> {
    let mut warnings = plan.dataset.warnings();
    let split = latest_facts(&project.data(), &plan.name).and_then(|facts| facts.split_days);
    warnings.extend(split.map(|split| split.in_words(plan.dataset.dates)));
    warnings.extend(plan.dataset.calendar_note(today(plan, Clock::System.now())));
    warnings
}

/// Check definitions for errors.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// Definitions: names in `pipelines/`, or paths. Default: all of the project.
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<String>,

    #[command(flatten)]
    json: AsJson,
}

impl Check {
    pub(super) fn execute(mut self, project: &Project) -> Result<()> {
        if self.definitions.is_empty() {
            self.definitions = definition::names(&project.definitions())?;
        }
        if self.definitions.is_empty() {
            return plan_of(None, project).map(drop);
        }
        if self.json.is_wanted() {
            return self.told_as_json(project);
        }
        let mut last: Option<Failure> = None;
        for definition in &self.definitions {
            match plan_of(Some(definition), project) {
                Ok(plan) => {
                    let path = plan.path.to_string_lossy();
                    let path = escape(&path);
                    for warning in warnings(&plan, project) {
                        super::note(&format!("warning: {path}: {warning}"));
                    }
                    let times =
                        |schedule: &Schedule| format!("next times in {}:\n{}", schedule.timezone, next_times(schedule));
                    let times = plan.schedule.as_ref().map_or_else(String::new, times);
                    say(&format!("{path}: ok\n{times}"))?;
                }
                Err(error) => {
                    if let Some(earlier) = last.replace(error) {
                        complain(&earlier);
                        super::note("");
                    }
                }
            }
        }
        last.map_or(Ok(()), Err)
    }

    fn told_as_json(&self, project: &Project) -> Result<()> {
        let mut is_wrong = false;
        let definitions = self.definitions.iter().map(|given| match plan_of(Some(given), project) {
            Ok(plan) => {
                let path = plan.path.display().to_string();
                Definition { path, ok: true, warnings: warnings(&plan, project), problems: Vec::new() }
            }
            Err(error) => {
                is_wrong = true;
                let problems = match &error {
                    Failure::Library(error) if let Some(problems) = error.problems() => problems.list(),
                    error => {
                        let (message, hint) = (error.to_string(), error.hint());
                        vec![PlacedProblem { message, hint, line: None, column: None }]
                    }
                };
                let path = definition::path_of(given, &project.definitions()).display().to_string();
                Definition { path, ok: false, warnings: Vec::new(), problems }
            }
        });
        say(&document(Checked { definitions: definitions.collect() }))?;
        // The document says what is wrong.
        if is_wrong { Err(Failure::Reported { code: USAGE }) } else { Ok(()) }
    }
}
