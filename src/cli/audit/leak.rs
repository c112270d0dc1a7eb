//! `bellwether audit leak`: tests a dataset for look-ahead.

use crate::cli::cancellable;
use crate::cli::options::{FolderOptions, Include, StoreOption, plan_of};
use crate::cli::talk::{AsJson, Result, say};
use bellwether::audit::{Trial, TrialOutcome};
use bellwether::disk::file;
use bellwether::error::{Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{FetchItem, audit_leak};
use bellwether::text::human::{count_of, group_digits};
use bellwether::time::{Clock, unique_name};

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
        let leak = cancellable(move |control| audit_leak(&plan, &folders.archive, &scratch, control))?;
        let leaks = leak.count(TrialOutcome::Leak);
        self.json.say(|| &leak, || leak.trials.iter().map(line).collect())?;
        if leaks > 0 {
            // A dataset with look-ahead is a bug.
            let (trials, name) = (count_of(leaks as u64, "trial", "trials"), &leak.dataset);
            let what = format!("{trials} found look-ahead in `{name}`; this is a bug in bellwether");
            return Err(Error::new(ErrorKind::Internal, what).into());
        }
        if self.json.is_wanted() {
            return Ok(());
        }
        let not_applicable = match leak.count(TrialOutcome::NotApplicable) {
            0 => String::new(),
            count => format!(", {count} of them not applicable"),
        };
        say(&format!("{} trials{not_applicable}: no look-ahead found\n", leak.trials.len()))
    }
}

fn line(trial: &Trial) -> String {
    let (rows, what) = (group_digits(trial.rows), &trial.what);
    match trial.outcome {
        TrialOutcome::Sound => format!("ok              {rows:>12} rows  {what}\n"),
        TrialOutcome::Leak => format!("LEAK            {rows:>12} rows  {what}\n"),
        TrialOutcome::NotApplicable => {
            let why = trial.reason.as_deref().unwrap_or_default();
            format!("not applicable  {:>12} rows  {what}: {why}\n", "-")
        }
    }
}
