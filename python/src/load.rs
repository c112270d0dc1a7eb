//! Datasets: published versions, and datasets built while they are read.

use std::path::Path;

use bellwether::definition::Layout;
use bellwether::error::Result;
use bellwether::export::version_of;
use bellwether::facts::Facts;
use bellwether::load::{AdHoc, Dataset, Published};
use bellwether::plan::{Added, Column};
use bellwether::report::{Axis, Step};
use bellwether::run::{Control, FetchItem, PriceInput};
use bellwether::time::to_record;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::arguments::{Given, Part, Subject, optional, value};
use crate::call::call;
use crate::rows::{GivenRows, Rows, price_input};

/// How to load a dataset.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LoadOptions {
    /// None for that of the version.
    layout: Option<String>,
    /// Whether the session of entry dates the rows of matrices.
    by_session: bool,
    /// Whether tickers without rows are left out, and not refused.
    ignores_missing: bool,
    add: Vec<String>,
    labels: Vec<String>,
    lag: Option<u32>,
}

/// Long rows or, without them, matrices by name; and the record as JSON.
type Loaded = (Option<Rows>, Vec<(String, Rows)>, String);

/// A dataset: a published version, or one that is built from the archive each time it is read.
#[pyfunction]
pub(crate) fn load(
    py: Python<'_>,
    subject: Subject,
    options: LoadOptions,
    part: Part,
    prices: Option<GivenRows<'_>>,
) -> PyResult<Loaded> {
    let prices = price_input(prices)?;
    call(py, None, move |control| {
        let (mut subject, mut selection) = (subject, part.selection()?);
        let layout = optional("layout", options.layout.as_deref(), str::parse)?;
        let is_wide = layout == Some(Layout::Wide);
        let stamp = if is_wide && options.by_session { Column::EntryAt } else { Column::Date };
        let mut add: Vec<Added> =
            options.add.iter().map(|text| value("add", text, str::parse)).collect::<Result<_>>()?;
        add.extend((stamp == Column::EntryAt).then_some(Added::EntryAt));
        let mut labels = Vec::new();
        for text in &options.labels {
            let period =
                |text: &str| text.parse().map_err(|_| "it is no period\nuse `1d` to `30d`, or `1m` to `6m`".to_owned());
            labels.push(value("horizons", text, period)?);
        }
        let adds = !add.is_empty() || !labels.is_empty();
        let added = AdHoc { add, labels, lag: options.lag, ..AdHoc::default() };
        let is_as_published = subject.as_of.is_none() && subject.vintage.is_none() && !subject.claimed;
        let (published, mut identity) = match subject.definition.clone() {
            Some(Given::Named(name)) if is_as_published => {
                subject.fetch_version(&name, &[], control)?;
                let datasets = subject.data.join("datasets");
                if adds {
                    // Columns are added to what was published: it is built again, as of its own runs.
                    let (_, recorded) = version_of(&datasets, Some(&name))?;
                    subject.as_of = Some(recorded.version);
                    subject.definition = Some(Given::Named(recorded.name));
                    build(&subject, added, prices, control)?
                } else {
                    find_version(&datasets, &name, layout)?
                }
            }
            _ => build(&subject, added, prices, control)?,
        };
        let first = match &published {
            Published::Long(dataset) => Some(dataset),
            Published::Wide(matrices) => matrices.values().next(),
        };
        if let Some(dataset) = first {
            identity["names"] = names(dataset);
            if options.ignores_missing
                && let Some(tickers) = &mut selection.tickers
            {
                let known = dataset.tickers()?;
                tickers.retain(|ticker| known.contains(ticker));
            }
        }
        let identity = identity.to_string();
        let matrices: Vec<(String, Rows)> = match published {
            Published::Long(dataset) if is_wide => {
                let score = [dataset.names().of(Column::Score.name()).to_owned()];
                let columns = selection.columns.take();
                let values: Vec<&str> = columns.as_deref().unwrap_or(&score).iter().map(String::as_str).collect();
                let part = dataset.select(selection)?.until(control.stop.clone());
                let matrices = part.matrices(&values, stamp)?.into_iter();
                matrices.map(|(name, matrix)| (name, Rows::in_memory(matrix.schema(), vec![matrix]))).collect()
            }
            published => match published.select(selection)? {
                Published::Long(dataset) => return Ok((Some(Rows::of_dataset(dataset)), Vec::new(), identity)),
                Published::Wide(matrices) => {
                    matrices.into_iter().map(|(name, matrix)| (name, Rows::of_dataset(matrix))).collect()
                }
            },
        };
        Ok((None, matrices, identity))
    })
}

/// A published version; with its layout, if that is to be long.
fn find_version(datasets: &Path, name: &str, layout: Option<Layout>) -> Result<(Published, Value)> {
    // `latest` may move: rows and record must be of one version.
    let (folder, recorded) = version_of(datasets, Some(name))?;
    let path = folder.to_string_lossy();
    let published = match layout {
        Some(Layout::Long) => Published::Long(Dataset::find(datasets, &path)?),
        _ => Published::find(datasets, &path)?,
    };
    let identity = json!({
        "name": recorded.reference(),
        "as_of": to_record(recorded.as_of),
        "rows": recorded.rows,
        "content": recorded.content,
        "path": folder,
        "facts": facts(&folder),
    });
    Ok((published, identity))
}

/// A dataset that is built from the archive.
fn build(subject: &Subject, added: AdHoc, prices: PriceInput, control: &Control) -> Result<(Published, Value)> {
    let (plan, past, note) = subject.past(control)?;
    let AdHoc { add, labels, lag, .. } = added;
    let ad_hoc = AdHoc { add, labels, lag, ..past };
    subject.fetch(Some(&plan), &[FetchItem::Runs(ad_hoc.as_of)], control)?;
    // The file of a definition that was named is its name in any current folder.
    let is_file = matches!(subject.definition, Some(Given::Named(_)))
        && plan.path.extension().is_some_and(|extension| extension == "toml");
    let identity = json!({
        "name": plan.name,
        "as_of": ad_hoc.as_of.map(to_record),
        "note": note,
        "definition": is_file.then(|| std::path::absolute(&plan.path).ok()),
        "pinned": subject.as_of,
    });
    let dataset = Dataset::from_archive(plan, &subject.archive, &ad_hoc)?.with_prices(prices);
    Ok((Published::Long(dataset), identity))
}

/// What the columns are called that rows are selected by, and the signal.
fn names(dataset: &Dataset) -> Value {
    let columns = Column::KEY.into_iter().chain([Column::Signal, Column::Score, Column::Sector, Column::EntryAt]);
    columns.map(|column| (column.name(), dataset.names().of(column.name()).to_owned())).collect()
}

/// A version's facts over time, if they can be read.
fn facts(folder: &Path) -> Option<Value> {
    let facts = Facts::from_json(&std::fs::read(folder.join("facts.json")).ok()?).ok()?;
    let days: Vec<_> = facts.days.iter().map(|(day, _)| *day).collect();
    // A sparkline has 60 points at most.
    let over_time = Axis::new(&days, Step::Month, 60).sums(facts.days.iter().copied());
    let bounds = facts.bounds().map(|(first, last)| [first.to_string(), last.to_string()]);
    Some(json!({ "tickers": facts.tickers.len(), "dates": bounds, "over_time": over_time }))
}
