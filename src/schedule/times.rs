//! The arithmetic of schedules, which asks no clock: an expression, a zone, the last time that is done and the current
//! instant give what is due, what was missed, and what comes next.

use std::time::Duration;

use bellwether::plan::Schedule;
use chrono::{DateTime, TimeDelta, Utc};

/// A run that starts within this of its time is on time, whatever the window for catching up.
const ON_TIME: TimeDelta = TimeDelta::seconds(60);

/// The longest wait before a retry.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Missed times are counted up to this.
const MOST_MISSED: usize = 1000;

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

/// How long after its time a run may start.
pub(super) fn window(schedule: &Schedule) -> TimeDelta {
    TimeDelta::from_std(schedule.catch_up).unwrap_or(TimeDelta::MAX).max(ON_TIME)
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
            std::iter::successors(after(&done), after).take_while(|time| *time <= now).take(MOST_MISSED + 1).count()
        });
        Self { due, missed: open.saturating_sub(usize::from(due.is_some())).min(MOST_MISSED), next }
    }
}

/// The next times of a schedule.
pub fn upcoming(schedule: &Schedule, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + use<'_> {
    let next = |time: &DateTime<Utc>| schedule.cron.next_after(*time, schedule.timezone.0);
    std::iter::successors(next(&after), next)
}

/// How long to wait after an attempt that failed for now, counted from one.
pub(super) fn backoff(schedule: &Schedule, attempt: u32) -> TimeDelta {
    let wait = schedule.retry_after.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    TimeDelta::from_std(wait.min(LONGEST_WAIT.max(schedule.retry_after))).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use bellwether::definition::DefinitionFile;
    use bellwether::plan::Plan;
    use chrono::{DateTime, Utc};

    use super::{Times, newest_due};

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
