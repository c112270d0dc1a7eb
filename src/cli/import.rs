//! `bellwether import`: earlier downloads, as claims.

use std::path::PathBuf;

use bellwether::disk::links;
use bellwether::project::Project;
use bellwether::run::{
    ColumnMapping, ColumnName, Control, ImportMode, ImportOptions, Imported, ImportedClaim, NamePattern, ObservedAt,
    RequestTemplate, import,
};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;
use bellwether::time::to_record;
use chrono::{DateTime, Utc};

use super::document::AsJson;
use super::folders::Folders;
use super::outcome::{Failure, Result};
use super::typed::{instant, plan_of, usage};
use super::{cancellable, progress};

/// Import files that were saved before the first run, as claims.
///
/// A file is taken as the whole answer to a request at an instant: the body of an answer in JSON, or a table (CSV, Parquet) of
/// histories or articles. Nobody witnessed it, so it counts only with `[archive] claimed = true` or `--include claimed`.
/// Everything is checked before anything is written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether import demo energy.json --request \"signals-history-all?sector=energy\" --observed-at 2025-03-31T21:30:00Z
      one saved answer
  bellwether import demo XOM-2025-03-31.json --request \"news_articles/{ticker}\" --names \"{ticker}-{observed_at}.json\"
      ticker and day from the names of the files")]
pub(super) struct Import {
    /// A definition: its name in `pipelines/`, or a path. The files are claims about its service.
    definition: String,

    /// The files: `.json`, `.csv` or `.parquet`.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The request that they answer, below the base address: `news_articles/{ticker}`, or
    /// `signals-history-all?sector={sector}&period=15d&regime=neutral`. Fields in braces come from the names of the files. For
    /// several requests at once, give each of them its own `--names` in the same order.
    #[arg(long = "request", value_name = "REQUEST", required = true)]
    requests: Vec<RequestTemplate>,

    /// What the names of the files look like: `{ticker}-{observed_at}.json`. Fields are `{ticker}`, `{sector}`, `{period}`,
    /// `{regime}` and `{observed_at}`.
    #[arg(long, value_name = "PATTERN")]
    names: Vec<NamePattern>,

    /// When they were observed: `2025-03-31` (the end of that day in UTC) or `2025-03-31T18:00:00Z`.
    #[arg(long, value_name = "INSTANT", value_parser = instant, conflicts_with = "observed_column")]
    observed_at: Option<DateTime<Utc>>,

    /// The column of a table with the instant when each row was observed. The rows of one instant are one answer.
    #[arg(long, value_name = "COLUMN")]
    observed_column: Option<String>,

    /// The columns of a table that have other names than in the interface: `signal=side,confidence=score`.
    #[arg(long, value_name = "OWN=NAME", value_delimiter = ',')]
    columns: Vec<ColumnName>,

    /// Check the files and say what would be imported, without importing it.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

impl Import {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = plan_of(Some(&self.definition), project)?;
        let observed = self.observation_time()?;
        let archive = self.folders.archive(project);
        links::refuse_below(&self.folders.data(project), &archive)?;
        let mode = if self.dry_run { ImportMode::Check } else { ImportMode::Import };
        let is_json = self.json.is_wanted();
        let (files, count) = (self.files, self.requests.len());
        let requests: Vec<_> = match self.names.len() {
            0 if count == 1 => self.requests.into_iter().map(|request| (request, None)).collect(),
            names if names == count => self.requests.into_iter().zip(self.names.into_iter().map(Some)).collect(),
            _ => {
                let hint = "give each `--request` its own `--names`, in the same order";
                return Err(usage::<Failure>("it cannot be told which file answers which request", hint));
            }
        };
        let columns = ColumnMapping::of(self.columns);
        let imported = cancellable(move |control| {
            let shown = Control { observer: Some(progress::observer()), ..control.clone() };
            let control = if is_json { control.clone() } else { shown };
            import(&plan, &ImportOptions { archive, files, requests, observed, columns, mode, control })
        })?;
        self.json.say(|| &imported, || text(&imported))
    }

    /// When the files were observed.
    fn observation_time(&self) -> Result<ObservedAt> {
        let with_instant = self.names.iter().filter(|names| names.has_instant()).count();
        let in_names = with_instant > 0;
        if in_names && with_instant < self.names.len() {
            let hint = "add `{observed_at}` to each of them, or to none";
            return Err(usage::<Failure>("only some `--names` say when the files were observed", hint));
        }
        match (self.observed_at, &self.observed_column, in_names) {
            (Some(instant), None, false) => Ok(ObservedAt::Instant(instant)),
            (None, Some(column), false) => Ok(ObservedAt::Column(column.clone())),
            (None, None, true) => Ok(ObservedAt::Name),
            (None, None, false) => Err(usage::<Failure>(
                "it is not said when the files were observed",
                "add `--observed-at`, `--observed-column`, or `{observed_at}` to `--names`",
            )),
            _ => Err(usage::<Failure>("it is said twice when the files were observed", "leave out one of them")),
        }
    }
}

fn text(imported: &Imported) -> String {
    let mut text = String::new();
    for claim in &imported.claims {
        let ImportedClaim { observed_at, run, files, records, rejected, is_known, .. } = claim;
        let at = to_record(*observed_at);
        let what = match (run, is_known) {
            (Some(run), true) => format!("{at}  imported before as `{run}`"),
            (Some(run), false) => format!("{at}  imported as `{run}`"),
            (None, _) => format!("{at}  would be imported"),
        };
        text += &format!(
            "{what}: {}, {}",
            count_of(files.len() as u64, "answer", "answers"),
            count_of(*records, "record", "records")
        );
        if *rejected > 0 {
            text += &format!(", {}", count_of(*rejected, "rejected record", "rejected records"));
        }
        if let Some(((added, revised), withdrawn)) = claim.added.zip(claim.revised).zip(claim.withdrawn) {
            text += &format!("; {added} added, {revised} revised, {withdrawn} withdrawn");
        }
        text += "\n";
    }
    for note in &imported.notes {
        text += &format!("note: {}\n", escape(note));
    }
    let claims = count_of(imported.claims.len() as u64, "claim", "claims");
    text + &format!(
        "{claims} about service `{}`; they count with `[archive] claimed = true` or `--include claimed` alone\n",
        imported.service
    )
}
