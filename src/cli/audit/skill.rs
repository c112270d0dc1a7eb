//! `bellwether audit skill`: whether signals predicted, when they were published and as they stand today.

use bellwether::audit::skill::{
    self, Best, FeatureMeasure, Gone, Hindsight, Measure, PairSkill, RankMeasure, SeriesMeasure, State, WhenMissing,
};
use bellwether::run::{PriceInput, SkillOptions};
use bellwether::text::human::round;

use super::{AuditArguments, COLUMNS};
use crate::cli::prelude::*;

/// Rows of the tables that are shown without `--all`.
const SHOWN: usize = 27;

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
                run::audit_skill(options, &how, deliver)
            })?;
        let limit = if self.all { usize::MAX } else { SHOWN };
        self.arguments.print_findings(&found, || describe(&found, &self.by, limit))
    }
}

/// What `bellwether audit skill` prints.
pub fn skill_in_words(found: &skill::Skill) -> String {
    describe(found, &[], SHOWN)
}

fn describe(found: &skill::Skill, groupings: &[Grouping], limit: usize) -> String {
    let mut text = String::new();
    found.verdict.iter().for_each(|said| text += &(wrap(said, 0, Some(COLUMNS)) + "\n"));
    let measures: Vec<_> = measures(found).collect();
    if measures.is_empty() {
        text += "\nNothing to measure: no date has five signals with a complete return.\n";
    } else {
        let heads = ["correlation", "", "dates", "windows", "mean", "95 % interval", "p", "Holm", "sectors", "cost"];
        let mut table = Aligned::new(2, heads);
        let rows = measures.iter().map(|(pair, measure)| {
            let mut cells = correlation(pair, measure.state, &measure.ranks);
            let within = measure.ranks.within_sectors.as_ref().and_then(|within| within.correlation);
            cells.extend([or_dash(within, |mean| round(mean, 4)), cost(measure)]);
            cells
        });
        table.rest(rows, limit);
        text += &format!("\n{table}");
        if measures.iter().any(|(_, measure)| measure.ranks.test.is_none()) {
            text += "No verdict where there are too few windows that do not overlap, or nothing differs.\n";
        }
        found.best.iter().for_each(|best| text += &of_best(best));
    }
    text += "\n";
    text += &of_history(found);
    text += &of_prices(found);
    text += &of_hindsight(&found.hindsight);
    text += &of_gone(&found.gone);
    let mut groupings = groupings.to_vec();
    if found.from.is_some() && !groupings.contains(&Grouping::Rewriting) {
        groupings.push(Grouping::Rewriting);
    }
    groupings.iter().for_each(|by| text += &format!("\n{}", by.table(found, limit)));
    text
}

/// A line below the tables.
fn line(name: &str, content: &str) -> String {
    format!("{name:10}{content}\n")
}

/// What of the history was witnessed, and what is measured.
fn of_history(found: &skill::Skill) -> String {
    let of = &found.signals;
    let (live, all) = (of.live, of.all - of.same_day);
    let (share, signals) = (portion(live + of.late, all), count_of(all, "signal", "signals"));
    let seen =
        format!("{share} of the history: {} of {signals}, seen within {}", group_digits(live), found.live_within);
    let mut text = line("witnessed", &seen);
    if of.late > 0 {
        let what = "later than `live_within`, but new to an answer that came within it after the one before";
        text += &line("", &format!("and {} {what}", group_digits(of.late)));
    }
    let left_out = listed(&[
        (of.incomplete, "whose horizon is not over"),
        (of.without_price, "without a price"),
        (of.before_prices, "dated before the prices"),
        (of.same_day, "that repeat a day"),
        (of.unclear, "without a direction"),
        (of.without_id, "under a name that the file of `[identity]` gives no id then"),
    ]);
    text += &line("measured", &count_of(of.measured, "signal", "signals"));
    text += &line("left out", if left_out.is_empty() { "none" } else { &left_out });
    if let Some(worst) = found.worst_day {
        let [without, signals] = [worst.without_price, worst.signals].map(group_digits);
        text += &line("", &format!("most without a price on {}: {without} of {signals}", worst.day));
    }
    if of.ended > 0 {
        let returns = count_of(of.ended, "return ends", "returns end");
        let what = "with the last close of a name, before the horizon was over";
        text += &line("delisted", &format!("{returns} {what}"));
    }
    if of.across_names > 0 {
        let returns = count_of(of.across_names, "return is", "returns are");
        text += &line("renamed", &format!("{returns} over a change of ticker"));
    }
    text
}

/// What there is of several things, such as `2 turned, 1 withdrawn`.
fn listed(counts: &[(u64, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{} {what}", group_digits(*count))).collect::<Vec<_>>().join(", ")
}

fn of_prices(found: &skill::Skill) -> String {
    let prices = &found.prices;
    let (closes, tickers) = (count_of(prices.closes, "close", "closes"), count_of(prices.tickers, "ticker", "tickers"));
    let sessions = count_of(prices.sessions, "session", "sessions");
    let range = format!("{closes} of {tickers}, {sessions} from {} to {}", prices.first, prices.last);
    let mut text = line("prices", &range);
    for file in &prices.files {
        text += &line("", &format!("{}, BLAKE3 {}", escape(&file.path), &file.blake3[..16]));
    }
    if prices.holes > 0 {
        let holes = count_of(prices.holes, "close", "closes");
        text += &line("", &format!("{holes} missing within the range of a ticker"));
    }
    if prices.thin_sessions > 0 {
        let sessions = count_of(prices.thin_sessions, "session has", "sessions have");
        text += &line("", &format!("{sessions} a close of fewer than half of the tickers"));
    }
    for warning in &found.warnings {
        text += &wrap(&line("", &format!("warning: {warning}")), 10, Some(98));
    }
    if prices.adjusted == Some(false) {
        text += &line("", "not adjusted: returns over a split or a dividend are wrong");
    }
    let entry = match found.lag_sessions {
        0 => "at the close of its date".to_owned(),
        lag => format!("{} after its date", count_of(lag.into(), "session", "sessions")),
    };
    text + &line("entry", &format!("at the first close after a signal was seen; a backfilled one {entry}"))
}

/// The measures with any date, with the name of their pair.
fn measures(found: &skill::Skill) -> impl Iterator<Item = (String, &Measure)> {
    found.pairs.iter().flat_map(|pair| {
        let measures = pair.measures.iter().filter(|measure| measure.ranks.dates > 0);
        measures.map(move |measure| (format!("{} {}", pair.period, pair.regime), measure))
    })
}

/// The row of a rank correlation. The document also has the p-value of Benjamini and Hochberg.
fn correlation(name: &str, state: State, ranks: &RankMeasure) -> Vec<String> {
    let test = ranks.test.as_ref();
    vec![
        name.to_owned(),
        state.as_str().to_owned(),
        group_digits(ranks.dates),
        group_digits(ranks.windows),
        or_dash(ranks.correlation, |mean| round(mean, 4)),
        or_dash(test, |test| interval(test.interval.lower, test.interval.upper)),
        or_dash(test.map(|test| test.p), p_value),
        or_dash(ranks.p_holm, p_value),
    ]
}

/// An interval of a mean rank correlation.
fn interval(lower: f64, upper: f64) -> String {
    format!("{} to {}", round(lower, 3), round(upper, 3))
}

/// The best pair, as published and as of today, if there are several.
fn of_best(best: &Best) -> String {
    let what = match best.state {
        State::Published => "as published",
        State::Today => "as of today",
        State::Difference => return String::new(),
    };
    if best.tested < 2 || best.feature.is_some() {
        return String::new();
    }
    let (tested, name, Best { z, expected, .. }) = (group_digits(best.tested), best.name(), best);
    let effective = best.effective.zip(best.expected_of_effective);
    let effective = effective.map(|(number, expected)| format!(", {expected:.1} as they are worth {number:.1}"));
    let effective = effective.unwrap_or_default();
    format!("best of {tested} {what}: {name}, z {z:.1}; without skill {expected:.1}{effective}\n")
}

fn of_hindsight(hindsight: &Hindsight) -> String {
    let (Some(share), Some(luck)) = (hindsight.share, hindsight.luck) else {
        return line("rewritten", "nothing once part of the return was known");
    };
    let rewrites = count_of(hindsight.rewrites, "signal", "signals");
    let kinds = listed(&[
        (hindsight.turned, "turned"),
        (hindsight.weakened, "weakened"),
        (hindsight.strengthened, "strengthened"),
        (hindsight.withdrawn, "withdrawn"),
        (hindsight.restored, "listed again"),
    ]);
    let p = or_dash(hindsight.test.map(|test| test.p), p_value);
    let agree = format!("{} agree with it, {} would by luck; p {p} by date", percent(share), percent(luck));
    let mut text = line("rewritten", &format!("{rewrites} once part of the return was known:"));
    text += &(line("", &kinds) + &line("", &agree));
    if let Some(share) = hindsight.live_after_share {
        let signals = count_of(hindsight.live_after, "signal", "signals");
        text += &line("", &format!("of {signals} published since, {} came true", percent(share)));
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
    let (value, excess) = (in_percent(value), in_percent(excess));
    line("gone", &format!("{signals} no longer listed{names}: they returned {value}, {excess} relative to the mean"))
}

fn cost(measure: &Measure) -> String {
    or_dash(measure.break_even, |cost| format!("{} bp", round(10_000.0 * cost, 0)))
}

fn p_value(p: f64) -> String {
    if p < 0.0005 { "<.001".to_owned() } else { format!("{p:.3}") }
}

fn in_percent(share: f64) -> String {
    format!("{} %", round(100.0 * share, 3))
}

/// What further tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Grouping {
    /// The horizon at the entry, the one after it, and so on.
    Lag,
    /// The year of the date.
    Year,
    /// The sector.
    Sector,
    /// The number of articles in each window of news.
    News,
    /// What is left within sectors, and given the beta of each name.
    Neutral,
    /// The features of the news, by themselves and given the signal.
    Feature,
    /// How many came true, and what followed.
    Hits,
    /// What each fifth by score returned, and how much of the highest one is replaced.
    Fifths,
    /// Whether confidences are probabilities.
    Confidence,
    /// What each kind of rewriting makes of the correlation.
    Rewriting,
}

impl Grouping {
    fn table(self, found: &skill::Skill, limit: usize) -> Aligned {
        let (texts, heads) = self.heads(found.from.is_some());
        let mut rows = Vec::new();
        if self == Self::Rewriting {
            rows.extend(found.pairs.iter().map(rewritten));
        }
        for (pair, measure) in measures(found) {
            let name = [pair, measure.state.as_str().to_owned()];
            let row = match self {
                Self::Confidence => measure.confidence.as_ref().map(|of| {
                    [of.brier, of.miscalibration, of.discrimination, of.uncertainty].map(|it| round(it, 4)).to_vec()
                }),
                Self::Feature | Self::Rewriting => None,
                _ if measure.state == State::Difference => None,
                Self::Hits => Some(hits(measure)),
                Self::Fifths => Some(fifths(measure)),
                _ => {
                    rows.extend(self.groups(&name, &measure.ranks, Some(measure)));
                    None
                }
            };
            rows.extend(row.map(|row| name.into_iter().chain(row).collect()));
        }
        for feature in &found.features {
            for measure in &feature.measures {
                let name = format!("{} {}", feature.feature, feature.period);
                match self {
                    Self::Feature if measure.ranks.dates > 0 => rows.push(of_feature(&name, measure)),
                    Self::Lag | Self::Year | Self::Sector | Self::Neutral if measure.state != State::Difference => {
                        let name = [name, measure.state.as_str().to_owned()];
                        rows.extend(self.groups(&name, &measure.ranks, None));
                    }
                    _ => {}
                }
            }
        }
        let mut table = Aligned::new(texts, heads);
        table.rest(rows, limit);
        table
    }

    /// How many columns are text, and their heads.
    fn heads(self, is_since: bool) -> (usize, Vec<&'static str>) {
        let by = |name| (3, vec![name, "", "", "dates", "windows", "names", "mean", "95 % interval", "p"]);
        match self {
            Self::Feature => {
                (2, vec!["feature", "", "dates", "mean", "95 % interval", "p", "Holm", "given signal", "p"])
            }
            Self::Hits => {
                (2, vec!["came true", "", "buys", "after", "p", "sells", "after", "p", "surest", "after", "flips"])
            }
            Self::Fifths => (2, vec!["fifths", "", "lowest", "2", "3", "4", "highest", "spread", "turnover", "cost"]),
            Self::Confidence => {
                (2, vec!["confidence", "", "Brier score", "miscalibration", "discrimination", "uncertainty"])
            }
            Self::Rewriting => {
                let first = if is_since { "since then" } else { "rewritten" };
                let kinds = ["matched", "altered", "removed", "added", "first", "altered", "removed", "added", "today"];
                (1, [first].into_iter().chain(kinds).collect())
            }
            Self::Lag => by("by lag"),
            Self::Year => by("by year"),
            Self::Sector => by("by sector"),
            Self::News => by("by news"),
            Self::Neutral => by("neutral"),
        }
    }

    /// A row for each group of a measure; only one of signals is grouped by news.
    fn groups(self, name: &[String; 2], ranks: &RankMeasure, signals: Option<&Measure>) -> Vec<Vec<String>> {
        let groups: Vec<(String, &SeriesMeasure)> = match self {
            Self::Lag => ranks.by_lag.iter().map(|of| (format!("lag {}", of.lag), &of.measure)).collect(),
            Self::Year => ranks.by_year.iter().map(|of| (of.year.to_string(), &of.measure)).collect(),
            Self::Sector => ranks.by_sector.iter().map(|of| (of.sector.clone(), &of.measure)).collect(),
            Self::News => {
                let by_news = signals.into_iter().flat_map(|signals| &signals.by_news);
                by_news.map(|of| (format!("{} in {}", of.articles, of.window), &of.measure)).collect()
            }
            _ => {
                let neutral = [("in sectors", &ranks.within_sectors), ("given beta", &ranks.given_beta)];
                neutral.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of.as_ref()?))).collect()
            }
        };
        let mut rows = Vec::new();
        for (group, of) in groups.into_iter().filter(|(_, of)| of.dates > 0) {
            let mut cells = Vec::from(name.clone());
            cells.extend([group, group_digits(of.dates), group_digits(of.windows)]);
            cells.push(or_dash(of.names, |names| format!("{names:.0}")));
            cells.extend(mean_and_test(of));
            rows.push(cells);
        }
        rows
    }
}

fn mean_and_test(of: &SeriesMeasure) -> [String; 3] {
    let test = of.test.as_ref();
    [
        or_dash(of.correlation, |mean| round(mean, 4)),
        or_dash(test, |test| interval(test.interval.lower, test.interval.upper)),
        or_dash(test, |test| p_value(test.p)),
    ]
}

fn of_feature(name: &str, measure: &FeatureMeasure) -> Vec<String> {
    let mut cells = correlation(name, measure.state, &measure.ranks);
    // The windows are those of the pairs.
    cells.remove(3);
    let partial = measure.partial.as_ref();
    cells.push(or_dash(partial.and_then(|of| of.correlation), |mean| round(mean, 4)));
    cells.push(or_dash(partial.and_then(|of| of.test.as_ref()), |test| p_value(test.p)));
    cells
}

fn hits(measure: &Measure) -> Vec<String> {
    let mut cells = Vec::new();
    for (of, has_p) in [(measure.buys, true), (measure.sells, true), (measure.confident, false)] {
        cells.extend([or_dash(of.hit_rate, percent), or_dash(of.side.excess, in_percent)]);
        cells.extend(has_p.then(|| or_dash(of.test, |test| p_value(test.p))));
    }
    cells.push(or_dash(measure.flips, percent));
    cells
}

fn fifths(measure: &Measure) -> Vec<String> {
    let shares = measure.fifths.into_iter().chain([measure.spread]);
    let mut cells: Vec<String> =
        shares.map(|share| or_dash(share, |share| format!("{} %", round(100.0 * share, 2)))).collect();
    cells.extend([or_dash(measure.turnover, percent), cost(measure)]);
    cells
}

fn rewritten(pair: &PairSkill) -> Vec<String> {
    let kinds = &pair.rewritten;
    let mut cells = vec![format!("{} {}", pair.period, pair.regime)];
    cells.extend([kinds.matched, kinds.altered, kinds.removed, kinds.added].map(group_digits));
    let means = [kinds.base, kinds.with_altered, kinds.without_removed, kinds.with_added, kinds.today];
    cells.extend(means.map(|mean| or_dash(mean, |mean| round(mean, 4))));
    cells
}
