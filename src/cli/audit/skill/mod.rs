//! `bellwether audit skill`: whether signals predicted, when they were published and as they stand today.

mod groups;

use std::path::PathBuf;

use bellwether::audit::skill::{
    self, Best, FeatureMeasure, Measure, PairSkill, RankMeasure, SignalCounts, State, WhenMissing,
};
use bellwether::project::Project;
use bellwether::run::{PriceInput, SkillOptions, audit_skill};
use bellwether::text::human::{count_of, group_digits, percent, portion, round};
use chrono::{DateTime, Utc};

use super::aligned::{Aligned, RowLimit};
use super::arguments::{AuditArguments, AuditScope};
use super::typed::{instant, plan_of};
use crate::cli::outcome::Result;
use crate::cli::wrap::wrap;
use groups::Grouping;

/// Rows of the tables that are shown without `--all`.
const SHOWN: usize = 27;

/// Measure whether signals predicted: as they were published, as they stand today, and what was rewritten in between.
///
/// For each pair of period and regime, the confidence (negative for a sell) is ranked against the return over the horizon
/// of the period, date by date. A signal is entered at the first close after it was seen; a backfilled one, a
/// session after its date. Prices are named here or in the definition; the demo has its own.
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

    /// Show the correlations by lag, by year, by sector or by the number of articles as well.
    ///
    /// A lag is one horizon after the other.
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
        let scope = AuditScope::of_definition(plan_of(self.definition.as_deref(), project)?, self.as_of);
        let when_missing = if self.allow_missing { WhenMissing::Allow } else { WhenMissing::Refuse };
        let prices = if self.prices.is_empty() { PriceInput::OfDefinition } else { PriceInput::Files(self.prices) };
        let how = SkillOptions { prices, lag: self.lag, when_missing, from: self.from };
        let found = self
            .arguments
            .run(&scope, project, skill::schema(), move |options, deliver| audit_skill(options, &how, deliver))?;
        let limit = if self.all { RowLimit::All } else { RowLimit::First(SHOWN) };
        self.arguments.print_whole(|| &found, || describe(&found, &self.by, limit))
    }
}

/// What `bellwether audit skill` prints.
pub fn skill_in_words(found: &skill::Skill) -> String {
    describe(found, &[], RowLimit::First(SHOWN))
}

fn describe(found: &skill::Skill, groupings: &[Grouping], limit: RowLimit) -> String {
    let mut text = of_history(found);
    text.push_str(&of_prices(found));
    if found.pairs.iter().all(|pair| pair.measures.iter().all(|measure| measure.ranks.dates == 0)) {
        text.push_str("\nNothing to measure: no date has five signals with a complete return.\n");
        return text;
    }
    text.push_str(&format!("\n{}", correlations(found, limit)));
    for table in [features(found, limit), partial(found, limit)].into_iter().flatten() {
        text.push_str(&format!("\n{table}"));
    }
    if all_ranks(found).any(|ranks| ranks.dates > 0 && ranks.test.is_none()) {
        text.push_str("No verdict where there are too few windows that do not overlap, or nothing differs.\n");
    }
    found.best.iter().filter(|best| best.state != State::Difference).for_each(|best| text.push_str(&of_best(best)));
    groupings.iter().for_each(|by| text.push_str(&format!("\n{}", by.table(found, limit))));
    text.push_str(&format!("\n{}", returns(found, limit)));
    for table in [confidences(found, limit), rewrites_table(found, limit)].into_iter().flatten() {
        text.push_str(&format!("\n{table}"));
    }
    text.push_str(&format!("\n{}", of_hindsight(found)));
    text
}

/// What of the history was witnessed, and what is measured.
fn of_history(found: &skill::Skill) -> String {
    let SignalCounts {
        all,
        live,
        measured,
        unclear,
        same_day,
        before_prices,
        incomplete,
        without_price,
        without_id,
        across_names,
        ..
    } = found.signals;
    let mut text = format!(
        "{} of the history was witnessed: {} of {}, seen within {}\n",
        portion(live, all - same_day),
        group_digits(live),
        count_of(all - same_day, "signal", "signals"),
        found.live_within,
    );
    if live == 0 && all > 0 {
        text.push_str("How it was published is not known: this is how the service tells it today.\n");
    }
    let left_out = [
        (incomplete, "whose horizon is not over"),
        (without_price, "without a price"),
        (before_prices, "dated before the prices"),
        (same_day, "that repeat a day"),
        (unclear, "without a direction"),
        (without_id, "under a name that the file of `[identity]` gives no id then"),
    ];
    let left_out: Vec<String> = left_out
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", group_digits(count)))
        .collect();
    let left_out = if left_out.is_empty() { "none".to_owned() } else { left_out.join(", ") };
    text.push_str(&format!("\nmeasured  {}\nleft out  {left_out}\n", count_of(measured, "signal", "signals")));
    if let Some(worst) = found.worst_day {
        text.push_str(&format!(
            "          most without a price on {}: {} of {}\n",
            worst.day,
            group_digits(worst.without_price),
            group_digits(worst.signals)
        ));
    }
    if across_names > 0 {
        text.push_str(&format!(
            "renamed   {} over a change of ticker\n",
            count_of(across_names, "return is", "returns are")
        ));
    }
    text
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
        text.push_str(&format!(
            "          {}, BLAKE3 {}\n",
            bellwether::text::escape::escape(&file.path),
            &file.blake3[..16]
        ));
    }
    if prices.holes > 0 {
        text.push_str(&format!(
            "          {} missing within the range of a ticker\n",
            count_of(prices.holes, "close", "closes")
        ));
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

/// The rank correlations of all pairs and features.
fn all_ranks(found: &skill::Skill) -> impl Iterator<Item = &RankMeasure> {
    let of_pairs = found.pairs.iter().flat_map(|pair| &pair.measures).map(|measure| &measure.ranks);
    of_pairs.chain(found.features.iter().flat_map(|feature| &feature.measures).map(|measure| &measure.ranks))
}

/// The measures with any date, with the name of their pair.
fn measures(found: &skill::Skill) -> impl Iterator<Item = (String, &Measure)> {
    let of_pair = |pair: &'_ PairSkill| format!("{} {}", pair.period, pair.regime);
    found.pairs.iter().flat_map(move |pair| {
        pair.measures.iter().filter(|measure| measure.ranks.dates > 0).map(move |measure| (of_pair(pair), measure))
    })
}

fn correlations(found: &skill::Skill, limit: RowLimit) -> Aligned {
    let heads = ["correlation", "", "dates", "windows", "mean", "95 % interval", "p", "Holm", "BH", "disjoint"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let disjoint = measure.ranks.disjoint.as_ref().map(|test| test.p);
        let mut cells = correlation(pair, measure.state, &measure.ranks);
        cells.push(disjoint.map_or_else(none, p_value));
        cells
    };
    table.rest(measures(found).map(row).collect::<Vec<_>>().into_iter(), limit);
    table
}

/// The features of the news; none if nothing is measured of them.
fn features(found: &skill::Skill, limit: RowLimit) -> Option<Aligned> {
    let measured = of_features(found).filter(|(_, measure)| measure.ranks.dates > 0);
    let rows: Vec<Vec<String>> =
        measured.map(|(name, measure)| correlation(name, measure.state, &measure.ranks)).collect();
    let is_any = !rows.is_empty();
    let mut table = Aligned::new(2, ["feature", "", "dates", "windows", "mean", "95 % interval", "p", "Holm", "BH"]);
    table.rest(rows.into_iter(), limit);
    is_any.then_some(table)
}

/// What the features of the news add to the signal; none if nothing is measured of that.
fn partial(found: &skill::Skill, limit: RowLimit) -> Option<Aligned> {
    let row = |(name, measure): (String, &FeatureMeasure)| {
        let partial = measure.partial.as_ref().filter(|partial| partial.dates > 0)?;
        let test = partial.test.as_ref();
        Some(vec![
            name,
            measure.state.as_str().to_owned(),
            group_digits(partial.dates),
            group_digits(partial.windows),
            partial.correlation.map_or_else(none, |mean| round(mean, 4)),
            test.map_or_else(none, |test| interval(test.interval.lower, test.interval.upper)),
            test.map_or_else(none, |test| p_value(test.p)),
        ])
    };
    let rows: Vec<Vec<String>> = of_features(found).filter_map(row).collect();
    let is_any = !rows.is_empty();
    let mut table = Aligned::new(2, ["given the signal", "", "dates", "windows", "mean", "95 % interval", "p"]);
    table.rest(rows.into_iter(), limit);
    is_any.then_some(table)
}

/// The measures of the features, with the name of each and its period.
fn of_features(found: &skill::Skill) -> impl Iterator<Item = (String, &FeatureMeasure)> {
    found.features.iter().flat_map(|feature| {
        feature.measures.iter().map(move |measure| (format!("{} {}", feature.feature, feature.period), measure))
    })
}

/// The row of a rank correlation.
fn correlation(name: String, state: State, ranks: &RankMeasure) -> Vec<String> {
    let test = ranks.test.as_ref();
    let mut cells = vec![name, state.as_str().to_owned(), group_digits(ranks.dates), group_digits(ranks.windows)];
    cells.push(ranks.correlation.map_or_else(none, |mean| round(mean, 4)));
    cells.push(test.map_or_else(none, |test| interval(test.interval.lower, test.interval.upper)));
    let p_values = [test.map(|test| test.p), ranks.p_holm, ranks.p_benjamini_hochberg];
    cells.extend(p_values.map(|p| p.map_or_else(none, p_value)));
    cells
}

/// An interval of a mean rank correlation.
fn interval(lower: f64, upper: f64) -> String {
    format!("{} to {}", round(lower, 3), round(upper, 3))
}

fn returns(found: &skill::Skill, limit: RowLimit) -> Aligned {
    let heads = ["came true", "", "buys", "after", "sells", "after", "surest", "after", "spread", "flips"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let mut cells = vec![pair, measure.state.as_str().to_owned()];
        for of in [measure.buys, measure.sells, measure.confident] {
            cells.extend([of.hit_rate.map_or_else(none, percent), of.side.excess.map_or_else(none, in_percent)]);
        }
        let flips = measure.flips.map_or_else(none, percent);
        cells.extend([measure.spread.map_or_else(none, in_percent), flips]);
        cells
    };
    let rows = measures(found).filter(|(_, measure)| measure.state != State::Difference).map(row);
    table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
    table
}

/// Whether confidences are probabilities; none if none could be one.
fn confidences(found: &skill::Skill, limit: RowLimit) -> Option<Aligned> {
    let heads = ["confidence", "", "Brier score", "miscalibration", "discrimination", "uncertainty"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let found = measure.confidence.as_ref()?;
        let numbers = [found.brier, found.miscalibration, found.discrimination, found.uncertainty];
        let mut cells = vec![pair, measure.state.as_str().to_owned()];
        cells.extend(numbers.map(|number| round(number, 4)));
        Some(cells)
    };
    let rows: Vec<Vec<String>> = measures(found).filter_map(row).collect();
    let is_any = !rows.is_empty();
    table.rest(rows.into_iter(), limit);
    is_any.then_some(table)
}

fn rewrites_table(found: &skill::Skill, limit: RowLimit) -> Option<Aligned> {
    let since = if found.from.is_some() { "since then" } else { "rewritten" };
    let heads = [since, "matched", "altered", "removed", "added", "mean", "altered", "removed", "added", "today"];
    let mut table = Aligned::new(1, heads);
    let changed =
        found.pairs.iter().filter(|pair| pair.rewritten.altered + pair.rewritten.removed + pair.rewritten.added > 0);
    let row = |pair: &PairSkill| {
        let kinds = &pair.rewritten;
        let mut cells = vec![format!("{} {}", pair.period, pair.regime)];
        cells.extend([kinds.matched, kinds.altered, kinds.removed, kinds.added].map(group_digits));
        let means = [kinds.base, kinds.with_altered, kinds.without_removed, kinds.with_added, kinds.today];
        cells.extend(means.map(|mean| mean.mean().map_or_else(none, |mean| round(mean, 4))));
        cells
    };
    let rows: Vec<Vec<String>> = changed.map(row).collect();
    let is_any = !rows.is_empty();
    table.rest(rows.into_iter(), limit);
    is_any.then_some(table)
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

fn of_hindsight(found: &skill::Skill) -> String {
    let hindsight = &found.hindsight;
    let Some(share) = hindsight.share else {
        return "hindsight  no signal turned after its horizon was over\n".to_owned();
    };
    let by_date = hindsight.test.map_or_else(none, |test| p_value(test.p));
    let clustered = hindsight.p_clustered.map_or_else(none, p_value);
    let mut text = format!(
        "hindsight  {} after the horizon was over, {} of them to where the price went: {}\n           \
         p {by_date} by date, {clustered} with windows of {} as clusters; half is an honest correction\n",
        count_of(hindsight.turned, "signal turned", "signals turned"),
        group_digits(hindsight.agree),
        percent(share),
        count_of(hindsight.cluster_days, "day", "days"),
    );
    if let Some(share) = hindsight.live_after_share {
        text.push_str(&format!(
            "           of {} published live since, {} came true\n",
            count_of(hindsight.live_after, "signal", "signals"),
            percent(share)
        ));
    }
    text
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
