//! What was set aside, what nobody knows, and how long everything took.

use std::time::Duration;

use super::{Column, Html, Level, Topic, cut, figure, level, section, table};
use crate::numbers::{bytes, counted, grouped, took};
use crate::report::Report;
use crate::report::facts::{Answers, Work};
use crate::report::svg::{Area, Plot};

/// How many rows of a table there is room for.
const ROWS: usize = 12;

/// Into how many stretches the time of a run is cut.
const STRETCHES: usize = 80;

impl Report {
    pub(super) fn rejects(&self, html: &mut Html) {
        let Work { rejects, drift, .. } = &self.work;
        let topic = Topic { id: "rejects", heading: "Set aside", finding: self.work.set_aside(), asides: &[] };
        section(html, &topic, |html| {
            if !rejects.is_empty() {
                let columns = [Column::Text("reason"), Column::Text("such as"), Column::Number("records")];
                figure(
                    html,
                    "Why records were set aside",
                    "They are in the archive, with their place and their text.",
                    |html| {
                        table(html, &columns, rejects.len().min(ROWS), |html, row, column| match column {
                            0 => html.foreign(&rejects[row].reason),
                            1 => {
                                let (request, pointer) = &rejects[row].example;
                                html.foreign(&format!("{pointer} of {request}"));
                            }
                            _ => html.text(grouped(rejects[row].count)),
                        });
                        cut_at_rows(html, rejects.len(), "reasons");
                    },
                );
            }
            if !drift.is_empty() {
                let columns = [
                    Column::Text("field"),
                    Column::Text("operation"),
                    Column::Text("such as"),
                    Column::Number("times"),
                ];
                figure(html, "Fields that the interface does not know", "", |html| {
                    table(html, &columns, drift.len().min(ROWS), |html, row, column| match column {
                        0 => html.foreign(&drift[row].field),
                        1 => html.text(drift[row].endpoint),
                        2 => html.foreign(&drift[row].example),
                        _ => html.text(grouped(drift[row].count)),
                    });
                    cut_at_rows(html, drift.len(), "fields");
                });
            }
        });
    }

    pub(super) fn timings(&self, html: &mut Html) {
        let stages = self.timed();
        let finding = self.fetched();
        section(html, &Topic { id: "timings", heading: "Time", finding, asides: &[] }, |html| {
            let most = stages.iter().map(|(_, time)| *time).max().unwrap_or_default().as_secs_f64().max(1e-9);
            figure(html, "By stage", "The fetching of the newest run, and what followed.", |html| {
                html.element("div", &[("class", &"rows")], |html| {
                    for (name, time) in &stages {
                        let (id, share) = (format!("plot-stage-{name}"), time.as_secs_f64() / most);
                        level(html, &Level { id: &id, name, class: "bar", share, value: &took(*time) });
                    }
                });
            });
            if !self.work.answers.is_empty() {
                answers(html, &self.work.answers);
            }
            runs(html, &self.work);
        });
    }

    /// How long each stage took, as far as anybody knows: fetching is that of the newest run.
    pub(in crate::report) fn timed(&self) -> Vec<(&'static str, Duration)> {
        let fetched = self.work.answers.iter().filter_map(|answers| answers.complete.last()).max();
        fetched.map(|time| ("fetch", *time)).into_iter().chain(self.stages.iter().copied()).collect()
    }

    /// How long the newest run took, in a line.
    pub(in crate::report) fn fetched(&self) -> String {
        match self.work.runs.first() {
            Some(run) => format!("The newest run was fetched in {}", took(run.elapsed())),
            None => "There was no run".to_owned(),
        }
    }
}

impl Work {
    /// What was set aside, in a line.
    pub(in crate::report) fn set_aside(&self) -> String {
        let rejected = self.rejected();
        let unknown = self.drift.len() as u64;
        let set_aside = match rejected {
            0 => "Nothing was set aside".to_owned(),
            count => format!("{} set aside", counted(count, "record was", "records were")),
        };
        match unknown {
            0 => format!("{set_aside}, and every field is known"),
            count => format!("{set_aside}, and {} unknown", counted(count, "field is", "fields are")),
        }
    }
}

/// Says how much more there is than there is room for.
fn cut_at_rows(html: &mut Html, all: usize, what: &str) {
    if all > ROWS {
        cut(html, format_args!("{ROWS} of {} {what} are shown.", grouped(all as u64)));
    }
}

fn answers(html: &mut Html, all: &[Answers]) {
    let end = all.iter().filter_map(|answers| answers.complete.last()).max().copied().unwrap_or_default();
    let end = end.as_secs_f64().max(1e-3);
    for (place, answers) in all.iter().enumerate() {
        let Answers { endpoint, again, rows, bytes: size, complete } = answers;
        let title = format!("{}: {endpoint}", counted(complete.len() as u64, "answer", "answers"));
        let again = if *again > 0 { format!(", {} asked again", grouped(*again)) } else { String::new() };
        let note = format!("{} rows, {}{again}.", grouped(*rows), bytes(*size));
        let mut stretches = vec![0_u64; STRETCHES];
        for time in complete {
            let stretch = (time.as_secs_f64() / end * STRETCHES as f64) as usize;
            stretches[stretch.min(STRETCHES - 1)] += 1;
        }
        let most = stretches.iter().copied().max().unwrap_or_default().max(1);
        figure(html, &title, note, |html| {
            let plot =
                Plot { id: &format_args!("plot-answers-{place}"), label: &title, height: 62.0, columns: STRETCHES };
            plot.draw(html, |canvas| {
                for (stretch, count) in stretches.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let top = 40.0 * (1.0 - *count as f64 / most as f64).min(0.95);
                    let area = Area::column(stretch, STRETCHES).between(top, 42.0);
                    let from = Duration::from_secs_f64(end * stretch as f64 / STRETCHES as f64);
                    let count = counted(*count, "answer", "answers");
                    canvas.mark("bar", area, format_args!("after {}\n{count}", took(from)));
                }
                canvas.rule("base", 42.0);
                canvas.below(0.0, 58.0, "start");
                canvas.below(1.0, 58.0, took(Duration::from_secs_f64(end)));
            });
        });
    }
}

fn runs(html: &mut Html, work: &Work) {
    let columns = [
        Column::Text("run"),
        Column::Text("definition"),
        Column::Number("took"),
        Column::Number("requests"),
        Column::Number("added"),
        Column::Number("revised"),
        Column::Number("withdrawn"),
        Column::Number("set aside"),
    ];
    figure(html, "Runs", "The newest first.", |html| {
        table(html, &columns, work.runs.len().min(ROWS), |html, row, column| {
            let run = &work.runs[row];
            match column {
                0 => html.leaf("code", &[], &run.name),
                1 => html.text(run.definition.as_deref().unwrap_or("compacted")),
                2 => html.text(took(run.elapsed())),
                3 => html.text(grouped(run.requests)),
                4 => html.text(grouped(run.changes.added)),
                5 => html.text(grouped(run.changes.revised)),
                6 => html.text(grouped(run.changes.withdrawn)),
                _ => html.text(grouped(run.rejects)),
            }
        });
        cut_at_rows(html, work.runs.len(), "runs");
    });
}
