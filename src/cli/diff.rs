//! `bellwether diff`: what changed from one version of a dataset to another?

use std::path::PathBuf;

use super::aligned::Aligned;
use super::rows::RowsTo;
use super::say;
use crate::audit::diff::{self, Difference};
use crate::error::{EXIT_FOUND, Error, Result};
use crate::export::Reading;
use crate::numbers::{grouped, percent};

/// Compare two versions of a dataset, row by row.
///
/// Rows are told apart by ticker, date, period and regime. Both must be long and have the same columns; their formats,
/// folders and orders may differ.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 done, 3 they differ and `--exit-code` is given, 1 failed, 2 the arguments are not right."
)]
pub(super) struct Diff {
    /// The version before: `NAME` for the latest, `NAME/VERSION`, or the folder of a version.
    before: String,

    /// The version after.
    after: String,

    /// Exit with code 3 when they differ.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    rows: RowsTo,

    /// The folder that versions are named in.
    #[arg(long, default_value = "output/datasets", value_name = "FOLDER")]
    datasets: PathBuf,
}

impl Diff {
    pub(super) fn execute(self) -> Result<()> {
        let find = |given: &str| Reading::find(&self.datasets, given);
        let (before, after) = (find(&self.before)?, find(&self.after)?);
        let schema = diff::schema(before.schema());
        let found = self.rows.filled(schema, |deliver| diff::diff(&before, &after, deliver))?;
        if !self.rows.is_stdout() {
            say(&told(&before, &after, &found))?;
        }
        match self.exit_code && !found.is_none() {
            true => Err(Error::Told { code: EXIT_FOUND }),
            false => Ok(()),
        }
    }
}

fn told(before: &Reading, after: &Reading, found: &Difference) -> String {
    let mut versions = Aligned::new(2, ["", "version", "rows", "as of"]);
    for (place, version) in [("before", before), ("after", after)] {
        let (rows, as_of) = (grouped(version.row_count()), version.as_of().to_owned());
        versions.row([place.to_owned(), version.name(), rows, as_of]);
    }
    if found.is_none() {
        return format!("{versions}\nthey say the same\n");
    }
    let mut rows = Aligned::new(1, ["rows", "count", "share"]);
    let share = |count: u64, all: u64| if all > 0 { percent(count as f64 / all as f64) } else { "-".to_owned() };
    let counts = [
        ("added", found.added, found.after),
        ("removed", found.removed, found.before),
        ("changed", found.changed, found.before),
    ];
    for (what, count, all) in counts {
        rows.row([what.to_owned(), grouped(count), share(count, all)]);
    }
    let changed = found.columns.iter().filter(|(_, count)| *count > 0);
    if found.changed > 0 {
        let mut columns = Aligned::new(1, ["column", "rows changed", "share"]);
        for (name, count) in changed {
            columns.row([name.clone(), grouped(*count), share(*count, found.before)]);
        }
        return format!("{versions}\n{rows}\n{columns}");
    }
    format!("{versions}\n{rows}")
}
