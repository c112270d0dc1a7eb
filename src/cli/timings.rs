//! Where the time goes, for whoever asks.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use super::note;
use crate::error::{Error, Result};
use crate::run::Summary;
use crate::trace::Trace;

/// What is told of the time that something took.
#[derive(Debug, clap::Args)]
pub(super) struct Timings {
    /// Tell what each stage took, wall clock and processor, and the memory at its peak.
    #[arg(long)]
    timings: bool,

    /// Write a trace of the work on each thread to a file, for Perfetto (ui.perfetto.dev) or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl Timings {
    /// A trace to be filled, where one is asked for.
    pub(super) fn trace(&self) -> Option<Trace> {
        self.trace.as_ref().map(|_| Trace::begin())
    }

    /// Tells what was asked for.
    pub(super) fn tell(&self, summary: Option<&Summary>, trace: Option<&Trace>) -> Result<()> {
        if let (Some(path), Some(trace)) = (&self.trace, trace) {
            let failed = |source| Error::Write { path: path.clone(), source };
            trace.write(BufWriter::new(File::create(path).map_err(failed)?)).map_err(failed)?;
        }
        if let Some(summary) = summary.filter(|_| self.timings) {
            note(summary.timings().trim_end());
        }
        Ok(())
    }
}
