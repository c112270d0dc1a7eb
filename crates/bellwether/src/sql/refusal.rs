//! Datasets that a statement cannot express.

use std::path::{Path, PathBuf};

use crate::error::{Diagnostic, ErrorKind};
use crate::plan::{Column, DatasetPlan, DayCount, Feature, NaiveRule, OnSuspect, RowKind, Shape};

/// A part of a dataset that cannot be expressed the same way in every dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlRefusal {
    /// Dates in another time zone than UTC.
    #[error("SQL cannot compute dates with `naive = \"{rule}\"`")]
    Clock {
        /// The rule.
        rule: String,
    },

    /// Fields of records, which are JSON text.
    #[error("SQL cannot compute `{column}`")]
    Historical {
        /// The column.
        column: String,
    },

    /// Dates that only the answers tell of.
    #[error("SQL cannot leave out suspect dates")]
    Suspect,

    /// Trading days that a definition gives.
    #[error("SQL cannot count the trading days of a calendar")]
    Calendar,

    /// When rows were known.
    #[error("SQL cannot compute `{column}`")]
    Times {
        /// The column.
        column: String,
    },

    /// When signals are made, in another time zone than UTC.
    #[error("SQL cannot compute when signals are made with `made_at = \"{made_at}\"`")]
    MadeAt {
        /// The time.
        made_at: String,
    },

    /// Articles.
    #[error("SQL cannot compute a dataset with `kind = \"news\"`")]
    News,

    /// Several folders for an engine that reads one.
    #[error("a statement for Spark cannot include claims")]
    Claims,
    /// A path that the engine takes for another.
    #[error("DuckDB takes `\\` in `{path}` for a separator of folders")]
    Path {
        /// The folder of the archive.
        path: String,
    },

    /// A path that no text is.
    #[error("a statement cannot name `{}`, which is not UTF-8", path.display())]
    PathText {
        /// The folder of the archive.
        path: PathBuf,
    },

    /// Many files.
    #[error("SQL cannot compute a dataset with `layout = \"wide\"`")]
    Wide,
}

impl SqlRefusal {
    /// The absolute path of a folder, as a statement names it.
    pub(crate) fn path_text(folder: &Path) -> Result<String, Self> {
        let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        path.into_os_string().into_string().map_err(|path| Self::PathText { path: path.into() })
    }

    /// Refuses a dataset that no statement can compute.
    pub(crate) fn check(plan: &DatasetPlan) -> Result<(), Self> {
        if plan.rows == RowKind::Article {
            return Err(Self::News);
        }
        if plan.shape != Shape::Long {
            return Err(Self::Wide);
        }
        if plan.suspect == OnSuspect::Drop {
            return Err(Self::Suspect);
        }
        if plan.dates != NaiveRule::Utc {
            return Err(Self::Clock { rule: plan.dates.to_string() });
        }
        let is_time = |column: &&Column| matches!(column, Column::KnownAt | Column::TradableAt);
        if let Some(column) = plan.columns.iter().find(is_time) {
            return Err(Self::Times { column: column.name().to_owned() });
        }
        let counts_backwards = matches!(plan.lag, DayCount::Trading(_)) && !plan.features.is_empty();
        let counts_age = matches!(plan.live_within, DayCount::Trading(_)) && plan.columns.contains(&Column::Backfilled);
        if plan.sessions.are_given() && (counts_backwards || counts_age) {
            return Err(Self::Calendar);
        }
        if let Some(made_at) = plan.made_at.filter(|made_at| made_at.zone.0 != chrono_tz::UTC) {
            return Err(Self::MadeAt { made_at: made_at.to_string() });
        }
        match plan.features.iter().find(|feature| matches!(feature, Feature::Historical(_))) {
            Some(feature) => Err(Self::Historical { column: feature.to_string() }),
            None => Ok(()),
        }
    }
}

impl Diagnostic for SqlRefusal {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Path { .. } | Self::PathText { .. } => ErrorKind::Usage,
            _ => ErrorKind::Data,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Claims => "build it, or use DuckDB",
            Self::Clock { .. } => {
                "engines disagree about hours that a clock skips or repeats: use `naive = \"utc\"`, or `bellwether build`"
            }
            Self::Historical { .. } => {
                "engines read the JSON of historical sentiment differently: remove `historical` from `sources`, or use `bellwether build`"
            }
            Self::Calendar => {
                "engines have no calendar of a market: count in calendar days, such as `1d`, or use `bellwether build`"
            }
            Self::Times { .. } => "they depend on when runs were sealed: leave it out, or use `bellwether build`",
            Self::MadeAt { .. } => {
                "engines disagree about hours that a clock skips or repeats: state the time in `UTC`, or use `bellwether build`"
            }
            Self::Suspect => "set `suspect = \"keep\"` in `[dataset]`, or use `bellwether build`",
            Self::Path { .. } | Self::PathText { .. } => "rename the folder, or name a link to it with `--archive`",
            Self::News => "a statement is about signals: use `bellwether build`",
            Self::Wide => "a statement has one result: use `layout = \"long\"`, or `bellwether build`",
        };
        Some(hint.to_owned())
    }
}
