//! The mood of a company, which its signals and its news share, so that they move together.

use chrono::{Datelike, NaiveDate};

use crate::companies::Company;
use crate::draw::{Draw, purpose};

const MOOD: u64 = purpose("mood");

/// Days between two turning points.
const TURN_DAYS: i32 = 40;

/// The mood of one company, day by day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood(Draw);

impl Mood {
    pub(crate) fn of(seed: Draw, company: &Company) -> Self {
        Self(seed.at(MOOD).of(company.ticker.as_str()))
    }

    /// From -1 to 1.
    pub(crate) fn on(self, date: NaiveDate) -> f64 {
        self.0.wave(date.num_days_from_ce(), TURN_DAYS)
    }
}
