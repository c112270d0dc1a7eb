//! The archive against a model: random histories of a vendor are pulled by the real program, and the state known at
//! every instant is compared with a replay of all answers.
//!
//! In some sequences, each pull is made by one of three machines that share an object store and occasionally lose their
//! disks.
//!
//! `BELLWETHER_MODEL_SEQUENCES=500` runs more sequences, `BELLWETHER_MODEL_SEQUENCES=37..38` repeats one.

mod histories;
mod naive;
mod news;
mod sql;
mod vendor;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bellwether::archive::{Archive, Seal};
use bellwether::definition::DefinitionFile;
use bellwether::error::{Error, ErrorKind};
use bellwether::harness::archive::{View, ViewOptions};
use bellwether::harness::tables::Table;
use bellwether::plan::{Plan, StoreUrl, Vintage};
use bellwether::run::{self, Control, Interrupted, Options, PruneMode, RemoteStore, WhenHeld, compact, prune};
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use parquet::arrow::ArrowWriter;
use tokio::runtime::Runtime;

use self::histories::History;
use self::naive::{CellState, Changed, Model};
use self::vendor::Vendor;
use crate::support::bucket::{Bucket, store_of_test};
use crate::support::program::Place;
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};

/// How long after its date a cell may be first seen and still be live, in days.
const LIVE_WITHIN: [(Vintage, i64); 2] = [(Vintage::Latest, 3), (Vintage::First, 30)];

/// The folders of the machines that share a store.
const MACHINES: [&str; 3] = ["output", "second", "third"];

/// The bodies of the service's answers; `None` is a 404.
type Bodies = Arc<Mutex<BTreeMap<String, Option<String>>>>;

/// A vendor, an archive of its answers, and the model of that archive.
struct World {
    place: Place,
    runtime: Runtime,
    service: Scripted,
    bodies: Bodies,
    random: Random,
    vendor: Vendor,
    model: Model,
    now: DateTime<Utc>,
    /// The store that the machines share, if any.
    store: Option<StoreUrl>,
    /// The folder of the machine that made the last pull.
    machine: &'static str,
    /// A log of events, for debugging failures.
    story: String,
}

impl World {
    fn new(seed: u64, is_sliding: bool) -> Self {
        let mut random = Random::of(seed);
        let bodies = Bodies::default();
        let said = Arc::clone(&bodies);
        let service = Scripted::start(move |request| {
            let target = request.target.split("api_key=").next().unwrap_or_default().trim_end_matches(['?', '&']);
            match said.lock().expect("no test panicked").get(target) {
                Some(Some(body)) => json("200 OK", body),
                Some(None) => json("404 Not Found", "{}"),
                None => json("400 Bad Request", "{}"),
            }
        });
        let place = Place::new();
        fs::write(place.file("key"), "demo").expect("a key");
        Self {
            place,
            runtime: Runtime::new().expect("a runtime"),
            service,
            bodies,
            vendor: Vendor::of(random.between(1, 3), is_sliding, &mut random),
            random,
            model: Model::default(),
            // A Saturday, the day after the last initial date.
            now: DateTime::from_timestamp(20_778 * 86_400, 0).expect("an instant of our time"),
            store: None,
            machine: "output",
            story: format!("sequence {seed}"),
        }
    }

    /// A world with several machines that share a store.
    fn on_store(seed: u64, store: &str) -> Self {
        Self { store: Some(store.parse().expect("the address of a store")), ..Self::new(seed, true) }
    }

    /// Switches to one of the machines, which may have lost its disk.
    fn change_machine(&mut self) {
        self.machine = self.random.pick(&MACHINES);
        self.story.push_str(&format!("\n  on `{}`", self.machine));
        if self.random.between(0, 4) == 0 {
            self.story.push_str(", which has lost its disk");
            let _ = fs::remove_dir_all(self.output());
        }
    }

    fn output(&self) -> PathBuf {
        self.place.file(self.machine)
    }

    /// The definition; its last section is `[sentiment]`.
    fn definition(&self) -> String {
        format!(
            "[source]\n{}api_key_file = \"{}\"\n[signals]\nsectors = [\"energy\"]\nperiods = [\"15d\", \"5d\"]\n\
             [checks]\nmissing = \"warn\"\nuniverse = 1.0\n[sentiment]\nsummary = true\nhistorical = true\n",
            self.service.source(),
            self.place.file("key").display()
        )
    }

    fn plan(&self) -> Plan {
        let rest = "[join]\nwindows = [\"1d\"]\nstats = [\"count\"]\n[output]\nformat = \"csv\"\n";
        let text = self.definition() + rest;
        Plan::of(DefinitionFile::new(PathBuf::from("it.toml"), text).expect("a definition")).expect("a plan")
    }

    fn archive(&self) -> Archive {
        let path = self.output().join("archive");
        fs::create_dir_all(&path).expect("a folder");
        Archive::open(&path).expect("an archive")
    }

    /// Advances the vendor and the clock.
    fn change(&mut self, changes: usize) {
        let steps = [
            TimeDelta::seconds(1),
            TimeDelta::days(1),
            TimeDelta::days(1),
            TimeDelta::minutes(1444),
            TimeDelta::days(40),
        ];
        self.now += self.random.pick(&steps);
        self.story.push_str(&format!("\npull {} at {}:", self.model.pulls.len(), self.now));
        let mut changed = if changes > 0 { self.vendor.go_on(&mut self.random) } else { Vec::new() };
        changed.extend((0..changes).map(|_| self.vendor.change(&mut self.random)));
        changed.iter().for_each(|changed| self.story.push_str(&format!("\n  {changed}")));
    }

    /// Pulls the current answers. Returns the outcome of the run, and the changes that the archive recorded.
    fn pull(&mut self) -> (Result<run::Summary, Error>, Seal) {
        let answers = self.vendor.answers(&mut self.random);
        *self.bodies.lock().expect("no test panicked") =
            answers.iter().map(|answer| (answer.target.clone(), answer.body.clone())).collect();
        self.model.pulls.push((self.now.timestamp_micros(), answers));
        if self.store.is_some() {
            self.change_machine();
        }
        let options = Options {
            data: self.output(),
            archive: self.output().join("archive"),
            clock: Clock::Fixed(self.now),
            interrupted: Interrupted::Resume,
            when_held: WhenHeld::Fail,
            store: self.store.clone(),
            control: Control::default(),
        };
        let outcome = self.runtime.block_on(run::run(self.plan(), options));
        let archive = self.archive();
        assert_eq!(archive.runs().len(), self.model.pulls.len(), "{}: {outcome:?}", self.story);
        let seal = archive.runs().last().expect("a run").seal().clone();
        assert_eq!(seal.sealed_at, self.now, "{}", self.story);
        (outcome, seal)
    }

    #[track_caller]
    fn check_changes(&self, seal: &Seal) {
        let expected = self.model.replayed(i64::MAX).changed;
        let counts = seal.changes;
        let message = Changed {
            added: counts.added,
            revised: counts.revised,
            withdrawn: counts.withdrawn,
            listed: counts.listed,
            delisted: counts.delisted,
        };
        assert_eq!(message, expected, "{}", self.story);
        let rows: u64 = Table::ALL.iter().map(|table| seal.rows(&table.file())).sum();
        assert_eq!(rows, expected.added + expected.revised + expected.withdrawn, "{}", self.story);
        assert_eq!(seal.rows("listings.parquet"), expected.listed + expected.delisted, "{}", self.story);
    }

    /// Compares two representations of the archive.
    #[track_caller]
    fn verify(&self) {
        let (archive, output) = (self.archive().path().to_owned(), self.output());
        let faults = run::verify(&archive, &output, &Control::default()).expect("it can be read").faults;
        assert!(faults.is_empty(), "{}\n{faults:#?}", self.story);
    }

    /// Verifies the contents of the store against its records.
    #[track_caller]
    fn check_store(&self) {
        let url = self.store.as_ref().expect("there is a store");
        let (archive, output) = (self.output().join("archive"), self.output());
        let store = RemoteStore::open(url, &archive, &output, &Control::default()).expect("a store");
        let verified = self.runtime.block_on(store.verify()).expect("it can be read");
        assert!(verified.faults.is_empty() && verified.unfinished.is_empty(), "{}\n{verified:#?}", self.story);
        let status = self.runtime.block_on(store.status()).expect("it can be read");
        assert_eq!(status.runs, self.model.pulls.len(), "{}\n{status:#?}", self.story);
    }

    /// Compares the archive as of an instant with the model.
    #[track_caller]
    fn check_view(&self, archive: &Archive, as_of: DateTime<Utc>) {
        let replayed = self.model.replayed(as_of.timestamp_micros());
        let view = View::of(archive.clone(), as_of);
        for (table, (vintage, days)) in
            Table::ALL.into_iter().flat_map(|table| LIVE_WITHIN.map(|options| (table, options)))
        {
            let live_within = TimeDelta::days(days);
            let cells = view.cells(table, ViewOptions { vintage, live_within }).expect("a view");
            let mut message: Vec<CellState> = cells.flat_map(|batch| shown(table, &batch.expect("cells"))).collect();
            message.sort();
            let expected = replayed.shown(table, vintage == Vintage::Latest, days * 86_400_000_000);
            let missing: Vec<&CellState> = expected.iter().filter(|cell| !message.contains(cell)).collect();
            let wrong: Vec<&CellState> = message.iter().filter(|cell| !expected.contains(cell)).collect();
            assert!(
                message == expected,
                "{}\n{table:?} as of {as_of}, {vintage:?}\nexpected {missing:#?}\nfound {wrong:#?}",
                self.story
            );
        }
    }

    /// Pulls a few times and checks everything.
    fn play(&mut self) {
        let pulls = self.random.between(1, 10);
        for pull in 0..pulls {
            self.go_on(pull);
            if pull == 0 {
                self.check_view(&self.archive(), self.now);
            }
        }
        self.check_views();
    }

    /// Makes changes, unless this is the first pull, and pulls.
    fn go_on(&mut self, pull: usize) {
        let changes = if pull == 0 { 0 } else { self.random.pick(&[0, 1, 1, 2, 2, 6]) };
        self.change(changes);
        let (outcome, seal) = self.pull();
        assert!(
            outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::NotFound),
            "{}: {outcome:?}",
            self.story
        );
        self.check_changes(&seal);
    }

    /// Compares the archive with the model as of every instant.
    fn check_views(&self) {
        let archive = self.archive();
        for (at, _) in &self.model.pulls {
            let at = DateTime::from_timestamp_micros(*at).expect("an instant of our time");
            self.check_view(&archive, at - TimeDelta::microseconds(1));
            self.check_view(&archive, at);
        }
        self.check_view(&archive, self.now + TimeDelta::days(400));
    }
}

/// The columns that identify cells, and their value columns.
fn columns(table: Table) -> (&'static [&'static str], &'static [&'static str], &'static [&'static str]) {
    let of_ticker = &["ticker", "source"];
    match table {
        Table::Signals => {
            (&["ticker", "period", "regime", "source"], &["date"], &["utc_offset_minutes", "signal", "confidence"])
        }
        Table::Articles => {
            (of_ticker, &["date", "title", "link", "copy"], &["place", "score", "utc_offset_minutes", "repeats"])
        }
        Table::Summaries => {
            let values = &[
                "debtor",
                "low_date",
                "low_score",
                "low_link",
                "low_summary",
                "high_date",
                "high_score",
                "high_link",
                "high_summary",
                "avg_date",
                "avg_score",
                "avg_link",
                "avg_summary",
            ];
            (of_ticker, &[], values)
        }
        Table::SentimentHistory => (of_ticker, &["record", "copy"], &["place"]),
    }
}

fn shown(table: Table, cells: &RecordBatch) -> Vec<CellState> {
    let (key, cell, value) = columns(table);
    let texts = |names: &[&str]| -> Vec<Vec<String>> { names.iter().map(|name| texts(cells, name)).collect() };
    let (key, cell, value) = (texts(key), texts(cell), texts(value));
    let known = texts(&["first_observed_at", "observed_at", "revisions", "backfilled"]);
    let number = |column: usize, row: usize| known[column][row].parse().expect("a number");
    let row = |row: usize| {
        let of_row = |columns: &[Vec<String>]| columns.iter().map(|column| column[row].clone()).collect();
        CellState {
            key: of_row(&key),
            cell: of_row(&cell),
            value: of_row(&value),
            first_observed_at: number(0, row),
            observed_at: number(1, row),
            revisions: number(2, row),
            backfilled: known[3][row].parse().ok(),
        }
    };
    (0..cells.num_rows()).map(row).collect()
}

/// A column as text; instants and dates as microseconds.
fn texts(cells: &RecordBatch, name: &str) -> Vec<String> {
    let column = cells.column_by_name(name).unwrap_or_else(|| panic!("no column `{name}`"));
    let column = match column.data_type() {
        DataType::Timestamp(..) => cast(column, &DataType::Int64).expect("it is a number"),
        _ => Arc::clone(column),
    };
    let texts = cast(&column, &DataType::Utf8).expect("every type has a text");
    texts.as_string::<i32>().iter().map(|text| text.unwrap_or("null").to_owned()).collect()
}

/// The number of runs in each pack of an archive.
fn packs(archive: &Path) -> Vec<usize> {
    let entries = fs::read_dir(archive).expect("an archive").map(|entry| entry.expect("an entry").path());
    let packs = entries.filter(|path| path.file_name().expect("a name").to_string_lossy().starts_with("pack="));
    let seal = |path: PathBuf| fs::read(path.join("run.json")).expect("a seal");
    let members = |text: Vec<u8>| serde_json::from_slice::<Seal>(&text).expect("a seal").members.len();
    packs.map(seal).map(members).collect()
}

fn sequences(usually: u64) -> Range<u64> {
    let Ok(text) = std::env::var("BELLWETHER_MODEL_SEQUENCES") else { return 0..usually };
    let number =
        |text: &str| text.parse().expect("BELLWETHER_MODEL_SEQUENCES is a number, or two with `..` between them");
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(&text),
    }
}

#[test]
fn the_known_state_at_every_instant_matches_a_replay_of_all_answers() {
    let seeds = Mutex::new(sequences(24));
    let play = || {
        // Each sequence is taken once, until the range ends.
        while let Some(seed) = { seeds.lock().expect("no test panicked").next() } {
            World::new(seed, true).play();
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(play))));
}

/// Runs some sequences on a store, and verifies it.
fn play_on(store: &str, sequences: Range<u64>) {
    for seed in sequences {
        let store = format!("{store}/{seed}");
        let mut world = World::on_store(seed, &store);
        world.play();
        world.check_store();
    }
}

#[test]
fn the_known_state_does_not_depend_on_which_machines_pulled_or_lost_their_disks() {
    let place = Place::new();
    let store = place.file("store");
    fs::create_dir(&store).expect("a folder");
    play_on(&format!("file://{}", store.display()), sequences(12));
}

/// Each of three machines packs runs of all three, and the packs are sent to the store.
#[test]
fn the_known_state_does_not_depend_on_which_machines_packed() {
    let place = Place::new();
    for seed in sequences(1) {
        let mut world = World::on_store(seed, &format!("file://{}", place.file("store").display()));
        let pulls = world.random.between(67, 80);
        for pull in 0..pulls {
            world.go_on(pull);
            if world.random.between(0, 9) == 0 {
                let archive = world.output().join("archive");
                compact(&archive, world.random.between(0, 9), &Control::default()).expect("it packs");
                prune(&archive, PruneMode::Remove, &Control::default()).expect("it prunes");
            }
        }
        for machine in MACHINES {
            let _ = fs::remove_dir_all(world.place.file(machine));
        }
        world.go_on(pulls);
        let entries = fs::read_dir(world.output().join("archive")).expect("an archive");
        let folders =
            entries.filter(|entry| entry.as_ref().expect("an entry").path().join("run.json").exists()).count();
        assert!(folders < 40, "an empty disk gets packs, not {folders} folders of {pulls} runs: {}", world.story);
        world.check_views();
        world.verify();
        world.check_store();
    }
}

/// Started by [`the_known_state_on_s3_matches_a_replay`], with the address and keys of a store.
#[test]
#[ignore = "it needs a store"]
fn sequences_on_the_store_named_in_the_environment() {
    play_on(&store_of_test(), sequences(6));
}

#[test]
fn the_known_state_on_s3_matches_a_replay() {
    let bucket = Bucket::start();
    bucket.run_test("model::sequences_on_the_store_named_in_the_environment", "model");
}

/// Small runs are packed automatically, packs are packed again, and packed runs may be removed.
#[test]
fn the_known_state_does_not_depend_on_the_number_or_fate_of_runs() {
    let play = |seed: u64| {
        let mut world = World::new(seed, true);
        let pulls = world.random.between(67, 80);
        (0..pulls).for_each(|pull| world.go_on(pull));
        let archive = world.place.file("output/archive");
        assert!(packs(&archive).len() > 2, "{}", world.story);
        world.check_views();
        world.verify();
        let keep = world.random.between(0, pulls);
        world.story.push_str(&format!("\npacked but {keep}"));
        compact(&archive, keep, &Control::default()).expect("it packs");
        world.check_views();
        world.verify();
        prune(&archive, PruneMode::Remove, &Control::default()).expect("it prunes");
        world.check_views();
        world.verify();
        (pulls..pulls + 3).for_each(|pull| world.go_on(pull));
        world.check_views();
        world.verify();
    };
    thread::scope(|scope| sequences(2).for_each(|seed| drop(scope.spawn(move || play(seed)))));
}

#[test]
fn a_pull_that_repeats_the_last_one_writes_no_rows() {
    for seed in sequences(3) {
        let mut world = World::new(seed, false);
        for pull in 0..4 {
            world.change(pull * 3);
            let (_, seal) = world.pull();
            world.check_changes(&seal);
        }
        world.change(0);
        let (outcome, seal) = world.pull();
        let is_taken_over = match &outcome {
            Ok(summary) => summary.notes.iter().any(|note| note.starts_with("nothing has changed since version ")),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        assert!(is_taken_over, "{outcome:?}");
        world.check_changes(&seal);
        let counts = seal.changes;
        assert_eq!((counts.added, counts.revised, counts.withdrawn), (0, 0, 0), "{}", world.story);
        world.check_view(&world.archive(), world.now);
    }
}

/// The documented query, run by DuckDB on the folder, before and after packed runs are removed.
#[test]
fn the_documented_query_alone_gives_the_known_state() {
    let documentation = include_str!("../../../src/archive/mod.rs");
    let query = documentation.split("//! ```sql\n").nth(1).and_then(|rest| rest.split("//! ```").next());
    let query = query.expect("a query").replace("//! ", "");
    let mut world = World::new(7, true);
    let check = |world: &World| {
        let pulls = &world.model.pulls;
        for at in [pulls.len() / 3, pulls.len() - 1] {
            let as_of = DateTime::from_timestamp_micros(pulls[at].0).expect("an instant of our time");
            let known = world.place.file(&format!("known-{at}"));
            fs::create_dir_all(&known).expect("a folder");
            for table in Table::ALL {
                write_known(&world.archive(), table, as_of, &known.join(table.file()));
            }
            let archive = world.place.file("output/archive");
            let as_of = as_of.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            let known = known.to_str().expect("a path");
            python::check("check_archive.py", [archive.to_str().expect("a path"), &query, &as_of, known]);
        }
    };
    (0..40).for_each(|pull| world.go_on(pull));
    let archive = world.place.file("output/archive");
    assert!(!packs(&archive).is_empty(), "{}", world.story);
    check(&world);
    compact(&archive, 3, &Control::default()).expect("it packs");
    check(&world);
    prune(&archive, PruneMode::Remove, &Control::default()).expect("it prunes");
    check(&world);
}

/// The known state of a table, in its value columns.
fn write_known(archive: &Archive, table: Table, as_of: DateTime<Utc>, path: &Path) {
    let view = View::of(archive.clone(), as_of);
    let options = ViewOptions { vintage: Vintage::Latest, live_within: TimeDelta::days(3) };
    let wanted = |name: &str| !["change", "observed_at"].contains(&name);
    let names: Vec<String> =
        table.schema().fields().iter().map(|field| field.name().clone()).filter(|name| wanted(name)).collect();
    let schema = table.known_schema();
    let places: Vec<usize> = names
        .iter()
        .map(|name| schema.index_of(name).expect("a column"))
        .chain([schema.index_of("observed_at").expect("a column")])
        .collect();
    let schema = Arc::new(schema.project(&places).expect("columns"));
    let file = fs::File::create(path).expect("a file");
    let mut out = ArrowWriter::try_new(file, schema, None).expect("a writer");
    for cells in view.cells(table, options).expect("a view") {
        out.write(&cells.expect("cells").project(&places).expect("columns")).expect("rows");
    }
    out.close().expect("a file");
}

/// A regression: when their neighbours returned, the withdrawal and the return of some cells were lost.
#[test]
fn a_cell_withdrawn_with_its_quarter_is_known_again_when_it_returns() {
    let mut world = World::new(0, true);
    let pulls: [&[(i64, f64)]; 4] = [
        &[(20_060, 0.5), (20_100, 0.5), (20_110, 0.5), (20_190, 0.5)],
        &[(20_060, 0.5), (20_190, 0.5)],
        &[(20_060, 0.5), (20_100, 0.5), (20_190, 0.5)],
        &[(20_060, 0.5), (20_100, 0.75), (20_110, 0.5), (20_190, 0.75)],
    ];
    for days in pulls {
        world.change(0);
        world.vendor.histories.values_mut().for_each(|history| *history = History::of(days));
        let (_, seal) = world.pull();
        world.check_changes(&seal);
        world.check_view(&world.archive(), world.now);
    }
}
