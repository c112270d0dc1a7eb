//! Where the time goes: timings and traces on request.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use bellwether::disk::file::FileError;
use bellwether::error::Result;
use bellwether::run::Summary;

use super::help::PROGRESS;
use super::note;
use super::trace::Trace;

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
pub(super) struct Recording {
    pub(super) trace: Trace,
    path: PathBuf,
    file: File,
}

impl Timings {
    /// Starts the trace, if one is wanted. A file that cannot be written is reported before any work is done.
    pub(super) fn begin(&self) -> Result<Option<Recording>> {
        let Some(path) = self.trace.clone() else { return Ok(None) };
        match File::create(&path) {
            Ok(file) => Ok(Some(Recording { trace: Trace::begin(), path, file })),
            Err(source) => Err(FileError::write(&path)(source)),
        }
    }

    /// Writes the trace and prints the timings, if they are wanted.
    pub(super) fn tell(&self, summary: Option<&Summary>, recording: Option<Recording>) -> Result<()> {
        if let Some(Recording { trace, path, file }) = recording {
            trace.write(BufWriter::new(file)).map_err(FileError::write(&path))?;
        }
        if let Some(summary) = summary.filter(|_| self.timings) {
            note(summary.timings().trim_end());
        }
        Ok(())
    }
}
