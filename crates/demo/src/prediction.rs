//! Signals: the predictions of the universe for a ticker, period, regime and day.
//!
//! A prediction leans to one side. The lean is the sum of three smooth or small movements, so that signals come in runs
//! and confidence drifts: the mood of the company, shared by its series and its news; the series' own wave, slower for
//! longer periods; and a little daily noise. A bull regime leans to buying, a bear regime to selling. Any cell takes
//! only a handful of draws.

use bellwether_interface::{Endpoint, Period, Regime, Signal};
use chrono::{Datelike, NaiveDate};

use crate::companies::Company;
use crate::draw::{Draw, Mood, purpose};
use crate::revision::Revision;

const SERIES: u64 = purpose("series");
const LEGACY: u64 = purpose("legacy");
const CELL: u64 = purpose("cell");
const SHIFT: u64 = purpose("shift");
const TURN: u64 = purpose("turn");

/// A signal and its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prediction {
    signal: Signal,
    /// From 5,000 to 10,000; an integer, so that comparisons are exact.
    basis_points: u16,
}

/// A model of the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The current one.
    Current,
    /// The one behind the legacy operations. It is no longer trained, so its past is never revised.
    Legacy,
}

/// The model, period and regime of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The model.
    pub model: Model,
    /// The period.
    pub period: Period,
    /// The regime.
    pub regime: Regime,
}

/// The daily predictions of one ticker in one outlook.
#[derive(Clone, Copy, Debug)]
pub struct PredictionSeries {
    /// The outlook.
    pub outlook: Outlook,
    mood: Mood,
    wave: Draw,
    wave_days: i32,
    cells: Draw,
    bias: f64,
}

impl Model {
    /// The model behind an operation.
    pub fn behind(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::LegacyHistoryAll
            | Endpoint::LegacyHistoryBatched
            | Endpoint::LegacyHistory
            | Endpoint::LegacySignals => Self::Legacy,
            _ => Self::Current,
        }
    }
}

impl Prediction {
    /// Buy or sell.
    pub fn signal(self) -> Signal {
        self.signal
    }

    /// From 0.5 to 1, with four decimals.
    pub fn confidence(self) -> f64 {
        f64::from(self.basis_points) / 10_000.0
    }

    fn from_lean(lean: f64) -> Self {
        /// The lean at which confidence is complete.
        const FULL: f64 = 1.8;
        let share = (lean.abs() / FULL).min(1.0);
        let signal = if lean < 0.0 { Signal::Sell } else { Signal::Buy };
        // A share of 0 to 1 gives 5,000 to 10,000.
        Self { signal, basis_points: 5_000 + (5_000.0 * share).round() as u16 }
    }

    /// A different value: confidence moves towards the middle, and one signal in four flips.
    fn revise(self, draw: Draw) -> Self {
        // At most 1,500, so it stays within bounds.
        let shift = 1 + draw.at(SHIFT).below(1_500) as u16;
        let basis_points =
            if self.basis_points > 7_500 { self.basis_points - shift } else { self.basis_points + shift };
        let signal = match self.signal {
            kept if !draw.at(TURN).is_one_in(4) => kept,
            Signal::Buy => Signal::Sell,
            Signal::Sell => Signal::Buy,
        };
        Self { signal, basis_points }
    }
}

impl PredictionSeries {
    pub(crate) fn new(seed: Draw, company: &Company, outlook: Outlook) -> Self {
        let Outlook { model, period, regime } = outlook;
        let mood = Mood::of(seed, company.ticker.as_str());
        let origin = match model {
            Model::Current => seed.at(SERIES),
            Model::Legacy => seed.at(LEGACY),
        };
        let wave = origin.of(company.ticker.as_str()).of(period.as_str()).of(regime.as_str());
        let bias = match regime {
            Regime::Bear => -0.4,
            Regime::Bull => 0.4,
            Regime::Neutral => 0.05,
        };
        // At most 7 + 35.
        let wave_days = 7 + period.index() as i32;
        Self { outlook, mood, wave, wave_days, cells: wave.at(CELL), bias }
    }

    /// The revision of the cell of a date, if it has one.
    pub(crate) fn revision(&self, date: NaiveDate) -> Option<Revision> {
        match self.outlook.model {
            Model::Current => Revision::of(self.cell(date), date),
            Model::Legacy => None,
        }
    }

    /// The prediction for a date, as published on `today`.
    pub fn get(&self, date: NaiveDate, today: NaiveDate) -> Prediction {
        let first = self.first(date);
        match self.revision(date) {
            Some(revision) if revision.shows(today) => first.revise(revision.draw),
            _ => first,
        }
    }

    fn first(&self, date: NaiveDate) -> Prediction {
        let own = self.wave.wave(date.num_days_from_ce(), self.wave_days);
        let noise = self.cell(date).signed_fraction();
        Prediction::from_lean(self.bias + 0.6 * self.mood.on(date) + 0.9 * own + 0.12 * noise)
    }

    fn cell(&self, date: NaiveDate) -> Draw {
        self.cells.on(date.num_days_from_ce())
    }
}

#[cfg(test)]
mod tests {
    use bellwether_interface::{Period, Regime, Signal};
    use chrono::NaiveDate;

    use super::{Model, Outlook, Prediction, PredictionSeries};
    use crate::companies;
    use crate::draw::Draw;

    fn histories(regime: Regime, model: Model) -> Vec<Vec<Prediction>> {
        let first = NaiveDate::from_ymd_opt(2022, 1, 1).unwrap();
        let series = companies::all().iter().map(|company| {
            PredictionSeries::new(Draw::from_seed(1), company, Outlook { model, period: Period::default(), regime })
        });
        let days = first.iter_days().take(1_000);
        series.map(|series| days.clone().map(|date| series.get(date, date)).collect()).collect()
    }

    fn share_of_buys(histories: &[Vec<Prediction>]) -> f64 {
        let all: Vec<_> = histories.iter().flatten().collect();
        all.iter().filter(|prediction| prediction.signal() == Signal::Buy).count() as f64 / all.len() as f64
    }

    #[test]
    fn bulls_buy_more_and_bears_sell_more() {
        let share = |regime| share_of_buys(&histories(regime, Model::Current));
        let (bear, neutral, bull) = (share(Regime::Bear), share(Regime::Neutral), share(Regime::Bull));
        assert!(0.15 < bear && bear < neutral - 0.1 && neutral + 0.1 < bull && bull < 0.85, "{bear} {neutral} {bull}");
    }

    #[test]
    fn signals_come_in_runs_and_confidence_has_four_decimals() {
        let histories = histories(Regime::Neutral, Model::Current);
        let turns = histories.iter().flat_map(|history| history.windows(2));
        let turned = turns.filter(|pair| pair[0].signal() != pair[1].signal()).count();
        let run = histories.iter().flatten().count() / turned;
        assert!((8..60).contains(&run), "a run lasts {run} days");
        for prediction in histories.iter().flatten() {
            let confidence = prediction.confidence();
            assert!((0.5..=1.0).contains(&confidence));
            assert!(format!("{confidence}").len() <= "0.1234".len(), "{confidence}");
        }
    }

    #[test]
    fn the_older_model_disagrees_and_is_never_revised() {
        let (current, legacy) = (histories(Regime::Bull, Model::Current), histories(Regime::Bull, Model::Legacy));
        let cells = current.iter().flatten().zip(legacy.iter().flatten());
        let equal = cells.filter(|(current, legacy)| current == legacy).count();
        assert!(equal < 500 * 1_000 / 100, "{equal} cells are equal");

        let date = NaiveDate::from_ymd_opt(2024, 1, 2).unwrap();
        let outlook = Outlook { model: Model::Legacy, period: Period::default(), regime: Regime::Bull };
        for company in companies::all() {
            assert!(PredictionSeries::new(Draw::from_seed(1), company, outlook).revision(date).is_none());
        }
    }

    #[test]
    fn a_revised_prediction_differs_within_the_same_bounds() {
        for index in 0..10_000 {
            for basis_points in [5_000, 7_500, 7_501, 10_000] {
                let before = Prediction { signal: Signal::Buy, basis_points };
                let after = before.revise(Draw::from_seed(3).at(index));
                assert_ne!(after.confidence(), before.confidence());
                assert!((0.5..=1.0).contains(&after.confidence()));
            }
        }
    }
}
