//! The hindsight test: whether rewritten directions agree with returns that were already known.
//!
//! A vote is a cell whose direction today is the opposite of the one first published, and was first seen on a day after
//! the session that ended its horizon. It is *for* the new direction if the return, relative to the mean of its date,
//! went that way. Corrections that know nothing of the outcome split in half. More is hindsight or a better model: then
//! the signals that were published live after the first rewrite are as good.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use bellwether_statistics::counts::{ClusteredSignTest, Share, clustered_sign_test, sign_test};
use bellwether_statistics::{MeanTest, OverlappingSeries};

use super::measures::DatedCell;
use super::prices::Day;

/// Votes of a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DayVotes {
    /// For the new direction.
    pub(super) new: u64,
    /// For the old one.
    pub(super) old: u64,
    /// Returns equal to the mean of the date, which are for neither.
    pub(super) even: u64,
    /// The first day on which one of them was seen.
    pub(super) since: Option<Day>,
    /// Live signals of the date, as published, and those that the return agrees with.
    pub(super) live: u64,
    pub(super) live_hits: u64,
}

impl DayVotes {
    /// The votes among the cells of a date.
    pub(super) fn of(cells: &[DatedCell], day_of: impl Fn(usize) -> Day) -> Self {
        let mut votes = Self::default();
        for cell in cells {
            if cell.cell.is_live() {
                votes.live += 1;
                votes.live_hits += u64::from(if cell.cell.is_sell() { cell.excess < 0.0 } else { cell.excess > 0.0 });
            }
            let Some(change) = cell.change.filter(|change| change.is_sell != cell.cell.is_sell()) else { continue };
            if change.turned <= day_of(cell.exit) {
                continue;
            }
            let is_for = |is_sell: bool| if is_sell { cell.excess < 0.0 } else { cell.excess > 0.0 };
            match (is_for(change.is_sell), is_for(cell.cell.is_sell())) {
                (true, _) => votes.new += 1,
                (_, true) => votes.old += 1,
                _ => votes.even += 1,
            }
            votes.since = Some(votes.since.map_or(change.turned, |since| since.min(change.turned)));
        }
        votes
    }
}

/// The hindsight test of a pair, or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// Rewritten directions that the return agrees with, of those that it agrees or disagrees with.
    pub agree: Share,
    /// Returns equal to the mean of their date, which say nothing.
    pub even: u64,
    /// The p-value of McNemar's exact test, as if all votes were independent.
    pub p: Option<f64>,
    /// The test of the net votes by date, none where there is none, whose horizons overlap; none if it is refused.
    pub by_date: Option<MeanTest>,
    /// The number of days in a cluster: two of the longest horizons.
    pub cluster_days: u64,
    /// The test with windows of so many days as clusters.
    pub clustered: Option<ClusteredSignTest>,
    /// The first day on which such a rewritten direction was seen.
    pub since: Option<Day>,
    /// Signals dated from then on that were published live, and those that the return agrees with.
    pub live_after: Share,
}

/// Votes of a pair, or of all.
#[derive(Clone, Debug, Default)]
pub(super) struct HindsightCounts {
    by_day: BTreeMap<Day, DayVotes>,
}

impl HindsightCounts {
    pub(super) fn add(&mut self, day: Day, votes: DayVotes) {
        let sum = self.by_day.entry(day).or_default();
        sum.new += votes.new;
        sum.old += votes.old;
        sum.even += votes.even;
        sum.live += votes.live;
        sum.live_hits += votes.live_hits;
        sum.since = [sum.since, votes.since].into_iter().flatten().min();
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        other.by_day.iter().for_each(|(day, votes)| self.add(*day, *votes));
    }
    /// The test, for a horizon of some calendar days that overlaps with that of so many dates.
    pub(super) fn test(&self, days: u64, overlap: u64) -> Hindsight {
        let cluster_days = 2 * days;
        let (mut agree, mut live_after, mut even) = (Share::default(), Share::default(), 0);
        let since = self.by_day.values().filter_map(|votes| votes.since).min();
        let mut gains: BTreeMap<i64, i64> = BTreeMap::new();
        let first = self.by_day.keys().next().copied().unwrap_or_default();
        for (day, votes) in &self.by_day {
            agree += Share { hits: votes.new, of: votes.new + votes.old };
            even += votes.even;
            if since.is_some_and(|since| *day >= since) {
                live_after += Share { hits: votes.live_hits, of: votes.live };
            }
            if votes.new + votes.old > 0 {
                let cluster = i64::from(day - first) / cluster_days as i64;
                *gains.entry(cluster).or_default() += votes.new as i64 - votes.old as i64;
            }
        }
        let gains: Vec<i64> = gains.into_values().collect();
        let p = sign_test(agree.hits, agree.of - agree.hits);
        let net = self.by_day.values().map(|votes| votes.new as f64 - votes.old as f64);
        let overlap = NonZeroUsize::new(overlap as usize).unwrap_or(NonZeroUsize::MIN);
        let by_date = OverlappingSeries::new(net, overlap).ok().and_then(|series| series.cosine_test().ok());
        Hindsight { agree, even, p, by_date, cluster_days, clustered: clustered_sign_test(&gains), since, live_after }
    }
}
