//! Log messages, which never contain the API key.
//!
//! Libraries log whole addresses, with their queries, at their finest levels. Every line therefore passes through a
//! writer that removes queries.

use std::io::{self, Write};

use bellwether::definition::DefinitionError;
use bellwether::error::{Error, causes};
use bellwether::escape::escaped;
use bellwether::human::counted;
use bellwether::run::Event;
use bellwether::time::{Clock, to_record};
use bellwether::trace::WORK;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use super::outcome::Failure;
use super::talk::note;
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

/// An event of a run, as a line of JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogLine<'a> {
    /// When it happened.
    timestamp: String,
    level: Level,
    /// The definition, in the log of a scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<&'a str>,
    /// The name of the run, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl LogLine<'_> {
    /// The line of an event.
    pub(super) fn of(definition: Option<&str>, run: Option<&str>, event: &Event<'_>) -> String {
        let level = if matches!(event, Event::Warning { .. }) { Level::Warn } else { Level::Info };
        let line = LogLine { timestamp: to_record(Clock::System.now()), level, definition, run, event };
        serde_json::to_string(&line).expect("an event is text and numbers")
    }
}

/// An event as a line of JSON: its time (UTC), level, kind and fields. `docs/operations.md` lists the
/// kinds. Fields may be added.
pub(super) fn event(level: Level, kind: &str, fields: Value) -> String {
    let mut event = json!({
        "timestamp": to_record(Clock::System.now()),
        "level": level,
        "event": kind,
    });
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
        event.extend(fields);
    }
    event.to_string()
}

/// An error as an event.
pub(super) fn error_event(error: &Failure) -> String {
    error_event_of(None, error)
}

/// An error as an event of a run, if that had a name already.
pub(super) fn error_event_of(run: Option<&str>, error: &Failure) -> String {
    let mut fields = match error {
        Failure::Library(error) => error_fields(error),
        Failure::NoDefinition { what, hint, known } if !known.is_empty() => {
            json!({ "message": what, "because": [], "hint": format!("{hint}; {}", known.trim_end()) })
        }
        error => json!({ "message": error.to_string(), "because": reasons(error), "hint": error.hint() }),
    };
    fields["exit_code"] = error.exit_code().into();
    if let Some(run) = run {
        fields["run"] = run.into();
    }
    event(Level::Error, "error", fields)
}

/// The message, causes and hint of an error; the problems of a definition are objects.
pub(super) fn error_fields(error: &Error) -> Value {
    if let Some(DefinitionError::Invalid(problems)) = error.downcast_ref() {
        let list = problems.list();
        let message =
            format!("{} in `{}`", counted(list.len() as u64, "problem", "problems"), problems.path().display());
        return json!({ "message": message, "file": problems.path(), "problems": list });
    }
    json!({ "message": error.to_string(), "because": reasons(error), "hint": error.hint() })
}

fn reasons(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    causes(error).map(ToString::to_string).collect()
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
        note(&escaped(&without_queries(&text)));
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
