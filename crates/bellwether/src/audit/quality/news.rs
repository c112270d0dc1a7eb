//! How many signals of a dataset have news, and how they are dated; builds the dataset with only its counts.

use std::collections::HashMap;
use std::path::PathBuf;

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};

use crate::archive::{Scope, View};
use crate::dataset::{self, DatasetInput, SeriesNames};
use crate::error::Result;
use crate::plan::{DatasetPlan, Days, RowKind};
use crate::split_days::{SplitDays, TimesOfDay};

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

/// What the rows of a dataset show.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFindings {
    /// Signals with news, by window.
    pub(crate) windows: Vec<Window>,
    /// Tickers whose signals are dated at other times of day than those of most others.
    pub(crate) split_days: Option<SplitDays>,
}

/// Counts signals with news in each window of a dataset, and looks at their dates. `scratch` is a temporary folder, removed
/// afterwards.
pub(crate) fn of_rows(view: &View, scope: &Scope, plan: &DatasetPlan, scratch: PathBuf) -> Result<RowFindings> {
    let mut windows: Vec<Window> =
        plan.windows().into_iter().map(|days| Window { days, signals: 0, with_news: 0, unknown: 0 }).collect();
    if plan.rows == RowKind::Article {
        return Ok(RowFindings::default());
    }
    let plan = plan.of_counts();
    let (mut tickers, mut times) = (HashMap::new(), TimesOfDay::default());
    let whole = scope.without_filter();
    dataset::build(
        DatasetInput {
            slabs: || view.slabs(scope, plan.vintage),
            whole: || view.slabs(&whole, plan.vintage),
            names: SeriesNames::default(),
            past: plan.needs_past().then(|| view.past(scope, &plan)).transpose()?,
            stop: view.archive().stop(),
        },
        &plan,
        scratch,
        |rows| {
            let column = |name: &str| rows.column(name).expect("signals have tickers and dates");
            let (names, dates) = (column("ticker"), column("date"));
            let (all, moments) =
                (names.values().as_string::<i32>(), dates.values().as_primitive::<TimestampMicrosecondType>());
            for (start, _) in (names.boundaries() | dates.boundaries()).runs() {
                let (name, count) = (all.value(names.index(start)), tickers.len());
                let ticker = match tickers.get(name) {
                    Some(ticker) => *ticker,
                    None => *tickers.entry(name.to_owned()).or_insert(count),
                };
                times.add(ticker, moments.value(dates.index(start)));
            }
            for window in &mut windows {
                let name = crate::plan::Feature::Count(window.days).to_string();
                let column = rows.column(&name).expect("the plan has a count for each window");
                let counts = column.values().as_primitive::<Int32Type>().values();
                window.signals += column.len() as u64;
                let is_unknown = |index: usize| column.values().is_null(index);
                window.unknown += column.rows_where(is_unknown) as u64;
                window.with_news += column.rows_where(|index| !is_unknown(index) && counts[index] > 0) as u64;
            }
            Ok(())
        },
    )?;
    Ok(RowFindings { windows, split_days: times.split() })
}
