//! The news behind a dataset, as the archive knew it at an instant.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};

use super::built::Built;
use super::{Batches, Selection};
use crate::cancel::CancellationToken;
use crate::error::Result;
use crate::plan::{AdHoc, Plan};

/// The articles about the tickers of a plan: their values, when each was first seen, and how often it was revised. They
/// are the rows of a dataset of news, with the plan's naive dates; articles that are repeated exactly are all there.
#[derive(Clone, Debug)]
pub struct Articles(Arc<Built>);

impl Articles {
    /// The articles known as of an instant, or now.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn of(plan: &Plan, archive: &Path, as_of: Option<DateTime<Utc>>) -> Result<Self> {
        let plan = Plan { dataset: plan.dataset.of_articles(), ..plan.clone() };
        Built::of(plan, archive, &AdHoc { as_of, ..AdHoc::default() }).map(|built| Self(Arc::new(built)))
    }

    /// A part of them.
    ///
    /// # Errors
    ///
    /// When a column does not exist.
    pub fn select(self, selection: Selection) -> Result<Self> {
        Built::clone(&self.0).select(selection).map(|built| Self(Arc::new(built)))
    }

    /// The same articles, read until a token is cancelled.
    #[must_use]
    pub fn until(&self, stop: &CancellationToken) -> Self {
        Self(Arc::new(Built::clone(&self.0).until(stop.clone())))
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.0.selected()
    }

    /// The articles, by ticker and date, batch by batch. An error is an item of the reader.
    pub fn batches(&self) -> Batches {
        Batches::new(self.schema(), Box::new(self.0.rows()))
    }
}
