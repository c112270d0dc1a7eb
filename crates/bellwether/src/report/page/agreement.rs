//! Agreement: whether pairs of period and regime have the same signal for a ticker and a date.

use super::{Html, Topic, section};
use crate::human::{grouped, percent, portion};
use crate::report::Report;
use crate::report::facts::{Agreement, Facts};
use crate::report::svg::{Area, Plot, TextPosition};

/// Height of a row; must match the style of the names beside it.
const ROW_HEIGHT: f64 = 24.0;

impl Report {
    /// Pairs are compared if there are several.
    pub(super) fn agreement(&self, html: &mut Html) {
        let Some(finding) = self.facts.agreeing() else { return };
        let extremes = self.facts.agreement_extremes();
        let asides: Vec<String> = extremes
            .map(|[least, most]| {
                let named = |it: &Agreement| format!("{}, {}", self.facts.named(it), portion(it.same, it.both));
                format!("Least: {}. Most: {}.", named(least), named(most))
            })
            .into_iter()
            .collect();
        section(html, &Topic { id: "agreement", heading: "Agreement", finding, asides: &asides }, |html| {
            if let Some(agreements) = self.facts.agreements.as_deref().filter(|_| extremes.is_some()) {
                matrix(html, &self.facts, agreements);
            }
        });
    }
}

impl Facts {
    /// The finding: how often pairs agree; `None` with a single pair.
    pub(in crate::report) fn agreeing(&self) -> Option<String> {
        let share = |it: &Agreement| percent(it.same as f64 / it.both as f64);
        match (&self.agreements, self.agreement_extremes()) {
            _ if self.pairs.len() < 2 => None,
            (None, _) => Some(format!("Agreement of {} pairs is not counted", grouped(self.pairs.len() as u64))),
            (_, None) => Some("No two pairs have a signal for the same ticker and date".to_owned()),
            (_, Some([least, most])) if least.pairs == most.pairs => {
                Some(format!("{} agree on {} of their signals", self.named(least), share(least)))
            }
            (_, Some([least, most])) => {
                Some(format!("Pairs agree on {} to {} of their signals", share(least), share(most)))
            }
        }
    }

    /// The two pairs that agree least, and the two that agree most.
    pub(in crate::report) fn agreement_extremes(&self) -> Option<[&Agreement; 2]> {
        let compared = || self.agreements.iter().flatten().filter(|it| it.both > 0);
        let share = |it: &&Agreement| it.same as f64 / it.both as f64;
        let least = compared().min_by(|one, other| share(one).total_cmp(&share(other)))?;
        let most = compared().max_by(|one, other| share(one).total_cmp(&share(other)))?;
        Some([least, most])
    }

    /// The names of the two: `5d bear and 5d bull`.
    pub(in crate::report) fn named(&self, agreement: &Agreement) -> String {
        let [one, other] = agreement.pairs.map(|place| &self.pairs[place]);
        format!("{} {} and {} {}", one.period, one.regime, other.period, other.regime)
    }
}

/// A row and a column for each pair; columns are headed by row numbers.
fn matrix(html: &mut Html, facts: &Facts, agreements: &[Agreement]) {
    // The last pair has a row and no column of its own.
    let count = facts.pairs.len() - 1;
    let title = "Share of signals that agree";
    html.element("figure", &[], |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("b", &[], title);
            html.leaf(
                "span",
                &[],
                "In percent of the tickers and dates for which both have a signal. Column numbers refer to rows.",
            );
        });
        html.element("div", &[("class", &"map matrix")], |html| {
            html.element("ol", &[], |html| {
                for (place, pair) in facts.pairs.iter().enumerate() {
                    html.leaf("li", &[], format_args!("{}. {} {}", place + 1, pair.period, pair.regime));
                }
            });
            html.element("div", &[], |html| {
                let bottom = facts.pairs.len() as f64 * ROW_HEIGHT;
                let plot = Plot { id: &"plot-agreement", label: &title, height: bottom + 18.0, columns: count };
                plot.draw(html, |canvas| {
                    for agreement in agreements.iter().filter(|it| it.both > 0) {
                        let [column, row] = agreement.pairs;
                        let share = agreement.same as f64 / agreement.both as f64;
                        let top = row as f64 * ROW_HEIGHT;
                        let area = Area::column(column, count).between(top + 1.5, top + ROW_HEIGHT - 1.5);
                        let (named, shown) = (facts.named(agreement), portion(agreement.same, agreement.both));
                        let both = grouped(agreement.both);
                        canvas.mark(shade(share), area, format_args!("{named}\n{shown} of {both} agree"));
                        let spot = TextPosition::within(area, top + ROW_HEIGHT / 2.0 + 4.0);
                        canvas.text("cell", spot, format_args!("{:.0}", share * 100.0));
                    }
                    for column in 0..count {
                        let spot = TextPosition::within(Area::column(column, count), bottom + 12.0);
                        canvas.text("tick", spot, column + 1);
                    }
                });
            });
        });
    });
}

/// The class of a cell: how far it is from an agreement by chance, and in which direction.
fn shade(share: f64) -> &'static str {
    match share {
        ..0.1 => "less4",
        ..0.25 => "less3",
        ..0.4 => "less2",
        ..0.5 => "less1",
        ..0.6 => "more1",
        ..0.75 => "more2",
        ..0.9 => "more3",
        _ => "more4",
    }
}
