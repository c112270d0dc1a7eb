//! Where the time goes: timings on request, and pieces of work per thread as a trace that Perfetto and Chrome show as a
//! flame graph.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use bellwether::disk::file::FileError;
use bellwether::error;
use bellwether::run::Summary;
use serde_json::json;
use tracing::Subscriber;
use tracing::span::Id;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::log::{self, LogForm, LogLevel};
use super::options::PROGRESS;
use super::talk::note;

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
    pub(super) fn begin(&self, form: LogForm, level: LogLevel) -> error::Result<Option<Recording>> {
        let Some(path) = self.trace.clone() else {
            log::begin(form, level, None);
            return Ok(None);
        };
        let file = File::create(&path).map_err(FileError::write(&path))?;
        let trace = Trace { begun: Instant::now(), pieces: Arc::default() };
        log::begin(form, level, Some(trace.clone()));
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
    pieces: Arc<Mutex<Vec<Slice>>>,
}

#[derive(Debug)]
struct Slice {
    name: &'static str,
    thread: ThreadId,
    from: Duration,
    took: Duration,
}

/// When a span was entered.
struct Entered(Instant);

impl Trace {
    /// Writes the trace as Chrome trace events, a complete event per piece of work.
    fn write(&self, mut out: impl Write) -> io::Result<()> {
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut threads: Vec<ThreadId> = Vec::new();
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        for (index, piece) in pieces.iter().enumerate() {
            let thread = threads.iter().position(|known| *known == piece.thread).unwrap_or_else(|| {
                threads.push(piece.thread);
                threads.len() - 1
            });
            let [from, took] = [piece.from, piece.took].map(|duration| duration.as_nanos() as f64 / 1e3);
            let event = json!({ "name": piece.name, "ph": "X", "pid": 1, "tid": thread + 1, "ts": from, "dur": took });
            write!(out, "{}\n{event}", if index == 0 { "" } else { "," })?;
        }
        writeln!(out, "\n]}}")?;
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
        let Some(Entered(from)) = span.extensions_mut().remove() else { return };
        let piece = Slice {
            name: span.name(),
            thread: thread::current().id(),
            from: from.saturating_duration_since(self.begun),
            took: from.elapsed(),
        };
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

#[cfg(test)]
mod tests {
    use bellwether::process::trace::WORK;
    use serde_json::Value;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

    use super::{Arc, Instant, Trace};

    #[test]
    fn spans_are_written_with_their_threads_and_times() {
        let trace = Trace { begun: Instant::now(), pieces: Arc::default() };
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
