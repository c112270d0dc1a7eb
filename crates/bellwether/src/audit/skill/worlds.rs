//! Simulated worlds, whose answer is known, measured by the code that measures a vendor's: their returns have a market, sectors
//! and a skew, their signals persist and know nothing. In some a vendor rewrites what it said, honestly or not.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Date32Array, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use bellwether_statistics::Random;

use super::PairSkill;
use super::answer::{Hindsight, Measure};
use super::cells::PairCells;
use super::frame::{Betas, Measuring};
use crate::interface::{Period, Regime};
use crate::plan::PricesPlan;
use crate::prices::horizon::Exits;
use crate::prices::{Day, PriceRows, PriceSource, Prices};
use crate::process::cancel::CancellationToken;
use crate::time::MICROS_PER_DAY;

const NAMES: usize = 60;
const SECTORS: usize = 6;
/// Dates with signals, and the sessions after them.
const DATES: usize = 500;
const SESSIONS: usize = DATES + 140;

/// What a vendor does with what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Nothing.
    Faithful,
    /// Turns, withdraws, weakens and strengthens signals, and knows nothing of what followed.
    Honest,
    /// Turns all losers once their horizon is over.
    TurnsLosers,
    /// Turns one loser in ten.
    TurnsTenth,
    /// Halves the confidence of losers.
    WeakensLosers,
    /// Withdraws losers.
    WithdrawsLosers,
    /// Turns signals on the third session of their horizon that have lost until then.
    TurnsWithin,
    /// No longer lists the third of the names whose signals were worst.
    DelistsLosers,
}

impl Vendor {
    /// Those with hindsight.
    pub const WITH_HINDSIGHT: [Self; 6] = [
        Self::TurnsLosers,
        Self::TurnsTenth,
        Self::WeakensLosers,
        Self::WithdrawsLosers,
        Self::TurnsWithin,
        Self::DelistsLosers,
    ];
}

/// Prices, and signals that know nothing of them.
pub struct World {
    prices: Prices,
    exits: Exits,
    betas: Betas,
    sectors: (Vec<String>, Vec<usize>),
    /// By date, then by name.
    scores: Vec<[f64; NAMES]>,
    seed: u64,
}

impl World {
    /// The world of a seed.
    ///
    /// # Panics
    ///
    /// Never; its prices can be read.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Weekdays from a Monday in 2020 on.
        let days: Vec<Day> = (18_267..).filter(|day| (day - 18_267) % 7 < 5).take(SESSIONS).collect();
        let mut prices = [3.0_f64; NAMES];
        let mut signals: [f64; NAMES] = std::array::from_fn(|_| random.normal());
        let (mut closes, mut scores) = (Vec::new(), Vec::new());
        for session in 0..SESSIONS {
            let market = 0.01 * random.normal();
            let sectors: [f64; SECTORS] = std::array::from_fn(|_| 0.008 * random.normal());
            for (name, price) in prices.iter_mut().enumerate() {
                let beta = 0.5 + name as f64 / NAMES as f64;
                *price += beta * market + sectors[name % SECTORS] + 0.02 * random.normal();
                closes.push(price.exp());
            }
            if session < DATES {
                scores.push(signals.map(|signal| signal.signum() * (0.5 + 0.49 * (signal.abs() / 2.0).tanh())));
            }
            signals.iter_mut().for_each(|signal| *signal = 0.98 * *signal + 0.199 * random.normal());
        }
        let names: Vec<String> = (0..NAMES).map(|name| format!("N{name:02}")).collect();
        let schema = Arc::new(Schema::new(vec![
            Field::new("ticker", DataType::Utf8, false),
            Field::new("date", DataType::Date32, false),
            Field::new("close", DataType::Float64, false),
        ]));
        let columns: Vec<arrow::array::ArrayRef> = vec![
            Arc::new((0..SESSIONS).flat_map(|_| &names).map(|name| Some(name.as_str())).collect::<StringArray>()),
            Arc::new(days.iter().flat_map(|day| [Some(*day); NAMES]).collect::<Date32Array>()),
            Arc::new(Float64Array::from(closes)),
        ];
        let batches = vec![RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of one length")];
        let source = PriceSource::Rows(PriceRows { schema, batches }, PricesPlan::default());
        let prices = Prices::read(&source, &CancellationToken::default()).expect("they can be read");
        let order = prices
            .tickers()
            .iter()
            .map(|ticker| ticker.as_str()[1..].parse().expect("a number"))
            .collect::<Vec<usize>>();
        let sectors = order.iter().map(|name| name % SECTORS).collect();
        let scores = scores.into_iter().map(|of| std::array::from_fn(|number| of[order[number]])).collect();
        let sectors = ((0..SECTORS).map(|sector| sector.to_string()).collect(), sectors);
        Self {
            exits: Exits::new(&prices),
            betas: Betas::new(&prices, &(0..NAMES as u16).collect()),
            prices,
            sectors,
            scores,
            seed,
        }
    }

    /// What is measured of the signals as published: buys and sells.
    #[must_use]
    pub fn published(&self, period: Period) -> Measure {
        let [published, _, _] = self.measure(period, Vendor::Faithful).measures;
        published
    }

    /// The hindsight of a vendor.
    #[must_use]
    pub fn hindsight(&self, period: Period, vendor: Vendor) -> Hindsight {
        self.measure(period, vendor).hindsight
    }

    fn measure(&self, period: Period, vendor: Vendor) -> PairSkill {
        let Self { prices, exits, betas, sectors, .. } = self;
        let delisted = &HashSet::new();
        let measuring = Measuring { prices, exits, betas, sectors, delisted, news: None };
        measuring.measure((period, Regime::ALL[0]), self.signals(period, vendor)).0
    }

    /// Whether a signal has lost between two sessions, relative to the mean.
    fn lost(&self, date: usize, name: usize, from: usize, to: usize) -> f64 {
        let value = |name: usize| self.prices.between(name as u16, from, to).expect("all have closes");
        let mean = (0..NAMES).map(value).sum::<f64>() / NAMES as f64;
        -(value(name) - mean) * self.scores[date][name].signum()
    }

    fn signals(&self, period: Period, vendor: Vendor) -> PairCells {
        let mut random = Random::new(self.seed + 1_000_000);
        let sessions = self.prices.sessions();
        let exit = |date: usize| self.exits.exit(period, date + 1).expect("prices go on");
        let mut by_name: Vec<(f64, usize)> = Vec::new();
        if vendor == Vendor::DelistsLosers {
            let lost = |name| (0..DATES).map(|date| self.lost(date, name, date + 1, exit(date))).sum::<f64>();
            by_name = (0..NAMES).map(|name| (lost(name), name)).collect();
            by_name.sort_by(|one, other| other.0.total_cmp(&one.0));
            by_name.truncate(NAMES / 3);
        }
        let mut found = PairCells::default();
        // What an honest vendor does with a name, and for how many dates more.
        let mut spells = [(0, 0_u64); NAMES];
        for date in 0..DATES {
            for (name, (kind, left)) in spells.iter_mut().enumerate() {
                let (entry, exit, score) = (date + 1, exit(date), self.scores[date][name]);
                let evening = |session: usize| i64::from(sessions[session]) * MICROS_PER_DAY + MICROS_PER_DAY * 9 / 10;
                let has_lost = || self.lost(date, name, entry, exit) > 0.0;
                let luck = random.uniform();
                if *left == 0 && luck < 0.004 {
                    (*kind, *left) = ((luck * 1_000.0) as usize, (-random.uniform().ln() * 60.0).ceil() as u64);
                }
                let is_in_spell = *left > 0;
                *left = left.saturating_sub(1);
                let at = (entry + 1 + (random.uniform() * 2.0 * (exit - entry) as f64) as usize).min(SESSIONS - 1);
                let rewritten: Option<(usize, Option<f64>)> = match vendor {
                    Vendor::Honest if is_in_spell => {
                        Some((at, [Some(-score), None, Some(0.8 * score), Some(1.2 * score)][*kind]))
                    }
                    Vendor::TurnsLosers if has_lost() => Some((exit + 2, Some(-score))),
                    Vendor::TurnsTenth if luck < 0.1 && has_lost() => Some((exit + 2, Some(-score))),
                    Vendor::WeakensLosers if has_lost() => Some((exit + 2, Some(0.5 * score))),
                    Vendor::WithdrawsLosers if has_lost() => Some((exit + 2, None)),
                    Vendor::TurnsWithin if self.lost(date, name, entry, entry + 3) > 0.0 => {
                        Some((entry + 3, Some(-score)))
                    }
                    Vendor::DelistsLosers if by_name.iter().any(|(_, loser)| *loser == name) => {
                        Some((SESSIONS - 1, None))
                    }
                    _ => None,
                };
                let mut timeline = vec![(evening(date), Some(score))];
                timeline.extend(rewritten.map(|(session, score)| (evening(session), score)));
                let day = (sessions[date] - sessions[0]) as u16;
                found.push_published([name as u16, day, entry as u16], &timeline, (sessions, exit));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Vendor, World};

    /// Few worlds, since each takes a second; `cargo bench -p bellwether --bench skill` has a hundred.
    #[test]
    fn hindsight_is_told_from_honest_corrections_and_luck_from_skill() {
        let (mut rejected, mut accused) = (0, 0);
        for seed in 0..3 {
            let world = World::new(seed);
            let horizon = "5d".parse().unwrap();
            for vendor in Vendor::WITH_HINDSIGHT {
                let hindsight = world.hindsight(horizon, vendor);
                assert!(hindsight.is_told(), "{vendor:?} in world {seed}: {hindsight:?}");
            }
            accused += u64::from(world.hindsight(horizon, Vendor::Honest).is_told());
            let published = world.published(horizon);
            let tests = [published.buys, published.sells].map(|side| side.test.unwrap());
            rejected += tests.iter().filter(|test| test.p <= 0.05).count();
        }
        assert!(accused <= 1 && rejected <= 2, "{accused} accused, {rejected} rejected");
    }
}
