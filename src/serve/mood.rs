//! How a company fares, in the eyes of models and newspapers: what makes its series and its news move together.

use chrono::{Datelike, NaiveDate};

use super::companies::Company;
use super::draw::{Draw, purpose};

const MOOD: u64 = purpose("mood");

/// The days between two turns.
const TURN_DAYS: i32 = 40;

/// The mood of one company, day by day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mood(Draw);

impl Mood {
    pub(super) fn of(seed: Draw, company: &Company) -> Self {
        Self(seed.at(MOOD).of(company.ticker.as_str()))
    }

    /// From -1 to 1.
    pub(super) fn on(self, date: NaiveDate) -> f64 {
        self.0.wave(date.num_days_from_ce(), TURN_DAYS)
    }
}
