//! Zero is one value, with or without a sign.

use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::Float64Type;

use crate::support::program::{Outcome, Place};
use crate::support::rows::{read, sealed_run};
use crate::support::scripted::{Scripted, json as answer};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// What the service says, with a zero.
fn history(zero: &str) -> String {
    let entry = |day: &str, confidence: &str| {
        format!(r#"{{"date":"2026-11-{day}T00:00:00","signal":"buy","confidence":{confidence}}}"#)
    };
    let entries = [entry("18", zero), entry("19", "0.5"), entry("20", zero)].join(",");
    format!(r#"{{"ONE":{{"ticker":"ONE","period":"15d","regime":"neutral","predictions":[{entries}]}}}}"#)
}

/// The articles: a number and a text.
fn articles(zero: &str) -> String {
    format!(
        r#"[{{"date":"2026-11-17","title":"b","score":{zero},"link":"l"}},
            {{"date":"2026-11-17","title":"a","score":"{zero}","link":"l"}}]"#
    )
}

fn has_sign(number: f64) -> bool {
    number == 0.0 && number.is_sign_negative()
}

/// Whether a number of a file is a negative zero.
fn has_signs(path: &Path) -> bool {
    let rows = read(path);
    let columns = rows.columns().iter().filter_map(|column| column.as_primitive_opt::<Float64Type>());
    columns.flat_map(|column| column.iter().flatten()).any(has_sign)
}

const DEFINITION: &str = "[signals]\nsectors = \"alpha\"\nperiods = \"15d\"\nregimes = \"neutral\"\n\
                          [join]\nwindows = \"7d\"\nstats = [\"mean\", \"min\", \"max\", \"std\", \"last\"]\n\
                          [dataset]\nadd = [\"revisions\"]\n[output]\nsort = [\"confidence\", \"date\"]\n";

#[test]
fn a_zero_of_an_answer_has_no_sign() {
    let service = Scripted::start(|request| {
        answer("200 OK", &if request.target.starts_with("/a/") { history("-0.0") } else { articles("-0") })
    });
    let place = Place::new();
    place.define("it", &format!("[source]\n{}{DEFINITION}", service.source()));
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success();
    let run = sealed_run(&place);
    for path in
        [run.join("signals.parquet"), run.join("articles.parquet"), place.file("output/datasets/it/latest/it.parquet")]
    {
        assert!(!has_signs(&path), "{}", path.display());
    }
}
