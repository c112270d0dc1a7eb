//! The program; everything is in the library.

use std::process::ExitCode;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::thread;

fn main() -> ExitCode {
    keep_memory();
    ignore_file_size_signal();
    bellwether::cli::main()
}

/// Lets a write beyond the limit on the size of a file fail, with an error that names the file. The signal that comes with
/// it would end the program without a word.
fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "the standard library has no signals")]
    // SAFETY: it ignores a signal that nothing else here handles, before there are other threads.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Lets the threads share what they free, and keep it for the columns to come.
///
/// By default the C library keeps up to eight heaps for each processor, and what the threads of one stage freed is of no
/// use to those of the next: half as much memory again at the peak of a run as with one heap for each, where threads hardly
/// wait for one another. And it gives large pieces back to the system, from which the next column gets the same pages
/// again, each by a fault and filled with zeros: a tenth of the time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory() {
    const MEBIBYTE: libc::c_int = 1 << 20;
    let heaps = thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let heaps = libc::c_int::try_from(heaps).unwrap_or(libc::c_int::MAX);
    let settings =
        [(libc::M_ARENA_MAX, heaps), (libc::M_MMAP_THRESHOLD, 32 * MEBIBYTE), (libc::M_TRIM_THRESHOLD, 256 * MEBIBYTE)];
    for (name, value) in settings {
        #[expect(unsafe_code, reason = "the C library offers no other way")]
        // SAFETY: it sets a number of the allocator, before there are other threads; where it cannot, nothing changes.
        unsafe {
            libc::mallopt(name, value);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory() {}
