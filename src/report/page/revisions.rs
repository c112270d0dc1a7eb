//! What the vendor did to its past.

use super::{Html, Level, Topic, cut, figure, level, section};
use crate::audit::revisions::{Age, Revisions, Rewrites};
use crate::interface::Ticker;
use crate::numbers::{counted, grouped, percent};
use crate::report::Report;
use crate::report::facts::{Axis, Step};
use crate::report::svg::{Area, Plot};

/// How many stretches of time there is room for.
const COLUMNS: usize = 72;

/// How many tickers are named.
const TICKERS: usize = 10;

impl Report {
    pub(super) fn rewrites(&self, html: &mut Html) {
        let asides = match (self.changes(), &self.revisions) {
            (Some(changes), _) => {
                vec![tally(&changes.signals, "signals"), tally(&changes.articles, "scores of articles")]
            }
            (None, None) if self.work.runs.len() == 1 => {
                vec!["What a vendor does to its past shows from the second run on.".to_owned()]
            }
            (None, _) => Vec::new(),
        };
        let topic = Topic { id: "rewrites", heading: "The rewritten past", finding: self.rewritten(), asides: &asides };
        section(html, &topic, |html| {
            if let Some(Revisions { signals, articles, .. }) = self.changes() {
                html.element("div", &[("class", &"pair")], |html| {
                    by_age(html, signals, "signals");
                    if articles.total.known > 0 {
                        by_age(html, articles, "articles");
                    }
                });
                by_month(html, signals);
                by_ticker(html, signals);
            }
        });
    }

    /// What was changed of the past, if anything was.
    pub(in crate::report) fn changes(&self) -> Option<&Revisions> {
        self.revisions.as_ref().filter(|found| found.signals.total.changed + found.articles.total.changed > 0)
    }

    /// What became of the past, in a line.
    pub(in crate::report) fn rewritten(&self) -> String {
        match (self.changes(), &self.revisions) {
            (Some(changes), _) => {
                let total = &changes.signals.total;
                let rate = percent(total.rate().unwrap_or_default());
                format!("{rate} of the signals changed after they were first seen")
            }
            (None, None) if self.work.runs.len() == 1 => "There is one run: nothing can have changed yet".to_owned(),
            (None, _) => "Nothing was rewritten".to_owned(),
        }
    }
}

impl Rewrites {
    /// The tickers of which most cells changed, with their cells that changed and that there are.
    pub(in crate::report) fn most(&self) -> Vec<(&Ticker, u64, u64)> {
        let changed = self.by_ticker.iter().filter(|(_, tally)| tally.changed > 0);
        let mut tickers: Vec<_> = changed.map(|(ticker, tally)| (ticker, tally.changed, tally.known)).collect();
        tickers.sort_by_key(|(_, changed, _)| std::cmp::Reverse(*changed));
        tickers
    }

    /// By age, the share of the cells that changed.
    pub(in crate::report) fn ages(&self) -> impl Iterator<Item = (Age, f64)> {
        self.by_age.iter().map(|(age, tally)| (*age, tally.rate().unwrap_or_default()))
    }
}

/// A share of something that there may be none of.
fn share(some: u64, all: u64) -> f64 {
    some as f64 / all.max(1) as f64
}

/// What changed, in a line.
fn tally(rewrites: &Rewrites, what: &str) -> String {
    let total = &rewrites.total;
    let [revised, late, withdrawn, flipped] =
        [total.revised, total.added_late, total.withdrawn, total.flipped].map(grouped);
    let turned = if total.flipped > 0 { format!(" ({flipped} between buy and sell)") } else { String::new() };
    format!(
        "Of {} {what}: {revised} revisions{turned}, {late} added late, {withdrawn} withdrawn.",
        grouped(total.known)
    )
}

fn by_age(html: &mut Html, rewrites: &Rewrites, what: &'static str) {
    let note = "The share of the cells of an age that changed when they had it.";
    figure(html, format_args!("How old {what} were when they changed"), note, |html| {
        html.element("div", &[("class", &"rows")], |html| {
            let most = rewrites.ages().map(|(_, rate)| rate).fold(f64::MIN_POSITIVE, f64::max);
            for (place, (age, rate)) in rewrites.ages().enumerate() {
                level(
                    html,
                    &Level {
                        id: &format_args!("plot-age-{what}-{place}"),
                        name: &age,
                        class: "alert",
                        share: rate / most,
                        value: &percent(rate),
                    },
                );
            }
        });
    });
}

fn by_month(html: &mut Html, rewrites: &Rewrites) {
    let months: Vec<_> = rewrites.by_month.iter().map(|(month, tally)| (month.start(), *tally)).collect();
    let starts: Vec<_> = months.iter().map(|(start, _)| *start).collect();
    let axis = Axis::of(&starts, Step::Month, COLUMNS);
    let changed = axis.sums(months.iter().map(|(start, tally)| (*start, tally.changed)));
    let known = axis.sums(months.iter().map(|(start, tally)| (*start, tally.known)));
    let rate = |place: usize| share(changed[place], known[place]);
    let most = (0..axis.len()).map(rate).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let title = format!("Signals that changed, by the {} of their date", axis.step.as_str());
    let highest = (0..axis.len()).max_by(|one, other| rate(*one).total_cmp(&rate(*other)));
    let note = highest
        .map_or_else(String::new, |place| format!("At most {}, in {}.", percent(rate(place)), axis.in_words(place)));
    figure(html, &title, note, |html| {
        Plot { id: &"plot-rewrites", label: &title, height: 96.0, columns: axis.len() }.draw(html, |canvas| {
            for place in 0..axis.len() {
                let area = Area::column(place, axis.len()).between(76.0 * (1.0 - rate(place) / most), 76.0);
                let (when, of) = (axis.in_words(place), grouped(known[place]));
                let (some, rate) = (grouped(changed[place]), percent(rate(place)));
                canvas.mark("alert", area, format_args!("{when}\n{some} of {of} changed, {rate}"));
            }
            canvas.rule("base", 76.0);
            canvas.times(&axis, 94.0, 7);
        });
    });
}

fn by_ticker(html: &mut Html, rewrites: &Rewrites) {
    let tickers = rewrites.most();
    let Some(&(_, most, _)) = tickers.first() else { return };
    figure(
        html,
        "The most rewritten tickers",
        "Signals that changed, and their share of all of the ticker's.",
        |html| {
            html.element("div", &[("class", &"rows")], |html| {
                for (place, (ticker, changed, known)) in tickers.iter().take(TICKERS).enumerate() {
                    level(
                        html,
                        &Level {
                            id: &format_args!("plot-rewritten-{place}"),
                            name: ticker,
                            class: "alert",
                            share: *changed as f64 / most as f64,
                            value: &format_args!("{}, {}", grouped(*changed), percent(share(*changed, *known))),
                        },
                    );
                }
            });
            if tickers.len() > TICKERS {
                let others = counted((tickers.len() - TICKERS) as u64, "other ticker has", "other tickers have");
                cut(html, format_args!("{others} signals that changed too."));
            }
        },
    );
}
