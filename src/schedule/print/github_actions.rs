//! A GitHub Actions workflow, which runs what is due.
//!
//! GitHub's schedules are in UTC. The times of a definition move in UTC when its zone changes the clock, so the workflow
//! starts at each of the times that they have within a year, and `schedule --once` finds out which one is due.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};

use super::{EXIT_CODES, Setup, quoted};
use crate::plan::Schedule;
use crate::schedule::times::upcoming;

/// With more times of the day than this, the workflow starts every fifteen minutes.
const MOST_TIMES: usize = 12;

pub(super) fn workflow(setup: &Setup) -> String {
    let lines: BTreeSet<String> = setup.plans.iter().flat_map(|(_, schedule)| in_utc(schedule)).collect();
    let crons: String = lines.iter().map(|line| format!("    - cron: {}\n", quoted(line))).collect();
    format!(
        "\
# Commit as .github/workflows/bellwether.yml, and add the API key as the secret BELLWETHER_API_KEY.
# The schedule is in UTC and covers winter and summer; what is due is decided in the time zones of the definitions:
{listed}{EXIT_CODES}\
name: bellwether

on:
  schedule:
{crons}  workflow_dispatch:

concurrency:
  group: bellwether
  cancel-in-progress: false

jobs:
  schedule:
    runs-on: ubuntu-latest
    timeout-minutes: 330
    steps:
      - uses: actions/checkout@v4
      - uses: actions/cache/restore@v4
        with:
          path: output
          key: bellwether-${{{{ github.run_id }}}}
          restore-keys: bellwether-
      - run: cargo install --locked --path .
      - run: bellwether schedule --once --log json
        env:
          BELLWETHER_API_KEY: ${{{{ secrets.BELLWETHER_API_KEY }}}}
      # The archive is the only copy of what was known when: also keep it somewhere that does not expire.
      - uses: actions/cache/save@v4
        if: always()
        with:
          path: output
          key: bellwether-${{{{ github.run_id }}}}
",
        listed = setup.listed(),
    )
}

/// The expressions in UTC that hold every time of a schedule within a year.
fn in_utc(schedule: &Schedule) -> Vec<String> {
    // Any year has both times of the clock.
    let start = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_454);
    let end = start + TimeDelta::days(366);
    let mut days: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for time in upcoming(schedule, start).take_while(|time| *time < end) {
        days.entry((time.hour(), time.minute())).or_default().insert(time.weekday().num_days_from_sunday());
        if days.len() > MOST_TIMES {
            return vec!["*/15 * * * *".to_owned()];
        }
    }
    let line = |((hour, minute), days): ((u32, u32), BTreeSet<u32>)| {
        let all = days.len() == 7;
        let days: Vec<String> = days.iter().map(u32::to_string).collect();
        format!("{minute} {hour} * * {}", if all { "*".to_owned() } else { days.join(",") })
    };
    days.into_iter().map(line).collect()
}
