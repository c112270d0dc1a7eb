//! `bellwether doctor`: checks everything that a run needs.

use bellwether::error::{Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{Control, Diagnosis, DoctorOptions, Health, doctor};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;
use bellwether::time::Clock;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{AsJson, document};
use super::folders::Folders;
use super::outcome::Result;
use super::store::StoreOption;
use super::talk::{Color, say_in_color};
use super::typed::plan_of;
use super::wrap::{columns, wrap};
use super::{interruptible, say};
use crate::schedule::sealed_runs;

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
    folders: Folders,

    #[command(flatten)]
    store: StoreOption,
}

impl Doctor {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = self.definition.as_deref().map(|name| plan_of(Some(name), project)).transpose()?;
        let (data, archive) = (self.folders.data(project), self.folders.archive(project));
        let mut found = Vec::new();
        if let Some(plan) = &plan {
            found.push(Diagnosis::ok("definition", plan.path.display().to_string()));
        }
        let (clock, store) = (Clock::System, self.store.url()?);
        let known_runs = plan.as_ref().map_or_else(Vec::new, |plan| sealed_runs(&data, plan));
        found.extend(interruptible(async |stop| {
            let control = Control { stop, ..Control::default() };
            doctor(plan, DoctorOptions { data, archive, known_runs, store, clock, control }).await
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

fn describe(found: &[Diagnosis]) -> Vec<(Color, String)> {
    let mut text = Vec::new();
    for Diagnosis { check, health, found, remedy } in found {
        let (mark, color) = match health {
            Health::Ok => ("ok", Color::Green),
            Health::Warning => ("warning", Color::Yellow),
            Health::Failed => ("failed", Color::Red),
            Health::NotApplicable => ("-", Color::Plain),
        };
        let fitted = |text: String| wrap(&text, FOUND, columns()) + "\n";
        let line = fitted(format!("{mark:7}  {check:15}  {}", escape(found)));
        text.push((color, line[..mark.len()].to_owned()));
        text.push((Color::Plain, line[mark.len()..].to_owned()));
        if let Some(remedy) = remedy {
            text.push((Color::Cyan, fitted(format!("{:FOUND$}{}", "", escape(remedy)))));
        }
    }
    text
}
