//! `bellwether run`: fetch, archive, join, publish.

use std::sync::OnceLock;

use bellwether::definition::TimeSpan;
use bellwether::disk::file;
use bellwether::run::{Interrupted, Options, WhenHeld, WhenLost};

use super::log::{Recording, warn};
use super::prelude::*;
use crate::schedule::{StatusDocument, execute, metrics};

/// Fetch the data of a definition and publish its dataset.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// A definition: its name in `pipelines/`, or a path. Without one, all are listed.
    definition: Option<String>,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    timings: Timings,

    /// Start over instead of resuming an interrupted run.
    #[arg(long)]
    fresh: bool,

    /// Begin a new archive although the definition asked another service before, or continue without runs that are
    /// missing.
    #[arg(long)]
    new_archive: bool,

    /// Wait for another run of the definition on this archive to finish: for an hour, or for the given time, such as
    /// `--wait=15m`. Without this option the command fails with exit code 75.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1h",
        value_parser = definition_value::<TimeSpan>
    )]
    wait: Option<TimeSpan>,

    /// Print nothing but errors.
    #[arg(long, short, help_heading = PROGRESS)]
    quiet: bool,

    /// Write metrics of the definition for Prometheus to a file, after the run.
    #[arg(long, value_name = "FILE", env = "BELLWETHER_METRICS", help_heading = PROGRESS)]
    metrics: Option<PathBuf>,

    #[command(flatten)]
    log: LogOptions,
}

impl Run {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let recording = self.timings.begin(self.log)?;
        let run = OnceLock::new();
        let result = self.run_definition(project, recording, &run);
        self.log.end(result, run.get().map(String::as_str))
    }

    /// Runs the definition; `run` gets the name of the run.
    fn run_definition(&self, project: &Project, recording: Option<Recording>, run: &OnceLock<String>) -> Result<()> {
        let plan = plan_of(self.definition.as_deref(), project)?;
        let observer = observer(match self.log.form {
            form if self.quiet => Form::Quiet(form),
            LogForm::Json => Form::Json(None),
            LogForm::Text => Form::Text,
        });
        let interrupted = if self.fresh { Interrupted::Leave } else { Interrupted::Resume };
        let when_held = self.wait.map_or(WhenHeld::Fail, |time| WhenHeld::Wait(time.0));
        let when_lost = if self.new_archive { WhenLost::BeginAnew } else { WhenLost::Fail };
        let data = self.folders.data_of(&plan.path, project)?;
        let folders = Folders { data: data.clone(), ..self.folders.of_project(project) };
        self.metrics.as_deref().map(file::target_of).transpose()?;
        let store = self.store.url(None)?;
        let summary = interruptible(observer, async |control| {
            let archive = folders.archive.clone();
            let options = Options { interrupted, when_held, when_lost, store, control, archive, ..Options::new(data) };
            let execution = execute(plan, options).await;
            if let Some(record) = execution.record {
                record.run.map(|name| run.set(name));
                self.write_metrics(&folders);
            }
            execution.result
        });
        let summary = summary.map_err(Failure::of_run)?;
        // The JSON summary always has the timings.
        self.timings.tell(Some(&summary).filter(|_| self.log.form == LogForm::Text), recording)?;
        match self.log.form {
            _ if self.quiet => Ok(()),
            LogForm::Json => say(&document(&summary)),
            LogForm::Text => say(&summary.to_string()),
        }
    }

    /// Writes the metrics. If they cannot be written, that is a warning.
    fn write_metrics(&self, folders: &Folders) {
        let Some(path) = &self.metrics else { return };
        let is_name = |definition: &&String| !definition.contains(['/', '.']);
        let names: Vec<String> = self.definition.iter().filter(is_name).cloned().collect();
        let status = StatusDocument::read(folders, &names, None, Clock::System.now());
        if let Err(error) = status.and_then(|status| metrics::write(path, &status)) {
            warn(self.log.form, &format!("cannot write the metrics: {error}"));
        }
    }
}
