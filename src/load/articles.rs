//! The news behind a dataset, as the archive knew it at an instant.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Batches, Selection};
use crate::archive::{ArchiveError, View, ViewOptions, of_service};
use crate::cancel::CancellationToken;
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::{ColumnNames, Plan, Vintage};
use crate::run::{archived, view};
use crate::tables::Table;

/// The articles about the tickers of a plan: their values, when each was first seen, and how often it was revised.
#[derive(Clone, Debug)]
pub struct Articles {
    view: View,
    selection: Selection,
}

impl Articles {
    /// The columns, in their order.
    const COLUMNS: [&str; 8] =
        ["ticker", "date", "title", "link", "score", "first_observed_at", "observed_at", "revisions"];

    /// The articles known as of an instant, or now.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read or has no answers to the plan's requests.
    pub fn of(plan: &Plan, archive: &Path, as_of: Option<DateTime<Utc>>) -> Result<Self> {
        let view = view(&of_service(archive, &plan.service.name)?, as_of, &CancellationToken::new())?;
        let scope = archived(plan, &view)?;
        let tickers = view.members(&scope)?.into_iter().map(|series| series.ticker);
        let selection = Selection { tickers: Some(tickers.collect()), ..Selection::default() };
        Ok(Self { view, selection })
    }

    /// A part of them.
    ///
    /// # Errors
    ///
    /// When a column does not exist.
    pub fn select(mut self, selection: Selection) -> Result<Self> {
        let own = self.selection.tickers.take().unwrap_or_default();
        let tickers: BTreeSet<Ticker> = match &selection.tickers {
            Some(tickers) => &own & tickers,
            None => own,
        };
        selection.schema(&Self::all())?;
        self.selection = Selection { tickers: Some(tickers), ..selection };
        Ok(self)
    }

    /// The same articles, read until a token is cancelled.
    #[must_use]
    pub fn until(&self, stop: &CancellationToken) -> Self {
        Self { view: self.view.until(stop), selection: self.selection.clone() }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.selection.schema(&Self::all()).expect("the columns were found when they were selected")
    }

    /// The articles, by ticker and date, batch by batch.
    ///
    /// # Errors
    ///
    /// When a file of the archive cannot be opened. What fails later is an item of the reader.
    pub fn batches(&self) -> Result<Batches> {
        let options = ViewOptions { vintage: Vintage::Latest, live_within: TimeDelta::zero() };
        let selection = self.selection.clone();
        let part = move |articles: RecordBatch| {
            let schema = articles.schema();
            let places = Self::COLUMNS.map(|name| schema.index_of(name).expect("articles have these columns"));
            let part =
                articles.project(&places).and_then(|articles| selection.part(&articles, &ColumnNames::default()));
            part.map_err(ArchiveError::merge)
        };
        let articles = self.view.known_articles(options)?;
        let articles = articles.map(move |articles| articles.and_then(&part));
        Ok(Batches::new(self.schema(), Box::new(articles)))
    }

    /// All columns.
    fn all() -> SchemaRef {
        let schema = Table::Articles.known_schema();
        let places = Self::COLUMNS.map(|name| schema.index_of(name).expect("articles have these columns"));
        Arc::new(schema.project(&places).expect("these columns exist"))
    }
}
