//! Coverage: which tickers have signals, and when.

use super::{Along, Columns, Html, Map, MapRow, Topic};
use crate::report::Report;
use crate::report::facts::{Axis, Coverage, TickerCoverage};
use crate::text::human::{count_of, group_digits, portion};

/// The most buckets of a plot.
const BUCKETS: usize = 72;

/// The most tickers with gaps that are shown.
const ROWS: usize = 48;

impl Report {
    pub(super) fn coverage(&self, html: &mut Html) {
        let coverage = self.facts.coverage(BUCKETS);
        let mut asides = vec![
            "A ticker is complete when it has a signal for each of its period and regime pairs on every day that any \
             ticker has one for that pair."
                .to_owned(),
        ];
        asides.extend(self.facts.beyond_the_plots());
        let finding = coverage.finding();
        html.section(&Topic::new("coverage", "Coverage", finding).with_asides(&asides), |html| {
            if !coverage.axis.is_empty() {
                tickers(html, &coverage);
                if coverage.incomplete > 0 {
                    map(html, &coverage);
                }
            }
        });
    }
}

impl Coverage {
    /// The finding: how many tickers have gaps.
    pub(in crate::report) fn finding(&self) -> String {
        let all = self.all as u64;
        match self.incomplete as u64 {
            _ if self.axis.is_empty() => "No signals dated between 1900 and 2099".to_owned(),
            0 => format!("No gaps in {}", count_of(all, "ticker", "tickers")),
            1 => format!("1 of {} has gaps", count_of(all, "ticker", "tickers")),
            some => format!("{} of {} have gaps", group_digits(some), count_of(all, "ticker", "tickers")),
        }
    }
}

/// The number of tickers with signals over time.
fn tickers(html: &mut Html, coverage: &Coverage) {
    let Coverage { axis, days, tickers, .. } = coverage;
    let most = tickers.iter().copied().max().unwrap_or_default().max(1);
    let column = |(index, (count, days)): (usize, (&u64, &u64))| {
        let (tickers, days) = (count_of(*count, "ticker", "tickers"), count_of(*days, "day", "days"));
        let label = format!("{}\n{tickers}, {days} with signals", axis.in_words(index));
        Some((*count as f64 / most as f64, label))
    };
    html.columns(&Columns {
        id: "plot-tickers".to_owned(),
        title: format!("Tickers with signals, by {}", axis.step.as_str()),
        note: format!("Peak: {}.", count_of(most, "ticker", "tickers")),
        class: "bar",
        height: 64.0,
        along: Along::Time(axis),
        columns: tickers.iter().zip(days).enumerate().map(column).collect(),
    });
}

/// The coverage map, a row per ticker.
fn map(html: &mut Html, coverage: &Coverage) {
    let axis = &coverage.axis;
    let shown = &coverage.rows[..coverage.incomplete.min(ROWS)];
    let title = format!("Tickers with gaps, by {}", axis.step.as_str());
    let keys = |html: &mut Html| {
        html.element("span", &[("class", &"keys")], |html| {
            html.text("Those with the most gaps first. Present: ");
            let keys = [("q0", "none"), ("q1", "under half"), ("q2", "over half"), ("q3", "over 90 %"), ("q4", "all")];
            keys.into_iter().for_each(|(class, text)| html.key(class, text));
        });
    };
    html.figure_with_note(&title, keys, |html| {
        let rows = shown.iter().map(|covered| row(covered, axis)).collect();
        html.map(&Map { id: "plot-coverage", title: &title, axis, rows });
        let mut rest = Vec::new();
        if let Some(next) = coverage.rows.get(shown.len()).filter(|_| coverage.incomplete > shown.len()) {
            let (days, full) = next.total();
            let others = count_of((coverage.incomplete - shown.len()) as u64, "other has", "others have");
            rest.push(format!("{others} at least {} of their possible signals", portion(days, full)));
        }
        if coverage.all > coverage.incomplete {
            let complete = count_of((coverage.all - coverage.incomplete) as u64, "ticker is", "tickers are");
            rest.push(format!("{complete} complete"));
        }
        if !rest.is_empty() {
            html.cut(format_args!("{}.", rest.join("; ")));
        }
    });
}

fn row(covered: &TickerCoverage, axis: &Axis) -> MapRow {
    let cell = |(index, (days, full)): (usize, (&u64, &u64))| {
        let (ticker, when) = (&covered.ticker, axis.in_words(index));
        let (present, possible) = (group_digits(*days), group_digits(*full));
        (shade(*days, *full), format!("{ticker}, {when}\n{present} of {possible}"))
    };
    let cells = covered.days.iter().zip(&covered.full).enumerate().map(cell).collect();
    let (days, full) = covered.total();
    MapRow { name: covered.ticker.clone(), cells, value: portion(days, full) }
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

// The tickers shown, and the first one left out, must be among those listed.
const _: () = assert!(ROWS < Coverage::LISTED);
