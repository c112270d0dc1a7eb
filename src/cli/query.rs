//! `bellwether query`: a question in SQL, which Polars answers.

use bellwether::run::AsOf;

use super::prelude::*;

/// Ask a question in SQL about a dataset and the archive behind it.
///
/// The tables are `dataset` (the latest version), `signals` and `articles` (what the archive knows), `observations` (each
/// value that a signal had, with `known_from` and `known_until`), `runs`, `requests` and `rejects`. Polars answers, in its
/// SQL. In memory are those tables that the statement names.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether query demo \"select period, avg(confidence) from dataset group by period\"
  bellwether query demo \"select * from observations where ticker = 'XOM'\" --output xom.csv
      each value that a signal of XOM had, and when it was known")]
pub(super) struct Query {
    /// A definition: its name in `pipelines/`, or a path.
    definition: String,

    /// The statement.
    sql: String,

    /// Ask about the past: `dataset` is built as it was known, and the archive counts up to then.
    ///
    /// An instant is `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`. A version is built again from its
    /// own runs and its own definition; a run stands for all that it knew.
    #[arg(long, value_name = "WHEN", value_parser = as_of)]
    as_of: Option<AsOf>,

    #[command(flatten)]
    include: Include,

    #[command(flatten)]
    rows: RowsTo,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Query {
    #[cfg(not(feature = "query"))]
    pub(super) fn execute(self, _: &Project) -> Result<()> {
        let hint = "take one that is released, or build it with `cargo build --release --features query`; `bellwether sql` \
                    prints a dataset as SQL for DuckDB";
        Err(usage("this build has no SQL engine", hint))
    }

    #[cfg(feature = "query")]
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        use super::show::{ColumnOption, MAX_ROWS, first_rows_of};
        use bellwether::load::AdHoc;
        use bellwether::load::query::Question;
        use bellwether::run::Past;

        let (folders, claims) = (self.folders.of_project(project), self.include.claims());
        let past = self.store.past(Some(&self.definition), self.as_of.as_ref(), claims, &folders, project)?;
        let Past { plan, as_of, version, .. } = past;
        self.store.fetch(Some(&plan), &folders, &[FetchItem::Runs(as_of)])?;
        let ad_hoc = AdHoc { as_of, version, claims, ..AdHoc::default() };
        let (datasets, archive, sql) = (folders.data.join("datasets"), folders.archive, self.sql);
        let rows = cancellable(move |control| {
            Question { plan, datasets, archive, ad_hoc, stop: control.stop.clone() }.rows(&sql)
        })?;
        self.rows.fill(rows.schema(), |deliver| deliver(&rows))?;
        if self.rows.output.is_some() {
            return Ok(());
        }
        let first = rows.slice(0, rows.num_rows().min(MAX_ROWS));
        say(&first_rows_of(&rows.schema(), &[first], rows.num_rows(), ColumnOption::Given)?)
    }
}
