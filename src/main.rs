//! The program; everything is in the library.

use std::process::ExitCode;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::thread;

fn main() -> ExitCode {
    share_memory();
    bellwether::cli::main()
}

/// Lets the threads share what they free. By default the C library keeps up to eight heaps for each processor, and what
/// the threads of one stage freed is of no use to those of the next: a third more memory at the peak of a run.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_memory() {
    let heaps = thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let heaps = libc::c_int::try_from(heaps).unwrap_or(libc::c_int::MAX);
    #[expect(unsafe_code, reason = "the C library offers no other way")]
    // SAFETY: it sets a number of the allocator, before there are other threads; where it cannot, nothing changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, heaps);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn share_memory() {}
