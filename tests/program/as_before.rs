//! Services that say that an answer is as before: whatever follows is what follows from the whole answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;

use crate::faults::{GOOD, rows, run};
use crate::support::program::{Outcome, Place};
use crate::support::random::Random;
use crate::support::rows::{columns, distinct, read, sealed_folders, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json, reply};

/// Number of requests with a condition.
fn conditions(service: &Scripted) -> usize {
    service.heads().iter().filter(|line| line.starts_with("if-none-match: ") || line.starts_with("if-mod")).count()
}

fn validated(body: &str) -> Vec<Step> {
    vec![Step::Validated("ETag: \"one\"".to_owned(), body.to_owned())]
}

/// The requests of the newest run: words, status, rows.
fn requests(place: &Place) -> Vec<[String; 3]> {
    let archive = place.file("output/archive/vendor");
    let newest = sealed_folders(&archive).pop().expect("a run");
    columns(&read(&archive.join(newest).join("requests.parquet")), ["request", "status", "rows"])
}

#[test]
fn an_answer_that_is_as_before_is_not_sent_again_and_counts_as_if_it_were() {
    for validator in ["ETag: \"one\"", "ETag: W/\"1-a\"", "Last-Modified: Wed, 18 Nov 2026 07:00:00 GMT"] {
        let place = Place::new();
        let service = Scripted::of_histories(move |_| vec![Step::Validated(validator.to_owned(), GOOD.to_owned())]);
        let first = run(&place, &service, "", "").expect_success();
        assert_eq!((rows(&first), conditions(&service)), ("rows      2", 0));
        let before = read(&place.file("output/datasets/it/latest/it.parquet"));
        for number in 1..4 {
            let again = run(&place, &service, "", "").expect_success();
            assert!(again.stdout.contains("0 added, 0 revised, 0 withdrawn"), "{}", again.stdout);
            assert_eq!((rows(&again), conditions(&service)), ("rows      2", number), "{validator}");
            let words = "signals-history-all sector=energy period=15d regime=neutral";
            assert_eq!(requests(&place)[0], [words, "304", "2"].map(str::to_owned));
            assert_eq!(read(&place.file("output/datasets/it/latest/it.parquet")), before);
        }
        place.run(["verify"]).expect_success();
        place.pack();
        run(&place, &service, "", "").expect_success();
        assert_eq!(conditions(&service), 4, "a pack has the validators of its runs");
    }
}

#[test]
fn what_could_name_another_answer_is_not_asked_with() {
    let long = format!("ETag: \"{}\"", "x".repeat(260));
    let now = chrono::Utc::now().format("Last-Modified: %a, %d %b %Y %H:%M:%S GMT").to_string();
    for validator in [
        "ETag: *",
        "ETag: \"a\", \"b\"",
        "ETag: bare",
        "ETag: \"\"",
        "ETag: \"a\"\r\nETag: \"b\"",
        "ETag: \"\u{e9}\"",
        "ETag: \"for demo-key-5521\"",
        &long,
        &now,
        "Last-Modified: yesterday",
    ] {
        let place = Place::new();
        let sent = validator.to_owned();
        let service = Scripted::of_histories(move |_| vec![Step::Validated(sent.clone(), GOOD.to_owned())]);
        place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
        for _ in 0..2 {
            let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo-key-5521"));
            assert_eq!(rows(&outcome.expect_success()), "rows      2", "{validator}");
        }
        assert_eq!(conditions(&service), 0, "{validator}");
    }
    // Nor if the answer has pages, or records that were rejected.
    let rejected = GOOD.replace("\"predictions\":[", "\"predictions\":[{\"date\":\"then\"},");
    let pages = |request: &ScriptedRequest| {
        let (link, body) = match request.target.contains("page=2") {
            true => ("", GOOD.replace("XOM", "CVX")),
            false => ("Link: </a/signals-history-all?page=2>; rel=\"next\"\r\n", GOOD.to_owned()),
        };
        reply("200 OK", &format!("ETag: \"one\"\r\n{link}"), body.as_bytes())
    };
    for service in [Scripted::of_histories(pages), Scripted::of_histories(move |_| validated(&rejected))] {
        let place = Place::new();
        for _ in 0..2 {
            run(&place, &service, "", "[rejects]\nmax_share = 0.5\n").expect_success();
        }
        assert_eq!(conditions(&service), 0);
    }
}

#[test]
fn a_definition_that_reads_or_asks_otherwise_asks_for_the_whole_answer() {
    let place = Place::new();
    let body = format!("{{\"data\":{}}}", GOOD.replace("+00:00", ""));
    let service = Scripted::of_histories(move |_| validated(&body));
    let lines = [
        ("unwrap = \"data\"\n", ""),
        ("unwrap = [\"data\", \"result\"]\n", ""),
        ("unwrap = \"data\"\nfields = { debtor = \"other\" }\n", ""),
        ("unwrap = \"data\"\nquery = { tenant = \"7\" }\n", ""),
        ("unwrap = \"data\"\n", "tolerance = 1e-6\n"),
        ("unwrap = \"data\"\n", "[dates]\nper = \"day\"\n"),
        ("unwrap = \"data\"\n", "[rejects]\nkeep_extra = true\n"),
    ];
    for (source, rest) in lines {
        let before = conditions(&service);
        let define = |place: &Place| {
            let source = format!("[source]\n{}{source}", service.source());
            let (of_signals, rest) = if rest.starts_with('[') { ("", rest) } else { (rest, "") };
            let text =
                format!("{source}[signals]\nsectors = [\"energy\"]\n{of_signals}[sentiment]\narticles = false\n{rest}");
            place.define("it", &text);
            Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
        };
        if define(&place).code != Some(0) {
            panic!("{source}{rest}: {}", define(&place).stderr);
        }
        assert_eq!(conditions(&service), before, "{source}{rest}");
        define(&place).expect_success();
        assert_eq!(conditions(&service), before + 1, "{source}{rest}");
    }
}

#[test]
fn a_ticker_that_the_definition_leaves_out_is_in_an_answer_that_is_as_before() {
    let place = Place::new();
    let other = GOOD.replace("XOM", "CVX");
    let body = format!("{},{}", &GOOD[..GOOD.len() - 1], &other[1..]);
    let service = Scripted::of_histories(move |_| validated(&body));
    let tickers = |exclude: &str| {
        let text = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n{exclude}", service.source());
        place.define("it", &format!("{text}[sentiment]\narticles = false\n[checks]\nuniverse = 1.0\n"));
        Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        distinct(&read(&place.file("output/datasets/it/latest/it.parquet")), "ticker")
    };
    for (number, (exclude, expected)) in
        [("", &["CVX", "XOM"][..]), ("exclude = [\"CVX\"]\n", &["XOM"]), ("", &["CVX", "XOM"])].into_iter().enumerate()
    {
        assert_eq!(tickers(exclude), expected);
        assert_eq!(conditions(&service), number);
    }
}

#[test]
fn a_service_that_says_as_before_to_nobody_s_question_fails() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| reply("304 Not Modified", "", b""));
    let shown = run(&place, &service, "", "").failed_with(1).stderr;
    assert!(shown.contains("with status 304") && shown.contains("which nobody asked"), "{shown}");
    assert_eq!(service.count(), 1);
}

#[test]
fn the_answers_of_a_run_in_part_are_asked_for_whole_once_it_was_completed() {
    let place = Place::new();
    let is_mended = Arc::new(AtomicUsize::new(0));
    let mended = Arc::clone(&is_mended);
    let service = Scripted::start(move |request| match request.target.starts_with("/b/") {
        true if mended.load(Ordering::Relaxed) == 0 => json("500 Internal Server Error", "{}"),
        true => validated("[]"),
        false => validated(GOOD),
    });
    place
        .define("it", &format!("[source]\n{}patience = \"1s\"\n[signals]\nsectors = [\"energy\"]\n", service.source()));
    let run = || Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"));
    run().failed_with(75);
    is_mended.store(1, Ordering::Relaxed);
    run().expect_success();
    run().expect_success();
    assert_eq!((conditions(&service), service.histories()), (0, 2));
    run().expect_success();
    assert_eq!(conditions(&service), 2, "news and signals");
    // A run that ends between two answers goes on from one that is as before.
    is_mended.store(0, Ordering::Relaxed);
    run().failed_with(75);
    is_mended.store(1, Ordering::Relaxed);
    let outcome = run().expect_success();
    assert!(outcome.stdout.contains("0 added, 0 revised, 0 withdrawn"), "{}", outcome.stdout);
    assert_eq!(rows(&outcome), "rows      2");
    place.run(["verify"]).expect_success();
}

/// What a service says today, by the request's target.
type Today = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// A service of what is said today; with validators, it says that an answer is as before where it is.
fn service_of(today: &Today, has_validators: bool) -> Scripted {
    let today = Arc::clone(today);
    Scripted::start(move |request| {
        let target = request.target.split("api_key").next().expect("a target").to_owned();
        let body = today.lock().expect("no test panicked").entry(target).or_default().last().cloned();
        match body.unwrap_or_default() {
            body if body.is_empty() => json("404 Not Found", "{}"),
            body if has_validators => {
                let digest = blake3::hash(body.as_bytes()).to_hex();
                vec![Step::Validated(format!("ETag: \"{digest}\""), body)]
            }
            body => json("200 OK", &body),
        }
    })
}

/// Some records, each made of a number.
fn listed(random: &mut Random, day: usize, record: impl Fn(usize, usize) -> String) -> String {
    let first = random.below(5);
    let numbers = (first..=8 + day).rev().filter(|_| random.below(7) > 0).collect::<Vec<_>>();
    let value = |random: &mut Random| if random.one_in(6) { random.below(3) } else { 1 };
    let records: Vec<String> = numbers.into_iter().map(|number| record(number, value(random))).collect();
    format!("[{}]", records.join(","))
}

/// A signal whose confidence may jitter, and whose date may have a time.
fn history(random: &mut Random, day: usize, ticker: &str) -> String {
    let time = random.pick(&["", "", "T20:00:00Z", "T16:00:00-04:00"]);
    let jitter = random.pick(&[0.0, 0.0, 1e-11]);
    let signals = listed(random, day, |number, value| {
        let confidence = 0.5 + value as f64 / 8.0 + jitter;
        format!("{{\"date\":\"2026-10-{:02}{time}\",\"signal\":\"BUY\",\"confidence\":{confidence}}}", number + 1)
    });
    format!(
        "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":{signals}}}"
    )
}

/// What the service says to a request from now on.
fn body(random: &mut Random, day: usize, target: &str) -> String {
    let last = target.trim_end_matches('?').rsplit('/').next().expect("a path");
    match target {
        _ if random.one_in(12) => String::new(),
        target if target.contains("history-all") => {
            let own: &[&str] = if target.contains("energy") { &["XOM", "CVX", "BP"] } else { &["NEE", "DUK", "BP"] };
            let mut histories = String::new();
            let named: Vec<&&str> = own.iter().filter(|_| random.below(5) > 0).collect();
            for ticker in named {
                let comma = if histories.is_empty() { "" } else { "," };
                let history = match random.below(9) {
                    0 => format!("\"{ticker}\":[]"),
                    1 => format!("\"{ticker}\":[{{\"date\":\"then\"}}]"),
                    _ => history(random, day, ticker),
                };
                let _ = write!(histories, "{comma}{history}");
            }
            format!("{{{histories}}}")
        }
        target if target.contains("/signals-history/") => {
            let ticker = last.split('?').next().expect("a ticker");
            let history = history(random, day, ticker);
            history[history.find('{').expect("an object")..].to_owned()
        }
        target if target.contains("news") => listed(random, day, |number, value| {
            // Several of a date, of which some are alike.
            format!(
                "{{\"date\":\"2026-10-{:02}\",\"title\":\"t{}\",\"link\":\"l\",\"score\":0.{value}}}",
                number / 3 + 1,
                number % 4
            )
        }),
        target if target.contains("social") => {
            let article = |value: usize| format!("{{\"date\":\"2026-10-02\",\"score\":0.{value},\"link\":\"l\"}}");
            let [low, high, average] = [1, 2, 3].map(|_| article(random.below(4)));
            format!(
                "{{\"debtor\":\"d\",\"ticker\":\"{last}\",\"low_article\":{low},\"high_article\":{high},\"avg_article\":{average}}}"
            )
        }
        _ => listed(random, day, |number, value| {
            format!("{{\"date\":\"2026-10-{:02}\",\"score\":{value}}}", number / 2 + 1)
        }),
    }
}

/// Columns as text.
type Columns = Vec<Vec<Option<String>>>;

/// The rows of all files of an archive, but for when they were said and what a request took.
fn archived(place: &Place) -> Vec<(PathBuf, Columns)> {
    let archive = place.file("output/archive/vendor");
    let mut found = Vec::new();
    for folder in sealed_folders(&archive) {
        for file in
            ["signals", "articles", "summaries", "sentiment_history", "listings", "answers", "requests", "rejects"]
        {
            let rows = read(&archive.join(&folder).join(file).with_extension("parquet"));
            found.push((PathBuf::from(&folder[..4]).join(file), without_times(&rows)));
        }
    }
    found
}

/// All columns, but for those that say when and how something was received.
fn without_times(rows: &RecordBatch) -> Columns {
    let fields = rows.schema();
    let names = fields.fields().iter().map(|field| field.name().as_str());
    let names = names.filter(|name| !name.ends_with("_at") && !["status", "bytes", "validator"].contains(name));
    names.map(|name| texts(rows, name)).collect()
}

/// Days of two services that say the same, of which one says that an answer is as before where it is: they cannot be told
/// apart by what two machines archive and publish, which share a store and now and then do not reach it.
#[test]
fn what_follows_from_answers_that_are_as_before_is_what_follows_from_whole_ones() {
    let checks = "[checks]\nmissing = \"warn\"\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n\
                  [rejects]\nmax_share = 1.0\n";
    let mut asked = 0;
    for (seed, rest) in [
        (1, ""),
        (2, "[dates]\nnaive = \"America/New_York\"\nper = \"day\"\n"),
        (3, "[join]\navailability = \"observed\"\n"),
        (4, "[dataset]\nkind = \"news\"\n"),
    ] {
        let mut random = Random::of(700 + seed);
        let today: Today = Arc::default();
        let sides =
            [true, false].map(|has_validators| ([(); 3].map(|()| Place::new()), service_of(&today, has_validators)));
        for day in 0..8 {
            for (target, bodies) in today.lock().expect("no test panicked").iter_mut() {
                match random.below(6) {
                    0..=3 if !bodies.is_empty() => {}
                    4 if !bodies.is_empty() => bodies.push(bodies[random.below(bodies.len())].clone()),
                    _ => bodies.push(body(&mut random, day, target)),
                }
            }
            let (machine, is_alone) = (random.below(2), random.one_in(3));
            let outcomes = sides.each_ref().map(|([store, machines @ ..], service)| {
                let place = &machines[machine];
                let source = format!("[source]\n{}connections = 1\n", service.source());
                let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\ntickers = [\"AAPL\", \"XOM\"]\n";
                let sentiment = "[sentiment]\nsummary = true\nhistorical = true\n";
                place.define("it", &format!("{source}{signals}{sentiment}{checks}{rest}"));
                let mut command = place.command(["run", "it"]);
                if !is_alone {
                    command.arg(format!("--store=file://{}", store.path().display()));
                }
                let outcome = Outcome::of(command.env("BELLWETHER_API_KEY", "demo"));
                let built = place.run(["build", "it", "--output", "it.parquet", "--force"]);
                let rows = (built.code == Some(0)).then(|| without_times(&read(&place.file("it.parquet"))));
                let archived = archived(place);
                if day == 5 && place.file("output/archive/vendor").exists() {
                    place.pack();
                }
                (outcome.code, rows, archived, outcome.stderr)
            });
            let [one, other] = outcomes;
            assert_eq!(
                (one.0, one.1, one.2.len()),
                (other.0, other.1, other.2.len()),
                "seed {seed}, day {day}: {}",
                one.3
            );
            for (one, other) in one.2.iter().zip(&other.2) {
                assert_eq!(one, other, "seed {seed}, day {day}");
            }
        }
        asked += conditions(&sides[0].1);
        assert_eq!(conditions(&sides[1].1), 0);
        sides[0].0[1].run(["verify"]).expect_success();
    }
    assert!(asked > 50, "{asked}");
}
