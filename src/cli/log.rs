//! Log messages, which never contain the API key; and where the time goes: timings, and pieces of work per thread as a trace
//! that Perfetto and Chrome show as a flame graph.
//!
//! Libraries log whole addresses, with their queries, at their finest levels. Every line therefore passes through a
//! writer that removes queries.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use bellwether::disk::file::FileError;
use bellwether::error::{self, Error};
use bellwether::process::trace::WORK;
use bellwether::run::{Event, Summary};
use bellwether::text::escape::escape;
use bellwether::time::{Clock, to_record};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing::span::Id;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use super::talk::{Failure, Result, note};
use crate::explanation::Explanation;
use crate::schedule::ScheduleEvent;

/// The heading of the options about progress and logs.
pub(super) const PROGRESS: &str = "Progress and logs";

/// Options for events and log messages.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LogOptions {
    /// The format of events on standard error.
    #[arg(long = "log", value_enum, default_value_t = LogForm::Text, value_name = "FORM", env = "BELLWETHER_LOG", help_heading = PROGRESS)]
    pub(super) form: LogForm,

    /// The level of log messages on standard error.
    #[arg(long = "log-level", value_enum, default_value_t = LogLevel::Off, value_name = "LEVEL", env = "BELLWETHER_LOG_LEVEL", help_heading = PROGRESS)]
    pub(super) level: LogLevel,
}

/// The format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogForm {
    /// Text for people.
    Text,
    /// JSON, one object per line.
    Json,
}

/// The level of log messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogLevel {
    /// No log messages.
    Off,
    /// The main steps.
    Info,
    /// Connections and requests.
    Debug,
    /// Everything, including the libraries in use.
    Trace,
}

impl LogOptions {
    /// Starts logging, and recording a trace if there is one.
    pub(super) fn begin(self, trace: Option<Trace>) {
        let level = match self.level {
            LogLevel::Off if trace.is_none() => return,
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        };
        let layer = fmt::layer().with_ansi(false).with_writer(move || Masking(self.form));
        let layer = match self.form {
            LogForm::Text => layer.boxed(),
            LogForm::Json => layer.json().boxed(),
        };
        let trace = trace.map(|trace| trace.with_filter(filter_fn(|of| of.target() == WORK)));
        registry().with(layer.with_filter(level)).with(trace).init();
    }

    /// How a command that logs ends: its failure is an event, too, in the format of events.
    pub(super) fn end(self, result: Result<()>, run: Option<&str>) -> Result<()> {
        match &result {
            Err(Failure::Failed(error)) if self.form == LogForm::Json => {
                LogLine { run, ..CommandEvent::failure(error) }.print();
                Err(Failure::Told(error.kind().exit_code()))
            }
            _ => result,
        }
    }
}

/// The level of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Something happened.
    Info,
    /// Something to look at, although the command continues.
    Warn,
    /// Something failed.
    Error,
}

/// An event as a line of JSON. `docs/operations.md` lists the events; members may be added.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogLine<'a, E> {
    /// When it happened.
    timestamp: String,
    level: Level,
    /// The definition, in the log of a scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) definition: Option<&'a str>,
    /// The name of the run, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<&'a str>,
    #[serde(flatten)]
    event: E,
}

/// Any line of the log, but those of libraries.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is needed")]
pub(super) enum AnyLine<'a> {
    Run(LogLine<'a, Event<'a>>),
    Scheduler(LogLine<'a, ScheduleEvent<'a>>),
    Command(LogLine<'a, CommandEvent>),
}

impl<'a, E: Serialize> LogLine<'a, E> {
    /// An event at this moment.
    pub(super) fn now(level: Level, event: E) -> Self {
        Self { timestamp: to_record(Clock::System.now()), level, definition: None, run: None, event }
    }

    /// Writes it to standard error.
    pub(super) fn print(&self) {
        note(&serde_json::to_string(self).expect("an event is text and numbers"));
    }
}

impl<'a, 'e> LogLine<'a, &'e Event<'e>> {
    /// An event of a run at this moment.
    pub(super) fn of_run(event: &'e Event<'e>) -> Self {
        Self::now(if matches!(event, Event::Warning { .. }) { Level::Warn } else { Level::Info }, event)
    }
}

/// Prints a warning.
pub(super) fn warn(form: LogForm, warning: &str) {
    match form {
        LogForm::Text => note(&format!("warning: {}", escape(warning))),
        LogForm::Json => LogLine::of_run(&Event::Warning { message: warning }).print(),
    }
}

/// What happens to a command.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum CommandEvent {
    /// It failed.
    Error {
        #[serde(flatten)]
        explanation: Explanation,
        /// Its exit code.
        exit_code: u8,
    },
    /// The status page is served.
    Listening {
        /// Where.
        address: SocketAddr,
    },
}

impl CommandEvent {
    /// The failure of a command.
    pub(super) fn failure<'a>(error: &Error) -> LogLine<'a, Self> {
        let (explanation, exit_code) = (Explanation::new(error), error.kind().exit_code());
        LogLine::now(Level::Error, Self::Error { explanation, exit_code })
    }
}

/// A text without the queries of the addresses in it.
fn without_queries(text: &str) -> String {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let mut parts = text.split('?');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push('?');
        let is_query = part.trim_start_matches(is_name).starts_with('=') && part.starts_with(is_name);
        let end = part.find([' ', '"', '\'', '\n', ')', '}', '\\']).unwrap_or(part.len());
        kept.push_str(if is_query { &part[end..] } else { part });
    }
    kept
}

/// Standard error, without the queries of addresses. Each event is written as one piece.
struct Masking(LogForm);

impl Write for Masking {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(piece);
        let text = match self.0 {
            LogForm::Text => text.trim_end().to_owned(),
            // A message of a library is an event like the others.
            LogForm::Json => {
                let mut event: Value =
                    serde_json::from_str(&text).unwrap_or_else(|_| json!({ "fields": { "message": text } }));
                event["level"] = event["level"].as_str().unwrap_or_default().to_ascii_lowercase().into();
                event["event"] = "log".into();
                event.to_string()
            }
        };
        note(&escape(&without_queries(&text)));
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Options for timings and traces.
#[derive(Debug, clap::Args)]
pub(super) struct Timings {
    /// Print the time that each stage took, and the peak memory.
    #[arg(long, help_heading = PROGRESS)]
    timings: bool,

    /// Write a trace of each thread's work, for Perfetto.
    ///
    /// It is at ui.perfetto.dev.
    #[arg(long, value_name = "FILE", help_heading = PROGRESS)]
    trace: Option<PathBuf>,
}

/// A trace that is being recorded, and the file that it goes to.
#[derive(Debug)]
pub(super) struct Recording(Trace, PathBuf, File);

impl Timings {
    /// Starts logging, and the trace, if one is wanted. A file that cannot be written is reported before any work is done.
    pub(super) fn begin(&self, log: LogOptions) -> error::Result<Option<Recording>> {
        let Some(path) = self.trace.clone() else {
            log.begin(None);
            return Ok(None);
        };
        let file = File::create(&path).map_err(FileError::write(&path))?;
        let trace = Trace { begun: Instant::now(), recorded: Arc::default() };
        log.begin(Some(trace.clone()));
        Ok(Some(Recording(trace, path, file)))
    }

    /// Writes the trace and prints the timings, if they are wanted.
    pub(super) fn tell(&self, summary: Option<&Summary>, recording: Option<Recording>) -> error::Result<()> {
        if let Some(Recording(trace, path, file)) = recording {
            trace.write(BufWriter::new(file)).map_err(FileError::write(&path))?;
        }
        if let Some(summary) = summary.filter(|_| self.timings) {
            note(summary.timings().trim_end());
        }
        Ok(())
    }
}

/// A recorder for pieces of work.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    begun: Instant,
    recorded: Arc<Mutex<Recorded>>,
}

/// The pieces of work as Chrome trace events, a complete event each, and the threads that they number from one.
#[derive(Debug, Default)]
struct Recorded {
    events: Vec<Value>,
    threads: Vec<ThreadId>,
}

/// When a span was entered.
struct Entered(Instant);

impl Trace {
    fn write(&self, mut out: impl Write) -> io::Result<()> {
        let events = &self.recorded.lock().unwrap_or_else(PoisonError::into_inner).events;
        serde_json::to_writer(&mut out, &json!({ "displayTimeUnit": "ms", "traceEvents": events }))?;
        out.flush()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Trace {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(Entered(Instant::now()));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let Some(Entered(entered)) = span.extensions_mut().remove() else { return };
        let times = [entered.saturating_duration_since(self.begun), entered.elapsed()];
        let [from, took] = times.map(|time| time.as_nanos() as f64 / 1e3);
        let thread = thread::current().id();
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recorded.threads.iter().position(|known| *known == thread);
        let number = known.unwrap_or(recorded.threads.len()) + 1;
        if known.is_none() {
            recorded.threads.push(thread);
        }
        let event = json!({ "name": span.name(), "ph": "X", "pid": 1, "tid": number, "ts": from, "dur": took });
        recorded.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use bellwether::process::trace::WORK;
    use serde_json::Value;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

    use super::{Arc, Instant, Trace, without_queries};

    #[test]
    fn logged_urls_lose_their_query_and_other_question_marks_stay() {
        let line = "GET \"https://host/a?sector=energy&api_key=x\" (http://b/c?d=1) take? (host) why?";
        assert_eq!(without_queries(line), "GET \"https://host/a?\" (http://b/c?) take? (host) why?");
    }

    #[test]
    fn spans_are_written_with_their_threads_and_times() {
        let trace = Trace { begun: Instant::now(), recorded: Arc::default() };
        tracing::subscriber::with_default(registry().with(trace.clone()), || {
            let _whole = tracing::debug_span!(target: WORK, "whole").entered();
            for _ in 0..2 {
                let _part = tracing::debug_span!(target: WORK, "part").entered();
            }
        });
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["part", "part", "whole"]);
        let end = |event: &Value| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
        assert!(events[0]["ts"].as_f64() >= events[2]["ts"].as_f64() && end(&events[1]) <= end(&events[2]));
        assert!(events.iter().all(|event| event["ph"] == "X" && event["tid"] == 1));
    }
}
