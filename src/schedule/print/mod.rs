//! What to install so that a platform runs the definitions: a file per platform, with absolute paths.
//!
//! Platforms that keep a process alive (systemd, launchd) get one that runs `bellwether schedule`, which does the rest.
//! cron and GitHub Actions call `bellwether schedule --once`, which runs what is due and knows the time zones. Kubernetes and
//! Airflow have schedules with time zones of their own: there a definition is a job of its own, and `bellwether run` is
//! what they call.
//!
//! The key comes from a file that the platform provides, named by `BELLWETHER_API_KEY_FILE`; it is never part of what is
//! printed.

mod airflow;
mod crontab;
mod github_actions;
mod kubernetes;
mod launchd;
mod systemd;

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::definitions::{files, nothing_scheduled};
use super::status::Folders;
use crate::error::{Error, Result};
use crate::file::FileError;
use crate::plan::{Plan, Schedule};

/// A platform that runs programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// A systemd service.
    Systemd,
    /// A line for a crontab.
    Crontab,
    /// A launchd agent of macOS.
    Launchd,
    /// Kubernetes CronJobs.
    Kubernetes,
    /// Airflow DAGs.
    Airflow,
    /// A GitHub Actions workflow.
    GithubActions,
}

impl Platform {
    /// Every platform.
    pub const ALL: [Self; 6] =
        [Self::Systemd, Self::Crontab, Self::Launchd, Self::Kubernetes, Self::Airflow, Self::GithubActions];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Crontab => "crontab",
            Self::Launchd => "launchd",
            Self::Kubernetes => "kubernetes",
            Self::Airflow => "airflow",
            Self::GithubActions => "github-actions",
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|platform| platform.as_str() == text);
        found.ok_or_else(|| format!("unknown platform `{text}`"))
    }
}

/// What the printed files are about.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program.
    program: PathBuf,
    /// The root of the project.
    root: PathBuf,
    /// The folder of datasets.
    data: PathBuf,
    /// The archive.
    archive: PathBuf,
    /// The definitions that have a schedule.
    plans: Vec<(Plan, Schedule)>,
}

impl Setup {
    /// What there is in a project.
    ///
    /// # Errors
    ///
    /// If a definition is invalid, none has a schedule, or a path cannot be made absolute.
    pub fn of(root: &Path, folders: &Folders) -> Result<Self> {
        let absolute = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let found = path.canonicalize().or_else(|_| std::path::absolute(path));
            found.map_err(FileError::read(path))
        };
        let mut plans = Vec::new();
        for path in files(&folders.definitions)?.into_values() {
            let plan = Plan::of(crate::definition::find(&path.to_string_lossy(), &folders.definitions)?)?;
            plans.extend(plan.schedule.clone().map(|schedule| (plan, schedule)));
        }
        if plans.is_empty() {
            return Err(nothing_scheduled(&folders.definitions));
        }
        let program = env::current_exe().map_err(Error::start)?;
        Ok(Self {
            program: absolute(&program)?,
            root: absolute(root)?,
            data: absolute(&folders.data)?,
            archive: absolute(&folders.archive)?,
            plans,
        })
    }

    /// The words of a command of the program: its name, the given ones, and the folders.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut all = vec![text(&self.program)];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all.extend(["--directory".to_owned(), text(&self.root), "--data".to_owned(), text(&self.data)]);
        if self.archive != self.data.join("archive") {
            all.extend(["--archive".to_owned(), text(&self.archive)]);
        }
        all
    }

    /// The definitions with their schedules, as comments.
    fn listed(&self) -> String {
        let line = |(plan, schedule): &(Plan, Schedule)| {
            format!("#   {}: {} in {}\n", plan.name, schedule.cron, schedule.timezone)
        };
        self.plans.iter().map(line).collect()
    }

    /// The five fields of a schedule.
    fn five_fields(plan: &Plan, schedule: &Schedule, platform: &str) -> Result<String> {
        schedule.cron.five_fields().ok_or_else(|| {
            let what = format!("the schedule of `{}` has seconds, which {platform} does not have", plan.name);
            Error::usage(what, "leave the seconds out, or use `bellwether schedule`")
        })
    }
}

/// What the exit codes mean, as comments.
const EXIT_CODES: &str = "\
# Exit codes: 0 published; 75 a temporary failure, the next start resumes; 4 a check of the data failed and nothing was
# published; 2 an invalid definition; 130 interrupted, the next start resumes; 1 any other failure.
";

/// The file for a platform.
///
/// # Errors
///
/// If a schedule cannot be expressed there.
pub fn print(platform: Platform, setup: &Setup) -> Result<String> {
    match platform {
        Platform::Systemd => Ok(systemd::unit(setup)),
        Platform::Crontab => Ok(crontab::line(setup)),
        Platform::Launchd => Ok(launchd::agent(setup)),
        Platform::Kubernetes => kubernetes::jobs(setup),
        Platform::Airflow => airflow::dags(setup),
        Platform::GithubActions => Ok(github_actions::workflow(setup)),
    }
}

/// A word for a POSIX shell.
fn shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A text as a string of JSON, which YAML and Python read as well.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
