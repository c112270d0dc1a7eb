//! Several machines, each with a clock of its own, that are offline for any time and meet in any order: their merged
//! archives give what one machine would that had received all answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use bellwether::archive::Archive;
use bellwether::error::ErrorKind;
use bellwether::harness::archive::open_merged;
use bellwether::plan::StoreUrl;
use bellwether::run::{self, CancellationToken, Control, Options, PruneMode, RemoteStore, compact, prune};
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};

use super::naive::Pull;
use super::sequences;
use super::world::{MACHINES, World};
use crate::support::program::Place;

/// A machine with its own disk and clock.
struct Machine {
    name: &'static str,
    /// How far its clock is ahead.
    ahead: TimeDelta,
    is_online: bool,
}

/// A world whose machines need not meet.
struct Fleet {
    world: World,
    store: StoreUrl,
    machines: Vec<Machine>,
    /// The instants at which runs were made; two machines with the same one would be one in a million.
    instants: BTreeSet<DateTime<Utc>>,
}

impl Fleet {
    fn of(seed: u64, store: &str) -> Self {
        let mut world = World::new(seed, true);
        let machines = MACHINES.map(|name| Machine {
            name,
            ahead: TimeDelta::seconds(world.random.pick(&[0, 0, 2, -3, 90_000])),
            is_online: world.random.one_in(2),
        });
        Self {
            world,
            store: store.parse().expect("the address of a store"),
            machines: machines.into(),
            instants: BTreeSet::new(),
        }
    }

    fn output(&self, machine: usize) -> PathBuf {
        self.world.place.file(self.machines[machine].name)
    }

    fn archive(&self, machine: usize) -> Option<Archive> {
        let path = self.output(machine).join("archive/vendor");
        path.exists().then(|| open_merged(&path, &CancellationToken::new()).expect("an archive"))
    }

    fn remote(&self, machine: usize) -> RemoteStore {
        let output = self.output(machine);
        fs::create_dir_all(output.join("archive")).expect("a folder");
        RemoteStore::open(&self.store, &output.join("archive"), &output, &Control::default()).expect("a store")
    }

    /// Something happens to one of the machines.
    fn go_on(&mut self, step: usize) {
        let random = &mut self.world.random;
        let machine = random.below(self.machines.len());
        let event = if step == 0 { 0 } else { random.below(14) };
        let name = self.machines[machine].name;
        match event {
            0..8 => self.pull(machine, step),
            8 => {
                self.machines[machine].is_online ^= true;
                self.world.story.push_str(&format!("\n`{name}` is online: {}", self.machines[machine].is_online));
            }
            9 | 10 => self.receive(machine),
            11 => self.send(machine),
            12 => {
                self.world.story.push_str(&format!("\n`{name}` packs"));
                let archive = self.output(machine).join("archive");
                if archive.exists() {
                    compact(&archive, self.world.random.below(3), &Control::default()).expect("it packs");
                }
            }
            _ => {
                self.world.story.push_str(&format!("\n`{name}` removes packed runs"));
                let archive = self.output(machine).join("archive");
                if archive.exists() {
                    prune(&archive, PruneMode::Remove, &Control::default()).expect("it prunes");
                }
            }
        }
    }

    fn receive(&mut self, machine: usize) {
        self.world.story.push_str(&format!("\n`{}` receives", self.machines[machine].name));
        let remote = self.remote(machine);
        self.world.runtime.block_on(remote.pull_archive(None)).expect("it receives");
    }

    fn send(&mut self, machine: usize) {
        self.world.story.push_str(&format!("\n`{}` sends", self.machines[machine].name));
        let remote = self.remote(machine);
        self.world.runtime.block_on(remote.push()).expect("it sends");
    }

    fn pull(&mut self, machine: usize, step: usize) {
        let changes = if step == 0 { 0 } else { self.world.random.pick(&[0, 1, 1, 2, 2, 6]) };
        self.world.change(changes);
        let Machine { name, ahead, is_online } = self.machines[machine];
        self.world.story.push_str(&format!("\n  on `{name}`, online: {is_online}"));
        if is_online {
            self.receive(machine);
        }
        // A machine waits until its clock has passed all that it knows.
        let newest =
            self.archive(machine).and_then(|archive| archive.runs().iter().map(|run| run.seal().sealed_at).max());
        let mut now = newest
            .map_or(self.world.now + ahead, |newest| (newest + TimeDelta::microseconds(1)).max(self.world.now + ahead));
        while !self.instants.insert(now) {
            now += TimeDelta::microseconds(1);
        }
        let answers = self.world.answer();
        let store = is_online.then(|| self.store.clone());
        let options = Options { clock: Clock::Fixed(now), store, ..Options::new(self.output(machine)) };
        let outcome = self.world.runtime.block_on(run::run(self.world.plan(), options));
        let story = &self.world.story;
        assert!(outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::NotFound), "{story}: {outcome:?}");
        let archive = self.archive(machine).expect("it has run");
        let own = archive.runs().iter().find(|run| run.seal().sealed_at == now);
        assert!(own.is_some(), "{story}\n{outcome:?}");
        self.world.model.pulls.push(Pull { at: now.timestamp_micros(), answers });
    }

    /// All machines meet, in any order, and say the same.
    fn meet(mut self) {
        self.world.story.push_str("\nall meet");
        let mut order: Vec<usize> = (0..self.machines.len()).collect();
        let first = self.world.random.below(order.len());
        order.rotate_left(first);
        for &machine in order.iter().chain(&order) {
            self.receive(machine);
            self.send(machine);
        }
        let mut bytes = Vec::new();
        for &machine in &order {
            self.receive(machine);
            self.world.machine = self.machines[machine].name;
            let archive = self.archive(machine).expect("an archive");
            assert_eq!(archive.runs().len(), self.world.model.pulls.len(), "{}", self.world.story);
            self.world.verify();
            for pull in self.world.model.in_order() {
                let at = DateTime::from_timestamp_micros(pull.at).expect("an instant of our time");
                self.world.check_view(&archive, at - TimeDelta::microseconds(1));
                self.world.check_view(&archive, at);
            }
            bytes.push(merges(&self.output(machine).join("archive/vendor")));
        }
        for pair in bytes.windows(2) {
            let common = pair[0].keys().filter(|name| pair[1].contains_key(*name));
            common.for_each(|name| assert!(pair[0][name] == pair[1][name], "{}\n{name} differs", self.world.story));
        }
    }
}

/// The seals of the merges in an archive, which name the digests of all files.
fn merges(archive: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(archive).expect("an archive").map(|entry| entry.expect("an entry").path());
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let merges = entries.filter(|path| name(path).starts_with("merge="));
    merges.map(|path| (name(&path), fs::read(path.join("run.json")).expect("a seal"))).collect()
}

#[test]
fn histories_that_meet_say_what_one_machine_would_that_had_received_all_answers() {
    let place = Place::new();
    fs::create_dir(place.file("store")).expect("a folder");
    for seed in sequences(24) {
        let store = format!("file://{}/{seed}", place.file("store").display());
        let mut fleet = Fleet::of(seed, &store);
        let steps = fleet.world.random.between(4, 26);
        (0..steps).for_each(|step| fleet.go_on(step));
        fleet.meet();
    }
}
