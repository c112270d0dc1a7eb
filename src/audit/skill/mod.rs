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
//! Statistics come from `bellwether_statistics`, which knows nothing of signals. A test is refused where there are too
//! few windows that do not overlap. All cells are held in memory, sixteen bytes each; the archive is read once.

mod answer;
mod cells;
mod error;
mod hindsight;
mod horizon;
mod measures;
mod prices;
mod rewritten;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use bellwether_statistics::multiple::{benjamini_hochberg, effective_number, expected_best, holm};
use chrono::{DateTime, NaiveDate, Utc};

use super::row_builder::RowQueue;
use super::subject::Subject;
use crate::archive::StoredObservations;
use crate::error::Result;
use crate::in_order::in_order;
use crate::interface::{Period, Regime};
use crate::plan::{MaxAge, NaiveRule};
use crate::tables::Table;

pub use answer::{ConfidenceMeasure, DateMeasure, Measure, Side, SideMeasure, State};
pub use cells::{CellCounts, Flips};
pub use hindsight::Hindsight;
pub use prices::PriceSummary;
pub(crate) use prices::{PriceSource, Prices, find};
pub use rewritten::{Kinds, MeanCorrelation};
pub use rows::schema;

use cells::{AllCells, Intake};
use error::SkillError;
use hindsight::HindsightCounts;
use horizon::Exits;
use measures::{MeasuredPair, Measuring};

/// The share of signals without a price above which nothing is measured unless it is asked for.
const MOST_UNPRICED: f64 = 0.2;

/// How signals are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkillRules {
    /// The rule that makes dates naive.
    pub(crate) dates: NaiveRule,
    /// How long after its date a live cell was first seen at the latest.
    pub(crate) live_within: MaxAge,
    /// The sessions from the date of a backfilled cell to its entry.
    pub(crate) lag: u32,
    /// What to do if many signals have no price.
    pub(crate) when_missing: WhenMissing,
}

/// What to do if more than a fifth of the signals have no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// Refuse to measure the others.
    Refuse,
    /// Measure the others.
    Allow,
}

/// Whether signals predicted.
#[derive(Clone, Debug)]
pub struct Skill {
    /// The instant of the history.
    pub as_of: DateTime<Utc>,
    /// The prices.
    pub prices: PriceSummary,
    /// How long after its date a live cell was first seen at the latest.
    pub live_within: MaxAge,
    /// The sessions from the date of a backfilled cell to its entry.
    pub lag: u32,
    /// All cells.
    pub cells: CellCounts,
    /// The day with the largest share of signals without a price, with how many there are and lack one.
    pub worst: Option<(NaiveDate, u64, u64)>,
    /// The pairs with cells, in order.
    pub pairs: Vec<PairSkill>,
    /// Each state's best pair, beside what the best of as many pairs without skill would show.
    pub best: Vec<Best>,
    /// The hindsight test over all pairs.
    pub hindsight: Hindsight,
}

/// A pair of period and regime.
#[derive(Clone, Debug)]
pub struct PairSkill {
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
    /// Its cells.
    pub cells: CellCounts,
    /// The measures, in the order of [`State::ALL`].
    pub measures: [Measure; 3],
    /// What was rewritten.
    pub kinds: Kinds,
    /// The hindsight test.
    pub hindsight: Hindsight,
}

/// The best pair of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The state.
    pub state: State,
    /// The period and regime of the pair.
    pub pair: (Period, Regime),
    /// Its mean correlation, as a normal number.
    pub z: f64,
    /// The pairs with a test.
    pub tested: u64,
    /// What the best of as many independent pairs without skill is expected to show.
    pub expected: f64,
    /// The effective number of pairs, since their correlations go together; none if two of them share too few dates.
    pub effective: Option<f64>,
    /// What the best of that many without skill is expected to show.
    pub expected_of_effective: Option<f64>,
}

/// Measures the signals of a subject, and delivers a row for each date, pair and state in the columns of [`schema`].
pub(crate) fn skill(
    subject: &Subject,
    prices: &Prices,
    rules: SkillRules,
    mut deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Skill> {
    let SkillRules { dates: rule, live_within, lag, when_missing } = rules;
    let exits = &Exits::of(prices);
    let intake = Intake { subject, prices, exits, rule, live_within, lag };
    let mut all = AllCells::new();
    let cells_of = |piece: StoredObservations| Ok(intake.cells(&piece.histories()?));
    in_order(
        || subject.view().observations(Table::Signals),
        cells_of,
        |cells| {
            all.add(cells);
            Ok(())
        },
    )?;
    let cells = all.pairs.iter().fold(CellCounts::default(), |mut sum, pair| {
        sum += pair.counts;
        sum
    });
    let worst = worst_day(&all, prices);
    if when_missing == WhenMissing::Refuse {
        refuse_unpriced(&all, &cells, worst)?;
    }
    let pairs = Period::all().flat_map(|period| Regime::ALL.map(|regime| (period, regime)));
    let with_cells = pairs.zip(all.pairs).filter(|(_, pair)| pair.counts.cells > 0).map(Ok);
    let measuring = Measuring { prices, exits, lag };
    let (mut measured, mut pooled) = (Vec::new(), HindsightCounts::default());
    let mut longest = (1, 1);
    in_order(
        move || Ok(with_cells),
        |(pair, cells)| {
            let counts = cells.counts;
            Ok((pair, counts, measuring.measure(pair, cells)))
        },
        |((period, regime), cells, pair)| {
            let MeasuredPair { measures, kinds, hindsight } = pair;
            pooled.add_all(&hindsight);
            let days = days_of(period);
            let overlap = measures.iter().map(|measure| measure.horizon).max().unwrap_or(1);
            longest = (longest.0.max(days), longest.1.max(overlap));
            let hindsight = hindsight.test(days, overlap);
            measured.push(PairSkill { period, regime, cells, measures, kinds, hindsight });
            Ok(())
        },
    )?;
    let best = State::ALL.into_iter().filter_map(|state| judge_together(&mut measured, state)).collect();
    let mut queue = RowQueue::default();
    for pair in &measured {
        queue.add(rows::of_pair(pair)?, &mut deliver)?;
    }
    queue.flush(deliver)?;
    let hindsight = pooled.test(longest.0, longest.1);
    let (as_of, prices) = (subject.view().as_of(), prices.summary.clone());
    Ok(Skill { as_of, prices, live_within, lag, cells, worst, pairs: measured, best, hindsight })
}

/// The calendar days of a period, at least.
fn days_of(period: Period) -> u64 {
    let (count, unit) = period.as_str().split_at(period.as_str().len() - 1);
    let count: u64 = count.parse().unwrap_or(1);
    // Five sessions are a week.
    if unit == "m" { count * 31 } else { count.div_ceil(5) * 2 + count }
}

fn worst_day(all: &AllCells, prices: &Prices) -> Option<(NaiveDate, u64, u64)> {
    let days = all.by_day.iter().enumerate().filter(|(_, counts)| counts[1] > 0);
    let share = |counts: &[u32; 2]| f64::from(counts[1]) / f64::from(counts[0]);
    let (day, counts) = days.max_by(|(_, one), (_, other)| share(one).total_cmp(&share(other)))?;
    let day = prices::date(prices.sessions()[0] + day as prices::Day);
    Some((day, u64::from(counts[0]), u64::from(counts[1])))
}

fn refuse_unpriced(all: &AllCells, cells: &CellCounts, worst: Option<(NaiveDate, u64, u64)>) -> Result<()> {
    let signals = cells.used + cells.unpriced;
    if cells.unpriced as f64 <= MOST_UNPRICED * signals as f64 {
        return Ok(());
    }
    let worst = worst.map_or_else(String::new, |(day, all, missing)| format!("{day} with {missing} of {all}"));
    let mut examples: Vec<String> = all.unknown.iter().map(|ticker| format!("`{ticker}`")).collect();
    if examples.is_empty() {
        examples.push("tickers with holes".to_owned());
    }
    Err(SkillError::Unpriced { missing: cells.unpriced, signals, worst, examples }.into())
}

/// Adjusts the p-values of a state for the number of pairs, and finds the best pair; none if no pair has a test.
fn judge_together(pairs: &mut [PairSkill], state: State) -> Option<Best> {
    let place = State::ALL.iter().position(|other| *other == state)?;
    let tested: Vec<usize> = (0..pairs.len()).filter(|pair| pairs[*pair].measures[place].test.is_ok()).collect();
    let test = |pair: usize| pairs[pair].measures[place].test.as_ref().ok();
    let p_values: Vec<f64> = tested.iter().filter_map(|pair| test(*pair)).map(|test| test.p).collect();
    let z_values = tested.iter().filter_map(|pair| Some((*pair, test(*pair)?.z())));
    let (of_best, z) = z_values.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let effective = effective_number_of(pairs, &tested, place);
    let adjusted = holm(&p_values).into_iter().zip(benjamini_hochberg(&p_values));
    for (pair, (of_holm, of_bh)) in tested.iter().zip(adjusted) {
        let measure = &mut pairs[*pair].measures[place];
        (measure.p_holm, measure.p_benjamini_hochberg) = (Some(of_holm), Some(of_bh));
    }
    Some(Best {
        state,
        pair: (pairs[of_best].period, pairs[of_best].regime),
        z,
        tested: tested.len() as u64,
        expected: expected_best(tested.len() as f64),
        effective,
        expected_of_effective: effective.map(expected_best),
    })
}

fn effective_number_of(pairs: &[PairSkill], tested: &[usize], place: usize) -> Option<f64> {
    let by_date = |pair: &usize| &pairs[*pair].measures[place].by_date;
    let days: BTreeSet<prices::Day> = tested.iter().flat_map(by_date).map(|date| date.day).collect();
    let series = |pair: &usize| -> Vec<Option<f64>> {
        let known: BTreeMap<prices::Day, f64> =
            by_date(pair).iter().filter_map(|date| Some((date.day, date.correlation?))).collect();
        days.iter().map(|day| known.get(day).copied()).collect()
    };
    let series: Vec<Vec<Option<f64>>> = tested.iter().map(series).collect();
    effective_number(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
