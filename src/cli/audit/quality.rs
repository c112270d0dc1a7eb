//! `bellwether audit quality`: looks for missing, stale, repeated, unusual and rejected data.

use std::cmp::Reverse;

use bellwether::audit::answers::CutOff;
use bellwether::audit::quality::{self, TickerQuality};
use bellwether::plan::NaiveRule;

use super::AuditArguments;
use crate::cli::prelude::*;

/// Look for gaps, stale series, repeated articles, unusual values, renamed tickers, rejected records and unknown fields.
///
/// A trading day is a day on which at least half of the series have a signal. Confidences are expected to be between 0
/// and 1 and scores between -1 and 1, although the interface documents no bounds. Rejected records and unknown fields
/// are those of the latest answer to each request; they are new if the previous answer did not have them.
#[derive(Debug, clap::Args)]
pub(super) struct Quality {
    /// A definition: its name in `pipelines/`, or a path. Audits only the series of its dataset, whatever their
    /// values, and the answers to its requests, and shows how many of its signals have news in each window. Default: the
    /// whole archive.
    definition: Option<String>,

    /// Show long lists in full.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    arguments: AuditArguments,
}

impl Quality {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = named_plan(self.definition.as_deref(), project)?;
        let found = self.arguments.run(plan.as_ref(), None, project, quality::schema(), |options, deliver| {
            run::audit_quality(options, deliver)
        })?;
        let rule = plan.as_ref().map_or(NaiveRule::Utc, |plan| plan.dataset.dates);
        self.arguments.print(plan.as_ref(), &found, || describe(&found, rule, row_limit(self.all)))
    }
}

fn describe(found: &quality::Quality, rule: NaiveRule, limit: usize) -> String {
    let mut text = vec![of_tickers(found, limit).to_string()];
    if !found.windows.is_empty() {
        let mut table =
            Aligned::new(1, ["news in the window", "signals", "unknown", "with news", "share of the known"]);
        for window in &found.windows {
            let [signals, unknown, with_news] = [window.signals, window.unknown, window.with_news].map(group_digits);
            table.row([window.window.clone(), signals, unknown, with_news, or_dash(window.share(), percent)]);
        }
        text.push(table.to_string());
    }
    if found.rejected > 0 {
        let mut table = Aligned::new(2, ["rejected records of", "reason", "records", "new"]);
        let rows = found.reasons.iter().map(|of| {
            vec![of.operation.to_owned(), of.reason.clone(), group_digits(of.records), or_dash(of.new, group_digits)]
        });
        table.rest(rows, limit);
        if found.unlisted > 0 {
            table.row([format!("… and {} more, counted but not listed", group_digits(found.unlisted))]);
        }
        text.push(table.to_string());
    }
    if !found.unknown_fields.is_empty() {
        let mut table = Aligned::new(3, ["unknown field of", "field", "example", "times"]);
        let rows = found.unknown_fields.iter().map(|drift| {
            vec![drift.endpoint.to_string(), drift.field.clone(), drift.example.clone(), group_digits(drift.count)]
        });
        table.rest(rows, limit);
        text.push(table.to_string());
    }
    if !found.renames.is_empty() {
        text.push(of_renames(found, limit));
    }
    text.extend(found.split_days.as_ref().map(|split| format!("{}\n", split.in_words(rule))));
    if let Some(CutOff { articles, tickers, all }) = found.cut_off {
        text.push(format!(
            "the lists of {} of {} have exactly {}, the most of all: the service seems to cut them off, and older news is \
             unknown; `complete = true` in `[sentiment]` says that it does not\n",
            group_digits(tickers),
            count_of(all, "ticker", "tickers"),
            count_of(articles, "article", "articles"),
        ));
    }
    text.join("\n")
}

/// Tickers that end where another goes on, and what to do about them.
fn of_renames(found: &quality::Quality, limit: usize) -> String {
    let mut table = Aligned::new(4, ["ends", "goes on as", "id", "on", "begins", "shared dates", "the same"]);
    let rows = found.renames.iter().map(|rename| {
        let (ticker, successor) = (rename.ticker.to_string(), rename.successor.to_string());
        let [ends, begins] = [rename.ends, rename.begins].map(|day| day.to_string());
        let [overlap, equal] = [rename.overlap, rename.equal].map(group_digits);
        vec![ticker, successor, or_dash(rename.id.clone(), |id| id), ends, begins, overlap, equal]
    });
    table.rest(rows, limit);
    let mut text = table.to_string();
    let apart = found.renames.iter().filter(|rename| rename.id.is_none()).count();
    if apart > 0 {
        text += &format!(
            "{} the same history as one that ended: a rename, or two names of one security; a file in `[identity]` says which, \
             and gives both one id\n",
            count_of(apart as u64, "ticker goes on with", "tickers go on with"),
        );
    }
    text
}

/// The total, and the tickers with findings, the worst first.
fn of_tickers(found: &quality::Quality, limit: usize) -> Aligned {
    let cells = |name: &str, of: &TickerQuality| {
        let counts = [of.gaps, of.missing, of.stale, of.behind, of.articles, of.duplicates, of.unusual];
        let mut cells = vec![name.to_owned(), group_digits(of.signals), or_dash(of.coverage, percent)];
        cells.extend(counts.map(group_digits));
        cells
    };
    let heads =
        ["ticker", "signals", "coverage", "gaps", "missing", "stale", "behind", "articles", "duplicates", "unusual"];
    let mut text = Aligned::new(1, heads);
    text.row(cells("all", &found.total));
    let mut wrong: Vec<_> = found.tickers.iter().collect();
    wrong.sort_by_key(|(_, of)| Reverse((of.missing + of.duplicates + of.unusual, of.behind)));
    if !wrong.is_empty() {
        let rows = wrong.into_iter().map(|(ticker, of)| cells(ticker.as_str(), of));
        text.list("tickers with findings", rows, limit);
    }
    text
}
