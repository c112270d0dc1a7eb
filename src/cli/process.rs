//! Prepares the process that a command runs in: its signals, its panics, and the allocator of the C library.

use std::panic::{self, AssertUnwindSafe};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::thread;

use bellwether::error::{Error, is_want_of_threads, text_of};

/// Prepares the process for a command.
pub(super) fn prepare() {
    ignore_file_size_signal();
    leave_no_core();
    silence_want_of_threads();
    keep_memory();
}

/// Leaves a panic for want of a thread to [`with_threads`], which makes an error of it.
fn silence_want_of_threads() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !panic.payload_as_str().is_some_and(is_want_of_threads) {
            usual(panic);
        }
    }));
}

/// Does work whose libraries start threads. They panic if the system has none to spare, which is an error here.
pub(super) fn with_threads<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match is_want_of_threads(text_of(&*panic)) {
        true => Err(Error::of_panic(&*panic).into()),
        false => panic::resume_unwind(panic),
    })
}

/// Makes a write beyond the file size limit fail with an error that names the file. By default its signal kills the
/// program silently.
fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "the standard library has no signals")]
    // SAFETY: no handler is installed, and nothing else in this process handles the signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Keeps the memory of the program, which may hold an API key, out of a core file.
fn leave_no_core() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[expect(unsafe_code, reason = "the standard library has no limits of resources")]
    // SAFETY: it reads the limits that it is given; one that is refused has no effect.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
    }
}

/// Tunes the allocator for many threads that allocate large columns.
///
/// By default it has up to eight heaps per processor, and memory freed by the threads of one stage cannot be reused by
/// those of the next: the peak of a run is half as high again as with one heap per processor, where threads hardly ever
/// wait for each other. It also returns large blocks to the system, which then has to map and zero the same pages for the
/// next column: a tenth of the time of a run.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory() {
    const MEBIBYTE: libc::c_int = 1 << 20;
    let heaps = thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let heaps = libc::c_int::try_from(heaps).unwrap_or(libc::c_int::MAX);
    let settings =
        [(libc::M_ARENA_MAX, heaps), (libc::M_MMAP_THRESHOLD, 32 * MEBIBYTE), (libc::M_TRIM_THRESHOLD, 256 * MEBIBYTE)];
    for (name, value) in settings {
        #[expect(unsafe_code, reason = "the C library offers no other way")]
        // SAFETY: it takes the allocator's lock; a setting that is not accepted has no effect.
        unsafe {
            libc::mallopt(name, value);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory() {}
