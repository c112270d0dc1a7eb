//! Metrics of the definitions in the text format of Prometheus.
//!
//! Names follow its conventions: base units, `_total` for counters, instants as gauges of seconds since 1970, so that
//! absence and age can be alerted on. There are no timestamps, which the node exporter's folder refuses. Counters count all
//! runs since the journal began, also those whose lines are gone. What is unknown has no sample.

use std::collections::BTreeSet;
use std::path::Path;

use bellwether::disk::file;
use bellwether::error::Result;
use chrono::{DateTime, NaiveTime, Utc};

use super::record::{Outcome, PublishedRecord};
use super::status::{Status, StatusDocument, Verdict};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

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
    let mut page = Page { document, text: String::new(), name: "" };
    page.family("bellwether_build_info", "gauge", "Version of bellwether; the value is 1.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    page.gauge("bellwether_data_newest_date_timestamp_seconds", "Start of the newest date in the dataset.", |of| {
        Some(seconds(of.newest_date?.and_time(NaiveTime::MIN).and_utc()))
    });
    // Not `days`: Prometheus' conventions measure time in seconds.
    page.gauge("bellwether_data_age_trading_sessions", "Trading days after the newest date, up to today.", |of| {
        Some(f64::from(of.age_trading_days?))
    });
    page.family("bellwether_status", "gauge", "1 for the status of the definition, 0 for the others.");
    page.labelled("status", |of| Verdict::ALL.map(|it| (it.as_str(), truth(of.verdict == it))));
    page.family("bellwether_status_reason_info", "gauge", "Why a definition is not fresh; the value is 1.");
    page.labelled("reason", |of| of.reasons.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().map(info));
    scheduler(&mut page);
    page.gauge(
        "bellwether_schedule_next_timestamp_seconds",
        "When the definition is due next, or tried again.",
        |of| of.next.map(seconds),
    );
    let help = "1 if a run has not begun by its deadline, for definitions with a schedule.";
    page.gauge("bellwether_schedule_overdue", help, |of| of.next.map(|_| truth(of.overdue.is_some())));
    let help = "When the run that is in progress started.";
    page.gauge("bellwether_run_in_progress_timestamp_seconds", help, |of| of.running_since.map(seconds));
    runs(&mut page);
    let help = "Size of the versions and ad hoc builds of the dataset.";
    page.gauge("bellwether_dataset_bytes", help, |of| Some(of.bytes as f64));
    let help = "Number of versions and ad hoc builds of the dataset.";
    page.gauge("bellwether_dataset_versions", help, |of| Some(of.versions as f64));
    page.family("bellwether_disk_bytes", "gauge", "Size of the files by what they are for.");
    for (part, bytes) in document.disk.parts() {
        page.sample(&[("part", part)], bytes as f64);
    }
    page.single("bellwether_disk_free_bytes", "Free space of the disk with the data.", document.disk_free_bytes);
    page.single("bellwether_disk_prunable_bytes", "Bytes that `bellwether prune` would free.", document.prunable_bytes);
    page.text
}

/// The metrics of the project and its scheduler.
fn scheduler(page: &mut Page<'_>) {
    let document = page.document;
    page.family("bellwether_project_status", "gauge", "1 for the worst status of the definitions, 0 for the others.");
    for verdict in Verdict::ALL {
        page.sample(&[("status", verdict.as_str())], truth(document.verdict == verdict));
    }
    page.family("bellwether_project_reason_info", "gauge", "Why the status of the project is unknown; the value is 1.");
    for reason in document.reasons.iter().collect::<BTreeSet<_>>() {
        page.sample(&[("reason", reason)], 1.0);
    }
    let Some(look) = &document.scheduler else { return };
    page.family("bellwether_scheduler_start_timestamp_seconds", "gauge", "When the scheduler was started.");
    page.sample(&[], seconds(look.running_since));
    let help = "When the scheduler last looked at the clock and the definitions.";
    page.family("bellwether_scheduler_last_look_timestamp_seconds", "gauge", help);
    page.sample(&[], seconds(look.last_look));
    let help = "How many looks of the scheduler in a row have failed, up to the last one.";
    page.single("bellwether_scheduler_failed_looks", help, Some(look.failed_looks));
}

/// The metrics of runs.
fn runs(page: &mut Page<'_>) {
    page.family("bellwether_runs_total", "counter", "Runs since the journal began, by outcome.");
    page.labelled("outcome", |of| of.counts.iter().flatten().map(|(outcome, count)| (outcome.as_str(), *count as f64)));
    let help = "How many runs in a row have not succeeded, up to the last one.";
    page.gauge("bellwether_run_consecutive_failures", help, |of| {
        of.counts.as_ref().map(|_| of.consecutive_failures as f64)
    });
    page.family("bellwether_run_last_timestamp_seconds", "gauge", "End of the last run, by outcome.");
    page.labelled("outcome", |of| {
        let last = |outcome: Outcome| Some((outcome.as_str(), seconds(of.last(outcome)?.ended_at)));
        Outcome::ALL.into_iter().filter_map(last)
    });
    page.family("bellwether_run_last_info", "gauge", "Name of the last run; the value is 1.");
    page.labelled("run", |of| of.runs.last().and_then(|run| run.run.as_deref()).map(info));
    page.gauge("bellwether_run_duration_seconds", "Duration of the last run.", |of| Some(of.runs.last()?.seconds));
    page.of_success("bellwether_dataset_rows", "Rows of the last published version.", |of| of.rows as f64);
    page.of_success("bellwether_dataset_tickers", "Tickers of the last published version.", |of| of.tickers as f64);
    page.of_success("bellwether_run_requests", "Answered requests of the last successful run.", |of| {
        of.requests as f64
    });
    page.of_success("bellwether_run_retries", "Retries of the last successful run.", |of| of.retries as f64);
    let help = "Rejected records of the last successful run.";
    page.of_success("bellwether_run_rejected_records", help, |of| of.rejects as f64);
    let help = "Cells known before the last successful run of the series that it fetched.";
    page.of_success("bellwether_run_known_cells", help, |of| of.known as f64);
    page.family("bellwether_run_changed_cells", "gauge", "Cells that the last successful run changed, by change.");
    page.labelled("change", |of| {
        let changes = published(of).map(|of| of.changes).into_iter();
        changes
            .flat_map(|it| [("added", it.added), ("revised", it.revised), ("withdrawn", it.withdrawn)])
            .map(|(change, count)| (change, count as f64))
    });
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

/// A sample that says something by its label.
fn info(label: &str) -> (&str, f64) {
    (label, 1.0)
}

/// A page of metrics being written.
struct Page<'a> {
    document: &'a StatusDocument,
    text: String,
    name: &'static str,
}

impl<'a> Page<'a> {
    /// Begins a family; its samples follow.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a sample. The values of labels are escaped as the format asks for.
    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escape(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.text += &format!("{}{labels} {value}\n", self.name);
    }

    /// A family of one sample, if there is a value.
    fn single(&mut self, name: &'static str, help: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.family(name, "gauge", help);
            self.sample(&[], value as f64);
        }
    }

    /// Samples of each definition, by another label.
    fn labelled<T: IntoIterator<Item = (&'a str, f64)>>(&mut self, label: &str, samples: impl Fn(&'a Status) -> T) {
        for status in &self.document.definitions {
            for (text, value) in samples(status) {
                self.sample(&[("definition", &status.name), (label, text)], value);
            }
        }
    }

    /// A family with a sample for each definition that has a value.
    fn gauge(&mut self, name: &'static str, help: &str, value: impl Fn(&Status) -> Option<f64>) {
        self.family(name, "gauge", help);
        for status in &self.document.definitions {
            if let Some(value) = value(status) {
                self.sample(&[("definition", &status.name)], value);
            }
        }
    }

    /// The same for what the last successful run published.
    fn of_success(&mut self, name: &'static str, help: &str, value: impl Fn(&PublishedRecord) -> f64) {
        self.gauge(name, help, |of| published(of).map(&value));
    }
}
