//! The schedule of a definition, and its hooks.

use std::time::Duration;

use super::Validator;
use crate::definition::{HooksSection, Placed, ScheduleSection, TimeSpan, Zone};
use crate::plan::{Hooks, Schedule};
use crate::text::problem::Problem;

const DEFAULT_CATCH_UP: Duration = Duration::from_secs(24 * 60 * 60);
const DEFAULT_DEADLINE: Duration = Duration::from_secs(2 * 60 * 60);
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(60);
const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(30);

impl Validator {
    pub(super) fn schedule(&mut self, section: &Placed<ScheduleSection>) -> Option<Schedule> {
        let Some(cron) = &section.cron else {
            let problem = Problem::new("`cron` is missing", section.span());
            self.miss("schedule", problem.with_hint("add five fields, such as `cron = \"30 18 * * MON-FRI\"`"));
            return None;
        };
        Some(Schedule {
            cron: (**cron).clone(),
            timezone: section.timezone.as_deref().copied().unwrap_or(Zone(chrono_tz::UTC)),
            catch_up: section.catch_up.as_deref().map_or(DEFAULT_CATCH_UP, |window| window.duration()),
            deadline: span(section.deadline.as_ref(), DEFAULT_DEADLINE),
            retry_after: span(section.retry_after.as_ref(), DEFAULT_RETRY_AFTER),
        })
    }
}

pub(super) fn hooks(section: &HooksSection) -> Hooks {
    let HooksSection { on_success, on_failure, on_later, ping, timeout } = section;
    Hooks {
        on_success: on_success.as_deref().cloned(),
        on_failure: on_failure.as_deref().cloned(),
        on_later: on_later.as_deref().cloned(),
        ping: ping.as_deref().cloned(),
        timeout: span(timeout.as_ref(), DEFAULT_HOOK_TIMEOUT),
    }
}

fn span(typed: Option<&Placed<TimeSpan>>, default: Duration) -> Duration {
    typed.map_or(default, |span| span.duration())
}
