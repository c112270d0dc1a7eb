//! `bellwether audit sources`: whether the vendor's operations agree.

use bellwether::audit::documents;
use bellwether::audit::sources::{self, ComparisonCounts, Disagreement, SharedCell, SourceValue, Value};
use bellwether::project::Project;
use bellwether::run::audit_sources;
use bellwether::text::human::{group_digits, percent};
use bellwether::time::to_record;

use super::aligned::{Aligned, RowLimit};
use super::arguments::{AuditArguments, AuditScope};
use crate::cli::outcome::Result;

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
        let scope = AuditScope::of(self.definition.as_deref(), None, project)?;
        let found = self
            .arguments
            .run(&scope, project, sources::schema(), |options, deliver| audit_sources(options, deliver))?;
        let limit = RowLimit::of(self.all);
        self.arguments.print(&scope, || documents::Sources::of(&found), || describe(&found, limit))
    }
}

fn describe(found: &sources::Sources, limit: RowLimit) -> String {
    if found.pairs.is_empty() {
        return "nothing to compare: no data was fetched from two operations\n".to_owned();
    }
    let mut text = Aligned::new(1, ["operations", "cells", "disagreements", "rate"]);
    text.row(cells("all", found.total()));
    for ((one, other), compared) in &found.pairs {
        text.row(cells(&format!("{one}, {other}"), *compared));
    }
    let mut tickers: Vec<_> = found.tickers.iter().filter(|(_, compared)| compared.disagreements > 0).collect();
    tickers.sort_by_key(|(_, compared)| std::cmp::Reverse(compared.disagreements));
    if tickers.is_empty() {
        return format!("{text}\nno disagreements\n");
    }
    text.list("by ticker", tickers.into_iter().map(|(ticker, compared)| cells(ticker.as_str(), *compared)), limit);
    format!("{text}\n{}", first(found))
}

fn cells(name: &str, compared: ComparisonCounts) -> Vec<String> {
    let ComparisonCounts { cells, disagreements } = compared;
    vec![
        name.to_owned(),
        group_digits(cells),
        group_digits(disagreements),
        percent(disagreements as f64 / cells as f64),
    ]
}

/// The first disagreements, a line for each side.
fn first(found: &sources::Sources) -> String {
    let mut text = Aligned::new(8, ["ticker", "period", "regime", "date", "about", "operation", "says", "since"]);
    for Disagreement { ticker, period, regime, date, about, statements } in &found.first {
        let optional = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
        let (period, regime) = (optional(period.map(|it| it.to_string())), optional(regime.map(|it| it.to_string())));
        let moment = chrono::DateTime::from_timestamp_micros(*date).unwrap_or_default().naive_utc();
        let [one, other] = statements.map(|SourceValue { source, value, observed_at }| {
            [source.to_string(), describe_value(value), to_record(observed_at)]
        });
        text.row(
            [ticker.to_string(), period, regime, moment.to_string(), about.as_str().to_owned()].into_iter().chain(one),
        );
        text.row(std::iter::repeat_n(String::new(), 5).chain(other));
        if let SharedCell::Article(_, link) = about {
            text.row([format!("  {link}")]);
        }
    }
    let more = found.total().disagreements - found.first.len() as u64;
    if more > 0 {
        text.row([format!("… and {} more; `--format csv --output FILE` writes them", group_digits(more))]);
    }
    text.to_string()
}

fn describe_value(value: Value) -> String {
    let number = value.number.map_or_else(|| "nothing".to_owned(), |number| number.to_string());
    value.signal.map_or(number.clone(), |signal| format!("{signal} {number}"))
}
