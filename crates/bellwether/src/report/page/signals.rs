//! Signals: buy or sell, and with what confidence.

mod heat;

use super::figures::quarters;
use super::{Html, Topic};
use crate::report::Report;
use crate::report::facts::{Axis, Bins, Facts, Histogram, PairFacts, SignalTotals, Step};
use crate::report::svg::{Anchor, Area, Plot};
use crate::text::human::{count_of, group_digits, portion};

/// The most buckets in the plot of a pair.
const BUCKETS: usize = 64;

/// The most pairs that have a plot each; more are the rows of a single one.
const MANY: usize = 27;

/// The two strips in the plot of a pair: share of buys, and mean confidence.
const SHARE: (f64, f64) = (0.0, 46.0);
const CONFIDENCE: (f64, f64) = (54.0, 84.0);

impl Report {
    pub(super) fn signals(&self, html: &mut Html) {
        let facts = &self.facts;
        let finding = facts.buying();
        let mut asides = Vec::new();
        let share = |pair: &&PairFacts| pair.total().buy_share().unwrap_or_default();
        let least = facts.pairs.iter().min_by(|one, other| share(one).total_cmp(&share(other)));
        let most = facts.pairs.iter().max_by(|one, other| share(one).total_cmp(&share(other)));
        if let (Some(least), Some(most), true) = (least, most, facts.pairs.len() > 1) {
            let share_of = |pair: &PairFacts| {
                let totals = pair.total();
                format!("{} {}, {}", pair.period, pair.regime, portion(totals.buys, totals.rows))
            };
            asides.push(format!("Lowest for {}; highest for {}.", share_of(least), share_of(most)));
        }
        asides.extend(facts.beyond_the_plots());
        let topic = Topic::new("signals", "Buy and sell", finding).with_asides(&asides);
        if facts.pairs.len() > MANY {
            return html.section(&topic, |html| heat::map(html, facts));
        }
        let axis = Axis::of(&facts.days, Step::Week, BUCKETS);
        html.section(&topic, |html| {
            let of_pairs: Vec<Vec<SignalTotals>> =
                facts.pairs.iter().map(|pair| pair.over(&facts.days, &axis)).collect();
            let scale = scale(&of_pairs);
            let note = |html: &mut Html| {
                html.element("span", &[], |html| {
                    html.text("Top: share of signals that are ");
                    html.leaf("em", &[("class", &"say-buy")], "buy");
                    html.text(" and ");
                    html.leaf("em", &[("class", &"say-sell")], "sell");
                    let (low, high) = scale;
                    html.text(format_args!(
                        "; the dashed line is at 50 %. Bottom: mean confidence, from {low:.2} to {high:.2}."
                    ));
                });
            };
            html.figure_with_note(format_args!("By period, regime and {}", axis.step.as_str()), note, |html| {
                html.element("div", &[("class", &"multiples")], |html| {
                    for (pair, totals) in facts.pairs.iter().zip(&of_pairs) {
                        multiple(html, pair, totals, &axis, scale);
                    }
                });
            });
        });
    }

    pub(super) fn confidence(&self, html: &mut Html) {
        let finding = self.facts.trusting();
        let [buys, sells] = &self.facts.confidences;
        let [of_buys, of_sells] = Histogram::bins([buys, sells]);
        let mut asides = Vec::new();
        let left_out = of_buys.left_out + of_sells.left_out;
        if left_out > 0 {
            asides.push(format!("{} confidences fall outside the plotted range.", group_digits(left_out)));
        }
        html.section(&Topic::new("confidence", "Confidence", finding).with_asides(&asides), |html| {
            let title = "Confidence of buys and sells";
            let note = format!("Signals by confidence, in steps of {}.", of_buys.width);
            html.figure(title, note, |html| {
                let bins = of_buys.counts.len();
                Plot { id: &"plot-confidence", label: &title, height: 204.0, columns: bins }.draw(html, |canvas| {
                    let most = of_buys.counts.iter().chain(&of_sells.counts).copied().max().unwrap_or_default().max(1);
                    let height = |count: u64| 88.0 * count as f64 / most as f64;
                    for (bin, count) in of_buys.counts.iter().enumerate() {
                        let area = Area::column(bin, bins).between(90.0 - height(*count), 90.0);
                        canvas.mark(
                            "buy",
                            area,
                            format_args!("confidence {}\n{}", of_buys.edges(bin), count_of(*count, "buy", "buys")),
                        );
                    }
                    for (bin, count) in of_sells.counts.iter().enumerate() {
                        let area = Area::column(bin, bins).between(92.0, 92.0 + height(*count));
                        canvas.mark(
                            "sell",
                            area,
                            format_args!("confidence {}\n{}", of_sells.edges(bin), count_of(*count, "sell", "sells")),
                        );
                    }
                    let side = emptier_side([&of_buys, &of_sells]);
                    canvas.text("name-buy", side.at(14.0), format_args!("{}", count_of(buys.count(), "buy", "buys")));
                    canvas.text(
                        "name-sell",
                        side.at(178.0),
                        format_args!("{}", count_of(sells.count(), "sell", "sells")),
                    );
                    quarters(canvas, of_buys.range(), 200.0);
                });
            });
        });
    }
}

impl Facts {
    /// The finding: how many signals are buys.
    pub(in crate::report) fn buying(&self) -> String {
        let all = self.totals();
        format!("{} of signals are buys", portion(all.buys, all.rows))
    }

    /// The finding: how confident signals are.
    pub(in crate::report) fn trusting(&self) -> String {
        self.totals()
            .mean_confidence()
            .map_or_else(|| "No signals".to_owned(), |mean| format!("Mean confidence is {mean:.3}"))
    }
}

/// The side of a plot that has fewer marks, where there is room for a label.
fn emptier_side(bins: [&Bins; 2]) -> Anchor {
    let third = bins[0].counts.len() / 3;
    let near = |counts: &[u64]| counts.iter().sum::<u64>();
    let left: u64 = bins.iter().map(|bins| near(&bins.counts[..third])).sum();
    let right: u64 = bins.iter().map(|bins| near(&bins.counts[bins.counts.len() - third..])).sum();
    if left <= right { Anchor::Start } else { Anchor::End }
}

/// A common scale for mean confidences in all plots, rounded outwards to hundredths.
fn scale(of_pairs: &[Vec<SignalTotals>]) -> (f64, f64) {
    let means = || of_pairs.iter().flatten().filter_map(|totals| totals.mean_confidence());
    let low = means().fold(f64::INFINITY, f64::min);
    let high = means().fold(f64::NEG_INFINITY, f64::max);
    match (low.is_finite(), high.is_finite()) {
        (true, true) => ((low * 100.0).floor() / 100.0, (high * 100.0).floor() / 100.0 + 0.01),
        _ => (0.0, 1.0),
    }
}

/// The plot of one pair.
fn multiple(html: &mut Html, pair: &PairFacts, totals: &[SignalTotals], axis: &Axis, (low, high): (f64, f64)) {
    let PairFacts { period, regime, .. } = pair;
    let total = pair.total();
    let buys = portion(total.buys, total.rows);
    let mean = total.mean_confidence().unwrap_or_default();
    html.element("div", &[], |html| {
        html.element("div", &[("class", &"name")], |html| {
            html.leaf("b", &[], format_args!("{period} {regime}"));
            html.element("span", &[], |html| {
                html.leaf("span", &[("class", &"say-buy")], &buys);
                html.text(format_args!(" · {mean:.3}"));
            });
        });
        let id = format!("plot-signals-{period}-{regime}");
        let label = format!("{period} {regime}: {buys} buys, mean confidence {mean:.3}");
        Plot { id: &id, label: &label, height: 104.0, columns: axis.len() }.draw(html, |canvas| {
            for (index, totals) in totals.iter().enumerate() {
                let Some(share) = totals.buy_share() else { continue };
                let (top, bottom) = SHARE;
                // A little wider than its share, so that rounding leaves no line between two of them.
                let column = Area::column(index, axis.len());
                let area = Area { width: (1.1 / axis.len() as f64).min(1.0 - column.x), ..column };
                let edge = bottom - share * (bottom - top);
                canvas.ground("sell flush", area.between(top, edge));
                let (when, rows) = (axis.in_words(index), group_digits(totals.rows));
                let (buys, mean) = (portion(totals.buys, totals.rows), totals.mean_confidence().unwrap_or_default());
                canvas.mark(
                    "buy flush",
                    area.between(edge, bottom),
                    format_args!("{when}\n{buys} of {rows} buy\nconfidence {mean:.3}"),
                );
            }
            canvas.rule("half", (SHARE.0 + SHARE.1) / 2.0);
            let (top, bottom) = CONFIDENCE;
            let point = |(index, totals): (usize, &SignalTotals)| {
                let mean = totals.mean_confidence()?;
                let x = (index as f64 + 0.5) / axis.len() as f64;
                Some((x, (high - mean) / (high - low) * (bottom - top)))
            };
            canvas.line("line", top, bottom - top, &totals.iter().enumerate().map(point).collect::<Vec<_>>());
            canvas.rule("base", bottom);
            canvas.times(axis, 101.0, 4);
        });
    });
}
