//! The news behind a dataset, as the archive knew it at an instant.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::Dataset;
use crate::error::Result;
use crate::plan::{AdHoc, Plan};

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
}
