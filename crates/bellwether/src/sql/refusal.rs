//! Datasets that a statement cannot express.

use crate::error::{Diagnostic, ErrorKind};
use crate::plan::{DatasetPlan, Feature, NaiveRule, OnSuspect, RowKind, Shape};

/// A part of a dataset that cannot be expressed the same way in every dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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

    /// Many files.
    #[error("SQL cannot compute a dataset with `layout = \"wide\"`")]
    Wide,
}

impl Refusal {
    /// Refuses a dataset that no statement can compute.
    pub(super) fn check(plan: &DatasetPlan) -> Result<(), Self> {
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
        match plan.features.iter().find(|feature| matches!(feature, Feature::Historical(_))) {
            Some(feature) => Err(Self::Historical { column: feature.to_string() }),
            None => Ok(()),
        }
    }
}

impl Diagnostic for Refusal {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Path { .. } => ErrorKind::Usage,
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
            Self::Suspect => "set `suspect = \"keep\"` in `[dataset]`, or use `bellwether build`",
            Self::Path { .. } => "rename the folder, or name a link to it with `--archive`",
            Self::News => "a statement is about signals: use `bellwether build`",
            Self::Wide => "a statement has one result: use `layout = \"long\"`, or `bellwether build`",
        };
        Some(hint.to_owned())
    }
}
