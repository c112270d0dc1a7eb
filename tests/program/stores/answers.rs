//! Stores whose answers have no end, point elsewhere, or are not those of a store: each is bounded, and refused in words.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{Machine, definition};
use crate::support::peak::Peak;
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::{StoreFault, StoreRequest, StubStore};

/// Commands that only read a store.
const READERS: [&[&str]; 9] = [
    &["verify", "--store", "--sizes"],
    &["verify", "--store"],
    &["store", "pull"],
    &["sql", "it"],
    &["report", "--text", "it"],
    &["show", "it"],
    &["report", "it"],
    &["audit", "quality", "it"],
    &["build", "it", "--ticker", "XOM"],
];

/// The most memory that a hostile answer may take, in MiB. The program itself takes a tenth of it.
const MOST_MEMORY: u64 = 400;

fn is_listing(request: &StoreRequest) -> bool {
    request.method == "GET" && request.key.is_empty()
}

fn entry(key: &str) -> String {
    format!(
        "<Contents><Key>{key}</Key><Size>300</Size><ETag>\"1\"</ETag>\
         <LastModified>2026-11-20T00:00:00.000Z</LastModified></Contents>"
    )
}

fn page(inside: &str) -> &'static str {
    Box::leak(format!("<ListBucketResult>{inside}</ListBucketResult>").into_boxed_str())
}

/// A machine with the definition of the demo, and a store that answers some requests by a script.
fn machine(script: impl Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync + 'static) -> (Machine, StubStore) {
    let stub = StubStore::start(1000, script);
    (Machine::with_stub(&definition("service = \"demo\"\n"), &stub), stub)
}

/// Runs a command, and checks that it neither takes much memory nor long.
#[track_caller]
fn run_with_limits(machine: &Machine, arguments: &[&str]) -> Outcome {
    let begun = Instant::now();
    let mut command = machine.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let peak = Peak::of(&child);
    let output = child.wait_with_output().expect("it ends");
    let peak = peak.end();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
    let outcome = Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(peak < MOST_MEMORY, "{peak} MiB: {}", outcome.stderr);
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}: {}", begun.elapsed(), outcome.stderr);
    outcome
}

#[test]
fn an_answer_without_an_end_is_refused_at_a_limit() {
    let entries: &'static str = Box::leak(entry("team/a/archive/demo/x").into_boxed_str());
    let (listed, _stub) = machine(move |request| {
        is_listing(request).then_some(StoreFault::Endless("200 OK", "<ListBucketResult>", entries))
    });
    let message = run_with_limits(&listed, &["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("refused the answer of `s3://signals/team/a` to list"), "{message}");
    assert!(message.contains("its answer is larger than 16 MiB"), "{message}");
    // The status of an error is enough, whatever follows it.
    for (status, code, reason) in [("403 Forbidden", 1, "status 403: No"), ("503 Slow Down", 75, "status 503: No")] {
        let body = "<Error><Code>No</Code><Message>";
        let (failing, _stub) = machine(move |_| Some(StoreFault::Endless(status, body, "no ")));
        let message = run_with_limits(&failing, &["verify", "--store", "--sizes"]).failed_with(code).stderr;
        assert!(message.contains(reason), "{message}");
    }
    // The answers to what is written.
    let (written, _stub) =
        machine(|request| (request.method == "PUT").then_some(StoreFault::Endless("200 OK", "", "ok ")));
    let message = run_with_limits(&written, &["store", "push"]).failed_with(1).stderr;
    assert!(message.contains("to write `datasets/.probe-") && message.contains("larger than 16 MiB"), "{message}");
}

#[test]
fn a_listing_that_never_ends_is_refused() {
    let first = page("<NextContinuationToken>b</NextContinuationToken>");
    let second = page("<NextContinuationToken>a</NextContinuationToken>");
    for is_of_two in [false, true] {
        let (machine, stub) = machine(move |request| {
            let is_second = is_of_two && request.query.contains("continuation-token=b");
            is_listing(request).then_some(StoreFault::Replied("200 OK", "", if is_second { second } else { first }))
        });
        for arguments in [&["verify", "--store", "--sizes"][..], &["verify", "--store"], &["store", "pull"]] {
            let message = run_with_limits(&machine, arguments).failed_with(1).stderr;
            assert!(message.contains("its listing repeats a page"), "{message}");
        }
        assert!(stub.requests().len() < 40, "{}", stub.requests().len());
    }
}

#[test]
fn a_record_and_the_file_that_names_the_latest_version_are_bounded() {
    let stub = StubStore::start(1000, |_| None);
    let folder = "team/a/archive/demo/run=20261101T000000Z-aaaa";
    stub.put(&format!("{folder}/run.json"), &vec![b' '; 60 << 20], 0);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    for arguments in [["store", "pull"], ["sql", "it"], ["run", "it"]] {
        let message = run_with_limits(&machine, &arguments).failed_with(1).stderr;
        assert!(message.contains("run.json` in `s3://signals/team/a` is damaged"), "{message}");
        assert!(
            message.contains("it is larger than 8 MiB") && message.contains("bellwether verify --store"),
            "{message}"
        );
    }
    let verified = run_with_limits(&machine, &["verify", "--store"]).failed_with(1).stdout;
    assert!(verified.contains("it is larger than 8 MiB"), "{verified}");
    let stub = StubStore::start(1000, |_| None);
    stub.put("team/a/datasets/it/latest.json", &vec![b' '; 20 << 20], 0);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let message = run_with_limits(&machine, &["show", "it"]).failed_with(1).stderr;
    assert!(message.contains("it is larger than 64 KiB"), "{message}");
}

#[test]
fn the_seal_of_a_large_pack_takes_memory_in_proportion() {
    let stub = StubStore::start(1000, |_| None);
    let text = format!("{{\"layout\":10,\"x\":[{}0]}}", "0,".repeat(29 << 20));
    stub.put("team/a/archive/demo/pack=20261101T000000Z-aaaa/run.json", text.as_bytes(), 0);
    let machine = Machine::with_stub(&definition("service = \"demo\"\n"), &stub);
    let message = run_with_limits(&machine, &["verify", "--store", "--sizes"]).failed_with(1).stdout;
    assert!(message.contains("pack=20261101T000000Z-aaaa/run.json` in `s3://signals/team/a` is damaged"), "{message}");
}

#[test]
fn a_redirect_is_refused_and_nothing_reaches_the_other_host() {
    let elsewhere = Scripted::start(|_| json("200 OK", "{}"));
    let to: &'static str = Box::leak(
        format!("Location: http://{}/signals?list-type=2&X-Amz-Signature=S3CRET\r\n", elsewhere.address())
            .into_boxed_str(),
    );
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent"] {
        for kind in ["GET", "PUT"] {
            let (mut machine, _stub) =
                machine(move |request| (request.method == kind).then_some(StoreFault::Replied(status, to, "")));
            machine.environment.push(("AWS_SESSION_TOKEN", "session-0123456789".to_owned()));
            let message = machine.run(&["store", "push"]).failed_with(1).stderr;
            let expected = format!("it redirects to `http://{}`, and redirects are not followed", elsewhere.address());
            assert!(message.contains(&expected) && !message.contains("S3CRET"), "{message}");
        }
    }
    assert_eq!(elsewhere.count(), 0, "{:?}", elsewhere.targets());
    let (machine, _stub) =
        machine(|_| Some(StoreFault::Replied("301 Moved Permanently", "x-amz-bucket-region: eu-west-1\r\n", "")));
    let message = machine.run(&["verify", "--store", "--sizes"]).failed_with(1).stderr;
    assert!(message.contains("the bucket is in the region `eu-west-1`: set `AWS_REGION`"), "{message}");
}

#[test]
fn what_is_not_a_store_is_not_an_empty_store() {
    for body in [
        "<!DOCTYPE html><html><body>Welcome</body></html>",
        "<html/>",
        "{\"ok\": true}",
        "",
        "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
        "<ListAllMyBucketsResult/>",
    ] {
        let (machine, _stub) = machine(move |_| Some(StoreFault::Replied("200 OK", "ETag: \"1\"\r\n", body)));
        for arguments in READERS.iter().chain([&["run", "it"][..], &["store", "push"]].iter()) {
            let outcome = machine.run(arguments).failed_with(1);
            assert!(!outcome.stderr.contains("panicked"), "{arguments:?}: {}", outcome.stderr);
            if arguments.contains(&"--store") || arguments.contains(&"pull") {
                assert!(outcome.stderr.contains("there is no store at this address"), "{body}: {}", outcome.stderr);
            }
        }
    }
    // An empty store is one.
    let (machine, _stub) = machine(|_| None);
    machine.run(&["verify", "--store", "--sizes"]).expect_success();
    machine.run(&["verify", "--store"]).expect_success();
}

#[test]
fn a_folder_that_does_not_exist_is_not_created_by_reading_it() {
    let (_folder, url) = super::folder_store();
    let path = std::path::PathBuf::from(url.strip_prefix("file://").unwrap());
    let machine = Machine::new(&definition("service = \"demo\"\n"), &url, []);
    for arguments in READERS {
        let message = machine.run(arguments).failed_with(1).stderr;
        assert!(message.contains(&format!("the store `{url}` does not exist")), "{arguments:?}: {message}");
        assert!(!path.exists(), "{arguments:?}");
    }
    machine.run(&["store", "push"]).expect_success();
    assert!(path.is_dir());
    machine.run(&["verify", "--store", "--sizes"]).expect_success();
}

#[test]
fn keys_that_are_no_paths_are_skipped_and_named_once() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let stub = StubStore::start(1000, |_| None);
    let machine = Machine::with_stub(&definition(&service.source), &stub);
    machine.run(&["run", "it"]).expect_success();
    for key in
        ["archive//x", "archive/./x", "archive/../x", "archive/vendor//x", "datasets/it/&#10;&#27;[31m", "datasets//"]
    {
        stub.put(&format!("team/a/{key}"), b"not ours", 0);
    }
    let fresh = Machine::with_stub(&definition(&service.source), &stub);
    for arguments in [
        &["run", "it"][..],
        &["verify", "--store", "--sizes"],
        &["verify", "--store"],
        &["store", "push"],
        &["store", "pull"],
        &["sql", "it"],
        &["show", "it"],
    ] {
        let outcome = fresh.run(arguments).expect_success();
        let warnings: Vec<&str> =
            outcome.stderr.lines().filter(|line| line.ends_with('`') && line.contains("names are no paths")).collect();
        let distinct: std::collections::BTreeSet<&str> = warnings.iter().copied().collect();
        assert_eq!(distinct.len(), warnings.len(), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(distinct.is_empty(), arguments.contains(&"show"), "{arguments:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains('\u{1b}'), "{}", outcome.stderr);
    }
    assert!(stub.keys().contains(&"team/a/archive//x".to_owned()), "it is not ours to remove");
}

#[test]
fn odd_names_in_the_folder_of_a_store_are_skipped_and_named() {
    let (_folder, url) = super::folder_store();
    let machine = Machine::new(&definition("service = \"demo\"\n"), &url, []);
    machine.run(&["run", "it"]).expect_success();
    let root = std::path::PathBuf::from(url.strip_prefix("file://").unwrap());
    std::fs::write(root.join("archive/demo/a\u{1b}\nb"), "not ours").unwrap();
    std::os::unix::fs::symlink("..", root.join("archive/demo/around")).unwrap();
    for arguments in [&["verify", "--store", "--sizes"][..], &["verify", "--store"], &["store", "pull"], &["run", "it"]]
    {
        let outcome = machine.run(arguments).expect_success();
        assert_eq!(outcome.stderr.matches("names are no paths").count(), 1, "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_store_without_etags_is_refused() {
    let service = Scripted::of_histories(|_| json("200 OK", "{}"));
    let stub = StubStore::start(1000, |_| Some(StoreFault::Untagged));
    let machine = Machine::with_stub(&definition(&service.source()), &stub);
    for arguments in [["run", "it"], ["store", "push"]] {
        let message = machine.run(&arguments).failed_with(1).stderr;
        assert!(message.contains("does not honour conditional puts\n  because: it sends no ETag"), "{message}");
    }
    assert_eq!(service.count(), 0);
}
