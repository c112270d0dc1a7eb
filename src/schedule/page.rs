//! The status as one self-contained page, in the style of the reports: how each definition is doing, the last 90 days of
//! its runs as a calendar, and each of those runs with its rows, its duration and the share of cells that it found
//! rewritten.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether::report::{Frame, Topic, figure, key, section, table};
use bellwether::text::human::{bytes, count_of, group_digits, percent, took};
use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use maud::{Markup, html};
use url::Url;

use super::record::{Outcome, PublishedRecord, RunRecord, to_minute};
use super::status::{Status, StatusDocument, Verdict};

/// The colors of states.
const STATES: &str = include_str!("status.css");

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

/// What the links to reports in a data folder lead to.
#[derive(Clone, Copy, Debug)]
pub enum Links<'a> {
    /// Pages of the same server.
    Served(&'a Path),
    /// Files.
    Files(&'a Path),
}

/// The report of a dataset in a data folder, if it was drawn.
pub(super) fn report_of(data: &Path, name: &str) -> PathBuf {
    data.join("reports").join(name).with_extension("html")
}

impl Links<'_> {
    fn report(self, name: &str) -> Option<String> {
        match self {
            Self::Served(data) => report_of(data, name).is_file().then(|| format!("/reports/{name}")),
            Self::Files(data) => {
                let file = std::path::absolute(report_of(data, name)).ok().filter(|file| file.is_file())?;
                Some(Url::from_file_path(file).ok()?.to_string())
            }
        }
    }
}

/// Renders the status as HTML.
pub fn page(document: &StatusDocument, links: Links<'_>) -> String {
    let frame = Frame {
        title: "Status",
        kind: "status",
        heading: &document.heading(),
        style: STATES,
        script: "",
        reload: Some(REFRESH),
        foot: "This page reloads itself every minute, and loads nothing else.",
    };
    let definitions = document.worst_first();
    let main = html! {
        @if !definitions.is_empty() { (all(&definitions)) }
        @for status in definitions { (definition(status, document.now, links)) }
    };
    frame.page(&head(document), &main)
}

fn fact(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn head(document: &StatusDocument) -> Markup {
    let count = |verdict: Verdict| document.definitions.iter().filter(|status| status.verdict == verdict).count();
    html! {
        p.lede { "As of " (to_minute(document.now)) }
        dl.figures {
            @for verdict in Verdict::ALL {
                @let class = if count(verdict) == 0 { "" } else { verdict.as_str() };
                div { dt { (verdict.in_words()) } dd class=(class) { (group_digits(count(verdict) as u64)) } }
            }
            (fact("on disk", &bytes(document.disk.total())))
        }
        dl.origin {
            @for (name, size) in document.disk.parts() { (fact(name, &bytes(size))) }
            @if let Some(free) = document.disk_free_bytes { (fact("free", &bytes(free))) }
            @if let Some(look) = &document.scheduler {
                @let (since, last) = (to_minute(look.running_since), to_minute(look.last_look));
                (fact("scheduler", &format!("running since {since}, last look {last}")))
            }
        }
        (reasons(Verdict::Unknown, &document.reasons))
    }
}

/// Why something is as it is, in the color of its state.
fn reasons(verdict: Verdict, reasons: &[String]) -> Markup {
    html! {
        @if !reasons.is_empty() {
            ul class={ "notes " (verdict.as_str()) } { @for reason in reasons { li { (breakable(reason)) } } }
        }
    }
}

/// Text that may quote the service. Paths and addresses in it may be broken after any of their parts.
fn breakable(text: &str) -> Markup {
    html! { bdi { @for part in text.split_inclusive(['/', '?', '&', '=', '_']) { (part) wbr; } } }
}

/// How or when a run ended, and why.
fn ended(what: &str, reason: Option<String>) -> Markup {
    html! { (what) @if let Some(reason) = reason { ": " (breakable(&reason)) } }
}

/// A table of all definitions, the worst first.
fn all(definitions: &[&Status]) -> Markup {
    let heads = ["Definition", "Status", "Newest", "Last run", "Next"];
    let rows = definitions.iter().map(|status| {
        let last = status.runs.last().map(|run| (to_minute(run.started_at), worst(&[run.outcome]).1));
        vec![
            html! { a href={ "#" (status.name) } { (status.name) } },
            html! { span class={ "state " (status.verdict.as_str()) } { (status.verdict.in_words()) } },
            newest(status),
            html! { @if let Some((started, outcome)) = last { span.whole { (started) } ", " (outcome) } },
            html! { span.whole { (status.next.map(to_minute).unwrap_or_default()) } },
        ]
    });
    section(&Topic::new("definitions", "Definitions", "", Vec::new()), &table("wide", 5, &heads, rows))
}

fn newest(status: &Status) -> Markup {
    html! {
        @if let Some(newest) = status.newest_date {
            span.whole { (newest.to_string()) }
            @if let Some(age) = status.age() { ", " (age.in_words()) }
        }
    }
}

/// A section for a definition.
fn definition(status: &Status, now: DateTime<Utc>, links: Links<'_>) -> Markup {
    let since = now.date_naive() - Days::new(DAYS - 1);
    let runs: Vec<&RunRecord> = status.runs.iter().filter(|run| run.started_at.date_naive() >= since).collect();
    let report = links.report(&status.name).filter(|_| status.rows.is_some());
    let topic = Topic {
        is_name: true,
        more: report.map(|report| ("Report", report)),
        ..Topic::new(&status.name, &status.name, finding(status), status.description.iter().cloned().collect())
    };
    let body = html! {
        @if status.verdict != Verdict::Fresh { (reasons(status.verdict, &status.reasons)) }
        (facts(status))
        @if status.verdict != Verdict::NotRun {
            (calendar(&runs, since, now.date_naive()))
            (list(&runs))
        }
    };
    section(&topic, &body)
}

fn finding(status: &Status) -> String {
    let verdict = status.verdict.in_words();
    let verdict = format!("{}{}", verdict[..1].to_uppercase(), &verdict[1..]);
    let age = status.age().map_or_else(String::new, |age| format!(" is {}", age.in_words()));
    status.newest_date.map_or_else(|| verdict.clone(), |newest| format!("{verdict}: the newest date {newest}{age}"))
}

fn facts(status: &Status) -> Markup {
    let outcomes = [("Success", Outcome::Success), ("Failure", Outcome::Failure), ("Later", Outcome::Later)];
    html! {
        dl.origin {
            @if let Some(fetched) = status.fetched_at {
                @let in_part = if status.in_part { ", in part" } else { "" };
                (fact("Fetched", &format!("{}{in_part}", to_minute(fetched))))
            }
            @for (name, outcome) in outcomes {
                @if let Some(run) = status.last(outcome) {
                    div { dt { (name) } dd { (ended(&to_minute(run.ended_at), run.reason())) } }
                }
            }
            @if let Some(running) = status.running() { (fact("Running", &running)) }
            @if let Some(next) = status.next { (fact("Next", &to_minute(next))) }
            @if let Some(rows) = status.rows { (fact("Rows", &group_digits(rows))) }
            @if let Some(tickers) = status.tickers { (fact("Tickers", &group_digits(tickers))) }
            (fact("Disk", &bytes(status.bytes)))
        }
    }
}

/// A square per day, in columns of weeks; the worst outcome of a day counts.
fn calendar(runs: &[&RunRecord], since: NaiveDate, today: NaiveDate) -> Markup {
    let mut outcomes: BTreeMap<NaiveDate, Vec<Outcome>> = BTreeMap::new();
    for run in runs {
        outcomes.entry(run.started_at.date_naive()).or_default().push(run.outcome);
    }
    let first = since - Days::new(since.weekday().num_days_from_monday().into());
    let weeks = (today - first).num_days() as u32 / 7 + 1;
    let (width, height) = (weeks * STEP, MONTHS + 7 * STEP);
    let (all, days) = (count_of(runs.len() as u64, "run", "runs"), count_of(outcomes.len() as u64, "day", "days"));
    let body = html! {
        svg.plot role="img" aria-label=(format!("{all} on {days}")) viewBox=(format!("0 0 {width} {height}")) width=(width)
            height=(height) {
            @for day in since.iter_days().take_while(|day| *day <= today) {
                @let index = (day - first).num_days() as u32;
                @let (x, y) = (index / 7 * STEP, MONTHS + index % 7 * STEP);
                // A name at the edge would be cut off.
                @if day.day() == 1 && x + 2 * STEP <= width { text x=(x) y=(MONTHS - 6) { (day.format("%b").to_string()) } }
                @let (class, name) = worst(outcomes.get(&day).map_or(&[][..], Vec::as_slice));
                rect class=(class) x=(x) y=(y) width=(SIDE) height=(SIDE) { title { (day.to_string()) ": " (name) } }
            }
        }
        p.cut.keys {
            @for outcome in Outcome::ALL {
                @let (class, name) = worst(&[outcome]);
                (key(class, name))
            }
        }
    };
    let note = "A column is a week, Monday first. A day with several runs shows the worst.";
    figure("Runs of the last 90 days", note, &body)
}

/// The class and the name of a day with some outcomes, of which the worst counts.
fn worst(outcomes: &[Outcome]) -> (&'static str, &'static str) {
    let worst_first = [
        (Outcome::Failure, "failed", "failed"),
        (Outcome::Later, "later", "later"),
        (Outcome::Success, "done", "done"),
        (Outcome::Interrupted, "interrupted", "interrupted"),
    ];
    let worst = worst_first.into_iter().find(|(outcome, ..)| outcomes.contains(outcome));
    worst.map_or(("track", "no run"), |(_, class, name)| (class, name))
}

/// The runs, newest first.
fn list(runs: &[&RunRecord]) -> Markup {
    if runs.is_empty() {
        return html! { p.cut { "No runs in the last 90 days." } };
    }
    let heads = ["Started", "Outcome", "Rows", "Duration", "Rewritten"];
    let rows = runs.iter().rev().take(LISTED).map(|run| {
        let published = run.published.as_ref();
        vec![
            html! { span.whole { (to_minute(run.started_at)) } },
            ended(worst(&[run.outcome]).1, run.reason()),
            html! { (published.map(|published| group_digits(published.rows)).unwrap_or_default()) },
            html! { (took(Duration::try_from_secs_f64(run.seconds).unwrap_or_default())) },
            html! { (published.and_then(PublishedRecord::rewritten_share).map(percent).unwrap_or_default()) },
        ]
    });
    let left = runs.len().saturating_sub(LISTED) as u64;
    html! {
        (table("wide", 2, &heads, rows))
        @if left > 0 { p.cut { (count_of(left, "earlier run is", "earlier runs are")) " not listed." } }
    }
}
