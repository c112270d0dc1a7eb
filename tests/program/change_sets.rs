//! A vendor that goes through its change record, back and forth: what is known does not depend on the operations that
//! said it.

use std::fs;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use bellwether::archive::Archive;
use bellwether::definition::DefinitionFile;
use bellwether::harness::archive::{View, ViewOptions};
use bellwether::harness::tables::Table;
use bellwether::interface::ChangeSet;
use bellwether::plan::{Plan, Vintage};
use bellwether::run::{Options, run};
use bellwether::serve::Universe;
use bellwether::time::Clock;
use chrono::{NaiveDate, TimeDelta};

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

fn run_on(place: &Place, today: NaiveDate, set: ChangeSet) {
    let server = Server::new(Universe::new(SEED, today), set);
    let key = place.file("key");
    fs::write(&key, KEY).expect("a key");
    let running = &server.running;
    let definition = format!(
        "[source]\nname = \"vendor\"\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\napi_key_file = {key:?}\n\
         [signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\n\
         [sentiment]\narticles = false\n[checks]\nmissing = \"warn\"\n",
        running.base_url(),
        running.sentiment_base_url()
    );
    let plan = Plan::of(DefinitionFile::new(PathBuf::from("it.toml"), definition).expect("a name")).expect("a plan");
    let options = Options { clock: Clock::Fixed(evening(today)), ..Options::new(place.file("output")) };
    server.runtime.block_on(run(plan, options)).unwrap_or_else(|error| panic!("{set} on {today}: {error:?}"));
}

/// The known signals as of an evening, without the operation.
fn known(place: &Place, today: NaiveDate, vintage: Vintage) -> RecordBatch {
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let view = View::of(archive, evening(today));
    let options = ViewOptions { vintage, live_within: TimeDelta::days(3) };
    let cells = view.cells(Table::Signals, options).expect("a view").map(|cells| cells.expect("cells"));
    let cells: Vec<RecordBatch> = cells.collect();
    let whole = concat_batches(&cells[0].schema(), &cells).expect("one schema");
    let said = |place: &usize| {
        !["source", "utc_offset_minutes", "extra"].contains(&whole.schema_ref().field(*place).name().as_str())
    };
    whole.project(&(0..whole.num_columns()).filter(said).collect::<Vec<_>>()).expect("columns")
}

#[test]
fn signals_do_not_depend_on_the_operations_that_said_them() {
    let (varied, constant) = (Place::new(), Place::new());
    let days =
        day(2026, 9, 28).iter_days().filter(|day| !["Sat", "Sun"].contains(&day.format("%a").to_string().as_str()));
    let days: Vec<(NaiveDate, ChangeSet)> = days.zip(SETS).collect();
    for &(today, set) in &days {
        run_on(&varied, today, set);
        run_on(&constant, today, ChangeSet::All);
    }
    for &(today, set) in &days {
        for vintage in [Vintage::Latest, Vintage::First] {
            let (message, expected) = (known(&varied, today, vintage), known(&constant, today, vintage));
            assert!(expected.num_rows() > 1000, "{}", expected.num_rows());
            assert_eq!(message.num_rows(), expected.num_rows(), "after {set} on {today}");
            for (place, field) in expected.schema_ref().fields().iter().enumerate() {
                assert_eq!(message.column(place), expected.column(place), "{} after {set} on {today}", field.name());
            }
        }
    }
}
