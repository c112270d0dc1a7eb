//! Machines and a store that fails, simulated from a seed: one thread for the store, a clock that is not real, the same
//! trace for the same seed. In the end the machines know what one would that had received all answers.
//!
//! `BELLWETHER_SIMULATIONS=2000` runs more seeds, `BELLWETHER_SIMULATIONS=37..38` repeats one.

use std::collections::BTreeMap;
use std::thread;

use bellwether::time::seeded;
use bytes::Bytes;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::machines::Fleet;
use super::range_of;
use crate::support::simulated_store::SimulatedStore;

/// A store that fails, and the time that it takes.
pub(super) struct Simulation {
    pub(super) store: SimulatedStore,
    pub(super) runtime: Runtime,
    pub(super) is_calm: bool,
}

impl Simulation {
    fn of(seed: u64) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        Self { store: SimulatedStore::of(seed), runtime, is_calm: false }
    }

    /// Whatever the store has a record of, it has whole.
    #[track_caller]
    pub(super) fn check_whole(&self, story: &str) {
        let contents = self.runtime.block_on(self.store.contents());
        for (key, record) in &contents {
            let Some((folder, "run.json" | "dataset.json")) = key.rsplit_once('/') else { continue };
            let record: Value = serde_json::from_slice(record).expect("JSON");
            // A note that it is being cleared has no files.
            for file in record["files"].as_array().into_iter().flatten() {
                check_file(&contents, folder, file, story);
            }
        }
        for (key, latest) in contents.iter().filter(|(key, _)| key.ends_with("/latest.json")) {
            let latest: Value = serde_json::from_slice(latest).expect("JSON");
            let folder = key.strip_suffix("latest.json").expect("it ends so");
            let record = format!("{folder}{}/dataset.json", latest["version"].as_str().expect("a version"));
            assert!(contents.contains_key(&record), "{story}\n`{key}` names a version that is not there");
        }
    }
}

#[track_caller]
fn check_file(contents: &BTreeMap<String, Bytes>, folder: &str, file: &Value, story: &str) {
    let key = format!("{folder}/{}", file["name"].as_str().expect("a name"));
    let found = contents.get(&key).map(|bytes| blake3::hash(bytes).to_hex().to_string());
    assert_eq!(found.as_deref(), file["blake3"].as_str(), "{story}\n`{key}` is not what its record says");
}

/// Prints the counts, visible with `--no-capture`.
#[expect(clippy::print_stdout, reason = "the long version is run to be read")]
fn tell(text: &str) {
    println!("{text}");
}

/// Plays a seed, and returns what happened with the requests to the store, and the numbers of its faults and of the folders
/// that were pruned.
fn play(seed: u64) -> (String, [usize; 2]) {
    seeded::begin(seed);
    let mut fleet = Fleet::of(seed, "s3://simulated");
    fleet.simulation = Some(Simulation::of(seed));
    for step in 0..fleet.random.between(6, 24) {
        let (one, other) = (fleet.random.below(3), fleet.random.between(1, 2));
        match fleet.random.below(7) {
            0 if step > 0 => fleet.send_both([one, (one + other) % 3]),
            1 if step > 0 => fleet.send(one),
            2 if step > 0 => fleet.lose_disk(one),
            3 if step > 0 => fleet.prune_store(one),
            _ => fleet.go_on(step),
        }
    }
    let simulation = fleet.simulation.as_mut().expect("it is simulated");
    simulation.is_calm = true;
    simulation.store.set_calm(true);
    fleet.pass_four_days();
    if fleet.random.one_in(2) {
        (0..3).for_each(|machine| fleet.send(machine));
        fleet.prune_store(0);
    }
    fleet.meet();
    let simulation = fleet.simulation.as_ref().expect("it is simulated");
    (fleet.story.clone() + &simulation.store.trace(), [simulation.store.faults(), fleet.pruned])
}

#[test]
fn machines_with_a_store_that_fails_know_what_one_would() {
    let seeds = range_of("BELLWETHER_SIMULATIONS", 8);
    let (count, half) = (seeds.end - seeds.start, seeds.start + (seeds.end - seeds.start) / 2);
    let sum = |[faults, pruned]: [usize; 2], [more, also]: [usize; 2]| [faults + more, pruned + also];
    let play_all = |seeds: std::ops::Range<u64>| seeds.map(|seed| play(seed).1).fold([0, 0], sum);
    let [faults, pruned] = thread::scope(|scope| {
        let parts = [seeds.start..half, half..seeds.end].map(|part| scope.spawn(|| play_all(part)));
        parts.map(|part| part.join().expect("every machine knows it")).into_iter().fold([0, 0], sum)
    });
    tell(&format!("{count} seeds, {faults} faults, {pruned} folders pruned"));
    assert!(faults as u64 > count, "{faults} faults are too few for {count} seeds");
    assert!(pruned > 0 || count < 8, "nothing was ever pruned from a store");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let (first, second) = (play(5).0, play(5).0);
    let differing = first.lines().zip(second.lines()).position(|(one, other)| one != other);
    assert!(first == second, "line {differing:?}\n{first}\n\n{second}");
}
