//! Which tickers have signals, and when.

use super::{Html, Topic, cut, figure, section};
use crate::numbers::{counted, grouped, portion};
use crate::report::Report;
use crate::report::facts::{Coverage, Covered};
use crate::report::svg::{Area, Plot};

/// How many stretches of time there is room for.
const COLUMNS: usize = 72;

/// How many tickers are drawn where none has gaps, and how many of those that have there is room for.
const ROWS: usize = 20;
const ROWS_WITH_GAPS: usize = 48;

/// The height of a row, which the style gives to the names beside it.
const ROW_HEIGHT: f64 = 16.0;

impl Report {
    pub(super) fn coverage(&self, html: &mut Html) {
        let coverage = self.facts.coverage(COLUMNS);
        let mut asides = vec![
            "A ticker is complete when it has a signal for each of its pairs of period and regime on every day on which any \
             ticker has one."
                .to_owned(),
        ];
        asides.extend(self.facts.beyond_the_plots());
        let finding = coverage.finding();
        section(html, &Topic { id: "coverage", heading: "Coverage", finding, asides: &asides }, |html| {
            if !coverage.axis.is_empty() {
                tickers(html, &coverage);
                map(html, &coverage);
            }
        });
    }
}

impl Coverage {
    /// What is to be said of it, in a line.
    pub(in crate::report) fn finding(&self) -> String {
        let all = self.all as u64;
        match self.incomplete as u64 {
            _ if self.axis.is_empty() => "No signal is dated from 1900 to 2099".to_owned(),
            0 => format!("No gaps in {}", counted(all, "ticker", "tickers")),
            1 => format!("1 of {} has gaps", counted(all, "ticker", "tickers")),
            some => format!("{} of {} have gaps", grouped(some), counted(all, "ticker", "tickers")),
        }
    }
}

/// How many tickers have signals.
fn tickers(html: &mut Html, coverage: &Coverage) {
    let Coverage { axis, days, tickers, .. } = coverage;
    let most = tickers.iter().copied().max().unwrap_or_default().max(1);
    let title = format!("Tickers with signals, by {}", axis.step.as_str());
    let note = format!("At most {}.", counted(most, "ticker", "tickers"));
    figure(html, &title, &note, |html| {
        Plot { id: &"plot-tickers", label: &title, height: 64.0, columns: axis.len() }.draw(html, |canvas| {
            for (place, (count, days)) in tickers.iter().zip(days).enumerate() {
                let top = 44.0 * (1.0 - *count as f64 / most as f64);
                let area = Area::column(place, axis.len()).between(top, 44.0);
                let (count, days) = (counted(*count, "ticker", "tickers"), counted(*days, "day", "days"));
                canvas.mark("bar", area, format_args!("{}\n{count}, {days} with signals", axis.in_words(place)));
            }
            canvas.rule("base", 44.0);
            canvas.times(axis, 62.0, 7);
        });
    });
}

/// What each ticker has of what it could have.
fn map(html: &mut Html, coverage: &Coverage) {
    let axis = &coverage.axis;
    let shown = &coverage.rows[..coverage.rows.len().min(coverage.incomplete.clamp(ROWS, ROWS_WITH_GAPS))];
    let title = format!("Signals of each ticker, by {}", axis.step.as_str());
    html.element("figure", &[], |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("b", &[], &title);
            html.element("span", &[("class", &"keys")], |html| {
                html.text("Those with the most gaps first. There is: ");
                let keys =
                    [("q0", "nothing"), ("q1", "under half"), ("q2", "over half"), ("q3", "over 90 %"), ("q4", "all")];
                keys.into_iter().for_each(|(class, text)| key(html, class, text));
            });
        });
        html.element("div", &[("class", &"map")], |html| {
            html.element("ol", &[], |html| shown.iter().for_each(|covered| html.leaf("li", &[], &covered.ticker)));
            html.element("div", &[], |html| cells(html, coverage, shown, &title));
            html.element("ol", &[], |html| {
                for covered in shown {
                    let (days, full) = covered.total();
                    html.leaf("li", &[], portion(days, full));
                }
            });
        });
        if let Some(next) = coverage.rows.get(shown.len()) {
            let (days, full) = next.total();
            let others = counted((coverage.all - shown.len()) as u64, "ticker that has", "tickers that have");
            let least = if days >= full { "all".to_owned() } else { format!("at least {}", portion(days, full)) };
            let (shown, all) = (shown.len(), grouped(coverage.all as u64));
            cut(
                html,
                format_args!("{shown} of {all} tickers are drawn. Left out: {others} {least} of what could be there."),
            );
        }
    });
}

/// An entry of the key: a swatch and what it means.
fn key(html: &mut Html, class: &str, text: &str) {
    html.element("span", &[], |html| {
        html.element("svg", &[("class", &"key"), ("aria-hidden", &"true"), ("viewBox", &"0 0 10 10")], |html| {
            html.shape("rect", &[("class", &class), ("x", &"1"), ("y", &"1"), ("width", &"8"), ("height", &"8")]);
        });
        html.text(text);
    });
}

fn cells(html: &mut Html, coverage: &Coverage, shown: &[Covered], title: &str) {
    let axis = &coverage.axis;
    let bottom = shown.len() as f64 * ROW_HEIGHT;
    Plot { id: &"plot-coverage", label: &title, height: bottom + 22.0, columns: axis.len() }.draw(html, |canvas| {
        for (row, covered) in shown.iter().enumerate() {
            let top = row as f64 * ROW_HEIGHT;
            for (place, (days, full)) in covered.days.iter().zip(&covered.full).enumerate() {
                let area = Area::column(place, axis.len()).between(top + 1.5, top + ROW_HEIGHT - 1.5);
                let (ticker, when) = (&covered.ticker, axis.in_words(place));
                let (said, could) = (grouped(*days), grouped(*full));
                canvas.mark(shade(*days, *full), area, format_args!("{ticker}, {when}\n{said} of {could}"));
            }
        }
        canvas.times(axis, bottom + 18.0, 6);
    });
}

/// The class of a cell.
fn shade(days: u64, full: u64) -> &'static str {
    match days as f64 / full.max(1) as f64 {
        0.0 => "q0",
        ..0.5 => "q1",
        ..0.9 => "q2",
        ..1.0 => "q3",
        _ => "q4",
    }
}

// What is drawn, and the one after it that says what is left out, are among those that are listed.
const _: () = assert!(ROWS_WITH_GAPS < Coverage::LISTED && ROWS <= ROWS_WITH_GAPS);
