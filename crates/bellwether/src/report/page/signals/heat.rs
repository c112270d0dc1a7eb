//! Buys and sells of many pairs, in one plot: a row for each, the most one-sided first.

use crate::report::facts::{Axis, Facts, PairFacts, SignalTotals, Step};
use crate::report::html::Html;
use crate::report::page::{Map, MapRow};
use crate::text::human::{group_digits, portion};

/// The most buckets.
const BUCKETS: usize = 24;

/// The plot of all pairs.
pub(super) fn map(html: &mut Html, facts: &Facts) {
    let one_sided = |pair: &PairFacts| pair.total().buy_share().map_or(0.0, |share| (share - 0.5).abs());
    let mut pairs: Vec<&PairFacts> = facts.pairs.iter().collect();
    pairs.sort_by(|one, other| one_sided(other).total_cmp(&one_sided(one)));
    let axis = Axis::of(&facts.days, Step::Month, BUCKETS);
    let title = format!("Share of buys by period, regime and {}", axis.step.as_str());
    let note = "The most one-sided pairs first. The color is the distance from as many buys as sells; on the right, the share of \
                all signals that are buys.";
    let rows = pairs.into_iter().map(|pair| row(pair, facts, &axis)).collect();
    html.figure(&title, note, |html| html.map(&Map { id: "plot-signals", title: &title, axis: &axis, rows }));
}

fn row(pair: &PairFacts, facts: &Facts, axis: &Axis) -> MapRow {
    let name = format!("{} {}", pair.period, pair.regime);
    let cell = |(index, totals): (usize, SignalTotals)| {
        let (when, rows) = (axis.in_words(index), group_digits(totals.rows));
        let buys = portion(totals.buys, totals.rows);
        (shade(totals.buy_share()), format!("{name}, {when}\n{buys} of {rows} buy"))
    };
    let cells = pair.over(&facts.days, axis).into_iter().enumerate().map(cell).collect();
    let all = pair.total();
    MapRow { name, cells, value: portion(all.buys, all.rows) }
}

/// The class of a cell, by its share of buys.
fn shade(share: Option<f64>) -> &'static str {
    match share {
        None => "q0",
        Some(..0.2) => "sell4",
        Some(..0.35) => "sell3",
        Some(..0.45) => "sell2",
        Some(..0.5) => "sell1",
        Some(..0.55) => "buy1",
        Some(..0.65) => "buy2",
        Some(..0.8) => "buy3",
        Some(_) => "buy4",
    }
}
