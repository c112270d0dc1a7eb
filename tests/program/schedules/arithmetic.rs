//! When an expression is due, in zones with daylight saving: before, at and after each change.

use std::fs;

use bellwether::definition::DefinitionFile;
use bellwether::plan::{Plan, Schedule};
use bellwether_cli::schedule::{Times, upcoming};
use chrono::{DateTime, Offset, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::json;

use crate::support::program::Place;
use crate::support::python;
use crate::support::random::Random;

pub(super) fn schedule(keys: &str) -> Schedule {
    let text = format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\n{keys}\n");
    let plan = Plan::of(DefinitionFile::new("it.toml".into(), text).expect("as the test expects"))
        .unwrap_or_else(|error| panic!("{keys}: {error}"));
    plan.schedule.expect("as the test expects")
}

pub(super) fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect("as the test expects").with_timezone(&Utc)
}

const EXPRESSIONS: [&str; 17] = [
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 0 * * *",
    "0 2 * * *",
    "45 1 * * *",
    "0 3 * * SUN",
    "30 18 * * MON-FRI",
    "15 2 * MAR,OCT sun",
    "0 9 1 * *",
    "0 9 13 * FRI",
    "@daily",
    "@weekly",
    "@hourly",
    "*/15 * * * *",
    "30 1-3 * * *",
    "45 1,2 * * 0",
];

const ZONES: [&str; 5] = ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana"];

#[test]
fn cron_times_match_a_minute_by_minute_scan_of_a_year() {
    let place = Place::new();
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    let mut cases = Vec::new();
    for zone in ZONES {
        for cron in EXPRESSIONS {
            let schedule = schedule(&format!("cron = \"{cron}\"\ntimezone = \"{zone}\""));
            let times: Vec<i64> =
                upcoming(&schedule, from).take_while(|time| *time < to).map(|time| time.timestamp()).collect();
            cases.push(json!({
                "cron": cron, "zone": zone, "from": from.timestamp(), "to": to.timestamp(), "times": times,
            }));
        }
    }
    let file = place.file("times.json");
    fs::write(&file, serde_json::to_vec(&cases).unwrap()).unwrap();
    python::check("check_schedule.py", [file]);
}

/// Days that depend on the month, over a leap year.
#[test]
fn days_that_depend_on_the_month_match_a_scan_of_the_calendar() {
    let place = Place::new();
    let (from, to) = (at("2027-12-20T00:00:00Z"), at("2029-01-10T00:00:00Z"));
    let case = |cron: &str| {
        let schedule = schedule(&format!("cron = \"{cron}\""));
        let times: Vec<i64> =
            upcoming(&schedule, from).take_while(|time| *time < to).map(|time| time.timestamp()).collect();
        json!({ "cron": cron, "zone": "UTC", "from": from.timestamp(), "to": to.timestamp(), "times": times })
    };
    let cases: Vec<_> = [
        "0 6 L * *",
        "0 6 LW * *",
        "0 6 l,lw,10 * *",
        "30 6 1W,15W * *",
        "0 6 29W,30W,31W * *",
        "0 7 * * FRI#2,1#5",
        "0 7 * * 5L,sunL",
        "0 7 * * 7#1,TUE#L",
        "0 7 1-7 * +MON",
        "0 7 L * +5L",
        "0 7 15W 2,8 SAT#3",
    ]
    .into_iter()
    .map(case)
    .collect();
    let file = place.file("times.json");
    fs::write(&file, serde_json::to_vec(&cases).unwrap()).unwrap();
    python::check("check_schedule.py", [file]);
}

#[test]
fn cron_times_on_days_of_clock_changes_match_a_table() {
    let cases = [
        // Clocks go from 2:00 to 3:00 on March 8, and from 2:00 back to 1:00 on November 1.
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"][..],
        ),
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        (
            "0 * * * *",
            "America/New_York",
            "2026-11-01T04:30:00Z",
            &["2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"],
        ),
        ("0 0 * * *", "Europe/London", "2026-03-28T12:00:00Z", &["2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"]),
        ("30 1 * * *", "Europe/London", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
        ("30 1 * * *", "Europe/London", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        // As many times of a day as an expression names.
        (
            "30 2,14 * * *",
            "America/New_York",
            "2027-03-13T20:00:00Z",
            &["2027-03-14T07:00:00Z", "2027-03-14T18:30:00Z", "2027-03-15T06:30:00Z"],
        ),
        (
            "30 1,13 * * *",
            "America/New_York",
            "2027-11-06T20:00:00Z",
            &["2027-11-07T05:30:00Z", "2027-11-07T18:30:00Z", "2027-11-08T06:30:00Z"],
        ),
        ("*/20 2 * * *", "America/New_York", "2027-03-13T20:00:00Z", &["2027-03-14T07:00:00Z", "2027-03-15T06:00:00Z"]),
        // Every hour is every hour, however it is spelled.
        (
            "30 0-23 * * *",
            "America/New_York",
            "2027-11-07T05:00:00Z",
            &["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z", "2027-11-07T07:30:00Z"],
        ),
        // A day that the clock skips.
        ("0 9 30,31 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z", &["2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"]),
        // Half an hour: clocks go from 2:00 to 2:30 on October 4, and from 2:00 back to 1:30 on April 5.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T12:00:00Z",
            &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        ),
        // At a minute past midnight the clock went back to the day before.
        (
            "30 * 3 11 *",
            "America/St_Johns",
            "2007-11-04T01:00:00Z",
            &["2007-11-04T02:00:00Z", "2007-11-04T03:00:00Z", "2008-11-03T04:00:00Z"],
        ),
        (
            "0 * 4 11 *",
            "America/St_Johns",
            "2007-11-04T02:00:00Z",
            &["2007-11-04T02:30:00Z", "2007-11-04T03:30:00Z", "2007-11-04T04:30:00Z"],
        ),
    ];
    for (cron, zone, after, expected) in cases {
        let schedule = schedule(&format!("cron = \"{cron}\"\ntimezone = \"{zone}\""));
        let times: Vec<DateTime<Utc>> = upcoming(&schedule, at(after)).take(expected.len()).collect();
        let expected: Vec<DateTime<Utc>> = expected.iter().map(|time| at(time)).collect();
        assert_eq!(times, expected, "{cron} in {zone}");
    }
}

/// Zones whose clocks change by an hour, by half of one, by two, at midnight, twice more around Ramadan, by a day, never.
const CHANGING: [&str; 10] = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "America/Havana",
    "Pacific/Apia",
    "Antarctica/Troll",
    "Asia/Kathmandu",
];

/// The hours at which the clock of a zone changes in a year; if it does not, an hour in the middle of it.
fn changes(zone: &str, year: i32) -> Vec<DateTime<Utc>> {
    let zone: Tz = zone.parse().expect("a zone");
    let begin = at(&format!("{year}-01-01T00:00:00Z"));
    let offset = |time: DateTime<Utc>| time.with_timezone(&zone).offset().fix();
    let hours = (0..366 * 24).map(|hour| begin + TimeDelta::hours(hour));
    let changes: Vec<_> = hours.filter(|hour| offset(*hour) != offset(*hour + TimeDelta::hours(1))).collect();
    if changes.is_empty() { vec![begin + TimeDelta::days(180)] } else { changes }
}

/// A random expression, most of whose times are in the hours in which clocks change.
fn expression(random: &mut Random) -> String {
    let minute = match random.below(6) {
        0 => "*".to_owned(),
        1 => format!("*/{}", random.between(2, 45)),
        2 => format!("{},{}", random.below(30), random.between(30, 59)),
        3 => format!("{}-{}/{}", random.below(20), random.between(20, 59), random.between(1, 9)),
        _ => random.below(60).to_string(),
    };
    let hour = match random.below(9) {
        0 => "*".to_owned(),
        1 => format!("*/{}", random.between(1, 5)),
        2 => format!("{},{}", random.below(4), random.between(4, 23)),
        3 => format!("{}-{}", random.below(4), random.between(4, 23)),
        4 => format!("{}-23/{}", random.below(4), random.between(1, 4)),
        5 => "0-23".to_owned(),
        6 => random.pick(&["22,23", "23", "0,23"]).to_owned(),
        _ => random.below(5).to_string(),
    };
    let day = random.pick(&["*", "*", "*", "1-15", "*/2", "28-31", "1,15,30"]);
    let weekday = random.pick(&["*", "*", "*", "SUN", "SAT,SUN", "MON-FRI", "FRI-SUN"]);
    format!("{minute} {hour} {day} * {weekday}")
}

#[test]
fn cron_times_of_random_expressions_match_a_minute_by_minute_scan_around_clock_changes() {
    let place = Place::new();
    let mut random = Random::of(5);
    let mut cases = Vec::new();
    for zone in CHANGING {
        for change in [2010, 2011, 2018, 2027].into_iter().flat_map(|year| changes(zone, year)) {
            let (from, to) = (change - TimeDelta::hours(30), change + TimeDelta::hours(30));
            for _ in 0..12 {
                let cron = expression(&mut random);
                let schedule = schedule(&format!("cron = \"{cron}\"\ntimezone = \"{zone}\"\ncatch_up = \"9d\""));
                let times: Vec<DateTime<Utc>> = upcoming(&schedule, from).take_while(|time| *time < to).collect();
                // Looking back gives the same times as looking ahead, also within the hours around the change.
                for _ in 0..2 {
                    let now = change + TimeDelta::seconds(random.below(5 * 3600) as i64 - 2 * 3600);
                    let newest = times.iter().rfind(|time| **time <= now).copied();
                    assert_eq!(Times::at(&schedule, from, now).due, newest, "{cron} in {zone} at {now}");
                }
                let times: Vec<i64> = times.iter().map(DateTime::timestamp).collect();
                cases.push(json!({
                    "cron": cron, "zone": zone, "from": from.timestamp(), "to": to.timestamp(), "times": times,
                }));
            }
        }
    }
    let file = place.file("times.json");
    fs::write(&file, serde_json::to_vec(&cases).unwrap()).unwrap();
    python::check("check_schedule.py", [file]);
}

#[test]
fn due_missed_and_next_times_follow_from_the_list_of_all_times() {
    let mut random = Random::of(29);
    let (from, to) = (at("2026-02-20T00:00:00Z"), at("2026-11-20T00:00:00Z"));
    let span = (to - from).num_seconds() as usize;
    for zone in ZONES {
        for cron in EXPRESSIONS {
            let keys = format!("cron = \"{cron}\"\ntimezone = \"{zone}\"");
            let (before, after) = (from - TimeDelta::days(40), to + TimeDelta::days(400));
            let of_all = schedule(&keys);
            let all: Vec<DateTime<Utc>> = upcoming(&of_all, before).take_while(|time| *time < after).collect();
            for catch_up in ["0s", "90m", "1d", "9d"] {
                let schedule = schedule(&format!("{keys}\ncatch_up = \"{catch_up}\""));
                for _ in 0..5 {
                    let now = from + TimeDelta::seconds(random.below(span) as i64);
                    // Also exactly at a time.
                    let now = if random.one_in(3) { *all.iter().find(|time| **time >= now).unwrap() } else { now };
                    let done = now - TimeDelta::seconds(random.below(20 * 86_400) as i64);
                    let open: Vec<DateTime<Utc>> =
                        all.iter().copied().filter(|time| *time > done && *time <= now).collect();
                    let window = TimeDelta::from_std(schedule.catch_up).unwrap().max(TimeDelta::seconds(60));
                    let due = open.last().copied().filter(|due| now - *due <= window);
                    let missed = (open.len() - usize::from(due.is_some())).min(1000);
                    let next = all.iter().copied().find(|time| *time > now);
                    let expected = Times { due, missed, next };
                    assert_eq!(Times::at(&schedule, done, now), expected, "{cron} in {zone}, {done} to {now}");
                }
            }
        }
    }
}

#[test]
fn cron_names_and_nicknames_are_accepted_only_where_valid() {
    let place = Place::new();
    let check = |cron: &str| {
        place.define(
            "it",
            &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = {cron:?}\n"),
        );
        place.run(["check", "it"])
    };
    for fine in [
        "30 18 * * 1-5",
        "30 18 * * mon-fri",
        "0 6 * JAN-MAR,DEC SUN",
        "0 6 L * *",
        "0 6 15W * *",
        "0 6 * * FRI#2",
        "0 6 * * 5L",
        "0 6 1 * +MON",
        "0 6 29 2 *",
        "*/10 * * * * *",
        "@daily",
        " @Weekly ",
        "  30   18 * * *  ",
    ] {
        let outcome = check(fine).expect_success();
        let times = outcome.stdout.lines().filter(|line| line.starts_with("  ") && line.ends_with(" UTC"));
        assert_eq!(times.count(), 5, "{fine}: {}", outcome.stdout);
    }
    for (wrong, message) in [
        ("30 25 * * *", "invalid hour `25` in a schedule"),
        ("60 * * * *", "invalid minute `60` in a schedule"),
        ("30 MON * * *", "invalid hour `MON` in a schedule"),
        ("JAN 6 * * *", "invalid minute `JAN` in a schedule"),
        ("0 6 * MON *", "invalid month `MON` in a schedule"),
        ("0 6 * * JAN", "invalid day of week `JAN` in a schedule"),
        ("0 6 * JAN1 *", "invalid month `JAN1` in a schedule"),
        ("0 6 * * SUN#6", "invalid day of week `SUN#6` in a schedule"),
        ("0 6 32W * *", "invalid day of month `32W` in a schedule"),
        ("0 FRI-SUN * * *", "invalid hour `FRI-SUN` in a schedule"),
        ("1,, 6 * * *", "invalid minute `1,,` in a schedule"),
        ("0 6 * * MONDAY", "invalid day of week `MONDAY` in a schedule"),
        ("0 6 * * 8", "invalid day of week `8` in a schedule"),
        ("0 6 32 * *", "invalid day of month `32` in a schedule"),
        ("0 6 * *", "a schedule has five fields, found 4"),
        ("", "a schedule has five fields, found 0"),
        ("0 0 6 * * * 2030", "a schedule has five fields, found 7"),
        ("61 0 6 * * *", "invalid second `61` in a schedule"),
        ("@reboot", "unknown schedule `@reboot`"),
        ("0 6 30 2 *", "a schedule that is never due: `0 6 30 2 *`"),
        ("*/0 * * * *", "invalid minute `*/0` in a schedule"),
        ("١ 6 * * *", "invalid minute `١` in a schedule"),
    ] {
        let shown = check(wrong).failed_with(2).stderr;
        assert!(shown.starts_with(&format!("error: {message}\n")) && shown.contains("\nhint: "), "{wrong}: {shown}");
    }
    let shown = check(&"1,".repeat(200)).failed_with(2).stderr;
    assert!(shown.starts_with("error: a schedule is longer than 200 bytes\n"), "{shown}");
}
