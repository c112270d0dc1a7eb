//! What the archive can know of an instant: nothing before the first answer, and nothing after the last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, Options};
use bellwether::time::Clock;
use chrono::NaiveDate;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::rows::{columns, read};
use crate::support::scripted::{self, Scripted};

/// A service that lists three tickers, and from the 6th on only two of them.
fn service(today: Arc<AtomicU32>) -> Scripted {
    Scripted::start(move |request| {
        if request.target.contains("news_articles/") {
            return scripted::json("200 OK", r#"[{"date":"2026-02-01","title":"t","score":0.5,"link":"l"}]"#);
        }
        let entries = json!([{ "date": "2026-03-02", "signal": "buy", "confidence": 0.5 }]);
        let history = |ticker: &&str| {
            let history = json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": entries });
            ((*ticker).to_owned(), history)
        };
        let listed = match today.load(Ordering::SeqCst) {
            _ if request.target.contains("sector=y") => &["CCC"][..],
            ..6 => &["AAA", "BBB", "CCC"],
            _ => &["AAA", "CCC"],
        };
        let all: BTreeMap<String, Value> = listed.iter().map(history).collect();
        scripted::json("200 OK", &json!(all).to_string())
    })
}

#[test]
fn a_build_says_what_was_not_watched_at_its_instant() {
    let (place, today) = (Place::new(), Arc::new(AtomicU32::new(0)));
    let service = service(Arc::clone(&today));
    fs::write(place.file("key"), "demo").expect("a key");
    let define = |name: &str, sector: &str, rest: &str| {
        let signals = format!("[signals]\nsectors = \"{sector}\"\nperiods = \"5d\"\nregimes = \"bear\"\n");
        let rest = format!(
            "api_key_file = \"key\"\n{signals}[checks]\nuniverse = 1.0\n[dataset]\nadd = \"watched_until\"\n{rest}"
        );
        place.define(name, &format!("[source]\n{}{rest}", service.source()));
    };
    define("other", "y", "kind = \"signals\"\n");
    define("it", "x", "[join]\nwindows = \"1d\"\n");
    let runtime = Runtime::new().expect("a runtime");
    let run = |name: &str, day: u32| {
        today.store(day, Ordering::SeqCst);
        let now = NaiveDate::from_ymd_opt(2026, 3, day).and_then(|day| day.and_hms_opt(21, 0, 0)).expect("an instant");
        let project = Project::at(place.path()).expect("a project");
        let options = Options { clock: Clock::Fixed(now.and_utc()), ..Options::new(place.file("output")) };
        runtime.block_on(run::run(Plan::find(name, &project).expect("a plan"), options)).expect("it runs");
    };
    for (name, day) in [("other", 3), ("it", 5), ("it", 6), ("other", 10)] {
        run(name, day);
    }
    let shown = place.run(["build", "it", "--as-of", "2026-03-04"]).failed_with(1).stderr;
    assert!(
        shown.contains("no data for `it` as of 2026-03-04T23:59:59.999999Z: the first run with its signals was sealed at 2026-03-05T21:00:00.000000Z\n"),
        "{shown}"
    );
    let notes = |as_of: &str| place.run(["build", "it", "--as-of", as_of]).expect_success().stdout;
    let until = "the signals were last asked for at 2026-03-06 21:00:00 UTC: nothing is known of the 3 days after that";
    assert!(notes("2026-03-10T20:00:00Z").contains(until));
    assert!(!notes("2026-03-07T20:00:00Z").contains("last asked for"));
    // A definition that asks for more than was asked then.
    define("it", "x\", \"y", "[join]\nwindows = \"1d\"\n");
    let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
    fs::write(place.file("pipelines/it.toml"), text.replace("\"x\", \"y\"", "[\"x\", \"z\"]")).expect("a definition");
    let shown = notes("2026-03-07");
    let unanswered = "not answered by then: 1 request: signals-history-all sector=z period=5d regime=bear";
    assert!(shown.contains(unanswered), "{shown}");
    define("it", "x", "[join]\nwindows = \"1d\"\n");

    // One series is no longer listed since the 6th, and one is in the answers to another definition, too.
    let version = place.file("output/datasets/it/latest");
    place.run(["build", "it"]).expect_success();
    let found: BTreeSet<[String; 2]> =
        columns(&read(&version.join("it.parquet")), ["ticker", "watched_until"]).into_iter().collect();
    let evening = |day: u32| format!("2026-03-{day:02}T21:00:00Z");
    let expected = [("AAA", 6), ("BBB", 6), ("CCC", 10)].map(|(ticker, day)| [ticker.to_owned(), evening(day)]);
    assert_eq!(found, BTreeSet::from(expected));
    let record: Value =
        serde_json::from_slice(&fs::read(version.join("dataset.json")).expect("a record")).expect("JSON");
    let watched = json!({ "from": "2026-03-03T21:00:00.000000Z", "until": "2026-03-10T21:00:00.000000Z", "ended": 1 });
    assert_eq!(record["watched"], watched);
    let summary = place.run(["report", "--text", "it"]).expect_success().stdout;
    assert!(summary.contains("2026-03-03 21:00:00 UTC to 2026-03-10 21:00:00 UTC; 1 no longer listed"), "{summary}");
    // A run that changes nothing moves the end.
    run("it", 11);
    let found = columns(&read(&version.join("it.parquet")), ["ticker", "watched_until"]);
    let until = |ticker: &str| found.iter().find(|[of, _]| of == ticker).map(|[_, until]| until.clone());
    assert_eq!([until("AAA"), until("BBB")], [Some(evening(11)), Some(evening(6))]);

    let cases: Vec<Value> = ["it", "other"]
        .map(|name| {
            let statement = place.run(["sql", name]).expect_success().stdout;
            let sql = place.file(&format!("{name}.sql"));
            fs::write(&sql, statement).expect("a file");
            place.run(["build", name, "-q"]).expect_success();
            json!({ "sql": sql, "dataset": place.file(&format!("output/datasets/{name}/latest/{name}.parquet")) })
        })
        .into();
    fs::write(place.file("cases.json"), json!(cases).to_string()).expect("a file");
    python::check("check_sql.py", ["duckdb", place.file("cases.json").to_str().expect("a path")]);
}

#[test]
fn a_changed_definition_is_told_wherever_it_makes_a_difference() {
    let (place, today) = (Place::new(), Arc::new(AtomicU32::new(3)));
    let service = service(today);
    fs::write(place.file("key"), "demo").expect("a key");
    let define = |name: &str, lag: &str| {
        let signals = "[signals]\nsectors = \"x\"\nperiods = \"5d\"\nregimes = \"bear\"\n";
        let rest = format!("api_key_file = \"key\"\n{signals}[join]\nlag = \"{lag}\"\n");
        place.define(name, &format!("[source]\n{}{rest}", service.source()));
    };
    define("it", "1d");
    place.run(["run", "it"]).expect_success();
    let runs: Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).expect("JSON");
    let sealed = runs["runs"][0]["sealed_at"].as_str().expect("an instant").to_owned();
    let changed = "join.lag: \"1d\", now \"2d\"";
    define("it", "2d");
    assert!(place.run(["status", "it"]).stdout.contains(&format!("changed   {changed}, since the latest version\n")));
    let status: Value = serde_json::from_str(&place.run(["status", "it", "--json"]).stdout).expect("JSON");
    let key = json!([{ "key": "join.lag", "before": "\"1d\"", "after": "\"2d\"" }]);
    assert_eq!(status["definitions"][0]["changed"], key);
    let shown = place.run(["run", "it"]).expect_success().stdout;
    assert!(shown.contains("the definition changed since version") && shown.contains(changed), "{shown}");
    assert!(!place.run(["status", "it"]).stdout.contains("changed "));
    let shown = place.run(["build", "it", "--as-of", &sealed]).expect_success().stdout;
    assert!(shown.contains(&format!("the definition was another one then: {changed}")), "{shown}");
    // The text of each definition is in the seal of the first run that had it.
    let texts = || {
        let runs = fs::read_dir(place.file("output/archive/vendor")).expect("an archive").flatten();
        let seals = runs.filter_map(|run| fs::read(run.path().join("run.json")).ok());
        let seals = seals.map(|seal| serde_json::from_slice::<Value>(&seal).expect("JSON"));
        seals.filter(|seal| seal["definition"]["text"].is_string()).count()
    };
    assert_eq!(texts(), 2);
    place.run(["run", "it"]).expect_success();
    assert_eq!(texts(), 2);

    // What there is if a version or a pin is not.
    let versions = place.file("output/datasets/it");
    let first = fs::read_dir(&versions).expect("versions").flatten().map(|entry| entry.file_name()).min().expect("one");
    symlink("20260101T000000Z-0000", versions.join("gone")).expect("a pin");
    let first = first.into_string().expect("text");
    for arguments in [&["build", "it", "--as-of", "20260101T000000Z-0000"][..], &["show", "it/gone"]] {
        let shown = Outcome::of(&mut place.command(arguments)).stderr;
        assert!(shown.contains(&first) && shown.contains("hint: ") && !shown.contains("it/gone,"), "{shown}");
    }

    // A renamed file.
    fs::rename(place.file("pipelines/it.toml"), place.file("pipelines/renamed.toml")).expect("it is renamed");
    let shown = place.run(["run", "renamed"]).expect_success().stdout;
    assert!(shown.contains("`renamed` starts anew: the versions and the schedule's memory of `it`"), "{shown}");
    let shown = place.run(["run", "renamed"]).expect_success().stdout;
    assert!(!shown.contains("starts anew"), "{shown}");
}
