//! `bellwether audit sources`: whether the vendor's operations agree.

use std::cmp::Reverse;

use bellwether::audit::sources;

use super::AuditArguments;
use crate::cli::prelude::*;

/// Compare operations that give the same signals or articles: histories, latest signals and summaries.
#[derive(Debug, clap::Args)]
pub(super) struct Sources {
    /// A definition: its name in `pipelines/`, or a path. Compares only the tickers, periods and regimes of its
    /// dataset. Default: the whole archive.
    definition: Option<String>,

    /// Show long lists in full, except for disagreements: `--output FILE` writes those.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    arguments: AuditArguments,
}

impl Sources {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = named_plan(self.definition.as_deref(), project)?;
        let found = self.arguments.run(plan.as_ref(), None, project, sources::schema(), |options, deliver| {
            run::audit_sources(options, deliver)
        })?;
        self.arguments.print(plan.as_ref(), &found, || describe(&found, row_limit(self.all)))
    }
}

fn describe(found: &sources::Sources, limit: usize) -> String {
    if found.operations.is_empty() {
        return "nothing to compare: no data was fetched from two operations\n".to_owned();
    }
    let cells = |name: &str, cells: u64, disagreements: u64| {
        vec![
            name.to_owned(),
            group_digits(cells),
            group_digits(disagreements),
            percent(disagreements as f64 / cells as f64),
        ]
    };
    let mut text = Aligned::new(1, ["operations", "cells", "disagreements", "rate"]);
    text.row(cells("all", found.cells, found.disagreements));
    for pair in &found.operations {
        text.row(cells(&format!("{}, {}", pair.one, pair.other), pair.cells, pair.disagreements));
    }
    let mut tickers: Vec<_> = found.tickers.iter().filter(|(_, (_, disagreements))| *disagreements > 0).collect();
    tickers.sort_by_key(|(_, (_, disagreements))| Reverse(*disagreements));
    if tickers.is_empty() {
        return format!("{text}\nno disagreements\n");
    }
    let rows = tickers.into_iter().map(|(ticker, (all, disagreements))| cells(ticker.as_str(), *all, *disagreements));
    text.list("by ticker", rows, limit);
    format!("{text}\n{}", first(found))
}

/// The first disagreements, a line for each side.
fn first(found: &sources::Sources) -> Aligned {
    let mut text = Aligned::new(8, ["ticker", "period", "regime", "date", "about", "operation", "says", "since"]);
    for cell in &found.first {
        let period = or_dash(cell.period, |period| period.to_string());
        let regime = or_dash(cell.regime, |regime| regime.to_string());
        let moment = DateTime::from_timestamp_micros(cell.date).unwrap_or_default().naive_utc().to_string();
        let mut named = [cell.ticker.to_string(), period, regime, moment, cell.about().to_owned()];
        for side in &cell.sides {
            let number = side.value.number.map_or_else(|| "nothing".to_owned(), |number| number.to_string());
            let says = side.value.signal.map_or(number.clone(), |signal| format!("{signal} {number}"));
            text.row(named.into_iter().chain([side.source.to_string(), says, to_record(side.observed_at)]));
            named = Default::default();
        }
        if let Some((_, link)) = &cell.article {
            text.row([format!("  {link}")]);
        }
    }
    let more = found.disagreements - found.first.len() as u64;
    if more > 0 {
        text.row([format!("… and {} more; `--format csv --output FILE` writes them", group_digits(more))]);
    }
    text
}
