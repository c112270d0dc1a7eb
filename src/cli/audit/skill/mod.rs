//! `bellwether audit skill`: whether signals predicted, when they were published and as they stand today.

mod groups;

use std::path::PathBuf;

use bellwether::audit::skill::{self, Best, Gone, Hindsight, Measure, PairSkill, RankMeasure, State, WhenMissing};
use bellwether::project::Project;
use bellwether::run::{PriceInput, SkillOptions, audit_skill};
use bellwether::text::escape::escape;
use bellwether::text::human::{count_of, group_digits, percent, portion, round};
use chrono::{DateTime, Utc};

use super::AuditArguments;
use crate::cli::options::{instant, plan_of};
use crate::cli::talk::{Aligned, Result, RowLimit, wrap};
use groups::Grouping;

/// Rows of the tables that are shown without `--all`.
const SHOWN: usize = 27;

/// The columns of the text.
const COLUMNS: usize = 100;

/// Measure whether signals predicted: as they were published, as they stand today, and what was rewritten in between.
///
/// For each pair of period and regime, the confidence (negative for a sell) is ranked against the return over the horizon
/// of the period, date by date. A signal is entered at the first close after it was seen; a backfilled one, a
/// session after its date. Prices are named here or in the definition; the demo has its own. The verdict comes first, then a
/// table of the pairs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether audit skill demo
      the demo, against its own prices
  bellwether audit skill nightly --prices closes.parquet
      as published, and as it stands today")]
pub(super) struct Skill {
    /// A definition: its name in `pipelines/`, or a path. Without one, all are listed.
    definition: Option<String>,

    /// Closing prices, Parquet or CSV, with `ticker`, `date` and `close` or the columns of `[prices]`. Default: the
    /// files that it names.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    prices: Vec<PathBuf>,

    /// The history as of this instant: `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`. Default: the
    /// newest run.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    /// Compare what was known at this instant with the history, instead of what was first published.
    ///
    /// It tells which cells were altered, removed and added since, and what that does to the correlation.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    from: Option<DateTime<Utc>>,

    /// Show further tables as well.
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    by: Vec<Grouping>,

    /// Sessions from the date of a backfilled signal to its entry.
    ///
    /// 0 is the close of its own date, when it may not have been known yet.
    #[arg(long, value_name = "SESSIONS", default_value_t = 1)]
    lag: u32,

    /// Measure the rest even if more than a fifth of the signals have no price.
    #[arg(long)]
    allow_missing: bool,

    /// Show long lists in full.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    arguments: AuditArguments,
}

impl Skill {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = plan_of(self.definition.as_deref(), project)?;
        let when_missing = if self.allow_missing { WhenMissing::Allow } else { WhenMissing::Refuse };
        let prices = if self.prices.is_empty() { PriceInput::OfDefinition } else { PriceInput::Files(self.prices) };
        let how = SkillOptions { prices, lag: self.lag, when_missing, from: self.from };
        let found =
            self.arguments.run(Some(&plan), self.as_of, project, skill::schema(), move |options, deliver| {
                audit_skill(options, &how, deliver)
            })?;
        let limit = if self.all { RowLimit::All } else { RowLimit::First(SHOWN) };
        self.arguments.print_findings(&found, || describe(&found, &self.by, limit))
    }
}

/// What `bellwether audit skill` prints.
pub fn skill_in_words(found: &skill::Skill) -> String {
    describe(found, &[], RowLimit::First(SHOWN))
}

fn describe(found: &skill::Skill, groupings: &[Grouping], limit: RowLimit) -> String {
    let mut text = String::new();
    found.verdict.iter().for_each(|said| text.push_str(&format!("{}\n", wrap(said, 0, Some(COLUMNS)))));
    if found.pairs.iter().any(|pair| pair.measures.iter().any(|measure| measure.ranks.dates > 0)) {
        text.push_str(&format!("\n{}", correlations(found, limit)));
        if found.pairs.iter().flat_map(|pair| &pair.measures).any(|of| of.ranks.dates > 0 && of.ranks.test.is_none()) {
            text.push_str("No verdict where there are too few windows that do not overlap, or nothing differs.\n");
        }
        let shown = |best: &&Best| best.state != State::Difference && best.feature.is_none();
        found.best.iter().filter(shown).for_each(|best| text.push_str(&of_best(best)));
    } else {
        text.push_str("\nNothing to measure: no date has five signals with a complete return.\n");
    }
    text.push_str(&format!("\n{}{}", of_history(found), of_prices(found)));
    text.push_str(&of_hindsight(&found.hindsight));
    text.push_str(&of_gone(&found.gone));
    let mut groupings = groupings.to_vec();
    if found.from.is_some() && !groupings.contains(&Grouping::Rewriting) {
        groupings.push(Grouping::Rewriting);
    }
    for by in groupings {
        let table = by.table(found, limit).to_string();
        text.push_str(&format!("\n{table}"));
    }
    text
}

/// What of the history was witnessed, and what is measured.
fn of_history(found: &skill::Skill) -> String {
    let of = &found.signals;
    let (live, all) = (of.live, of.all - of.same_day);
    let mut text = format!(
        "witnessed {} of the history: {} of {}, seen within {}\n",
        portion(live + of.late, all),
        group_digits(live),
        count_of(all, "signal", "signals"),
        found.live_within,
    );
    if of.late > 0 {
        let late = group_digits(of.late);
        let what = "later than `live_within`, but new to an answer that came within it after the one before";
        text.push_str(&format!("          and {late} {what}\n"));
    }
    let left_out = [
        (of.incomplete, "whose horizon is not over"),
        (of.without_price, "without a price"),
        (of.before_prices, "dated before the prices"),
        (of.same_day, "that repeat a day"),
        (of.unclear, "without a direction"),
        (of.without_id, "under a name that the file of `[identity]` gives no id then"),
    ];
    let left_out = listed(&left_out).unwrap_or_else(|| "none".to_owned());
    text.push_str(&format!("measured  {}\nleft out  {left_out}\n", count_of(of.measured, "signal", "signals")));
    if let Some(worst) = found.worst_day {
        let (day, without) = (worst.day, group_digits(worst.without_price));
        let signals = group_digits(worst.signals);
        text.push_str(&format!("          most without a price on {day}: {without} of {signals}\n"));
    }
    if of.ended > 0 {
        let returns = count_of(of.ended, "return ends", "returns end");
        text.push_str(&format!("delisted  {returns} with the last close of a name, before the horizon was over\n"));
    }
    if of.across_names > 0 {
        let returns = count_of(of.across_names, "return is", "returns are");
        text.push_str(&format!("renamed   {returns} over a change of ticker\n"));
    }
    text
}

/// What there is of several things, such as `2 turned, 1 withdrawn`; none if there are none.
fn listed(counts: &[(u64, &str)]) -> Option<String> {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some.map(|(count, what)| format!("{} {what}", group_digits(*count))).collect();
    (!some.is_empty()).then(|| some.join(", "))
}

fn of_prices(found: &skill::Skill) -> String {
    let prices = &found.prices;
    let mut text = format!(
        "prices    {} of {}, {} from {} to {}\n",
        count_of(prices.closes, "close", "closes"),
        count_of(prices.tickers, "ticker", "tickers"),
        count_of(prices.sessions, "session", "sessions"),
        prices.first,
        prices.last,
    );
    for file in &prices.files {
        text.push_str(&format!("          {}, BLAKE3 {}\n", escape(&file.path), &file.blake3[..16]));
    }
    if prices.holes > 0 {
        let holes = count_of(prices.holes, "close", "closes");
        text.push_str(&format!("          {holes} missing within the range of a ticker\n"));
    }
    if prices.thin_sessions > 0 {
        let sessions = count_of(prices.thin_sessions, "session has", "sessions have");
        text.push_str(&format!("          {sessions} a close of fewer than half of the tickers\n"));
    }
    for warning in &found.warnings {
        text.push_str(&format!("{}\n", wrap(&format!("          warning: {warning}"), 10, Some(98))));
    }
    if prices.adjusted == Some(false) {
        text.push_str("          not adjusted: returns over a split or a dividend are wrong\n");
    }
    let entry = match found.lag_sessions {
        0 => "at the close of its date".to_owned(),
        lag => format!("{} after its date", count_of(lag.into(), "session", "sessions")),
    };
    text + &format!("entry     at the first close after a signal was seen; a backfilled one {entry}\n")
}

/// The measures with any date, with the name of their pair.
fn measures(found: &skill::Skill) -> impl Iterator<Item = (String, &Measure)> {
    let of_pair = |pair: &'_ PairSkill| format!("{} {}", pair.period, pair.regime);
    found.pairs.iter().flat_map(move |pair| {
        pair.measures.iter().filter(|measure| measure.ranks.dates > 0).map(move |measure| (of_pair(pair), measure))
    })
}

fn correlations(found: &skill::Skill, limit: RowLimit) -> Aligned {
    let heads = ["correlation", "", "dates", "windows", "mean", "95 % interval", "p", "Holm", "sectors", "cost"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let mut cells = correlation(pair, measure.state, &measure.ranks);
        let within = measure.ranks.within_sectors.as_ref().and_then(|within| within.correlation);
        cells.push(within.map_or_else(none, |mean| round(mean, 4)));
        cells.push(cost(measure));
        cells
    };
    table.rest(measures(found).map(row), limit);
    table
}

/// The row of a rank correlation. The document also has the p-value of Benjamini and Hochberg.
fn correlation(name: String, state: State, ranks: &RankMeasure) -> Vec<String> {
    let test = ranks.test.as_ref();
    let mut cells = vec![name, state.as_str().to_owned(), group_digits(ranks.dates), group_digits(ranks.windows)];
    cells.push(ranks.correlation.map_or_else(none, |mean| round(mean, 4)));
    cells.push(test.map_or_else(none, |test| interval(test.interval.lower, test.interval.upper)));
    let p_values = [test.map(|test| test.p), ranks.p_holm];
    cells.extend(p_values.map(|p| p.map_or_else(none, p_value)));
    cells
}

/// An interval of a mean rank correlation.
fn interval(lower: f64, upper: f64) -> String {
    format!("{} to {}", round(lower, 3), round(upper, 3))
}

fn of_best(best: &Best) -> String {
    let what = match best.state {
        State::Published => "as published",
        State::Today | State::Difference => "as of today",
    };
    if best.tested < 2 {
        return String::new();
    }
    let effective = match (best.effective, best.expected_of_effective) {
        (Some(number), Some(expected)) => format!(", {expected:.1} as they are worth {number:.1}"),
        _ => String::new(),
    };
    format!(
        "best of {} {what}: {}, z {:.1}; without skill {:.1}{effective}\n",
        group_digits(best.tested),
        best.name(),
        best.z,
        best.expected,
    )
}

fn of_hindsight(hindsight: &Hindsight) -> String {
    let (Some(share), Some(luck)) = (hindsight.share, hindsight.luck) else {
        return "rewritten nothing once part of the return was known\n".to_owned();
    };
    let kinds = [
        (hindsight.turned, "turned"),
        (hindsight.weakened, "weakened"),
        (hindsight.strengthened, "strengthened"),
        (hindsight.withdrawn, "withdrawn"),
        (hindsight.restored, "listed again"),
    ];
    let mut text = format!(
        "rewritten {} once part of the return was known:\n          {}\n          {} agree with it, {} would by luck; p {} by date\n",
        count_of(hindsight.rewrites, "signal", "signals"),
        listed(&kinds).unwrap_or_default(),
        percent(share),
        percent(luck),
        hindsight.test.map_or_else(none, |test| p_value(test.p)),
    );
    if let Some(share) = hindsight.live_after_share {
        text.push_str(&format!(
            "          of {} published since, {} came true\n",
            count_of(hindsight.live_after, "signal", "signals"),
            percent(share)
        ));
    }
    text
}

fn of_gone(gone: &Gone) -> String {
    let (Some(value), Some(excess)) = (gone.mean_return, gone.excess) else { return String::new() };
    let signals = count_of(gone.signals, "measured signal", "measured signals");
    let names = match gone.names_delisted {
        0 => String::new(),
        count => format!(", {} wholly", count_of(count, "name", "names")),
    };
    format!(
        "gone      {signals} no longer listed{names}: they returned {}, {} relative to the mean\n",
        in_percent(value),
        in_percent(excess)
    )
}

fn cost(measure: &Measure) -> String {
    measure.break_even.map_or_else(none, |cost| format!("{} bp", round(10_000.0 * cost, 0)))
}

fn none() -> String {
    "-".to_owned()
}

fn p_value(p: f64) -> String {
    if p < 0.0005 { "<.001".to_owned() } else { format!("{p:.3}") }
}

fn in_percent(share: f64) -> String {
    format!("{} %", round(100.0 * share, 3))
}
