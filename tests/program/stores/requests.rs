//! Requests to a store cost money and time: how many a run makes, and how they grow with what the store holds.

use super::{Machine, definition};
use crate::support::scripted::{Scripted, json};
use crate::support::stub_store::StubStore;

/// The keys of a page of a listing: few, so that few runs fill many pages.
const PAGE: usize = 20;

/// The most requests of a run that are not listings, with all versions that a machine keeps.
const OF_A_RUN: usize = 28;

/// The most that sending a pack adds.
const OF_A_PACK: usize = 9;

/// The listings of folders that are about to be sent.
const LISTINGS: usize = 2;

#[test]
fn requests_of_a_run_grow_only_with_the_pages_of_the_archive() {
    let stub = StubStore::start(PAGE, |_| None);
    let service = Scripted::of_histories(|_| json("200 OK", super::writers::HISTORY));
    let machine = Machine::with_stub(&definition(&service.source()), &stub);
    let (mut packs, mut pages) = (0, 0);
    for run in 0..17 {
        let before = stub.requests().len();
        machine.run(&["run", "it", "-q"]).succeeded();
        let request = stub.requests().split_off(before);
        let listings = request.iter().filter(|request| request.method == "GET" && request.key.is_empty()).count();
        let others = request.len() - listings;

        pages = stub.keys().iter().filter(|key| key.contains("/archive/")).count().div_ceil(PAGE);
        let packs_before = packs;
        packs = machine.folders().iter().filter(|name| name.starts_with("pack=")).count();
        let new = packs - packs_before;
        assert!(others <= OF_A_RUN + new * OF_A_PACK, "run {run}, {new} packs: {others} requests\n{request:#?}");
        assert!(listings <= 2 * pages + LISTINGS + new, "run {run}, {pages} pages: {listings} listings\n{request:#?}");
    }
    assert!(packs == 1 && pages > 6, "{packs} packs, {pages} pages: the test has seen too little");
}
