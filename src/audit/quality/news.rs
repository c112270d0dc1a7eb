//! How many signals of a dataset have news; builds the dataset with only its counts.

use std::path::PathBuf;

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;

use crate::archive::{Scope, View, ViewOptions};
use crate::dataset::{self, DatasetInput, SeriesNames};
use crate::error::Result;
use crate::plan::{DatasetPlan, Days};

/// A news window of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its length.
    pub days: Days,
    /// Signals of the dataset.
    pub signals: u64,
    /// Signals with an article in the window.
    pub with_news: u64,
    /// Signals for which it is unknown what was in the window: the news was never asked for, or the list is cut off.
    pub unknown: u64,
}

impl Window {
    /// Share of the signals with a known window that have news; `None` without such signals.
    pub fn share(&self) -> Option<f64> {
        let known = self.signals - self.unknown;
        (known > 0).then(|| self.with_news as f64 / known as f64)
    }
}

/// Counts signals with news in each window of a dataset. `scratch` is a temporary folder, removed afterwards.
///
/// # Errors
///
/// If the archive cannot be read or the dataset cannot be built.
pub(crate) fn windows(view: &View, scope: &Scope, plan: &DatasetPlan, scratch: PathBuf) -> Result<Vec<Window>> {
    let mut windows: Vec<Window> =
        plan.windows().into_iter().map(|days| Window { days, signals: 0, with_news: 0, unknown: 0 }).collect();
    if windows.is_empty() {
        return Ok(windows);
    }
    let plan = plan.of_counts();
    let options = ViewOptions::of(&plan);
    let whole = scope.unfiltered();
    dataset::build(
        DatasetInput {
            slabs: || view.slabs(scope, options),
            whole: || view.slabs(&whole, options),
            names: SeriesNames::default(),
            past: plan.needs_past().then(|| view.past(scope)).transpose()?,
            stop: view.archive().stop(),
        },
        &plan,
        scratch,
        |rows| {
            for window in &mut windows {
                let name = crate::plan::Feature::Count(window.days).to_string();
                let column = rows.column(&name).expect("the plan has a count for each window");
                let counts = column.values().as_primitive::<Int32Type>().values();
                window.signals += column.len() as u64;
                let is_unknown = |place: usize| column.values().is_null(place);
                window.unknown += column.rows_where(is_unknown) as u64;
                window.with_news += column.rows_where(|place| !is_unknown(place) && counts[place] > 0) as u64;
            }
            Ok(())
        },
    )?;
    Ok(windows)
}
