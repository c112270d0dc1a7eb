//! Datasets that a statement cannot express the same way in every dialect.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Column, DatasetPlan, DayCount, Feature, NaiveRule, RowKind, Shape};

/// The path of a folder, as a statement names it.
pub(crate) fn path_text(folder: &Path) -> Result<String> {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    path.into_os_string().into_string().map_err(|path| {
        let what = format!("a statement cannot name `{}`, which is not UTF-8", Path::new(&path).display());
        Error::usage(what, RENAME)
    })
}

/// A path that the engine takes for another.
pub(super) fn misread_path(folder: &str) -> Error {
    Error::usage(format!("DuckDB takes `\\` in `{folder}` for a separator of folders"), RENAME)
}

const RENAME: &str = "rename the folder, or name a link to it with `--archive`";

/// Several folders for an engine that reads one.
pub(super) fn claims() -> Error {
    refusal("a statement for Spark cannot include claims", "build it, or use DuckDB")
}

fn refusal(what: impl Into<String>, hint: &str) -> Error {
    Error::new(ErrorKind::Data, what).with_hint(hint)
}

/// Refuses a dataset that no statement can compute.
pub(crate) fn check(plan: &DatasetPlan) -> Result<()> {
    if plan.rows == RowKind::Article {
        return Err(refusal(
            "SQL cannot compute a dataset with `kind = \"news\"`",
            "a statement is about signals: use `bellwether build`",
        ));
    }
    if plan.rows == RowKind::Observation {
        return Err(refusal(
            "SQL cannot compute a dataset with `vintage = \"all\"`",
            "use `bellwether build`, or ask `observations` with `bellwether query`",
        ));
    }
    if plan.filter.universe.is_some() {
        return Err(refusal(
            "SQL cannot select the members of a file",
            "use `bellwether build`, or leave out `universe` and join the file",
        ));
    }
    if plan.shape != Shape::Long {
        return Err(refusal(
            "SQL cannot compute a dataset with `layout = \"wide\"`",
            "a statement has one result: use `layout = \"long\"`, or `bellwether build`",
        ));
    }
    if plan.dates != NaiveRule::Utc {
        return Err(refusal(
            format!("SQL cannot compute dates with `naive = \"{}\"`", plan.dates),
            "engines disagree about hours that a clock skips or repeats: use `naive = \"utc\"`, or `bellwether build`",
        ));
    }
    if plan.columns.contains(&Column::EntryAt) {
        return Err(refusal(
            "SQL cannot compute `entry_at` and returns",
            "they depend on sessions and prices: leave them out, or use `bellwether build`",
        ));
    }
    let is_time = |column: &&Column| matches!(column, Column::KnownAt | Column::TradableAt);
    if let Some(column) = plan.columns.iter().find(is_time) {
        return Err(refusal(
            format!("SQL cannot compute `{}`", column.name()),
            "they depend on when runs were sealed: leave it out, or use `bellwether build`",
        ));
    }
    let counts_backwards = matches!(plan.lag, DayCount::Trading(_)) && !plan.features.is_empty();
    let counts_age = matches!(plan.live_within, DayCount::Trading(_)) && plan.columns.contains(&Column::Backfilled);
    if counts_backwards || counts_age {
        return Err(refusal(
            "SQL cannot count trading days",
            "engines have no calendar of a market: count in calendar days, such as `lag = \"1d\"` and `live_within = \"4d\"`, or \
             use `bellwether build`",
        ));
    }
    if let Some(made_at) = plan.made_at {
        return Err(refusal(
            format!("SQL cannot compute when signals are made with `made_at = \"{made_at}\"`"),
            "engines disagree about hours that a clock skips or repeats: remove it, or use `bellwether build`",
        ));
    }
    match plan.features.iter().find(|feature| matches!(feature, Feature::Historical(_))) {
        Some(feature) => Err(refusal(
            format!("SQL cannot compute `{feature}`"),
            "engines read the JSON of historical sentiment differently: remove `historical` from `sources`, or use \
             `bellwether build`",
        )),
        None => Ok(()),
    }
}
