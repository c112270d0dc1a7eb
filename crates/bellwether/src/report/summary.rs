//! A report in numbers: what `bellwether report --text --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

use super::facts::{
    Agreement, ColumnFacts, Flips, PairFacts, SectorExtremes, SectorFacts, ShareDifference, SignalTotals,
    TickerCoverage,
};
use super::{Observed, Report};
use crate::audit::answers::CutOff;
use crate::audit::revisions::Revisions;
use crate::time::to_record;

/// What a dataset holds, and how its past was revised.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DatasetSummary {
    /// Its name.
    name: String,
    /// Its description.
    description: Option<String>,
    /// The published version.
    dataset_version: Option<String>,
    /// The hash of the version's content.
    content: Option<String>,
    /// The instant that it is about.
    as_of: String,
    /// Since when it has been observed, and how much of it was seen live.
    observed: Observation,
    /// Its first date.
    first_date: Option<String>,
    /// Its last date.
    last_date: Option<String>,
    /// The number of its tickers.
    tickers: usize,
    /// The number of its days.
    days: u64,
    /// All signals.
    signals: Signals,
    /// The signals of each pair of period and regime.
    pairs: Vec<Pair>,
    /// How often two pairs agree; none if it was not counted.
    agreements: Option<Vec<Agreeing>>,
    /// The split by sector; empty if no sector is known.
    sectors: Vec<SectorSignals>,
    /// Whether sectors differ by more than noise; none with fewer than two.
    sector_spread: Option<SectorSpread>,
    /// The news windows.
    windows: Vec<Window>,
    /// The date of the first article.
    news_begin: Option<String>,
    /// The number of its articles.
    articles: Option<u64>,
    /// How its past was revised; none with a single run.
    revisions: Option<Revisions>,
    /// Its columns as they are written; empty if an earlier program counted them.
    columns: Vec<ColumnSummary>,
    /// Which signals it has, and which news each may use.
    in_words: String,
    /// Its files, as paths below the data folder; empty without a version.
    files: Vec<String>,
    /// The version that was published before it, if that is still there.
    version_before: Option<String>,
    /// The tickers that lack signals, the worst first.
    incomplete: Vec<IncompleteTicker>,
    /// The number of runs that it is from.
    runs: usize,
    /// Notes, a line each.
    notes: Vec<String>,
}

/// A column of a dataset.
#[derive(Debug, Serialize, JsonSchema)]
struct ColumnSummary {
    /// Its name.
    name: String,
    /// Rows without a value.
    nulls: u64,
    /// The lowest value, if it has numbers.
    lowest: Option<f64>,
    /// The highest value, if it has numbers.
    highest: Option<f64>,
}

/// A ticker that lacks signals.
#[derive(Debug, Serialize, JsonSchema)]
struct IncompleteTicker {
    /// Its symbol.
    ticker: String,
    /// The days with a signal, summed over its pairs of period and regime.
    days: u64,
    /// Those that there could be: for each pair, the days on which any ticker has a signal.
    due: u64,
}

/// What was observed of a dataset.
#[derive(Debug, Serialize, JsonSchema)]
struct Observation {
    /// The first answer that listed one of its series.
    since: Option<String>,
    /// The last answer.
    until: Option<String>,
    /// The rows that were first seen live, within `live_within` of their date; none if an earlier program counted them.
    seen_live: Option<u64>,
    /// The rows that were first seen later. Those whose news was asked for too late are backfilled, too.
    seen_later: Option<u64>,
    /// How long after its date a row is live.
    live_within: String,
    /// The rows whose news is unknown in the longest window; none without windows.
    news_unknown: Option<u64>,
    /// The length at which lists of articles seem to be cut off.
    news_cut_off: Option<CutOff>,
    /// The tickers whose news was not asked for.
    news_unasked: u64,
}

/// Some signals.
#[derive(Debug, Serialize, JsonSchema)]
struct Signals {
    /// How many.
    count: u64,
    /// How many of them are buys.
    buys: u64,
    /// Their mean confidence.
    mean_confidence: Option<f64>,
}

/// The signals of a pair of period and regime.
#[derive(Debug, Serialize, JsonSchema)]
struct Pair {
    /// The period.
    period: String,
    /// The regime.
    regime: String,
    #[serde(flatten)]
    signals: Signals,
    #[serde(flatten)]
    flips: Flipping,
}

/// How often signals flip.
#[derive(Debug, Serialize, JsonSchema)]
struct Flipping {
    /// Signals that another one of their series follows.
    followed: u64,
    /// Those of them that the opposite follows.
    flipped: u64,
}

/// How often two pairs agree.
#[derive(Debug, Serialize, JsonSchema)]
struct Agreeing {
    /// The two, as `5d bear`.
    pairs: [String; 2],
    /// Tickers and dates for which both have a signal.
    both: u64,
    /// Those of them where the signals are the same.
    same: u64,
    /// The share of equal signals that chance gives to two pairs that buy as often.
    by_chance: Option<f64>,
    /// Agreement beyond chance, Cohen's kappa; none if chance explains everything, or an earlier program counted them.
    kappa: Option<f64>,
}

/// The two sectors that are furthest apart in their share of buys.
#[derive(Debug, Serialize, JsonSchema)]
struct SectorSpread {
    /// The sector with the lowest share.
    lowest: Option<String>,
    /// The one with the highest.
    highest: Option<String>,
    /// Welch's test with tickers as clusters; none if too few tickers tell.
    test: Option<ShareDifference>,
}

/// The signals of a sector.
#[derive(Debug, Serialize, JsonSchema)]
struct SectorSignals {
    /// Its name; none for tickers without one.
    sector: Option<String>,
    /// The number of its tickers.
    tickers: u64,
    #[serde(flatten)]
    signals: Signals,
    #[serde(flatten)]
    flips: Flipping,
}

/// A news window.
#[derive(Debug, Serialize, JsonSchema)]
struct Window {
    /// Its length.
    window: String,
    /// The signals with news in it.
    with_news: u64,
    /// The signals for which it is unknown what was in it.
    unknown: u64,
}

impl Signals {
    fn of(totals: SignalTotals) -> Self {
        Self { count: totals.rows, buys: totals.buys, mean_confidence: totals.mean_confidence() }
    }
}

impl ColumnSummary {
    fn of(column: &ColumnFacts) -> Self {
        let (lowest, highest) = column.range.unzip();
        Self { name: column.name.clone(), nulls: column.nulls, lowest, highest }
    }
}

impl IncompleteTicker {
    /// It, if it lacks any.
    fn of(covered: &TickerCoverage) -> Option<Self> {
        let (days, due) = covered.total();
        (days < due).then(|| Self { ticker: covered.ticker.clone(), days, due })
    }
}

impl Observation {
    fn of(observed: &Observed) -> Self {
        Self {
            since: observed.answers.map(|(since, _)| to_record(since)),
            until: observed.answers.map(|(_, until)| to_record(until)),
            seen_live: observed.live,
            seen_later: observed.live.map(|live| observed.rows - live),
            live_within: observed.live_within.to_string(),
            news_unknown: observed.news_unknown,
            news_cut_off: observed.cut_off,
            news_unasked: observed.unasked,
        }
    }
}

impl Flipping {
    fn of(flips: Flips) -> Self {
        Self { followed: flips.followed, flipped: flips.flipped }
    }
}

impl Report {
    /// Its numbers.
    pub fn summary(&self) -> DatasetSummary {
        let (identity, facts) = (&self.identity, &self.facts);
        let pair = |pair: &PairFacts| Pair {
            period: pair.period.to_string(),
            regime: pair.regime.to_string(),
            signals: Signals::of(pair.total()),
            flips: Flipping::of(pair.flips),
        };
        let name = |index: usize| format!("{} {}", facts.pairs[index].period, facts.pairs[index].regime);
        let agreeing = |it: &Agreement| Agreeing {
            pairs: it.pairs.map(name),
            both: it.both,
            same: it.same,
            by_chance: it.by_chance(),
            kappa: it.kappa(),
        };
        let name_of = |sector: &SectorFacts| sector.name.as_ref().map(ToString::to_string);
        let sector = |of_sector: &SectorFacts| SectorSignals {
            sector: name_of(of_sector),
            tickers: of_sector.tickers,
            signals: Signals::of(of_sector.totals),
            flips: Flipping::of(of_sector.flips),
        };
        let bounds = facts.bounds();
        DatasetSummary {
            name: identity.name.clone(),
            description: identity.description.clone(),
            dataset_version: identity.version.as_ref().map(|version| version.name.clone()),
            content: identity.version.as_ref().map(|version| version.content.clone()),
            as_of: to_record(identity.as_of),
            observed: Observation::of(&self.observations()),
            first_date: bounds.map(|(first, _)| first.to_string()),
            last_date: bounds.map(|(_, last)| last.to_string()),
            tickers: facts.tickers.len(),
            days: facts.day_count(),
            signals: Signals::of(facts.totals()),
            pairs: facts.pairs.iter().map(pair).collect(),
            agreements: facts.agreements.as_ref().map(|all| all.iter().map(agreeing).collect()),
            sectors: self.sectors.iter().map(sector).collect(),
            sector_spread: SectorExtremes::of(&self.sectors).map(|SectorExtremes { lowest, highest, test }| {
                SectorSpread { lowest: name_of(lowest), highest: name_of(highest), test }
            }),
            news_begin: facts.news.as_ref().and_then(|news| Some(news.days.keys().next()?.to_string())),
            windows: facts
                .windows
                .iter()
                .map(|window| Window {
                    window: window.length.to_string(),
                    with_news: window.with_news,
                    unknown: window.unknown,
                })
                .collect(),
            articles: facts.news.as_ref().map(|news| news.articles),
            columns: self.columns.iter().map(ColumnSummary::of).collect(),
            in_words: identity.in_words.clone(),
            files: identity.version.as_ref().map(|version| version.files.clone()).unwrap_or_default(),
            version_before: identity.version.as_ref().and_then(|version| version.before.clone()),
            incomplete: facts.coverage(1).rows.iter().filter_map(IncompleteTicker::of).collect(),
            revisions: self.revisions.clone(),
            runs: self.work.runs.len(),
            notes: self.notes.clone(),
        }
    }
}
