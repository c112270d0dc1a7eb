//! `bellwether status`: how each definition is doing.

use bellwether::disk::file::{self, FileError};

use super::prelude::*;
use crate::schedule::{self, Links, Outcome, StatusDocument, Verdict, page, to_minute};

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
        if let Some(file) = page_to {
            let data = std::path::absolute(&folders.data).map_err(FileError::read(&folders.data))?;
            file::replace_named(file, page(&document, Links::Files(&data)).as_bytes())?;
            say(&format!("status    {}\n", file.display()))?;
        } else if self.html.is_some() {
            say(&page(&document, Links::Files(&folders.data)))?;
        } else {
            say(&if self.json.is_wanted() { document.line() } else { describe(&document) })?;
        }
        match document.verdict {
            Verdict::Fresh => Ok(()),
            Verdict::Stale | Verdict::Failing => Err(Failure::Told(FOUND)),
            // Whether data is fresh cannot be told.
            Verdict::Unknown | Verdict::NotRun => Err(Failure::Told(5)),
        }
    }
}

fn describe(document: &StatusDocument) -> String {
    let definitions = document.worst_first();
    let mut text = String::new();
    // Of a single definition the first line says it already. A line for all: how many are fresh, and which are not.
    if definitions.len() != 1 {
        let mut line = document.heading();
        for of_verdict in definitions.chunk_by(|one, next| one.verdict == next.verdict) {
            if of_verdict[0].verdict != Verdict::Fresh {
                let names: Vec<_> = of_verdict.iter().map(|status| escape(&status.name)).collect();
                line += &format!("; {}: {}", of_verdict[0].verdict.in_words(), names.join(", "));
            }
        }
        text = wrap(&line, 2, columns()) + "\n\n";
    }
    definitions.into_iter().for_each(|status| text += &of_definition(status));
    text += &of_project(document);
    text.trim_end().to_owned() + "\n"
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
        document.disk_free_bytes.iter().for_each(|free| line(&mut text, "", &format!("{} free", bytes(*free))));
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

fn of_definition(status: &schedule::Status) -> String {
    let described = status.description.as_ref().map_or_else(String::new, |it| format!(": {}", escape(it)));
    let mut text = format!("{} is {}{described}\n", escape(&status.name), status.verdict.in_words());
    let mut tell = |name: &str, content: Option<String>| content.iter().for_each(|it| line(&mut text, name, it));
    status.reasons.iter().for_each(|reason| tell("because", Some(reason.clone())));
    status.changed.iter().for_each(|what| tell("changed", Some(format!("{what}, since the latest version"))));
    let age = status.age().map_or_else(String::new, |age| format!(", {}", age.in_words()));
    tell("newest", status.newest_date.map(|newest| format!("{newest}{age}")));
    let in_part = if status.in_part { ", in part" } else { "" };
    tell("fetched", status.fetched_at.map(|fetched| to_minute(fetched) + in_part));
    for (name, outcome) in [("success", Outcome::Success), ("failure", Outcome::Failure), ("later", Outcome::Later)] {
        tell(
            name,
            status.last(outcome).map(|run| {
                let name = run.run.as_ref().map_or_else(String::new, |run| format!(" (run {run})"));
                let reason = run.reason().map_or_else(String::new, |reason| format!(": {reason}"));
                format!("{}{name}{reason}", to_minute(run.ended_at))
            }),
        );
    }
    tell("running", status.running());
    tell("next", status.next.map(to_minute));
    let rows = compare(status.rows, status.rows_before).zip(compare(status.tickers, status.tickers_before));
    let noun = if status.tickers == Some(1) { "ticker" } else { "tickers" };
    tell("rows", rows.map(|(rows, tickers)| format!("{rows} of {tickers} {noun}")));
    let versions = if status.versions == 1 { "version" } else { "versions" };
    let disk = format!("{} in {} {versions}", bytes(status.bytes), status.versions);
    tell("disk", (status.versions > 0).then_some(disk));
    text + "\n"
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
    *text += &(wrap(&format!("  {name:9} {}", escape(content)), 12, columns()) + "\n");
}
