//! Metrics of the definitions in the text format of Prometheus.
//!
//! Names follow its conventions: base units, `_total` for counters, instants as gauges of seconds since 1970, so that
//! absence and age can be alerted on. There are no timestamps, which the node exporter's folder refuses. Counters count all
//! runs since the journal began, also those whose lines are gone. What is unknown has no sample.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use bellwether::disk::file;
use bellwether::error::Result;
use chrono::{DateTime, NaiveTime, Utc};

use super::record::{Outcome, PublishedRecord};
use super::status::{Status, StatusDocument, Verdict};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric of a definition: its name, its help, and its value, if that is known.
type Gauge = (&'static str, &'static str, fn(&Status) -> Option<f64>);

/// The age, the schedule and the dataset of a definition.
const OF_DATA: [Gauge; 2] = [
    ("bellwether_data_newest_date_timestamp_seconds", "Start of the newest date in the dataset.", |of| {
        Some(seconds(of.newest_date?.and_time(NaiveTime::MIN).and_utc()))
    }),
    // Not `days`: Prometheus' conventions measure time in seconds.
    ("bellwether_data_age_trading_sessions", "Trading days after the newest date, up to today.", |of| {
        Some(f64::from(of.age_trading_days?))
    }),
];

const OF_SCHEDULE: [Gauge; 3] = [
    ("bellwether_schedule_next_timestamp_seconds", "When the definition is due next, or tried again.", |of| {
        of.next.map(seconds)
    }),
    (
        "bellwether_schedule_overdue",
        "1 if a run has not begun by its deadline, for definitions with a schedule.",
        |of| of.next.map(|_| truth(of.overdue.is_some())),
    ),
    ("bellwether_run_in_progress_timestamp_seconds", "When the run that is in progress started.", |of| {
        of.running_since.map(seconds)
    }),
];

const OF_RUNS: [Gauge; 7] = [
    ("bellwether_run_duration_seconds", "Duration of the last run.", |of| Some(of.runs.last()?.seconds)),
    ("bellwether_dataset_rows", "Rows of the last published version.", |of| Some(published(of)?.rows as f64)),
    ("bellwether_dataset_tickers", "Tickers of the last published version.", |of| Some(published(of)?.tickers as f64)),
    ("bellwether_run_requests", "Answered requests of the last successful run.", |of| {
        Some(published(of)?.requests as f64)
    }),
    ("bellwether_run_retries", "Retries of the last successful run.", |of| Some(published(of)?.retries as f64)),
    ("bellwether_run_rejected_records", "Rejected records of the last successful run.", |of| {
        Some(published(of)?.rejects as f64)
    }),
    ("bellwether_run_known_cells", "Cells known before the last successful run of the series that it fetched.", |of| {
        Some(published(of)?.known as f64)
    }),
];

const OF_DATASETS: [Gauge; 2] = [
    ("bellwether_dataset_bytes", "Size of the versions and ad hoc builds of the dataset.", |of| Some(of.bytes as f64)),
    ("bellwether_dataset_versions", "Number of versions and ad hoc builds of the dataset.", |of| {
        Some(of.versions as f64)
    }),
];

/// Writes the metrics to a file, whole or not at all.
///
/// # Errors
///
/// If it cannot be written.
pub fn write(path: &Path, document: &StatusDocument) -> Result<()> {
    file::replace_named(path, text(document).as_bytes())
}

/// The metrics as text.
pub fn text(document: &StatusDocument) -> String {
    let mut page = Page::default();
    page.single(
        "bellwether_build_info",
        "Version of bellwether; the value is 1.",
        &[("version", env!("CARGO_PKG_VERSION"))],
        Some(1.0),
    );
    page.gauges(document, &OF_DATA);
    page.family("bellwether_status", "gauge", "1 for the status of the definition, 0 for the others.");
    for status in &document.definitions {
        for verdict in Verdict::ALL {
            let labels = [("definition", status.name.as_str()), ("status", verdict.as_str())];
            page.sample(&labels, truth(status.verdict == verdict));
        }
    }
    page.family("bellwether_status_reason_info", "gauge", "Why a definition is not fresh; the value is 1.");
    for status in &document.definitions {
        for reason in status.reasons.iter().collect::<BTreeSet<_>>() {
            page.sample(&[("definition", &status.name), ("reason", reason)], 1.0);
        }
    }
    scheduler(&mut page, document);
    page.gauges(document, &OF_SCHEDULE);
    runs(&mut page, document);
    page.gauges(document, &OF_DATASETS);
    page.family("bellwether_disk_bytes", "gauge", "Size of the files by what they are for.");
    for (part, bytes) in document.disk.parts() {
        page.sample(&[("part", part)], bytes as f64);
    }
    let [free, prunable] = [document.disk_free_bytes, document.prunable_bytes].map(|bytes| bytes.map(|it| it as f64));
    page.single("bellwether_disk_free_bytes", "Free space of the disk with the data.", &[], free);
    page.single("bellwether_disk_prunable_bytes", "Bytes that `bellwether prune` would free.", &[], prunable);
    page.text
}

/// The metrics of the project and its scheduler.
fn scheduler(page: &mut Page, document: &StatusDocument) {
    page.family("bellwether_project_status", "gauge", "1 for the worst status of the definitions, 0 for the others.");
    for verdict in Verdict::ALL {
        page.sample(&[("status", verdict.as_str())], truth(document.verdict == verdict));
    }
    page.family("bellwether_project_reason_info", "gauge", "Why the status of the project is unknown; the value is 1.");
    for reason in document.reasons.iter().collect::<BTreeSet<_>>() {
        page.sample(&[("reason", reason)], 1.0);
    }
    let Some(look) = &document.scheduler else { return };
    let (since, last, failed) = (seconds(look.running_since), seconds(look.last_look), look.failed_looks as f64);
    page.single("bellwether_scheduler_start_timestamp_seconds", "When the scheduler was started.", &[], Some(since));
    page.single(
        "bellwether_scheduler_last_look_timestamp_seconds",
        "When the scheduler last looked at the clock and the definitions.",
        &[],
        Some(last),
    );
    page.single(
        "bellwether_scheduler_failed_looks",
        "How many looks of the scheduler in a row have failed, up to the last one.",
        &[],
        Some(failed),
    );
}

/// The metrics of runs.
fn runs(page: &mut Page, document: &StatusDocument) {
    page.family("bellwether_runs_total", "counter", "Runs since the journal began, by outcome.");
    for status in &document.definitions {
        for (outcome, count) in status.counts.iter().flatten() {
            page.sample(&[("definition", &status.name), ("outcome", outcome.as_str())], *count as f64);
        }
    }
    page.gauges(
        document,
        &[(
            "bellwether_run_consecutive_failures",
            "How many runs in a row have not succeeded, up to the last one.",
            |of| of.counts.as_ref().map(|_| of.consecutive_failures as f64),
        )],
    );
    page.family("bellwether_run_last_timestamp_seconds", "gauge", "End of the last run, by outcome.");
    for status in &document.definitions {
        for (outcome, run) in Outcome::ALL.into_iter().filter_map(|outcome| Some((outcome, status.last(outcome)?))) {
            page.sample(&[("definition", &status.name), ("outcome", outcome.as_str())], seconds(run.ended_at));
        }
    }
    page.family("bellwether_run_last_info", "gauge", "Name of the last run; the value is 1.");
    for status in &document.definitions {
        if let Some(run) = status.runs.last().and_then(|run| run.run.as_ref()) {
            page.sample(&[("definition", &status.name), ("run", run)], 1.0);
        }
    }
    page.gauges(document, &OF_RUNS);
    page.family("bellwether_run_changed_cells", "gauge", "Cells that the last successful run changed, by change.");
    for status in &document.definitions {
        let Some(changes) = published(status).map(|published| published.changes) else { continue };
        for (change, count) in
            [("added", changes.added), ("revised", changes.revised), ("withdrawn", changes.withdrawn)]
        {
            page.sample(&[("definition", &status.name), ("change", change)], count as f64);
        }
    }
}

fn published(status: &Status) -> Option<&PublishedRecord> {
    status.last_success.as_ref()?.published.as_ref()
}

fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

fn seconds(instant: DateTime<Utc>) -> f64 {
    instant.timestamp_micros() as f64 / 1e6
}

/// A page of metrics being written.
#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    /// Begins a family; its samples follow.
    fn family(&mut self, name: &'static str, kind: &'static str, help: &'static str) {
        self.name = name;
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes any text");
    }

    fn sample(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.text, "{}{labels} {value}", self.name).expect("a string takes any text");
    }

    /// A family of one sample, if there is a value.
    fn single(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)], value: Option<f64>) {
        if let Some(value) = value {
            self.family(name, "gauge", help);
            self.sample(labels, value);
        }
    }

    /// Families with a sample for each definition that has a value.
    fn gauges(&mut self, document: &StatusDocument, gauges: &[Gauge]) {
        for (name, help, value) in gauges {
            self.family(name, "gauge", help);
            for status in &document.definitions {
                if let Some(value) = value(status) {
                    self.sample(&[("definition", &status.name)], value);
                }
            }
        }
    }
}

/// A label's value, escaped as the format asks for.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
