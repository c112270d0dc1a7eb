//! What audits and diffs tell, as documents: `--json` and Python print these, and nothing else describes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::{self, CutOff};
use super::quality::{self, Rename, Window};
use super::revisions::{self, CellCounts};
use super::sources::{self, ComparisonCounts};
use super::{Trial, TrialOutcome, diff};
use crate::definition::{ChangedKey, changed_keys};
use crate::export::PublishedReader;
use crate::split_days::SplitDays;
use crate::tables::Drift;
use crate::time::to_record;

/// Whether a dataset has look-ahead.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Leak {
    /// The dataset.
    dataset: String,
    /// The trials.
    trials: Vec<LeakTrial>,
}

/// A trial.
#[derive(Debug, Serialize, JsonSchema)]
struct LeakTrial {
    /// What was tried.
    what: String,
    /// `sound`, `leak` or `not applicable`.
    outcome: &'static str,
    /// Why it is not applicable.
    reason: Option<String>,
    /// The rows that were compared.
    rows: u64,
}

/// How the vendor rewrote its past.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Revisions {
    /// Changes observed after this instant; none for all.
    after: Option<String>,
    /// Changes observed up to and including this instant.
    until: String,
    /// Signals.
    signals: Rewrites,
    /// Scores of articles.
    articles: Rewrites,
}

/// Changed cells, and those of each group that has any.
#[derive(Debug, Serialize, JsonSchema)]
struct Rewrites {
    total: Cells,
    by_age: BTreeMap<String, Cells>,
    by_month: BTreeMap<String, Cells>,
    by_period: BTreeMap<String, Cells>,
    by_regime: BTreeMap<String, Cells>,
    by_sector: BTreeMap<String, Cells>,
    by_ticker: BTreeMap<String, Cells>,
}

/// Cells and their changes.
#[derive(Debug, Serialize, JsonSchema)]
struct Cells {
    /// Cells known at the start of the span, or first seen in it.
    known: u64,
    /// Those that changed, however often.
    changed: u64,
    /// The share that changed.
    rate: Option<f64>,
    /// Cells that earlier answers did not have though they covered the date.
    added_late: u64,
    /// Changes to another value.
    revised: u64,
    /// Cells that are no longer listed.
    withdrawn: u64,
    /// Changes from `buy` to `sell` or back.
    flipped: u64,
    /// The cells known at the start of the span.
    known_before: u64,
    /// Those that were rewritten since, late additions included.
    rewritten: u64,
    /// The share of them.
    rewritten_share: Option<f64>,
    /// The mean absolute change of confidence or score.
    moved_on_average: Option<f64>,
    /// The largest absolute change.
    moved_most: Option<f64>,
}

/// Gaps, stale series, repeated articles, unusual values, rejected records and unknown fields.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Quality {
    /// The number of series of signals.
    series: u64,
    total: TickerQuality,
    /// The tickers with findings.
    tickers: BTreeMap<String, TickerQuality>,
    /// The signals with news in each window of a definition.
    windows: Vec<NewsWindow>,
    /// The length at which lists of articles seem to be cut off; none if they do not.
    cut_off: Option<CutOff>,
    /// Tickers whose signals are dated at other times of day than those of most others; none if there are none.
    split_days: Option<SplitDays>,
    /// Tickers that end where another goes on with the same history: suspected renames.
    renames: Vec<Rename>,
    /// The number of rejected records.
    rejected: u64,
    /// Why records were rejected.
    reasons: Vec<RejectReason>,
    unknown_fields: Vec<Drift>,
}

/// The quality of a ticker's data.
#[derive(Debug, Serialize, JsonSchema)]
struct TickerQuality {
    signals: u64,
    /// Days on which a signal was due, from the first to the last of each series.
    due_days: u64,
    /// The share of them with a signal.
    coverage: Option<f64>,
    /// Those without a signal.
    missing: u64,
    /// Runs of consecutive missing days.
    gaps: u64,
    /// Series that end before the latest trading day.
    stale: u64,
    /// The trading days that the furthest of them is behind.
    behind: u64,
    articles: u64,
    /// Articles that repeat another one.
    duplicates: u64,
    /// Confidences and scores outside their usual bounds.
    unusual: u64,
}

/// The signals with news in a window.
#[derive(Debug, Serialize, JsonSchema)]
struct NewsWindow {
    window: String,
    signals: u64,
    with_news: u64,
    /// The signals for which it is unknown what was in the window.
    unknown: u64,
}

/// Why records were rejected.
#[derive(Debug, Serialize, JsonSchema)]
struct RejectReason {
    operation: String,
    reason: String,
    records: u64,
    /// Those that the previous answers did not have; none without previous answers.
    new: Option<u64>,
}

/// Whether the vendor's operations agree.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sources {
    cells: u64,
    disagreements: u64,
    /// By pair of operations.
    operations: Vec<Pair>,
    /// By ticker, those with disagreements.
    tickers: BTreeMap<String, u64>,
}

/// Two operations.
#[derive(Debug, Serialize, JsonSchema)]
struct Pair {
    one: String,
    other: String,
    /// The cells that both have.
    cells: u64,
    /// Those with different values.
    disagreements: u64,
}

/// What changed between two versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// The earlier version.
    before: Side,
    /// The later version.
    after: Side,
    /// The keys of the definition that differ.
    definition: Vec<ChangedKey>,
    /// Rows that only the later one has.
    added: u64,
    /// Rows that only the earlier one has.
    removed: u64,
    /// Rows with other values.
    changed: u64,
    /// The columns with other values, and in how many rows.
    columns: Vec<ChangedColumn>,
}

/// One of two versions.
#[derive(Debug, Serialize, JsonSchema)]
struct Side {
    /// Its name.
    name: String,
    /// Its rows.
    rows: u64,
    /// The instant as of which it was built.
    as_of: String,
}

/// A column with other values.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedColumn {
    /// Its name.
    name: String,
    /// The number of rows.
    rows: u64,
}

impl Leak {
    /// Tells it.
    pub fn of(dataset: &str, leak: &super::Leak) -> Self {
        let trial = |Trial { what, rows, outcome, .. }: &Trial| {
            let (outcome, reason) = match outcome {
                TrialOutcome::Sound => ("sound", None),
                TrialOutcome::Leak => ("leak", None),
                TrialOutcome::NotApplicable(why) => ("not applicable", Some(why.clone())),
            };
            LeakTrial { what: what.clone(), outcome, reason, rows: *rows }
        };
        Self { dataset: dataset.to_owned(), trials: leak.trials.iter().map(trial).collect() }
    }
}

impl Revisions {
    /// Tells it.
    pub fn of(found: &revisions::Revisions) -> Self {
        Self {
            after: found.from.map(to_record),
            until: to_record(found.until),
            signals: Rewrites::of(&found.signals),
            articles: Rewrites::of(&found.articles),
        }
    }
}

impl Rewrites {
    fn of(found: &revisions::Rewrites) -> Self {
        fn by<K: ToString>(tallies: &BTreeMap<K, CellCounts>) -> BTreeMap<String, Cells> {
            let changed = tallies.iter().filter(|(_, tally)| tally.changed > 0);
            changed.map(|(name, tally)| (name.to_string(), Cells::of(tally))).collect()
        }
        Self {
            total: Cells::of(&found.total),
            by_age: by(&found.by_age),
            by_month: by(&found.by_month),
            by_period: by(&found.by_period),
            by_regime: by(&found.by_regime),
            by_sector: by(&found.by_sector),
            by_ticker: by(&found.by_ticker),
        }
    }
}

impl Cells {
    fn of(tally: &CellCounts) -> Self {
        Self {
            known: tally.known,
            changed: tally.changed,
            rate: tally.rate(),
            added_late: tally.added_late,
            revised: tally.revised,
            withdrawn: tally.withdrawn,
            flipped: tally.flipped,
            known_before: tally.known_before,
            rewritten: tally.rewritten,
            rewritten_share: tally.rewritten_share(),
            moved_on_average: tally.moved_on_average(),
            moved_most: (tally.revised > 0).then_some(tally.moved_most),
        }
    }
}

impl Quality {
    /// Tells it.
    pub fn of(found: &quality::Quality) -> Self {
        let is_told = |of: &quality::TickerQuality| of.missing + of.stale + of.duplicates + of.unusual > 0;
        let tickers = found.tickers.iter().filter(|(_, of)| is_told(of));
        let has_before = found.rejects.new.is_some();
        let window = |window: &Window| NewsWindow {
            window: window.days.to_string(),
            signals: window.signals,
            with_news: window.with_news,
            unknown: window.unknown,
        };
        let reason =
            |answers::RejectReason { operation, reason, records, new, .. }: &answers::RejectReason| RejectReason {
                operation: (*operation).to_owned(),
                reason: reason.clone(),
                records: *records,
                new: has_before.then_some(*new),
            };
        Self {
            series: found.series,
            total: TickerQuality::of(&found.total),
            tickers: tickers.map(|(ticker, of)| (ticker.to_string(), TickerQuality::of(of))).collect(),
            windows: found.windows.iter().map(window).collect(),
            split_days: found.split_days.clone(),
            renames: found.renames.clone(),
            cut_off: found.cut_off,
            rejected: found.rejects.records,
            reasons: found.rejects.reasons.iter().map(reason).collect(),
            unknown_fields: found.unknown.fields.clone(),
        }
    }
}

impl TickerQuality {
    fn of(of: &quality::TickerQuality) -> Self {
        Self {
            signals: of.signals,
            due_days: of.due_days,
            coverage: of.coverage(),
            missing: of.missing,
            gaps: of.gaps,
            stale: of.stale,
            behind: of.behind,
            articles: of.articles,
            duplicates: of.duplicates,
            unusual: of.unusual,
        }
    }
}

impl Sources {
    /// Tells it.
    pub fn of(found: &sources::Sources) -> Self {
        let ComparisonCounts { cells, disagreements } = found.total();
        let tickers = found.tickers.iter().filter(|(_, compared)| compared.disagreements > 0);
        let pairs = found.pairs.iter().map(|((one, other), compared)| Pair {
            one: one.to_string(),
            other: other.to_string(),
            cells: compared.cells,
            disagreements: compared.disagreements,
        });
        Self {
            cells,
            disagreements,
            operations: pairs.collect(),
            tickers: tickers.map(|(ticker, compared)| (ticker.to_string(), compared.disagreements)).collect(),
        }
    }
}

impl Difference {
    /// Tells it.
    pub fn of(before: &PublishedReader, after: &PublishedReader, found: &diff::Difference) -> Self {
        let side = |version: &PublishedReader| Side {
            name: version.name(),
            rows: version.row_count(),
            as_of: to_record(version.as_of()),
        };
        let columns = found.columns.iter().filter(|(_, rows)| *rows > 0);
        Self {
            before: side(before),
            after: side(after),
            definition: changed_keys(before.definition(), after.definition()),
            added: found.added,
            removed: found.removed,
            changed: found.changed,
            columns: columns.map(|(name, rows)| ChangedColumn { name: name.clone(), rows: *rows }).collect(),
        }
    }
}
