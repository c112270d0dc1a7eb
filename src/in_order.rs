//! Work on pieces, several at once, with results in order.
//!
//! Pieces are read one after another on one thread, worked on by any, and taken on the caller's. A few pieces wait at
//! each step, so memory does not grow with the number of pieces or threads.

use std::iter;
use std::sync::mpsc;
use std::thread;

use crate::error::Result;

/// The most pieces that may be worked on, or ready, before they are taken.
const AHEAD: usize = 3;

/// Works on pieces and takes the results in order, up to the first failure.
///
/// # Errors
///
/// If the pieces cannot be read, or `work` or `take` fails.
pub(crate) fn in_order<P: Send, R: Send, I: Iterator<Item = Result<P>>>(
    pieces: impl FnOnce() -> Result<I> + Send,
    work: impl Fn(P) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let work = &work;
    thread::scope(|scope| {
        let (ready, done) = mpsc::sync_channel(AHEAD);
        scope.spawn(move || match pieces() {
            Ok(pieces) => work_on(pieces, work, &ready),
            Err(error) => work_on(iter::once(Err(error)), work, &ready),
        });
        for result in done {
            let Ok(result) = result.recv() else { break };
            take(result?)?;
        }
        Ok(())
    })
}

/// Works on pieces in parallel and sends the results in order, until the receiver is gone because something failed.
fn work_on<P: Send, R: Send>(
    pieces: impl Iterator<Item = Result<P>>,
    work: &(impl Fn(P) -> Result<R> + Sync),
    ready: &mpsc::SyncSender<mpsc::Receiver<Result<R>>>,
) {
    rayon::in_place_scope_fifo(|scope| {
        for piece in pieces {
            let (done, result) = mpsc::sync_channel(1);
            if ready.send(result).is_err() {
                return;
            }
            scope.spawn_fifo(move |_| {
                // The receiver may be gone.
                let _ = done.send(piece.and_then(work));
            });
        }
    });
}
