//! Zero is one value, with or without a sign, also in an archive that has both.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use bellwether::archive::Interrupted;
use bellwether::archive::{NewRun, Unfinished};
use bellwether::decode::{Answer, AnswerPart, Rules};
use bellwether::interface::Endpoint;
use bellwether::plan::{Plan, Request};
use bellwether::project::Project;
use bellwether::run::CancellationToken;
use bellwether::tables::{RequestRecord, Series};
use bellwether::time::Clock;
use chrono::TimeDelta;
use serde_json::json;

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::rows::{numbers, read, sealed_run};
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

/// The same numbers with the sign that an earlier version kept.
fn with_signs(rows: &RecordBatch) -> RecordBatch {
    let signed = |column: &ArrayRef| -> ArrayRef {
        match column.as_primitive_opt::<Float64Type>() {
            Some(numbers) => {
                Arc::new(numbers.unary::<_, Float64Type>(|number| if number == 0.0 { -0.0 } else { number }))
            }
            None => Arc::clone(column),
        }
    };
    RecordBatch::try_new(rows.schema(), rows.columns().iter().map(signed).collect()).expect("the same columns")
}

/// Seals a run with negative zeros, the day before, for the requests of a definition.
fn seal_signed_zeros(place: &Place, name: &str) {
    let plan = Plan::find(name, &Project::at(place.path()).expect("a project")).expect("a plan");
    let now = Clock::System.now() - TimeDelta::days(1);
    let beginning = NewRun {
        definition: name,
        text: &plan.text,
        service: &plan.service,
        conventions: &bellwether::tables::Conventions::default(),
        now,
        interrupted: Interrupted::Leave,
        stop: &CancellationToken::new(),
    };
    let run = Unfinished::begin(&place.file("output/archive/vendor"), beginning).expect("a run");
    let news = Request::of_ticker(Endpoint::NewsArticles, "ONE".parse().expect("a ticker"));
    let signals = plan.alternatives[0].requests(&[]).remove(0);
    for (request, body) in [(signals, history("0")), (news, articles("0"))] {
        let mut draft = run.draft();
        let decoding = Answer { request: &request, rules: &Rules::default() };
        let read = decoding.decode(body.as_bytes(), |decoded| {
            for part in decoded.parts {
                let AnswerPart::Series(Series { key, rows }) = part else { continue };
                draft.add_series(Series { key, rows: with_signs(&rows) }).expect("room on the disk");
            }
            Ok::<(), Infallible>(())
        });
        assert!(read.is_ok(), "{read:?}");
        let (rows, rejects) = draft.counts();
        let (endpoint, request) = (request.endpoint, request.to_string());
        let (status, attempts, bytes, digest, observed_at) = (200, 1, 0, String::new(), now);
        let unknown_fields = Vec::new();
        let record = RequestRecord {
            endpoint,
            request,
            status,
            attempts,
            bytes,
            digest,
            rows,
            rejects,
            validator: None,
            unknown_fields,
            observed_at,
        };
        run.commit(draft, record).expect("room on the disk");
    }
    run.seal(&[], || Ok(now), |_| Ok(true)).expect("a sealed run");
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
fn a_zero_that_lost_its_sign_is_no_revision_and_is_written_without_one() {
    let service = Scripted::start(|request| {
        answer("200 OK", &if request.target.starts_with("/a/") { history("0") } else { articles("0.0") })
    });
    let place = Place::new();
    place.define("it", &format!("[source]\n{}{DEFINITION}", service.source()));
    seal_signed_zeros(&place, "it");
    let run = sealed_run(&place);
    assert!(has_signs(&run.join("signals.parquet")) && has_signs(&run.join("articles.parquet")));
    let stdout = Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success().stdout;
    assert!(stdout.contains("changes   0 added, 0 revised, 0 withdrawn\n"), "{stdout}");

    let check = || {
        let mut cases = Vec::new();
        for vintage in ["latest", "first"] {
            let place_of = |kind: &str| place.file(&format!("{vintage}.{kind}"));
            for kind in ["csv", "parquet"] {
                let _ = fs::remove_file(place_of(kind));
                let build = ["build", "it", "-q", "--vintage", vintage, "--format", kind, "--output"];
                place.run(build.iter().map(Into::into).chain([place_of(kind)])).expect_success();
            }
            let csv = fs::read_to_string(place_of("csv")).expect("text");
            assert!(csv.contains(",0.0,") && !csv.contains("-0"), "{csv}");
            let rows = read(&place_of("parquet"));
            assert!(!has_signs(&place_of("parquet")));
            assert!(numbers(&rows, "revisions").all(|count| count == Some(0.0)));
            assert_eq!(numbers(&rows, "confidence").flatten().collect::<Vec<_>>(), [0.0, 0.0, 0.5]);
            let sql = place.run(["sql", "it", "--vintage", vintage]).expect_success().stdout;
            fs::write(place_of("sql"), sql).expect("a file");
            cases.push(json!({ "sql": place_of("sql"), "dataset": place_of("parquet") }));
        }
        fs::write(place.file("cases.json"), json!(cases).to_string()).expect("a file");
        python::check("check_sql.py", ["duckdb".into(), place.file("cases.json")]);
    };
    check();
    place.pack();
    place.prune_packed();
    check();
    place.run(["verify"]).expect_success();
}

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
