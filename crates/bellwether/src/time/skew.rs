//! How far the clock of this machine is from another one's.
//!
//! What a run observes is dated by this machine's clock, and what is known as of an instant is ordered by it. So a run
//! compares it with the clocks of its store and of the service, and refuses to observe anything if they are far apart. A
//! few minutes are tolerated: other clocks are coarse, and answers take a while.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};

use crate::text::human::span;

/// How far apart clocks may be.
const TOLERATED: TimeDelta = TimeDelta::minutes(5);

/// By how much this machine's clock is ahead of another one's; negative if it is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skew(TimeDelta);

impl Skew {
    /// Of a clock that was read, in whole seconds, between two instants of this machine's.
    pub(crate) fn between((asked, answered): (DateTime<Utc>, DateTime<Utc>), other: DateTime<Utc>) -> Self {
        let ahead = (asked - other - TimeDelta::seconds(1)).max(TimeDelta::zero());
        let behind = (other - answered).max(TimeDelta::zero());
        Self(ahead - behind)
    }

    /// Whether it is too large to go on.
    pub(crate) fn is_too_large(self) -> bool {
        self.0.abs() > TOLERATED
    }
}

/// `2 days ahead of`, `7 minutes behind`, `in step with`.
impl fmt::Display for Skew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = span(self.0.abs().to_std().unwrap_or_default());
        match self.0.cmp(&TimeDelta::zero()) {
            std::cmp::Ordering::Greater => write!(formatter, "{size} ahead of"),
            std::cmp::Ordering::Less => write!(formatter, "{size} behind"),
            std::cmp::Ordering::Equal => formatter.write_str("in step with"),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::Skew;

    #[test]
    fn the_time_that_an_answer_takes_is_no_skew() {
        let at = |seconds: i64| DateTime::from_timestamp(1_800_000_000 + seconds, 0).expect("an instant");
        let skew = |from, to, other| Skew::between((at(from), at(to)), at(other));
        for other in 0..=600 {
            assert_eq!(skew(0, 600, other), Skew(TimeDelta::zero()), "{other}");
        }
        assert_eq!(skew(0, 10, 310).to_string(), "5 minutes behind");
        assert!(!skew(0, 10, 310).is_too_large() && skew(0, 10, 311).is_too_large());
        assert!(!skew(301, 310, 0).is_too_large() && skew(302, 310, 0).is_too_large());
        assert_eq!(skew(400 * 86_400 + 7, 400 * 86_400 + 9, 0).to_string(), "400 days ahead of");
        assert_eq!(skew(0, 1, 2 * 3_600 + 5).to_string(), "2 hours behind");
    }
}
