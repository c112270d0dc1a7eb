//! Progress on standard error: a bar on a terminal, a line every few seconds elsewhere, JSON on request, or nothing.
//! Warnings are always printed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bellwether::run::{Event, Observer, Progress};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of, duration, took};
use indicatif::{ProgressBar, ProgressStyle};

use super::log::{LogForm, LogLine};
use super::talk::{is_terminal, is_utf8, note};

/// How often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The observer for a command: bars if standard error is a terminal, lines if it is not.
pub(super) fn observer() -> Arc<dyn Observer> {
    if is_terminal() { Arc::new(Bars::default()) } else { Arc::new(LineProgress::default()) }
}

/// The observer for events as JSON.
pub(super) fn as_json() -> Arc<dyn Observer> {
    Arc::new(Json::default())
}

/// The same for the runs of a definition, which the events name.
pub(super) fn json_of(definition: &str) -> Arc<dyn Observer> {
    Arc::new(Json { definition: Some(definition.to_owned()), ..Json::default() })
}

/// The observer that prints only warnings.
pub(super) fn quiet(form: LogForm) -> Arc<dyn Observer> {
    Arc::new(Quiet(form))
}

/// A bar for the stage in progress, and a line for each one that is finished.
#[derive(Default)]
struct Bars(Mutex<Display>);

/// What a terminal shows.
#[derive(Default)]
struct Display {
    bar: Option<ProgressBar>,
    pace: Pace,
}

/// Where a stage began, to tell its own pace.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// Answers of an interrupted run, which took no time.
    resumed: u64,
    /// Bytes received before it.
    received: u64,
}

/// A line every few seconds, and at the end of each stage.
#[derive(Default)]
struct LineProgress(Interval);

/// The same as JSON, one object per line.
#[derive(Default)]
struct Json {
    interval: Interval,
    definition: Option<String>,
    /// The name of the run, once it has one.
    run: OnceLock<String>,
}

/// Nothing but warnings.
struct Quiet(LogForm);

impl Observer for Bars {
    fn observe(&self, event: &Event<'_>) {
        let mut display = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Display { bar, pace } = &mut *display;
        match event {
            Event::Resumed { answers } => pace.resumed = *answers as u64,
            Event::Started(progress) => {
                pace.received = progress.received;
                // The stage before it was replaced by this one.
                bar.take().iter().for_each(ProgressBar::finish_and_clear);
                *bar = Some(new_bar(progress));
            }
            Event::Advanced(progress) => {
                if let Some(bar) = bar {
                    progress.total.iter().for_each(|total| bar.set_length(*total));
                    bar.set_position(progress.done);
                    bar.set_message(now(progress, *pace));
                }
            }
            Event::Finished(progress) => {
                bar.take().iter().for_each(ProgressBar::finish_and_clear);
                pace.resumed = 0;
                note(&format!("{:9} {}", progress.stage, join_parts(stage_outcome(progress))));
            }
            Event::Held { message } => note(message),
            Event::Warning { message } => match bar {
                Some(bar) => bar.suspend(|| warn(LogForm::Text, message)),
                None => warn(LogForm::Text, message),
            },
            _ => {}
        }
    }
}

/// The bar is removed if the command fails in the middle of a stage.
impl Drop for Bars {
    fn drop(&mut self) {
        let display = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        display.bar.take().iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// A bar on one line, whatever the width of the terminal.
fn new_bar(progress: &Progress<'_>) -> ProgressBar {
    let (bar, template) = match progress.total {
        Some(total) => (ProgressBar::new(total), "{prefix:9} [{bar:20}] {pos}/{len}  {wide_msg}"),
        None => (ProgressBar::new_spinner(), "{prefix:9} {spinner} {elapsed}  {wide_msg}"),
    };
    let style = ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> ");
    bar.set_style(if is_utf8() { style } else { style.tick_chars("|/-\\ ") });
    bar.set_prefix(progress.stage);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// What a stage in progress is at.
fn now(progress: &Progress<'_>, pace: Pace) -> String {
    let rows = counts(progress);
    let received = progress.received.saturating_sub(pace.received);
    let seconds = progress.elapsed.as_secs_f64();
    let received = match received {
        0 => String::new(),
        count => format!("{} at {}/s", bytes(count), bytes((count as f64 / seconds.max(0.1)) as u64)),
    };
    let waiting = waiting(progress).unwrap_or_default();
    join_parts([waiting, rows, received, time_left(progress, pace.resumed)])
}

/// What a stage did.
fn stage_outcome(progress: &Progress<'_>) -> [String; 4] {
    let [one, many] = unit(progress);
    let requests = progress.total.map_or_else(String::new, |total| count_of(total, one, many));
    let size = if progress.bytes > 0 { bytes(progress.bytes) } else { String::new() };
    [requests, counts(progress), size, duration(progress.elapsed)]
}

impl Observer for LineProgress {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Started(_) => self.0.restart(),
            Event::Advanced(progress) if self.0.is_over() => {
                let because = waiting(progress).unwrap_or_default();
                line(
                    progress,
                    [steps(progress), counts(progress), bytes_received(progress), because, time_left(progress, 0)],
                );
            }
            Event::Finished(progress) => line(progress, stage_outcome(progress)),
            Event::Held { message } => note(message),
            Event::Warning { message } => warn(LogForm::Text, message),
            _ => {}
        }
    }
}

impl Observer for Json {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Named { run } => return drop(self.run.set((*run).to_owned())),
            Event::Started(_) => return self.interval.restart(),
            Event::Advanced(_) if !self.interval.is_over() => return,
            _ => {}
        }
        let (definition, run) = (self.definition.as_deref(), self.run.get().map(String::as_str));
        LogLine::of_run(event).of(definition, run).print();
    }
}

impl Observer for Quiet {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Warning { message } = event {
            warn(self.0, message);
        }
    }
}

/// When the last line was written.
struct Interval(Mutex<Instant>);

impl Default for Interval {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Interval {
    fn restart(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether it is time for another line; if so, a new interval begins.
    fn is_over(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = last.elapsed() >= LINE_EVERY;
        if is_over {
            *last = Instant::now();
        }
        is_over
    }
}

/// Prints a warning.
pub(super) fn warn(form: LogForm, warning: &str) {
    match form {
        LogForm::Text => note(&format!("warning: {}", escape(warning))),
        LogForm::Json => LogLine::of_run(&Event::Warning { message: warning }).print(),
    }
}

fn line<const N: usize>(progress: &Progress<'_>, parts: [String; N]) {
    note(&format!("{}: {}", progress.stage, join_parts(parts)));
}

/// The non-empty parts, joined.
fn join_parts<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn steps(progress: &Progress<'_>) -> String {
    let [_, many] = unit(progress);
    progress.total.map_or_else(String::new, |total| format!("{} of {total} {many}", progress.done))
}

/// What a stage counts.
fn unit(progress: &Progress<'_>) -> [&'static str; 2] {
    match progress.stage {
        "verify" | "push" | "pull" => ["file", "files"],
        "migrate" => ["run", "runs"],
        "spark" => ["task", "tasks"],
        _ => ["request", "requests"],
    }
}

fn counts(progress: &Progress<'_>) -> String {
    if progress.rows > 0 { count_of(progress.rows, "row", "rows") } else { String::new() }
}

fn bytes_received(progress: &Progress<'_>) -> String {
    progress.total.map_or_else(String::new, |_| format!("{} received", bytes(progress.received)))
}

fn waiting(progress: &Progress<'_>) -> Option<String> {
    progress.waiting.map(|waiting| format!("{} waiting to retry: {}", waiting.requests, escape(waiting.reason)))
}

/// The estimated time left. Answers of an interrupted run do not count.
fn time_left(progress: &Progress<'_>, resumed: u64) -> String {
    let rest = progress.total.unwrap_or_default().saturating_sub(progress.done);
    let done = progress.done.saturating_sub(resumed);
    if done == 0 || rest == 0 {
        return String::new();
    }
    let seconds = (progress.elapsed.as_secs_f64() / done as f64 * rest as f64).ceil();
    format!("{} left", took(Duration::from_secs_f64(seconds.min(86_400.0))).replace(".0 s", " s"))
}
