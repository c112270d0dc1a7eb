//! When a definition is due, and what a scheduler remembers of it from one start to the next: `schedule/NAME.json` in the
//! data folder.
//!
//! It is a small file, written whole. Without it, or after the expression or the zone was changed, a definition owes
//! nothing: its next time is the first one that counts. Nothing here asks the clock: a schedule, what is done and the
//! current instant give what is due, what was missed, and what comes next.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether::definition::Cron;
use bellwether::disk::file::{self, FileError};
use bellwether::disk::links;
use bellwether::disk::lock::{Attempt, Holder, Lock};
use bellwether::disk::names::SCHEDULE;
use bellwether::error::{Error, ErrorKind, Result};
use bellwether::plan::Schedule;
use bellwether::time::as_record;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

/// An instant this far ahead was written by a clock that was wrong. The clocks of machines that share a project may differ by
/// less.
pub(super) const WRONG_CLOCK: TimeDelta = TimeDelta::minutes(10);

/// A lock in the folder of schedules, such as the right to run a definition for a due time: none while another scheduler
/// has it.
pub(super) fn lock(data: &Path, name: &str, since: DateTime<Utc>) -> Result<Option<Lock>> {
    let folder = data.join(SCHEDULE);
    links::refuse(&folder)?;
    match Lock::try_take(&folder, name, &Holder::this(since))? {
        Attempt::Taken(lock) => Ok(Some(lock)),
        Attempt::Held(_) => Ok(None),
    }
}

/// What a scheduler remembers of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The expression that it is about.
    cron: String,
    /// The zone of the expression.
    timezone: String,
    /// Every time up to here is done: run, past its deadline, or before the definition was first seen.
    #[serde(with = "as_record")]
    pub(super) done: DateTime<Utc>,
    /// The run to try again, if any.
    retry: Option<Retry>,
}

/// A run to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Retry {
    /// The time that it is for.
    #[serde(with = "as_record")]
    due: DateTime<Utc>,
    /// The number of attempts so far.
    attempts: u32,
    /// When to try again.
    #[serde(with = "as_record")]
    at: DateTime<Utc>,
    /// Whether it was interrupted: it goes on, however late.
    interrupted: bool,
}

/// What to do about a definition at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    /// Run it for a time.
    Run {
        /// The time.
        due: DateTime<Utc>,
        /// The number of attempts before.
        attempts: u32,
        /// The number of earlier times that are skipped.
        missed: usize,
    },
    /// Times were missed that are too old to catch up.
    Skip {
        /// How many.
        missed: usize,
    },
    /// A retry would come after the deadline, or the time of the next run has come.
    GiveUp {
        /// The time that the run was for.
        due: DateTime<Utc>,
    },
    /// Nothing, until an instant.
    Wait(Option<DateTime<Utc>>),
}

impl Memory {
    /// The file of a definition.
    pub(super) fn path(data: &Path, name: &str) -> PathBuf {
        data.join(SCHEDULE).join(format!("{name}.json"))
    }

    /// The memory of a definition, whatever schedule it belongs to; `None` if there is none.
    pub(super) fn read(data: &Path, name: &str) -> Result<Option<Self>> {
        let path = Self::path(data, name);
        links::refuse(&data.join(SCHEDULE))?;
        let text = match links::read(&path) {
            Err(error) if FileError::is_missing(&error) => return Ok(None),
            text => text?,
        };
        // A memory has less than 64 KiB.
        let memory = (text.len() <= 64 << 10).then(|| serde_json::from_slice(&text).ok()).flatten();
        memory.map(Some).ok_or_else(|| {
            let path = path.display();
            let hint =
                format!("restore it from a backup, or remove `{path}`: the definition is then due at its next time");
            Error::new(ErrorKind::Damaged, format!("`{path}` is damaged: it is not the memory of a scheduler"))
                .with_hint(hint)
        })
    }

    /// Writes it atomically.
    pub(super) fn write(&self, data: &Path, name: &str) -> Result<()> {
        let folder = data.join(SCHEDULE);
        file::create_folders(&folder)?;
        links::refuse(&folder)?;
        let text = serde_json::to_vec_pretty(self).expect("a memory is text and numbers");
        file::replace(&Self::path(data, name), &text)
    }

    /// The memory of a schedule that is first seen now.
    pub(super) fn new(schedule: &Schedule, now: DateTime<Utc>) -> Self {
        let (cron, timezone) = (schedule.cron.to_string(), schedule.timezone.to_string());
        Self { cron, timezone, done: now, retry: None }
    }

    /// The same without what a clock that was ahead wrote: no time that is still to come is done, nor is one that may still be
    /// caught up with, and no retry waits for longer than it was postponed.
    pub(super) fn mended(&self, schedule: &Schedule, now: DateTime<Utc>) -> Self {
        let mut mended = self.clone();
        if self.done - now > WRONG_CLOCK {
            // Once a clock is right again, times of a day are caught up with.
            mended.done = now - window(schedule).min(TimeDelta::days(1));
        }
        mended.retry = self.retry.filter(|retry| retry.due - now <= WRONG_CLOCK).map(|retry| {
            let is_ahead = retry.at - now > backoff(schedule, retry.attempts).max(WRONG_CLOCK);
            Retry { at: if is_ahead { now } else { retry.at }, ..retry }
        });
        mended
    }

    /// The same, with a warning of what a wrong clock wrote.
    pub(super) fn mend(self, schedule: &Schedule, now: DateTime<Utc>, definition: &str) -> Self {
        let mended = self.mended(schedule, now);
        if mended != self {
            let (done, retry) = (self.done, self.retry_at());
            tracing::warn!(definition, %done, ?retry, "the clock was ahead: times that are still to come are not done");
        }
        mended
    }

    /// Whether it is about a schedule.
    pub(super) fn is_of(&self, schedule: &Schedule) -> bool {
        self.cron == schedule.cron.to_string() && self.timezone == schedule.timezone.to_string()
    }

    /// The newest time of the remembered schedule that has come and is not done. It asks for no definition, which may be
    /// broken.
    pub(super) fn newest_open(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (cron, zone) = (self.cron.parse::<Cron>().ok()?, self.timezone.parse::<Tz>().ok()?);
        cron.last_until(now, zone).filter(|due| *due > self.done)
    }

    /// What to do at an instant.
    pub(super) fn decide(&self, schedule: &Schedule, now: DateTime<Utc>) -> Decision {
        let Times { due, missed, next } = Times::at(schedule, self.done, now);
        let retry = self.retry.filter(|retry| retry.due > self.done);
        match (due, retry) {
            (Some(due), Some(retry)) if retry.due < due && retry.interrupted => {
                Decision::Run { due, attempts: 0, missed }
            }
            // The next run takes its place.
            (Some(due), Some(retry)) if retry.due < due => Decision::GiveUp { due: retry.due },
            (_, Some(retry)) if now < retry.at => {
                Decision::Wait(next.map_or(Some(retry.at), |next| Some(next.min(retry.at))))
            }
            // The machine slept, or the scheduler was down, past the deadline.
            (_, Some(retry)) if !retry.interrupted && now - retry.due > deadline(schedule) => {
                Decision::GiveUp { due: retry.due }
            }
            (_, Some(retry)) => Decision::Run { due: retry.due, attempts: retry.attempts, missed: 0 },
            (Some(due), None) => Decision::Run { due, attempts: 0, missed },
            (None, None) if missed > 0 => Decision::Skip { missed },
            (None, None) => Decision::Wait(next),
        }
    }

    /// The run for a time is over, or was skipped.
    pub(super) fn finish(&mut self, due: DateTime<Utc>) {
        self.done = self.done.max(due);
        self.retry = None;
    }

    /// The run for a time failed for now. Returns when it is tried again; `None` if that would be after the deadline.
    pub(super) fn postpone(
        &mut self,
        schedule: &Schedule,
        (due, attempts): (DateTime<Utc>, u32),
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let attempts = attempts + 1;
        let at = now + backoff(schedule, attempts);
        if at - due > deadline(schedule) {
            return None;
        }
        self.retry = Some(Retry { due, attempts, at, interrupted: false });
        Some(at)
    }

    /// The run for a time was interrupted. The next scheduler goes on with it.
    pub(super) fn interrupt(&mut self, (due, attempts): (DateTime<Utc>, u32), now: DateTime<Utc>) {
        self.retry = Some(Retry { due, attempts, at: now, interrupted: true });
    }

    /// When the run to try again is tried.
    pub(super) fn retry_at(&self) -> Option<DateTime<Utc>> {
        self.retry.filter(|retry| retry.due > self.done).map(|retry| retry.at)
    }
}

/// How long after its due time a run is tried again.
pub(super) fn deadline(schedule: &Schedule) -> TimeDelta {
    TimeDelta::from_std(schedule.deadline).unwrap_or(TimeDelta::MAX)
}

/// Missed times are counted up to this.
const MAX_MISSED: usize = 1000;

/// The times of a schedule around an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The time to run for now, if any: the newest one that is not done, unless it is too old.
    pub due: Option<DateTime<Utc>>,
    /// The number of earlier times that will not be run, up to a thousand.
    pub missed: usize,
    /// The next time.
    pub next: Option<DateTime<Utc>>,
}

/// The newest time of a schedule, unless it is too old to be run.
pub(super) fn newest_due(schedule: &Schedule, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    schedule.cron.last_until(now, schedule.timezone.0).filter(|newest| now - *newest <= window(schedule))
}

/// How long after its time a run may start. One that starts within a minute is on time, whatever the window for catching up.
fn window(schedule: &Schedule) -> TimeDelta {
    TimeDelta::from_std(schedule.catch_up).unwrap_or(TimeDelta::MAX).max(TimeDelta::seconds(60))
}

impl Times {
    /// The times of a schedule, all of which are done up to `done`.
    pub fn at(schedule: &Schedule, done: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let zone = schedule.timezone.0;
        let next = schedule.cron.next_after(now.max(done), zone);
        let newest = schedule.cron.last_until(now, zone).filter(|newest| *newest > done);
        let due = newest.filter(|newest| now - *newest <= window(schedule));
        let open = newest.map_or(0, |_| {
            let after = |time: &DateTime<Utc>| schedule.cron.next_after(*time, zone);
            std::iter::successors(after(&done), after).take_while(|time| *time <= now).take(MAX_MISSED + 1).count()
        });
        Self { due, missed: open.saturating_sub(usize::from(due.is_some())).min(MAX_MISSED), next }
    }
}

/// The next times of a schedule.
pub fn upcoming(schedule: &Schedule, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + use<'_> {
    let next = |time: &DateTime<Utc>| schedule.cron.next_after(*time, schedule.timezone.0);
    std::iter::successors(next(&after), next)
}

/// How long to wait after an attempt that failed for now, counted from one: a quarter of an hour at most.
fn backoff(schedule: &Schedule, attempt: u32) -> TimeDelta {
    let wait = schedule.retry_after.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let longest = schedule.retry_after.max(Duration::from_secs(15 * 60));
    TimeDelta::from_std(wait.min(longest)).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use bellwether::definition::DefinitionFile;
    use bellwether::plan::{Plan, Schedule};
    use chrono::{DateTime, TimeDelta, Utc};

    use super::{Decision, Memory, Times, newest_due};

    fn schedule() -> Schedule {
        let text = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n\
                    [schedule]\ncron = \"0 6 * * *\"\ncatch_up = \"0s\"\ndeadline = \"2m\"\n";
        let definition = DefinitionFile::new("it.toml".into(), text.into()).unwrap();
        Plan::of(definition).unwrap().schedule.unwrap()
    }

    #[test]
    fn what_a_clock_wrote_that_was_ahead_is_never_waited_for() {
        let (schedule, now) = (schedule(), "2026-11-20T07:00:00Z".parse::<DateTime<Utc>>().unwrap());
        let (ahead, before) = (now + TimeDelta::days(3_650), now - TimeDelta::days(1));
        let run = |memory: &Memory| memory.mended(&schedule, now).decide(&schedule, now + TimeDelta::hours(23));
        let next = "2026-11-21T06:00:00Z".parse::<DateTime<Utc>>().unwrap();

        // A run that failed for now, ten years ahead.
        let mut postponed = Memory::new(&schedule, before);
        postponed.finish(now - TimeDelta::hours(1));
        postponed.postpone(&schedule, (ahead, 0), ahead);
        assert_eq!(run(&postponed), Decision::Run { due: next, attempts: 0, missed: 0 });
        // One that was due before the clock went wrong is tried again now.
        let mut waiting = Memory::new(&schedule, before);
        waiting.postpone(&schedule, (now - TimeDelta::minutes(1), 0), now);
        let mut late = waiting.clone();
        late.retry = late.retry.map(|retry| super::Retry { at: ahead, ..retry });
        assert_eq!(late.mended(&schedule, now).retry_at(), Some(now));
        assert_eq!(waiting.mended(&schedule, now), waiting);
        // A time that is done, hours or years ahead.
        for ahead in [now + TimeDelta::hours(3), ahead] {
            let mut done = Memory::new(&schedule, before);
            done.finish(ahead);
            assert_eq!(run(&done), Decision::Run { due: next, attempts: 0, missed: 0 }, "{ahead}");
        }
    }

    #[test]
    fn an_interrupted_run_goes_on_however_late_and_one_that_failed_until_the_deadline() {
        let (schedule, due) = (schedule(), "2026-11-20T06:00:00Z".parse::<DateTime<Utc>>().unwrap());
        let (soon, late) = (due + TimeDelta::seconds(70), due + TimeDelta::hours(3));
        let known = Memory::new(&schedule, due - TimeDelta::days(1));
        assert_eq!(known.decide(&schedule, late), Decision::Skip { missed: 1 });

        let mut failed = known;
        assert_eq!(failed.postpone(&schedule, (due, 0), due + TimeDelta::seconds(5)), failed.retry_at());
        assert_eq!(failed.decide(&schedule, soon), Decision::Run { due, attempts: 1, missed: 0 });
        assert_eq!(failed.decide(&schedule, late), Decision::GiveUp { due });
        // So it is if the next run comes first, which then has missed nothing.
        let next = due + TimeDelta::days(1);
        let mut superseded = failed.clone();
        assert_eq!(superseded.decide(&schedule, next), Decision::GiveUp { due });
        superseded.finish(due);
        assert_eq!(superseded.decide(&schedule, next), Decision::Run { due: next, attempts: 0, missed: 0 });

        let mut interrupted = failed;
        interrupted.interrupt((due, 1), soon);
        assert_eq!(interrupted.decide(&schedule, late), Decision::Run { due, attempts: 1, missed: 0 });
        // The next day's run takes its place.
        assert_eq!(interrupted.decide(&schedule, next), Decision::Run { due: next, attempts: 0, missed: 1 });
    }

    #[test]
    fn without_catching_up_a_time_is_due_for_a_minute_whether_or_not_anything_is_remembered() {
        let text = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n\
                    [schedule]\ncron = \"0 22 * * *\"\ncatch_up = \"0s\"\n";
        let plan = Plan::of(DefinitionFile::new("it.toml".into(), text.to_owned()).unwrap()).unwrap();
        let schedule = plan.schedule.unwrap();
        let at = |text: &str| -> DateTime<Utc> { text.parse().unwrap() };
        let due = at("2026-11-20T22:00:00Z");
        for (now, expected) in [("2026-11-20T22:00:59Z", Some(due)), ("2026-11-20T22:01:01Z", None)] {
            assert_eq!(newest_due(&schedule, at(now)), expected, "{now}");
            assert_eq!(Times::at(&schedule, at("2026-11-19T22:00:00Z"), at(now)).due, expected, "{now}");
        }
    }
}
