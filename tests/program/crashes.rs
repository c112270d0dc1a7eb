//! Files on disk: listed, and verified against their records.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Float64Array, RecordBatch};
use bellwether::archive::Interrupted;
use bellwether::archive::{NewRun, Unfinished};
use bellwether::decode::{Answer, AnswerPart, Rules};
use bellwether::interface::{Period, Regime};
use bellwether::plan::{Request, ServiceIdentity};
use bellwether::run::CancellationToken;
use bellwether::tables::{RequestRecord, Series};
use bellwether::time::Clock;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::sealed_run;

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

#[test]
fn runs_are_listed_and_damaged_files_are_named() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    let folder = sealed_run(&place);
    let name = folder.file_name().unwrap().to_str().unwrap().strip_prefix("run=").unwrap();

    let listed = place.run(["list", "runs"]).expect_success().stdout;
    assert!(listed.lines().nth(1).unwrap().starts_with(name), "{listed}");
    assert!(listed.contains("  it          36,"), "{listed}");
    let shown = place.run(["list", "runs", &name[..15]]).expect_success().stdout;
    assert!(shown.contains("definition  it, BLAKE3 ") && shown.contains("signals.parquet"), "{shown}");
    let missing = place.run(["list", "runs", "x"]).failed_with(1).stderr;
    assert!(missing.starts_with("error: no run `x` in `output/archive`\n"), "{missing}");

    assert_eq!(place.run(["verify"]).expect_success().stdout, "verified 10 files\n");
    let signals = folder.join("signals.parquet");
    let mut bytes = fs::read(&signals).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&signals, &bytes).unwrap();
    fs::remove_file(folder.join("articles.parquet")).unwrap();
    fs::write(place.file("output/datasets/it/latest/it.parquet"), "").unwrap();
    let outcome = place.run(["verify"]).failed_with(1);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.stdout);
    let has = |fault: &str| assert!(lines.iter().any(|line| line.contains(fault)), "{}", outcome.stdout);
    has("signals.parquet` does not match its checksum: its BLAKE3 is ");
    has("articles.parquet` cannot be read: No such file or directory");
    has("it.parquet` has 0 bytes, expected ");
    assert!(outcome.stderr.starts_with("error: verification found 3 faults\n"), "{}", outcome.stderr);

    let seal = fs::read_to_string(folder.join("run.json")).unwrap();
    let own = concat!("\"bellwether\": \"", env!("CARGO_PKG_VERSION"), "\"");
    assert!(seal.contains(own), "{seal}");
    for (layout, version, hint) in [
        (
            9,
            "0.0.9",
            "use bellwether 0.0.9, which wrote it; or build a dataset again with `bellwether build NAME`; move an",
        ),
        (9, env!("CARGO_PKG_VERSION"), "use the version of bellwether that wrote it; or build a dataset again"),
        (11, "9.0.0", "it was written by bellwether 9.0.0: use that version or a newer one\n"),
        (11, env!("CARGO_PKG_VERSION"), "use a newer version of bellwether than this one\n"),
    ] {
        let other = seal.replace("\"layout\": 10", &format!("\"layout\": {layout}"));
        let other = other.replace(own, &format!("\"bellwether\": \"{version}\""));
        fs::write(folder.join("run.json"), other).unwrap();
        let refused = place.run(["list", "runs"]).failed_with(1).stderr;
        let expected = format!("has layout {layout}; this version reads layout 10\nhint: {hint}");
        assert!(refused.contains(&expected), "{refused}");
    }
}

/// Seals a run with a confidence that no answer can have.
fn seal_signals_of(archive: &Path, confidence: f64) {
    let request = Request::of_sector("energy".parse().expect("a sector"), Period::default(), Regime::default());
    let entry = r#"{"date":"2026-01-05T00:00:00","signal":"buy","confidence":0.5}"#;
    let body = format!(r#"{{"AA":{{"ticker":"AA","regime":"neutral","period":"15d","predictions":[{entry}]}}}}"#);
    let mut series = Vec::new();
    let answer = Answer { request: &request, rules: &Rules::default() };
    let read = answer.decode(body.as_bytes(), |decoded| {
        series.extend(decoded.parts);
        Ok::<(), Infallible>(())
    });
    assert!(read.is_ok(), "{read:?}");
    let now = Clock::System.now();
    let beginning = NewRun {
        definition: "it",
        text: "",
        service: &ServiceIdentity::demo(),
        conventions: &bellwether::tables::Conventions::default(),
        now,
        interrupted: Interrupted::Leave,
        stop: &CancellationToken::new(),
    };
    let run = Unfinished::begin(archive, beginning).expect("a run");
    let mut draft = run.draft();
    for part in series {
        let AnswerPart::Series(Series { key, rows }) = part else { continue };
        let place = rows.schema().index_of("confidence").expect("signals have one");
        let mut columns = rows.columns().to_vec();
        columns[place] = Arc::new(Float64Array::from(vec![confidence]));
        let rows = RecordBatch::try_new(rows.schema(), columns).expect("the same columns");
        draft.add_series(Series { key, rows }).expect("room on the disk");
    }
    let (rows, rejects) = draft.counts();
    let record = RequestRecord {
        endpoint: request.endpoint,
        request: request.to_string(),
        status: 200,
        attempts: 1,
        bytes: body.len() as u64,
        digest: String::new(),
        rows,
        rejects,
        validator: None,
        unknown_fields: Vec::new(),
        observed_at: now,
    };
    run.commit(draft, record).expect("room on the disk");
    run.seal(&[], || Ok(now), |_| Ok(true)).expect("a sealed run");
}

#[test]
fn an_archive_with_a_number_json_cannot_hold_is_refused() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let place = Place::new();
        let rest = "[signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\n[sentiment]\narticles = false\n";
        place.define("it", &format!("[source]\nservice = \"demo\"\n{rest}"));
        seal_signals_of(&place.file("output/archive/demo"), number);
        for command in [&["build", "it"][..], &["audit", "quality", "it"], &["audit", "revisions"], &["verify"]] {
            let outcome = place.run(command).failed_with(1);
            let message = outcome.stdout + &outcome.stderr;
            let reason = format!("`confidence` of `AA` is {number}: not a finite number");
            assert!(message.contains("signals.parquet") && message.contains(&reason), "{command:?}: {message}");
        }
        assert!(!place.file("output/datasets/it/latest").exists());
    }
    // The same archive with a valid number.
    let place = Place::new();
    place.define(
        "it",
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n",
    );
    seal_signals_of(&place.file("output/archive/demo"), 0.75);
    place.run(["build", "it"]).expect_success();
}

#[test]
fn every_reading_command_fails_on_a_missing_archive() {
    let place = Place::new();
    place.define("it", "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n");
    // A command about a definition needs the archive of its service.
    let commands: [(&[&str], &str); 7] = [
        (&["verify"], "nowhere"),
        (&["list", "runs"], "nowhere"),
        (&["list", "runs", "2026"], "nowhere"),
        (&["build", "it"], "nowhere/demo"),
        (&["audit", "leak", "it"], "nowhere/demo"),
        (&["audit", "quality"], "nowhere"),
        (&["audit", "revisions"], "nowhere"),
    ];
    for (command, missing) in commands {
        let outcome = place.run([command, &["--archive", "nowhere"]].concat()).failed_with(1);
        assert_eq!(outcome.stdout, "", "{command:?}");
        let expected = format!("error: no archive: `{missing}` does not exist\n");
        assert!(outcome.stderr.starts_with(&expected), "{command:?}: {}", outcome.stderr);
    }
    assert!(!place.file("nowhere").exists() && !place.file("output").exists());
}

#[test]
fn every_file_of_a_version_that_has_a_digest_is_verified() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    let facts = place.file("output/datasets/it/latest/facts.json");
    fs::write(&facts, "{}").unwrap();
    let shown = place.run(["verify"]).failed_with(1).stdout;
    assert!(shown.contains("facts.json` does not match its checksum: its BLAKE3 is "), "{shown}");
    fs::remove_file(&facts).unwrap();
    let shown = place.run(["verify"]).failed_with(1).stdout;
    assert!(shown.contains("facts.json` cannot be read: No such file"), "{shown}");
}
