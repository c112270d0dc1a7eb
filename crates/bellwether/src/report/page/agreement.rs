//! Agreement: whether pairs of period and regime have the same signal for a ticker and a date.

use bellwether_statistics::CONFIDENCE;
use bellwether_statistics::distributions::normal_tail;
use bellwether_statistics::mean::mean;

use super::{Html, Topic};
use crate::report::Report;
use crate::report::facts::{Agreement, Facts};
use crate::report::svg::{Area, Plot, TextPosition};
use crate::text::human::{count_of, group_digits, percent, portion, round};

/// Height of a row; must match the style of the names beside it.
const ROW_HEIGHT: f64 = 24.0;

impl Report {
    /// Pairs are compared if there are several.
    pub(super) fn agreement(&self, html: &mut Html) {
        let Some(finding) = self.facts.agreeing() else { return };
        let extremes = self.facts.agreement_extremes();
        let asides: Vec<String> = extremes
            .map(|[least, most]| {
                let named = |it: &Agreement| format!("{}, {}", self.facts.pair_names(it), it.in_words());
                format!("Least: {}. Most: {}.", named(least), named(most))
            })
            .into_iter()
            .chain(self.facts.on_kappa())
            .collect();
        html.section(&Topic::new("agreement", "Agreement", finding).with_asides(&asides), |html| {
            if let Some(agreements) = self.facts.agreements.as_deref().filter(|_| extremes.is_some()) {
                matrix(html, &self.facts, agreements);
            }
        });
    }
}

impl Facts {
    /// The finding: how often pairs agree; `None` with a single pair.
    pub(in crate::report) fn agreeing(&self) -> Option<String> {
        let share = |it: &Agreement| percent(it.rate().unwrap_or_default());
        match (&self.agreements, self.agreement_extremes()) {
            _ if self.pairs.len() < 2 => None,
            (None, _) => Some(format!("Agreement of {} pairs is not counted", group_digits(self.pairs.len() as u64))),
            (_, None) => Some("No two pairs have a signal for the same ticker and date".to_owned()),
            (_, Some([least, most])) if least.pairs == most.pairs => {
                Some(format!("{} agree on {}", self.pair_names(least), least.in_words()))
            }
            (_, Some([least, most])) => Some(match least.kappa().zip(most.kappa()) {
                None => format!("Pairs agree on {} to {} of their signals", share(least), share(most)),
                Some((low, high)) if self.are_apart(least, most) => {
                    format!("Agreement of pairs beyond chance is {} to {}", round(low, 2), round(high, 2))
                }
                Some(_) => {
                    let mean = self.mean_kappa().unwrap_or_default();
                    format!("Agreement of pairs beyond chance is {}, and differs by no more than noise", round(mean, 2))
                }
            }),
        }
    }

    /// The two pairs that agree least, and the two that agree most: beyond chance, if that was counted.
    pub(in crate::report) fn agreement_extremes(&self) -> Option<[&Agreement; 2]> {
        let all: Vec<&Agreement> = self.agreements.iter().flatten().filter(|it| it.both > 0).collect();
        let has_kappa = all.iter().any(|it| it.kappa().is_some());
        let rank = |it: &Agreement| if has_kappa { it.kappa() } else { it.rate() };
        let ranked = || all.iter().filter_map(|it| Some((*it, rank(it)?)));
        let least = ranked().min_by(|(_, one), (_, other)| one.total_cmp(other))?.0;
        let most = ranked().max_by(|(_, one), (_, other)| one.total_cmp(other))?.0;
        Some([least, most])
    }

    /// Whether two agreements, the lowest and the highest of all, differ by more than noise. The signals of a date may all
    /// repeat one another, so a date counts as one observation.
    fn are_apart(&self, least: &Agreement, most: &Agreement) -> bool {
        let compared = self.agreements.iter().flatten().filter(|it| it.kappa().is_some()).count() as f64;
        let (kappas, errors) = (least.kappa().zip(most.kappa()), least.kappa_error(self).zip(most.kappa_error(self)));
        let (Some((low, high)), Some((one, other))) = (kappas, errors) else { return false };
        let z = (high - low) / (one.powi(2) + other.powi(2)).sqrt().max(f64::MIN_POSITIVE);
        2.0 * normal_tail(z) * compared * (compared - 1.0) / 2.0 < 1.0 - CONFIDENCE
    }

    /// The mean agreement beyond chance.
    fn mean_kappa(&self) -> Option<f64> {
        let kappas: Vec<f64> = self.agreements.iter().flatten().filter_map(Agreement::kappa).collect();
        mean(&kappas)
    }

    /// What the numbers beyond chance are.
    fn on_kappa(&self) -> Option<String> {
        let is_counted = self.agreements.iter().flatten().any(|it| it.kappa().is_some());
        is_counted.then(|| {
            "Agreement beyond chance is Cohen's kappa: 0 if two pairs agree as often as two that buy as often and know \
             nothing of each other, 1 if they always agree, negative if they agree less often than by chance."
                .to_owned()
        })
    }

    /// The names of the two: `5d bear and 5d bull`.
    pub(in crate::report) fn pair_names(&self, agreement: &Agreement) -> String {
        let [one, other] = agreement.pairs.map(|index| &self.pairs[index]);
        format!("{} {} and {} {}", one.period, one.regime, other.period, other.regime)
    }
}

impl Agreement {
    /// The share that agrees, what chance would give, and the agreement beyond it.
    pub(in crate::report) fn in_words(&self) -> String {
        let share = portion(self.same, self.both);
        match (self.by_chance(), self.kappa()) {
            (Some(chance), Some(kappa)) => {
                format!("{share} where chance gives {}: {} beyond it", percent(chance), round(kappa, 2))
            }
            (Some(_), None) => format!("{share} where chance gives 100 %"),
            (None, _) => share,
        }
    }

    fn kappa_error(&self, facts: &Facts) -> Option<f64> {
        self.answers()?.kappa_error(facts.day_count())
    }

    /// The class of its cell: how far it is from agreement by chance, and in which direction.
    fn shade(&self) -> &'static str {
        // Where chance explains everything there is nothing beyond it; where it was not counted, it is taken for a half.
        let rate = self.rate().unwrap_or_default();
        match self.answers().map_or(2.0 * rate - 1.0, |answers| answers.kappa().unwrap_or_default()) {
            ..-0.6 => "less4",
            ..-0.3 => "less3",
            ..-0.1 => "less2",
            ..0.0 => "less1",
            ..0.1 => "more1",
            ..0.3 => "more2",
            ..0.6 => "more3",
            _ => "more4",
        }
    }
}

/// A row and a column for each pair; columns are headed by row numbers.
fn matrix(html: &mut Html, facts: &Facts, agreements: &[Agreement]) {
    // The last pair has a row and no column of its own.
    let count = facts.pairs.len() - 1;
    let title = "Share of signals that agree";
    let note = "In percent of the tickers and dates for which both have a signal; the color is the agreement beyond chance. \
                Column numbers refer to rows.";
    html.figure(title, note, |html| {
        html.element("div", &[("class", &"map matrix")], |html| {
            html.element("ol", &[], |html| {
                for (index, pair) in facts.pairs.iter().enumerate() {
                    html.leaf("li", &[], format_args!("{}. {} {}", index + 1, pair.period, pair.regime));
                }
            });
            html.element("div", &[], |html| {
                let bottom = facts.pairs.len() as f64 * ROW_HEIGHT;
                let plot = Plot { id: &"plot-agreement", label: &title, height: bottom + 18.0, columns: count };
                plot.draw(html, |canvas| {
                    for agreement in agreements.iter().filter(|it| it.both > 0) {
                        let [column, row] = agreement.pairs;
                        let share = agreement.rate().unwrap_or_default();
                        let top = row as f64 * ROW_HEIGHT;
                        let area = Area::column(column, count).between(top + 1.5, top + ROW_HEIGHT - 1.5);
                        let (named, shown) = (facts.pair_names(agreement), agreement.in_words());
                        let both = count_of(agreement.both, "signal", "signals");
                        canvas.mark(agreement.shade(), area, format_args!("{named}\nof {both} each, {shown}"));
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
