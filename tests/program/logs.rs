//! The log as JSON and the environment variables, compared with the operations page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::documents::check;
use crate::help::commands;
use crate::schedules::process::{KEY, define, history, journal};
use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

/// The rows of a table of the page.
fn table(name: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once(&format!("<!-- {name} -->\n")).expect("the table");
    let (table, _) = rest.split_once(&format!("<!-- end of {name} -->")).expect("its end");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.lines().skip(2).map(cells).collect()
}

/// The texts in backticks.
fn texts_in_backticks(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
}

/// The events of a command, each checked against the page.
fn events(outcome: &Outcome) -> Vec<Value> {
    let kinds: BTreeSet<String> = table("events").iter().flat_map(|row| texts_in_backticks(&row[0])).collect();
    let read = |line: &str| -> Value {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        let text = |key: &str| event[key].as_str().unwrap_or_else(|| panic!("no `{key}`: {line}"));
        assert!(text("timestamp").ends_with('Z'), "{line}");
        DateTime::parse_from_rfc3339(text("timestamp")).unwrap_or_else(|_| panic!("{line}"));
        assert!(["trace", "debug", "info", "warn", "error"].contains(&text("level")), "{line}");
        assert!(kinds.contains(text("event")), "{line}");
        assert!(!line.contains(KEY.1), "{line}");
        event
    };
    outcome.stderr.lines().map(read).collect()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn every_event_has_a_timestamp_a_level_and_a_documented_kind_and_its_run_joins_all_that_is_kept() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.target.contains("sector=energy") {
        true => json("200 OK", &history()),
        false => json("403 Forbidden", "{}"),
    });
    for name in ["energy", "failing"] {
        define(&place, name, &service, "");
    }
    let metrics = place.file("bellwether.prom");
    for (name, code) in [("energy", 0), ("failing", 1)] {
        let mut command = place.command(["run", name, "--log", "json", "--log-level", "debug", "--metrics"]);
        let outcome = Outcome::of(command.arg(&metrics).envs([KEY])).failed_with(code);
        let events = events(&outcome);
        let record = &journal(&place, name)[0];
        let run = record["run"].as_str().expect("a name").to_owned();
        let named: BTreeSet<&str> = events.iter().filter_map(|event| event["run"].as_str()).collect();
        assert_eq!(named, BTreeSet::from([run.as_str()]), "{events:?}");
        assert!(!of_kind(&events, "log").is_empty());
        let text = fs::read_to_string(&metrics).unwrap();
        assert!(
            text.contains(&format!("bellwether_run_last_info{{definition=\"{name}\",run=\"{run}\"}} 1\n")),
            "{text}"
        );
        let is_sealed = place.file(&format!("output/archive/vendor/run={run}")).is_dir();
        assert_eq!((is_sealed, of_kind(&events, "error").len()), (code == 0, usize::from(code != 0)));
        let stdout: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(stdout.len(), usize::from(code == 0), "the summary alone is data");
        for error in of_kind(&events, "error") {
            assert_eq!((&error["run"], &error["exit_code"]), (&run.as_str().into(), &1.into()));
        }
    }
    place.define("broken", "[signals]\nsectors = 5\n");
    let outcome = Outcome::of(place.command(["run", "broken", "--log", "json"]).envs([KEY])).failed_with(2);
    let events = events(&outcome);
    let problem = &of_kind(&events, "error")[0]["problems"][0];
    assert!(problem["message"].is_string() && problem["line"].is_u64(), "{events:?}");
}

#[test]
fn the_events_of_a_scheduler_are_those_of_the_page() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    define(&place, "energy", &service, "[schedule]\ncron = \"@hourly\"\n");
    place.define("broken", "[schedule]\ncron = \"x\"\n");
    // A broken definition does not affect the others, but the exit code.
    let once = || Outcome::of(place.command(["schedule", "--once", "--log", "json"]).envs([KEY])).failed_with(2);
    events(&once());
    // As if it had been down for three hours.
    let memory = place.file("output/schedule/energy.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&memory).unwrap()).unwrap();
    text["done"] = (Utc::now() - TimeDelta::hours(3)).to_rfc3339_opts(chrono::SecondsFormat::Micros, true).into();
    fs::write(&memory, text.to_string()).unwrap();
    let events = events(&once());
    let by_kind: BTreeMap<&str, &Value> =
        events.iter().map(|event| (event["event"].as_str().unwrap(), event)).collect();
    by_kind.values().for_each(|event| check(&place, "events", &event.to_string()));
    let kinds: BTreeSet<&str> = by_kind.into_keys().collect();
    assert!(kinds.is_superset(&["broken", "missed", "started", "finished", "ended"].into()), "{events:?}");
    let run = &journal(&place, "energy")[0]["run"];
    assert!(events.iter().all(|event| event["run"].is_null() || event["run"] == *run), "{events:?}");
}

#[test]
fn the_page_lists_every_option_with_a_variable() {
    let place = Place::new();
    let program = place.run(["--help"]).expect_success().stdout;
    let without_option = ["API_KEY", "API_KEY_FILE", "BASE_URL", "SENTIMENT_BASE_URL"];
    let mut listed: BTreeSet<String> = without_option.map(|name| format!("BELLWETHER_{name}")).into();
    for row in table("variables") {
        let (variable, option) = (texts_in_backticks(&row[0]).remove(0), texts_in_backticks(&row[1]).remove(0));
        let of = texts_in_backticks(&row[2]);
        let all = commands().into_iter();
        let with =
            all.filter(|(_, command)| command.get_arguments().any(|it| it.get_long() == option.strip_prefix("--")));
        let with: Vec<String> = with.map(|(words, _)| words.join(" ")).collect();
        assert!(!with.is_empty() && of.iter().all(|command| with.contains(command)), "{option}: {with:?}");
        assert!(program.contains(&variable), "{variable} of {with:?}");
        listed.insert(variable);
    }
    for (words, _) in commands().into_iter().filter(|(words, _)| !words.is_empty()) {
        let help = place.run(words.iter().map(String::as_str).chain(["--help"])).expect_success().stdout;
        let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
        for word in help.split(|letter| !is_name(letter)).filter(|word| word.starts_with("BELLWETHER_")) {
            assert!(listed.contains(word), "{word} of {words:?} is not on the page");
        }
    }
}

#[test]
fn each_variable_works_like_its_option_and_the_option_takes_precedence() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    define(&place, "energy", &service, "");
    let elsewhere = Place::new();
    let at = |name: &str| elsewhere.file(name).to_str().expect("a path").to_owned();
    let with = |arguments: &[&str], variables: &[(&str, &str)]| {
        Outcome::of(elsewhere.command(arguments).envs([KEY]).envs(variables.iter().copied()))
    };
    let root = place.path().to_str().unwrap();
    let (data, archive, metrics) = (at("data"), at("kept"), at("metrics"));
    let store = format!("file://{}", at("store"));
    fs::create_dir(elsewhere.file("store")).unwrap();
    let all = [
        ("BELLWETHER_ROOT", root),
        ("BELLWETHER_DATA", &*data),
        ("BELLWETHER_ARCHIVE", &*archive),
        ("BELLWETHER_STORE", &*store),
        ("BELLWETHER_METRICS", &*metrics),
        ("BELLWETHER_LOG", "json"),
        ("BELLWETHER_LOG_LEVEL", "debug"),
    ];
    let outcome = with(&["run", "energy"], &all).expect_success();
    assert!(!of_kind(&events(&outcome), "log").is_empty());
    for made in ["data/datasets/energy/latest", "data/journal", "kept/.locks", "store/datasets/energy", "metrics"] {
        assert!(elsewhere.file(made).exists(), "{made}");
    }
    assert!(!elsewhere.file("output").exists() && !place.file("output").exists());
    let other = at("other");
    with(&["run", "energy", "-q", "--data", &other, "--archive", &other, "--log", "text"], &all).expect_success();
    assert!(elsewhere.file("other/datasets/energy/latest").exists());
    for (command, variable, wrong) in [
        ("schedule", "BELLWETHER_JOBS", "0"),
        ("schedule", "BELLWETHER_LISTEN", "nowhere"),
        ("prune", "BELLWETHER_PRUNE_OLDER_THAN", "0d"),
    ] {
        let refused = with(&[command], &[("BELLWETHER_ROOT", root), (variable, wrong)]).failed_with(2);
        assert!(refused.stderr.contains(&format!("invalid value `{wrong}`")), "{}", refused.stderr);
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    define(&place, "energy", &service, "[schedule]\ncron = \"@yearly\"\n");
    fs::write(place.file("key"), KEY.1).unwrap();
    let empty: Vec<String> = table("variables").iter().map(|row| texts_in_backticks(&row[0]).remove(0)).collect();
    assert!(empty.len() > 9, "{empty:?}");
    let with = |arguments: &[&str], key: [(&str, &str); 2]| {
        let variables = empty.iter().map(|variable| (variable.as_str(), ""));
        Outcome::of(place.command(arguments).envs(variables).envs(key))
    };
    let by_file = [("BELLWETHER_API_KEY", ""), ("BELLWETHER_API_KEY_FILE", "key")];
    let by_value = [KEY, ("BELLWETHER_API_KEY_FILE", "")];
    for key in [by_file, by_value] {
        assert_eq!(with(&["run", "energy", "-q"], key).expect_success().stderr, "");
    }
    assert!(place.file("output/datasets/energy/latest").exists() && place.file("output/archive/vendor").exists());
    for command in
        [&["schedule", "--once"][..], &["status"], &["prune"], &["verify", "--sizes", "--store", "file:///tmp"]]
    {
        with(command, by_file).expect_success();
    }
    let neither = [("BELLWETHER_API_KEY", ""), ("BELLWETHER_API_KEY_FILE", "")];
    let shown = with(&["run", "energy"], neither).failed_with(1).stderr;
    assert!(shown.contains("error: no API key for "), "{shown}");
    // Nothing was made of an empty path.
    let top: BTreeSet<String> =
        place.files().iter().filter_map(|path| Some(path.iter().next()?.to_str()?.to_owned())).collect();
    assert_eq!(top, ["key", "output", "pipelines"].map(ToOwned::to_owned).into());
}
