//! What a run shows of itself: bars on a terminal, a line a stage elsewhere, or nothing.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::summary::grouped;

/// How a run shows what it does. All of it goes to standard error.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Bars that move.
    Bars(MultiProgress),
    /// A line for each stage, when it is done.
    Lines,
    /// Nothing.
    Quiet,
}

impl Progress {
    /// Bars.
    pub fn bars() -> Self {
        Self::Bars(MultiProgress::new())
    }

    /// Begins a stage of so many steps; zero when that is not known.
    pub(super) fn stage(&self, name: &'static str, steps: usize) -> Stage {
        let view = match self {
            Self::Bars(bars) => View::Bar(bars.add(bar(name, steps))),
            Self::Lines => View::Line,
            Self::Quiet => View::Nothing,
        };
        Stage { name, steps, begun: Instant::now(), rows: AtomicU64::new(0), bytes: AtomicU64::new(0), view }
    }
}

fn bar(name: &'static str, steps: usize) -> ProgressBar {
    let (bar, template) = if steps > 0 {
        (ProgressBar::new(steps as u64), "{prefix:8} [{bar:32}] {pos}/{len}  {msg}  {elapsed}, {eta} left")
    } else {
        (ProgressBar::new_spinner(), "{prefix:8} {spinner}  {msg}  {elapsed}")
    };
    bar.set_style(ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> "));
    bar.set_prefix(name);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

#[derive(Debug)]
enum View {
    Bar(ProgressBar),
    Line,
    Nothing,
}

/// A stage that is under way.
#[derive(Debug)]
pub(super) struct Stage {
    name: &'static str,
    steps: usize,
    begun: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    view: View,
}

impl Stage {
    /// One step more, with what it brought.
    pub(super) fn advance(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let View::Bar(bar) = &self.view {
            bar.inc(1);
            bar.set_message(self.told());
        }
    }

    /// The stage is over.
    pub(super) fn done(self) {
        match &self.view {
            View::Bar(bar) => bar.finish(),
            View::Line => {
                let steps = (self.steps > 0).then(|| format!("{} requests", self.steps));
                let seconds = format!("{:.1} s", self.begun.elapsed().as_secs_f64());
                let parts = steps.into_iter().chain(Some(self.told()).filter(|told| !told.is_empty())).chain([seconds]);
                // Whoever closed standard error does not want to be told.
                let _ = writeln!(io::stderr(), "{}: {}", self.name, parts.collect::<Vec<_>>().join(", "));
            }
            View::Nothing => {}
        }
    }

    fn told(&self) -> String {
        let (rows, bytes) = (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let rows = (rows > 0).then(|| format!("{} rows", grouped(rows)));
        let bytes = (bytes > 0).then(|| format!("{:.1} MB", bytes as f64 / 1e6));
        [rows, bytes].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
