//! Resource usage of this process: processor time, peak memory, and ignored signals.
//!
//! Read from `/proc` on Linux; unknown elsewhere.

use std::fs;
use std::time::Duration;

/// Clock ticks per second in which Linux reports processor time.
const TICKS: u64 = 100;

/// Processor time of all threads so far, user and system.
pub(crate) fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 1000 / TICKS))
}

/// Peak memory in bytes.
pub(crate) fn peak_memory() -> Option<u64> {
    let kibibytes: u64 = status("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Whether this process was started with a signal ignored, as by `nohup`; false if unknown.
pub fn is_ignored(signal: u32) -> bool {
    let mask = status("SigIgn:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// What a line of the status of this process says.
fn status(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|said| said.trim().to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{peak_memory, processor_time};

    #[test]
    fn this_process_has_used_time_and_memory() {
        let before = processor_time().unwrap();
        let mut numbers: Vec<u64> = Vec::new();
        while processor_time().unwrap() == before {
            numbers.extend(0..1000);
        }
        assert!(peak_memory().unwrap() > numbers.len() as u64);
    }
}
