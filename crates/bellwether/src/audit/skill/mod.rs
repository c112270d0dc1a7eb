//! Whether signals predicted: as they were published, and as the history shows them today.
//!
//! Each pair of period and regime is measured by date, against the return over the horizon that its period states. A
//! *live* cell was first seen while its date was fresh; only such cells tell what was published. A cell is measured
//! once its return is complete: it is entered at the first close after it was seen, or, where it was not watched, some
//! sessions after its date. Cells that cannot be measured are left out and counted, each for one reason.
//!
//! - [`State::Published`]: live cells, as first published.
//! - [`State::Today`]: every cell that is listed today, as it stands.
//! - [`State::Difference`]: both on the cells that both have, with the same returns.
//!
//! If the dataset has news, each pair is also measured by the number of articles in each window, and the features of the news
//! are measured as signals are, at the cells of one pair of each period ([`FeatureSkill`]). What was published of the news is
//! what was known when a cell was entered.
//!
//! Statistics come from `bellwether_statistics`, which knows nothing of signals. A test is refused where there are too
//! few windows that do not overlap. All cells are held in memory, sixteen bytes each; the archive is read once.

mod answer;
mod cells;
mod decay;
mod features;
mod hindsight;
mod horizon;
mod measures;
mod news;
mod observe;
mod prices;
mod ranked;
mod rewritten;
mod rows;
mod sectors;
mod series;
mod tally;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use bellwether_statistics::MeanTest;
use bellwether_statistics::multiple::{benjamini_hochberg, effective_number, expected_best, holm};
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::row_builder::RowQueue;
use super::subject::Subject;
use crate::archive::StoredObservations;
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Period, Regime};
use crate::plan::{DatasetPlan, DayCount, NaiveRule};
use crate::process::in_order::in_order;
use crate::sessions::Sessions;
use crate::tables::Table;
use crate::text::human::{count_of, group_digits, percent};
use crate::time::{as_record, to_record};

pub use answer::{
    ConfidenceMeasure, DateCorrelation, DateReturns, Measure, RankMeasure, Reliability, ReliabilityPoint, Side,
    SideMeasure, State,
};
pub use cells::SignalCounts;
pub use features::{FeatureMeasure, FeatureSkill};
pub use hindsight::Hindsight;
use prices::{Day, date};
pub use prices::{PriceFile, PriceRows, PriceSummary};
pub(crate) use prices::{PriceSource, Prices, find};
pub use rewritten::{MeanCorrelation, Rewritten};
pub use rows::schema;
pub use series::{LagMeasure, NewsMeasure, SectorMeasure, SeriesMeasure, YearMeasure};

use cells::{AllCells, Intake, PairCells};
use hindsight::HindsightCounts;
use horizon::{DatedEntries, Exits};
use measures::{MeasuredPair, Measuring};
use news::SignalNews;
use observe::Earlier;
use sectors::Sectors;

/// The share of signals without a price above which nothing is measured unless it is asked for.
const MOST_UNPRICED: f64 = 0.2;

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct SkillInput<'a> {
    /// The name of the dataset.
    pub(crate) dataset: &'a str,
    /// Its signals.
    pub(crate) subject: &'a Subject,
    /// Its plan, which has the features of the news.
    pub(crate) plan: &'a DatasetPlan,
    /// The prices.
    pub(crate) prices: &'a Prices,
}

/// How signals are measured.
#[derive(Clone, Debug)]
pub(crate) struct SkillRules {
    /// The rule that makes dates naive.
    pub(crate) dates: NaiveRule,
    /// How long after its date a live cell was first seen at the latest.
    pub(crate) live_within: DayCount,
    /// The trading days in which that is counted.
    pub(crate) sessions: Sessions,
    /// The sessions from the date of a backfilled cell to its entry.
    pub(crate) lag: u32,
    /// What to do if many signals have no price.
    pub(crate) when_missing: WhenMissing,
    /// The instant whose history the latest one is compared with; none for what was first published.
    pub(crate) from: Option<DateTime<Utc>>,
}

/// What to do if more than a fifth of the signals have no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// Refuse to measure the others.
    Refuse,
    /// Measure the others.
    Allow,
}

/// Whether signals predicted, as they were published and as they stand today.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Skill {
    /// The dataset.
    pub dataset: String,
    /// The instant of the history.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub as_of: DateTime<Utc>,
    /// The instant that `rewritten` compares with; none if it compares with what was first published.
    #[serde(serialize_with = "optional_record")]
    #[schemars(with = "Option<String>")]
    pub from: Option<DateTime<Utc>>,
    /// The prices.
    pub prices: PriceSummary,
    /// What looks wrong with the prices, a sentence each.
    pub warnings: Vec<String>,
    /// How long after its date a live cell was first seen at the latest.
    pub live_within: DayCount,
    /// The sessions from the date of a backfilled cell to its entry.
    pub lag_sessions: u32,
    /// The share of signals that were first seen while they were fresh.
    pub witnessed: Option<f64>,
    /// All signals.
    pub signals: SignalCounts,
    /// The day with the largest share of signals without a price; none if all have one.
    pub worst_day: Option<WorstDay>,
    /// The pairs with signals, in order.
    pub pairs: Vec<PairSkill>,
    /// The features of the news, in the order of their columns, by period; none if the dataset has no news.
    pub features: Vec<FeatureSkill>,
    /// The best pair or feature of each state that has a test, beside what luck would show.
    pub best: Vec<Best>,
    /// The hindsight test over all pairs.
    pub hindsight: Hindsight,
}

fn optional_record<S: Serializer>(
    instant: &Option<DateTime<Utc>>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    instant.map(to_record).serialize(serializer)
}

/// A day on which signals have no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorstDay {
    /// The day.
    #[schemars(with = "String")]
    pub day: NaiveDate,
    /// Its signals with a complete horizon.
    pub signals: u64,
    /// Those of them without a price.
    pub without_price: u64,
}

/// A pair of period and regime.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairSkill {
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// Its signals.
    pub signals: SignalCounts,
    /// As published, as it stands today, and the difference on the same signals.
    pub measures: [Measure; 3],
    /// What was rewritten.
    pub rewritten: Rewritten,
    /// The hindsight test.
    pub hindsight: Hindsight,
}

/// The best pair or feature of a state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Best {
    /// The state.
    pub state: State,
    /// The feature; none if it is the confidence of a pair.
    pub feature: Option<String>,
    /// The period of the pair, or of the feature.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// Its mean correlation, as a normal number.
    pub z: f64,
    /// The pairs and features with a test.
    pub tested: u64,
    /// What the best of as many independent ones without skill is expected to show.
    pub expected: f64,
    /// The effective number of them, since their correlations go together; none if two of them share too few dates.
    pub effective: Option<f64>,
    /// What the best of that many without skill is expected to show.
    pub expected_of_effective: Option<f64>,
}

impl Best {
    /// Its name, as it is shown.
    pub fn name(&self) -> String {
        match &self.feature {
            Some(feature) => format!("{feature} {}", self.period),
            None => format!("{} {}", self.period, self.regime),
        }
    }
}

/// Measures signals, and delivers a row for each date, pair and state, and for each group of them, in the columns of
/// [`schema`].
pub(crate) fn skill(
    input: SkillInput<'_>,
    rules: &SkillRules,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Skill> {
    let SkillInput { dataset, subject, plan, prices } = input;
    let (exits, sectors) = (&Exits::of(prices), &Sectors::of(subject, prices));
    let entries = &DatedEntries::of(prices.sessions(), rules.lag);
    let cells_since = |earlier: Earlier| {
        let intake = Intake { subject, prices, exits, entries, rules, earlier };
        let mut all = AllCells::new();
        let cells_of = |piece: StoredObservations| Ok(intake.cells(&piece.histories()?));
        let add = |cells| {
            all.add(cells);
            Ok(())
        };
        in_order(|| subject.view().observations(Table::Signals), cells_of, add)?;
        Ok::<_, Error>(all)
    };
    let all = cells_since(Earlier::FirstPublished)?;
    let mut signals = SignalCounts::default();
    all.pairs.iter().for_each(|pair| signals += pair.counts);
    let newest = all.newest.map(|day| day.min(prices::number(subject.view().as_of().date_naive())));
    let warnings = prices::check(prices, &rules.sessions, &all.tickers, newest)?;
    let worst_day = worst_day(&all, prices);
    if rules.when_missing == WhenMissing::Refuse {
        refuse_unpriced(&all, &signals, worst_day, prices)?;
    }
    let first_live = all.first_live().map(|day| prices.sessions()[0] + Day::from(day));
    let news = SignalNews::of(subject, plan, prices, (all.largest_pairs(), first_live))?;
    let measuring = Measuring { prices, exits, sectors, news: news.as_ref() };
    let Measured { mut pairs, mut features, hindsight } = measure_pairs(measuring, all)?;
    let best = State::ALL.into_iter().filter_map(|state| judge_together(&mut pairs, &mut features, state)).collect();
    if let Some(from) = rules.from {
        let all = cells_since(Earlier::KnownAt(from.timestamp_micros()))?;
        compare_vintages(Measuring { news: None, ..measuring }, all, &mut pairs)?;
    }
    let mut queue = RowQueue::default();
    for pair in &pairs {
        queue.add(rows::of_pair(pair)?, &mut deliver)?;
    }
    for feature in &features {
        queue.add(rows::of_feature(feature)?, &mut deliver)?;
    }
    queue.flush(deliver)?;
    Ok(Skill {
        dataset: dataset.to_owned(),
        as_of: subject.view().as_of(),
        from: rules.from,
        prices: prices.summary.clone(),
        warnings,
        live_within: rules.live_within,
        lag_sessions: rules.lag,
        witnessed: signals.witnessed_share(),
        signals,
        worst_day,
        pairs,
        features,
        best,
        hindsight,
    })
}

/// The pairs that have cells, in order.
fn with_cells(all: AllCells) -> impl Iterator<Item = Result<((Period, Regime), PairCells)>> + Send {
    let pairs = Period::all().flat_map(|period| Regime::ALL.map(|regime| (period, regime)));
    pairs.zip(all.pairs).filter(|(_, pair)| pair.counts.all > 0).map(Ok)
}

/// The measures of all pairs.
struct Measured {
    pairs: Vec<PairSkill>,
    features: Vec<FeatureSkill>,
    hindsight: Hindsight,
}

/// Measures each pair, and tests the hindsight of all of them.
fn measure_pairs(measuring: Measuring<'_>, all: AllCells) -> Result<Measured> {
    let (mut measured, mut pooled) = (Vec::new(), HindsightCounts::default());
    let names = measuring.news.map_or(&[][..], |news| &news.features);
    let mut features = vec![Vec::new(); names.len()];
    let mut longest = 1;
    in_order(
        move || Ok(with_cells(all)),
        |(pair, cells)| {
            let counts = cells.counts;
            Ok((pair, counts, measuring.measure(pair, cells)))
        },
        |((period, regime), signals, pair)| {
            let MeasuredPair { measures, rewritten, hindsight, features: of_pair } = pair;
            pooled.add_all(&hindsight);
            let days = days_of(period);
            longest = longest.max(days);
            let hindsight = hindsight.test(days);
            measured.push(PairSkill { period, regime, signals, measures, rewritten, hindsight });
            for ((of_name, feature), measures) in features.iter_mut().zip(names).zip(of_pair) {
                of_name.push(FeatureSkill { feature: feature.clone(), period, regime, measures });
            }
            Ok(())
        },
    )?;
    let hindsight = pooled.test(longest);
    Ok(Measured { pairs: measured, features: features.into_iter().flatten().collect(), hindsight })
}

/// Replaces what was rewritten since it was published by what was rewritten since an instant.
fn compare_vintages(measuring: Measuring<'_>, all: AllCells, pairs: &mut [PairSkill]) -> Result<()> {
    let mut pairs = pairs.iter_mut();
    in_order(
        move || Ok(with_cells(all)),
        |(pair, cells)| Ok(measuring.measure(pair, cells).rewritten),
        |rewritten| {
            // Both have the same cells.
            if let Some(pair) = pairs.next() {
                pair.rewritten = rewritten;
            }
            Ok(())
        },
    )
}

/// The calendar days of a period, at least.
fn days_of(period: Period) -> u64 {
    let (count, unit) = period.as_str().split_at(period.as_str().len() - 1);
    let count: u64 = count.parse().unwrap_or(1);
    // Five sessions are a week.
    if unit == "m" { count * 31 } else { count.div_ceil(5) * 2 + count }
}

fn worst_day(all: &AllCells, prices: &Prices) -> Option<WorstDay> {
    let days = all.by_day.iter().enumerate().filter(|(_, counts)| counts[1] > 0);
    let share = |counts: &[u32; 2]| f64::from(counts[1]) / f64::from(counts[0]);
    let (day, counts) = days.max_by(|(_, one), (_, other)| share(one).total_cmp(&share(other)))?;
    let day = date(prices.sessions()[0] + day as Day);
    Some(WorstDay { day, signals: counts[0].into(), without_price: counts[1].into() })
}

fn refuse_unpriced(all: &AllCells, counts: &SignalCounts, worst: Option<WorstDay>, prices: &Prices) -> Result<()> {
    let signals = counts.measured + counts.without_price;
    if counts.without_price as f64 <= MOST_UNPRICED * signals as f64 {
        return Ok(());
    }
    let of_day = |worst: WorstDay| format!("{} with {} of {}", worst.day, worst.without_price, worst.signals);
    let worst = worst.map_or_else(String::new, of_day);
    let unknown = all.tickers.iter().filter(|ticker| !prices.know(ticker)).take(5);
    let mut examples: Vec<String> = unknown.map(|ticker| format!("`{ticker}`")).collect();
    if examples.is_empty() {
        examples.push("tickers with holes".to_owned());
    }
    let what = format!(
        "{} of {} have no price: {}, more than a fifth",
        group_digits(counts.without_price),
        count_of(signals, "signal", "signals"),
        percent(counts.without_price as f64 / signals as f64)
    );
    Err(Error::new(ErrorKind::Data, what).with_hint(format!(
        "the worst day is {worst}; without prices are {}; add their prices, or measure the others with `--allow-missing`",
        examples.join(", ")
    )))
}

/// A measure that is judged, with its pair, and its feature if it is of one.
struct Judged<'a> {
    pair: (Period, Regime),
    feature: Option<&'a str>,
    ranks: &'a mut RankMeasure,
}

/// Adjusts the p-values of a state for the number of pairs and features, and finds the best; none if none has a test.
fn judge_together(pairs: &mut [PairSkill], features: &mut [FeatureSkill], state: State) -> Option<Best> {
    let index = State::ALL.iter().position(|other| *other == state)?;
    let pairs = pairs.iter_mut().map(|of| {
        let ranks = &mut of.measures[index].ranks;
        Judged { pair: (of.period, of.regime), feature: None, ranks }
    });
    let features = features.iter_mut().map(|of| {
        let ranks = &mut of.measures[index].ranks;
        Judged { pair: (of.period, of.regime), feature: Some(&of.feature), ranks }
    });
    let mut tested: Vec<Judged<'_>> = pairs.chain(features).filter(|judged| judged.ranks.test.is_some()).collect();
    let tests: Vec<MeanTest> = tested.iter().filter_map(|judged| judged.ranks.test).collect();
    let z_values = tests.iter().map(MeanTest::z).enumerate();
    let (of_best, z) = z_values.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let effective = effective_number_of(&tested);
    let p_values: Vec<f64> = tests.iter().map(|test| test.p).collect();
    let adjusted = holm(&p_values).into_iter().zip(benjamini_hochberg(&p_values));
    for (judged, (of_holm, of_bh)) in tested.iter_mut().zip(adjusted) {
        (judged.ranks.p_holm, judged.ranks.p_benjamini_hochberg) = (Some(of_holm), Some(of_bh));
    }
    let (feature, (period, regime)) = (tested[of_best].feature.map(str::to_owned), tested[of_best].pair);
    Some(Best {
        state,
        feature,
        period,
        regime,
        z,
        tested: tested.len() as u64,
        expected: expected_best(tested.len() as f64),
        effective,
        expected_of_effective: effective.map(expected_best),
    })
}

fn effective_number_of(tested: &[Judged<'_>]) -> Option<f64> {
    let days: BTreeSet<Day> = tested.iter().flat_map(|judged| &judged.ranks.by_date).map(|date| date.day).collect();
    let series = |judged: &Judged<'_>| -> Vec<Option<f64>> {
        let by_date = judged.ranks.by_date.iter();
        let known: BTreeMap<Day, f64> = by_date.filter_map(|date| Some((date.day, date.correlation?))).collect();
        days.iter().map(|day| known.get(day).copied()).collect()
    };
    let series: Vec<Vec<Option<f64>>> = tested.iter().map(series).collect();
    effective_number(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
