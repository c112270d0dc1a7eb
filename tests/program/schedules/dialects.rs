//! Expressions as the platforms read them: the same times as here, or a refusal.

use std::fs;

use bellwether::definition::Cron;
use bellwether_cli::schedule::print::{Platform, Settings, Setup, print};
use bellwether_cli::schedule::{Folders, upcoming};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::arithmetic::{at, schedule};
use crate::support::program::Place;
use crate::support::python;
use crate::support::random::Random;

const ZONES: [&str; 7] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Apia",
];

/// A random expression of everything that one may have.
fn expression(random: &mut Random) -> String {
    let seconds = random.pick(&["", "", "", "", "", "", "", "0 ", "30 "]);
    let minute = match random.below(5) {
        0 => format!("*/{}", random.between(1, 40)),
        1 => format!("{},{}", random.below(30), random.between(30, 59)),
        2 => format!("{}-{}", random.below(30), random.between(30, 59)),
        _ => random.below(60).to_string(),
    };
    let hour = match random.below(5) {
        0 => "*".to_owned(),
        1 => format!("{}-{}/{}", random.below(10), random.between(10, 23), random.between(1, 5)),
        2 => format!("{},{}", random.below(12), random.between(12, 23)),
        _ => random.below(24).to_string(),
    };
    let days = ["*", "*", "*", "?", "1", "1,15", "31", "28-31", "*/5", "1-31", "L", "1,L", "1W", "15W", "31W", "LW"];
    let months = ["*", "*", "*", "JAN", "*/3", "1-6", "FEB", "12", "1-12"];
    let weekdays = [
        "*",
        "*",
        "*",
        "?",
        "MON-FRI",
        "MON-SUN",
        "FRI-SUN",
        "7",
        "0,7",
        "*/2",
        "1-5",
        "SAT,SUN",
        "5#2",
        "MON#1,FRI#1",
        "5L",
        "SUNL",
        "1,5#2",
        "+MON",
        "0-6",
    ];
    let (day, month, weekday) = (random.pick(&days), random.pick(&months), random.pick(&weekdays));
    format!("{seconds}{minute} {hour} {day} {month} {weekday}")
}

/// What is printed for a definition with a schedule.
fn print_for(place: &Place, platform: Platform, keys: &str, now: DateTime<Utc>) -> bellwether::error::Result<String> {
    place.define(
        "it",
        &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\n{keys}\n"),
    );
    let data = place.file("output");
    let folders = Folders { definitions: place.file("pipelines"), archive: data.join("archive"), data };
    print(platform, &Setup::of(place.path(), &folders, Settings::default(), now)?)
}

/// Random expressions with what is printed for them and their next ten times. What is refused has what only some
/// platforms have.
fn cases(platform: Platform, only_here: &[char]) -> Vec<Value> {
    let place = Place::new();
    let mut random = Random::of(38);
    let (mut cases, mut refused) = (Vec::new(), 0);
    while cases.len() < 250 {
        let (cron, zone) = (expression(&mut random), random.pick(&ZONES));
        // Some are due on no day.
        if cron.parse::<Cron>().is_err() {
            continue;
        }
        let from = at("2026-01-01T00:00:00Z") + TimeDelta::minutes(random.below(3 * 365 * 1440) as i64);
        let keys = format!("cron = \"{cron}\"\ntimezone = \"{zone}\"");
        match print_for(&place, platform, &keys, from) {
            Ok(text) => {
                let schedule = schedule(&keys);
                let times: Vec<i64> = upcoming(&schedule, from).take(10).map(|time| time.timestamp()).collect();
                cases.push(
                    json!({ "cron": cron, "zone": zone, "from": from.timestamp(), "times": times, "text": text }),
                );
            }
            Err(error) => {
                refused += 1;
                let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
                assert!(message.starts_with("the schedule of `it` has "), "{cron}: {message}");
                assert!(hint.contains("in `cron` of `") && hint.contains("it.toml`"), "{cron}: {hint}");
                let has_seconds = cron.starts_with("30 ") && cron.split(' ').count() == 6;
                assert!(has_seconds || cron.contains(only_here), "{cron}: {message}");
            }
        }
    }
    assert!(refused > 10, "{refused}");
    cases
}

#[track_caller]
fn compare(platform: Platform, only_here: &[char]) {
    let place = Place::new();
    let file = place.file("cases.json");
    fs::write(&file, json!(cases(platform, only_here)).to_string()).expect("a file for a test");
    python::check_with_airflow("check_dialects.py", [platform.as_str().into(), file.into_os_string()]);
}

#[test]
fn kubernetes_starts_a_definition_when_it_is_due_or_its_expression_is_refused() {
    compare(Platform::Kubernetes, &['L', 'W', '#', '+']);
}

#[test]
fn airflow_starts_a_definition_when_it_is_due_or_its_expression_is_refused() {
    compare(Platform::Airflow, &['L', 'W', '#', '+']);
}

#[test]
fn github_starts_a_workflow_whenever_a_definition_is_due_or_its_expression_is_refused() {
    compare(Platform::GithubActions, &[]);
}

#[test]
fn what_airflow_shares_beyond_numbers_is_translated() {
    let place = Place::new();
    let now = at("2026-11-20T00:00:00Z");
    for (cron, there) in [
        ("0 6 L * *", "0 6 L * *"),
        ("0 6 15W * *", "0 6 15W * *"),
        ("0 6 * * FRI#2", "0 6 * * 5#2"),
        ("0 6 * * 7L", "0 6 * * L0"),
        ("0 6 * * MON-SUN", "0 6 * * *"),
        ("0 0 6 * * 7", "0 6 * * 0"),
    ] {
        let text = print_for(&place, Platform::Airflow, &format!("cron = \"{cron}\""), now).unwrap();
        assert!(text.contains(&format!("cron=\"{there}\",")), "{cron}: {text}");
    }
    for cron in ["0 6 1,L * *", "0 6 LW * *", "0 6 31W * *", "0 6 1 * +MON", "0 6 L * MON"] {
        print_for(&place, Platform::Airflow, &format!("cron = \"{cron}\""), now).unwrap_err();
    }
}
