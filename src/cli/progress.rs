//! Progress on standard error: one line on a terminal that changes, a line every few seconds elsewhere, JSON on request, or
//! nothing. Warnings are always printed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwether::run::{Event, Observer, Progress};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, duration, took};
use indicatif::{ProgressBar, ProgressStyle};

use super::log::{LogForm, LogLine, warn};
use super::talk::{is_terminal, is_utf8, note};

/// The observer for a command.
pub(super) fn observer(form: Form) -> Option<Arc<dyn Observer>> {
    let state = State { bar: None, last: Instant::now(), resumed: 0, received: 0, run: None };
    Some(Arc::new(Shown { form, state: Mutex::new(state) }))
}

/// How events are shown.
pub(super) enum Form {
    /// Progress as text.
    Text,
    /// One object per line, with the definition if events are of several.
    Json(Option<String>),
    /// Only warnings.
    Quiet(LogForm),
}

struct Shown {
    form: Form,
    state: Mutex<State>,
}

struct State {
    /// The line of the stage in progress, on a terminal.
    bar: Option<ProgressBar>,
    /// When the last line was written, or its stage began.
    last: Instant,
    /// Answers of an interrupted run, which took no time.
    resumed: u64,
    /// Bytes received before the stage.
    received: u64,
    /// The name of the run, once it has one.
    run: Option<String>,
}

impl Observer for Shown {
    fn observe(&self, event: &Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Where no line can be changed, one is written every few seconds.
        let is_over = state.last.elapsed() >= Duration::from_secs(5);
        if matches!(event, Event::Started(_)) || (matches!(event, Event::Advanced(_)) && is_over) {
            state.last = Instant::now();
        }
        match (&self.form, event) {
            (Form::Text, _) => state.show(event, is_over),
            (Form::Quiet(form), Event::Warning { message }) => warn(*form, message),
            (Form::Json(_), Event::Named { run }) => state.run = Some((*run).to_owned()),
            (Form::Json(_), Event::Started(_)) | (Form::Quiet(_), _) => {}
            (Form::Json(_), Event::Advanced(_)) if !is_over => {}
            (Form::Json(definition), _) => {
                let mut line = LogLine::of_run(event);
                (line.definition, line.run) = (definition.as_deref(), state.run.as_deref());
                line.print();
            }
        }
    }
}

/// The line is removed if the command fails in the middle of a stage.
impl Drop for Shown {
    fn drop(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl State {
    fn clear(&mut self) {
        self.bar.take().iter().for_each(ProgressBar::finish_and_clear);
    }

    /// Shows an event as text.
    fn show(&mut self, event: &Event<'_>, is_over: bool) {
        match event {
            Event::Resumed { answers } => self.resumed = *answers as u64,
            Event::Started(progress) => {
                self.clear();
                self.received = progress.received;
                self.bar = is_terminal().then(|| bar(progress));
            }
            Event::Advanced(progress) => match &self.bar {
                Some(bar) => {
                    progress.total.iter().for_each(|total| bar.set_length(*total));
                    bar.set_position(progress.done);
                    bar.set_message(self.now(progress));
                }
                None if is_over => note(&format!("{}: {}", progress.stage, self.now(progress))),
                None => {}
            },
            Event::Finished(progress) => {
                let stage = progress.stage;
                let stage = if self.bar.is_some() { format!("{stage:9}") } else { format!("{stage}:") };
                self.clear();
                self.resumed = 0;
                let total = progress.total.map(|total| steps(progress, total));
                let size = (progress.bytes > 0).then(|| bytes(progress.bytes));
                note(&format!("{stage} {}", join([total, rows(progress), size, Some(duration(progress.elapsed))])));
            }
            Event::Held { message } => note(message),
            Event::Warning { message } => match &self.bar {
                Some(bar) => bar.suspend(|| warn(LogForm::Text, message)),
                None => warn(LogForm::Text, message),
            },
            _ => {}
        }
    }

    /// What a stage in progress is at.
    fn now(&self, progress: &Progress<'_>) -> String {
        let seconds = progress.elapsed.as_secs_f64();
        let done = progress.total.map(|total| format!("{} of {}", progress.done, steps(progress, total)));
        let waiting = progress.waiting.map(|it| format!("{} waiting to retry: {}", it.requests, escape(it.reason)));
        let received = progress.received.saturating_sub(self.received);
        let rate = (received as f64 / seconds.max(0.1)) as u64;
        let received = (received > 0).then(|| format!("{} at {}/s", bytes(received), bytes(rate)));
        let rest = progress.total.unwrap_or_default().saturating_sub(progress.done);
        let answered = progress.done.saturating_sub(self.resumed);
        let left = (answered > 0 && rest > 0).then(|| {
            let left = (seconds / answered as f64 * rest as f64).ceil().min(86_400.0);
            format!("{} left", took(Duration::from_secs_f64(left)).replace(".0 s", " s"))
        });
        join([done, waiting, rows(progress), received, left])
    }
}

/// One line, whatever the width of the terminal.
fn bar(progress: &Progress<'_>) -> ProgressBar {
    let bar = progress.total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    let middle = if progress.total.is_some() { "[{bar:20}]" } else { "{spinner}" };
    let style = ProgressStyle::with_template(&format!("{{prefix:9}} {middle} {{wide_msg}}"));
    let style = style.expect("the template is right").progress_chars("=> ");
    bar.set_style(if is_utf8() { style } else { style.tick_chars("|/-\\ ") });
    bar.set_prefix(progress.stage);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// The parts that there are, joined.
fn join<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How many of what a stage counts.
fn steps(progress: &Progress<'_>, count: u64) -> String {
    let [one, many] = match progress.stage {
        "verify" | "push" | "pull" => ["file", "files"],
        "spark" => ["task", "tasks"],
        _ => ["request", "requests"],
    };
    count_of(count, one, many)
}

fn rows(progress: &Progress<'_>) -> Option<String> {
    (progress.rows > 0).then(|| count_of(progress.rows, "row", "rows"))
}
