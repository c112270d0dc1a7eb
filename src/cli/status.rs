//! `bellwether status`: how each definition is doing.

use std::fmt::Write;
use std::path::PathBuf;

use bellwether::disk::file::{self, FileError};
use bellwether::project::Project;
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, group_digits};
use bellwether::time::Clock;

use crate::schedule::{self, Links, Outcome, RunRecord, StatusDocument, Verdict, page, to_minute};

use super::options::FolderOptions;
use super::talk::{AsJson, FOUND, Failure, Result, UNKNOWN, columns, say, wrap};

/// Show whether each dataset is fresh, stale, failing or unknown.
///
/// Data is stale if its newest date is older than `max_age` in `[checks]` (2 trading days if it is not set; trading days
/// are Monday to Friday), if a scheduled run has not happened by its deadline (once `bellwether schedule` has read the
/// schedule), or if it was built from a run that is forgotten. A definition is failing if its last run failed. It is
/// unknown if nothing was published, or if a file of its state cannot be read, is damaged or is gone. The exit code is 0
/// if all are fresh, 3 if one is stale or failing, and 5 if one is unknown or there are none.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Definitions: names in `pipelines/`. Default: all.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    json: AsJson,

    /// Write a page with the runs of the last 90 days, or print it if the file is `-`.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,

    /// Replace the file of `--html` if it exists.
    #[arg(long, requires = "html")]
    force: bool,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Status {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let folders = self.folders.of_project(project);
        let page_to = self.html.as_deref().filter(|file| file.as_os_str() != "-");
        if let Some(file) = page_to {
            file::target_of(file)?;
            if !self.force && file.symlink_metadata().is_ok() {
                return Err(FileError::exists(file).into());
            }
        }
        let document = StatusDocument::read(&folders, &self.names, None, Clock::System.now())?;
        match &self.html {
            Some(file) if file.as_os_str() == "-" => say(&page(&document, Links::Files(&folders.data)))?,
            Some(file) => {
                let data = std::path::absolute(&folders.data).map_err(FileError::read(&folders.data))?;
                file::replace_named(file, page(&document, Links::Files(&data)).as_bytes())?;
                say(&format!("status    {}\n", file.display()))?;
            }
            None if self.json.is_wanted() => say(&document.line())?,
            None => say(&describe(&document))?,
        }
        match document.verdict {
            Verdict::Fresh => Ok(()),
            Verdict::Stale | Verdict::Failing => Err(Failure::Told { code: FOUND }),
            Verdict::Unknown | Verdict::NotRun => Err(Failure::Told { code: UNKNOWN }),
        }
    }
}

fn describe(document: &StatusDocument) -> String {
    let mut text = String::new();
    // Of a single definition the first line says it already.
    if document.definitions.len() != 1 {
        text.push_str(&wrap(&headline(document), 2, columns()));
        text.push_str("\n\n");
    }
    for status in document.worst_first() {
        push_status(&mut text, status);
    }
    text.push_str(&of_project(document));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// What is not about a single definition.
fn of_project(document: &StatusDocument) -> String {
    let mut text = String::new();
    document.reasons.iter().for_each(|reason| line(&mut text, "because", reason));
    if let Some(look) = &document.scheduler {
        let (since, last) = (to_minute(look.running_since), to_minute(look.last_look));
        let failed = match look.failed_looks {
            0 => String::new(),
            count => format!(", {} failed", count_of(count, "look has", "looks in a row have")),
        };
        line(&mut text, "scheduler", &format!("running since {since}, last look {last}{failed}"));
    }
    let parts = document.disk.parts().into_iter().filter(|(_, size)| *size > 0);
    let parts: Vec<String> = parts.map(|(name, size)| format!("{name} {}", bytes(size))).collect();
    if !parts.is_empty() {
        line(&mut text, "disk", &format!("{}: {}", bytes(document.disk.total()), parts.join(", ")));
    }
    if let Some(free) = document.disk_free_bytes.filter(|_| !parts.is_empty()) {
        line(&mut text, "", &format!("{} free", bytes(free)));
    }
    if let Some(prunable) = document.prunable_bytes.filter(|prunable| *prunable > 0) {
        line(&mut text, "", &format!("`bellwether prune` would free {}", bytes(prunable)));
    }
    match (text.is_empty(), document.reasons.is_empty()) {
        (true, _) => text,
        (false, true) => format!("the project\n{text}"),
        (false, false) => format!("the project is unknown\n{text}"),
    }
}

/// A line for all: how many are fresh, and which are not.
fn headline(document: &StatusDocument) -> String {
    let mut line = document.heading();
    let definitions = document.worst_first();
    for of_verdict in definitions.chunk_by(|one, next| one.verdict == next.verdict) {
        if of_verdict[0].verdict != Verdict::Fresh {
            let names: Vec<String> = of_verdict.iter().map(|status| escape(&status.name).to_string()).collect();
            write!(line, "; {}: {}", of_verdict[0].verdict.in_words(), names.join(", "))
                .expect("a string takes any text");
        }
    }
    line
}

fn push_status(text: &mut String, status: &schedule::Status) {
    let described = status.description.as_ref().map_or_else(String::new, |it| format!(": {}", escape(it)));
    writeln!(text, "{} is {}{described}", escape(&status.name), status.verdict.in_words())
        .expect("a string takes any text");
    for reason in &status.reasons {
        line(text, "because", reason);
    }
    for changed in &status.changed {
        line(text, "changed", &format!("{changed}, since the latest version"));
    }
    if let Some(newest) = status.newest_date {
        let age = status.age().map_or_else(String::new, |age| format!(", {}", age.in_words()));
        line(text, "newest", &format!("{newest}{age}"));
    }
    if let Some(fetched) = status.fetched_at {
        let in_part = if status.in_part { ", in part" } else { "" };
        line(text, "fetched", &format!("{}{in_part}", to_minute(fetched)));
    }
    for (name, outcome) in [("success", Outcome::Success), ("failure", Outcome::Failure), ("later", Outcome::Later)] {
        if let Some(run) = status.last(outcome) {
            line(text, name, &brief(run));
        }
    }
    if let Some(running) = status.running() {
        line(text, "running", &running);
    }
    if let Some(next) = status.next {
        line(text, "next", &to_minute(next));
    }
    let rows = compare(status.rows, status.rows_before);
    if let (Some(rows), Some(tickers)) = (rows, compare(status.tickers, status.tickers_before)) {
        let noun = if status.tickers == Some(1) { "ticker" } else { "tickers" };
        line(text, "rows", &format!("{rows} of {tickers} {noun}"));
    }
    let count = status.versions;
    if count > 0 {
        let versions = if count == 1 { "version" } else { "versions" };
        line(text, "disk", &format!("{} in {count} {versions}", bytes(status.bytes)));
    }
    text.push('\n');
}

fn brief(run: &RunRecord) -> String {
    let name = run.run.as_ref().map_or_else(String::new, |run| format!(" (run {run})"));
    let reason = run.reason().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{}{name}{reason}", to_minute(run.ended_at))
}

/// A number, and how it differs from the one before.
fn compare(now: Option<u64>, before: Option<u64>) -> Option<String> {
    let now = now?;
    let difference = match before {
        Some(before) if now > before => format!(" (+{})", group_digits(now - before)),
        Some(before) if now < before => format!(" (-{})", group_digits(before - now)),
        _ => String::new(),
    };
    Some(format!("{}{difference}", group_digits(now)))
}

fn line(text: &mut String, name: &str, content: &str) {
    let line = format!("  {name:9} {}", escape(content));
    writeln!(text, "{}", wrap(&line, 12, columns())).expect("a string takes any text");
}
