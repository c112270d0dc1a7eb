//! What to install so that a platform runs the definitions: a file per platform, with absolute paths.
//!
//! Platforms that keep a process alive (systemd, launchd) get one that runs `bellwether schedule`, which does the rest.
//! cron and GitHub Actions call `bellwether schedule --once`, which runs what is due and knows the time zones. Kubernetes and
//! Airflow have schedules with time zones of their own: there a definition is a job of its own, and `bellwether run` is
//! what they call.
//!
//! An expression is translated to the platform's dialect, or refused. The settings of the command are carried over, or
//! named as left out. The key comes from a file that the platform provides, named by `BELLWETHER_API_KEY_FILE`; it is never
//! part of what is printed.

mod airflow;
mod crontab;
mod dialect;
mod github_actions;
mod in_utc;
mod kubernetes;
mod launchd;
mod settings;
mod systemd;

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, Utc};
use chrono_tz::Tz;

pub use settings::Settings;

use bellwether::disk::file::FileError;
use bellwether::error::{Error, Result};
use bellwether::plan::{Plan, Schedule, StoreUrl};
use bellwether::text::escape::escape;

use super::definitions::{files, nothing_scheduled};
use super::status::Folders;
use settings::Action;

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
    /// What else is set.
    settings: Settings,
    /// When it is printed.
    now: DateTime<Utc>,
}

/// Whether a path can stand in a line of a file, on every platform.
fn fits_in_a_line(path: &Path) -> bool {
    path.to_str().is_some_and(|text| !text.chars().any(char::is_control) && !text.ends_with('\\'))
}

fn unprintable(path: &Path) -> Error {
    Error::usage(
        format!("`{}` cannot stand in the file of a platform", escape(&path.to_string_lossy())),
        "use a path that is UTF-8, without line breaks, and that does not end with a backslash",
    )
}

impl Setup {
    /// What there is in a project, and what is set.
    ///
    /// # Errors
    ///
    /// If a definition is invalid, none has a schedule, or a path cannot be made absolute, or cannot stand in a file.
    pub fn of(root: &Path, folders: &Folders, settings: Settings, now: DateTime<Utc>) -> Result<Self> {
        let absolute = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let found = path.canonicalize().or_else(|_| std::path::absolute(path)).map_err(FileError::read(path))?;
            if fits_in_a_line(&found) { Ok(found) } else { Err(unprintable(&found)) }
        };
        let root = absolute(root)?;
        let mut settings = Settings {
            metrics: settings.metrics.as_deref().map(absolute).transpose()?,
            key_file: settings.key_file.as_deref().map(|path| absolute(&root.join(path))).transpose()?,
            ..settings
        };
        let mut plans = Vec::new();
        for path in files(&folders.definitions)?.into_values() {
            let plan = Plan::of(bellwether::definition::find(&path.to_string_lossy(), &folders.definitions)?)?;
            if let Some(schedule) = plan.schedule.clone() {
                settings.variables.extend(plan.address_variables.iter().cloned());
                plans.push((plan, schedule));
            }
        }
        settings.variables.sort_unstable();
        settings.variables.dedup();
        if plans.is_empty() {
            return Err(nothing_scheduled(&folders.definitions));
        }
        let program = env::current_exe().map_err(Error::start)?;
        Ok(Self {
            program: absolute(&program)?,
            root,
            data: absolute(&folders.data)?,
            archive: absolute(&folders.archive)?,
            plans,
            settings,
            now,
        })
    }

    /// The words of a command of the program: its name, what it does, the folders, and the other settings.
    fn words(&self, action: Action<'_>) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut all = vec![text(&self.program)];
        all.extend(action.words());
        all.extend(["--directory".to_owned(), text(&self.root), "--data".to_owned(), text(&self.data)]);
        if self.archive != self.data.join("archive") {
            all.extend(["--archive".to_owned(), text(&self.archive)]);
        }
        all.extend(self.settings.options(action));
        all
    }

    /// The same, with events as JSON unless something else was asked for.
    fn logging_json(&self) -> Self {
        let settings =
            Settings { log: self.settings.log.clone().or_else(|| Some("json".to_owned())), ..self.settings.clone() };
        Self { settings, ..self.clone() }
    }

    /// The file with the key.
    fn key_file(&self) -> PathBuf {
        self.settings.key_file.clone().unwrap_or_else(|| self.root.join("api-key"))
    }

    /// The folders that the program writes to, none of them below another.
    fn writable(&self) -> Vec<PathBuf> {
        let stores = self.plans.iter().filter_map(|(plan, _)| plan.store.as_ref().and_then(StoreUrl::folder));
        let all = [self.data.clone(), self.archive.clone()].into_iter().chain(self.settings.folders()).chain(stores);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in all {
            if !folders.iter().any(|above| folder.starts_with(above)) {
                folders.retain(|below| !below.starts_with(&folder));
                folders.push(folder);
            }
        }
        folders
    }

    /// The definitions with their schedules, as comments.
    fn schedule_comments(&self) -> String {
        let line = |(plan, schedule): &(Plan, Schedule)| {
            format!("#   {}: {} in {}\n", plan.name, schedule.cron, schedule.timezone)
        };
        self.plans.iter().map(line).collect()
    }

    /// What is set but left out, as comments.
    fn left_out(&self, action: Action<'_>) -> String {
        self.settings.left_out(action).iter().map(|note| format!("# {}\n", escape(note))).collect()
    }

    /// The definitions with times that the clock of their zone skips or repeats in the next years, unless they count the
    /// hours that pass, and others that changes of the clock concern: as a comment, with what the platform does then.
    fn clock_changes(&self, consequence: &str, are_others: impl Fn(&Schedule) -> bool) -> String {
        let is_concerned = |schedule: &Schedule| {
            let Schedule { cron, timezone, .. } = schedule;
            let spans = changes(timezone.0, self.now);
            let is_named = !cron.is_hourly() && spans.iter().any(|(from, until)| cron.names_between(*from, *until));
            is_named || (!spans.is_empty() && are_others(schedule))
        };
        let concerned = self.plans.iter().filter(|(_, schedule)| is_concerned(schedule));
        let names: Vec<&str> = concerned.map(|(plan, _)| plan.name.as_str()).collect();
        if names.is_empty() {
            return String::new();
        }
        format!("# When clocks change, {consequence}. This concerns: {}.\n", names.join(", "))
    }
}

/// How far clock changes are looked ahead for.
const AHEAD: TimeDelta = TimeDelta::days(2 * 366);

/// The days of that span.
fn days_ahead(now: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    std::iter::successors(Some(now), |day| Some(*day + TimeDelta::days(1))).take_while(move |day| *day < now + AHEAD)
}

/// What the clock of a zone is ahead of UTC at an instant.
fn offset(zone: Tz, instant: DateTime<Utc>) -> TimeDelta {
    TimeDelta::seconds(instant.with_timezone(&zone).offset().fix().local_minus_utc().into())
}

/// The spans of its own time that the clock of a zone is about to skip or to repeat.
fn changes(zone: Tz, now: DateTime<Utc>) -> Vec<(NaiveDateTime, NaiveDateTime)> {
    let change = |day: DateTime<Utc>| {
        let (mut before, mut after) = (day, day + TimeDelta::days(1));
        let offsets = (offset(zone, before), offset(zone, after));
        if offsets.0 == offsets.1 {
            return None;
        }
        while after - before > TimeDelta::seconds(1) {
            let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
            *(if offset(zone, middle) == offsets.0 { &mut before } else { &mut after }) = middle;
        }
        let at = after.naive_utc();
        Some((at + offsets.0.min(offsets.1), at + offsets.0.max(offsets.1)))
    };
    days_ahead(now).filter_map(change).collect()
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
        Platform::GithubActions => github_actions::workflow(setup),
    }
}

/// A text as a string of JSON, which YAML and Python read as well.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
