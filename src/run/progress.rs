//! Progress on standard error: bars on a terminal, a line every few seconds elsewhere, JSON on request, or nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::fetch::Gauge;
use crate::meter;
use crate::numbers::grouped;
use crate::talk::{escaped, note};

/// How progress is shown.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Bars that move.
    Bars(MultiProgress),
    /// A line every few seconds, and at the end of each stage.
    Lines,
    /// The same as JSON, one object per line.
    Json,
    /// Nothing.
    Quiet,
}

/// How often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often a bar shows what it waits for.
const BAR_EVERY: Duration = Duration::from_millis(250);

impl Progress {
    /// Bars.
    pub fn bars() -> Self {
        Self::Bars(MultiProgress::new())
    }

    /// Starts a stage with a number of requests, which may be zero.
    pub(super) fn stage(&self, name: &'static str, requests: usize) -> Stage {
        let view = match self {
            Self::Bars(bars) => View::Bar(bars.add(bar(name, requests))),
            Self::Lines => View::Lines,
            Self::Json => View::Json,
            Self::Quiet => View::Nothing,
        };
        let (begun, used) = (Instant::now(), meter::processor_time());
        Stage { name, requests, begun, used, seen: Seen::default(), view }
    }
}

fn bar(name: &'static str, requests: usize) -> ProgressBar {
    let (bar, template) = if requests > 0 {
        (ProgressBar::new(requests as u64), "{prefix:9} [{bar:32}] {pos}/{len}  {msg}  {elapsed}, {eta} left")
    } else {
        (ProgressBar::new_spinner(), "{prefix:9} {spinner}  {msg}  {elapsed}")
    };
    bar.set_style(ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> "));
    bar.set_prefix(name);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

#[derive(Debug)]
enum View {
    Bar(ProgressBar),
    Lines,
    Json,
    Nothing,
}

#[derive(Debug, Default)]
struct Seen {
    done: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// A stage in progress.
#[derive(Debug)]
pub(super) struct Stage {
    name: &'static str,
    requests: usize,
    begun: Instant,
    /// The processor time of the process when it started.
    used: Option<Duration>,
    seen: Seen,
    view: View,
}

/// The time that a stage took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Its name.
    pub stage: &'static str,
    /// The wall clock time.
    pub wall: Duration,
    /// The processor time of the process, if the system provides it.
    pub processor: Option<Duration>,
}

impl Stage {
    /// Counts an answered request.
    pub(super) fn answered(&self, rows: u64, bytes: u64) {
        self.seen.done.fetch_add(1, Ordering::Relaxed);
        self.seen.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let View::Bar(bar) = &self.view {
            bar.inc(1);
        }
        self.advance(rows);
    }

    /// Counts rows.
    pub(super) fn advance(&self, rows: u64) {
        self.seen.rows.fetch_add(rows, Ordering::Relaxed);
        if let View::Bar(bar) = &self.view {
            bar.set_message(self.told());
        }
    }

    /// The interval between updates.
    pub(super) fn interval(&self) -> Duration {
        if matches!(self.view, View::Bar(_)) { BAR_EVERY } else { LINE_EVERY }
    }

    /// Shows the progress, and what the stage waits for.
    pub(super) fn tell(&self, gauge: &Gauge) {
        let waiting = gauge.waiting();
        let because = waiting.as_ref().map(|(count, reason)| format!("{count} waiting to retry: {}", escaped(reason)));
        match &self.view {
            View::Bar(bar) => {
                let received = format!("{:.1} MB received", gauge.bytes() as f64 / 1e6);
                bar.set_message(joined([self.told(), received, because.unwrap_or_default()]));
            }
            View::Lines => {
                let received = format!("{:.1} MB received", gauge.bytes() as f64 / 1e6);
                self.line([self.steps(), self.told(), received, because.unwrap_or_default(), self.left()]);
            }
            View::Json => {
                let mut event = self.event("progress");
                event["received"] = gauge.bytes().into();
                event["retries"] = gauge.retries().into();
                event["waiting"] = because.into();
                note(&event.to_string());
            }
            View::Nothing => {}
        }
    }

    /// Ends the stage.
    pub(super) fn done(self) -> Timing {
        let wall = self.begun.elapsed();
        let processor = meter::processor_time().zip(self.used).map(|(now, then)| now.saturating_sub(then));
        let seconds = wall.as_secs_f64();
        match &self.view {
            View::Bar(bar) => bar.finish(),
            View::Lines => {
                let steps = if self.requests > 0 { format!("{} requests", self.requests) } else { String::new() };
                self.line([steps, self.told(), format!("{seconds:.1} s")]);
            }
            View::Json => note(&self.event("stage").to_string()),
            View::Nothing => {}
        }
        Timing { stage: self.name, wall, processor }
    }

    fn line<const N: usize>(&self, parts: [String; N]) {
        note(&format!("{}: {}", self.name, joined(parts)));
    }

    fn steps(&self) -> String {
        format!("{} of {} requests", self.seen.done.load(Ordering::Relaxed), self.requests)
    }

    fn told(&self) -> String {
        let (rows, bytes) = (self.seen.rows.load(Ordering::Relaxed), self.seen.bytes.load(Ordering::Relaxed));
        let rows = (rows > 0).then(|| format!("{} rows", grouped(rows)));
        let bytes = (bytes > 0).then(|| {
            let megabytes = bytes as f64 / 1e6;
            let rate = megabytes / self.begun.elapsed().as_secs_f64().max(1e-3);
            format!("{megabytes:.1} MB at {rate:.0} MB/s")
        });
        rows.into_iter().chain(bytes).collect::<Vec<_>>().join(", ")
    }

    /// The estimated time left.
    fn left(&self) -> String {
        let done = self.seen.done.load(Ordering::Relaxed);
        let rest = (self.requests as u64).saturating_sub(done);
        let seconds = self.begun.elapsed().as_secs_f64() / done as f64 * rest as f64;
        if done > 0 && rest > 0 { format!("{seconds:.0} s left") } else { String::new() }
    }

    fn event(&self, kind: &str) -> Value {
        json!({
            "event": kind,
            "stage": self.name,
            "done": self.seen.done.load(Ordering::Relaxed),
            "requests": self.requests,
            "rows": self.seen.rows.load(Ordering::Relaxed),
            "bytes": self.seen.bytes.load(Ordering::Relaxed),
            "seconds": self.begun.elapsed().as_secs_f64(),
        })
    }
}

/// The non-empty parts, joined.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
