//! The archive as a service: what is pulled from it as of an instant is what was known then, and what may be misread is refused.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use arrow::array::RecordBatch;
use bellwether::archive::Archive;
use bellwether::definition::DefinitionFile;
use bellwether::interface::ChangeSet;
use bellwether::plan::Plan;
use bellwether::run::{Options, run};
use bellwether::tables::Table;
use bellwether::time::{Clock, to_record};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::days::evening;
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::python;
use crate::support::rows::{known_rows, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json as reply};
use crate::support::service::{KEY, Server, day};

/// Everything that a definition can ask for, of a vendor with a sector and two tickers.
const REST: &str = "[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\n[checks]\nmissing = \"warn\"\nrewritten = 1.0\nuniverse = 1.0\n\
                    [sentiment]\nsummary = true\nhistorical = true\n";

/// A vendor whose answers depend on the number of the run: it adds, revises and withdraws, has fields of its own, dates with
/// times and offsets, and articles that are alike.
fn vendor(number: usize, request: &ScriptedRequest) -> Vec<Step> {
    let target = request.target.as_str();
    let ticker = ["XOM", "CVX"].into_iter().find(|ticker| target.contains(ticker)).unwrap_or("XOM");
    let body = if target.starts_with("/a/") {
        let entry = |age: usize, confidence: f64| {
            let date = format!("2026-11-{:02}T00:00:00+00:00", 20 - age);
            json!({"date": date, "signal": if age.is_multiple_of(2) { "buy" } else { "sell" }, "confidence": confidence, "model": age})
        };
        let history = |ticker: &str| {
            let ages = (0..12).filter(|age| !(number == 3 && *age == 4) && *age >= 4_usize.saturating_sub(number));
            let entries: Vec<Value> =
                ages.map(|age| entry(age, if age == 6 { 0.5 + 0.01 * number as f64 } else { 0.75 })).collect();
            json!({"ticker": ticker, "regime": "neutral", "period": "5d", "predictions": entries})
        };
        // One of them joins later.
        let listed: &[&str] = if number == 1 { &["XOM"] } else { &["CVX", "XOM"] };
        Value::Object(listed.iter().map(|ticker| ((*ticker).to_owned(), history(ticker))).collect())
    } else if target.contains("news_articles") {
        let article = |date: &str, title: &str, score: Value| json!({"date": date, "title": title, "score": score, "link": "https://a.example/\u{e9}", "id": [number]});
        let mut articles = vec![
            article("2026-11-19T09:30:00.5-05:00", "late \"news\"", json!("0.25")),
            article("2026-11-18", "same", json!(0.5)),
            article("2026-11-18", "same", json!(if number > 1 { -0.125 } else { 0.5 })),
            article("2026-11-18", "other", Value::Null),
            article("2026-11-10", "old", json!(1)),
        ];
        if number == 2 {
            articles.remove(3);
        }
        Value::Array(articles)
    } else if target.contains("social_sentiment") {
        let article = |score: f64| json!({"date": "2026-11-18", "score": score, "link": "l", "rank": 1e2});
        json!({"debtor": "A \u{20ac} b", "ticker": ticker, "low_article": article(-0.5), "high_article": article(0.1 * number as f64),
               "avg_article": article(0.0), "as_of": number})
    } else {
        let record = |day: usize, value: f64| json!({"date": format!("2026-11-{day:02}"), "score": value, "n": null});
        json!([record(19, 0.1 * number as f64), record(18, 0.2), record(18, 0.2), record(17, 0.3), {"odd": true}])
    };
    reply("200 OK", &body.to_string())
}

/// Runs a definition that asks some addresses.
fn pull(place: &Place, addresses: [&str; 2], rest: &str, clock: Clock) {
    let key = place.file("key");
    fs::write(&key, KEY).expect("a key");
    let definition = format!(
        "[source]\nname = \"vendor\"\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\napi_key_file = {key:?}\n{rest}",
        addresses[0], addresses[1]
    );
    let plan = Plan::of(DefinitionFile::new("it.toml".into(), definition).expect("a name")).expect("a plan");
    let options = Options { clock, ..Options::new(place.file("output")) };
    Runtime::new().expect("a runtime").block_on(run(plan, options)).expect("a run");
}

/// An archive of four runs, two of them within a second, and the instants of their seals.
fn archive() -> (Place, Vec<DateTime<Utc>>) {
    let place = Place::new();
    let start = evening(day(2026, 11, 20));
    for (number, at) in [(1, 0), (2, 86_400_200), (3, 86_400_700), (4, 2 * 86_400_000)] {
        let service = Scripted::start(move |request| vendor(number, request));
        let address = service.address();
        let addresses = [&*format!("http://{address}/a"), &*format!("http://{address}/b")];
        // A port of its own each time: the same service at another address.
        pull(&place, addresses, REST, Clock::Fixed(start + TimeDelta::milliseconds(at)));
    }
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let seals: Vec<DateTime<Utc>> = archive.runs().iter().map(|run| run.seal().sealed_at).collect();
    assert_eq!((seals.len(), seals[1].timestamp()), (4, seals[2].timestamp()), "two runs within a second");
    (place, seals)
}

/// What is known of a table without when it was observed: rows as text.
fn cells(archive: &Path, table: Table, as_of: DateTime<Utc>) -> Vec<Vec<Option<String>>> {
    let rows: RecordBatch = known_rows(archive, table, as_of);
    let names = rows.schema();
    let is_said = |name: &&str| !["source", "first_observed_at", "observed_at", "revisions"].contains(name);
    let names = names.fields().iter().map(|field| field.name().as_str()).filter(is_said);
    let columns: Vec<Vec<Option<String>>> = names.map(|name| texts(&rows, name)).collect();
    (0..rows.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

#[test]
fn what_is_pulled_as_of_an_instant_is_what_was_known_then_cell_for_cell() {
    let (place, seals) = archive();
    let archive = place.file("output/archive/vendor");
    let mut distinct = 0;
    let mut last = Vec::new();
    for instant in seals.iter().flat_map(|seal| [-1, 0, 1].map(|ms| *seal + TimeDelta::milliseconds(ms))) {
        let server = Server::of_archive(&place.file("output/archive"), ChangeSet::All);
        let server = server.below(&format!("/at/{}", to_record(instant)));
        if instant < seals[0] {
            let refused = server.get("/api/signals-history-all?sector=energy&period=5d");
            assert_eq!(refused.status, 404);
            let sentence = refused.json()["detail"].to_string();
            assert!(sentence.contains(&to_record(seals[0])), "{sentence}");
            continue;
        }
        let fresh = Place::new();
        let address = format!("http://{}{}", server.address, server.prefix());
        pull(&fresh, [&format!("{address}/api"), &format!("{address}/sentiment")], REST, Clock::System);
        let mut all = Vec::new();
        for table in Table::ALL {
            let expected = cells(&archive, table, instant);
            let pulled = cells(&fresh.file("output/archive/vendor"), table, Utc::now());
            assert!(!expected.is_empty(), "{table:?}");
            assert_eq!(pulled, expected, "{table:?} as of {instant}");
            all.push(expected);
        }
        distinct += usize::from(all != last);
        last = all;
    }
    assert_eq!(distinct, 4, "each run changed something");
}

#[test]
fn a_request_that_may_be_misread_is_refused_with_a_sentence() {
    let (place, seals) = archive();
    let server = |before: &str| Server::of_archive(&place.file("output/archive"), ChangeSet::All).below(before);
    let target = "/api/signals-history-all?sector=energy&period=5d";
    let refused = |reply: crate::support::service::Reply, status: u16, sentence: &str| {
        assert_eq!(reply.status, status, "{reply:?}");
        let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(sentence), "{detail}");
    };
    for key in ["vintage_date=2026-01-01", "as_of=2026-01-01", "asof=x", "perod=5d", "limit=3", "realtime_start="] {
        let name = key.split('=').next().expect("a name");
        refused(
            server("").get(&format!("{target}&{key}")),
            400,
            &format!("has no parameter `{name}`, it takes `api_key`, `sector`"),
        );
    }
    for (before, sentence) in [
        ("/at/2026-11-20T21:30:00", "write `2026-11-20T21:30:00Z`"),
        ("/at/2026-11-20", "is no instant: write it as"),
        ("/at/2026-11-31T00:00:00Z", "2026-11 has no day 31"),
        ("/at/2100-01-01T00:00:00Z", "is in the future, it is now"),
    ] {
        refused(server(before).get(target), 400, sentence);
    }
    refused(
        server("/at/2026-11-01T00:00:00Z").get(target),
        404,
        &format!("the first run was sealed at {}", to_record(seals[0])),
    );
    // The key is asked for first, as by the service.
    let reply = server("/at/nonsense").request("GET", &format!("{target}&api_key=wrong&as_of=x"));
    assert_eq!((reply.status, reply.json()), (401, json!({"detail": "Invalid API key"})));
    for (asked, nearest) in [
        ("/api/signals-history/XOM?period=6d", "signals-history-all sector=energy period=5d regime=neutral"),
        ("/api/signals/XOM?period=5d&regime=bear", "signals-history-all sector=energy period=5d regime=neutral"),
        ("/api/signals-history/XOMM?period=5d", "signals-history-all sector=energy period=5d regime=neutral"),
        (
            "/api/signals-history-all?sector=energie&period=5d",
            "signals-history-all sector=energy period=5d regime=neutral",
        ),
        ("/api/signals-history-batched", "signals-history-all sector=energy period=5d regime=neutral"),
        ("/sentiment/news_articles/CVY", "news_articles/CVX"),
    ] {
        let reply = server("").get(asked);
        assert_eq!(reply.headers.get("bellwether-watch").map(String::as_str), Some("not-watched"), "{asked}");
        refused(reply, 404, &format!("the nearest request that was asked is `{nearest}`"));
    }
}

#[test]
fn not_rewritten_and_not_watched_are_told_apart() {
    let (place, seals) = archive();
    let watch = |instant: DateTime<Utc>, target: &str| {
        let server = Server::of_archive(&place.file("output/archive"), ChangeSet::All);
        server.below(&format!("/at/{}", to_record(instant))).get(target).headers["bellwether-watch"].clone()
    };
    let target = "/api/signals-history/CVX?period=5d";
    // Between two answers it is known that nothing else was said.
    let between = watch(seals[2] + TimeDelta::hours(1), target);
    assert!(between.starts_with("watched; from="), "{between}");
    // After the last one, nothing is known.
    let after = watch(seals[3] + TimeDelta::hours(1), target);
    assert!(after.starts_with("not-watched; from="), "{after}");
    let until = after.split("until=").nth(1).expect("an end").parse::<DateTime<Utc>>().expect("an instant");
    assert!(until <= seals[3] && until > seals[2], "{after}");
    // Before the first one, neither.
    assert_eq!(watch(seals[0], target), "not-watched");
}

#[test]
fn a_server_with_an_instant_answers_as_of_it_alone() {
    let (place, seals) = archive();
    for (arguments, sentence) in [
        (&["serve", "--archive", "--as-of", "2100-01-01"][..], "in the future"),
        (&["serve", "--archive", "--as-of", "2020-01-01"], "the first run was sealed at"),
        (&["serve", "--archive", "nowhere"], "nowhere"),
        (&["serve", "--archive", "--demo"], "exclude each other"),
        (&["serve", "--as-of", "2026-11-20", "--demo"], "exclude each other"),
        (&["serve", "--demo", "vendor"], "exclude each other"),
        (&["serve"], "--archive"),
    ] {
        let outcome: Outcome = place.run(arguments);
        assert!(outcome.code != Some(0) && outcome.stderr.contains(sentence), "{arguments:?}: {}", outcome.stderr);
    }
    let as_of = to_record(seals[1]);
    let server = DemoService::serve(&place, &["--archive", "vendor", "--as-of", &as_of]);
    let (signals, sentiment) = (server.address("base_url"), server.address("sentiment_base_url"));
    let fresh = Place::new();
    let source = format!("name = \"vendor\"\nbase_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\n");
    fresh.define("it", &format!("[source]\n{source}{REST}"));
    // The key is asked for, and an unmodified client takes the answers.
    Outcome::of(fresh.command(["run", "it"]).env("BELLWETHER_API_KEY", "wrong")).failed_with(1);
    Outcome::of(fresh.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    for table in Table::ALL {
        let pulled = cells(&fresh.file("output/archive/vendor"), table, Utc::now());
        assert_eq!(pulled, cells(&place.file("output/archive/vendor"), table, seals[1]), "{table:?}");
    }
    let (host, path) = signals.trim_start_matches("http://").split_once('/').expect("a path");
    let get = |before: &str, host_header: &str| {
        let mut stream = TcpStream::connect(host).expect("it listens");
        let target = format!("{before}/{path}/signals-history/XOM?period=5d&api_key=demo");
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host_header}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    };
    // The second run was told of signals up to this date.
    let pinned = get("", host);
    assert!(pinned.contains("\"2026-11-18T00:00:00+00:00\"") && !pinned.contains("2026-11-19"), "{pinned}");
    assert!(get(&format!("/at/{as_of}"), host).starts_with("HTTP/1.1 200 "));
    let other = get(&format!("/at/{}", to_record(seals[2])), host);
    assert!(other.starts_with("HTTP/1.1 400 ") && other.contains("this server answers as of"), "{other}");
    assert!(get("", "evil.example").starts_with("HTTP/1.1 421 "));
}

#[test]
fn a_run_that_appears_is_answered_at_once_and_nothing_is_written() {
    let (place, seals) = archive();
    let root = place.file("output/archive");
    let server = Server::of_archive(&root, ChangeSet::All);
    let target = "/api/signals-history/XOM?period=5d";
    let before = server.get(target);
    let files = place.files();
    let fixed = Server::of_archive(&root, ChangeSet::All).below(&format!("/at/{}", to_record(seals[0])));
    fixed.get(target);
    assert_eq!(place.files(), files, "a reader writes nothing");
    let service = Scripted::start(move |request| vendor(5, request));
    let address = service.address();
    pull(
        &place,
        [&format!("http://{address}/a"), &format!("http://{address}/b")],
        REST,
        Clock::Fixed(seals[3] + TimeDelta::days(1)),
    );
    let after = server.get(target);
    assert_ne!(after.body, before.body);
    let then = Server::of_archive(&root, ChangeSet::All).below(&format!("/at/{}", to_record(seals[3])));
    assert_eq!(then.get(target).body, before.body);
}

#[test]
fn pandas_and_duckdb_read_what_was_known() {
    let (place, seals) = archive();
    let server = Server::of_archive(&place.file("output/archive"), ChangeSet::All);
    let archive = place.file("output/archive/vendor");
    let mut arguments = vec![server.address.to_string(), KEY.to_owned(), archive.display().to_string()];
    arguments.extend(seals.iter().map(|seal| to_record(*seal)));
    python::check("check_past.py", arguments);
}

#[test]
fn silent_clients_keep_nobody_from_an_answer() {
    let (place, _) = archive();
    let mut command = Command::new("sh");
    let limited = "ulimit -n 256; exec \"$0\" \"$@\"";
    command.args(["-c", limited]).arg(env!("CARGO_BIN_EXE_bellwether")).args(["serve", "--archive"]);
    let server = DemoService::of(command.current_dir(place.path()).env_clear());
    let (host, path) = server.address("base_url").trim_start_matches("http://").split_once('/').expect("a path");
    let sent = ["", "GET /", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"];
    let open = |number: usize| {
        let mut stream = TcpStream::connect(host).expect("it listens");
        let _ = stream.write_all(sent[number % sent.len()].as_bytes());
        stream
    };
    let clients: Vec<TcpStream> = (0..300).map(open).collect();
    let mut stream = TcpStream::connect(host).expect("it listens");
    let mut reply = String::new();
    // Two requests on one connection.
    for last in ["", "Connection: close\r\n"] {
        let target = format!("/{path}/signals-history/XOM?period=5d&api_key=demo");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n{last}\r\n").expect("sent");
    }
    stream.read_to_string(&mut reply).expect("a reply");
    assert_eq!(reply.matches("HTTP/1.1 200 OK").count(), 2, "{reply}");
    if let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", server.process().id())) {
        let count = descriptors.count();
        assert!(count < 128, "{count} of 256 descriptors are open");
    }
    drop(clients);
}

/// A vendor of two tickers with every operation for signals: the batch, the list of tickers, histories and latest signals, one of
/// which has no date. A third one has no history yet.
fn vendor_of_signals(number: usize, request: &ScriptedRequest) -> Vec<Step> {
    let target = request.target.as_str();
    let entries = |time: &str| -> Vec<Value> {
        let entry = |age: usize| {
            let confidence = if age == 3 { 0.5 + 0.01 * number as f64 } else { 0.625 };
            json!({"date": format!("2026-11-{:02}T00:00:00{time}", 20 - age), "signal": "buy", "confidence": confidence})
        };
        (3_usize.saturating_sub(number)..9).map(entry).collect()
    };
    let ticker = ["CVX", "NEW"].into_iter().find(|ticker| target.contains(ticker)).unwrap_or("XOM");
    let body = if target.contains("tickers/available") {
        json!(["XOM", "CVX", "NEW"])
    } else if target.contains("batched") {
        let history = |ticker: &str, period: &str| json!({"items": entries(""), "period": period, "regime": "bull", "ticker": ticker});
        json!({"CVX": history("CVX", "1m"), "XOM": history("XOM", "5d")})
    } else if target.contains("signals-history/") {
        json!({"ticker": ticker, "regime": "neutral", "period": "15d", "predictions": if ticker == "NEW" { Vec::new() } else { entries("-05:00") }})
    } else {
        let date = if ticker == "CVX" { Value::Null } else { json!("2026-11-20T00:00:00Z") };
        json!({"ticker": ticker, "date": date, "period": "15d", "regime": "neutral", "signal": "sell", "confidence": 0.01 * number as f64})
    };
    reply("200 OK", &body.to_string())
}

#[test]
fn every_way_to_ask_for_signals_gives_what_was_known() {
    let checks =
        "[checks]\nmissing = \"warn\"\nrewritten = 1.0\nrewritten_series = 1.0\n[sentiment]\narticles = false\n";
    for signals in [
        "history = \"batched\"",
        "history = \"ticker\"\ntickers = \"available\"",
        "history = \"latest\"\ntickers = \"available\"",
    ] {
        let rest = format!("[signals]\n{signals}\n{checks}");
        let place = Place::new();
        for number in 1..3 {
            let service = Scripted::start(move |request| vendor_of_signals(number, request));
            let address = format!("http://{}", service.address());
            let clock = Clock::Fixed(evening(day(2026, 11, 19 + number as u32)));
            pull(&place, [&format!("{address}/a"), &format!("{address}/b")], &rest, clock);
        }
        let archive = place.file("output/archive/vendor");
        let seals: Vec<DateTime<Utc>> =
            Archive::open(&archive).expect("an archive").runs().iter().map(|run| run.seal().sealed_at).collect();
        for instant in seals {
            let before = format!("/at/{}", to_record(instant));
            let server = Server::of_archive(&place.file("output/archive"), ChangeSet::All).below(&before);
            if signals.contains("ticker\"") {
                let empty = server.get("/api/signals-history/NEW");
                let history: Value = serde_json::from_slice(&empty.body).expect("JSON");
                assert!(empty.status == 200 && history["predictions"] == json!([]), "{history}");
            }
            let address = format!("http://{}{}", server.address, server.prefix());
            let fresh = Place::new();
            pull(&fresh, [&format!("{address}/api"), &format!("{address}/sentiment")], &rest, Clock::System);
            let expected = cells(&archive, Table::Signals, instant);
            assert!(!expected.is_empty());
            let pulled = cells(&fresh.file("output/archive/vendor"), Table::Signals, Utc::now());
            assert_eq!(pulled, expected, "{signals} as of {instant}");
        }
    }
}

/// A vendor of one ticker: its latest signal has a date on the first and the third day alone, and a sector lists another ticker
/// on the first.
fn vendor_of_latest(number: usize, request: &ScriptedRequest) -> Vec<Step> {
    let history = |ticker: &str| {
        json!({"ticker": ticker, "regime": "neutral", "period": "15d",
               "predictions": [{"date": "2026-11-18T00:00:00+00:00", "signal": "buy", "confidence": 0.5,
                                "period": "fifteen days"}]})
    };
    let body = match request.target.contains("sector=") {
        true if number == 1 => json!({"CVX": history("CVX"), "XOM": history("XOM")}),
        true => json!({"XOM": history("XOM")}),
        false => {
            let date = if number == 2 { Value::Null } else { json!("2026-11-19T00:00:00+00:00") };
            json!({"ticker": "NEE", "date": date, "period": "15d", "regime": "neutral", "signal": "buy", "confidence": 0.5})
        }
    };
    reply("200 OK", &body.to_string())
}

#[test]
fn the_latest_signal_is_the_one_of_the_last_answer_and_what_is_no_longer_listed_is_still_known() {
    let rest = "[checks]\nmissing = \"warn\"\n[rejects]\nkeep_extra = true\n[sentiment]\narticles = false\n[signals]\n";
    let place = Place::new();
    for number in 1..4 {
        let service = Scripted::start(move |request| vendor_of_latest(number, request));
        let address = format!("http://{}", service.address());
        for (minute, signals) in [(0, "sectors = [\"energy\"]"), (1, "history = \"latest\"\ntickers = [\"NEE\"]")] {
            let at = evening(day(2026, 11, 19 + number as u32)) + TimeDelta::minutes(minute);
            let addresses = [&*format!("{address}/a"), &*format!("{address}/b")];
            pull(&place, addresses, &format!("{rest}{signals}\n"), Clock::Fixed(at));
        }
    }
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let seals: Vec<DateTime<Utc>> = archive.runs().iter().map(|run| run.seal().sealed_at).collect();
    let get = |instant: DateTime<Utc>, target: &str| {
        let server = Server::of_archive(&place.file("output/archive"), ChangeSet::All);
        server.below(&format!("/at/{}", to_record(instant))).get(target)
    };
    // The second answer had no date, and the third repeated the first.
    let dates = [(1, json!("2026-11-19T00:00:00+00:00")), (3, Value::Null), (5, json!("2026-11-19T00:00:00+00:00"))];
    for (run, date) in dates {
        let latest: Value = serde_json::from_slice(&get(seals[run], "/api/signals/NEE").body).expect("JSON");
        assert_eq!(latest["date"], date, "{latest}");
    }
    // An unknown field of an entry has the name of a known one of a latest signal.
    let latest = String::from_utf8(get(seals[5], "/api/signals/XOM").body).expect("text");
    assert_eq!(latest.matches("\"period\":").count(), 1, "{latest}");
    let gone = get(seals[5], "/api/signals-history/CVX");
    assert_eq!(gone.status, 200);
    let until =
        |answer: &str| answer.split("until=").nth(1).expect("an end").parse::<DateTime<Utc>>().expect("an instant");
    let (watch, before) = (&gone.headers["bellwether-watch"], get(seals[0], "/api/signals-history/CVX"));
    assert!(watch.starts_with("not-watched") && until(watch) <= seals[2] && until(watch) > seals[1], "{watch}");
    assert_eq!(until(&before.headers["bellwether-watch"]), until(watch), "nothing is known of it after that");
}
