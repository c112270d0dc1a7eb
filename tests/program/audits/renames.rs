//! A vendor renames a ticker: it ends, and another goes on with its history. The audit of quality reports it, and a file
//! that says so makes both one: in a column, and in what followed its signals.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::time::Clock;
use chrono::{Datelike, NaiveDate, Weekday};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::days::evening;
use crate::support::program::Place;
use crate::support::random::Random;
use crate::support::rows::{columns, read};
use crate::support::scripted::{self, Scripted};
use crate::support::service::day;

/// The last day of the old name.
fn last_day() -> NaiveDate {
    day(2026, 3, 13)
}

/// The first day of the new one.
fn next_day() -> NaiveDate {
    day(2026, 3, 16)
}

fn weekdays(until: NaiveDate) -> Vec<NaiveDate> {
    let is_weekday = |day: &NaiveDate| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
    day(2026, 1, 5).iter_days().take_while(|day| *day <= until).filter(is_weekday).collect()
}

/// Whether the vendor renames.
#[derive(Clone, Copy, PartialEq)]
enum Vendor {
    /// `OLD` becomes `NEW`, which then has its history as well, two signals of it rewritten.
    Renames,
    /// It was always called `NEW`.
    Keeps,
}

/// The signed confidence of each ticker on each weekday, the renamed one last. The first two have the same.
fn signals() -> Vec<(&'static str, Vec<f64>)> {
    let mut random = Random::of(7);
    let mut draw = |_: NaiveDate| (51 + random.below(49)) as f64 / if random.one_in(2) { 100.0 } else { -100.0 };
    let mut of = |name: &'static str| (name, weekdays(day(2026, 5, 29)).into_iter().map(&mut draw).collect::<Vec<_>>());
    let mut all: Vec<_> = ["AAA", "AAB", "BBB", "CCC", "DDD", "EEE", "NEW"].into_iter().map(&mut of).collect();
    all[1].1 = all[0].1.clone();
    all
}

/// The service, before and after the rename.
fn service(vendor: Vendor, is_later: Arc<AtomicBool>) -> Scripted {
    Scripted::start(move |request| {
        if request.target.starts_with("/a/") && !request.target.contains("signals-history-all") {
            return scripted::json("200 OK", "[]");
        }
        let is_later = is_later.load(Ordering::SeqCst);
        let days = weekdays(if is_later { day(2026, 5, 29) } else { last_day() });
        let mut answer = serde_json::Map::new();
        for (name, signals) in signals() {
            let is_renamed = vendor == Vendor::Renames && name == "NEW";
            let name = if is_renamed && !is_later { "OLD" } else { name };
            // One that just ends.
            let days: Vec<_> = days.iter().filter(|day| name != "EEE" || **day <= last_day()).collect();
            let entry = |(place, (day, signed)): (usize, (&&NaiveDate, f64))| {
                let is_rewritten = is_renamed && is_later && matches!(place, 10 | 20);
                let confidence = if is_rewritten { 0.5 } else { signed.abs() };
                json!({ "date": day.to_string(), "signal": if signed < 0.0 { "sell" } else { "buy" }, "confidence": confidence })
            };
            let entries: Vec<Value> = days.iter().zip(signals).enumerate().map(entry).collect();
            let history = json!({ "ticker": name, "regime": "neutral", "period": "5d", "predictions": entries });
            answer.insert(name.to_owned(), history);
        }
        scripted::json("200 OK", &Value::Object(answer).to_string())
    })
}

/// A place in which the definition was run before and after the rename.
struct World {
    place: Place,
    service: Scripted,
}

impl World {
    fn of(vendor: Vendor) -> Self {
        let is_later = Arc::new(AtomicBool::new(false));
        let world = Self { place: Place::new(), service: service(vendor, Arc::clone(&is_later)) };
        fs::write(world.place.file("key"), "scripted").expect("a key");
        let identity = "ticker,from,to,id\nOLD,,2026-03-13,seven\nNEW,2026-03-16,,seven\n";
        fs::write(world.place.file("identity.csv"), identity).expect("a file");
        for (name, until) in [("before", last_day()), ("after", day(2026, 5, 29))] {
            is_later.store(name == "after", Ordering::SeqCst);
            let plan =
                Plan::of(DefinitionFile::new("it.toml".into(), world.text("")).expect("a name")).expect("a plan");
            let options = Options { clock: Clock::Fixed(evening(until)), ..Options::new(world.place.file("output")) };
            Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
        }
        world.place.define("it", &world.text(""));
        world.place.define("joined", &world.text("[identity]\nfile = \"identity.csv\"\n"));
        world
    }

    fn text(&self, rest: &str) -> String {
        let (source, key) = (self.service.source(), self.place.file("key"));
        format!(
            "[source]\n{source}api_key_file = {key:?}\n[signals]\nsectors = \"x\"\nperiods = \"5d\"\n[dataset]\n\
             kind = \"signals\"\n[checks]\nuniverse = 1\nrewritten = 1\nrewritten_series = 1\n{rest}"
        )
    }

    fn answer(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.place.run(words).expect_success().stdout).expect("JSON")
    }

    /// Closes of every ticker; those of the renamed one under the old name up to its last day, if there is one.
    fn write_prices(&self, file: &str, old: &str) {
        let mut random = Random::of(11);
        let mut rows = "date,ticker,close\n".to_owned();
        for (name, _) in signals() {
            let mut close = 50.0;
            for day in weekdays(day(2026, 6, 19)) {
                close *= 1.0 + (random.below(401) as f64 - 200.0) / 10_000.0;
                let name = if name == "NEW" && day <= last_day() { old } else { name };
                rows.push_str(&format!("{day},{name},{close}\n"));
            }
        }
        fs::write(self.place.file(file), rows).expect("prices");
    }
}

#[test]
fn a_ticker_that_goes_on_with_the_history_of_one_that_ended_is_a_suspected_rename() {
    let world = World::of(Vendor::Renames);
    let expected = |id: Option<&str>| {
        // The 50 weekdays from January 5th to March 13th, of which two are rewritten.
        json!([{
            "ticker": "OLD", "successor": "NEW", "period": "5d", "regime": "neutral", "ends": "2026-03-13",
            "begins": "2026-01-05", "overlap": 50, "equal": 48, "id": id,
        }])
    };
    let whole = world.answer(&["audit", "quality", "--json"]);
    assert_eq!(whole["renames"], expected(None), "twins that both go on, and one that just ends, are none");
    let joined = world.answer(&["audit", "quality", "joined", "--json"]);
    assert_eq!(joined["renames"], expected(Some("seven")));
    let text = world.place.run(["audit", "quality", "it"]).expect_success().stdout;
    let line = text.lines().find(|line| line.starts_with("OLD ") && line.contains("NEW")).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["OLD", "NEW", "-", "2026-03-13", "2026-01-05", "50", "48"]);
    assert!(text.contains("1 ticker goes on with the same history as one that ended"), "{text}");
    let rows = world.place.run(["audit", "quality", "it", "--format", "csv", "--output", "-"]).expect_success().stdout;
    let row = rows.lines().find(|row| row.starts_with("rename,")).expect("a row");
    assert_eq!(row, "rename,,OLD,5d,neutral,2026-01-05T00:00:00,2026-03-13T00:00:00,50,0.96,NEW");
    let unchanged = World::of(Vendor::Keeps).answer(&["audit", "quality", "--json"]);
    assert_eq!(unchanged["renames"], json!([]));
}

#[test]
fn a_dataset_has_the_id_that_each_ticker_had_on_its_date() {
    let world = World::of(Vendor::Renames);
    let rest = "add = \"id\"\n[identity]\nfile = \"identity.csv\"\n";
    world.place.define("ids", &world.text("").replace("kind = \"signals\"\n", &format!("kind = \"signals\"\n{rest}")));
    world.place.run(["build", "ids", "-q"]).expect_success();
    let rows = columns(&read(&world.place.file("output/datasets/ids/latest/ids.parquet")), ["ticker", "date", "id"]);
    let mut of_renamed = [0; 3];
    for [ticker, date, id] in &rows {
        let is_new_day = date[..10].parse::<NaiveDate>().expect("a date") >= next_day();
        let expected = match ticker.as_str() {
            "OLD" => "seven",
            "NEW" if is_new_day => "seven",
            "NEW" => "",
            other => other,
        };
        assert_eq!(id, expected, "{ticker} on {date}");
        let place = ["OLD", "NEW"].iter().position(|name| name == ticker).unwrap_or(2);
        of_renamed[place] += 1;
    }
    // 105 weekdays from January 5th to May 29th, of which 50 are those of the old name.
    assert_eq!(of_renamed[..2], [50, 105]);
    let planned = world.place.run(["check", "ids"]).expect_success().stdout;
    let line =
        "identity: 1 id of 2 tickers on the days of the file, none on their other days; any other ticker is its own id";
    assert!(planned.contains(line), "{planned}");
    assert!(planned.contains("text, may be null"), "{planned}");
    let identity = |name: &str| world.answer(&["check", name, "--json"])["definitions"][0]["plan"]["identity"].clone();
    assert_eq!((&identity("ids")["ids"], &identity("ids")["tickers"]), (&1.into(), &2.into()));
    assert!(identity("it").is_null());
    let statement = world.place.run(["sql", "ids"]).expect_success().stdout;
    assert!(statement.contains("('OLD', date '0001-01-01', date '2026-03-13', 'seven')"), "{statement}");
    // Another day is another dataset, though nothing else has changed.
    let again = || {
        let built = world.place.run(["build", "ids"]).expect_success();
        built.stdout + &built.stderr
    };
    let same = again();
    assert!(same.contains("unchanged since"), "{same}");
    let later = "ticker,from,to,id\nOLD,,2026-03-13,seven\nNEW,2026-03-17,,seven\n";
    fs::write(world.place.file("identity.csv"), later).expect("a file");
    let other = again();
    assert!(!other.contains("unchanged since"), "{other}");
    let twice = "ticker,from,to,id\nOLD,,2026-03-13,seven\nNEW,2026-03-13,,seven\n";
    fs::write(world.place.file("identity.csv"), twice).expect("a file");
    let refused = world.place.run(["build", "ids"]).failed_with(2).stderr;
    let why = "`identity.csv` does not say who is who: line 3: `OLD` and `NEW` have the id `seven` on 2026-03-13, as line 2 says \
               as well: end one before the other begins";
    assert!(refused.contains(why), "{refused}");
}

/// What is measured of the signals; but for the share that turned, which does not count the turn of one name to the next.
fn measures(found: &Value) -> Vec<f64> {
    fn numbers(value: &Value, found: &mut Vec<f64>) {
        match value {
            Value::Number(number) => found.push(number.as_f64().expect("a number")),
            Value::Array(values) => values.iter().for_each(|value| numbers(value, found)),
            Value::Object(values) => {
                let measured = values.iter().filter(|(name, _)| *name != "flips");
                measured.for_each(|(_, value)| numbers(value, found));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    numbers(&found["pairs"][0]["measures"], &mut all);
    assert!(all.len() > 50, "{found:#}");
    all
}

#[test]
fn a_renamed_ticker_is_measured_as_if_it_had_always_had_its_name() {
    let (kept, renamed) = (World::of(Vendor::Keeps), World::of(Vendor::Renames));
    kept.write_prices("prices.csv", "NEW");
    renamed.write_prices("prices.csv", "OLD");
    // Some vendors list all closes under the new name.
    renamed.write_prices("late.csv", "NEW");
    let skill = |world: &World, name: &str, prices: &str| {
        let prices = world.place.file(prices);
        world.answer(&[
            "audit",
            "skill",
            name,
            "--json",
            "--prices",
            prices.to_str().expect("a path"),
            "--allow-missing",
        ])
    };
    let expected = skill(&kept, "it", "prices.csv");
    let measured = &expected["signals"]["measured"];
    for prices in ["prices.csv", "late.csv"] {
        let found = skill(&renamed, "joined", prices);
        let counts = |name: &str| found["signals"][name].as_u64().expect("a count");
        // Entered a session after its date, the position of each of the last six signals ends after March 13th.
        assert_eq!((counts("across_names"), counts("without_id"), counts("without_price")), (6, 50, 0));
        assert_eq!(&found["signals"]["measured"], measured);
        assert_eq!(found["signals"]["measured_live"], expected["signals"]["measured_live"]);
        let (found, expected) = (measures(&found), measures(&expected));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found}, expected {expected}");
        }
    }
    // Without the file the dead drop out, and of the new name all that is entered before its first close.
    let apart = skill(&renamed, "it", "prices.csv");
    let count = |name: &str| apart["signals"][name].as_u64().expect("a count");
    // Those that are held over the change have no close, or end with the last one of the old name.
    assert_eq!((count("without_price") + count("ended"), count("across_names")), (6 + 49, 0));
    let prices = renamed.place.file("prices.csv");
    let text = renamed
        .place
        .run(["audit", "skill", "joined", "--prices", prices.to_str().expect("a path")])
        .expect_success()
        .stdout;
    assert!(text.contains("renamed   6 returns are over a change of ticker\n"), "{text}");
    assert!(text.contains("50 under a name that the file of `[identity]` gives no id then"), "{text}");
}
