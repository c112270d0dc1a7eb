//! A vendor that goes through its change record, back and forth: what is known does not depend on the operations that
//! said it.

use std::fs;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use bellwether::archive::Archive;
use bellwether::archive::View;
use bellwether::definition::DefinitionFile;
use bellwether::interface::ChangeSet;
use bellwether::plan::{Plan, Vintage};
use bellwether::run::{Options, run};
use bellwether::serve::Universe;
use bellwether::tables::Table;
use bellwether::time::Clock;
use chrono::NaiveDate;

use crate::support::days::{SEED, evening};
use crate::support::program::Place;
use crate::support::service::{KEY, Server, day};

/// What the service offered on each evening: the signals exist since set E.
const SETS: [ChangeSet; 10] = [
    ChangeSet::A,
    ChangeSet::C,
    ChangeSet::B,
    ChangeSet::D,
    ChangeSet::E,
    ChangeSet::All,
    ChangeSet::C,
    ChangeSet::E,
    ChangeSet::A,
    ChangeSet::D,
];

/// Sets that offer news, between which it comes with other operations.
const SETS_WITH_NEWS: [ChangeSet; 4] = [ChangeSet::All, ChangeSet::E, ChangeSet::All, ChangeSet::E];

const WITHOUT_NEWS: &str = "articles = false\n";

fn run_on(place: &Place, today: NaiveDate, set: ChangeSet, sentiment: &str) {
    let server = Server::new(Universe::new(SEED, today), set);
    let key = place.file("key");
    fs::write(&key, KEY).expect("a key");
    let running = &server.running;
    let definition = format!(
        "[source]\nname = \"vendor\"\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\napi_key_file = {key:?}\n\
         [signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\n\
         [checks]\nmissing = \"warn\"\n[sentiment]\n{sentiment}",
        running.base_url(),
        running.sentiment_base_url()
    );
    let plan = Plan::of(DefinitionFile::new(PathBuf::from("it.toml"), definition).expect("a name")).expect("a plan");
    let options = Options { clock: Clock::Fixed(evening(today)), ..Options::new(place.file("output")) };
    server.runtime.block_on(run(plan, options)).unwrap_or_else(|error| panic!("{set} on {today}: {error:?}"));
}

/// What is known of a table as of an evening, without the operation.
fn known_rows(place: &Place, today: NaiveDate, table: Table, vintage: Vintage) -> RecordBatch {
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let view = View::of(archive, evening(today));
    let cells = view.cells(table, vintage).expect("a view").map(|cells| cells.expect("cells"));
    let cells: Vec<RecordBatch> = cells.collect();
    let whole = concat_batches(&cells[0].schema(), &cells).expect("one schema");
    let said = |place: &usize| {
        !["source", "utc_offset_minutes", "extra"].contains(&whole.schema_ref().field(*place).name().as_str())
    };
    whole.project(&(0..whole.num_columns()).filter(said).collect::<Vec<_>>()).expect("columns")
}

/// A service that goes through sets of changes, on some evenings, is known like one that offers everything.
fn compare(sets: &[ChangeSet], sentiment: &str, tables: &[(Table, usize)]) {
    let (varied, constant) = (Place::new(), Place::new());
    let days =
        day(2026, 9, 28).iter_days().filter(|day| !["Sat", "Sun"].contains(&day.format("%a").to_string().as_str()));
    let days: Vec<(NaiveDate, ChangeSet)> = days.zip(sets.iter().copied()).collect();
    for &(today, set) in &days {
        run_on(&varied, today, set, sentiment);
        run_on(&constant, today, ChangeSet::All, sentiment);
    }
    for (&(today, set), &(table, least)) in days.iter().flat_map(|day| tables.iter().map(move |table| (day, table))) {
        for vintage in [Vintage::Latest, Vintage::First] {
            let (message, expected) =
                (known_rows(&varied, today, table, vintage), known_rows(&constant, today, table, vintage));
            assert!(expected.num_rows() >= least, "{table:?}: {}", expected.num_rows());
            assert_eq!(message.num_rows(), expected.num_rows(), "{table:?} after {set} on {today}");
            for (place, field) in expected.schema_ref().fields().iter().enumerate() {
                let (message, expected) = (message.column(place), expected.column(place));
                assert_eq!(message, expected, "{} of {table:?} after {set} on {today}", field.name());
            }
        }
    }
}

#[test]
fn signals_do_not_depend_on_the_operations_that_said_them() {
    compare(&SETS, WITHOUT_NEWS, &[(Table::Signals, 1000)]);
}

#[test]
fn news_does_not_depend_on_the_operations_that_the_service_offers_beside_it() {
    let tables = [(Table::Signals, 1000), (Table::Articles, 1000), (Table::Summaries, 10)];
    compare(&SETS_WITH_NEWS, "summary = true\n", &tables);
}
