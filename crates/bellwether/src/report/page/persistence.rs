//! Persistence: how often signals flip, and whether confident ones flip less.

use super::{Along, Bar, Columns, Html, Topic};
use crate::report::Report;
use crate::report::facts::{Facts, Histogram, PairFacts, Persistence};
use crate::text::human::{group_digits, percent, portion};

/// The most pairs shown.
const PAIRS: usize = 27;

impl Report {
    pub(super) fn persistence(&self, html: &mut Html) {
        let asides: Vec<String> =
            [self.facts.flip_range(), self.facts.flips_by_confidence()].into_iter().flatten().collect();
        let finding = self.facts.flipping();
        html.section(&Topic::new("persistence", "Persistence", finding).with_asides(&asides), |html| {
            let Some(persistence) = self.facts.persistence.as_ref().filter(|it| it.followed.count() > 0) else {
                return;
            };
            by_pair(html, &self.facts);
            by_confidence(html, persistence);
        });
    }
}

impl Facts {
    /// The finding: how often signals flip.
    pub(in crate::report) fn flipping(&self) -> String {
        match (&self.persistence, self.flips().share()) {
            (None, _) => "Flips are not counted: the dataset is not sorted by date within a series".to_owned(),
            (_, None) => "No series has two signals".to_owned(),
            (_, Some(share)) => format!("{} of signals are followed by their opposite", percent(share)),
        }
    }

    /// The pairs that flip least and most often.
    fn flip_range(&self) -> Option<String> {
        let share = |pair: &&PairFacts| pair.flips.share().unwrap_or_default();
        let pairs = || self.pairs.iter().filter(|pair| pair.flips.followed > 0);
        let least = pairs().min_by(|one, other| share(one).total_cmp(&share(other)))?;
        let most = pairs().max_by(|one, other| share(one).total_cmp(&share(other)))?;
        let shown = |pair: &PairFacts| format!("{} {}, {}", pair.period, pair.regime, percent(share(&pair)));
        (pairs().count() > 1).then(|| format!("Least often for {}; most often for {}.", shown(least), shown(most)))
    }

    /// Whether confident signals flip less often.
    pub(in crate::report) fn flips_by_confidence(&self) -> Option<String> {
        let persistence = self.persistence.as_ref()?;
        let [low, high] = persistence.ends()?;
        let of_all = |(followed, _): (u64, u64)| portion(followed, persistence.followed.count());
        let flipped = |(followed, same): (u64, u64)| portion(followed - same, followed);
        Some(format!(
            "Of the least confident {} of signals, {} flip; of the most confident {}, {}.",
            of_all(low),
            flipped(low),
            of_all(high),
            flipped(high)
        ))
    }
}

impl Persistence {
    /// The least and the most confident signals that have a successor, as many whole bins of the plot as hold a fifth of
    /// them: their number, and the number whose successor is the same signal. `None` if the two overlap.
    fn ends(&self) -> Option<[(u64, u64); 2]> {
        let [followed, same] = Histogram::bins([&self.followed, &self.same]);
        let bins: Vec<(u64, u64)> = followed.counts.iter().copied().zip(same.counts.iter().copied()).collect();
        let fifth = followed.counts.iter().sum::<u64>().div_ceil(5);
        let take = |bins: &mut dyn Iterator<Item = &(u64, u64)>| {
            let (mut taken, mut sum) = (0, (0, 0));
            for (followed, same) in bins {
                taken += 1;
                sum = (sum.0 + followed, sum.1 + same);
                if sum.0 >= fifth {
                    break;
                }
            }
            (taken, sum)
        };
        let (low, high) = (take(&mut bins.iter()), take(&mut bins.iter().rev()));
        (fifth > 0 && low.0 + high.0 <= bins.len()).then_some([low.1, high.1])
    }
}

fn by_pair(html: &mut Html, facts: &Facts) {
    let mut pairs: Vec<&PairFacts> = facts.pairs.iter().collect();
    let share = |pair: &PairFacts| pair.flips.share().unwrap_or_default();
    if pairs.len() > PAIRS {
        pairs.sort_by(|one, other| share(other).total_cmp(&share(one)));
    }
    let most = pairs.iter().map(|pair| share(pair)).fold(f64::MIN_POSITIVE, f64::max);
    let note = "Share of signals followed by their opposite in the same series.";
    let bar = |pair: &&PairFacts| Bar {
        id: format!("plot-flips-{}-{}", pair.period, pair.regime),
        name: format!("{} {}", pair.period, pair.regime),
        class: "bar",
        share: share(pair) / most,
        value: percent(share(pair)),
    };
    html.figure("How often signals flip", note, |html| {
        html.bars(pairs.iter().take(PAIRS).map(bar));
        if pairs.len() > PAIRS {
            html.cut(format_args!("Showing the {PAIRS} of {} pairs that flip most often.", pairs.len()));
        }
    });
}

fn by_confidence(html: &mut Html, persistence: &Persistence) {
    let [followed, same] = Histogram::bins([&persistence.followed, &persistence.same]);
    let bins: Vec<(u64, u64)> =
        followed.counts.iter().zip(&same.counts).map(|(all, same)| (*all, all - same)).collect();
    let share = |(all, flipped): (u64, u64)| flipped as f64 / all.max(1) as f64;
    let most = bins.iter().map(|bin| share(*bin)).fold(f64::MIN_POSITIVE, f64::max);
    let column = |(bin, counts): (usize, &(u64, u64))| {
        let (edges, (all, flipped)) = (followed.edges(bin), *counts);
        let label = format!("confidence {edges}\n{} of {} flip", portion(flipped, all), group_digits(all));
        (all > 0).then(|| (share(*counts) / most, label))
    };
    html.columns(&Columns {
        id: "plot-persistence".to_owned(),
        title: "Flips by confidence".to_owned(),
        note: format!(
            "Share of signals at each confidence that are followed by their opposite. Peak: {}.",
            percent(most)
        ),
        class: "bar",
        height: 116.0,
        along: Along::Scale(followed.range()),
        columns: bins.iter().enumerate().map(column).collect(),
    });
}
