//! Which tickers are the same security over time.

use std::path::Path;

use super::Validator;
use crate::definition::{Definition, Placed};
use crate::identity::Identity;
use crate::plan::columns::{Column, RowKind};
use crate::text::problem::Problem;

impl Validator {
    /// The identity of the tickers of a definition.
    pub(super) fn identity(
        &mut self,
        definition: &Definition,
        rows: RowKind,
        columns: &[Column],
        root: &Path,
    ) -> Identity {
        let has_ids = columns.contains(&Column::Id);
        let Some(file) = &definition.identity.file else {
            if has_ids {
                let span = definition.dataset.columns.as_ref().map(Placed::span);
                let span = span.or(definition.dataset.add.as_ref().map(Placed::span)).unwrap_or_default();
                let problem = Problem::new("`id` needs a file that says which tickers are one", span);
                self.miss("identity", problem.with_hint("name one in `[identity]`: `file = \"identity.csv\"`"));
            }
            return Identity::default();
        };
        if rows == RowKind::Article && !has_ids {
            let problem = Problem::new("`file` has no effect on news without `id`", file.span());
            self.object(problem.with_hint("add `\"id\"` to `add` in `[dataset]`, or remove it"));
        }
        Identity::read(&root.join(file.as_str())).unwrap_or_else(|error| {
            let problem = Problem::new(format!("`{}` does not say who is who: {error}", file.as_str()), file.span());
            self.object(problem.with_hint(
                "name a CSV file with a line per ticker and id: `ticker`, `from`, `to` and `id`, with dates such as `2022-06-09`",
            ));
            Identity::default()
        })
    }
}
