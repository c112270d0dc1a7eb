//! The archive against a model: random histories of a vendor are pulled by the real program, and the state known at
//! every instant is compared with a replay of all answers.
//!
//! In some sequences, each pull is made by one of three machines that share an object store and occasionally lose their
//! disks.
//!
//! `BELLWETHER_MODEL_SEQUENCES=500` runs more sequences, `BELLWETHER_MODEL_SEQUENCES=37..38` repeats one.

mod histories;
mod machines;
mod naive;
mod news;
mod simulation;
mod sql;
mod vendor;
mod world;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use bellwether::archive::View;
use bellwether::archive::{Archive, Seal};
use bellwether::error::ErrorKind;
use bellwether::harness::{pack, prune_packed};
use bellwether::plan::Vintage;
use bellwether::run::CancellationToken;
use bellwether::tables::Table;
use chrono::{DateTime, Utc};
use parquet::arrow::ArrowWriter;

use self::histories::History;
use self::vendor::Form;
use self::world::{MACHINES, World};
use crate::support::bucket::{Bucket, store_of_test};
use crate::support::program::Place;
use crate::support::python;
use crate::support::tools::{PYTHON, needs};

/// The number of runs in each pack of an archive.
fn packs(archive: &Path) -> Vec<usize> {
    let entries = fs::read_dir(archive).expect("an archive").map(|entry| entry.expect("an entry").path());
    let packs = entries.filter(|path| path.file_name().expect("a name").to_string_lossy().starts_with("pack="));
    let seal = |path: PathBuf| fs::read(path.join("run.json")).expect("a seal");
    let members = |text: Vec<u8>| serde_json::from_slice::<Seal>(&text).expect("a seal").members.len();
    packs.map(seal).map(members).collect()
}

fn sequences(usually: u64) -> Range<u64> {
    range_of("BELLWETHER_MODEL_SEQUENCES", usually)
}

/// The seeds that a variable names: a number of them, or two with `..` between them.
fn range_of(variable: &str, usually: u64) -> Range<u64> {
    let Ok(text) = std::env::var(variable) else { return 0..usually };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{variable} is a number, or two with `..`"));
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
                pack(&world.output().join("archive"), world.random.between(0, 9), &CancellationToken::new())
                    .expect("it packs");
                prune_packed(&world.output().join("archive")).expect("it prunes");
            }
        }
        for machine in MACHINES {
            let _ = fs::remove_dir_all(world.place.file(machine));
        }
        world.go_on(pulls);
        let entries = fs::read_dir(world.folder()).expect("an archive");
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
    needs!(PYTHON);
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
        let archive = world.folder();
        assert!(packs(&archive).len() > 2, "{}", world.story);
        world.check_views();
        world.verify();
        let keep = world.random.between(0, pulls);
        world.story.push_str(&format!("\npacked but {keep}"));
        pack(&world.output().join("archive"), keep, &CancellationToken::new()).expect("it packs");
        world.check_views();
        world.verify();
        prune_packed(&world.output().join("archive")).expect("it prunes");
        world.check_views();
        world.verify();
        (pulls..pulls + 3).for_each(|pull| world.go_on(pull));
        world.check_views();
        world.verify();
    };
    thread::scope(|scope| sequences(1).for_each(|seed| drop(scope.spawn(move || play(seed)))));
}

#[test]
fn a_pull_that_repeats_the_last_one_writes_no_rows() {
    for seed in sequences(3) {
        let mut world = World::new(seed, false);
        // Another definition would give another version.
        world.forms = &[Form::Sector];
        for pull in 0..4 {
            world.change(pull * 3);
            let (_, seal) = world.pull();
            world.check_changes(&seal);
        }
        world.change(0);
        let (outcome, seal) = world.pull();
        let is_taken_over = match &outcome {
            Ok(summary) => summary.notes.iter().any(|note| note.starts_with("unchanged since version ")),
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
    let documentation = include_str!("../../../crates/bellwether/src/archive/mod.rs");
    let query = documentation.split("//! ```sql\n").nth(1).and_then(|rest| rest.split("//! ```").next());
    let query = query.expect("a query").replace("//! ", "");
    let mut world = World::new(7, true);
    let check = |world: &World| {
        let pulls = &world.model.pulls;
        for at in [pulls.len() / 3, pulls.len() - 1] {
            let as_of = DateTime::from_timestamp_micros(pulls[at].at).expect("an instant of our time");
            let known = world.place.file(&format!("known-{at}"));
            fs::create_dir_all(&known).expect("a folder");
            for table in Table::ALL {
                write_known(&world.archive(), table, as_of, &known.join(table.file()));
            }
            let archive = world.folder();
            let as_of = as_of.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            let known = known.to_str().expect("a path");
            python::check("check_archive.py", [archive.to_str().expect("a path"), &query, &as_of, known]);
        }
    };
    (0..40).for_each(|pull| world.go_on(pull));
    let archive = world.folder();
    assert!(!packs(&archive).is_empty(), "{}", world.story);
    check(&world);
    pack(&world.output().join("archive"), 3, &CancellationToken::new()).expect("it packs");
    check(&world);
    prune_packed(&world.output().join("archive")).expect("it prunes");
    check(&world);
}

/// The known state of a table, in its value columns.
fn write_known(archive: &Archive, table: Table, as_of: DateTime<Utc>, path: &Path) {
    let view = View::of(archive.clone(), as_of);
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
    for cells in view.cells(table, Vintage::Latest).expect("a view") {
        out.write(&cells.expect("cells").project(&places).expect("columns")).expect("rows");
    }
    out.close().expect("a file");
}

/// A regression: when their neighbours returned, the withdrawal and the return of some cells were lost.
#[test]
fn a_cell_withdrawn_with_its_quarter_is_known_again_when_it_returns() {
    let mut world = World::new(0, true);
    let pulls: [&[(i64, f64)]; 4] = [
        &[(12_755, 0.5), (12_795, 0.5), (12_805, 0.5), (12_885, 0.5)],
        &[(12_755, 0.5), (12_885, 0.5)],
        &[(12_755, 0.5), (12_795, 0.5), (12_885, 0.5)],
        &[(12_755, 0.5), (12_795, 0.75), (12_805, 0.5), (12_885, 0.75)],
    ];
    for days in pulls {
        world.change(0);
        world.vendor.histories.values_mut().for_each(|history| *history = History::of(days));
        let (_, seal) = world.pull();
        world.check_changes(&seal);
        world.check_view(&world.archive(), world.now);
    }
}
