//! A report in numbers: what `bellwether report --text --json` prints.

use bellwether_statistics::ShareDifference;
use schemars::JsonSchema;
use serde::Serialize;

use super::Report;
use super::numbers::{ColumnNumbers, Totals, WindowNumbers};
use super::sentences::SectorExtremes;
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
    /// What it comes to, in a few sentences.
    verdict: Vec<String>,
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
    windows: Vec<WindowNumbers>,
    /// The date of the first article.
    news_begin: Option<String>,
    /// The number of its articles.
    articles: Option<u64>,
    /// How its past was revised; none with a single run.
    revisions: Option<Revisions>,
    /// Its columns as they are written.
    columns: Vec<ColumnNumbers>,
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
    /// The rows that were first seen live, within `live_within` of their date.
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
    /// Agreement beyond chance, Cohen's kappa; none if chance explains everything.
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
    /// Signals that another one of their series follows.
    followed: u64,
    /// Those of them that the opposite follows.
    flipped: u64,
}

impl From<Totals> for Signals {
    fn from(totals: Totals) -> Self {
        Self { count: totals.rows, buys: totals.buys, mean_confidence: totals.mean_confidence() }
    }
}

impl Report {
    /// Its numbers.
    pub fn summary(&self) -> DatasetSummary {
        let Self { identity, facts, numbers, .. } = self;
        let watched = identity.watched.as_ref();
        let version = identity.version.as_ref();
        let observed = Observation {
            since: watched.map(|watch| to_record(watch.from)),
            until: watched.map(|watch| to_record(watch.until)),
            seen_live: Some(facts.seen_live),
            seen_later: Some(facts.rows - facts.seen_live),
            live_within: identity.live_within.to_string(),
            news_unknown: numbers.longest_window().map(|window| window.unknown),
            news_cut_off: self.work.cut_off,
            news_unasked: self.unasked,
        };
        let pairs = numbers.pairs.iter().map(|pair| Pair {
            period: pair.period.to_string(),
            regime: pair.regime.to_string(),
            signals: pair.totals.into(),
            followed: pair.totals.followed,
            flipped: pair.totals.flipped,
        });
        let pairs = pairs.collect();
        let agreements = numbers.agreements.as_ref().map(|all| {
            let agreeing = all.iter().map(|it| Agreeing {
                pairs: it.pairs.map(|index| numbers.pairs[index].name()),
                both: it.answers.both,
                same: it.answers.same,
                by_chance: it.answers.by_chance(),
                kappa: it.answers.kappa(),
            });
            agreeing.collect()
        });
        let sectors = self.sectors.iter().map(|sector| SectorSignals {
            sector: sector.name.clone(),
            tickers: sector.tickers.len() as u64,
            signals: sector.totals().into(),
            followed: sector.totals().followed,
            flipped: sector.totals().flipped,
        });
        let coverage = numbers.coverage(1);
        let incomplete = coverage.incomplete.iter().take(64).map(|covered| {
            let (days, due) = covered.total();
            IncompleteTicker { ticker: covered.ticker.clone(), days, due }
        });
        let spread = SectorExtremes::find(&self.sectors).map(|SectorExtremes { lowest, highest, test }| SectorSpread {
            lowest: lowest.name.clone(),
            highest: highest.name.clone(),
            test,
        });
        let bounds = facts.bounds();
        DatasetSummary {
            name: identity.name.clone(),
            description: identity.description.clone(),
            verdict: self.verdict(),
            dataset_version: version.map(|version| version.name.clone()),
            content: version.map(|version| version.content.clone()),
            as_of: to_record(identity.as_of),
            observed,
            first_date: bounds.map(|(first, _)| first.to_string()),
            last_date: bounds.map(|(_, last)| last.to_string()),
            tickers: facts.tickers.len(),
            days: self.day_count(),
            signals: numbers.totals().into(),
            pairs,
            agreements,
            sectors: sectors.collect(),
            sector_spread: spread,
            news_begin: self.news.as_ref().and_then(|news| Some(news.days.keys().next()?.to_string())),
            windows: numbers.windows.clone(),
            articles: self.news.as_ref().map(|news| news.articles),
            columns: self.columns.clone(),
            in_words: identity.in_words.clone(),
            files: version.map(|version| version.files.clone()).unwrap_or_default(),
            version_before: version.and_then(|version| version.before.clone()),
            incomplete: incomplete.collect(),
            revisions: self.revisions.clone(),
            runs: self.work.runs.len(),
            notes: self.notes.clone(),
        }
    }
}
