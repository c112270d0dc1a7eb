//! `bellwether doctor`: checks everything that a run needs.

use bellwether::run::{Diagnosis, Health, Options};
use console::Style;

use super::prelude::*;
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
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Doctor {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = named_plan(self.definition.as_deref(), project)?;
        let Folders { data, archive, .. } = self.folders.of_project(project);
        let definition = plan.as_ref().map(|plan| Diagnosis::ok("definition", plan.path.display().to_string()));
        let (clock, store) = (Clock::System, self.store.url(None)?);
        let known_runs = plan.as_ref().map_or_else(Vec::new, |plan| sealed_runs(&data, plan));
        let mut found = Vec::from_iter(definition);
        found.extend(interruptible(None, async |control| {
            run::doctor(plan, Options { archive, known_runs, store, clock, control, ..Options::new(data) }).await
        })?);
        match self.json.is_wanted() {
            true => say(&document(Diagnoses { checks: &found }))?,
            false => say_in_color(&describe(&found))?,
        }
        match found.iter().filter(|one| one.health == Health::Failed).count() as u64 {
            0 => Ok(()),
            count => Err(Error::new(ErrorKind::Service, count_of(count, "check", "checks") + " failed").into()),
        }
    }
}

/// The checks of everything that a run needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Diagnoses<'a> {
    checks: &'a [Diagnosis],
}

fn describe(found: &[Diagnosis]) -> Vec<(Style, String)> {
    let mut text = Vec::new();
    for Diagnosis { check, health, found, remedy } in found {
        let (mark, style) = match health {
            Health::Ok => ("ok", Style::new().green()),
            Health::Warning => ("warning", Style::new().yellow().bold()),
            Health::Failed => ("failed", Style::new().red().bold()),
            Health::NotApplicable => ("-", Style::new()),
        };
        let line = wrap(&format!("{mark:7}  {check:15}  {}\n", escape(found)), 26, columns());
        text.extend([(style, mark.to_owned()), (Style::new(), line[mark.len()..].to_owned())]);
        if let Some(remedy) = remedy {
            let line = wrap(&format!("{:26}{}\n", "", escape(remedy)), 26, columns());
            text.push((Style::new().cyan().bold(), line));
        }
    }
    text
}
