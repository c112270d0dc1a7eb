//! The process that a command runs in: its signals, its panics, the allocator of the C library, and the runtime of work that
//! can be interrupted.

use std::error::Error as _;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::thread;

use bellwether::error::{self, Error, ErrorKind, is_want_of_threads, same, text_of};
use bellwether::process::{child, usage};
use bellwether::run::{Control, Observer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::log::LogForm;
use super::progress::{Form, observer};

/// Prepares the process for a command.
pub(super) fn prepare() {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[expect(unsafe_code, reason = "the standard library has no signals and no limits of resources")]
    // SAFETY: no handler is installed, and nothing else in this process handles the signal. The limits are read where they
    // are given; those that are refused have no effect.
    unsafe {
        // A write beyond the file size limit fails with an error that names the file. By default its signal kills the
        // program silently.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        // The memory of the program, which may hold an API key, stays out of a core file.
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
    }
    // A panic for want of a thread is left to `with_threads`, which makes an error of it.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !panic.payload_as_str().is_some_and(is_want_of_threads) {
            usual(panic);
        }
    }));
    keep_memory();
}

/// Does work whose libraries start threads. They panic if the system has none to spare, which is an error here.
pub(super) fn with_threads<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match is_want_of_threads(text_of(&*panic)) {
        true => Err(Error::of_panic(&*panic).into()),
        false => panic::resume_unwind(panic),
    })
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

/// Runs asynchronous work. The first signal cancels it, the second ends the process.
///
/// One thread is enough for the network, since other threads read and decode bodies; with more, a connection and its
/// reader would wake each other across threads.
pub(super) fn interruptible<T, E: From<Error>>(
    observer: Option<Arc<dyn Observer>>,
    work: impl AsyncFnOnce(Control) -> Result<T, E>,
) -> Result<T, E> {
    interruptible_with(None, observer, work)
}

/// The same, where SIGHUP notifies the work instead of cancelling it, if it is given what to notify.
pub(super) fn interruptible_with<T, E: From<Error>>(
    hangup: Option<Arc<Notify>>,
    observer: Option<Arc<dyn Observer>>,
    work: impl AsyncFnOnce(Control) -> Result<T, E>,
) -> Result<T, E> {
    // Started here, where a system without threads to spare is an error rather than a panic.
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global()
        && let Some(source) = error.source().and_then(|source| source.downcast_ref::<io::Error>())
    {
        return Err(Error::start(same(source)).into());
    }
    // So is a system without files to open: the runtime would panic where it makes its sockets for signals.
    let sockets: io::Result<Vec<_>> = (0..3).map(|_| UnixStream::pair()).collect();
    drop(sockets.map_err(Error::start)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::start)?;
    with_threads(|| {
        runtime.block_on(async {
            let stop = CancellationToken::new();
            tokio::spawn(watch_signals(stop.clone(), hangup));
            work(Control { observer, stop }).await
        })
    })
}

/// Runs blocking work. The first signal cancels it, the second ends the process.
pub(super) fn cancellable<T: Send + 'static>(
    work: impl FnOnce(&Control) -> error::Result<T> + Send + 'static,
) -> error::Result<T> {
    interruptible(observer(Form::Quiet(LogForm::Text)), async |control| {
        let work = tokio::task::spawn_blocking(move || work(&control));
        work.await.unwrap_or_else(|panic| Err(Error::worker(panic)))
    })
}

async fn watch_signals(stop: CancellationToken, hangup: Option<Arc<Notify>>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    // A program started with `nohup` is meant to outlive its terminal, which sends this signal, the first, when it closes.
    let is_ignored = hangup.is_none() && usage::is_ignored(1);
    let mut hangups = if is_ignored { None } else { signal(SignalKind::hangup()).ok() };
    let mut is_first = true;
    loop {
        let hung_up = async {
            match &mut hangups {
                Some(hangups) => hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        let is_hangup = tokio::select! {
            _ = interrupt.recv() => false,
            _ = terminate.recv() => false,
            _ = hung_up => true,
        };
        match &hangup {
            Some(notify) if is_hangup => notify.notify_one(),
            _ if is_first => {
                stop.cancel();
                is_first = false;
            }
            _ => {
                // The process ends here and drops nothing.
                child::kill_all();
                std::process::exit(ErrorKind::Interrupted.exit_code().into());
            }
        }
    }
}
