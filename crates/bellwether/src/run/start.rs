//! The start of a run: it takes the lock of its definition, and checks that the clock is not behind the archive.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::observer::{CancellationToken, Event};
use super::options::{Options, WhenHeld};
use crate::archive::{AnswerRecord, Archive, SKEW};
use crate::disk::lock::{Attempt, Holder, Lock};
use crate::error::{Error, ErrorKind, Result};
use crate::text::human::duration;
use crate::time::{Clock, to_record};

/// How often to try the lock while waiting for it.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// Takes the lock of a definition on the archive.
pub(super) async fn lock(definition: &str, options: &Options) -> Result<Lock> {
    let mut patience = match options.when_held {
        WhenHeld::Fail => Duration::ZERO,
        WhenHeld::Wait(patience) => patience,
    };
    // The holder that was named, who may be unknown.
    let mut told_of: Option<Option<Holder>> = None;
    loop {
        let this = Holder::this(options.clock.now()).working_for(&options.data);
        let holder: Option<Holder> = match Lock::try_take(&options.archive, definition, &this)? {
            Attempt::Taken(lock) => return Ok(lock),
            Attempt::Held(holder) => holder,
        };
        // Others may wait as well, and be first.
        let is_told = told_of.as_ref() == Some(&holder);
        let by = holder.as_ref().map_or_else(String::new, |holder| format!(": {holder}"));
        let in_progress =
            format!("another run of `{definition}` is in progress on `{}`{by}", options.archive.display());
        if patience.is_zero() {
            return Err(Error::new(ErrorKind::Busy, in_progress)
                .with_hint("try again when that run has finished, or wait for it with `--wait`"));
        }
        if !is_told {
            let message = format!("{in_progress}; waiting for it, for up to {}", duration(patience));
            options.control.observe(Event::Held { message: &message });
            told_of = Some(holder);
        }
        let pause = TRY_EVERY.min(patience);
        patience -= pause;
        sleep(pause, &options.control.stop).await?;
    }
}

/// The current instant, which is not before the newest run of the archive was sealed.
///
/// What is known as of an instant is ordered by when it was observed. Observations made with a clock that is behind
/// would be older than those they follow, and never be seen.
pub(super) async fn now(options: &Options) -> Result<DateTime<Utc>> {
    let archive = match Archive::open(&options.archive) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(options.clock.now()),
        archive => archive?,
    };
    let Some(newest) = archive.runs().iter().max_by_key(|run| run.seal().sealed_at) else {
        return Ok(options.clock.now());
    };
    let sealed_at = newest.seal().sealed_at;
    loop {
        let now = options.clock.now();
        match (sealed_at - now, options.clock) {
            (ahead, _) if ahead <= TimeDelta::zero() => return Ok(now),
            (ahead, Clock::System) if ahead <= SKEW => {
                sleep(ahead.to_std().unwrap_or_default(), &options.control.stop).await?;
            }
            _ => {
                let what = format!(
                    "the clock says {}, but the newest run in the archive was sealed at {}",
                    to_record(now),
                    to_record(sealed_at)
                );
                return Err(Error::new(ErrorKind::Storage, what).with_hint(format!(
                    "set the clock if it is behind; if it is correct, the clock was ahead during that run: take it back with \
                     `bellwether forget {} --reason TEXT`",
                    newest.name()
                )));
            }
        }
    }
}

/// The instant at which a run is sealed: not before it began, nor before its last answer was complete.
pub(super) fn sealing_instant(
    answers: &[Arc<AnswerRecord>],
    begun_at: DateTime<Utc>,
    clock: Clock,
) -> Result<DateTime<Utc>> {
    let now = clock.now();
    let before = answers.iter().map(|answer| answer.request.observed_at).fold(begun_at, DateTime::max);
    if before - now > SKEW {
        let what =
            format!("the clock moved backwards during the run, from {} to {}", to_record(before), to_record(now));
        return Err(Error::new(ErrorKind::Storage, what)
            .with_hint("correct the clock and run the same command again, which begins anew; nothing was archived"));
    }
    Ok(before.max(now))
}

async fn sleep(time: Duration, stop: &CancellationToken) -> Result<()> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Error::interruption()),
        () = tokio::time::sleep(time) => Ok(()),
    }
}
