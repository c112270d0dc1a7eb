//! The status as one self-contained page, in the style of the reports: how each definition is doing, the last 90 days of
//! its runs as a calendar, and each of those runs with its rows, its duration and the share of cells that it found
//! rewritten.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use bellwether::export::REPORT;
use bellwether::report::{Frame, Heading, Html, STYLE, Topic};
use bellwether::text::human::{bytes, count_of, group_digits, percent, took};
use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use url::Url;

use super::record::{Outcome, PublishedRecord, RunRecord};
use super::status::{Overview, Status, Verdict, to_minute};

/// The style of the reports, and the colors of states.
static PAGE_STYLE: LazyLock<String> = LazyLock::new(|| format!("{STYLE}{}", include_str!("status.css")));

/// How many days of runs are shown.
const DAYS: u64 = 90;

/// How many runs of a definition are listed.
const LISTED: usize = 100;

/// How often the page reloads itself.
const REFRESH: Duration = Duration::from_secs(60);

/// The side of a day in the calendar, and the distance between two.
const SIDE: u32 = 12;
const STEP: u32 = 15;

/// The height of the names of months above it.
const MONTHS: u32 = 18;

/// What the links to reports lead to.
#[derive(Clone, Copy, Debug)]
pub enum Links<'a> {
    /// Pages of the same server.
    Served,
    /// Files in a data folder.
    Files(&'a Path),
}

impl Links<'_> {
    fn report(self, name: &str) -> Option<String> {
        match self {
            Self::Served => Some(format!("/reports/{name}")),
            Self::Files(data) => {
                let file = data.join("datasets").join(name).join("latest").join(REPORT);
                Some(Url::from_file_path(std::path::absolute(file).ok()?).ok()?.to_string())
            }
        }
    }
}

/// Renders the status as HTML.
pub fn page(overview: &Overview, links: Links<'_>) -> String {
    let frame = Frame {
        title: "Status",
        kind: "status",
        heading: &overview.heading(),
        style: &PAGE_STYLE,
        script: "",
        reload: Some(REFRESH),
        foot: "This page reloads itself every minute, and loads nothing else.",
    };
    let main = |html: &mut Html| {
        let definitions = overview.worst_first();
        if !definitions.is_empty() {
            all(html, &definitions);
        }
        definitions.into_iter().for_each(|status| definition(html, status, overview.now, links));
    };
    Html::page(&frame, |html| head(html, overview), main)
}

fn head(html: &mut Html, overview: &Overview) {
    html.leaf("p", &[("class", &"lede")], format_args!("As of {}", to_minute(overview.now)));
    html.element("dl", &[("class", &"figures")], |html| {
        for verdict in Verdict::ALL {
            let count = overview.definitions.iter().filter(|status| status.verdict == verdict).count();
            let class = if count == 0 { "" } else { verdict.as_str() };
            html.element("div", &[], |html| {
                html.leaf("dt", &[], verdict.in_words());
                html.leaf("dd", &[("class", &class)], group_digits(count as u64));
            });
        }
        html.fact("on disk", bytes(overview.disk.total()));
    });
    html.element("dl", &[("class", &"origin")], |html| {
        for (name, size) in overview.disk.parts() {
            html.fact(name, bytes(size));
        }
        if let Some(free) = overview.free {
            html.fact("free", bytes(free));
        }
        if let Some(look) = &overview.scheduler {
            let (since, last) = (to_minute(look.running_since), to_minute(look.last_look));
            html.fact("scheduler", format_args!("running since {since}, last look {last}"));
        }
    });
    reasons(html, Verdict::Unknown, &overview.reasons);
}

/// Why something is as it is, in the color of its state.
fn reasons(html: &mut Html, verdict: Verdict, reasons: &[String]) {
    if !reasons.is_empty() {
        html.element("ul", &[("class", &format_args!("notes {}", verdict.as_str()))], |html| {
            reasons.iter().for_each(|reason| html.element("li", &[], |html| breakable(html, reason)));
        });
    }
}

/// Text that may quote the service. Paths and addresses in it may be broken after any of their parts.
fn breakable(html: &mut Html, text: &str) {
    html.element("bdi", &[], |html| {
        for part in text.split_inclusive(['/', '?', '&', '=', '_']) {
            html.text(part);
            html.void("wbr", &[]);
        }
    });
}

/// A table of all definitions, the worst first.
fn all(html: &mut Html, definitions: &[&Status]) {
    let columns = ["Definition", "Status", "Newest", "Last run", "Next"].map(Heading::Text);
    html.section(&Topic::new("definitions", "Definitions", ""), |html| {
        html.table(&columns, definitions.len(), |html, row, column| {
            let status = definitions[row];
            match column {
                0 => html.leaf("a", &[("href", &format_args!("#{}", status.name))], &status.name),
                1 => {
                    let verdict = status.verdict;
                    html.leaf("span", &[("class", &format_args!("state {}", verdict.as_str()))], verdict.in_words());
                }
                2 => {
                    if let Some(newest) = status.newest {
                        html.leaf("span", &[("class", &"whole")], newest);
                        html.text(status.age.map_or_else(String::new, |age| format!(", {}", age.in_words())));
                    }
                }
                3 => {
                    if let Some(run) = status.runs.last() {
                        html.leaf("span", &[("class", &"whole")], to_minute(run.started_at));
                        html.text(format_args!(", {}", worst(&[run.outcome]).1));
                    }
                }
                _ => {
                    if let Some(next) = status.next {
                        html.leaf("span", &[("class", &"whole")], to_minute(next));
                    }
                }
            }
        });
    });
}

/// A section for a definition.
fn definition(html: &mut Html, status: &Status, now: DateTime<Utc>, links: Links<'_>) {
    let since = now.date_naive() - Days::new(DAYS - 1);
    let runs: Vec<&RunRecord> = status.runs.iter().filter(|run| run.started_at.date_naive() >= since).collect();
    let asides: Vec<String> = status.description.iter().cloned().collect();
    let report = links.report(&status.name).filter(|_| status.rows[0].is_some());
    let topic = Topic {
        is_name: true,
        asides: &asides,
        more: report.map(|report| ("Report", report)),
        ..Topic::new(&status.name, &status.name, finding(status))
    };
    html.section(&topic, |html| {
        if status.verdict != Verdict::Fresh {
            reasons(html, status.verdict, &status.reasons);
        }
        facts(html, status);
        if status.verdict != Verdict::NotRun {
            calendar(html, &runs, since, now.date_naive());
            list(html, &runs);
        }
    });
}

fn finding(status: &Status) -> String {
    let verdict = status.verdict.in_words();
    let verdict = format!("{}{}", verdict[..1].to_uppercase(), &verdict[1..]);
    let age = status.age.map_or_else(String::new, |age| format!(" is {}", age.in_words()));
    status.newest.map_or_else(|| verdict.clone(), |newest| format!("{verdict}: the newest date {newest}{age}"))
}

fn facts(html: &mut Html, status: &Status) {
    html.element("dl", &[("class", &"origin")], |html| {
        if let Some(fetched) = status.fetched_at {
            let in_part = if status.in_part { ", in part" } else { "" };
            html.fact("Fetched", format!("{}{in_part}", to_minute(fetched)));
        }
        for (name, outcome) in [("Success", Outcome::Success), ("Failure", Outcome::Failure), ("Later", Outcome::Later)]
        {
            if let Some(run) = status.last(outcome) {
                html.element("div", &[], |html| {
                    html.leaf("dt", &[], name);
                    html.element("dd", &[], |html| ended(html, &to_minute(run.ended_at), run.reason()));
                });
            }
        }
        if let Some(running) = &status.running {
            html.fact("Running", running.to_string());
        }
        if let Some(next) = status.next {
            html.fact("Next", to_minute(next));
        }
        if let Some(rows) = status.rows[0] {
            html.fact("Rows", group_digits(rows));
        }
        if let Some(tickers) = status.tickers[0] {
            html.fact("Tickers", group_digits(tickers));
        }
        html.fact("Disk", bytes(status.versions.1));
    });
}

/// How or when a run ended, and why.
fn ended(html: &mut Html, what: impl Display, reason: Option<String>) {
    html.text(what);
    if let Some(reason) = reason {
        html.text(": ");
        breakable(html, &reason);
    }
}

/// A square per day, in columns of weeks; the worst outcome of a day counts.
fn calendar(html: &mut Html, runs: &[&RunRecord], since: NaiveDate, today: NaiveDate) {
    let mut outcomes: BTreeMap<NaiveDate, Vec<Outcome>> = BTreeMap::new();
    for run in runs {
        outcomes.entry(run.started_at.date_naive()).or_default().push(run.outcome);
    }
    let first = since - Days::new(since.weekday().num_days_from_monday().into());
    let weeks = (today - first).num_days() as u32 / 7 + 1;
    let (width, height) = (weeks * STEP, MONTHS + 7 * STEP);
    let note = "A column is a week, Monday first. A day with several runs shows the worst.";
    html.figure("Runs of the last 90 days", note, |html| {
        let view = format!("0 0 {width} {height}");
        let label = format!(
            "{} on {}",
            count_of(runs.len() as u64, "run", "runs"),
            count_of(outcomes.len() as u64, "day", "days")
        );
        let attributes: [(&'static str, &dyn Display); 6] = [
            ("class", &"plot"),
            ("role", &"img"),
            ("aria-label", &label),
            ("viewBox", &view),
            ("width", &width),
            ("height", &height),
        ];
        html.element("svg", &attributes, |html| {
            for day in since.iter_days().take_while(|day| *day <= today) {
                let index = (day - first).num_days() as u32;
                let (x, y) = (index / 7 * STEP, MONTHS + index % 7 * STEP);
                // A name at the edge would be cut off.
                if day.day() == 1 && x + 2 * STEP <= width {
                    html.leaf("text", &[("x", &x), ("y", &(MONTHS - 6))], day.format("%b"));
                }
                let of_day = outcomes.get(&day).map_or(&[][..], Vec::as_slice);
                let (class, name) = worst(of_day);
                let attributes: [(&'static str, &dyn Display); 5] =
                    [("class", &class), ("x", &x), ("y", &y), ("width", &SIDE), ("height", &SIDE)];
                html.element("rect", &attributes, |html| html.leaf("title", &[], format_args!("{day}: {name}")));
            }
        });
        html.element("p", &[("class", &"cut keys")], |html| {
            for outcome in Outcome::ALL {
                let (class, name) = worst(&[outcome]);
                html.key(class, name);
            }
        });
    });
}

/// The class and the name of a day with some outcomes.
fn worst(outcomes: &[Outcome]) -> (&'static str, &'static str) {
    match outcomes.iter().max_by_key(|outcome| {
        [Outcome::Interrupted, Outcome::Success, Outcome::Later, Outcome::Failure]
            .iter()
            .position(|one| one == *outcome)
    }) {
        None => ("track", "no run"),
        Some(Outcome::Success) => ("done", "done"),
        Some(Outcome::Later) => ("later", "later"),
        Some(Outcome::Failure) => ("failed", "failed"),
        Some(Outcome::Interrupted) => ("interrupted", "interrupted"),
    }
}

/// The runs, newest first.
fn list(html: &mut Html, runs: &[&RunRecord]) {
    if runs.is_empty() {
        return html.cut("No runs in the last 90 days.");
    }
    let columns = [
        Heading::Text("Started"),
        Heading::Text("Outcome"),
        Heading::Number("Rows"),
        Heading::Number("Duration"),
        Heading::Number("Rewritten"),
    ];
    html.table(&columns, runs.len().min(LISTED), |html, row, column| {
        let run = runs[runs.len() - 1 - row];
        let published = run.published.as_ref();
        match column {
            0 => html.leaf("span", &[("class", &"whole")], to_minute(run.started_at)),
            1 => ended(html, worst(&[run.outcome]).1, run.reason()),
            2 => html.text(published.map(|published| group_digits(published.rows)).unwrap_or_default()),
            3 => html.text(took(Duration::try_from_secs_f64(run.seconds).unwrap_or_default())),
            _ => {
                let share = published.and_then(PublishedRecord::rewritten_share);
                html.text(share.map(percent).unwrap_or_default());
            }
        }
    });
    if runs.len() > LISTED {
        let left = count_of((runs.len() - LISTED) as u64, "earlier run is", "earlier runs are");
        html.cut(format_args!("{left} not listed."));
    }
}
