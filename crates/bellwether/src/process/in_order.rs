//! Work on pieces, several at once, with results in order.
//!
//! Pieces are read one after another on one thread, worked on by any, and taken on the caller's. A few pieces wait at
//! each step, so memory does not grow with the number of pieces or threads.

use std::iter;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use rayon::Yield;

use crate::error::{Error, Result};

/// The most pieces that may be worked on, or ready, before they are taken.
const AHEAD: usize = 3;

/// How often a thread of the pool looks for work while it waits.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Works on pieces and takes the results in order, up to the first failure.
pub(crate) fn in_order<P: Send, R: Send, I: Iterator<Item = Result<P>>>(
    pieces: impl FnOnce() -> Result<I> + Send,
    work: impl Fn(P) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let work = &work;
    thread::scope(|scope| {
        let (ready, done) = mpsc::sync_channel(AHEAD);
        let work_on_all = move || match pieces() {
            Ok(pieces) => work_on(pieces, work, &ready),
            Err(error) => work_on(iter::once(Err(error)), work, &ready),
        };
        thread::Builder::new().spawn_scoped(scope, work_on_all).map_err(Error::start)?;
        for result in done {
            let Some(result) = wait(&result) else { break };
            take(result?)?;
        }
        Ok(())
    })
}

/// Waits for a result; none if its work was given up. The caller may be a thread of the pool, and the only one: then it
/// works on the pieces itself.
fn wait<R>(result: &mpsc::Receiver<R>) -> Option<R> {
    loop {
        match result.try_recv() {
            Ok(result) => return Some(result),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => match rayon::yield_now() {
                None => return result.recv().ok(),
                Some(Yield::Executed) => {}
                Some(Yield::Idle) => thread::sleep(LOOK_EVERY),
            },
        }
    }
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

#[cfg(test)]
mod tests {
    use super::in_order;
    use crate::error::{Error, Result};

    fn pieces(count: u32) -> Result<impl Iterator<Item = Result<u32>>> {
        Ok((0..count).map(Ok))
    }

    fn push(taken: &mut Vec<u32>, result: u32) -> Result<()> {
        taken.push(result);
        Ok(())
    }

    #[test]
    fn results_come_in_order_and_end_with_the_first_failure() {
        let mut taken = Vec::new();
        let double = |piece: u32| Ok(piece * 2);
        in_order(|| pieces(500), double, |result| push(&mut taken, result)).unwrap();
        assert!(taken.iter().copied().eq((0..500).map(|piece| piece * 2)));
        let fails = |piece: u32| if piece % 7 == 6 { Err(Error::interruption()) } else { Ok(piece) };
        for (work, take) in [(fails as fn(u32) -> Result<u32>, Ok as fn(u32) -> Result<u32>), (Ok, fails)] {
            let mut taken = Vec::new();
            let outcome = in_order(|| pieces(500), work, |result| push(&mut taken, take(result)?));
            assert!(outcome.is_err());
            assert_eq!(taken, [0, 1, 2, 3, 4, 5]);
        }
    }

    /// A build counts revisions beside taking over files, on a thread of the pool.
    #[test]
    fn threads_of_the_pool_do_not_wait_for_each_other() {
        let all = || {
            let mut sum = 0;
            let add = |piece: u32| {
                sum += piece;
                Ok(())
            };
            in_order(|| pieces(50), Ok, add).unwrap();
            sum
        };
        let sums: Vec<u32> = rayon::broadcast(|_| all());
        assert!(sums.iter().all(|sum| *sum == 49 * 50 / 2));
    }
}
