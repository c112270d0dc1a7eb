//! What is shown: a dataset, published or built on the spot, or one matrix of it if it is wide; or any file of rows.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bellwether::export::PublishedReader;
use bellwether::load::file::FileRows;
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::{Column, Plan, Shape};
use bellwether::project::Project;
use bellwether::run::{AsOf, FetchItem, Past, PastQuery};

use super::Show;
use crate::cli::note;
use crate::cli::outcome::Result;
use crate::cli::store::LocalFolders;
use crate::cli::typed::{plan_of, usage};

/// The rows to choose from.
pub(super) struct ShownRows {
    pub(super) schema: SchemaRef,
    /// The matrix that they are of; none for a long dataset.
    pub(super) matrix: Option<Matrix>,
    /// Number of rows, if it is known without reading them.
    pub(super) count: Option<u64>,
    pub(super) batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>,
}

/// A matrix among those that are selected.
pub(super) struct Matrix {
    pub(super) name: String,
    /// How many others are selected.
    pub(super) others: usize,
}

impl Matrix {
    /// The line below its table.
    pub(super) fn line(&self) -> String {
        match self.others {
            0 => format!("`{}`\n", self.name),
            others => {
                let all = others + 1;
                format!(
                    "`{}`, the first of {all} matrices; `--period`, `--regime` and `--columns` choose another\n",
                    self.name
                )
            }
        }
    }
}

impl Show {
    /// A published version.
    pub(super) fn published_version(&self, project: &Project) -> Result<ShownRows> {
        let data = self.folders.data(project);
        self.store.fetch_version(&self.dataset, &data, project)?;
        match Published::find(&data.join("datasets"), &self.dataset)?.select(self.selection())? {
            Published::Long(dataset) => {
                let rows = self.last().map(|rows| dataset.ending(rows));
                ShownRows::of(rows.as_ref().unwrap_or(&dataset), None)
            }
            Published::Wide(matrices) => {
                let (matrix, dataset) = first(matrices)?;
                ShownRows::of(&dataset, Some(matrix))
            }
        }
    }

    /// A file of rows, whoever wrote it.
    pub(super) fn file(&self, path: &Path) -> Result<ShownRows> {
        let FileRows { schema, count, batches } = FileRows::open(path, self.selection())?;
        Ok(ShownRows { schema, matrix: None, count, batches })
    }

    /// A dataset that is built in memory, as it was known, or the history of its values.
    pub(super) fn rebuild(&self, as_of: Option<&AsOf>, name: &str, project: &Project) -> Result<ShownRows> {
        let (archive, data, claims) =
            (self.folders.archive(project), self.folders.data(project), self.include.claims());
        let query = PastQuery { data: &data, archive: &archive, claims };
        let local = LocalFolders { archive: &archive, data: &data };
        let plan = plan_of(Some(name), project)?;
        self.store.fetch(Some(&plan), local, &FetchItem::of_name(&plan.name, as_of))?;
        let Past { plan, as_of, version, note: told } = query.find(plan, as_of)?;
        told.iter().for_each(|text| note(&format!("note: {text}")));
        self.store.fetch(Some(&plan), local, &[FetchItem::Runs(as_of)])?;
        let ad_hoc = AdHoc { as_of, version, claims, ..AdHoc::default() };
        if self.history {
            let values = Dataset::history(&plan, &archive, &ad_hoc)?;
            return ShownRows::of(&values.select(self.selection())?, None);
        }
        let values = self.values(&plan);
        let ad_hoc = AdHoc { add: self.add.clone(), ..ad_hoc };
        let dataset = Dataset::from_archive(plan, &archive, &ad_hoc)?;
        let Some(values) = values else { return ShownRows::of(&dataset.select(self.selection())?, None) };
        let rows = dataset.select(Selection { columns: None, ..self.selection() })?;
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let (matrix, rows) = first(rows.matrices(&values, Column::Date)?)?;
        Ok(ShownRows {
            schema: rows.schema(),
            matrix: Some(matrix),
            count: None,
            batches: Box::new([Ok(rows)].into_iter()),
        })
    }

    /// A published version, built again with further columns.
    pub(super) fn with_added(&self, project: &Project) -> Result<ShownRows> {
        let data = self.folders.data(project);
        self.store.fetch_version(&self.dataset, &data, project)?;
        let version = PublishedReader::find(&data.join("datasets"), &self.dataset)?;
        let reference = version.name();
        let (name, id) = reference.split_once('/').unwrap_or((&reference, ""));
        let id = id.rsplit('/').next().unwrap_or(id);
        self.rebuild(Some(&AsOf::Named(id.to_owned())), name, project)
    }

    /// The columns that become matrices; none if the dataset is long.
    fn values(&self, plan: &Plan) -> Option<Vec<String>> {
        match &plan.dataset.shape {
            Shape::Long => None,
            Shape::Wide(_) if !self.columns.is_empty() => Some(self.columns.clone()),
            Shape::Wide(values) => {
                let names = plan.dataset.written.names();
                Some(values.iter().map(|value| names.of(value).to_owned()).collect())
            }
        }
    }
}

impl ShownRows {
    fn of(dataset: &Dataset, matrix: Option<Matrix>) -> Result<Self> {
        Ok(Self {
            schema: dataset.schema(),
            matrix,
            count: dataset.known_count(),
            batches: Box::new(dataset.batches()?),
        })
    }
}

/// The first of some matrices, by name.
fn first<T>(matrices: impl IntoIterator<Item = (String, T), IntoIter: ExactSizeIterator>) -> Result<(Matrix, T)> {
    let mut matrices = matrices.into_iter();
    let Some((name, first)) = matrices.next() else {
        return Err(usage("no matrix is selected", "choose another period, regime or range of dates"));
    };
    Ok((Matrix { name, others: matrices.len() }, first))
}
