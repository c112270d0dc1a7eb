//! The answer of `audit skill`.

use bellwether_statistics::calibration::Bin;
use bellwether_statistics::counts::{self, ClusteredSignTest};
use bellwether_statistics::{Estimator, MeanTest, Refusal};
use schemars::JsonSchema;
use serde::Serialize;

use crate::audit::skill::{self, CellCounts};
use crate::plan::PricesPlan;
use crate::time::{MICROS_PER_DAY, to_record};

/// Whether signals predicted, as they were published and as they stand today.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Skill {
    /// The dataset.
    dataset: String,
    /// The instant of the history.
    as_of: String,
    prices: Prices,
    /// How long after its date a signal was first seen at the latest, to be live.
    live_within: String,
    /// The sessions from the date of a backfilled signal to its entry.
    lag_sessions: u32,
    signals: Signals,
    /// The day with the largest share of signals without a price; none if all have one.
    worst_day: Option<WorstDay>,
    pairs: Vec<Pair>,
    /// The best pair of each state that has a test, beside what luck would show.
    best: Vec<Best>,
    /// The hindsight test over all pairs.
    hindsight: Hindsight,
}

/// The prices.
#[derive(Debug, Serialize, JsonSchema)]
struct Prices {
    files: Vec<PriceFile>,
    closes: u64,
    tickers: u64,
    sessions: u64,
    /// The first session.
    first: String,
    /// The last session.
    last: String,
    /// Missing closes between the first and the last close of each ticker.
    holes: u64,
    /// Sessions on which fewer than half of the tickers that trade then have a close.
    thin_sessions: u64,
    /// Whether they are adjusted for splits and dividends; none if the definition does not say.
    adjusted: Option<bool>,
}

/// A file of prices.
#[derive(Debug, Serialize, JsonSchema)]
struct PriceFile {
    path: String,
    blake3: String,
}

/// What became of signals.
#[derive(Debug, Serialize, JsonSchema)]
struct Signals {
    /// Signals with a date.
    all: u64,
    /// Those that were first seen while their date was fresh.
    live: u64,
    /// The share of them.
    witnessed: Option<f64>,
    /// Those that are measured.
    measured: u64,
    /// Those of them that are live.
    measured_live: u64,
    /// Left out: without a direction or confidence.
    unclear: u64,
    /// Left out: a further one of a ticker on the same day.
    same_day: u64,
    /// Left out: dated before the first session.
    before_prices: u64,
    /// Left out: the horizon ends after the last session.
    incomplete: u64,
    /// Left out: no close at the entry or at the exit.
    without_price: u64,
}

/// A day on which signals have no price.
#[derive(Debug, Serialize, JsonSchema)]
struct WorstDay {
    day: String,
    signals: u64,
    without_price: u64,
}

/// A pair of period and regime.
#[derive(Debug, Serialize, JsonSchema)]
struct Pair {
    period: String,
    regime: String,
    signals: Signals,
    /// As published, as it stands today, and the difference on the same cells.
    measures: Vec<Measure>,
    rewritten: Rewritten,
    hindsight: Hindsight,
}

/// A measure.
#[derive(Debug, Serialize, JsonSchema)]
struct Measure {
    /// `published`, `today` or `difference`.
    state: &'static str,
    /// Dates with a rank correlation.
    dates: u64,
    /// Dates on which all confidences or all returns are equal.
    constant_dates: u64,
    /// Dates with too few names.
    thin_dates: u64,
    /// The mean number of names.
    names: Option<f64>,
    /// The mean rank correlation of the signed confidence with the return.
    correlation: Option<f64>,
    /// The share of dates with a correlation above zero.
    positive: Option<f64>,
    /// The number of dates whose returns overlap.
    horizon: u64,
    /// The windows that do not overlap.
    windows: u64,
    /// The test of the mean; none if it is refused.
    test: Option<Test>,
    /// The test of every date whose window does not overlap with the one before; none if it is refused.
    disjoint: Option<Test>,
    /// Why the test is refused.
    refusal: Option<String>,
    /// The p-value after Holm, among the pairs of the state.
    p_holm: Option<f64>,
    /// The p-value after Benjamini and Hochberg, among the pairs of the state.
    p_benjamini_hochberg: Option<f64>,
    buys: Side,
    sells: Side,
    /// The most confident fifth, buys and sells.
    confident: Side,
    /// Whether confidences are probabilities; none of the difference, or if one is not between 0 and 1.
    confidence: Option<Confidence>,
    /// The mean return of the highest fifth of signed confidences less that of the lowest.
    spread: Option<f64>,
    /// The share of signals that are the opposite of the one before.
    flips: Option<f64>,
}

/// The test of a mean.
#[derive(Debug, Serialize, JsonSchema)]
struct Test {
    /// `cosine` or `disjoint`.
    estimator: &'static str,
    /// The number of cosines, of that estimator.
    cosines: Option<u64>,
    observations: u64,
    mean: f64,
    standard_error: f64,
    degrees_of_freedom: f64,
    t: f64,
    p: f64,
    /// The lower end of the 95 % interval.
    lower: f64,
    /// Its upper end.
    upper: f64,
}

/// Signals of a side.
#[derive(Debug, Serialize, JsonSchema)]
struct Side {
    signals: u64,
    /// Those after which the return, relative to the mean of its date, went their way.
    hits: u64,
    /// The share of them.
    hit_rate: Option<f64>,
    /// The test of the share against a half, by date; its mean is the share less a half. None if it is refused.
    test: Option<Test>,
    /// The mean over dates of the mean return relative to the mean of the date.
    excess: Option<f64>,
}

/// Confidences as probabilities that the return goes the way of the signal, relative to the mean of its date.
#[derive(Debug, Serialize, JsonSchema)]
struct Confidence {
    signals: u64,
    /// The mean square of the distance between confidence and outcome: miscalibration less discrimination plus uncertainty.
    brier: f64,
    /// What would be gained if each confidence were the share at it, by isotonic regression; 0 is best.
    miscalibration: f64,
    /// What the shares gain over the same confidence for all; 0 is worthless.
    discrimination: f64,
    /// The score of the same confidence for all.
    uncertainty: f64,
    /// About as many signals in each, by confidence.
    deciles: Vec<Decile>,
}

/// Signals of about the same confidence.
#[derive(Debug, Serialize, JsonSchema)]
struct Decile {
    lowest: f64,
    highest: f64,
    mean_confidence: f64,
    signals: u64,
    hits: u64,
}

/// Rewritten cells, and the mean correlation with each kind of change applied alone.
#[derive(Debug, Serialize, JsonSchema)]
struct Rewritten {
    matched: u64,
    altered: u64,
    /// Altered cells with another direction.
    turned: u64,
    removed: u64,
    added: u64,
    /// As first published, without what was added late.
    correlation: Option<f64>,
    with_altered: Option<f64>,
    without_removed: Option<f64>,
    with_added: Option<f64>,
    /// With all of it.
    today: Option<f64>,
}

/// The hindsight test.
#[derive(Debug, Serialize, JsonSchema)]
struct Hindsight {
    /// Signals that turned after their horizon was over, and whose return is not the mean of its date.
    turned: u64,
    /// Those of them whose new direction agrees with the return.
    agree: u64,
    /// The share of them.
    share: Option<f64>,
    /// Signals whose return is the mean of its date.
    even: u64,
    /// The test of the votes for the new direction less those for the old one, by date; none if it is refused.
    test: Option<Test>,
    /// The p-value of McNemar's exact test, which takes votes for independent.
    p: Option<f64>,
    /// The calendar days of a cluster: two of the longest horizons.
    cluster_days: u64,
    /// The clusters with more of one than of the other.
    clusters: u64,
    /// The p-value with windows of so many days as clusters.
    p_clustered: Option<f64>,
    /// The first day on which such a signal had turned.
    since: Option<String>,
    /// Live signals dated from then on.
    live_after: u64,
    /// Those of them that the return agrees with.
    live_after_hits: u64,
    /// The share of them.
    live_after_share: Option<f64>,
}

/// The best pair of a state.
#[derive(Debug, Serialize, JsonSchema)]
struct Best {
    state: &'static str,
    period: String,
    regime: String,
    /// Its mean correlation as a normal number.
    z: f64,
    /// The pairs with a test.
    tested: u64,
    /// What the best of as many independent pairs without skill shows on average.
    expected: f64,
    /// The effective number of pairs; none if two of them share too few dates.
    effective: Option<f64>,
    /// What the best of that many without skill shows on average.
    expected_of_effective: Option<f64>,
}

impl Skill {
    pub(in crate::cli) fn of(dataset: &str, plan: &PricesPlan, found: &skill::Skill) -> Self {
        let prices = &found.prices;
        let files = prices.files.iter().map(|(path, blake3)| PriceFile { path: path.clone(), blake3: blake3.clone() });
        let pair = |pair: &skill::PairSkill| Pair {
            period: pair.period.to_string(),
            regime: pair.regime.to_string(),
            signals: Signals::of(&pair.cells),
            measures: pair.measures.iter().map(Measure::of).collect(),
            rewritten: Rewritten::of(&pair.kinds),
            hindsight: Hindsight::of(&pair.hindsight),
        };
        let best = |best: &skill::Best| Best {
            state: best.state.as_str(),
            period: best.pair.0.to_string(),
            regime: best.pair.1.to_string(),
            z: best.z,
            tested: best.tested,
            expected: best.expected,
            effective: best.effective,
            expected_of_effective: best.expected_of_effective,
        };
        Self {
            dataset: dataset.to_owned(),
            as_of: to_record(found.as_of),
            prices: Prices {
                files: files.collect(),
                closes: prices.closes,
                tickers: prices.tickers,
                sessions: prices.sessions,
                first: prices.first.to_string(),
                last: prices.last.to_string(),
                holes: prices.holes,
                thin_sessions: prices.thin,
                adjusted: plan.adjusted,
            },
            live_within: found.live_within.to_string(),
            lag_sessions: found.lag,
            signals: Signals::of(&found.cells),
            worst_day: found.worst.map(|(day, signals, without_price)| WorstDay {
                day: day.to_string(),
                signals,
                without_price,
            }),
            pairs: found.pairs.iter().map(pair).collect(),
            best: found.best.iter().map(best).collect(),
            hindsight: Hindsight::of(&found.hindsight),
        }
    }
}

impl Signals {
    fn of(counts: &CellCounts) -> Self {
        Self {
            all: counts.cells,
            live: counts.live,
            witnessed: counts.witnessed(),
            measured: counts.used,
            measured_live: counts.used_live,
            unclear: counts.unclear,
            same_day: counts.same_day,
            before_prices: counts.before,
            incomplete: counts.incomplete,
            without_price: counts.unpriced,
        }
    }
}

impl Measure {
    fn of(measure: &skill::Measure) -> Self {
        let test = |test: &Result<MeanTest, Refusal>| test.as_ref().ok().map(Test::of);
        Self {
            state: measure.state.as_str(),
            dates: measure.dates,
            constant_dates: measure.constant,
            thin_dates: measure.few,
            names: measure.names,
            correlation: measure.correlation,
            positive: measure.positive,
            horizon: measure.horizon,
            windows: measure.windows,
            test: test(&measure.test),
            disjoint: test(&measure.disjoint),
            refusal: measure.test.as_ref().err().map(ToString::to_string),
            p_holm: measure.p_holm,
            p_benjamini_hochberg: measure.p_benjamini_hochberg,
            buys: Side::of(measure.buys),
            sells: Side::of(measure.sells),
            confident: Side::of(measure.confident),
            confidence: measure.confidence.as_ref().map(Confidence::of),
            spread: measure.spread,
            flips: measure.flips.share(),
        }
    }
}

impl Test {
    fn of(test: &MeanTest) -> Self {
        let (estimator, cosines) = match test.estimator {
            Estimator::Cosine { cosines } => ("cosine", Some(cosines as u64)),
            Estimator::Disjoint => ("disjoint", None),
            Estimator::NeweyWest { .. } => ("Newey-West", None),
            Estimator::Independent => ("independent", None),
        };
        Self {
            estimator,
            cosines,
            observations: test.observations as u64,
            mean: test.mean,
            standard_error: test.standard_error,
            degrees_of_freedom: test.degrees_of_freedom,
            t: test.t,
            p: test.p,
            lower: test.interval.lower,
            upper: test.interval.upper,
        }
    }
}

impl Side {
    fn of(measure: skill::SideMeasure) -> Self {
        let skill::SideMeasure { side, test } = measure;
        let (hit_rate, test) = (side.hit_rate(), test.as_ref().map(Test::of));
        Self { signals: side.signals, hits: side.hits, hit_rate, test, excess: side.excess }
    }
}

impl Confidence {
    fn of(found: &skill::ConfidenceMeasure) -> Self {
        let decile = |bin: &Bin| Decile {
            lowest: bin.lowest,
            highest: bin.highest,
            mean_confidence: bin.mean_forecast,
            signals: bin.cases,
            hits: bin.hits,
        };
        Self {
            signals: found.signals,
            brier: found.brier,
            miscalibration: found.miscalibration,
            discrimination: found.discrimination,
            uncertainty: found.uncertainty,
            deciles: found.deciles.iter().map(decile).collect(),
        }
    }
}

impl Rewritten {
    fn of(kinds: &skill::Kinds) -> Self {
        Self {
            matched: kinds.matched,
            altered: kinds.altered,
            turned: kinds.turned,
            removed: kinds.removed,
            added: kinds.added,
            correlation: kinds.base.mean(),
            with_altered: kinds.with_altered.mean(),
            without_removed: kinds.without_removed.mean(),
            with_added: kinds.with_added.mean(),
            today: kinds.today.mean(),
        }
    }
}

impl Hindsight {
    fn of(found: &skill::Hindsight) -> Self {
        let counts::Share { hits, of } = found.agree;
        let day = |day: i32| {
            let micros = i64::from(day) * MICROS_PER_DAY;
            chrono::DateTime::from_timestamp_micros(micros).map(|day| day.date_naive().to_string())
        };
        Self {
            turned: of,
            agree: hits,
            share: found.agree.rate(),
            even: found.even,
            test: found.by_date.as_ref().map(Test::of),
            p: found.p,
            cluster_days: found.cluster_days,
            clusters: found.clustered.map_or(0, |test: ClusteredSignTest| test.clusters),
            p_clustered: found.clustered.map(|test| test.p),
            since: found.since.and_then(day),
            live_after: found.live_after.of,
            live_after_hits: found.live_after.hits,
            live_after_share: found.live_after.rate(),
        }
    }
}
