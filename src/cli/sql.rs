//! `bellwether sql`: a dataset as one SQL statement over the archive.

use bellwether::plan::{AdHoc, Vintage};
use bellwether::run::SqlOptions;
use bellwether::sql::Dialect;

use super::prelude::*;

/// Print the dataset as one SQL query over the archive.
///
/// The rows are those of `build`, in the same order. The statement names the instant, so that it computes the same rows when
/// the archive has grown.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether sql demo --as-of 2026-03-31 | duckdb
      the dataset as of March, computed by DuckDB")]
pub(super) struct Sql {
    /// A definition: its name in `pipelines/`, or a path. Without one, all are listed.
    definition: Option<String>,

    /// The engine to run it with: `duckdb` or `spark` (Spark SQL 4).
    #[arg(long, value_name = "DIALECT", default_value = "duckdb", value_parser = definition_value::<Dialect>)]
    dialect: Dialect,

    /// Use only the runs sealed by this instant: `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`.
    /// Default: everything in the archive.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    /// Which observation of a signal to use: `latest` (as revised) or `first` (as first published).
    #[arg(long, value_name = "VINTAGE", value_parser = definition_value::<Vintage>)]
    vintage: Option<Vintage>,

    #[command(flatten)]
    include: Include,

    /// The archive: a folder, or the URL of a copy for the engine to read, such as `s3://bucket/archive`. Default: `archive`
    /// in the data folder.
    #[arg(long, value_name = "FOLDER|URL", env = "BELLWETHER_ARCHIVE")]
    archive: Option<String>,

    #[command(flatten)]
    folder: DataFolder,

    #[command(flatten)]
    store: StoreOption,
}

impl Sql {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = plan_of(self.definition.as_deref(), project)?;
        let data = self.folder.data(project);
        let (archive, location) = match self.archive {
            Some(url) if url.contains("://") => (data.join("archive"), Some(url)),
            Some(folder) => (PathBuf::from(folder), None),
            None => (data.join("archive"), None),
        };
        let folders = Folders { definitions: project.definitions(), data, archive: archive.clone() };
        self.store.fetch(Some(&plan), &folders, &[FetchItem::Runs(self.as_of)])?;
        let (claims, dialect) = (self.include.claims(), self.dialect);
        let ad_hoc = AdHoc { as_of: self.as_of, vintage: self.vintage, claims, ..AdHoc::default() };
        say_as_it_is(&cancellable(move |control| {
            run::sql(plan, SqlOptions { archive, location, ad_hoc, dialect, control: control.clone() })
        })?)
    }
}
