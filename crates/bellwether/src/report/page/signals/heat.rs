//! Buys and sells of many pairs, in one plot: a row for each, the most one-sided first.

use crate::report::facts::{Axis, Facts, PairFacts, Step};
use crate::report::html::Html;
use crate::report::svg::{Area, Plot};
use crate::text::human::{group_digits, portion};

/// The most buckets.
const COLUMNS: usize = 24;

/// Height of a row; must match the style of the names beside it.
const ROW_HEIGHT: f64 = 16.0;

/// The plot of all pairs.
pub(super) fn map(html: &mut Html, facts: &Facts) {
    let one_sided = |pair: &PairFacts| pair.total().buy_share().map_or(0.0, |share| (share - 0.5).abs());
    let mut pairs: Vec<&PairFacts> = facts.pairs.iter().collect();
    pairs.sort_by(|one, other| one_sided(other).total_cmp(&one_sided(one)));
    let axis = Axis::of(&facts.days, Step::Month, COLUMNS);
    let title = format!("Share of buys by period, regime and {}", axis.step.as_str());
    let note = "The most one-sided pairs first. The color is the distance from as many buys as sells; on the right, the share of \
                all signals that are buys.";
    html.figure(&title, note, |html| {
        html.element("div", &[("class", &"map")], |html| {
            html.element("ol", &[], |html| {
                pairs.iter().for_each(|pair| html.leaf("li", &[], format_args!("{} {}", pair.period, pair.regime)));
            });
            html.element("div", &[], |html| cells(html, facts, &pairs, (&axis, &title)));
            html.element("ol", &[], |html| {
                for totals in pairs.iter().map(|pair| pair.total()) {
                    html.leaf("li", &[], portion(totals.buys, totals.rows));
                }
            });
        });
    });
}

fn cells(html: &mut Html, facts: &Facts, pairs: &[&PairFacts], (axis, title): (&Axis, &str)) {
    let bottom = pairs.len() as f64 * ROW_HEIGHT;
    Plot { id: &"plot-signals", label: &title, height: bottom + 22.0, columns: axis.len() }.draw(html, |canvas| {
        for (row, pair) in pairs.iter().enumerate() {
            let top = row as f64 * ROW_HEIGHT;
            for (index, totals) in pair.over(&facts.days, axis).into_iter().enumerate() {
                let area = Area::column(index, axis.len()).between(top + 1.5, top + ROW_HEIGHT - 1.5);
                let (when, rows) = (axis.in_words(index), group_digits(totals.rows));
                let (period, regime, buys) = (pair.period, pair.regime, portion(totals.buys, totals.rows));
                canvas.mark(
                    shade(totals.buy_share()),
                    area,
                    format_args!("{period} {regime}, {when}\n{buys} of {rows} buy"),
                );
            }
        }
        canvas.times(axis, bottom + 18.0, 6);
    });
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
