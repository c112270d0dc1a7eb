//! Log messages, which never contain the API key.
//!
//! Libraries log whole addresses, with their queries, at their finest levels. Every line therefore passes through a
//! writer that removes queries.

use std::io::{self, Write};
use std::net::SocketAddr;

use bellwether::error::Error;
use bellwether::process::trace::WORK;
use bellwether::run::Event;
use bellwether::text::escape::escape;
use bellwether::time::{Clock, to_record};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::explanation::Explanation;
use crate::schedule::ScheduleEvent;

use super::talk::{Failure, Result, note};
use super::trace::Trace;

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

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Starts logging, and recording a trace if there is one.
pub(super) fn begin(form: LogForm, level: LogLevel, trace: Option<Trace>) {
    if level == LogLevel::Off && trace.is_none() {
        return;
    }
    let layer = fmt::layer().with_ansi(false).with_writer(move || Masking(form));
    let layer = match form {
        LogForm::Text => layer.boxed(),
        LogForm::Json => layer.json().boxed(),
    };
    let trace = trace.map(|trace| trace.with_filter(filter_fn(|of| of.target() == WORK)));
    registry().with(layer.with_filter(LevelFilter::from(level))).with(trace).init();
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
        LogLine::now(
            Level::Error,
            Self::Error { explanation: Explanation::of(error), exit_code: error.kind().exit_code() },
        )
    }
}

/// How a command that logs ends: its failure is an event, too, in the format of events.
pub(super) fn end(result: Result<()>, form: LogForm, run: Option<&str>) -> Result<()> {
    match &result {
        Err(Failure::Failed(error)) if form == LogForm::Json => {
            LogLine { run, ..CommandEvent::failure(error) }.print();
            Err(Failure::Told { code: error.kind().exit_code() })
        }
        _ => result,
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

/// A log message of a library as an event like the others.
fn as_event(message: &str) -> String {
    let mut event: Value =
        serde_json::from_str(message).unwrap_or_else(|_| json!({ "fields": { "message": message } }));
    event["level"] = event["level"].as_str().unwrap_or_default().to_ascii_lowercase().into();
    event["event"] = "log".into();
    event.to_string()
}

/// Standard error, without the queries of addresses. Each event is written as one piece.
struct Masking(LogForm);

impl Write for Masking {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(piece);
        let text = match self.0 {
            LogForm::Text => text.trim_end().to_owned(),
            LogForm::Json => as_event(&text),
        };
        note(&escape(&without_queries(&text)));
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::without_queries;

    #[test]
    fn logged_urls_lose_their_query_and_other_question_marks_stay() {
        let line = "GET \"https://host/a?sector=energy&api_key=x\" (http://b/c?d=1) take? (host) why?";
        assert_eq!(without_queries(line), "GET \"https://host/a?\" (http://b/c?) take? (host) why?");
    }
}
