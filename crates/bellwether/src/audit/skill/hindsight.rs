//! The hindsight test: whether what was rewritten agrees with returns that were already known. See
//! [`Hindsight`](super::Hindsight).

use std::collections::BTreeMap;
use std::ops::Range;

use bellwether_statistics::{OverlappingSeries, Share, Windows};

use super::answer::Hindsight;
use super::cells::{Rewrite, Vote, is_sell};
use super::frame::{Center, DateFrame, Measuring};
use crate::prices::{Day, date};

/// Votes of a date.
#[derive(Clone, Debug, Default)]
struct DayVotes {
    agree: u64,
    /// Those that agree less those that would by luck.
    net: f64,
    /// The published signals of the date that the return agrees with.
    live: Share,
    /// The window of the returns of the date.
    window: Option<Range<usize>>,
}

impl DayVotes {
    fn add_window(&mut self, window: Range<usize>) {
        let known = self.window.get_or_insert_with(|| window.clone());
        *known = known.start.min(window.start)..known.end.max(window.end);
    }
}

/// Votes of a pair, or of all.
#[derive(Clone, Debug, Default)]
pub(super) struct HindsightCounts {
    by_day: BTreeMap<Day, DayVotes>,
    /// Votes by what was done.
    counts: Hindsight,
    since: Option<Day>,
}

impl HindsightCounts {
    /// Adds the votes of a date, and the window of its returns.
    pub(super) fn add(&mut self, of: &DateFrame<'_>, votes: &[Vote], window: Range<usize>, measuring: &Measuring<'_>) {
        let day = self.by_day.entry(of.day).or_default();
        day.add_window(window);
        let center = Center::new(&of.returns);
        for (cell, value) in of.cells.iter().zip(&of.returns).filter(|(cell, _)| cell.is_published) {
            day.live += Share::new([center.agrees(is_sell(cell.first), *value) == Some(true)]);
        }
        // The parts of the returns up to a session, and how many of those of buys and of sells go up.
        let mut parts: BTreeMap<(u16, u16), (Center, [Share; 2])> = BTreeMap::new();
        for vote in votes {
            let Ok(index) = of.cells.binary_search_by_key(&vote.ticker, |cell| cell.ticker) else { continue };
            let (cell, counts) = (&of.cells[index], &mut self.counts);
            let (center, rising) = parts.entry((cell.entry, vote.known)).or_insert_with(|| {
                let value = |ticker: u16| measuring.value(ticker, cell.entry, vote.known);
                let values: Vec<f64> = of.cells.iter().map(|cell| value(cell.ticker)).collect();
                let center = Center::new(&values);
                let mut rising = [Share::default(); 2];
                for (cell, value) in of.cells.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
                    if let Some(is_up) = center.agrees(false, value) {
                        rising[usize::from(is_sell(cell.first))] += Share::new([is_up]);
                    }
                }
                (center, rising)
            });
            let value = measuring.value(cell.ticker, cell.entry, vote.known);
            if value.is_nan() {
                continue;
            }
            let Some(agrees) = center.agrees(!vote.is_up, value) else {
                counts.even += 1;
                continue;
            };
            let up = rising[usize::from(is_sell(cell.first))].rate().expect("the signal itself is one");
            day.agree += u64::from(agrees);
            day.net += f64::from(u8::from(agrees)) - if vote.is_up { up } else { 1.0 - up };
            let kind = match vote.rewrite {
                Rewrite::Turned => &mut counts.turned,
                Rewrite::Weakened => &mut counts.weakened,
                Rewrite::Strengthened => &mut counts.strengthened,
                Rewrite::Withdrawn => &mut counts.withdrawn,
                Rewrite::Restored => &mut counts.restored,
            };
            *kind += 1;
            counts.within += u64::from(usize::from(vote.known) < of.exits[index]);
            self.since = Some(self.since.map_or(vote.seen, |since| since.min(vote.seen)));
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (day, votes) in &other.by_day {
            let sum = self.by_day.entry(*day).or_default();
            add_fields!(sum, votes, agree, net, live);
            votes.window.iter().for_each(|window| sum.add_window(window.clone()));
        }
        let (sum, counts) = (&mut self.counts, &other.counts);
        add_fields!(sum, counts, turned, weakened, strengthened, withdrawn, restored, within, even);
        self.since = [self.since, other.since].into_iter().flatten().min();
    }

    pub(super) fn test(&self) -> Hindsight {
        let counts = &self.counts;
        let rewrites = counts.turned + counts.weakened + counts.strengthened + counts.withdrawn + counts.restored;
        let (mut agree, mut net, mut live) = (0, 0.0, Share::default());
        for (day, votes) in &self.by_day {
            agree += votes.agree;
            net += votes.net;
            if self.since.is_some_and(|since| *day >= since) {
                live += votes.live;
            }
        }
        let share = Share { hits: agree, of: rewrites }.rate();
        let nets = self.by_day.values().map(|votes| votes.net).collect();
        let series =
            OverlappingSeries::new(nets, Windows::new(self.by_day.values().filter_map(|votes| votes.window.clone())));
        Hindsight {
            rewrites,
            agree,
            share,
            luck: share.map(|share| share - net / rewrites as f64),
            test: series.cosine_test().ok().filter(|_| rewrites > 0),
            since: self.since.map(date),
            live_after: live.of,
            live_after_hits: live.hits,
            live_after_share: live.rate(),
            ..counts.clone()
        }
    }
}
