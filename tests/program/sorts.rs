//! Datasets whose rows are sorted in files, since they do not fit into the memory for sorting, equal those that do.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bellwether::definition::DefinitionFile;
use bellwether::plan::{Column, Format, Plan};
use bellwether::run::{self, BuildOptions, Options, TargetFile, WhenExists};
use bellwether::time::Clock;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::support::program::Place;
use crate::support::rows::{numbers, read, texts};

const SOURCE: &str = "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n\
    signals.periods = [\"5d\", \"1m\"]\nsentiment.summary = true\nsentiment.historical = true\n";

const NEWS: &str =
    "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\ndataset.kind = \"news\"\n";

const FILTER: &str = "[filter]\nfrom = 2026-10-01\n";

/// Small row groups, so that files have many.
const FORMATS: &str = "[output]\nformat = [\"parquet\", \"csv\", \"arrow\"]\nrow_group_rows = 1000\n";

/// The archive of a day of the demo service.
struct Archived {
    place: Place,
    runtime: Runtime,
}

impl Archived {
    fn new() -> Self {
        let place = Place::new();
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        for (name, text) in [("signals", SOURCE), ("news", NEWS)] {
            let options = Options { clock: clock(), ..Options::new(place.file("first")) };
            runtime.block_on(run::run(plan(name, text), options)).expect("a run");
        }
        Self { place, runtime }
    }

    fn options(&self) -> BuildOptions {
        BuildOptions { clock: clock(), ..BuildOptions::new(self.place.file("first/archive")) }
    }

    /// Builds a dataset in a folder, with some memory for sorting: the checksum of each file.
    fn build(&self, plan: Plan, folder: &str) -> BTreeMap<String, String> {
        let data = self.place.file(folder);
        let dataset = data.join("datasets").join(&plan.name);
        self.runtime.block_on(run::build(plan, data.clone(), self.options())).expect("a dataset");
        let left = fs::read_dir(&data).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".scratch")), "nothing is left");
        checksums(&dataset.join("latest"))
    }

    fn save(&self, plan: Plan, format: Format, name: &str) -> Vec<u8> {
        let path: PathBuf = self.place.file(name);
        let file = TargetFile { path: path.clone(), when_exists: WhenExists::Refuse };
        self.runtime.block_on(run::save(plan, format, file, self.options())).expect("a file");
        fs::read(path).expect("a file")
    }

    fn stream(&self, plan: Plan, format: Format) -> Vec<u8> {
        let pipe = Pipe::default();
        self.runtime.block_on(run::stream(plan, format, pipe.clone(), self.options())).expect("rows");
        let bytes = pipe.0.lock().expect("a lock");
        bytes.clone()
    }
}

#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn clock() -> Clock {
    Clock::Fixed("2026-11-20T22:00:00Z".parse::<DateTime<Utc>>().expect("an instant"))
}

fn plan(name: &str, text: &str) -> Plan {
    Plan::of(DefinitionFile::new(format!("{name}.toml").into(), text.to_owned()).expect("a name")).expect("a plan")
}

/// The plan with no memory to sort in: every batch of rows is a file.
fn without_memory(mut plan: Plan) -> Plan {
    plan.dataset.sort_memory = 0;
    plan
}

fn checksums(version: &Path) -> BTreeMap<String, String> {
    let record = fs::read(version.join("dataset.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let files = record["files"].as_array().expect("files").iter();
    files.map(|file| (text(&file["name"]), text(&file["blake3"]))).collect()
}

/// Every order that begins with a column, and some that go on with others.
fn orders(columns: &[Column]) -> Vec<String> {
    let name = |column: &Column| format!("\"{}\"", column.name());
    let mut orders: Vec<String> = columns.iter().map(name).collect();
    let reversed: Vec<String> = columns.iter().rev().map(name).collect();
    orders.push(reversed.join(", "));
    let turned: Vec<String> = columns.iter().cycle().skip(1).take(columns.len()).map(name).collect();
    orders.push(turned.join(", "));
    orders
}

#[test]
fn every_order_and_kind_that_spills_equals_the_dataset_that_does_not() {
    let archived = Archived::new();
    let signals = format!("{SOURCE}dataset.kind = \"signals\"\n")
        .replace("sentiment.summary = true\nsentiment.historical = true\n", "");
    let added = "[dataset]\nadd = [\"source\", \"sector\", \"observed_at\", \"revisions\"]\n[join]\nwindows = \"7d\"\n\
                 sources = [\"articles\", \"summary\", \"historical\"]\nhistorical = [\"score\"]\n";
    let kinds: [(&str, String, &[Column]); 3] = [
        ("joined", format!("{SOURCE}{added}"), &Column::BASE),
        ("signals", signals, &Column::BASE),
        ("news", NEWS.to_owned(), &Column::OF_ARTICLES),
    ];
    for (kind, text, columns) in kinds {
        for (number, order) in orders(columns).into_iter().enumerate() {
            let name = format!("{kind}-{number}");
            let plan = plan(&name, &format!("{text}{FILTER}{FORMATS}sort = [{order}]\n"));
            let held = archived.build(plan.clone(), "held");
            assert_eq!(held.len(), 3, "a file per format");
            let spilled = archived.build(without_memory(plan), "spilled");
            assert!(spilled == held, "{kind} by {order}: {spilled:?} and {held:?}");
        }
    }
}

#[test]
fn every_layout_and_format_that_spills_equals_the_one_that_does_not() {
    let archived = Archived::new();
    let joined = format!("{SOURCE}[join]\nwindows = \"7d\"\n{FILTER}");
    let layouts = [
        ("folders", format!("{FORMATS}sort = [\"date\"]\npartition_by = [\"period\", \"ticker\"]\n")),
        ("wide", "[output]\nlayout = \"wide\"\nformat = [\"parquet\", \"csv\", \"arrow\"]\n".to_owned()),
        ("long", format!("{FORMATS}sort = [\"regime\", \"date\"]\n")),
    ];
    for (name, layout) in layouts {
        let plan = plan(name, &format!("{joined}{layout}"));
        let held = archived.build(plan.clone(), "held");
        assert!(archived.build(without_memory(plan), "spilled") == held, "{name}");
    }
    let plan = plan("one", &format!("{joined}[output]\nsort = [\"date\", \"regime\"]\n"));
    for &format in Format::ALL {
        let held = archived.save(plan.clone(), format, &format!("held.{format}"));
        let spilled = archived.save(without_memory(plan.clone()), format, &format!("spilled.{format}"));
        assert!(held == spilled, "a file of {format}");
        assert!(
            archived.stream(plan.clone(), format) == archived.stream(without_memory(plan.clone()), format),
            "a stream of {format}"
        );
    }
}

#[test]
fn a_score_sorts_the_rows_of_all_tickers() {
    let place = Place::new();
    place.define(
        "it",
        "source.service = \"demo\"\nsignals.sectors = \"energy\"\nsignals.periods = \"5d\"\nsignals.regimes = \"neutral\"\n\
         dataset.columns = [\"ticker\", \"date\", \"score\", \"period\", \"regime\"]\noutput.sort = [\"score\", \"ticker\", \"date\"]\n",
    );
    place.run(["run", "it", "-q"]).expect_success();
    let rows = read(&place.file("output/datasets/it/latest/it.parquet"));
    let scores = numbers(&rows, "score").map(|score| score.expect("a confidence for each signal"));
    let keys: Vec<(f64, Option<String>)> = scores.zip(texts(&rows, "ticker")).collect();
    assert!(keys.len() > 10_000 && keys[0].0 < 0.0 && keys[keys.len() - 1].0 > 0.0);
    assert!(keys.is_sorted(), "by score, then by ticker");
}
