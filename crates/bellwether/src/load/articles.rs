//! What the archive knows behind a dataset: the news, as of an instant, and every value that a signal had.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::Dataset;
use crate::error::{Error, Result};
use crate::plan::{AdHoc, Plan, RowKind};

impl Dataset {
    /// The articles about the tickers of a plan, known as of an instant, or now: their values, when each was first seen, and
    /// how often it was revised. They are the rows of a dataset of news, with the plan's naive dates; articles that are
    /// repeated exactly are all there.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn articles(plan: &Plan, archive: &Path, as_of: Option<DateTime<Utc>>) -> Result<Self> {
        let plan = Plan { dataset: plan.dataset.of_articles(), ..plan.clone() };
        Self::from_archive(plan, archive, &AdHoc { as_of, ..AdHoc::default() })
    }

    /// Every value that the signals of a plan had, whatever they said, with from when and until when it was known: the rows
    /// of a dataset of all vintages.
    ///
    /// # Errors
    ///
    /// When the plan has no signals, and those of [`Dataset::from_archive`].
    pub fn history(plan: &Plan, archive: &Path, ad_hoc: &AdHoc) -> Result<Self> {
        if plan.dataset.rows == RowKind::Article {
            let what = format!("`{}` has no signals whose values have a history", plan.name);
            return Err(Error::usage(what, "name a definition that has signals"));
        }
        let plan = Plan { dataset: plan.dataset.of_observations(), ..plan.clone() };
        Self::from_archive(plan, archive, ad_hoc)
    }
}
