//! Other tools read a store as documented.

use std::fs;

use super::{Machine, definition};
use crate::support::bucket::{Bucket, SECRET};
use crate::support::program::{DemoService, Place};
use crate::support::python;
use crate::support::tools::{PYTHON, needs};

/// The examples of the documentation in a language.
fn examples(language: &str) -> Vec<String> {
    let page = include_str!("../../../docs/stores.md");
    let fence = format!("```{language}\n");
    let examples = page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    examples.map(str::to_owned).collect()
}

#[test]
fn duckdb_and_polars_read_the_archive_and_the_latest_version_as_documented() {
    needs!(PYTHON);
    let bucket = Bucket::start();
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let text = definition(&service.source).replace("csv", "parquet");
    let machine = Machine::with_bucket(&text, &bucket);
    machine.run(&["run", "it"]).expect_success();
    machine.run(&["run", "it"]).expect_success();
    // The store has the rows twice: in the runs and in their pack.
    machine.place.pack();
    machine.run(&["store", "push"]).expect_success();
    assert!(bucket.keys().iter().any(|key| key.contains("/pack=")));
    let [archive, latest] = &examples("sql")[..] else { panic!("two queries") };
    let [polars] = &examples("python")[..] else { panic!("one script") };
    let place = |text: &str| {
        text.replace("s3://bucket/prefix", &machine.store)
            .replace("archive/demo", "archive/vendor")
            .replace("datasets/demo", "datasets/it")
            .replace("demo.parquet", "it.parquet")
    };
    // A killed upload, whose rows belong to no run.
    let some =
        fs::read(machine.place.file("output/archive/vendor").join(&machine.folders()[0]).join("signals.parquet"))
            .unwrap();
    bucket.put("team/a/archive/vendor/run=20261101T000000Z-aaaa/signals.parquet", &some);
    let copy = format!("{}/archive", machine.store);
    let statement = machine.run(&["sql", "it", "--archive", &copy]).expect_success().stdout;
    let arguments = [
        format!("http://{}", bucket.address()),
        SECRET.to_owned(),
        place(archive),
        place(latest),
        place(polars),
        statement,
        machine.place.file("output").display().to_string(),
    ];
    python::check("check_store.py", arguments);
}
