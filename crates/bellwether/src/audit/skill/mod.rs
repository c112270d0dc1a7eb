//! Whether signals predicted: as they were published, and as the history shows them today.
//!
//! Each pair of period and regime is measured by date, against the return over the horizon that its period states. A signal is
//! *published* if it was seen while its date was fresh, or by an answer that came soon after one that ended before its date;
//! it is entered at the first close after it was seen. Others were backfilled, and are entered some sessions after their date.
//! A signal is measured once its return is complete; those that cannot be are left out and counted, each for one reason.
//!
//! - [`State::Published`]: published signals, as first published.
//! - [`State::Today`]: every signal that is listed today, as it stands. Names that are no longer listed are not part of it.
//! - [`State::Difference`]: what is left of what was published, less all of it.
//!
//! If the dataset has news, each pair is also measured by the number of articles in each window, and the features of the news
//! are measured as signals are, at the signals of one pair of each period ([`FeatureSkill`]). What was published of the news is
//! what was known when a signal was entered.
//!
//! The answer begins with its [`verdict`](Skill::verdict). Statistics come from `bellwether_statistics`, which knows nothing of
//! signals. A test is refused where there are too few windows that do not overlap. All signals are held in memory,
//! twenty-four bytes each; the archive is read once, and measured a pair at a time.

mod answer;
mod cells;
mod checks;
mod frame;
mod hindsight;
mod measure;
mod news;
mod rows;
mod verdict;
#[cfg(any(test, feature = "harness"))]
pub mod worlds;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow::array::RecordBatch;
use bellwether_statistics::MeanTest;
use bellwether_statistics::multiple::{benjamini_hochberg, effective_number, expected_best, holm};
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::subject::{ObservedColumns, Subject};
use crate::archive::Histories;
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Period, Regime, Ticker};
use crate::plan::{DatasetPlan, DayCount};
use crate::prices::horizon::{DatedEntries, Exits};
use crate::prices::{Day, PriceSummary, Prices, date};
use crate::process::in_order::in_order;
use crate::sessions::number;
use crate::tables::{SeriesKey, Table};
use crate::text::human::{count_of, group_digits, percent};
use crate::time::as_record;

pub use answer::{
    ConfidenceMeasure, DateCorrelation, DateReturns, FeatureMeasure, FeatureSkill, Gone, Hindsight, LagMeasure,
    Measure, NewsMeasure, RankMeasure, Reliability, Rewritten, SectorMeasure, SeriesMeasure, Side, SideMeasure, State,
    YearMeasure,
};
pub use cells::SignalCounts;
pub(super) use rows::entries;
pub use rows::schema;

use cells::{AllCells, Intake};
use frame::{Betas, Measuring};
use hindsight::HindsightCounts;
use news::SignalNews;

/// What is measured, and how.
#[derive(Clone, Copy)]
pub(crate) struct SkillInput<'a> {
    /// The name of the dataset.
    pub(crate) dataset: &'a str,
    /// Its signals.
    pub(crate) subject: &'a Subject,
    /// Its plan, which has its dates, its trading days and the features of the news.
    pub(crate) plan: &'a DatasetPlan,
    /// The prices.
    pub(crate) prices: &'a Prices,
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
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub from: Option<DateTime<Utc>>,
    /// The prices.
    pub prices: PriceSummary,
    /// What looks wrong with the prices, a sentence each.
    pub warnings: Vec<String>,
    /// How long after its date a live signal was first seen at the latest.
    pub live_within: DayCount,
    /// The sessions from the date of a backfilled cell to its entry.
    pub lag_sessions: u32,
    /// The verdict, in a few sentences.
    pub verdict: Vec<String>,
    /// The share of signals that were seen when they were published.
    pub witnessed: Option<f64>,
    /// All signals.
    pub signals: SignalCounts,
    /// The day with the largest share of signals without a price; none if all have one.
    pub worst_day: Option<WorstDay>,
    /// The pairs with signals, in order.
    pub pairs: Vec<PairSkill>,
    /// The features of the news, in the order of their columns, by period; none if the dataset has no news.
    pub features: Vec<FeatureSkill>,
    /// The best pair of each state that has a test, beside what luck would show, and the best feature.
    pub best: Vec<Best>,
    /// The first day on which a published signal can be measured; none if some are, or if none waits.
    #[schemars(with = "Option<String>")]
    pub measured_from: Option<NaiveDate>,
    /// What is no longer listed.
    pub gone: Gone,
    /// The hindsight test over all pairs.
    pub hindsight: Hindsight,
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
    /// What is no longer listed.
    pub gone: Gone,
    /// The hindsight test.
    pub hindsight: Hindsight,
}

/// The best pair or feature of a state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Best {
    /// The state.
    pub state: State,
    /// The feature of the best one of all features; none of the best pair.
    pub feature: Option<String>,
    /// The period of the pair, or of the feature.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// Its mean correlation, as a normal number.
    pub z: f64,
    /// The pairs with a test, or the features.
    pub tested: u64,
    /// What the best of as many independent ones without skill is expected to show, whatever its sign.
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
pub(crate) fn skill(input: SkillInput<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Skill> {
    let SkillInput { dataset, subject, plan, prices, lag, when_missing, from } = input;
    let (exits, entries) = (&Exits::new(prices), &DatedEntries::new(prices.sessions(), lag));
    let (gone, delisted) = no_longer_listed(subject, prices)?;
    let cells_since = |from: Option<DateTime<Utc>>| {
        let intake = Intake { subject, prices, exits, entries, plan, lag, gone: &gone, from };
        let mut all = AllCells::new();
        let cells_of = |histories: &Histories, observed: &ObservedColumns<'_>| Ok(intake.cells(histories, observed));
        subject.each_piece(
            |view| view.observations(Table::Signals),
            cells_of,
            |cells| {
                all.add(cells);
                Ok(())
            },
        )?;
        Ok::<_, Error>(all)
    };
    let all = cells_since(None)?;
    let mut signals = SignalCounts::default();
    all.pairs.iter().for_each(|pair| signals += pair.counts);
    let newest = all.newest.map(|day| day.min(number(subject.view.as_of().date_naive())));
    let warnings = checks::check(prices, &plan.sessions, &all.tickers, newest)?;
    let worst_day = worst_day(&all, prices);
    if when_missing == WhenMissing::Refuse {
        refuse_unpriced(&all, &signals, worst_day, prices)?;
    }
    let measured_from = all.next_end.filter(|_| signals.measured_live == 0).map(date);
    let first_published = all.first_published().map(|day| prices.sessions()[0] + Day::from(day));
    let news = SignalNews::read(subject, plan, prices, (all.largest_pairs(), first_published))?;
    let names: BTreeSet<u16> = all.pairs.iter().flat_map(|pair| &pair.cells).map(|cell| cell.ticker).collect();
    let (betas, sectors) = (&Betas::new(prices, &names), &sectors(subject, prices));
    let measuring = Measuring { prices, exits, betas, sectors, delisted: &delisted, news: news.as_ref() };
    let (mut pairs, mut features, hindsight) = measure_pairs(measuring, all)?;
    let mut best = Vec::new();
    for state in State::ALL {
        let of_pairs = pairs.iter_mut().filter_map(|of: &mut PairSkill| {
            Judged::new(None, of.period, of.regime, &mut of.measures[state as usize].ranks)
        });
        best.extend(judge_together(state, of_pairs));
        let of_features = features.iter_mut().filter_map(|of: &mut FeatureSkill| {
            Judged::new(Some(&of.feature), of.period, of.regime, &mut of.measures[state as usize].ranks)
        });
        best.extend(judge_together(state, of_features));
    }
    if let Some(from) = from {
        // What was rewritten since that instant, of the same pairs.
        let (since, ..) = measure_pairs(Measuring { news: None, ..measuring }, cells_since(Some(from))?)?;
        pairs.iter_mut().zip(since).for_each(|(pair, since)| pair.rewritten = since.rewritten);
    }
    rows::write(&pairs, &features, deliver)?;
    let mut found = Skill {
        dataset: dataset.to_owned(),
        as_of: subject.view.as_of(),
        from,
        prices: prices.summary.clone(),
        warnings,
        live_within: plan.live_within,
        lag_sessions: lag,
        verdict: Vec::new(),
        witnessed: signals.witnessed_share(),
        signals,
        worst_day,
        gone: all_gone(&pairs),
        pairs,
        features,
        best,
        measured_from,
        hindsight,
    };
    found.verdict = found.verdict();
    Ok(found)
}

/// The series that are no longer listed, each with when that was seen, and the numbers among the prices of the names of which
/// nothing is.
fn no_longer_listed(subject: &Subject, prices: &Prices) -> Result<(HashMap<SeriesKey, i64>, HashSet<u16>)> {
    let watched = subject.scope().map(|scope| subject.view.watched_series(scope)).transpose()?.unwrap_or_default();
    let listed = watched.iter().filter(|(_, watch)| watch.is_listed);
    let listed: HashSet<&Ticker> = listed.map(|(key, _)| &key.ticker).collect();
    let numbers = prices.tickers().into_iter().zip(0_u16..);
    let told: HashSet<&Ticker> = watched.keys().map(|key| &key.ticker).collect();
    let is_gone = |ticker: &Ticker| told.contains(ticker) && !listed.contains(ticker);
    let delisted = numbers.filter(|(ticker, _)| is_gone(ticker)).map(|(_, number)| number).collect();
    // What goes on under another ticker is not gone.
    let by_id: HashMap<_, _> = subject.identity.ids().collect();
    let goes_on = |key: &SeriesKey| {
        let others = subject.identity.ids_of(&key.ticker).filter_map(|id| by_id.get(id)).flatten();
        let keys = others.map(|other| SeriesKey { ticker: Ticker::clone(other), ..key.clone() });
        keys.into_iter().any(|other| watched.get(&other).is_some_and(|watch| watch.is_listed))
    };
    let gone = watched.iter().filter(|(key, watch)| !watch.is_listed && !goes_on(key));
    Ok((gone.map(|(key, watch)| (key.clone(), watch.until)).collect(), delisted))
}

/// The names of the sectors, in order, and the index of the sector of each name with prices.
fn sectors(subject: &Subject, prices: &Prices) -> (Vec<String>, Vec<usize>) {
    let of_tickers: Vec<&str> = prices.tickers().into_iter().map(|ticker| subject.sector(ticker)).collect();
    let names: BTreeSet<&str> = of_tickers.iter().copied().collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let indices = of_tickers.iter().map(|sector| names.partition_point(|name| name.as_str() < *sector)).collect();
    (names, indices)
}

/// What is no longer listed of all pairs; names may be in several.
fn all_gone(pairs: &[PairSkill]) -> Gone {
    let signals: u64 = pairs.iter().map(|pair| pair.gone.signals).sum();
    let largest = pairs.iter().map(|pair| &pair.gone).max_by_key(|gone| gone.names);
    let weighted = |value: fn(&Gone) -> Option<f64>| {
        let sum: f64 = pairs.iter().filter_map(|pair| Some(pair.gone.signals as f64 * value(&pair.gone)?)).sum();
        (signals > 0).then(|| sum / signals as f64)
    };
    Gone {
        signals,
        names: largest.map_or(0, |gone| gone.names),
        names_delisted: pairs.iter().map(|pair| pair.gone.names_delisted).max().unwrap_or_default(),
        mean_return: weighted(|gone| gone.mean_return),
        excess: weighted(|gone| gone.excess),
        test: None,
    }
}

/// Measures each pair that has signals, in order, and tests the hindsight of all of them.
fn measure_pairs(measuring: Measuring<'_>, all: AllCells) -> Result<(Vec<PairSkill>, Vec<FeatureSkill>, Hindsight)> {
    let (mut measured, mut features, mut pooled) = (Vec::new(), Vec::new(), HindsightCounts::default());
    let pairs = Period::all().flat_map(|period| Regime::ALL.map(|regime| (period, regime)));
    in_order(
        || Ok(pairs.zip(all.pairs).filter(|(_, cells)| cells.counts.all > 0).map(Ok)),
        |(pair, cells)| Ok(measuring.measure(pair, cells)),
        |(pair, of_pair, hindsight)| {
            measured.push(pair);
            features.extend(of_pair);
            pooled.add_all(&hindsight);
            Ok(())
        },
    )?;
    // In the order of their columns.
    let names = measuring.news.map_or(&[][..], |news| &news.features);
    features.sort_by_key(|of: &FeatureSkill| names.iter().position(|name| *name == of.feature));
    Ok((measured, features, pooled.test()))
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
    if counts.without_price as f64 <= 0.2 * signals as f64 {
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

/// A measure that is judged, with its feature if it is of one, its pair, and its test.
struct Judged<'a> {
    feature: Option<String>,
    pair: (Period, Regime),
    ranks: &'a mut RankMeasure,
    test: MeanTest,
}

impl<'a> Judged<'a> {
    /// None without a test.
    fn new(feature: Option<&str>, period: Period, regime: Regime, ranks: &'a mut RankMeasure) -> Option<Self> {
        Some(Self { feature: feature.map(str::to_owned), pair: (period, regime), test: ranks.test?, ranks })
    }
}

/// Adjusts the p-values of a state for the number of pairs, or of features, and finds the best; none if none has a test.
fn judge_together<'a>(state: State, tested: impl Iterator<Item = Judged<'a>>) -> Option<Best> {
    let mut tested: Vec<Judged<'a>> = tested.collect();
    let z_values = tested.iter().map(|judged| judged.test.z()).enumerate();
    let (of_best, z) = z_values.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let effective = effective_number_of(&tested);
    let p_values: Vec<f64> = tested.iter().map(|judged| judged.test.p).collect();
    let adjusted = holm(&p_values).into_iter().zip(benjamini_hochberg(&p_values));
    for (judged, (of_holm, of_bh)) in tested.iter_mut().zip(adjusted) {
        (judged.ranks.p_holm, judged.ranks.p_benjamini_hochberg) = (Some(of_holm), Some(of_bh));
    }
    let count = tested.len();
    let Judged { feature, pair: (period, regime), .. } = tested.swap_remove(of_best);
    Some(Best {
        state,
        feature,
        period,
        regime,
        z,
        tested: count as u64,
        expected: expected_best(count as f64),
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
