//! `bellwether audit revisions`: how the vendor rewrote its past.

use std::collections::BTreeMap;
use std::fmt::Display;

use bellwether::audit::revisions::{self, CellCounts, Rewrites};

use super::{AuditArguments, check_share};
use crate::cli::prelude::*;

/// Count past values that were added late, revised or withdrawn.
///
/// A cell is added late if earlier answers covered its date without it; new days at the end of a series and the first
/// listing of a series do not count. The rate is the share of changed cells among all cells known during the span.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether audit revisions demo --output changes.parquet
      a row for each changed value
  bellwether audit revisions demo --from 2026-03-31 --fail-above 0.5%
      fail if more was rewritten since")]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 more was rewritten than `--fail-above` allows."
)]
pub(super) struct Revisions {
    /// A definition: its name in `pipelines/`, or a path. Default: the whole archive.
    ///
    /// Counts only the signals of the series of its dataset, whatever their values, and the articles of their tickers.
    definition: Option<String>,

    /// Only what was observed after this instant. Default: the first listing of each series.
    ///
    /// It is `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    from: Option<DateTime<Utc>>,

    /// Only what was observed up to and including this instant. Default: the newest run.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    to: Option<DateTime<Utc>>,

    /// Exit with code 3 if a larger share of the cells known at `--from` was rewritten since, such as `0.5%`.
    ///
    /// Late additions count. Signals and scores are counted separately.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,

    /// Show long lists in full.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    arguments: AuditArguments,
}

impl Revisions {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            let what = format!("empty range: {} to {}", to_record(from), to_record(to));
            return Err(usage(&what, "choose a `--to` later than `--from`"));
        }
        let plan = named_plan(self.definition.as_deref(), project)?;
        let found =
            self.arguments.run(plan.as_ref(), self.to, project, revisions::schema(), move |options, deliver| {
                run::audit_revisions(options, self.from, deliver)
            })?;
        self.arguments.print(plan.as_ref(), &found, || describe(&found, row_limit(self.all)))?;
        let worst = [&found.signals, &found.articles].into_iter().filter_map(|table| table.total.rewritten_share);
        let hint = "list the changed cells with `--format csv --output FILE`";
        check_share(worst.fold(0.0, f64::max), self.fail_above, "known cells were rewritten since", hint)
    }
}

fn describe(found: &revisions::Revisions, limit: usize) -> String {
    let after = found.from.map_or_else(|| "the first listing of each series".to_owned(), to_record);
    let mut text = format!("after   {after}\nup to   {}\n", to_record(found.until));
    for (name, table) in [("signals", &found.signals), ("articles", &found.articles)] {
        text += &format!("\n{}", of_table(name, table, limit));
        let total = &table.total;
        if let (Some(_), Some(share)) = (found.from, total.rewritten_share) {
            let [rewritten, known] = [total.rewritten, total.known_before].map(group_digits);
            let what = "cells known at the start were rewritten, late additions included";
            text += &format!("\n{rewritten} of {known} {what}: {}\n", percent(share));
        }
    }
    text
}

fn of_table(name: &str, table: &Rewrites, limit: usize) -> Aligned {
    let heads =
        [name, "known", "changed", "rate", "added late", "revised", "withdrawn", "flipped", "moved by", "at most"];
    let mut text = Aligned::new(1, heads);
    text.row(cells("all", &table.total));
    if table.total.changed == 0 {
        return text;
    }
    // There are few ages, listed in order.
    text.list("by age when it changed", table.by_age.iter().map(|(age, tally)| cells(age, tally)), usize::MAX);
    most_rewritten(&mut text, "by month of the date", &table.by_month, limit);
    most_rewritten(&mut text, "by period", &table.by_period, limit);
    most_rewritten(&mut text, "by regime", &table.by_regime, limit);
    most_rewritten(&mut text, "by sector", &table.by_sector, limit);
    most_rewritten(&mut text, "by ticker", &table.by_ticker, limit);
    text
}

/// A list of those that changed at all, the most rewritten first.
fn most_rewritten<K: Display>(text: &mut Aligned, title: &str, tallies: &BTreeMap<K, CellCounts>, limit: usize) {
    let mut changed: Vec<(&K, &CellCounts)> = tallies.iter().filter(|(_, tally)| tally.changed > 0).collect();
    changed.sort_by(|(_, one), (_, other)| other.changed.cmp(&one.changed).then(one.known.cmp(&other.known)));
    if !changed.is_empty() {
        text.list(title, changed.into_iter().map(|(name, tally)| cells(name, tally)), limit);
    }
}

fn cells(name: impl Display, tally: &CellCounts) -> Vec<String> {
    let mut cells = vec![name.to_string(), group_digits(tally.known), group_digits(tally.changed)];
    cells.push(or_dash(tally.rate, percent));
    cells.extend([tally.added_late, tally.revised, tally.withdrawn, tally.flipped].map(group_digits));
    cells.extend([tally.moved_on_average, tally.moved_most].map(|by| or_dash(by, |by| format!("{by:.4}"))));
    cells
}
