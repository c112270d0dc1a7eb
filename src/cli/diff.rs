//! `bellwether diff`: what changed between two versions of a dataset.

use bellwether::audit::diff::{self, Difference};
use bellwether::export::{self, PublishedReader, VersionKind};

use super::prelude::*;

/// Compare two versions of a dataset, row by row.
///
/// Rows are matched by ticker, date, period and regime. Both versions must be long and have the same columns; their
/// formats, folders and sort orders may differ.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether diff demo
      what changed in the latest version
  bellwether diff demo/20261120T213000Z-7f3a demo
      what changed since a version")]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 the versions differ and `--exit-code` is given."
)]
pub(super) struct Diff {
    /// The earlier version: `NAME/VERSION`, `NAME/builds/VERSION`, or the folder of a version. `NAME` is the latest
    /// version, or without a later one the version before it.
    #[arg(value_name = "EARLIER")]
    before: String,

    /// The later version, in the same form. Default: the latest, compared with the one before it.
    #[arg(value_name = "LATER")]
    after: Option<String>,

    /// Exit with code 3 if the versions differ.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    rows: RowsTo,

    #[command(flatten)]
    folder: DataFolder,
}

impl Diff {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let folder = self.folder.datasets(project);
        let find = |given: &str| PublishedReader::find(&folder, given);
        let [before, after] = match &self.after {
            Some(after) => [find(&self.before)?, find(after)?],
            None => {
                let after = find(&self.before)?;
                [find(&earlier(&folder, &self.before)?)?, after]
            }
        };
        let rows = self.rows.clone();
        let found = cancellable(move |control| {
            let [before, after] = [before, after].map(|version| version.until(control.stop.clone()));
            rows.fill(diff::schema(&before), |deliver| diff::diff(&before, &after, deliver))
        })?;
        if !self.rows.is_stdout() {
            self.json.say(|| &found, || describe(&found))?;
        }
        if self.exit_code && !found.is_none() { Err(Failure::Told(FOUND)) } else { Ok(()) }
    }
}

/// The version of a dataset that was published before the latest.
fn earlier(datasets: &Path, name: &str) -> Result<String> {
    let published = export::published_versions(datasets)?;
    let mut own = published.into_iter().filter(|it| it.dataset == name && it.kind != VersionKind::AdHoc);
    let mut before = None;
    while let Some(version) = own.next().filter(|version| version.kind != VersionKind::Latest) {
        before = Some(version.name);
    }
    before.ok_or_else(|| {
        usage(&format!("no version of `{name}` to compare with"), "name two versions; `bellwether list` lists them")
    })
}

fn describe(found: &Difference) -> String {
    let mut versions = Aligned::new(2, ["", "version", "rows", "as of"]);
    for (place, version) in [("before", &found.before), ("after", &found.after)] {
        versions.row([place, &version.name, &group_digits(version.rows), &version.as_of]);
    }
    let mut text = versions.to_string();
    for key in &found.definition {
        text += &(wrap(&format!("definition: {}", escape(&key.to_string())), 12, columns()) + "\n");
    }
    if found.is_none() {
        return text + "\nno differences\n";
    }
    let row = |name: &str, count: u64, all: u64, of: &str| {
        [
            name.to_owned(),
            group_digits(count),
            format!("{} of {} {of}", portion(count, all), count_of(all, "row", "rows")),
        ]
    };
    let both = found.before.rows - found.removed;
    let mut rows = Aligned::new(1, ["rows", "count", "share"]);
    rows.row(row("added", found.added, found.after.rows, "after"));
    rows.row(row("removed", found.removed, found.before.rows, "before"));
    rows.row(row("changed", found.changed, both, "in both"));
    text += &format!("\n{rows}");
    if found.changed > 0 {
        let mut columns = Aligned::new(1, ["column", "rows changed", "share"]);
        found.columns.iter().for_each(|column| columns.row(row(&column.name, column.rows, both, "in both")));
        text += &format!("\n{columns}");
    }
    text
}
