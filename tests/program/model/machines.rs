//! Several machines, each with a clock of its own, that ask two services, are offline for any time and meet in any order:
//! their merged archives give what one machine would that had received all answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bellwether::archive::Archive;
use bellwether::archive::open_merged;
use bellwether::error::{Error, ErrorKind};
use bellwether::harness::{pack, prune_packed};
use bellwether::plan::{AdHoc, PinnedVersion, Plan, StoreUrl};
use bellwether::run::{self, BuildOptions, CancellationToken, Control, Options, PruneMode, RemoteStore, StoreAccess};
use bellwether::sql::Dialect;
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::runtime::Runtime;

use super::naive::Pull;
use super::sequences;
use super::simulation::Simulation;
use super::sql::Cases;
use super::world::{MACHINES, World};
use crate::support::program::Place;
use crate::support::random::Random;

/// A machine with its own disk and clock.
pub(super) struct Machine {
    name: &'static str,
    /// How far its clock is ahead.
    ahead: TimeDelta,
    is_online: bool,
    /// Whether the store has acknowledged everything that it has.
    has_sent_all: bool,
}

/// The worlds of two services, whose machines need not meet.
pub(super) struct Fleet {
    place: Arc<Place>,
    pub(super) random: Random,
    services: [World; 2],
    store: StoreUrl,
    /// A store that fails, in place of the one at the address.
    pub(super) simulation: Option<Simulation>,
    machines: Vec<Machine>,
    /// The instants at which runs were made; two machines with the same one would be one in a million.
    instants: BTreeSet<DateTime<Utc>>,
    /// What was published, to be rebuilt after the machines met.
    published: Vec<Published>,
    pub(super) story: String,
    /// The folders that were pruned from the store.
    pub(super) pruned: usize,
}

/// A version, where it was published, and the plan of its definition then.
struct Published {
    service: usize,
    machine: usize,
    version: PinnedVersion,
    plan: Plan,
    rows: Vec<u8>,
}

/// Takes the next instant that is this far from those that are taken.
fn take_instant(taken: &mut BTreeSet<DateTime<Utc>>, mut instant: DateTime<Utc>, apart: TimeDelta) -> DateTime<Utc> {
    while taken.range(instant - apart..instant + apart).any(|other| (*other - instant).abs() < apart) {
        instant += apart;
    }
    taken.insert(instant);
    instant
}

/// Builds a dataset on a machine; `None` if nothing was known.
fn build(plan: Plan, output: &Path, ad_hoc: AdHoc) -> Option<Vec<u8>> {
    let options = BuildOptions { ad_hoc, ..BuildOptions::new(output.join("archive")) };
    let runtime = Runtime::new().expect("a runtime");
    match runtime.block_on(run::build(plan.clone(), output.to_owned(), options)) {
        Ok(built) => Some(rows_of(&built.dataset, &plan.name)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => None,
            _ => panic!("{error:?}"),
        },
    }
}

fn rows_of(dataset: &Path, name: &str) -> Vec<u8> {
    fs::read(dataset.join(name).with_extension("csv")).expect("rows")
}

impl Fleet {
    pub(super) fn of(seed: u64, store: &str) -> Self {
        let place = Arc::new(Place::new());
        let mut random = Random::of(seed);
        let machines = MACHINES.map(|name| Machine {
            name,
            ahead: TimeDelta::seconds(random.pick(&[0, 0, 2, -3, 90_000])),
            is_online: random.one_in(2),
            has_sent_all: false,
        });
        let service = |name, seed| {
            let mut world = World::at(Arc::clone(&place), name, seed, true);
            world.vendor.has_steady_offsets = true;
            world
        };
        Self {
            services: [service("vendor", seed), service("other", seed + 1_000_000)],
            place,
            random,
            store: store.parse().expect("the address of a store"),
            simulation: None,
            machines: machines.into(),
            instants: BTreeSet::new(),
            published: Vec::new(),
            story: format!("sequence {seed}"),
            pruned: 0,
        }
    }

    fn output(&self, machine: usize) -> PathBuf {
        self.place.file(self.machines[machine].name)
    }

    fn archive(&self, service: usize, machine: usize) -> Option<Archive> {
        let path = self.output(machine).join("archive").join(self.services[service].name);
        path.exists().then(|| open_merged(&path, &CancellationToken::new()).expect("an archive"))
    }

    fn remote(&self, machine: usize) -> RemoteStore {
        let output = self.output(machine);
        fs::create_dir_all(output.join("archive")).expect("a folder");
        if let Some(Simulation { store, .. }) = &self.simulation {
            return RemoteStore::of_client(store.client(), &self.store, &output, &Control::default());
        }
        RemoteStore::open(&self.store, StoreAccess::Write, &output.join("archive"), &output, &Control::default())
            .expect("a store")
    }

    fn tell(&mut self, machine: usize, event: &str) {
        self.story.push_str(&format!("\n`{}` {event}", self.machines[machine].name));
    }

    /// Things happen to the machines, and then they meet.
    fn play(&mut self, steps: usize) {
        (0..steps).for_each(|step| self.go_on(step));
        self.meet();
    }

    /// Something happens to one of the machines.
    pub(super) fn go_on(&mut self, step: usize) {
        let machine = self.random.below(self.machines.len());
        let event = if step == 0 { 0 } else { self.random.below(14) };
        match event {
            0..8 => self.pull(machine),
            8 => {
                self.machines[machine].is_online ^= true;
                self.tell(machine, "goes online or offline");
            }
            9 | 10 => self.receive(machine),
            11 => self.send(machine),
            12 => {
                self.tell(machine, "packs");
                let (archive, keep) = (self.output(machine).join("archive"), self.random.below(3));
                if archive.exists() {
                    pack(&archive, keep, &CancellationToken::new()).expect("it packs");
                }
            }
            _ => {
                self.tell(machine, "removes packed runs");
                let archive = self.output(machine).join("archive");
                if archive.exists() {
                    prune_packed(&archive).expect("it prunes");
                }
            }
        }
    }

    fn receive(&mut self, machine: usize) {
        self.tell(machine, "receives");
        let remote = self.remote(machine);
        let received = self.runtime().block_on(remote.pull_archive(None));
        self.check_outcome(machine, received.err());
    }

    pub(super) fn send(&mut self, machine: usize) {
        self.tell(machine, "sends");
        let remote = self.remote(machine);
        let sent = self.runtime().block_on(remote.push());
        self.machines[machine].has_sent_all = sent.is_ok();
        self.check_outcome(machine, sent.err());
    }

    /// A machine packs and sends everything, and prunes the store four days later, but for one version of each dataset.
    pub(super) fn prune_store(&mut self, machine: usize) {
        let archive = self.output(machine).join("archive");
        if archive.exists() {
            pack(&archive, 0, &CancellationToken::new()).expect("it packs");
            self.send(machine);
        }
        self.pass_four_days();
        self.tell(machine, "prunes the store");
        let remote = self.remote(machine);
        let keep = self.services.iter().map(|world| (world.name.to_owned(), 1)).collect();
        let pruned = self.runtime().block_on(remote.prune(&keep, PruneMode::Remove));
        let count = pruned.as_ref().map_or(0, |pruned| pruned.removed.len());
        self.pruned += count;
        self.check_outcome(machine, pruned.err());
    }

    /// From then on, what was interrupted counts as killed.
    pub(super) fn pass_four_days(&mut self) {
        // A run takes up to 25 hours of the first two.
        let later = self.services.iter().map(|world| world.now).max().expect("a service") + TimeDelta::days(4);
        self.services.iter_mut().for_each(|world| world.now = later);
        if let Some(Simulation { store, .. }) = &self.simulation {
            store.set_now(later.timestamp_micros());
        }
    }

    /// Two machines send at the same time.
    pub(super) fn send_both(&mut self, [one, other]: [usize; 2]) {
        self.tell(one, "sends, and at the same time");
        self.tell(other, "sends");
        let (remote, another) = (self.remote(one), self.remote(other));
        let (sent, also) = self.runtime().block_on(async { tokio::join!(remote.push(), another.push()) });
        for (machine, sent) in [(one, sent), (other, also)] {
            self.machines[machine].has_sent_all = sent.is_ok();
            self.check_outcome(machine, sent.err());
        }
    }

    /// A machine loses its disk, if the store has acknowledged all that was on it.
    pub(super) fn lose_disk(&mut self, machine: usize) {
        if self.machines[machine].has_sent_all {
            self.tell(machine, "loses its disk");
            self.machines[machine].has_sent_all = false;
            fs::remove_dir_all(self.output(machine)).expect("it was there");
            // Versions are rebuilt where they were published.
            self.published.retain(|published| published.machine != machine);
        }
    }

    fn runtime(&self) -> &Runtime {
        self.simulation.as_ref().map_or(&self.services[0].runtime, |simulation| &simulation.runtime)
    }

    /// Only a store that fails may make a machine fail, and for now.
    fn check_outcome(&mut self, machine: usize, error: Option<Error>) {
        let is_failing = self.simulation.as_ref().is_some_and(|simulation| !simulation.is_calm);
        if let Some(error) = &error {
            assert!(is_failing && error.kind() == ErrorKind::Temporary, "{}\n{error:?}", self.story);
            self.tell(machine, "has failed for now");
        }
        if let Some(simulation) = &self.simulation {
            simulation.check_whole(&self.story);
            let (archive, output) = (self.output(machine).join("archive"), self.output(machine));
            let faults = run::verify(&archive, &output, &Control::default()).map(|verified| verified.faults);
            let is_whole = match &faults {
                Ok(faults) => faults.is_empty(),
                Err(error) => error.kind() == ErrorKind::NotFound,
            };
            assert!(is_whole, "{}\n{faults:#?}", self.story);
        }
    }

    /// Asks one of the services, which has changed since.
    fn pull(&mut self, machine: usize) {
        let Machine { ahead, is_online, .. } = self.machines[machine];
        self.machines[machine].has_sent_all = false;
        if is_online {
            self.receive(machine);
        }
        let (output, service) = (self.output(machine), self.random.below(2));
        // A machine waits until its clock has passed all that it knows.
        let archive = self.archive(service, machine);
        let newest = archive.and_then(|archive| archive.runs().iter().map(|run| run.seal().sealed_at).max());
        let latest = self.services.iter().map(|world| world.now).max().expect("a service");
        let world = &mut self.services[service];
        world.now = latest;
        let is_first = world.model.pulls.is_empty();
        world.change(if is_first { 0 } else { self.random.pick(&[0, 1, 1, 2, 2, 6]) });
        let began =
            newest.map_or(world.now + ahead, |newest| (newest + TimeDelta::microseconds(1)).max(world.now + ahead));
        let apart = self.simulation.as_ref().map_or(TimeDelta::microseconds(1), |_| TimeDelta::seconds(2));
        let began = take_instant(&mut self.instants, began, apart);
        let takes = self.random.pick(&[0, 0, 1, 300, 90_000]);
        let ends = match takes {
            0 => began,
            _ => take_instant(&mut self.instants, began + TimeDelta::seconds(takes), apart),
        };
        let answers = world.answer();
        self.story.push_str(&format!(
            "\n{}: {} from {began} to {ends}, online: {is_online}",
            self.machines[machine].name, world.name
        ));
        let plan = world.plan();
        // While the run is under way, a dataset is built as of the instant before it ends.
        let ad_hoc = AdHoc { as_of: Some(ends - TimeDelta::microseconds(1)), ..AdHoc::default() };
        let during = Arc::new(Mutex::new(None));
        *world.on_request.lock().expect("no test panicked") = Some(Box::new({
            let (plan, output, ad_hoc, during) = (plan.clone(), output.clone(), ad_hoc.clone(), Arc::clone(&during));
            move || *during.lock().expect("no test panicked") = Some(build(plan, &output, ad_hoc))
        }));
        // News is answered at the end.
        let clock: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(began.timestamp_micros())));
        *world.on_news.lock().expect("no test panicked") =
            Some(Box::new(move || clock.store(ends.timestamp_micros(), Ordering::SeqCst)));
        if let Some(simulation) = &self.simulation {
            simulation.store.set_now(ends.timestamp_micros());
        }
        let store = (is_online && self.simulation.is_none()).then(|| self.store.clone());
        let options = Options { clock: Clock::Set(clock), store, ..Options::new(&output) };
        let outcome = world.runtime.block_on(run::run(plan.clone(), options));
        let at = clock.load(Ordering::SeqCst);
        world.model.pulls.push(Pull { began: began.timestamp_micros(), at, answers });
        assert!(
            outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::NotFound),
            "{}\n{}: {outcome:?}",
            self.story,
            world.story
        );
        let during = during.lock().expect("no test panicked").take();
        let during = during.unwrap_or_else(|| panic!("{}\n{outcome:?}: nothing was asked", self.story));
        if at == ends.timestamp_micros() {
            let after = build(plan.clone(), &output, ad_hoc);
            assert!(during == after, "{}\n{}: built during a run", self.story, world.story);
        }
        let archive = self.archive(service, machine).expect("it has run");
        let own = archive.runs().iter().find(|run| run.seal().sealed_at.timestamp_micros() == at);
        assert!(own.is_some(), "{}\n{outcome:?}", self.story);
        if let Ok(summary) = outcome {
            let rows = rows_of(&summary.dataset, &plan.name);
            let name = summary.dataset.file_name().expect("a name").to_string_lossy().into_owned();
            let runs = archive.runs().iter().map(|run| run.seal().run.clone()).collect();
            let version = PinnedVersion { name, runs };
            self.published.push(Published { service, machine, version, plan, rows });
        }
    }

    /// All machines meet, in any order, and say the same.
    pub(super) fn meet(&mut self) {
        self.story.push_str("\nall meet");
        let mut order: Vec<usize> = (0..self.machines.len()).collect();
        let first = self.random.below(order.len());
        order.rotate_left(first);
        for &machine in order.iter().chain(&order) {
            self.receive(machine);
            self.send(machine);
        }
        let mut bytes = Vec::new();
        for &machine in &order {
            self.receive(machine);
            for service in 0..self.services.len() {
                self.check(service, machine);
            }
            bytes.push(merges(&self.output(machine).join("archive")));
        }
        for pair in bytes.windows(2) {
            let common = pair[0].keys().filter(|name| pair[1].contains_key(*name));
            common.for_each(|name| assert!(pair[0][name] == pair[1][name], "{}\n{name:?} differs", self.story));
        }
        for Published { service, machine, version, plan, rows } in &self.published {
            let ad_hoc = AdHoc { version: Some(version.clone()), ..AdHoc::default() };
            let rebuilt = build(plan.clone(), &self.output(*machine), ad_hoc);
            let world = &self.services[*service].story;
            let texts = [rebuilt.as_ref(), Some(rows)].map(|rows| rows.map(|rows| String::from_utf8_lossy(rows)));
            let [rebuilt, published] = texts;
            assert!(
                rebuilt == published,
                "{}\n{world}\nversion {version:?} differs\npublished {published:?}\nrebuilt {rebuilt:?}",
                self.story
            );
        }
    }

    /// Compares what a machine knows of a service at every instant with one that had received all of its answers.
    fn check(&mut self, service: usize, machine: usize) {
        let archive = self.archive(service, machine);
        let world = &mut self.services[service];
        world.machine = self.machines[machine].name;
        world.story = format!("{}\n{}", self.story, world.story);
        let Some(archive) = archive else {
            assert!(world.model.pulls.is_empty(), "{}", world.story);
            return;
        };
        assert_eq!(archive.runs().len(), world.model.pulls.len(), "{}", world.story);
        world.verify();
        for pull in world.model.in_order() {
            let at = DateTime::from_timestamp_micros(pull.at).expect("an instant of our time");
            world.check_view(&archive, at - TimeDelta::microseconds(1));
            world.check_view(&archive, at);
        }
    }
}

/// The seals of the merges in an archive, which name the digests of all files, by service and name.
fn merges(archive: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut merges = BTreeMap::new();
    for service in fs::read_dir(archive).expect("an archive").map(|entry| entry.expect("an entry").path()) {
        for folder in fs::read_dir(&service).expect("a service").map(|entry| entry.expect("an entry").path()) {
            if folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("merge=")) {
                let name = folder.strip_prefix(archive).expect("it is in the archive").to_owned();
                merges.insert(name, fs::read(folder.join("run.json")).expect("a seal"));
            }
        }
    }
    merges
}

#[test]
fn histories_that_meet_say_what_one_machine_would_that_had_received_all_answers() {
    let store = Place::new();
    for seed in sequences(6) {
        let mut fleet = Fleet::of(seed, &format!("file://{}/{seed}", store.path().display()));
        let steps = fleet.random.between(4, 26);
        fleet.play(steps);
    }
}

/// A printed statement and a build take the same observation where machines saw the same.
#[test]
fn a_printed_statement_matches_a_build_of_histories_that_met() {
    let store = Place::new();
    for seed in sequences(1) {
        let mut fleet = Fleet::of(seed, &format!("file://{}/{seed}", store.path().display()));
        fleet.play(20);
        let Fleet { services, published, .. } = &mut fleet;
        for (service, world) in services.iter_mut().enumerate() {
            let last = published.iter().rfind(|published| published.service == service);
            let rows = last.map_or(0, |last| last.rows.split(|byte| *byte == b'\n').count());
            if rows > 5 {
                Cases::check(world, 10, Dialect::DuckDb);
            }
        }
    }
}
