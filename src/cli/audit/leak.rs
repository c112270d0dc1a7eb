//! `bellwether audit leak`: tests a dataset for look-ahead.

use bellwether::audit::TrialOutcome;
use bellwether::disk::file;
use bellwether::error::{Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{FetchItem, audit_leak};
use bellwether::text::human::{count_of, group_digits};
use bellwether::time::{Clock, unique_name};

use crate::cli::document::{AsJson, document};
use crate::cli::folders::Folders;
use crate::cli::include::Include;
use crate::cli::outcome::Result;
use crate::cli::store::{LocalFolders, StoreOption};
use crate::cli::typed::plan_of;
use crate::cli::{cancellable, say};

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
    folders: Folders,

    #[command(flatten)]
    store: StoreOption,
}

impl Leak {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = self.include.in_plan(plan_of(self.definition.as_deref(), project)?);
        let scratch = file::scratch(&self.folders.data(project), &unique_name(Clock::System.now()));
        let archive = self.folders.archive(project);
        let local = LocalFolders { archive: &archive, data: &self.folders.data(project) };
        self.store.fetch(Some(&plan), local, &[FetchItem::Runs(None)])?;
        let leak = cancellable(move |control| audit_leak(&plan, &archive, &scratch, control))?;
        let leaks = leak.count(TrialOutcome::Leak);
        if self.json.is_wanted() {
            say(&document(&leak))?;
        } else {
            for trial in &leak.trials {
                let rows = group_digits(trial.rows);
                let line = match (trial.outcome, &trial.reason) {
                    (TrialOutcome::Sound, _) => format!("ok              {rows:>12} rows  {}\n", trial.what),
                    (TrialOutcome::Leak, _) => format!("LEAK            {rows:>12} rows  {}\n", trial.what),
                    (TrialOutcome::NotApplicable, why) => {
                        let why = why.as_deref().unwrap_or_default();
                        format!("not applicable  {:>12} rows  {}: {why}\n", "-", trial.what)
                    }
                };
                say(&line)?;
            }
        }
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
