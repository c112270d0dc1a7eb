//! The prices that signals are measured against.

use std::path::Path;

use super::Validator;
use crate::definition::{Placed, PricesSection};
use crate::plan::{PriceColumns, PricesPlan, RowKind};
use crate::text::problem::{Problem, suggestion};

/// The columns of prices.
const COLUMNS: [&str; 3] = ["ticker", "date", "close"];

impl Validator {
    /// The prices of a definition.
    pub(super) fn prices(&mut self, section: &PricesSection, rows: RowKind, root: &Path) -> PricesPlan {
        let PricesSection { file, columns, adjusted } = section;
        let keys = [
            ("file", file.as_ref().map(Placed::span)),
            ("columns", columns.as_ref().map(Placed::span)),
            ("adjusted", adjusted.as_ref().map(Placed::span)),
        ];
        for (key, span) in keys.into_iter().filter_map(|(key, span)| Some((key, span?))) {
            if rows == RowKind::Article {
                let problem = Problem::new(format!("`{key}` has no effect without signals"), span);
                self.object(problem.with_hint("prices measure signals, and a dataset of news has none: remove it"));
            }
        }
        let mut names = PriceColumns::default();
        for (column, name) in columns.iter().flat_map(|columns| columns.iter()) {
            match column.as_str() {
                "ticker" => names.ticker = (**name).clone(),
                "date" => names.date = (**name).clone(),
                "close" => names.close = (**name).clone(),
                _ => {
                    let problem = Problem::new(format!("prices have no column `{column}`"), name.span());
                    self.object(problem.with_hint(suggestion(column, &COLUMNS, "the columns are")));
                }
            }
        }
        let files = self.distinct("file", file.as_ref()).unwrap_or_default();
        PricesPlan {
            files: files.into_iter().map(|file| root.join(file)).collect(),
            columns: names,
            adjusted: adjusted.as_deref().copied(),
        }
    }
}
