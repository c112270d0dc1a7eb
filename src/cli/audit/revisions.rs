//! `bellwether audit revisions`: how the vendor rewrote its past.

use std::collections::BTreeMap;
use std::fmt::Display;

use bellwether::audit::revisions::{self, CellCounts, Rewrites};
use bellwether::project::Project;
use bellwether::run::audit_revisions;
use bellwether::text::human::{group_digits, percent};
use bellwether::time::to_record;
use chrono::{DateTime, Utc};

use super::{AuditArguments, check_share};
use crate::cli::options::{instant, named_plan, share, usage};
use crate::cli::talk::{Aligned, Result, RowLimit};

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
                audit_revisions(options, self.from, deliver)
            })?;
        let limit = RowLimit::new(self.all);
        self.arguments.print(plan.as_ref(), &found, || describe(&found, limit))?;
        let worst = [&found.signals, &found.articles].into_iter().filter_map(|table| table.total.rewritten_share);
        let what = "known cells were rewritten since";
        let hint = "list the changed cells with `--format csv --output FILE`";
        check_share(worst.fold(0.0, f64::max), self.fail_above, what, hint)
    }
}

fn describe(found: &revisions::Revisions, limit: RowLimit) -> String {
    let after = found.from.map_or_else(|| "the first listing of each series".to_owned(), to_record);
    let mut text = format!("after   {after}\nup to   {}\n", to_record(found.until));
    for (name, table) in [("signals", &found.signals), ("articles", &found.articles)] {
        text.push_str(&format!("\n{}", of_table(name, table, limit)));
        let CellCounts { rewritten, known_before, rewritten_share, .. } = table.total;
        if found.from.is_some()
            && let Some(share) = rewritten_share
        {
            let (rewritten, known) = (group_digits(rewritten), group_digits(known_before));
            text.push_str(&format!(
                "\n{rewritten} of {known} cells known at the start were rewritten, late additions included: {}\n",
                percent(share)
            ));
        }
    }
    text
}

fn of_table(name: &str, table: &Rewrites, limit: RowLimit) -> Aligned {
    let heads =
        [name, "known", "changed", "rate", "added late", "revised", "withdrawn", "flipped", "moved by", "at most"];
    let mut text = Aligned::new(1, heads);
    text.row(cells("all", &table.total));
    if table.total.changed == 0 {
        return text;
    }
    // There are few ages, listed in order.
    text.list("by age when it changed", table.by_age.iter().map(|(age, tally)| cells(age, tally)), RowLimit::All);
    most_rewritten(&mut text, "by month of the date", &table.by_month, limit);
    most_rewritten(&mut text, "by period", &table.by_period, limit);
    most_rewritten(&mut text, "by regime", &table.by_regime, limit);
    most_rewritten(&mut text, "by sector", &table.by_sector, limit);
    most_rewritten(&mut text, "by ticker", &table.by_ticker, limit);
    text
}

/// A list of those that changed at all, the most rewritten first.
fn most_rewritten<K: Display + Ord>(
    text: &mut Aligned,
    title: &str,
    tallies: &BTreeMap<K, CellCounts>,
    limit: RowLimit,
) {
    let mut changed: Vec<(&K, &CellCounts)> = tallies.iter().filter(|(_, tally)| tally.changed > 0).collect();
    changed.sort_by(|(_, one), (_, other)| other.changed.cmp(&one.changed).then(one.known.cmp(&other.known)));
    if !changed.is_empty() {
        text.list(title, changed.into_iter().map(|(name, tally)| cells(name, tally)), limit);
    }
}

fn cells(name: impl Display, tally: &CellCounts) -> Vec<String> {
    let moved = |by: Option<f64>| by.map_or_else(|| "-".to_owned(), |by| format!("{by:.4}"));
    vec![
        name.to_string(),
        group_digits(tally.known),
        group_digits(tally.changed),
        tally.rate.map_or_else(|| "-".to_owned(), percent),
        group_digits(tally.added_late),
        group_digits(tally.revised),
        group_digits(tally.withdrawn),
        group_digits(tally.flipped),
        moved(tally.moved_on_average),
        moved(tally.moved_most),
    ]
}
