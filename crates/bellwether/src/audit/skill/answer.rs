//! What is measured of a pair, by date and over all dates.

use bellwether_statistics::calibration::{BandPoint, Bin};
use bellwether_statistics::{MeanTest, Refusal};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use crate::interface::{Period, Regime};
use crate::plan::Days;
use crate::prices::Day;

/// The state of a history that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Signals that were seen when they were published, as first published.
    #[default]
    Published,
    /// All signals that are listed today, as they stand.
    Today,
    /// What is left today of all that was published, less all of it as it was published.
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
    /// Those after which the return went their way, relative to the median of the date.
    pub hits: u64,
    /// Those whose return is the median of the date, which went neither way.
    pub even: u64,
    /// The hits that luck would make: the share of all names of the date that went this way. That is half of them, unless
    /// several returns are the median.
    pub luck: f64,
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
    /// The share of hits among those that went either way.
    pub hit_rate: Option<f64>,
    /// The test of the share of hits against luck, whose mean is that share less what luck would make: by date, since the
    /// signals of a date share its return; none if it is refused.
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
    pub points: Vec<BandPoint>,
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
    /// The mean return of each fifth by score, relative to the mean of the date, from the lowest.
    pub fifths: [Option<f64>; 5],
    /// The mean return of the highest fifth with names less that of the lowest.
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
    /// The p-value after Holm, among all pairs of the state, or among all features.
    pub p_holm: Option<f64>,
    /// The p-value after Benjamini and Hochberg, among all pairs of the state, or among all features.
    pub p_benjamini_hochberg: Option<f64>,
    /// One horizon after the other, from the entry on; not of the difference.
    pub by_lag: Vec<LagMeasure>,
    /// By year of the date.
    pub by_year: Vec<YearMeasure>,
    /// By sector, if there are several; not of the difference.
    pub by_sector: Vec<SectorMeasure>,
    /// Score and return less their means in the sector: what is left without a bet on sectors; none with a single sector, or of
    /// the difference.
    pub within_sectors: Option<SeriesMeasure>,
    /// The partial correlation given the beta of each name, of its returns over half a year before the entry on the mean of all
    /// that are measured: what is left without a bet on the market; none of the difference.
    pub given_beta: Option<SeriesMeasure>,
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
    /// The mean return of each fifth by score, relative to the mean of the date, from the lowest.
    pub fifths: [Option<f64>; 5],
    /// The mean over dates of the spread between the highest and the lowest fifth.
    pub spread: Option<f64>,
    /// The share of the highest fifth that was not in it one horizon before.
    pub turnover: Option<f64>,
    /// The cost of a trade, one way, as a share of what is traded, at which the highest fifth earns as much as the mean of its
    /// dates; negative if it earns less without costs.
    pub break_even: Option<f64>,
    /// The share of signals that are the opposite of the one before.
    pub flips: Option<f64>,
    /// By the number of articles in each window of the definition; not of the difference.
    pub by_news: Vec<NewsMeasure>,
    /// The returns of each date; of the difference, their mean alone.
    #[serde(skip)]
    pub returns: Vec<DateReturns>,
}

/// The mean rank correlation of some dates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesMeasure {
    /// Dates with a rank correlation.
    pub dates: u64,
    /// Names per date, on average.
    pub names: Option<f64>,
    /// The mean rank correlation.
    pub correlation: Option<f64>,
    /// The number of dates in the window of a return, on average.
    pub horizon: u64,
    /// The whole windows that do not overlap, by the closes at which signals were entered.
    pub windows: u64,
    /// The test of the mean; none if it is refused.
    pub test: Option<MeanTest>,
}

/// The correlation with a return that begins some horizons after the entry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LagMeasure {
    /// The horizons between the entry and the beginning of the return: the windows of successive lags do not overlap.
    pub lag: u64,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// The correlation of the dates of a year.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct YearMeasure {
    /// The year.
    pub year: i32,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// The correlation among the names of a sector.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SectorMeasure {
    /// The sector; `-` if no history of a sector lists them.
    pub sector: String,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// The correlation among the names with as many articles in a window, as far as was known when they were entered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NewsMeasure {
    /// The window, as in the name of its columns.
    #[schemars(with = "String")]
    pub window: Days,
    /// The number of articles: `0`, `1-2`, `3-9`, `10+`, or `unknown`.
    pub articles: &'static str,
    /// The measure.
    #[serde(flatten)]
    pub measure: SeriesMeasure,
}

/// A feature of the news at the horizon of a period. Features of the news are measured as signals are: at the signals of a
/// pair, with their returns.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FeatureSkill {
    /// Its column in the dataset.
    pub feature: String,
    /// The period.
    pub period: Period,
    /// The regime at whose signals it is measured: of the period, the one with the most. Others have the same news.
    pub regime: Regime,
    /// As published, as it stands today, and the difference on the signals that have both.
    pub measures: [FeatureMeasure; 3],
}

/// The measure of a feature in a state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FeatureMeasure {
    /// Which.
    pub state: State,
    /// The rank correlation of the feature with the return.
    #[serde(flatten)]
    pub ranks: RankMeasure,
    /// What the feature adds to the signal: its partial rank correlation with the return, given the signed confidence of the
    /// same signals; none of the difference.
    pub partial: Option<SeriesMeasure>,
}

/// Rewritten signals, and the mean correlation with each kind of change applied alone: the table of "Rewriting History".
///
/// The base are the signals as first seen, without those that were added late. Each kind of change is then applied alone:
/// altered ones take their latest value, removed ones go, added ones come. All three together are today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rewritten {
    /// Signals with the value that they were first seen with.
    pub matched: u64,
    /// Signals with another value.
    pub altered: u64,
    /// Those of them with another direction.
    pub turned: u64,
    /// Signals that are no longer listed.
    pub removed: u64,
    /// Signals that were added after earlier answers had covered their date without them.
    pub added: u64,
    /// The correlation as first seen, without what was added late.
    pub base: Option<f64>,
    /// With the latest values of altered signals.
    pub with_altered: Option<f64>,
    /// Without removed signals.
    pub without_removed: Option<f64>,
    /// With added signals.
    pub with_added: Option<f64>,
    /// With all of it.
    pub today: Option<f64>,
}

/// Measured signals that were listed once, and are not today.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Gone {
    /// The signals.
    pub signals: u64,
    /// The names that have them, of which the history may still have others.
    pub names: u64,
    /// Those of which nothing is listed any more.
    pub names_delisted: u64,
    /// The mean return of the signals.
    pub mean_return: Option<f64>,
    /// The mean of their returns relative to the mean of all that was listed on the date.
    pub excess: Option<f64>,
    /// The test of the sum of these by date; none if it is refused.
    pub test: Option<MeanTest>,
}

/// The hindsight test: whether what was rewritten agrees with returns that were already known.
///
/// A rewrite counts if a close of the return was known before it was seen. It speaks for a buy or for a sell: a signal that is
/// turned for its new direction, one that is withdrawn or weakened against its old one, one that is strengthened for it. It
/// agrees if that part of the return went this way, relative to the median of the date. A correction that knows nothing agrees
/// as often as it would at any signal of its date with the same direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Hindsight {
    /// Rewrites whose part of the return is not the median of the date.
    pub rewrites: u64,
    /// Those of them that turned the direction.
    pub turned: u64,
    /// Those that lowered the confidence.
    pub weakened: u64,
    /// Those that raised it.
    pub strengthened: u64,
    /// Those that took the signal back.
    pub withdrawn: u64,
    /// Those that listed it again.
    pub restored: u64,
    /// Those that came before the horizon was over.
    pub within: u64,
    /// Those that agree with the return.
    pub agree: u64,
    /// The share of them.
    pub share: Option<f64>,
    /// The share that would agree if the same rewrites were made at any signals of the date with the same direction.
    pub luck: Option<f64>,
    /// Rewrites whose part of the return is the median of the date, which say nothing.
    pub even: u64,
    /// The test of those that agree less those that would by luck, by date; none if it is refused.
    pub test: Option<MeanTest>,
    /// The first day on which one of them was seen.
    #[schemars(with = "Option<String>")]
    pub since: Option<NaiveDate>,
    /// Published signals dated from then on.
    pub live_after: u64,
    /// Those of them that the return agrees with.
    pub live_after_hits: u64,
    /// The share of them.
    pub live_after_share: Option<f64>,
}

impl Hindsight {
    /// The shares that its test does not rule out: its net votes by date, for each vote.
    pub(crate) fn interval(&self) -> Option<[f64; 2]> {
        let (test, luck) = (self.test.as_ref()?, self.luck?);
        let votes_of_date = self.rewrites as f64 / test.observations as f64;
        Some([test.interval.lower, test.interval.upper].map(|net| luck + net / votes_of_date))
    }

    /// Whether rewrites agree with what was known more often than luck would have it.
    pub fn is_told(&self) -> bool {
        self.test.is_some_and(|test| test.p <= 0.05 && test.mean > 0.0)
    }
}
