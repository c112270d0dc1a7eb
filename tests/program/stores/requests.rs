//! Requests to a store cost money and time: how many a run makes, and how they grow with what the store holds.

use std::collections::BTreeMap;

use super::{Machine, definition};
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::StubStore;

/// The keys of a page of a listing: few, so that few runs fill many pages.
const PAGE: usize = 20;

/// The most requests of a run that are not listings, with all versions that a machine keeps.
const OF_A_RUN: usize = 29;

/// The most that sending a pack adds.
const OF_A_PACK: usize = 10;

/// The listings of the archive's services, and of folders that are about to be sent.
const LISTINGS: usize = 5;

/// How often a run lists the archive of its service: when it begins, when it seals, and when it sends.
const OF_THE_ARCHIVE: usize = 3;

#[test]
fn requests_of_a_run_grow_only_with_the_pages_of_the_archive() {
    let stub = StubStore::start(PAGE, |_| None);
    let service = Scripted::of_histories(|_| json("200 OK", super::writers::HISTORY));
    let machine = Machine::with_stub(&definition(&service.source()), &stub);
    let (mut packs, mut pages) = (0, 0);
    for run in 0..17 {
        let before = stub.requests().len();
        machine.run(&["run", "it", "-q"]).expect_success();
        let request = stub.requests().split_off(before);
        let listings = request.iter().filter(|request| request.method == "GET" && request.key.is_empty()).count();
        let others = request.len() - listings;

        pages = stub.keys().iter().filter(|key| key.contains("/archive/")).count().div_ceil(PAGE);
        // The versions are listed once, when they are sent.
        let of_versions = stub.keys().iter().filter(|key| key.contains("/datasets/")).count().div_ceil(PAGE);
        let packs_before = packs;
        packs = machine.folders().iter().filter(|name| name.starts_with("pack=")).count();
        let new = packs - packs_before;
        assert!(others <= OF_A_RUN + new * OF_A_PACK, "run {run}, {new} packs: {others} requests\n{request:#?}");
        assert!(
            listings <= OF_THE_ARCHIVE * pages + LISTINGS + new + of_versions,
            "run {run}, {pages} pages: {listings} listings\n{request:#?}"
        );
    }
    assert!(packs == 1 && pages > 6, "{packs} packs, {pages} pages: the test has seen too little");
}

/// A record without its files, or a name for a version that is not there, would mislead every reader.
#[test]
fn records_are_sent_after_their_files_and_latest_after_its_version() {
    let stub = StubStore::start(1000, |_| None);
    let service = Scripted::of_histories(|_| json("200 OK", super::writers::HISTORY));
    let machine = Machine::with_stub(&definition(&service.source()), &stub);
    machine.run(&["run", "it"]).expect_success();
    let is_ours = |key: &str| !key.contains("/.probe-");
    let puts = stub.requests().into_iter().filter(|wanted| wanted.method == "PUT" && is_ours(&wanted.key));
    let puts: Vec<String> = puts.map(|wanted| wanted.key).collect();
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for key in &puts {
        let (folder, name) = key.rsplit_once('/').expect("a folder");
        last.insert(folder, name);
    }
    let last: Vec<&str> = last.into_values().collect();
    assert_eq!(last, ["run.json", "latest.json", "dataset.json"], "{puts:?}");
    let place = |name: &str| puts.iter().position(|key| key.ends_with(name)).expect("it was sent");
    assert!(place("/run.json") < place("/dataset.json"), "a version is sent after its runs: {puts:?}");
    assert_eq!(place("/latest.json"), puts.len() - 1, "{puts:?}");
}
