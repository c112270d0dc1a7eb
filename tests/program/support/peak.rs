//! The peak memory of a process, sampled while it runs.

use std::fs;
use std::process::Child;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) struct Peak {
    /// Dropped to end the sampling.
    ended: mpsc::Sender<()>,
    sampling: JoinHandle<u64>,
}

impl Peak {
    pub(crate) fn of(child: &Child) -> Self {
        let status = format!("/proc/{}/status", child.id());
        let sampled = move || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        };
        let (ended, is_over) = mpsc::channel::<()>();
        let sampling = thread::spawn(move || {
            let mut peak = 0;
            while let Err(mpsc::RecvTimeoutError::Timeout) = is_over.recv_timeout(Duration::from_millis(5)) {
                peak = sampled().max(peak);
            }
            sampled().max(peak) / 1024
        });
        Self { ended, sampling }
    }

    /// Ends the sampling, and returns the peak in MiB.
    pub(crate) fn end(self) -> u64 {
        drop(self.ended);
        self.sampling.join().expect("nothing panics")
    }
}
