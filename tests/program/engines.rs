//! `build --engine` against a Spark Connect server that a test scripts: what is published, and what never is.
//!
//! That a real cluster computes the rows of a build is shown by `tests/spark/cluster.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::program::{Outcome, Place, drain};
use crate::support::scripted::{Scripted, json};
use crate::support::scripted_spark::{Answer, Cut, Script, ScriptedSpark};

/// The rows of the dataset, and their digest as Spark 4.2.1 computes it.
const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[{"date":"2026-11-19T00:00:00","signal":"sell","confidence":0.25},{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.5}]}}"#;
const DIGEST: &str = "2 -5601295769064915540";

/// A machine with a dataset that it has built, and a store for the one that a cluster builds.
struct Machine {
    place: Place,
    store: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let service = Scripted::of_histories(|_| json("200 OK", HISTORY));
        let place = Place::new();
        place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
        let machine = Self { store: place.file("my store"), place };
        Outcome::of(machine.place.command(["run", "it", "-q"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        machine
    }

    /// A server that writes the rows of the dataset.
    fn server(&self, answers: Vec<Answer>, cuts: Vec<(usize, Cut)>) -> ScriptedSpark {
        let rows = fs::read(self.place.file("output/datasets/it/latest/it.parquet")).expect("a dataset");
        let write = move |folder: &Path| {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join("part-00000-0a1b2c3d-c000.zstd.parquet"), &rows).expect("a file");
            fs::write(folder.join("_SUCCESS"), "").expect("a file");
        };
        ScriptedSpark::start(Script { answers, cuts, write: Box::new(write) })
    }

    fn command(&self, spark: &ScriptedSpark) -> Command {
        let store = format!("file://{}", self.store.display());
        let mut command = self.place.command(["build", "it", "--engine", &spark.url(), "--output", &store]);
        command.env("BELLWETHER_API_KEY", "demo");
        command
    }

    fn build(&self, spark: &ScriptedSpark) -> Outcome {
        Outcome::of(&mut self.command(spark))
    }

    /// The record of the latest version in the store; nothing if there is no version.
    fn latest_record(&self) -> Option<Value> {
        let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).ok()?).expect("JSON");
        let latest: Value = read(self.store.join("datasets/it/latest.json"))?;
        let version = latest["version"].as_str().expect("a name");
        read(self.store.join("datasets/it").join(version).join("dataset.json"))
    }

    /// A build that fails, and publishes nothing; what it prints.
    #[track_caller]
    fn failing_build(&self, spark: &ScriptedSpark, code: i32) -> String {
        let told = self.build(spark).failed_with(code).stderr;
        self.check_nothing_is_published(spark);
        told
    }

    #[track_caller]
    fn check_nothing_is_published(&self, spark: &ScriptedSpark) {
        assert_eq!(self.latest_record(), None);
        let record = spark.folder().map(|folder| folder.join("dataset.json"));
        assert!(record.is_none_or(|record| !record.exists()), "the version has a record");
    }
}

fn complete() -> Vec<Answer> {
    vec![
        Answer::Progress(1, 4),
        Answer::Progress(2, 4),
        Answer::Progress(4, 4),
        Answer::Digest(DIGEST),
        Answer::Complete,
    ]
}

#[test]
fn what_a_cluster_cannot_compute_is_refused_before_anything_is_sent() {
    let machine = Machine::new();
    let spark = machine.server(complete(), Vec::new());
    let definition = fs::read_to_string(machine.place.file("pipelines/it.toml")).expect("a definition");
    for (more, expected) in [
        ("[output]\nlayout = \"wide\"\n", "`layout = \"wide\"`"),
        ("[dates]\nnaive = \"America/New_York\"\n", "naive"),
        ("[dataset]\nadd = [\"known_at\"]\n", "known_at"),
    ] {
        machine.place.define("it", &format!("{definition}{more}"));
        let told = machine.failing_build(&spark, 1);
        assert!(told.contains(expected), "{told}");
        assert!(!machine.store.exists() && spark.calls().is_empty(), "{more}: {:?}", spark.calls());
    }
}

#[test]
fn a_stream_of_answers_that_ends_or_breaks_is_continued_until_spark_is_done() {
    let machine = Machine::new();
    let unavailable = Cut::Status("14");
    let cuts = vec![(1, Cut::Ended), (2, Cut::Disconnected), (3, Cut::Reset), (3, unavailable), (4, Cut::Ended)];
    let streams = cuts.len();
    let spark = machine.server(complete(), cuts);
    machine.build(&spark).expect_success();
    let count = |method: &str| spark.count(method);
    assert_eq!((count("ExecutePlan"), count("ReattachExecute")), (1, streams), "{:?}", spark.calls());
    assert_eq!(
        (count("ReleaseExecute"), count("Interrupt"), count("ReleaseSession")),
        (1, 0, 1),
        "{:?}",
        spark.calls()
    );
    let built = fs::read(machine.place.file("output/datasets/it/latest/dataset.json")).expect("a record");
    let built: Value = serde_json::from_slice(&built).expect("JSON");
    let published = machine.latest_record().expect("a version");
    for name in ["content", "rows", "columns", "sort", "facts"] {
        assert_eq!(published[name], built[name], "{name}");
    }
}

#[test]
fn rows_with_another_digest_are_not_published() {
    let machine = Machine::new();
    let (_, sum) = DIGEST.split_once(' ').expect("rows and a sum");
    let more: &'static str = format!("3 {sum}").leak();
    for (digest, expected) in [(more, "2 rows, expected 3"), ("2 1", "2 rows, expected 2")] {
        let spark = machine.server(vec![Answer::Digest(digest), Answer::Complete], Vec::new());
        let told = machine.failing_build(&spark, 4);
        assert!(told.contains("does not hold the rows that") && told.contains(expected), "{told}");
        assert!(told.contains("nothing was published"), "{told}");
    }
    let told = machine.failing_build(&machine.server(vec![Answer::Complete], Vec::new()), 1);
    assert!(told.contains("returned no digest of the rows"), "{told}");
}

#[test]
fn rows_without_the_mark_of_success_are_not_published() {
    let machine = Machine::new();
    let spark = ScriptedSpark::start(Script {
        answers: complete(),
        cuts: Vec::new(),
        write: Box::new(|folder| {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join("part-00000-0a1b2c3d-c000.zstd.parquet"), "half").expect("a file");
        }),
    });
    let told = machine.failing_build(&spark, 1);
    assert!(told.contains("`_SUCCESS` is missing"), "{told}");
}

#[test]
fn errors_of_the_cluster_are_shown_and_publish_nothing() {
    let machine = Machine::new();
    for (answer, expected) in [
        (
            Answer::Failed("PATH_NOT_FOUND", "42K03", "[PATH_NOT_FOUND] Path does not exist"),
            ["refused the statement", "because: [PATH_NOT_FOUND] Path does not exist"],
        ),
        (
            Answer::Failed("TASK_WRITE_FAILED", "58030", "[TASK_WRITE_FAILED] Task failed while writing rows"),
            ["could not compute and write the dataset", "because: [TASK_WRITE_FAILED] Task failed"],
        ),
    ] {
        let spark = machine.server(vec![Answer::Progress(0, 4), answer], Vec::new());
        let told = machine.failing_build(&spark, 1);
        assert!(expected.iter().all(|expected| told.contains(expected)), "{told}");
        assert_eq!(spark.count("ReattachExecute"), 0, "it is not tried again: {:?}", spark.calls());
    }
}

#[test]
fn an_expired_session_ends_the_build() {
    let machine = Machine::new();
    for class in
        ["INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_NOT_FOUND", "INVALID_HANDLE.OPERATION_NOT_FOUND"]
    {
        let gone = Answer::Failed(class, "HY000", "The handle is invalid");
        let spark = machine.server(vec![Answer::Progress(1, 4), gone], vec![(1, Cut::Ended)]);
        let told = machine.failing_build(&spark, 1);
        assert!(told.contains("because: The handle is invalid"), "{told}");
        assert_eq!((spark.count("ExecutePlan"), spark.count("ReattachExecute")), (1, 1), "{:?}", spark.calls());
    }
}

#[test]
fn a_cancelled_build_interrupts_the_cluster_and_publishes_nothing() {
    let machine = Machine::new();
    let spark = machine.server(vec![Answer::Progress(1, 4), Answer::Silence], Vec::new());
    let mut child = machine.command(&spark).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while spark.folder().is_none() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a program");
    assert!(sent.success());
    let status = child.wait().expect("a child");
    let told = drain(child.stderr.take());
    assert_eq!(status.code(), Some(130), "{told}");
    assert_eq!(spark.count("Interrupt"), 1, "{:?}", spark.calls());
    machine.check_nothing_is_published(&spark);
}
