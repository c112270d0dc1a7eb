//! What is measured of a pair, by date and over all dates.

use bellwether_statistics::calibration::{BandPoint, Bin, Calibration};
use bellwether_statistics::{Interval, MeanTest, Refusal};
use schemars::JsonSchema;
use serde::Serialize;

use super::prices::Day;
use super::series::{LagMeasure, NewsMeasure, SectorMeasure, YearMeasure};

/// The state of a history that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Live cells, as first published.
    Published,
    /// All cells that are listed today, as they stand.
    Today,
    /// What the second has over the first, on the cells that both have.
    Difference,
}

impl State {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Published, Self::Today, Self::Difference];

    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Today => "today",
            Self::Difference => "difference",
        }
    }
}

/// Signals of one side on one or all dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Signals.
    pub signals: u64,
    /// Those after which the return went their way, relative to the mean of the date. A return equal to the mean does
    /// not.
    pub hits: u64,
    /// The mean over dates of the mean return relative to the mean of the date; of sells too, so that it should be
    /// negative. Of the most confident, it is turned into the direction of each signal.
    pub excess: Option<f64>,
}

/// Signals of one side on all dates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideMeasure {
    /// Their counts and their returns.
    #[serde(flatten)]
    pub side: Side,
    /// The share of hits.
    pub hit_rate: Option<f64>,
    /// The test of the share of hits against a half, whose mean is that share less a half: by date, since the signals of
    /// a date share its return; none if it is refused.
    pub test: Option<MeanTest>,
}

/// Confidences as probabilities of a hit. What belongs to each single confidence is not kept: there may be as many as
/// signals.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConfidenceMeasure {
    /// Signals.
    pub signals: u64,
    /// The mean square of the distance between confidence and outcome.
    pub brier: f64,
    /// What would be gained if each confidence were the share of hits at it.
    pub miscalibration: f64,
    /// What these shares gain over the same confidence for all.
    pub discrimination: f64,
    /// The score of the same confidence for all.
    pub uncertainty: f64,
    /// About as many signals in each, by confidence.
    pub deciles: Vec<Bin>,
    /// The share of hits at each confidence, of dates whose windows do not overlap.
    pub reliability: Reliability,
}

/// The share of hits at each confidence, of some dates whose windows do not overlap: signals of other dates share their
/// returns, and a band that takes them for independent is too narrow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reliability {
    /// The dates.
    pub dates: u64,
    /// Their signals.
    pub signals: u64,
    /// At most a hundred confidences, ascending.
    pub points: Vec<ReliabilityPoint>,
}

/// The share of hits at a confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReliabilityPoint {
    /// The confidence.
    pub confidence: f64,
    /// The share of hits at it, by isotonic regression.
    pub frequency: f64,
    /// Where that would be in 95 % of the cases if confidences were probabilities: the consistency band.
    #[serde(flatten)]
    pub band: Interval,
}

impl Reliability {
    pub(super) fn of(found: &Calibration, dates: u64) -> Self {
        let point = |band: BandPoint| {
            let level = found.levels.partition_point(|level| level.forecast < band.forecast);
            let frequency = found.levels[level].calibrated;
            ReliabilityPoint { confidence: band.forecast, frequency, band: band.interval }
        };
        let points = found.consistency_band().into_iter().map(point).collect();
        Self { dates, signals: found.observations, points }
    }
}

impl ConfidenceMeasure {
    pub(super) fn of(found: &Calibration, reliability: Reliability) -> Self {
        Self {
            signals: found.observations,
            brier: found.brier,
            miscalibration: found.miscalibration,
            discrimination: found.discrimination,
            uncertainty: found.uncertainty,
            deciles: found.deciles(),
            reliability,
        }
    }
}

/// The rank correlation of a date.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DateCorrelation {
    /// The date.
    pub day: Day,
    /// Its names.
    pub names: u64,
    /// The rank correlation; none if all numbers or all returns are equal.
    pub correlation: Option<f64>,
}

/// The returns of the signals of a date.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DateReturns {
    /// Their mean return.
    pub mean_return: f64,
    /// Buys.
    pub buys: Side,
    /// Sells.
    pub sells: Side,
    /// The most confident fifth, buys and sells.
    pub confident: Side,
    /// The mean return of the highest fifth of signed confidences less that of the lowest.
    pub spread: Option<f64>,
}

/// The rank correlation of a number with the return.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankMeasure {
    /// Dates with a rank correlation.
    pub dates: u64,
    /// Dates on which all numbers or all returns are equal.
    pub constant_dates: u64,
    /// Dates with too few names.
    pub thin_dates: u64,
    /// Names per date, on average.
    pub names: Option<f64>,
    /// The mean rank correlation with the return: of the signed confidence of a signal, or of a feature.
    pub correlation: Option<f64>,
    /// The share of dates with a correlation above zero.
    pub positive: Option<f64>,
    /// The number of dates in the window of a return, on average.
    pub horizon: u64,
    /// The whole windows that do not overlap, by the closes at which signals were entered.
    pub windows: u64,
    /// The test of the mean; none if it is refused.
    pub test: Option<MeanTest>,
    /// The same of every date whose window does not overlap with that of the one before; none if it is refused.
    pub disjoint: Option<MeanTest>,
    /// Why the test is refused.
    pub refusal: Option<Refusal>,
    /// The p-value after Holm, among all pairs and features of the state.
    pub p_holm: Option<f64>,
    /// The p-value after Benjamini and Hochberg, among all pairs and features of the state.
    pub p_benjamini_hochberg: Option<f64>,
    /// One horizon after the other, from the entry on; not of the difference.
    pub by_lag: Vec<LagMeasure>,
    /// By year of the date.
    pub by_year: Vec<YearMeasure>,
    /// By sector, if there are several.
    pub by_sector: Vec<SectorMeasure>,
    /// By date.
    #[serde(skip)]
    pub by_date: Vec<DateCorrelation>,
}

/// The measure of the signals of a pair in a state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measure {
    /// Which.
    pub state: State,
    /// The rank correlation of the signed confidence with the return.
    #[serde(flatten)]
    pub ranks: RankMeasure,
    /// Buys.
    pub buys: SideMeasure,
    /// Sells.
    pub sells: SideMeasure,
    /// The most confident fifth.
    pub confident: SideMeasure,
    /// Confidences as probabilities of a hit; none without signals, of the difference, or if one is not between 0 and 1.
    pub confidence: Option<ConfidenceMeasure>,
    /// The mean over dates of the spread between the highest and the lowest fifth.
    pub spread: Option<f64>,
    /// The share of signals that are the opposite of the one before.
    pub flips: Option<f64>,
    /// By the number of articles in each window of the definition; not of the difference.
    pub by_news: Vec<NewsMeasure>,
    /// The returns of each date; of the difference, their mean alone.
    #[serde(skip)]
    pub returns: Vec<DateReturns>,
}
