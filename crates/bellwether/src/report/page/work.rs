//! Rejected records, unknown fields and durations.

use std::time::Duration;

use super::{Along, Bar, Columns, Heading, Html, Topic};
use crate::audit::answers::{AnsweredRun, RejectReason, Rejects};
use crate::report::Report;
use crate::report::facts::{Activity, OperationAnswers};
use crate::tables::Drift;
use crate::text::human::{bytes, count_of, group_digits, took};

/// The most rows of a table.
const ROWS: usize = 12;

/// Buckets that the duration of a run is divided into.
const STRETCHES: usize = 80;

impl Report {
    pub(super) fn rejects(&self, html: &mut Html) {
        let Activity { rejects, unknown, .. } = &self.work;
        let asides = if rejects.records > 0 || !unknown.fields.is_empty() {
            vec![
                "Counted in the latest answer to each request of this dataset. New: not in the previous answer."
                    .to_owned(),
            ]
        } else {
            Vec::new()
        };
        let topic = Topic::new("rejects", "Rejected records", self.work.unusable()).with_asides(&asides);
        html.section(&topic, |html| {
            if !rejects.reasons.is_empty() {
                reasons(html, rejects);
            }
            if !unknown.fields.is_empty() {
                unknown_fields(html, &unknown.fields);
            }
        });
    }

    pub(super) fn timings(&self, html: &mut Html) {
        let stages = self.stage_times();
        let finding = self.fetch_time();
        html.section(&Topic::new("timings", "Time", finding), |html| {
            let most = stages.iter().map(|(_, time)| *time).max().unwrap_or_default().as_secs_f64().max(1e-9);
            if !stages.is_empty() {
                let bar = |(name, time): &(&str, Duration)| Bar {
                    id: format!("plot-stage-{name}"),
                    name: (*name).to_owned(),
                    class: "bar",
                    share: time.as_secs_f64() / most,
                    value: took(*time),
                };
                let note = "Fetching for the latest run, and the stages after it.";
                html.figure("By stage", note, |html| html.bars(stages.iter().map(bar)));
            }
            if !self.work.answers.is_empty() {
                answers(html, &self.work.answers);
            }
            runs(html, &self.work);
        });
    }

    /// Duration of each stage where known; fetching is that of the newest run.
    pub(in crate::report) fn stage_times(&self) -> Vec<(&'static str, Duration)> {
        let fetched = self.work.answers.iter().filter_map(|answers| answers.complete.last()).max();
        fetched.map(|time| ("fetch", *time)).into_iter().chain(self.stages.iter().copied()).collect()
    }

    /// How long the newest run took to fetch.
    pub(in crate::report) fn fetch_time(&self) -> String {
        match self.work.runs.first() {
            Some(AnsweredRun { fetched_in, definition, .. }) => {
                let is_other = *definition != self.identity.name;
                let of = if is_other { format!(" (definition `{definition}`)") } else { String::new() };
                format!("The latest run{of} was fetched in {}", took(*fetched_in))
            }
            None => "No runs".to_owned(),
        }
    }
}

impl Activity {
    /// Number of rejected records and unknown fields.
    pub(in crate::report) fn unusable(&self) -> String {
        let of_which = |new: Option<u64>| match new {
            None => String::new(),
            Some(0) => " (none new)".to_owned(),
            Some(new) => format!(" ({} new)", group_digits(new)),
        };
        let Self { rejects, unknown, .. } = self;
        let rejected = match rejects.records {
            0 => "No rejected records".to_owned(),
            some => count_of(some, "rejected record", "rejected records") + &of_which(rejects.new),
        };
        let unknown = match unknown.fields.len() as u64 {
            0 => "no unknown fields".to_owned(),
            some => count_of(some, "unknown field", "unknown fields") + &of_which(unknown.new),
        };
        format!("{rejected}, {unknown}")
    }
}

/// Notes how many rows were cut.
fn cut_at_rows(html: &mut Html, all: usize, what: &str) {
    if all > ROWS {
        html.cut(format_args!("Showing {ROWS} of {} {what}.", group_digits(all as u64)));
    }
}

fn reasons(html: &mut Html, rejects: &Rejects) {
    let Rejects { reasons, unlisted, .. } = rejects;
    let columns =
        [Heading::Text("reason"), Heading::Text("example"), Heading::Number("records"), Heading::Number("new")];
    let unlisted = match unlisted {
        0 => String::new(),
        count => format!(" {} more are counted but not listed.", group_digits(*count)),
    };
    let note = format!("Every rejected record is kept in the archive with its position and raw text.{unlisted}");
    html.figure("Why records were rejected", note, |html| {
        html.table(&columns, reasons.len().min(ROWS), |html, row, column| {
            let RejectReason { reason, example: (request, pointer), records, new, .. } = &reasons[row];
            match column {
                0 => html.foreign(reason),
                1 => html.foreign(&format!("{pointer} of {request}")),
                2 => html.text(group_digits(*records)),
                _ => html.text(new.map_or_else(|| "-".to_owned(), group_digits)),
            }
        });
        cut_at_rows(html, reasons.len(), "reasons");
    });
}

fn unknown_fields(html: &mut Html, fields: &[Drift]) {
    let columns =
        [Heading::Text("field"), Heading::Text("operation"), Heading::Text("example"), Heading::Number("times")];
    html.figure("Unknown fields", "", |html| {
        html.table(&columns, fields.len().min(ROWS), |html, row, column| match column {
            0 => html.foreign(&fields[row].field),
            1 => html.text(fields[row].endpoint),
            2 => html.foreign(&fields[row].example),
            _ => html.text(group_digits(fields[row].count)),
        });
        cut_at_rows(html, fields.len(), "fields");
    });
}

fn answers(html: &mut Html, all: &[OperationAnswers]) {
    let end = all.iter().filter_map(|answers| answers.complete.last()).max().copied().unwrap_or_default();
    let end = end.as_secs_f64().max(1e-3);
    for (index, answers) in all.iter().enumerate() {
        let OperationAnswers { endpoint, again, rows, bytes: size, complete } = answers;
        let title = format!("{}: {endpoint}", count_of(complete.len() as u64, "answer", "answers"));
        let again = if *again > 0 { format!(", {} retried", group_digits(*again)) } else { String::new() };
        let note = format!("{}, {}{again}.", count_of(*rows, "row", "rows"), bytes(*size));
        let mut buckets = vec![0_u64; STRETCHES];
        for time in complete {
            let bucket = (time.as_secs_f64() / end * STRETCHES as f64) as usize;
            buckets[bucket.min(STRETCHES - 1)] += 1;
        }
        let most = buckets.iter().copied().max().unwrap_or_default().max(1);
        let column = |(bucket, count): (usize, &u64)| {
            let from = Duration::from_secs_f64(end * bucket as f64 / STRETCHES as f64);
            let label = format!("after {}\n{}", took(from), count_of(*count, "answer", "answers"));
            // A single one among thousands must be visible.
            (*count > 0).then(|| ((*count as f64 / most as f64).max(0.05), label))
        };
        html.columns(&Columns {
            id: format!("plot-answers-{index}"),
            title,
            note,
            class: "bar",
            height: 62.0,
            along: Along::Ends(["start".to_owned(), took(Duration::from_secs_f64(end))]),
            columns: buckets.iter().enumerate().map(column).collect(),
        });
    }
}

fn runs(html: &mut Html, work: &Activity) {
    let columns = [
        Heading::Text("run"),
        Heading::Text("definition"),
        Heading::Number("fetched in"),
        Heading::Number("requests"),
        Heading::Number("added"),
        Heading::Number("revised"),
        Heading::Number("withdrawn"),
        Heading::Number("rejected"),
    ];
    let note = "Runs that answered a request of this dataset, newest first. Changes cover everything a run requested.";
    html.figure("Runs", note, |html| {
        html.table(&columns, work.runs.len().min(ROWS), |html, row, column| {
            let run = &work.runs[row];
            match column {
                0 => html.leaf("code", &[], &run.name),
                1 => html.text(&run.definition),
                2 => html.text(took(run.fetched_in)),
                3 => html.text(group_digits(run.requests)),
                4 => html.text(group_digits(run.changes.added)),
                5 => html.text(group_digits(run.changes.revised)),
                6 => html.text(group_digits(run.changes.withdrawn)),
                _ => html.text(group_digits(run.rejects)),
            }
        });
        cut_at_rows(html, work.runs.len(), "runs");
    });
}
