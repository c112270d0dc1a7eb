//! Datasets: published versions, and datasets built while they are read.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use bellwether::definition::Layout;
use bellwether::error::Result;
use bellwether::export::{PublishedReader, version_of};
use bellwether::facts::Facts;
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::{Column, Plan};
use bellwether::report::{Axis, Step};
use bellwether::run::{FetchItem, PriceInput};
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::{DataState, LoadOptions, Part};
use crate::ask::{PriceArgument, price_input};
use crate::definition::DefinitionArgument;
use crate::rows::Rows;
use crate::{store, supervise};

/// Matrices by name.
type Matrices = Vec<(String, Rows)>;

/// A long dataset or, without one, matrices; and the record as JSON.
type Loaded = (Option<Rows>, Matrices, String);

/// The part that is wanted of a dataset.
struct Wanted {
    selection: Selection,
    /// Whether tickers without rows are left out, and not refused.
    ignores_missing: bool,
}

impl Wanted {
    /// The part of a dataset.
    fn of(mut self, dataset: &Dataset) -> Result<Selection> {
        if self.ignores_missing
            && let Some(tickers) = &mut self.selection.tickers
        {
            let known = dataset.tickers()?;
            tickers.retain(|ticker| known.contains(ticker));
        }
        Ok(self.selection)
    }
}

/// A dataset: a published version, or one that is built from the archive each time it is read.
#[pyfunction]
pub(crate) fn load(
    py: Python<'_>,
    dataset: DefinitionArgument,
    folders: (PathBuf, PathBuf),
    options: LoadOptions,
    part: Part,
    prices: Option<PriceArgument<'_>>,
) -> PyResult<Loaded> {
    let prices = price_input(prices)?;
    supervise::quietly(py, move |stop| {
        let (layout, state) = (options.layout()?, options.state());
        let wanted = Wanted { selection: part.selection()?, ignores_missing: options.ignores_missing()? };
        let (data, archive) = folders;
        match dataset {
            DefinitionArgument::Named(name) if state.is_none() && !options.adds()? => {
                store::fetch_version(&name, (&data, &archive), &[], stop)?;
                load_version(&data.join("datasets"), &name, layout, wanted, stop)
            }
            dataset => {
                // Columns are added to what was published: it is built again, as of its own runs.
                let (dataset, state) = match (dataset, state) {
                    (DefinitionArgument::Named(name), None) => {
                        store::fetch_version(&name, (&data, &archive), &[], stop)?;
                        let (_, recorded) = version_of(&data.join("datasets"), Some(&name))?;
                        let pinned = Some(recorded.version.clone());
                        (DefinitionArgument::Named(recorded.name), DataState { as_of: pinned, ..DataState::default() })
                    }
                    (dataset, state) => (dataset, state.unwrap_or_default()),
                };
                let defined = dataset.plan_or_published(&data)?;
                let file = definition_file(&dataset, &defined);
                let pinned = state.as_of.clone();
                let (plan, ad_hoc, note) = state.find(defined, (&data, &archive), stop)?;
                let ad_hoc = options.with_added(ad_hoc)?;
                store::fetch(Some(&plan), (&data, &archive), &[FetchItem::Runs(ad_hoc.as_of)], stop)?;
                load_build(
                    plan,
                    &archive,
                    (&ad_hoc, prices),
                    (file, pinned, note),
                    (layout, options.stamp()?),
                    wanted,
                    stop,
                )
            }
        }
    })
}

/// A published version.
fn load_version(
    datasets: &Path,
    name: &str,
    layout: Option<Layout>,
    wanted: Wanted,
    stop: &CancellationToken,
) -> Result<Loaded> {
    // `latest` may move: rows and record must be of one version.
    let (folder, recorded) = version_of(datasets, Some(name))?;
    let path = folder.to_string_lossy();
    if layout != Some(Layout::Long)
        && let wide @ Published::Wide(_) = Published::find(datasets, &path)?
    {
        let Published::Wide(matrices) = &wide else { unreachable!("it is wide") };
        let selection = match matrices.values().next() {
            Some(matrix) => wanted.of(matrix)?,
            None => wanted.selection,
        };
        let Published::Wide(matrices) = wide.select(selection)? else { unreachable!("a part of matrices") };
        let matrices = matrices.into_iter().map(|(name, matrix)| (name, Rows::of_dataset(matrix)));
        return Ok((None, matrices.collect(), json!({ "name": recorded.reference(), "path": folder }).to_string()));
    }
    let version = PublishedReader::find(datasets, &path)?;
    let dataset = Dataset::find(datasets, &path)?;
    let identity = json!({
        "name": version.name(),
        "as_of": bellwether::time::to_record(version.record.as_of),
        "rows": version.record.rows,
        "content": version.record.content,
        "path": folder,
        "names": names(&dataset),
        "facts": facts(&folder),
    });
    of_long(&dataset, (layout, Column::Date), wanted.of(&dataset)?, &identity, stop)
}

/// The file of a definition that was named, which it has in any current folder.
fn definition_file(dataset: &DefinitionArgument, plan: &Plan) -> Option<PathBuf> {
    let is_named =
        matches!(dataset, DefinitionArgument::Named(_)) && plan.path.extension().is_some_and(|it| it == "toml");
    is_named.then(|| std::path::absolute(&plan.path).ok()).flatten()
}

/// A dataset that is built from the archive.
fn load_build(
    plan: Plan,
    archive: &Path,
    (ad_hoc, prices): (&AdHoc, PriceInput),
    (file, pinned, note): (Option<PathBuf>, Option<String>, Option<String>),
    layout: (Option<Layout>, Column),
    wanted: Wanted,
    stop: &CancellationToken,
) -> Result<Loaded> {
    let (name, as_of) = (plan.name.clone(), ad_hoc.as_of.map(bellwether::time::to_record));
    let dataset = Dataset::from_archive(plan, archive, ad_hoc)?.with_prices(prices);
    let identity = json!({
        "name": name, "as_of": as_of, "names": names(&dataset), "note": note, "definition": file, "pinned": pinned,
    });
    of_long(&dataset, layout, wanted.of(&dataset)?, &identity, stop)
}

/// A part of a long dataset, as it is or as matrices of some columns: of scores by default.
fn of_long(
    dataset: &Dataset,
    (layout, stamp): (Option<Layout>, Column),
    selection: Selection,
    identity: &Value,
    stop: &CancellationToken,
) -> Result<Loaded> {
    if layout != Some(Layout::Wide) {
        let rows = Rows::of_dataset(dataset.select(selection)?);
        return Ok((Some(rows), Vec::new(), identity.to_string()));
    }
    let values =
        selection.columns.clone().unwrap_or_else(|| [dataset.names().of(Column::Score.name()).to_owned()].into());
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let part = dataset.select(Selection { columns: None, ..selection })?;
    let matrices = part.until(stop.clone()).matrices(&values, stamp)?;
    let held = |(name, matrix): (String, RecordBatch)| (name, Rows::in_memory(matrix.schema(), vec![matrix]));
    Ok((None, matrices.into_iter().map(held).collect(), identity.to_string()))
}

/// What the columns are called that rows are selected by, and the signal.
fn names(dataset: &Dataset) -> Value {
    let columns = Column::KEY.into_iter().chain([Column::Signal, Column::Score, Column::Sector, Column::EntryAt]);
    columns.map(|column| (column.name(), dataset.names().of(column.name()).to_owned())).collect()
}

/// A version's facts over time, if they can be read.
fn facts(folder: &Path) -> Option<Value> {
    /// Maximum number of points of a sparkline.
    const POINTS: usize = 60;
    let facts = Facts::from_json(&std::fs::read(folder.join("facts.json")).ok()?).ok()?;
    let days: Vec<_> = facts.days.iter().map(|(day, _)| *day).collect();
    let axis = Axis::new(&days, Step::Month, POINTS);
    let over_time = axis.sums(facts.days.iter().copied());
    let bounds = facts.bounds().map(|(first, last)| [first.to_string(), last.to_string()]);
    Some(json!({
        "tickers": facts.tickers.len(),
        "signals": facts.rows,
        "dates": bounds,
        "pairs": facts.pairs.len(),
        "over_time": over_time,
    }))
}
