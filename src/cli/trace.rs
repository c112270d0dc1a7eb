//! Where the time goes: pieces of work per thread, as a trace that Perfetto and Chrome show as a flame graph.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use serde_json::json;
use tracing::Subscriber;
use tracing::span::Id;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

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
    /// Starts recording.
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), pieces: Arc::default() }
    }

    /// Writes the trace as Chrome trace events, a complete event per piece of work.
    pub(super) fn write(&self, mut out: impl Write) -> io::Result<()> {
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut threads: Vec<ThreadId> = Vec::new();
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        for (index, piece) in pieces.iter().enumerate() {
            let thread = threads.iter().position(|known| *known == piece.thread).unwrap_or_else(|| {
                threads.push(piece.thread);
                threads.len() - 1
            });
            let micros = |duration: Duration| duration.as_nanos() as f64 / 1e3;
            let event = json!({
                "name": piece.name, "ph": "X", "pid": 1, "tid": thread + 1, "ts": micros(piece.from), "dur": micros(piece.took),
            });
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

    use super::Trace;

    #[test]
    fn spans_are_written_with_their_threads_and_times() {
        let trace = Trace::begin();
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
