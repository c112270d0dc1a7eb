//! The hindsight test: whether rewritten directions agree with returns that were already known.
//!
//! A vote is a cell whose direction today is the opposite of the one first published, and was first seen on a day after
//! the session that ended its horizon. It is *for* the new direction if the return, relative to the mean of its date,
//! went that way. Corrections that know nothing of the outcome split in half. More is hindsight or a better model: then
//! the signals that were published live after the first rewrite are as good.

use std::collections::BTreeMap;
use std::ops::Range;

use bellwether_statistics::counts::{Share, clustered_sign_test, sign_test};
use bellwether_statistics::{MeanTest, OverlappingSeries, Windows};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use super::measures::DatedCell;
use super::prices::{Day, date};

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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hindsight {
    /// Signals that turned after their horizon was over, and whose return is not the mean of its date.
    pub turned: u64,
    /// Those of them whose new direction agrees with the return.
    pub agree: u64,
    /// The share of them.
    pub share: Option<f64>,
    /// Signals whose return is the mean of its date, which say nothing.
    pub even: u64,
    /// The test of the votes for the new direction less those for the old one, by date; none if it is refused.
    pub test: Option<MeanTest>,
    /// The p-value of McNemar's exact test, which takes votes for independent.
    pub p: Option<f64>,
    /// The calendar days of a cluster: two of the longest horizons.
    pub cluster_days: u64,
    /// The clusters with more of one than of the other.
    pub clusters: u64,
    /// The p-value with windows of so many days as clusters.
    pub p_clustered: Option<f64>,
    /// The first day on which such a signal had turned.
    #[schemars(with = "Option<String>")]
    pub since: Option<NaiveDate>,
    /// Live signals dated from then on.
    pub live_after: u64,
    /// Those of them that the return agrees with.
    pub live_after_hits: u64,
    /// The share of them.
    pub live_after_share: Option<f64>,
}

impl Hindsight {
    /// The shares that its test does not rule out: its net votes by date, for each vote.
    pub(crate) fn interval(&self) -> Option<[f64; 2]> {
        let test = self.test.as_ref()?;
        let votes_of_date = self.turned as f64 / test.observations as f64;
        Some([test.interval.lower, test.interval.upper].map(|net| 0.5 + net / votes_of_date / 2.0))
    }
}

/// Votes of a pair, or of all.
#[derive(Clone, Debug, Default)]
pub(super) struct HindsightCounts {
    by_day: BTreeMap<Day, (DayVotes, Range<usize>)>,
}

impl HindsightCounts {
    /// Adds votes of a day, whose returns are over a window.
    pub(super) fn add(&mut self, day: Day, votes: DayVotes, window: Range<usize>) {
        let (sum, known) = self.by_day.entry(day).or_insert_with(|| (DayVotes::default(), window.clone()));
        *known = known.start.min(window.start)..known.end.max(window.end);
        sum.new += votes.new;
        sum.old += votes.old;
        sum.even += votes.even;
        sum.live += votes.live;
        sum.live_hits += votes.live_hits;
        sum.since = [sum.since, votes.since].into_iter().flatten().min();
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        other.by_day.iter().for_each(|(day, (votes, window))| self.add(*day, *votes, window.clone()));
    }

    /// The test, for a horizon of some calendar days.
    pub(super) fn test(&self, days: u64) -> Hindsight {
        let cluster_days = 2 * days;
        let (mut agree, mut live_after, mut even) = (Share::default(), Share::default(), 0);
        let since = self.by_day.values().filter_map(|(votes, _)| votes.since).min();
        let mut gains: BTreeMap<i64, i64> = BTreeMap::new();
        let first = self.by_day.keys().next().copied().unwrap_or_default();
        for (day, (votes, _)) in &self.by_day {
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
        let net = self.by_day.values().map(|(votes, _)| votes.new as f64 - votes.old as f64);
        let windows = Windows::of(self.by_day.values().map(|(_, window)| window.clone()));
        let clustered = clustered_sign_test(&gains);
        Hindsight {
            turned: agree.of,
            agree: agree.hits,
            share: agree.rate(),
            even,
            test: OverlappingSeries::in_windows(net, windows).ok().and_then(|series| series.cosine_test().ok()),
            p,
            cluster_days,
            clusters: clustered.map_or(0, |test| test.clusters),
            p_clustered: clustered.map(|test| test.p),
            since: since.map(date),
            live_after: live_after.of,
            live_after_hits: live_after.hits,
            live_after_share: live_after.rate(),
        }
    }
}
