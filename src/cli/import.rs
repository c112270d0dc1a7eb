//! `bellwether import`: earlier downloads, as claims.

use bellwether::archive::{self, ImportOptions, Imported};
use bellwether::disk::links;

use super::prelude::*;

/// Import files that were saved before the first run, as a claim.
///
/// A file is taken as the whole answer to a request at an instant: the body of an answer in JSON, or a table (CSV, Parquet) of
/// histories or articles with the columns of datasets. Nobody witnessed it, so it counts only with `[archive] claimed = true`
/// or `--include claimed`. Everything is checked before anything is written.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "bellwether import [OPTIONS] --request <REQUEST> --observed-at <INSTANT>\n                         \
                      <DEFINITION> <FILES>..."
)]
#[command(after_long_help = "\
Examples:
  bellwether import demo energy.json --request \"signals-history-all?sector=energy\" --observed-at 2025-03-31T21:30:00Z
      one saved answer
  bellwether import demo news/*.json --request \"news_articles/{ticker}\" --observed-at 2025-03-31
      the news of each ticker that a file is named after")]
pub(super) struct Import {
    /// A definition: its name in `pipelines/`, or a path. The files are claims about its service.
    definition: String,

    /// The files: `.json`, `.csv` or `.parquet`.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The request that they answer, below the base address: `signals-history-all?sector=energy`,
    /// or `news_articles/{ticker}`, where `{ticker}` is the name of each file without its extension.
    #[arg(long, value_name = "REQUEST")]
    request: String,

    /// When they were saved: `2025-03-31` (the end of that day in UTC) or `2025-03-31T18:00:00Z`.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    observed_at: DateTime<Utc>,

    /// Check the files and say what would be imported, without importing it.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Import {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = plan_of(Some(&self.definition), project)?;
        let Folders { data, archive, .. } = self.folders.of_project(project);
        links::refuse_below(&data, &archive)?;
        let Self { files, request, observed_at, dry_run: is_dry_run, json, .. } = self;
        let options = ImportOptions { archive, files, request, observed_at, is_dry_run };
        let imported = cancellable(move |control| archive::import(&plan, &options, &control.stop))?;
        json.say(|| &imported, || describe(&imported))
    }
}

fn describe(imported: &Imported) -> String {
    let Imported { service, files, records, rejected, changes, .. } = imported;
    let done = match (&imported.run, changes) {
        (Some(run), Some(_)) => format!("imported as `{run}`"),
        (Some(run), None) => format!("imported before as `{run}`"),
        (None, _) => "would be imported".to_owned(),
    };
    let (at, answers) = (to_record(imported.observed_at), count_of(files.len() as u64, "answer", "answers"));
    let (records, rejected) = (count_of(*records, "record", "records"), group_digits(*rejected));
    let changes = changes.as_ref().map_or_else(String::new, |changes| {
        format!("; {} added, {} revised, {} withdrawn", changes.added, changes.revised, changes.withdrawn)
    });
    format!(
        "{at}  {done}: {answers}, {records}, {rejected} rejected{changes}\n\
         a claim about service `{service}`: it counts with `[archive] claimed = true` or `--include claimed` alone\n"
    )
}
