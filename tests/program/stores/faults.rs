//! Stores that fail, stall, truncate answers, or break their guarantees.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Machine, definition};
use crate::support::program::{DemoService, Place};
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::{StoreFault, StoreRequest, StubStore};

/// Runs twice against a store, and checks that an empty disk gets both runs and the latest version.
#[track_caller]
fn check_runs(stub: &StubStore) {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&definition(&service.source), stub);
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["verify", "--store"]).expect_success();
    let seals = stub.keys().iter().filter(|key| key.ends_with("/run.json")).count();
    assert_eq!(seals, 2, "{:?}", stub.keys());
    let fresh = Machine::with_stub(&definition(&service.source), stub);
    fresh.run(&["build", "it"]).expect_success();
    assert_eq!(fresh.folders(), machine.folders());
    assert!(fresh.csv() == machine.csv(), "the datasets differ");
}

/// A fault on the first attempt of each request of a kind.
fn at_first(
    is_meant: impl Fn(&StoreRequest) -> bool + Send + Sync,
    fault: StoreFault,
) -> impl Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync {
    let seen: Mutex<BTreeSet<(String, String, String)>> = Mutex::default();
    move |request| {
        let first = (request.method.clone(), request.key.clone(), request.query.clone());
        (is_meant(request) && seen.lock().expect("no test panicked").insert(first)).then_some(fault)
    }
}

#[test]
fn failed_store_requests_are_retried() {
    let count = AtomicU64::new(0);
    check_runs(&StubStore::start(1000, move |_| {
        let is_third = count.fetch_add(1, Ordering::Relaxed) % 3 == 2;
        is_third.then_some(StoreFault::Refused("500 Internal Server Error", ""))
    }));
}

#[test]
fn a_put_with_a_lost_acknowledgement_is_found_in_the_store() {
    let is_put = |request: &StoreRequest| request.method == "PUT";
    check_runs(&StubStore::start(1000, at_first(is_put, StoreFault::Denied("503 Service Unavailable"))));
    check_runs(&StubStore::start(1000, at_first(is_put, StoreFault::Denied("409 Conflict"))));
    check_runs(&StubStore::start(1000, at_first(is_put, StoreFault::CutOff)));
}

#[test]
fn a_conflict_without_a_winner_is_retried() {
    let is_put = |request: &StoreRequest| request.method == "PUT";
    check_runs(&StubStore::start(1000, at_first(is_put, StoreFault::Refused("409 Conflict", ""))));
}

#[test]
fn truncated_store_answers_are_retried_and_listings_are_paged() {
    check_runs(&StubStore::start(5, |request| {
        (request.method == "GET" && request.number.is_multiple_of(7)).then_some(StoreFault::CutOff)
    }));
}

#[test]
fn a_wait_requested_by_a_store_is_honoured() {
    let refused = StoreFault::Refused("503 Slow Down", "Retry-After: 2");
    let first = AtomicBool::new(true);
    let stub = StubStore::start(1000, move |_| first.swap(false, Ordering::Relaxed).then_some(refused));
    let begun = Instant::now();
    check_runs(&stub);
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn a_slow_store_is_waited_for() {
    check_runs(&StubStore::start(1000, |request| {
        request.number.is_multiple_of(5).then_some(StoreFault::Slow(Duration::from_millis(200)))
    }));
}

#[test]
fn a_store_without_conditional_puts_is_refused_before_any_request() {
    let is_create = |request: &StoreRequest| request.method == "PUT";
    let stub = StubStore::start(1000, move |request| is_create(request).then_some(StoreFault::Unconditional));
    let service = Scripted::of_histories(|_| json("200 OK", "{}"));
    let machine = Machine::with_stub(&definition(&service.source()), &stub);
    let message = machine.run(&["run", "it"]).failed_with(1).stderr;
    assert!(message.contains("does not honour conditional puts"), "{message}");
    assert!(message.contains("it overwrote an object on condition that there is none"), "{message}");
    assert_eq!((service.count(), stub.keys().len()), (0, 0), "{:?}", stub.keys());
}

#[test]
fn a_store_that_ignores_tags_is_refused() {
    // The store checks `If-None-Match`, but not `If-Match`.
    let puts = AtomicU64::new(0);
    let stub = StubStore::start(1000, move |request| {
        let is_third = request.method == "PUT" && puts.fetch_add(1, Ordering::Relaxed) >= 2;
        is_third.then_some(StoreFault::Unconditional)
    });
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let message = machine.run(&["store", "push"]).failed_with(1).stderr;
    assert!(message.contains("on condition that it is unchanged, and it was not"), "{message}");
}

#[test]
fn a_run_that_cannot_be_uploaded_stays_local_until_the_next_one() {
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let stub = StubStore::start(1000, move |request| {
        let is_upload = request.method == "PUT" && request.key.contains("/run=");
        (is_upload && down.load(Ordering::Relaxed)).then_some(StoreFault::Refused("503 Service Unavailable", ""))
    });
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    let message = machine.run(&["run", "it"]).failed_with(75).stderr;
    assert!(
        message.contains("the results are on this machine, but not all of them are in `s3://signals/team/a`"),
        "{message}"
    );
    assert!(message.contains("status 503: SlowDown") && message.contains("hint: `bellwether store push`"), "{message}");
    assert!(!message.contains('\u{1b}'), "{message:?}");
    assert!(!machine.csv().is_empty(), "it is published here");
    is_down.store(false, Ordering::Relaxed);
    machine.run(&["run", "it"]).expect_success();
    let status = machine.difference();
    assert_eq!((status["runs"].as_u64(), status["versions"].as_u64()), (Some(2), Some(2)), "{status:#}");
    machine.run(&["verify", "--store"]).expect_success();
}

#[test]
fn only_interrupted_uploads_are_cleared_after_a_day() {
    let stub = StubStore::start(1000, |_| None);
    let at = |name: &str| format!("team/a/archive/demo/run=20261101T000000Z-{name}");
    stub.put(&format!("{}/signals.parquet", at("aaaa")), b"old", 30);
    stub.put(&format!("{}/requests.parquet", at("aaaa")), b"old", 31);
    stub.put(&format!("{}/signals.parquet", at("bbbb")), b"old", 30);
    stub.put(&format!("{}/requests.parquet", at("bbbb")), b"new", 20);
    stub.put(&format!("{}/signals.parquet", at("cccc")), b"old", 30);
    stub.put(&format!("{}/notes.txt", at("cccc")), b"mine", 300);
    stub.put("team/a/archive/demo/run=mine/signals.parquet", b"mine", 300);
    stub.put("team/a/datasets/it/20261101T000000Z-dddd/it.csv", b"old", 30);
    stub.put("team/a/datasets/it/20261101T000000Z-dddd/it.txt", b"mine", 30);
    stub.put("team/a/datasets/.probe-0123456789abcdef", b"1", 30);
    // Killed while another machine was clearing it.
    stub.put(&format!("{}/run.json", at("eeee")), br#"{"cleared_at":"2026-11-03T00:00:00.000000Z"}"#, 30);
    stub.put(&format!("{}/articles.parquet", at("eeee")), b"old", 40);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let status = machine.status();
    assert_eq!(status["unfinished"].as_array().map(Vec::len), Some(5), "{status:#}");
    let message = machine.run(&["store", "push"]).expect_success().stdout;
    assert!(message.contains("cleared 4 interrupted uploads\n"), "{message}");
    let kept = [
        format!("{}/requests.parquet", at("bbbb")),
        format!("{}/signals.parquet", at("bbbb")),
        format!("{}/notes.txt", at("cccc")),
        "team/a/archive/demo/run=mine/signals.parquet".to_owned(),
        "team/a/datasets/it/20261101T000000Z-dddd/it.txt".to_owned(),
    ];
    assert_eq!(stub.keys(), kept);
}

#[test]
fn a_damaged_object_is_named_and_never_used() {
    let stub = StubStore::start(1000, |_| None);
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    machine.run(&["run", "it"]).expect_success();
    let key = stub.keys().into_iter().find(|key| key.ends_with("/signals.parquet")).unwrap();
    let mut bytes = stub.object(&key).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    stub.put(&key, &bytes, 0);
    let message = machine.run(&["verify", "--store"]).failed_with(1);
    assert!(message.stdout.contains("its BLAKE3 checksum is"), "{}", message.stdout);
    let fresh = Machine::with_stub(&definition(&service.source), &stub);
    let message = fresh.run(&["build", "it"]).failed_with(1).stderr;
    assert!(message.contains("signals.parquet` in `s3://signals/team/a` is damaged"), "{message}");
    assert!(fresh.folders().is_empty());
    let left: Vec<_> = fresh.place.files().into_iter().filter(|path| path.ends_with("signals.parquet")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_damaged_record_in_a_store_hints_at_the_store() {
    let stub = StubStore::start(1000, |_| None);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    machine.run(&["run", "it"]).expect_success();
    for (record, arguments) in [("/run.json", ["build", "it"]), ("/dataset.json", ["show", "it"])] {
        let key = stub.keys().into_iter().find(|key| key.ends_with(record)).unwrap();
        let whole = stub.object(&key).unwrap();
        stub.put(&key, &whole[..whole.len() - 9], 0);
        let fresh = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
        let message = fresh.run(&arguments).failed_with(1).stderr;
        let at = key.strip_prefix("team/a/").unwrap();
        assert!(message.contains(&format!("`{at}` in `s3://signals/team/a` is damaged")), "{message}");
        assert!(message.contains("`bellwether verify --store` lists all damaged objects"), "{message}");
        stub.put(&key, &whole, 0);
    }
}

#[test]
fn another_run_with_the_same_name_is_not_overwritten() {
    let stub = StubStore::start(1000, |_| None);
    let first = Place::new();
    let service = DemoService::start(&first, &["--today", "2026-11-20"]);
    first.define("it", &definition(&service.source));
    crate::support::program::Outcome::of(first.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
        .expect_success();
    let run = crate::support::rows::sealed_run(&first);
    let name = run.file_name().unwrap().to_string_lossy().into_owned();
    // Another run is being uploaded: only its smallest file is there.
    let smallest = std::fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "run.json")
        .min_by_key(|entry| entry.metadata().unwrap().len())
        .unwrap();
    let key = format!("team/a/archive/vendor/{name}/{}", smallest.file_name().to_string_lossy());
    let size = smallest.metadata().unwrap().len() as usize;
    stub.put(&key, &vec![7; size], 0);
    let machine = Machine { place: first, ..Machine::with_stub(&definition(&service.source), &stub) };
    let message = machine.run(&["store", "push"]).failed_with(1).stderr;
    assert!(message.contains("is already taken by another machine"), "{message}");
    let keys: Vec<String> = stub.keys().into_iter().filter(|key| key.contains("/archive/")).collect();
    assert_eq!(keys, std::slice::from_ref(&key));
    assert_eq!(stub.object(&key).unwrap(), vec![7; size]);
}

#[test]
fn large_files_are_sent_in_parts_and_failed_parts_are_retried() {
    let failing = at_first(
        |request| request.query.contains("partNumber=2"),
        StoreFault::Refused("500 Internal Server Error", ""),
    );
    let stub = StubStore::start(1000, failing);
    check_large_files(|definition| Machine::with_stub(definition, &stub));
    assert!(stub.requests().iter().any(|request| request.query.contains("partNumber=2")), "nothing was sent in parts");
}

/// A run whose signals have more than 8 MiB, which an empty disk gets as they were.
#[track_caller]
pub(super) fn check_large_files(machine: impl Fn(&str) -> Machine) {
    let entries: Vec<String> = (0..400_000)
        .map(|day: u32| {
            let date = chrono::NaiveDate::from_ymd_opt(1, 1, 1).expect("a date") + chrono::Days::new(day.into());
            let confidence = f64::from(day.wrapping_mul(2_654_435_761) >> 4) / f64::from(1_u32 << 28);
            format!("{{\"date\":\"{date}T00:00:00\",\"signal\":\"buy\",\"confidence\":{confidence}}}")
        })
        .filter(|entry| entry.len() < 90)
        .collect();
    let series = |ticker: &str| {
        let entries = entries.join(",");
        format!(
            "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{entries}]}}"
        )
    };
    let body = format!("{{{},{}}}", series("CVX"), series("XOM"));
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let first = machine(&definition(&service.source()));
    first.run(&["run", "it"]).expect_success();
    first.run(&["verify", "--store"]).expect_success();
    let fresh = machine(&definition(&service.source()));
    fresh.run(&["build", "it"]).expect_success();
    assert!(fresh.csv() == first.csv(), "the datasets differ");
}
