//! `bellwether doctor`: checks everything that a run needs.

use bellwether::error::{Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{Diagnosis, Health, Options, doctor};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;
use bellwether::time::Clock;
use console::Style;
use schemars::JsonSchema;
use serde::Serialize;

use crate::schedule::sealed_runs;

use super::interruptible;
use super::options::{FolderOptions, Folders, StoreOption, named_plan};
use super::talk::{AsJson, Result, columns, document, say, say_in_color, wrap};

/// Check everything that a run needs.
///
/// The definition, the API key, both addresses and their certificates, the operations that the service still offers, its
/// sectors, the store, the clock, the disks, and the archive: whatever a run would refuse. Each problem has a remedy.
#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
    /// A definition: its name in `pipelines/`, or a path. Without one, only this machine is checked.
    definition: Option<String>,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Doctor {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = named_plan(self.definition.as_deref(), project)?;
        let Folders { data, archive, .. } = self.folders.of_project(project);
        let mut found = Vec::new();
        if let Some(plan) = &plan {
            found.push(Diagnosis::ok("definition", plan.path.display().to_string()));
        }
        let (clock, store) = (Clock::System, self.store.url(None)?);
        let known_runs = plan.as_ref().map_or_else(Vec::new, |plan| sealed_runs(&data, plan));
        found.extend(interruptible(None, async |control| {
            doctor(plan, Options { archive, known_runs, store, clock, control, ..Options::new(data) }).await
        })?);
        match self.json.is_wanted() {
            true => say(&document(Diagnoses { checks: &found }))?,
            false => say_in_color(&describe(&found))?,
        }
        match found.iter().filter(|one| one.health == Health::Failed).count() {
            0 => Ok(()),
            count => {
                let checks = count_of(count as u64, "check", "checks");
                Err(Error::new(ErrorKind::Service, format!("{checks} failed")).into())
            }
        }
    }
}

/// The checks of everything that a run needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Diagnoses<'a> {
    checks: &'a [Diagnosis],
}

/// The column of the findings.
const FOUND: usize = 26;

fn describe(found: &[Diagnosis]) -> Vec<(Style, String)> {
    let mut text = Vec::new();
    for Diagnosis { check, health, found, remedy } in found {
        let (mark, style) = match health {
            Health::Ok => ("ok", Style::new().green()),
            Health::Warning => ("warning", Style::new().yellow().bold()),
            Health::Failed => ("failed", Style::new().red().bold()),
            Health::NotApplicable => ("-", Style::new()),
        };
        let fitted = |text: String| wrap(&text, FOUND, columns()) + "\n";
        let line = fitted(format!("{mark:7}  {check:15}  {}", escape(found)));
        text.push((style, line[..mark.len()].to_owned()));
        text.push((Style::new(), line[mark.len()..].to_owned()));
        if let Some(remedy) = remedy {
            text.push((Style::new().cyan().bold(), fitted(format!("{:FOUND$}{}", "", escape(remedy)))));
        }
    }
    text
}
