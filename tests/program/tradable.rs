//! When a row was known, and when it could first be traded on, by a market's calendar.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether::error::ErrorKind;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::Place;
use crate::support::python;
use crate::support::rows::{columns, read};
use crate::support::scripted::{self, Scripted};

fn march(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, day).expect("a day")
}

/// Monday to Friday, but for a holiday on Tuesday the 17th.
fn is_session(day: u32) -> bool {
    day != 17 && !matches!(march(day).weekday(), Weekday::Sat | Weekday::Sun)
}

/// The open and the close of each session, in UTC: clocks go forward in New York on the 8th, and the 20th ends early.
fn sessions() -> Vec<(u32, DateTime<Utc>, DateTime<Utc>)> {
    let hours = |day: u32| {
        let at = |hour: u32, minute: u32| march(day).and_hms_opt(hour, minute, 0).expect("a time").and_utc();
        let summer = u32::from(day >= 8);
        (day, at(14 - summer, 30), if day == 20 { at(17, 0) } else { at(21 - summer, 0) })
    };
    (1..=25).filter(|day| is_session(*day)).map(hours).collect()
}

/// A service that lists the signals of earlier weekdays, of which it rewrites that of the 12th on the 19th.
fn service(today: Arc<AtomicU32>) -> Scripted {
    Scripted::start(move |request| {
        let today = today.load(Ordering::SeqCst);
        if request.target.contains("news_articles/") {
            return scripted::json("200 OK", r#"[{"date":"2026-02-01","title":"t","score":0.5,"link":"l"}]"#);
        }
        let days = (2..today).filter(|day| !matches!(march(*day).weekday(), Weekday::Sat | Weekday::Sun));
        let entry = |day: u32| {
            let confidence = if day == 12 && today >= 19 { 0.75 } else { 0.5 };
            json!({ "date": march(day).to_string(), "signal": "buy", "confidence": confidence })
        };
        let entries: Vec<Value> = days.map(entry).collect();
        let history = json!({ "ticker": "AAA", "regime": "bear", "period": "5d", "predictions": entries });
        scripted::json("200 OK", &json!({ "AAA": history }).to_string())
    })
}

/// The instant of a cell, if it has one.
fn instant(cell: &str) -> Option<DateTime<Utc>> {
    let text = cell.replacen(' ', "T", 1);
    (text != "null" && !text.is_empty()).then(|| text.parse().unwrap_or_else(|_| panic!("no instant: {cell}")))
}

#[test]
fn a_row_is_traded_at_the_first_open_or_close_after_it_was_known() {
    let (place, today) = (Place::new(), Arc::new(AtomicU32::new(0)));
    let service = service(Arc::clone(&today));
    fs::write(place.file("key"), "demo").expect("a key");
    let listed = sessions()
        .into_iter()
        .map(|(day, open, close)| format!("{},{},{}\n", march(day), open.to_rfc3339(), close.to_rfc3339()));
    fs::write(place.file("market.csv"), format!("date,open,close\n{}", listed.collect::<String>())).expect("a file");
    let define = |name: &str, calendar: &str, rest: &str| {
        let source = service.source();
        let text = format!(
            "[source]\n{source}api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
             made_at = \"16:00 America/New_York\"\n[dataset]\nadd = [\"backfilled\", \"known_at\", \"tradable_at\"]\n\
             [join]\nwindows = \"1d\"\nlag = \"1 trading day\"\n[calendar]\nsessions = \"market.csv\"\n{calendar}{rest}"
        );
        place.define(name, &text);
    };
    define("it", "", "");
    define("open", "trade_at = \"open\"\n", "");
    define("first", "trade_at = \"close\"\n", "[output]\nvintage = \"first\"\n");
    let runtime = Runtime::new().expect("a runtime");
    let at = |day: u32| march(day).and_hms_opt(20, 30, 0).expect("a time").and_utc();
    let project = Project::at(place.path()).expect("a project");
    let run = |name: &str, day: u32| {
        today.store(day, Ordering::SeqCst);
        let options = Options { clock: Clock::Fixed(at(day)), ..Options::new(place.file("output")) };
        runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options))
    };
    let days: Vec<u32> = (11..=23).filter(|day| is_session(*day)).collect();
    for day in &days {
        run("it", *day).expect("it runs");
    }
    for name in ["open", "first"] {
        place.run(["build", name, "-q"]).expect_success();
    }
    // Signals of the 10th, a Tuesday, and before were seen too late on the 11th: more than two sessions after.
    let seen = |day: u32| days.iter().copied().find(|run| *run > day).expect("a run");
    let late = |day: u32| sessions().iter().filter(|(session, ..)| day < *session && *session <= seen(day)).count() > 2;
    for (name, trades) in [("it", [true, true]), ("open", [true, false]), ("first", [false, true])] {
        let rows = read(&place.file(&format!("output/datasets/{name}/latest/{name}.parquet")));
        let rows = columns(&rows, ["date", "backfilled", "known_at", "tradable_at"]);
        assert_eq!(rows.len(), 15);
        for [date, backfilled, known, tradable] in rows {
            let day: u32 = date[8..10].parse().expect("a day");
            assert_eq!(backfilled == "true", late(day), "{name}, {date}");
            let expected = if day == 12 && name != "first" { at(19) } else { at(seen(day)) };
            assert_eq!(instant(&known), Some(expected), "{name}, {date}");
            let expected = if late(day) {
                // As if it had been made at the close, and used a session later.
                let next = sessions().into_iter().find(|(session, ..)| *session > day).expect("a session").0;
                let close = march(day).and_hms_opt(if day < 8 { 21 } else { 20 }, 0, 0).expect("a time").and_utc();
                close + TimeDelta::days((next - day).into())
            } else {
                expected
            };
            let all = sessions().into_iter().flat_map(|(_, open, close)| [(trades[0], open), (trades[1], close)]);
            let first = all.filter(|(is_taken, at)| *is_taken && *at > expected).map(|(_, at)| at).min();
            assert_eq!(instant(&tradable), first, "{name}, {date}");
        }
    }
    let planned = place.run(["check", "it"]).expect_success().stdout;
    assert!(planned.contains("\nsignals without a time: made at 16:00 America/New_York\n"), "{planned}");
    let refused = place.run(["sql", "it"]).failed_with(1).stderr;
    assert!(refused.contains("SQL cannot compute `known_at`"), "{refused}");
}

#[test]
fn a_holiday_makes_no_data_stale_and_a_calendar_that_has_ended_says_so() {
    let (place, today) = (Place::new(), Arc::new(AtomicU32::new(0)));
    let service = service(Arc::clone(&today));
    fs::write(place.file("key"), "demo").expect("a key");
    let one = "date,open,close\n2026-03-16,2026-03-16T09:30:00-04:00,2026-03-16T16:00:00-04:00\n";
    fs::write(place.file("market.csv"), one).expect("a file");
    let runtime = Runtime::new().expect("a runtime");
    let project = Project::at(place.path()).expect("a project");
    let run = |name: &str, calendar: &str, minute: u32| {
        let source = service.source();
        let text = format!(
            "[source]\n{source}api_key_file = \"key\"\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n\
             [dataset]\nkind = \"signals\"\n[checks]\nmax_age = \"0 trading days\"\n{calendar}"
        );
        place.define(name, &text);
        today.store(17, Ordering::SeqCst);
        let now = march(17).and_hms_opt(12, minute, 0).expect("a time").and_utc();
        let options = Options { clock: Clock::Fixed(now), ..Options::new(place.file("output")) };
        runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options))
    };
    // On Tuesday the 17th the newest signal is of Monday.
    let stale = run("weekdays", "", 0).expect_err("it is stale");
    assert_eq!(stale.kind(), ErrorKind::Checks, "{stale:?}");
    run("holidays", "[calendar]\nholidays = \"2026-03-17\"\n", 1).expect("it is fresh");
    // The file ends on Monday, so Tuesday counts, and the run says why.
    let ended = run("ended", "[calendar]\nsessions = \"market.csv\"\n", 2).expect_err("it is stale");
    assert_eq!(ended.kind(), ErrorKind::Checks, "{ended:?}");
    let planned = place.run(["check", "ended"]).expect_success().stdout;
    assert!(planned.contains("\ntrading days: as listed until 2026-03-16, then Monday to Friday\n"), "{planned}");
    let checked = place.run(["check", "ended"]).expect_success();
    let note = "the calendar ends on 2026-03-16: list later sessions, or each Monday to Friday counts as a trading day";
    assert!((checked.stdout + &checked.stderr).contains(note));
}

#[test]
fn the_sessions_of_new_york_are_those_of_exchange_calendars() {
    python::check("check_sessions.py", std::iter::empty::<&Path>());
}
