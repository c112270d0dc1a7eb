//! `bellwether diff`: what changed between two versions of a dataset.

use std::path::Path;

use bellwether::audit::diff::{self, Difference};
use bellwether::export::{self, PublishedReader, VersionKind};
use bellwether::project::Project;
use bellwether::text::escape::escape;
use bellwether::text::human::{count_of, group_digits, portion};

use super::cancellable;
use super::options::{DataFolder, RowsTo, usage};
use super::talk::{Aligned, AsJson, FOUND, Failure, Result, columns, wrap};

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
        match self.exit_code && !found.is_none() {
            true => Err(Failure::Told { code: FOUND }),
            false => Ok(()),
        }
    }
}

/// The version of a dataset that was published before the latest.
fn earlier(datasets: &Path, name: &str) -> Result<String> {
    let published = export::published_versions(datasets)?;
    let own: Vec<_> = published.iter().filter(|it| it.dataset == name && it.kind != VersionKind::AdHoc).collect();
    let latest = own.iter().position(|version| version.kind == VersionKind::Latest);
    let before = latest.and_then(|latest| latest.checked_sub(1));
    let Some(before) = before else {
        let what = format!("no version of `{name}` to compare with");
        return Err(usage(&what, "name two versions; `bellwether list` lists them"));
    };
    Ok(own[before].name.clone())
}

fn describe(found: &Difference) -> String {
    let mut versions = Aligned::new(2, ["", "version", "rows", "as of"]);
    for (place, version) in [("before", &found.before), ("after", &found.after)] {
        versions.row([place.to_owned(), version.name.clone(), group_digits(version.rows), version.as_of.clone()]);
    }
    let changed: String = found
        .definition
        .iter()
        .map(|key| wrap(&format!("definition: {}", escape(&key.to_string())), 12, columns()) + "\n")
        .collect();
    let versions = format!("{versions}{changed}");
    if found.is_none() {
        return format!("{versions}\nno differences\n");
    }
    let both = found.before.rows - found.removed;
    let share =
        |count: u64, all: u64, of: &str| format!("{} of {} {of}", portion(count, all), count_of(all, "row", "rows"));
    let mut rows = Aligned::new(1, ["rows", "count", "share"]);
    rows.row(["added".to_owned(), group_digits(found.added), share(found.added, found.after.rows, "after")]);
    rows.row(["removed".to_owned(), group_digits(found.removed), share(found.removed, found.before.rows, "before")]);
    rows.row(["changed".to_owned(), group_digits(found.changed), share(found.changed, both, "in both")]);
    let mut columns = Aligned::new(1, ["column", "rows changed", "share"]);
    for column in &found.columns {
        columns.row([column.name.clone(), group_digits(column.rows), share(column.rows, both, "in both")]);
    }
    match found.changed {
        0 => format!("{versions}\n{rows}"),
        _ => format!("{versions}\n{rows}\n{columns}"),
    }
}
