//! Uploads killed at random instants: readers never see a partial upload, and the next run completes it.
//!
//! `BELLWETHER_STORE_KILLS=500` runs the long version.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use super::{Machine, definition};
use crate::support::bucket::Bucket;
use crate::support::program::{DemoService, Place};
use crate::support::random::Random;
use crate::support::stub_store::{StoreFault, StubStore};
use crate::support::tools::{PYTHON, needs};

fn kills(usually: u64) -> u64 {
    std::env::var("BELLWETHER_STORE_KILLS").map_or(usually, |count| count.parse().expect("a number"))
}

/// Starts a run on a machine and kills it after a while, unless it ends first.
fn kill(machine: &Machine, wait: impl FnOnce(&mut Child)) {
    let mut command = machine.command(&["run", "it", "-q"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait(&mut child);
    child.kill().expect("it is there, or ended and not waited for");
    child.wait().expect("it ended");
}

/// The archive that two machines wrote and a third one fetches.
#[track_caller]
fn check_all_is_there(machines: &[Machine], fresh: &Machine) {
    for machine in machines {
        machine.run(&["run", "it"]).expect_success();
    }
    let verified = fresh.run(&["verify", "--store"]).expect_success().stdout;
    assert!(!verified.contains("note: "), "everything that was killed was taken up again: {verified}");
    fresh.run(&["build", "it"]).expect_success();
    let status = fresh.difference();
    assert_eq!(status["only_there"].as_array().map(Vec::len), Some(0), "{status:#}");
    for machine in machines {
        let status = machine.difference();
        assert_eq!(status["only_here"].as_array().map(Vec::len), Some(0), "{status:#}");
        assert_eq!(status["versions_only_here"].as_array().map(Vec::len), Some(0), "{status:#}");
    }
    fresh.run(&["verify"]).expect_success();
}

#[test]
fn a_killed_upload_never_reads_as_a_run_and_is_resumed() {
    let stub = StubStore::start(1000, |_| Some(StoreFault::Slow(Duration::from_millis(3))));
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::with_stub(&definition(&service.source), &stub));
    let mut random = Random::of(27);
    let mut unfinished = 0;
    for number in 0..kills(8) {
        let machine = &machines[(number % 2) as usize];
        let (before, requests) = (stub.requests().len(), random.between(8, 60));
        kill(machine, |run| {
            while stub.requests().len() < before + requests && run.try_wait().expect("a process").is_none() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let fresh = Machine::with_stub(&definition(&service.source), &stub);
        let verified = fresh.run(&["verify", "--store"]).expect_success().stdout;
        unfinished += verified.matches("note: ").count();
    }
    assert!(unfinished > 0, "no kill was in an upload");
    check_all_is_there(&machines, &Machine::with_stub(&definition(&service.source), &stub));
}

#[test]
fn kills_at_random_instants_lose_nothing_in_a_bucket() {
    needs!(PYTHON);
    let bucket = Bucket::start();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let machines = [(); 2].map(|()| Machine::with_bucket(&definition(&service.source), &bucket));
    let mut random = Random::of(5);
    for number in 0..kills(6) {
        kill(&machines[(number % 2) as usize], |_| {
            thread::sleep(Duration::from_millis(random.between(200, 2500) as u64));
        });
    }
    check_all_is_there(&machines, &Machine::with_bucket(&definition(&service.source), &bucket));
}
