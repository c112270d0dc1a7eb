//! Datasets: published versions, and datasets built while they are read.

use std::path::{Path, PathBuf};

use bellwether::error::Result;
use bellwether::export::PublishedReader;
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::Column;
use bellwether::report::facts::{Axis, Facts, SignalTotals, Step};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::arguments::{Part, moment, vintage_of};
use crate::definition::DefinitionArgument;
use crate::rows::Rows;
use crate::supervise;

/// Matrices by name.
type Matrices = Vec<(String, Rows)>;

/// A published version, and its record as JSON.
#[pyfunction]
pub(crate) fn published(py: Python<'_>, datasets: PathBuf, name: String, part: Part) -> PyResult<(Rows, String)> {
    supervise::quietly(py, move |_| {
        let version = PublishedReader::find(&datasets, &name)?;
        // `latest` may move: rows and record must be of one version.
        let folder = version.folder().to_owned();
        let dataset = Dataset::published(&datasets, &folder.to_string_lossy())?.select(part.selection()?)?;
        let identity = json!({
            "name": version.name(),
            "as_of": version.as_of(),
            "rows": version.row_count(),
            "content": version.content(),
            "path": folder,
            "names": names(&dataset),
            "facts": facts(&folder),
        });
        Ok((Rows::of_dataset(dataset), identity.to_string()))
    })
}

/// The matrices of a published version by name, and its record as JSON; `None` if it is long.
#[pyfunction]
pub(crate) fn published_wide(
    py: Python<'_>,
    datasets: PathBuf,
    name: String,
    part: Part,
) -> PyResult<Option<(Matrices, String)>> {
    supervise::quietly(py, move |_| {
        let Published::Wide(matrices) = Published::find(&datasets, &name)? else { return Ok(None) };
        let selection = Selection { columns: None, ..part.selection()? };
        let is_wanted = |name: &str| {
            let value = name.rsplit('/').next().unwrap_or_default();
            part.columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == value))
        };
        let wanted = matrices.into_iter().filter(|(name, _)| is_wanted(name));
        let selected = wanted.map(|(name, matrix)| Ok((name, Rows::of_dataset(matrix.select(selection.clone())?))));
        Ok(Some((selected.collect::<Result<_>>()?, json!({ "name": name }).to_string())))
    })
}

/// A dataset that is built from the archive each time it is read, and its description as JSON.
#[pyfunction]
pub(crate) fn built(
    py: Python<'_>,
    definition: DefinitionArgument,
    data: PathBuf,
    archive: PathBuf,
    options: (Option<String>, Option<String>),
    part: Part,
) -> PyResult<(Rows, String)> {
    supervise::quietly(py, move |_| {
        let plan = definition.plan_or_published(&data)?;
        let (as_of, vintage) = options;
        let ad_hoc =
            AdHoc { as_of: moment(as_of.as_deref())?, vintage: vintage_of(vintage.as_deref())?, ..AdHoc::default() };
        let (name, as_of) = (plan.name.clone(), ad_hoc.as_of.map(bellwether::time::to_record));
        let dataset = Dataset::built(plan, &archive, &ad_hoc)?.select(part.selection()?)?;
        let identity = json!({ "name": name, "as_of": as_of, "names": names(&dataset) });
        Ok((Rows::of_dataset(dataset), identity.to_string()))
    })
}

/// The names of the columns that a signal has in any dataset.
fn names(dataset: &Dataset) -> Value {
    let columns = Column::KEY.into_iter().chain([Column::Signal]);
    columns.map(|column| (column.name(), dataset.names().of(column.name()).to_owned())).collect()
}

/// The matrices of some columns, by name; of signals and confidences by default.
#[pyfunction]
pub(crate) fn matrices(py: Python<'_>, rows: Py<Rows>, values: Option<Vec<String>>) -> PyResult<Matrices> {
    let Some(dataset) = rows.get().dataset().cloned() else {
        return Err(PyTypeError::new_err("the rows are not those of a dataset"));
    };
    supervise::quietly(py, move |stop| {
        let values: Vec<&str> = match &values {
            Some(values) => values.iter().map(String::as_str).collect(),
            None => [Column::Signal, Column::Confidence].map(|column| dataset.names().of(column.name())).into(),
        };
        let matrices = dataset.until(stop.clone()).matrices(&values)?;
        Ok(matrices.into_iter().map(|(name, matrix)| (name, Rows::held(matrix.schema(), vec![matrix]))).collect())
    })
}

/// A version's facts over time, if they can be read.
fn facts(folder: &Path) -> Option<Value> {
    /// Maximum number of points of a sparkline.
    const POINTS: usize = 60;
    let facts = Facts::from_json(&std::fs::read(folder.join("facts.json")).ok()?).ok()?;
    let axis = Axis::of(&facts.days, Step::Month, POINTS);
    let mut totals = vec![SignalTotals::default(); axis.len()];
    for pair in &facts.pairs {
        pair.over(&facts.days, &axis).into_iter().zip(&mut totals).for_each(|(one, sum)| *sum = *sum + one);
    }
    let bounds = facts.bounds().map(|(first, last)| [first.to_string(), last.to_string()]);
    Some(json!({
        "tickers": facts.tickers.len(),
        "signals": facts.rows,
        "dates": bounds,
        "pairs": facts.pairs.len(),
        "over_time": {
            "signals": totals.iter().map(|of| of.rows).collect::<Vec<_>>(),
            "buys": totals.iter().map(|of| of.buy_share()).collect::<Vec<_>>(),
            "confidence": totals.iter().map(|of| of.mean_confidence()).collect::<Vec<_>>(),
        },
    }))
}
