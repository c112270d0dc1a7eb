//! Revisions: a cell changes its value at most once.
//!
//! Whether, when and how depends only on the cell, so all universes of a seed agree. Values are only revised: nothing
//! is withdrawn, and nothing about a day is added after that day.

use chrono::{Days, NaiveDate};

use crate::draw::{Draw, purpose};

const REVISION: u64 = purpose("revision");
const DELAY: u64 = purpose("delay");

/// The longest delay between a date and the revision of its value.
pub(crate) const LONGEST_DELAY: Days = Days::new(120);

/// The revision of one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revision {
    /// The first day that shows the new value.
    pub(crate) on: NaiveDate,
    /// The source of the new value.
    pub(crate) draw: Draw,
}

impl Revision {
    /// One cell in 125 is revised, 2 to 120 days after its date.
    pub(crate) fn of(cell: Draw, date: NaiveDate) -> Option<Self> {
        let draw = cell.at(REVISION);
        if !draw.is_one_in(125) {
            return None;
        }
        let delay = 2 + draw.at(DELAY).below(119);
        Some(Self { on: date.checked_add_days(Days::new(delay.into()))?, draw })
    }

    /// Whether its new value is published on a day.
    pub(crate) fn shows(self, today: NaiveDate) -> bool {
        self.on <= today
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Days, NaiveDate};

    use super::Revision;
    use crate::draw::Draw;

    #[test]
    fn fewer_than_one_cell_in_a_hundred_is_revised_2_to_120_days_later() {
        let date = NaiveDate::from_ymd_opt(2026, 1, 2).unwrap();
        let cells = 200_000_u64;
        let revisions: Vec<_> =
            (0..cells).filter_map(|index| Revision::of(Draw::from_seed(3).at(index), date)).collect();
        let share = revisions.len() as f64 / cells as f64;
        assert!((0.005..0.01).contains(&share), "{share}");

        let delays = || revisions.iter().map(|revision| (revision.on - date).num_days());
        assert_eq!((delays().min(), delays().max()), (Some(2), Some(120)));
        for revision in revisions {
            assert!(!revision.shows(revision.on - Days::new(1)) && revision.shows(revision.on));
        }
    }
}
