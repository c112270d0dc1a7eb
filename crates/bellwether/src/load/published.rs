//! Published versions, long or wide.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::names::absent;
use super::{Dataset, Selection};
use crate::error::{Error, Result};
use crate::export::{AnyReader, PublishedReader};
use crate::interface::{Period, Regime};
use crate::plan::Column;

/// A published version, long or wide.
///
/// ```no_run
/// use bellwether::load::Published;
///
/// match Published::find("output/datasets".as_ref(), "demo")? {
///     Published::Long(dataset) => println!("{} columns", dataset.schema().fields().len()),
///     Published::Wide(matrices) => {
///         for (name, matrix) in &matrices {
///             println!("{name}: {} tickers", matrix.schema().fields().len() - 1);
///         }
///     }
/// }
/// # Ok::<(), bellwether::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Published {
    /// A row for each signal.
    Long(Dataset),
    /// A matrix for each period, regime and value, by name: `5d-bull/confidence`.
    Wide(BTreeMap<String, Dataset>),
}

impl Published {
    /// A version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// When it does not exist, or has a record or a file that cannot be read.
    pub fn find(datasets: &Path, name: &str) -> Result<Self> {
        let dataset = |reading: PublishedReader| reading.select(Selection::default()).map(Dataset::of_version);
        match AnyReader::find(datasets, name)? {
            AnyReader::Long(reading) => dataset(*reading).map(Self::Long),
            AnyReader::Wide(matrices) => {
                let matrices = matrices.into_iter().map(|(name, reading)| Ok((name, dataset(reading)?)));
                matrices.collect::<Result<_>>().map(Self::Wide)
            }
        }
    }

    /// A part of it. Of a wide version, periods and regimes select matrices, and columns their values; its matrices have
    /// the columns of the key anyway.
    ///
    /// # Errors
    ///
    /// As [`Dataset::select`].
    pub fn select(&self, selection: Selection) -> Result<Self> {
        match self {
            Self::Long(dataset) => dataset.select(selection).map(Self::Long),
            Self::Wide(matrices) => part(matrices, selection).map(Self::Wide),
        }
    }
}

/// The name of a matrix in its parts: `5d-bull/confidence`.
fn parse_matrix(name: &str) -> Option<(Period, Regime, &str)> {
    let (pair, value) = name.split_once('/')?;
    let (period, regime) = pair.split_once('-')?;
    Some((period.parse().ok()?, regime.parse().ok()?, value))
}

/// A part of some matrices.
fn part(matrices: &BTreeMap<String, Dataset>, selection: Selection) -> Result<BTreeMap<String, Dataset>> {
    let of_rows = Selection { columns: None, ..selection.clone() };
    of_rows.check_values()?;
    let names: Vec<(Period, Regime, &str)> = matrices.keys().filter_map(|name| parse_matrix(name)).collect();
    absent("period", selection.periods.as_ref(), &names.iter().map(|(period, ..)| *period).collect())?;
    absent("regime", selection.regimes.as_ref(), &names.iter().map(|(_, regime, _)| *regime).collect())?;
    let values: BTreeSet<&str> = names.iter().map(|(.., value)| *value).collect();
    let is_key = |name: &str| {
        let renamed =
            matrices.values().any(|matrix| Column::KEY.iter().any(|key| matrix.names().of(key.name()) == name));
        renamed || Column::KEY.iter().any(|key| key.name() == name)
    };
    let columns = selection.columns.as_ref().map(|columns| columns.iter().map(String::as_str).collect::<Vec<_>>());
    for name in columns.iter().flatten() {
        if !values.contains(name) && !is_key(name) {
            let known = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
            let what = format!("no matrices of column `{name}`; there are those of {known}");
            return Err(Error::usage(what, "name one of these, or leave out `--columns` for all"));
        }
    }
    if columns.as_ref().is_some_and(|columns| !columns.iter().any(|name| values.contains(name))) {
        return Err(no_value());
    }
    let is_selected = |name: &str| {
        parse_matrix(name).is_some_and(|(period, regime, value)| {
            columns.as_ref().is_none_or(|columns| columns.contains(&value))
                && selection.periods.as_ref().is_none_or(|periods| periods.contains(&period))
                && selection.regimes.as_ref().is_none_or(|regimes| regimes.contains(&regime))
        })
    };
    let of_each = Selection { periods: None, regimes: None, ..of_rows };
    let selected = matrices.iter().filter(|(name, _)| is_selected(name));
    selected.map(|(name, matrix)| Ok((name.clone(), matrix.select(of_each.clone())?))).collect()
}

/// The refusal of matrices without a value.
pub(super) fn no_value() -> Error {
    Error::usage("no column for the values of matrices", "name one that is not of the key, such as `confidence`")
}
