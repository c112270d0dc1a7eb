//! `bellwether audit leak`: tests a dataset for look-ahead.

use bellwether::audit::TrialOutcome;
use bellwether::disk::file;
use bellwether::time::unique_name;

use crate::cli::prelude::*;

/// Test a dataset for look-ahead: remove future data, and plant canaries in a copy of the archive.
#[derive(Debug, clap::Args)]
pub(super) struct Leak {
    /// A definition: its name in `pipelines/`, or a path. Without one, all are listed.
    definition: Option<String>,

    #[command(flatten)]
    include: Include,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Leak {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = self.include.in_plan(plan_of(self.definition.as_deref(), project)?);
        let folders = self.folders.of_project(project);
        let scratch = file::scratch(&folders.data, &unique_name(Clock::System.now()));
        self.store.fetch(Some(&plan), &folders, &[FetchItem::Runs(None)])?;
        let leak = cancellable(move |control| run::audit_leak(&plan, &folders.archive, &scratch, control))?;
        let leaks = leak.count(TrialOutcome::Leak);
        let describe = || {
            let mut text = String::new();
            for trial in &leak.trials {
                let (rows, what) = (group_digits(trial.rows), &trial.what);
                text += &match trial.outcome {
                    TrialOutcome::Sound => format!("ok              {rows:>12} rows  {what}\n"),
                    TrialOutcome::Leak => format!("LEAK            {rows:>12} rows  {what}\n"),
                    TrialOutcome::NotApplicable => {
                        let why = trial.reason.as_deref().unwrap_or_default();
                        format!("not applicable  {:>12} rows  {what}: {why}\n", "-")
                    }
                };
            }
            if leaks == 0 {
                let not_applicable = match leak.count(TrialOutcome::NotApplicable) {
                    0 => String::new(),
                    count => format!(", {count} of them not applicable"),
                };
                text += &format!("{} trials{not_applicable}: no look-ahead found\n", leak.trials.len());
            }
            text
        };
        self.json.say(|| &leak, describe)?;
        if leaks == 0 {
            return Ok(());
        }
        // A dataset with look-ahead is a bug.
        let (trials, name) = (count_of(leaks as u64, "trial", "trials"), &leak.dataset);
        let what = format!("{trials} found look-ahead in `{name}`; this is a bug in bellwether");
        Err(Error::new(ErrorKind::Internal, what).into())
    }
}
