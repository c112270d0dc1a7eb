//! Revisions: which signals and articles the vendor changed after the fact.

use super::{Along, Bar, Columns, Html, Topic};
use crate::audit::revisions::{AgeGroup, Revisions, Rewrites};
use crate::interface::Ticker;
use crate::report::Report;
use crate::report::facts::{Axis, Step};
use crate::text::human::{count_of, group_digits, percent};

/// The most buckets of a plot.
const BUCKETS: usize = 72;

/// The most tickers listed.
const TICKERS: usize = 10;

impl Report {
    pub(super) fn rewrites(&self, html: &mut Html) {
        let asides = match (self.changes(), &self.revisions) {
            (Some(changes), _) => {
                let tables = [(&changes.signals, "signals"), (&changes.articles, "articles")];
                let tables = tables.into_iter().filter(|(rewrites, _)| rewrites.total.known > 0);
                tables.map(|(rewrites, what)| rewrites.tally(what)).collect()
            }
            (None, _) if self.work.runs.len() == 1 => {
                vec!["Revisions show up from the second run on.".to_owned()]
            }
            (None, _) => Vec::new(),
        };
        let topic = Topic::new("rewrites", "Revisions", self.rewrite_finding()).with_asides(&asides);
        html.section(&topic, |html| {
            let Some(Revisions { signals, articles, .. }) = self.changes() else { return };
            let tables = [(signals, "signals"), (articles, "articles")];
            let changed = || tables.iter().filter(|(rewrites, _)| rewrites.total.changed > 0);
            html.element("div", &[("class", &"pair")], |html| {
                // Side by side, so on one scale.
                let most = highest_rate(changed().map(|(rewrites, _)| *rewrites));
                changed().for_each(|(rewrites, what)| by_age(html, rewrites, what, most));
            });
            for (rewrites, what) in changed() {
                by_month(html, rewrites, what);
                by_ticker(html, rewrites, what);
            }
        });
    }

    /// The revisions, if anything changed.
    pub(in crate::report) fn changes(&self) -> Option<&Revisions> {
        self.revisions.as_ref().filter(|found| found.signals.total.changed + found.articles.total.changed > 0)
    }

    /// The finding: the share that changed.
    pub(in crate::report) fn rewrite_finding(&self) -> String {
        match (self.changes(), &self.revisions) {
            (Some(changes), _) => {
                let shares = [(&changes.signals, "signals"), (&changes.articles, "articles")];
                let shares = shares.into_iter().filter_map(|(rewrites, what)| rewrites.changed_share(what));
                let shares = shares.collect::<Vec<_>>().join(" and ");
                let (first, rest) = shares.split_at(1);
                let time = self.time_to_change();
                format!("{}{rest} changed after they were first seen{time}", first.to_uppercase())
            }
            (None, _) if self.work.runs.len() == 1 => "Only one run so far: nothing to compare with".to_owned(),
            (None, _) => format!("No revisions{}", self.time_to_change()),
        }
    }
}

impl Rewrites {
    /// The share that changed; `None` without any cells.
    fn changed_share(&self, what: &str) -> Option<String> {
        let rate = self.total.rate?;
        Some(if self.total.changed == 0 { format!("no {what}") } else { format!("{} of {what}", percent(rate)) })
    }

    /// Counts of revisions, late additions and withdrawals.
    pub(in crate::report) fn tally(&self, what: &str) -> String {
        let total = &self.total;
        let turned = match total.flipped {
            0 => String::new(),
            flipped => format!(" ({} flipped between buy and sell)", group_digits(flipped)),
        };
        let (revisions, late) = (count_of(total.revised, "revision", "revisions"), group_digits(total.added_late));
        format!(
            "{} {what}: {revisions}{turned}, {late} added late, {} withdrawn.",
            group_digits(total.known),
            group_digits(total.withdrawn)
        )
    }

    /// Tickers by number of changed cells, most first, with changed and known cells.
    pub(in crate::report) fn most(&self) -> Vec<(&Ticker, u64, u64)> {
        let changed = self.by_ticker.iter().filter(|(_, tally)| tally.changed > 0);
        let mut tickers: Vec<_> = changed.map(|(ticker, tally)| (ticker, tally.changed, tally.known)).collect();
        tickers.sort_by_key(|(_, changed, _)| std::cmp::Reverse(*changed));
        tickers
    }

    /// Share of changed cells by age.
    pub(in crate::report) fn ages(&self) -> impl Iterator<Item = (AgeGroup, f64)> {
        self.by_age.iter().map(|(age, tally)| (*age, tally.rate.unwrap_or_default()))
    }
}

/// A share, zero if there is nothing to share.
fn share(some: u64, all: u64) -> f64 {
    some as f64 / all.max(1) as f64
}

/// The highest share of changed cells at any age, of several tables.
pub(in crate::report) fn highest_rate<'a>(tables: impl Iterator<Item = &'a Rewrites>) -> f64 {
    tables.flat_map(Rewrites::ages).map(|(_, rate)| rate).fold(f64::MIN_POSITIVE, f64::max)
}

fn by_age(html: &mut Html, rewrites: &Rewrites, what: &'static str, most: f64) {
    let note = format!("Share of the {what} that reached this age and changed then.");
    let bar = |(index, (age, rate)): (usize, (AgeGroup, f64))| Bar {
        id: format!("plot-age-{what}-{index}"),
        name: age.to_string(),
        class: "alert",
        share: rate / most,
        value: percent(rate),
    };
    let bars = rewrites.ages().enumerate().map(bar);
    html.figure(format_args!("Age of {what} when they changed"), note, |html| html.bars(bars));
}

fn by_month(html: &mut Html, rewrites: &Rewrites, what: &str) {
    let months: Vec<_> = rewrites.by_month.iter().map(|(month, tally)| (month.start(), *tally)).collect();
    let starts: Vec<_> = months.iter().map(|(start, _)| *start).collect();
    let axis = Axis::of(&starts, Step::Month, BUCKETS);
    let changed = axis.sums(months.iter().map(|(start, tally)| (*start, tally.changed)));
    let known = axis.sums(months.iter().map(|(start, tally)| (*start, tally.known)));
    let rate = |index: usize| share(changed[index], known[index]);
    let most = (0..axis.len()).map(rate).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let highest = (0..axis.len()).max_by(|one, other| rate(*one).total_cmp(&rate(*other)));
    let column = |index: usize| {
        let (when, of) = (axis.in_words(index), group_digits(known[index]));
        let label = format!("{when}\n{} of {of} changed, {}", group_digits(changed[index]), percent(rate(index)));
        Some((rate(index) / most, label))
    };
    html.columns(&Columns {
        id: format!("plot-rewrites-{what}"),
        title: format!("Changed {what}, by {} of their date", axis.step.as_str()),
        note: highest
            .map_or_else(String::new, |index| format!("Peak: {}, in {}.", percent(rate(index)), axis.in_words(index))),
        class: "alert",
        height: 96.0,
        along: Along::Time(&axis),
        columns: (0..axis.len()).map(column).collect(),
    });
}

fn by_ticker(html: &mut Html, rewrites: &Rewrites, what: &str) {
    let tickers = rewrites.most();
    let Some(&(_, most, _)) = tickers.first() else { return };
    let bar = |(index, (ticker, changed, known)): (usize, &(&Ticker, u64, u64))| Bar {
        id: format!("plot-rewritten-{what}-{index}"),
        name: ticker.to_string(),
        class: "alert",
        share: share(*changed, most),
        value: format!("{}, {}", group_digits(*changed), percent(share(*changed, *known))),
    };
    let title = format_args!("Tickers with the most changed {what}");
    let note = format_args!("Changed {what}, and their share of all {what} of the ticker.");
    html.figure(title, note, |html| {
        html.bars(tickers.iter().take(TICKERS).enumerate().map(bar));
        if tickers.len() > TICKERS {
            let others = count_of((tickers.len() - TICKERS) as u64, "other ticker has", "other tickers have");
            html.cut(format_args!("{others} changed {what} too."));
        }
    });
}
