//! Claims: what was saved before the first run counts if it is asked for, as if it had been witnessed, and otherwise nowhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::{Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use bellwether::definition::DefinitionFile;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::time::{Clock, to_record};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::days::evening;
use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::rows::{read, texts};
use crate::support::scripted::{Scripted, json as reply};
use crate::support::service::{KEY, day};

const SIGNALS: &str = "signals-history-all?sector=energy&period=5d&regime=neutral";
const NEWS: &str = "news_articles/{ticker}";
const TICKERS: [&str; 2] = ["CVX", "XOM"];

/// Everything that tells when something was known.
const LINEAGE: &str = "[output]\nlive_within = \"4d\"\n[dataset]\nadd = [\"first_observed_at\", \"observed_at\", \"revisions\", \"backfilled\"]\n";

/// When a run of a number takes place.
fn at(number: usize) -> DateTime<Utc> {
    evening(day(2026, 11, 19)) + TimeDelta::days(number as i64)
}

fn date(number: usize, age: usize) -> NaiveDate {
    day(2026, 11, 19) + TimeDelta::days(number as i64) - TimeDelta::days(age as i64)
}

/// The signals of a ticker on an evening, newest first: the window slides, one date is rewritten each time, and one is missing on
/// the second evening.
fn signals(number: usize) -> Vec<(NaiveDate, &'static str, f64)> {
    let dates = (0..12).map(|age| date(number, age)).filter(|date| number != 2 || *date != day(2026, 11, 15));
    dates
        .map(|date| {
            let confidence = if date == day(2026, 11, 14) { 0.5 + 0.01 * number as f64 } else { 0.75 };
            (date, if date.to_string().ends_with(['1', '4', '7']) { "sell" } else { "buy" }, confidence)
        })
        .collect()
}

/// What the vendor answers on an evening.
fn body(number: usize, target: &str) -> Value {
    if target.contains("signals-history-all") {
        let history = |ticker: &str| {
            let entry = |(date, signal, confidence): (NaiveDate, &str, f64)| json!({"date": date.to_string(), "signal": signal, "confidence": confidence});
            let entries: Vec<Value> = signals(number).into_iter().map(entry).collect();
            json!({"ticker": ticker, "regime": "neutral", "period": "5d", "predictions": entries})
        };
        // One of them joins on the second evening.
        let listed = if number == 1 { &TICKERS[1..] } else { &TICKERS[..] };
        return Value::Object(listed.iter().map(|ticker| ((*ticker).to_owned(), history(ticker))).collect());
    }
    let article = |age: usize| {
        let score = if age == 5 { 0.1 * number as f64 } else { 0.25 };
        json!({"date": date(number, age).to_string(), "title": format!("news of {}", date(number, age)), "link": "l", "score": score})
    };
    // A day is missing on the third evening.
    let ages = (0..8).filter(|age| number != 3 || date(number, *age) != day(2026, 11, 18));
    Value::Array(ages.map(article).collect())
}

fn definition(address: &str, rest: &str) -> String {
    format!(
        "[source]\nname = \"vendor\"\nbase_url = \"http://{address}/a\"\nsentiment_base_url = \"http://{address}/b\"\n\
         api_key_file = \"key\"\n[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\n[checks]\nmissing = \"warn\"\n\
         rewritten = 1.0\nrewritten_series = 1.0\nuniverse = 1.0\n{rest}"
    )
}

/// A place whose definition `it` ends with something.
fn place(rest: &str) -> Place {
    let place = Place::new();
    place.define("it", &definition("127.0.0.1:1", rest));
    place
}

/// A run of the evening of a number.
fn witness(place: &Place, number: usize, rest: &str) {
    let service = Scripted::start(move |request| reply("200 OK", &body(number, &request.target).to_string()));
    let text = definition(&service.address().to_string(), rest);
    let key = place.file("key");
    fs::write(&key, KEY).expect("a key");
    let text = text.replace("\"key\"", &format!("{key:?}"));
    let plan = Plan::of(DefinitionFile::new("it.toml".into(), text).expect("a name")).expect("a plan");
    let options = Options { clock: Clock::Fixed(at(number)), ..Options::new(place.file("output")) };
    Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
}

/// The bodies of an evening in files, with the options that import them: the signals, and the news of each ticker.
fn save(place: &Place, number: usize) -> [Vec<String>; 2] {
    let folder = format!("evening-{number}");
    fs::create_dir_all(place.file(&folder)).expect("a folder");
    let save = |name: &str, body: Value| {
        let name = format!("{folder}/{name}.json");
        fs::write(place.file(&name), body.to_string()).expect("a file");
        name
    };
    let listed = if number == 1 { &TICKERS[1..] } else { &TICKERS[..] };
    let files = [
        (SIGNALS, vec![save("energy", body(number, SIGNALS))]),
        (NEWS, listed.iter().map(|ticker| save(ticker, body(number, NEWS))).collect()),
    ];
    files.map(|(request, files)| {
        let options = ["--request", request, "--observed-at", &to_record(at(number))].map(str::to_owned);
        files.into_iter().chain(options).collect()
    })
}

fn import(place: &Place, arguments: &[String]) -> Outcome {
    place.run(["import", "it"].iter().map(|word| (*word).to_owned()).chain(arguments.iter().cloned()))
}

/// Imports the evenings of some numbers. Returns what was said.
fn import_evenings(place: &Place, numbers: &[usize]) -> String {
    let commands = numbers.iter().flat_map(|&number| save(place, number));
    commands.map(|arguments| import(place, &arguments).expect_success().stdout).collect()
}

/// The dataset as CSV, without the column that marks claims.
fn csv(place: &Place, options: &[&str]) -> String {
    let build = ["build", "it", "-q", "--format", "csv", "--output", "-"];
    without_marks(&place.run(build.iter().chain(options)).expect_success().stdout)
}

/// Rows without what says which of them were claimed.
fn without_marks(text: &str) -> String {
    let is_marked = text.lines().next().is_some_and(|head| head.ends_with(",claimed"));
    let line =
        |line: &str| if is_marked { line.rsplit_once(',').expect("columns").0.to_owned() } else { line.to_owned() };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn parquet(place: &Place, name: &str, options: &[&str]) -> PathBuf {
    let path = place.file(name);
    let build = ["build", "it", "-q", "--format", "parquet", "--output", name];
    place.run(build.iter().chain(options)).expect_success();
    path
}

#[test]
fn what_was_imported_counts_as_of_every_instant_as_if_it_had_been_witnessed() {
    let (witnessed, claimed) = (place(LINEAGE), place(LINEAGE));
    (1..=4).for_each(|number| witness(&witnessed, number, LINEAGE));
    (3..=4).for_each(|number| witness(&claimed, number, LINEAGE));
    let alone = csv(&claimed, &[]);
    let message = import_evenings(&claimed, &[1, 2]);
    assert_eq!(message.matches("a claim about service `vendor`").count(), 4, "{message}");
    assert_eq!(csv(&claimed, &[]), alone, "nothing changes for who does not ask for claims");
    let mut distinct = BTreeSet::new();
    for number in 1..=4 {
        for later in [TimeDelta::zero(), TimeDelta::seconds(1), TimeDelta::hours(5)] {
            let instant = to_record(at(number) + later);
            let with = csv(&claimed, &["--include", "claimed", "--as-of", &instant]);
            assert_eq!(
                with,
                csv(&witnessed, &["--as-of", &to_record(at(number) + TimeDelta::seconds(1))]),
                "as of {instant}"
            );
            let show = ["show", "it", "--format", "csv", "--include", "claimed", "--as-of", &instant, "--head", "9999"];
            assert_eq!(without_marks(&claimed.run(show).expect_success().stdout), with, "as of {instant}");
            distinct.insert(with);
        }
    }
    assert_eq!(distinct.len(), 4, "each evening changed something");
    let published = claimed.run(["show", "it", "--include", "claimed"]).failed_with(2).stderr;
    assert!(published.starts_with("error: `--include` needs `--as-of`\n"), "{published}");
    let first = csv(&claimed, &["--include", "claimed", "--vintage", "first"]);
    assert_eq!(first, csv(&witnessed, &["--vintage", "first"]));
    // The same commands once more find everything there.
    let again = import_evenings(&claimed, &[1, 2]);
    assert_eq!(again.matches("imported before as").count(), 4, "{again}");
    claimed.run(["verify"]).expect_success();
    let runs = claimed.run(["list", "runs"]).expect_success().stdout;
    assert_eq!(runs.matches("vendor.claimed").count(), 4, "{runs}");
}

#[test]
fn without_claims_a_dataset_has_the_same_bytes_as_if_there_were_none() {
    let place = place("");
    witness(&place, 3, "");
    let before = fs::read(parquet(&place, "before.parquet", &[])).expect("a file");
    import_evenings(&place, &[1, 2]);
    csv(&place, &["--include", "claimed"]);
    assert_eq!(fs::read(parquet(&place, "after.parquet", &[])).expect("a file"), before);
    let sql = |options: &[&str]| place.run(["sql", "it"].iter().chain(options)).expect_success().stdout;
    assert!(!sql(&[]).contains("claimed") && sql(&["--include", "claimed"]).contains("vendor.claimed"));
}

#[test]
fn a_row_that_rests_on_claims_is_marked_and_they_are_counted_in_sql_too() {
    let rest = format!("{LINEAGE}kind = \"signals\"\n[archive]\nclaimed = true\n");
    let (place, mut cases) = (place(&rest), Vec::new());
    import_evenings(&place, &[1, 2]);
    // Also before there is a run, and as published.
    let all = read(&parquet(&place, "all.parquet", &[]));
    assert!(texts(&all, "claimed").iter().all(|claimed| claimed.as_deref() == Some("true")));
    witness(&place, 3, &rest);
    let published = place.file("output/datasets/it/latest");
    let rows = read(&published.join("it.parquet"));
    let (observed, claimed) = (texts(&rows, "observed_at"), texts(&rows, "claimed"));
    let boundary = at(3).format("%Y-%m-%dT%H").to_string();
    let expected: Vec<Option<String>> = observed
        .iter()
        .map(|observed| Some((!observed.as_deref().unwrap_or_default().starts_with(&boundary)).to_string()))
        .collect();
    assert_eq!(claimed, expected);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), 2, "some rest on claims and some do not");
    let marked = claimed.iter().filter(|claimed| claimed.as_deref() == Some("true")).count();
    let page = place.run(["report", "it", "--output", "-"]).expect_success().stdout;
    let sentence = format!("{marked} of {} rows rest on claims", rows.num_rows());
    assert!(page.contains(&sentence), "{sentence}");
    let statements: [&[&str]; 3] = [&[], &["--as-of", "2026-11-21T12:00:00Z"], &["--vintage", "first"]];
    for (number, options) in statements.into_iter().enumerate() {
        let sql = place.file(&format!("{number}.sql"));
        fs::write(&sql, place.run(["sql", "it"].iter().chain(options)).expect_success().stdout).expect("a file");
        cases.push(json!({"sql": sql, "dataset": parquet(&place, &format!("{number}.parquet"), options)}));
    }
    // With news that was claimed, its windows reach as far.
    place.define(
        "it",
        &definition("127.0.0.1:1", "[join]\nstats = \"count\"\nwindows = \"1d\"\n[archive]\nclaimed = true\n"),
    );
    let sql = place.file("news.sql");
    fs::write(&sql, place.run(["sql", "it"]).expect_success().stdout).expect("a file");
    cases.push(json!({"sql": sql, "dataset": parquet(&place, "news.parquet", &[])}));
    let path = place.file("cases.json");
    fs::write(&path, serde_json::to_vec(&cases).expect("JSON")).expect("a file");
    python::check("check_sql.py", ["duckdb", path.to_str().expect("a path")]);
    place.run(["sql", "it", "--dialect", "spark"]).failed_with(1);
}

#[test]
fn tables_are_the_same_claims_as_the_answers_that_they_were_made_of() {
    let (of_answers, of_csv, of_parquet) = (place(LINEAGE), place(LINEAGE), place(LINEAGE));
    import_evenings(&of_answers, &[1, 2]);
    for number in [1, 2] {
        let mut lines = "date,ticker,period,signal,confidence\n".to_owned();
        for ticker in if number == 1 { &TICKERS[1..] } else { &TICKERS[..] } {
            for (date, signal, confidence) in signals(number) {
                lines += &format!("{date},{ticker},5d,{signal},{confidence}\n");
            }
        }
        let name = format!("{number}.csv");
        fs::write(of_csv.file(&name), lines).expect("a file");
        let arguments = [name.as_str(), "--request", SIGNALS, "--observed-at", &to_record(at(number))];
        import(&of_csv, &arguments.map(str::to_owned)).expect_success();
    }
    for number in [1, 2] {
        let rows: Vec<_> = (if number == 1 { &TICKERS[1..] } else { &TICKERS[..] })
            .iter()
            .flat_map(|ticker| signals(number).into_iter().map(move |row| (*ticker, row)))
            .collect();
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        // As datasets have them, with a column that no answer has.
        let date = Field::new("date", DataType::Timestamp(TimeUnit::Microsecond, None), false);
        let confidence = Field::new("confidence", DataType::Float64, false);
        let schema = Arc::new(Schema::new(vec![date, text("ticker"), text("signal"), confidence, text("sector")]));
        let micros = |date: NaiveDate| date.and_hms_opt(0, 0, 0).expect("midnight").and_utc().timestamp_micros();
        let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts));
        let batch = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![
                Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(_, (date, ..))| micros(*date)))),
                texts(rows.iter().map(|(ticker, _)| (*ticker).to_owned()).collect()),
                texts(rows.iter().map(|(_, (_, signal, _))| (*signal).to_owned()).collect()),
                Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, (.., confidence))| *confidence))),
                texts(vec!["energy".to_owned(); rows.len()]),
            ],
        );
        let file = fs::File::create(of_parquet.file(&format!("{number}.parquet"))).expect("a file");
        let mut writer = ArrowWriter::try_new(file, schema, None).expect("a writer");
        writer.write(&batch.expect("columns")).expect("rows");
        writer.close().expect("a file");
        let name = format!("{number}.parquet");
        let arguments = [name.as_str(), "--request", SIGNALS, "--observed-at", &to_record(at(number))];
        import(&of_parquet, &arguments.map(str::to_owned)).expect_success();
    }
    let signals_alone = "[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\n[checks]\nmissing = \"warn\"\n";
    for place in [&of_answers, &of_csv, &of_parquet] {
        let text = format!(
            "[source]\nname = \"vendor\"\nbase_url = \"https://a.example/\"\n{signals_alone}{LINEAGE}kind = \"signals\"\n"
        );
        place.define("it", &text);
    }
    for number in [1, 2] {
        let options = ["--include", "claimed", "--as-of", &to_record(at(number))];
        let expected = csv(&of_answers, &options);
        assert!(expected.lines().count() > 10, "{expected}");
        assert_eq!(csv(&of_csv, &options), expected);
        assert_eq!(csv(&of_parquet, &options), expected);
    }
}

#[test]
fn a_claim_that_cannot_be_true_is_refused_with_its_place_and_nothing_is_written() {
    let place = place("");
    let file = |name: &str, body: &Value| fs::write(place.file(name), body.to_string()).expect("a file");
    file("one.json", &body(1, SIGNALS));
    file("two.json", &body(2, SIGNALS));
    file("odd.json", &json!(["no", "histories"]));
    file(
        "bad.json",
        &json!({"XOM": {"ticker": "XOM", "regime": "neutral", "period": "5d", "predictions": [{"date": "never"}]}}),
    );
    fs::write(place.file("rows.csv"), "ticker,date,signal\nXOM,2026-11-01,buy\n").expect("a file");
    fs::write(place.file("notes.txt"), "x").expect("a file");
    let refused = |files: &[&str], rest: &[&str], code: i32, words: &[&str]| {
        let arguments = files.iter().chain(rest).map(|word| (*word).to_owned());
        let outcome = import(&place, &arguments.collect::<Vec<_>>()).failed_with(code);
        words.iter().for_each(|word| assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr));
    };
    let at_one = to_record(at(1));
    let of_one = ["--request", SIGNALS, "--observed-at", &at_one];
    refused(&["one.json", "two.json"], &of_one, 1, &["`two.json` and `one.json` both claim", &at_one]);
    refused(
        &["one.json"],
        &["--request", SIGNALS, "--observed-at", "2026-11-10T00:00:00Z"],
        1,
        &["`one.json`", "`XOM`", "2026-11-20", "observed at 2026-11-10"],
    );
    refused(&["one.json"], &["--request", SIGNALS, "--observed-at", "2200-01-01"], 1, &["`one.json`", "in the future"]);
    refused(&["odd.json"], &of_one, 1, &["`odd.json` is no answer", "byte"]);
    refused(&["bad.json"], &of_one, 1, &["`bad.json`: rejected 1 of 1 record", "/XOM/predictions/0"]);
    refused(&["rows.csv"], &of_one, 1, &["`rows.csv` has no column `confidence`"]);
    for (row, what) in [
        ("XOM,10d,2026-11-01,buy,0.5", "row 1: its period is `10d`, and the request asks for `5d`"),
        ("XOM,5d,2026-11-01,buy,0.5\nXOM,10d,2026-11-01,buy,0.5", "row 2: its period is `10d`"),
    ] {
        fs::write(place.file("keyed.csv"), format!("ticker,period,date,signal,confidence\n{row}\n")).expect("a file");
        refused(&["keyed.csv"], &of_one, 1, &[what]);
    }
    for text in ["", "ticker,date,signal,confidence\n"] {
        fs::write(place.file("none.csv"), text).expect("a file");
        refused(&["none.csv"], &of_one, 1, &["`none.csv` has no rows"]);
    }
    fs::write(place.file("cut.csv"), "ticker,date,signal,confidence\nXOM,2026-11-01,\"buy,0.5\n").expect("a file");
    refused(&["cut.csv"], &of_one, 1, &["cannot read `cut.csv` as a table", "a quoted value is open at its end"]);
    refused(&["notes.txt"], &of_one, 2, &["`notes.txt` is neither"]);
    refused(&["one.json"], &of_one[..2], 2, &["--observed-at"]);
    refused(
        &["one.json"],
        &["--request", "prices/{ticker}", "--observed-at", &at_one],
        2,
        &["`prices/one` is no operation"],
    );
    refused(
        &["rows.csv"],
        &["--request", "social_sentiment/XOM", "--observed-at", &at_one],
        2,
        &["`rows.csv`", "`social_sentiment`"],
    );
    assert!(!place.file("output/archive/vendor.claimed").exists());
    let dry =
        [&["one.json"], &of_one[..], &["--dry-run"]].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let message = import(&place, &dry).expect_success().stdout;
    assert!(message.contains("would be imported: 1 answer, 12 records"), "{message}");
    assert!(!place.file("output/archive/vendor.claimed").exists());
    // What is there already sets the order.
    let of_two = ["--request", SIGNALS, "--observed-at", &to_record(at(2))].map(str::to_owned);
    import(&place, &[&["two.json".to_owned()], &of_two[..]].concat()).expect_success();
    refused(&["one.json"], &of_one, 1, &["`one.json` is claimed", "there is a claim of"]);
    refused(&["one.json"], &["--request", SIGNALS, "--observed-at", &to_record(at(2))], 1, &["both claim"]);
    witness(&place, 3, "");
    refused(
        &["one.json"],
        &["--request", SIGNALS, "--observed-at", &to_record(at(3))],
        1,
        &["the service is watched since"],
    );
    // A wide dataset has no place for a mark.
    place.define("it", &definition("127.0.0.1:1", "[output]\nlayout = \"wide\"\n[archive]\nclaimed = true\n"));
    let refusal = place.run(["check", "it"]).failed_with(2);
    assert!((refusal.stdout + &refusal.stderr).contains("a wide dataset cannot mark what rests on claims"));
}

#[test]
fn a_claim_of_an_instant_that_was_watched_after_all_does_not_count_and_one_can_be_forgotten() {
    let place = place("");
    import_evenings(&place, &[1, 2]);
    let both = csv(&place, &["--include", "claimed"]);
    let runs = place.run(["list", "runs", "--json"]).expect_success().stdout;
    let runs: Value = serde_json::from_str(&runs).expect("JSON");
    // The news of the second evening, and its signals.
    for run in [3, 2] {
        assert!(runs["runs"][run]["imported_at"].is_string(), "{runs}");
        let name = runs["runs"][run]["run"].as_str().expect("a name");
        place.run(["forget", name, "--reason", "it was another day"]).expect_success();
    }
    let first = csv(&place, &["--include", "claimed"]);
    assert_ne!(first, both);
    // Once it is forgotten, the same files can be imported again.
    import_evenings(&place, &[2]);
    assert_eq!(csv(&place, &["--include", "claimed"]), both);
    // A run of the second evening arrives from another machine.
    witness(&place, 2, "");
    let witnessed = csv(&place, &["--include", "claimed"]);
    let outcome = Outcome::of(place.command(["build", "it", "--include", "claimed"]).env("BELLWETHER_LOG", "text"));
    let said = outcome.stdout + &outcome.stderr;
    assert!(said.contains("it is a claim, and the service was watched since"), "{said}");
    assert!(witnessed.lines().count() >= csv(&place, &[]).lines().count());
}

#[test]
fn claims_go_to_a_store_and_come_from_it() {
    let (one, other, store) =
        (place("[archive]\nclaimed = true\n"), place("[archive]\nclaimed = true\n"), Place::new());
    import_evenings(&one, &[1, 2]);
    witness(&one, 3, "[archive]\nclaimed = true\n");
    let url = format!("file://{}", store.file("store").display());
    let command = |place: &Place, arguments: &[&str]| {
        Outcome::of(place.command(arguments).env("BELLWETHER_STORE", &url)).expect_success()
    };
    command(&one, &["store", "push"]);
    command(&one, &["verify", "--store"]);
    command(&other, &["store", "pull"]);
    assert_eq!(csv(&other, &[]), csv(&one, &[]));
    assert!(is_folder(&other.file("output/archive/vendor.claimed")));
    // A build of the definition fetches them, too.
    let third = place("[archive]\nclaimed = true\n");
    command(&third, &["build", "it", "-q"]);
    assert_eq!(csv(&third, &[]), csv(&one, &[]));
}

#[test]
fn of_two_imports_at_once_each_keeps_the_order_or_fails() {
    let place = place("");
    let ([even, _], [odd, _]) = (save(&place, 2), save(&place, 1));
    let start = |arguments: &[String]| {
        let words = ["import", "it"].into_iter().map(str::to_owned).chain(arguments.iter().cloned());
        place.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let running = [start(&even), start(&odd), start(&odd)];
    for child in running {
        let outcome = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.status.success() || said.contains("there is a claim of"), "{said}");
    }
    let listed: Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).expect("JSON");
    let runs = listed["runs"].as_array().expect("runs");
    let mut instants: Vec<&str> = runs.iter().map(|run| run["started_at"].as_str().expect("an instant")).collect();
    instants.dedup();
    assert_eq!(instants.len(), runs.len(), "{listed}");
    assert_eq!(listed["unfinished"], json!([]));
}

#[test]
fn a_download_that_two_machines_imported_is_forgotten_with_both_its_claims() {
    let (one, other, store) = (place(""), place(""), Place::new());
    let url = format!("file://{}", store.file("store").display());
    let command = |place: &Place, arguments: &[&str]| {
        Outcome::of(place.command(arguments).env("BELLWETHER_STORE", &url)).expect_success().stdout
    };
    for place in [&one, &other] {
        for number in [1, 2] {
            import(place, &save(place, number)[0]).expect_success();
        }
        command(place, &["store", "push"]);
    }
    command(&other, &["store", "pull"]);
    other.pack();
    let is_pack = |path: &PathBuf| path.iter().any(|part| part.to_string_lossy().starts_with("pack="));
    assert!(other.files().iter().any(|path| path.starts_with("output/archive/vendor.claimed") && is_pack(path)));
    let listed: Value = serde_json::from_str(&command(&other, &["list", "runs", "--json"])).expect("JSON");
    let names = listed["runs"].as_array().expect("runs").iter().map(|run| run["run"].as_str().expect("a name"));
    let newest: Vec<&str> = names.filter(|name| name.starts_with("20261121")).collect();
    let [first, second] = newest[..] else { panic!("two claims of one instant: {listed}") };
    let hint = other.run(["forget", first, "--reason", "wrong"]).failed_with(2).stderr;
    assert!(hint.contains(&format!("hint: forget both: `bellwether forget {first} {second} ")), "{hint}");
    let before = csv(&other, &["--include", "claimed"]);
    other.run(["forget", first, second, "--reason", "wrong"]).expect_success();
    assert_ne!(csv(&other, &["--include", "claimed"]), before);
}

fn is_folder(path: &Path) -> bool {
    path.is_dir()
}
