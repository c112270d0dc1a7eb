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

/// A trace that is being filled, and the file that it goes to.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) trace: Trace,
    path: PathBuf,
    file: File,
}

impl Timings {
    /// Begins a trace, where one is asked for. A file that cannot be written is known before there is any work.
    pub(super) fn begin(&self) -> Result<Option<Recording>> {
        let Some(path) = self.trace.clone() else { return Ok(None) };
        match File::create(&path) {
            Ok(file) => Ok(Some(Recording { trace: Trace::begin(), path, file })),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    /// Tells what was asked for.
    pub(super) fn tell(&self, summary: Option<&Summary>, recording: Option<Recording>) -> Result<()> {
        if let Some(Recording { trace, path, file }) = recording {
            trace.write(BufWriter::new(file)).map_err(|source| Error::Write { path, source })?;
        }
        if let Some(summary) = summary.filter(|_| self.timings) {
            note(summary.timings().trim_end());
        }
        Ok(())
    }
}
