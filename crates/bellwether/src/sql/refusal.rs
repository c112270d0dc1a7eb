//! Datasets that a statement cannot express the same way in every dialect.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Column, DatasetPlan, DayCount, Feature, NaiveRule, RowKind, Shape};

pub(super) const RENAME: &str = "rename the folder, or name a link to it with `--archive`";

/// The path of a folder, as a statement names it.
pub(crate) fn path_text(folder: &Path) -> Result<String> {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    path.into_os_string().into_string().map_err(|path| {
        let what = format!("a statement cannot name `{}`, which is not UTF-8", Path::new(&path).display());
        Error::usage(what, RENAME)
    })
}

/// Refuses a dataset that no statement can compute.
pub(crate) fn check(plan: &DatasetPlan) -> Result<()> {
    let time = plan.columns.iter().find(|column| matches!(column, Column::KnownAt | Column::TradableAt));
    let historical = plan.features.iter().find(|feature| matches!(feature, Feature::Historical(_)));
    let counts_backwards = matches!(plan.lag, DayCount::Trading(_)) && !plan.features.is_empty();
    let counts_age = matches!(plan.live_within, DayCount::Trading(_)) && plan.columns.contains(&Column::Backfilled);
    let is = |is_refused: bool, what: &str| is_refused.then(|| what.to_owned());
    let refusals = [
        (
            is(plan.rows == RowKind::Article, "compute a dataset with `kind = \"news\"`"),
            "a statement is about signals: use `bellwether build`",
        ),
        (
            is(plan.rows == RowKind::Observation, "compute a dataset with `vintage = \"all\"`"),
            "use `bellwether build`, or ask `observations` with `bellwether query`",
        ),
        (
            is(plan.filter.universe.is_some(), "select the members of a file"),
            "use `bellwether build`, or leave out `universe` and join the file",
        ),
        (
            is(plan.shape != Shape::Long, "compute a dataset with `layout = \"wide\"`"),
            "a statement has one result: use `layout = \"long\"`, or `bellwether build`",
        ),
        (
            (plan.dates != NaiveRule::Utc).then(|| format!("compute dates with `naive = \"{}\"`", plan.dates)),
            "engines disagree about hours that a clock skips or repeats: use `naive = \"utc\"`, or `bellwether build`",
        ),
        (
            is(plan.columns.contains(&Column::EntryAt), "compute `entry_at` and returns"),
            "they depend on sessions and prices: leave them out, or use `bellwether build`",
        ),
        (
            time.map(|column| format!("compute `{}`", column.name())),
            "they depend on when runs were sealed: leave it out, or use `bellwether build`",
        ),
        (
            is(counts_backwards || counts_age, "count trading days"),
            "engines have no calendar of a market: count in calendar days, such as `lag = \"1d\"` and `live_within = \"4d\"`, or \
             use `bellwether build`",
        ),
        (
            plan.made_at.map(|made_at| format!("compute when signals are made with `made_at = \"{made_at}\"`")),
            "engines disagree about hours that a clock skips or repeats: remove it, or use `bellwether build`",
        ),
        (
            historical.map(|feature| format!("compute `{feature}`")),
            "engines read the JSON of historical sentiment differently: remove `historical` from `sources`, or use \
             `bellwether build`",
        ),
    ];
    match refusals.into_iter().find_map(|(what, hint)| Some((what?, hint))) {
        Some((what, hint)) => Err(Error::new(ErrorKind::Data, format!("SQL cannot {what}")).with_hint(hint)),
        None => Ok(()),
    }
}
