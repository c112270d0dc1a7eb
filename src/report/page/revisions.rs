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
                let tables = [(&changes.signals, "signals"), (&changes.articles, "articles")];
                let tables = tables.into_iter().filter(|(rewrites, _)| rewrites.total.known > 0);
                tables.map(|(rewrites, what)| rewrites.tally(what)).collect()
            }
            (None, _) if self.work.runs.len() == 1 => {
                vec!["What a vendor does to its past shows from the second run on.".to_owned()]
            }
            (None, _) => Vec::new(),
        };
        let topic = Topic { id: "rewrites", heading: "The rewritten past", finding: self.rewritten(), asides: &asides };
        section(html, &topic, |html| {
            let Some(Revisions { signals, articles, .. }) = self.changes() else { return };
            let tables = [(signals, "signals"), (articles, "articles")];
            let changed = || tables.iter().filter(|(rewrites, _)| rewrites.total.changed > 0);
            html.element("div", &[("class", &"pair")], |html| {
                changed().for_each(|(rewrites, what)| by_age(html, rewrites, what));
            });
            for (rewrites, what) in changed() {
                by_month(html, rewrites, what);
                by_ticker(html, rewrites, what);
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
                let shares = [(&changes.signals, "signals"), (&changes.articles, "articles")];
                let shares = shares.into_iter().filter_map(|(rewrites, what)| rewrites.changed_share(what));
                let shares = shares.collect::<Vec<_>>().join(" and ");
                let (first, rest) = shares.split_at(1);
                format!("{}{rest} changed after they were first seen", first.to_uppercase())
            }
            (None, _) if self.work.runs.len() == 1 => "There is one run: nothing can have changed yet".to_owned(),
            (None, _) => "Nothing was rewritten".to_owned(),
        }
    }
}

impl Rewrites {
    /// The share that changed, in words; none where there is nothing that could have.
    fn changed_share(&self, what: &str) -> Option<String> {
        let rate = self.total.rate()?;
        Some(if self.total.changed == 0 {
            format!("none of the {what}")
        } else {
            format!("{} of the {what}", percent(rate))
        })
    }

    /// What changed, in a line.
    pub(in crate::report) fn tally(&self, what: &str) -> String {
        let total = &self.total;
        let turned = match total.flipped {
            0 => String::new(),
            flipped => format!(" ({} between buy and sell)", grouped(flipped)),
        };
        let (revisions, late) = (counted(total.revised, "revision", "revisions"), grouped(total.added_late));
        format!(
            "Of {} {what}: {revisions}{turned}, {late} added late, {} withdrawn.",
            grouped(total.known),
            grouped(total.withdrawn)
        )
    }

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

fn by_age(html: &mut Html, rewrites: &Rewrites, what: &'static str) {
    let note = format!("The share of the {what} that had this age at some time and changed at it.");
    figure(html, format_args!("Age of {what} when they changed"), note, |html| {
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

fn by_month(html: &mut Html, rewrites: &Rewrites, what: &str) {
    let months: Vec<_> = rewrites.by_month.iter().map(|(month, tally)| (month.start(), *tally)).collect();
    let starts: Vec<_> = months.iter().map(|(start, _)| *start).collect();
    let axis = Axis::of(&starts, Step::Month, COLUMNS);
    let changed = axis.sums(months.iter().map(|(start, tally)| (*start, tally.changed)));
    let known = axis.sums(months.iter().map(|(start, tally)| (*start, tally.known)));
    let rate = |place: usize| share(changed[place], known[place]);
    let most = (0..axis.len()).map(rate).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let title = format!("The {what} that changed, by the {} of their date", axis.step.as_str());
    let highest = (0..axis.len()).max_by(|one, other| rate(*one).total_cmp(&rate(*other)));
    let note = highest
        .map_or_else(String::new, |place| format!("At most {}, in {}.", percent(rate(place)), axis.in_words(place)));
    figure(html, &title, note, |html| {
        Plot { id: &format_args!("plot-rewrites-{what}"), label: &title, height: 96.0, columns: axis.len() }.draw(
            html,
            |canvas| {
                for place in 0..axis.len() {
                    let area = Area::column(place, axis.len()).between(76.0 * (1.0 - rate(place) / most), 76.0);
                    let (when, of) = (axis.in_words(place), grouped(known[place]));
                    let (some, rate) = (grouped(changed[place]), percent(rate(place)));
                    canvas.mark("alert", area, format_args!("{when}\n{some} of {of} changed, {rate}"));
                }
                canvas.rule("base", 76.0);
                canvas.times(&axis, 94.0, 7);
            },
        );
    });
}

fn by_ticker(html: &mut Html, rewrites: &Rewrites, what: &str) {
    let tickers = rewrites.most();
    let Some(&(_, most, _)) = tickers.first() else { return };
    figure(
        html,
        format_args!("Tickers with the most changed {what}"),
        format_args!("The {what} that changed, and their share of all of the ticker's."),
        |html| {
            html.element("div", &[("class", &"rows")], |html| {
                for (place, (ticker, changed, known)) in tickers.iter().take(TICKERS).enumerate() {
                    level(
                        html,
                        &Level {
                            id: &format_args!("plot-rewritten-{what}-{place}"),
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
