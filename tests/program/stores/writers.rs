//! Two machines run at the same time: both runs are kept, and the next run continues from both.
//!
//! `BELLWETHER_STORE_WRITERS=100` runs the long version.

use std::process::{Child, Stdio};

use super::{Machine, definition};
use crate::support::bucket::Bucket;
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::StubStore;
use crate::support::tools::{PYTHON, needs};

pub(super) const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.5}]}}"#;

fn start(machine: &Machine) -> Child {
    let mut command = machine.command(&["run", "it", "-q"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[track_caller]
fn check_writers(machines: &[Machine; 2], fresh: &Machine, times: usize) {
    for time in 0..times {
        let children = machines.each_ref().map(start);
        for child in children {
            let output = child.wait_with_output().expect("it ended");
            assert!(output.status.success(), "time {time}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    fresh.run(&["store", "pull"]).expect_success();
    let difference = fresh.difference();
    assert_eq!(difference["runs"].as_u64(), Some(2 * times as u64), "{difference:#}");
    assert_eq!(difference["versions_only_there"].as_array().map(Vec::len), Some(2 * times - 1), "{difference:#}");
    // The latest version is built from the most runs.
    assert!(machines.iter().any(|machine| machine.latest() == fresh.latest()), "{difference:#}");
    let verified = fresh.run(&["verify", "--store"]).expect_success().stdout;
    assert!(verified.contains("verified "), "{verified}");
    fresh.run(&["verify"]).expect_success();
    fresh.run(&["run", "it"]).expect_success();
    assert_eq!(fresh.difference()["runs"].as_u64(), Some(2 * times as u64 + 1));
}

#[test]
fn two_concurrent_writers_lose_nothing() {
    let times = std::env::var("BELLWETHER_STORE_WRITERS").map_or(12, |count| count.parse().expect("a number"));
    let stub = StubStore::start(1000, |_| None);
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    let machine = || Machine::with_stub(&definition(&service.source()), &stub);
    check_writers(&[machine(), machine()], &machine(), times);
}

#[test]
fn two_concurrent_writers_to_a_bucket_lose_nothing() {
    needs!(PYTHON);
    let bucket = Bucket::start();
    let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
    let machine = || Machine::with_bucket(&definition(&service.source()), &bucket);
    check_writers(&[machine(), machine()], &machine(), 8);
}
