//! The root of a project, its folders, and where commands write results.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use crate::support::program::{Outcome, Place};
use crate::support::rows::read;

const DEMO: &str = "source.service = \"demo\"\nsignals.sectors = [\"utilities\"]\noutput.keep = 1\n";

/// A place with a definition `demo` that has been run once.
fn published_place() -> Place {
    let place = Place::new();
    place.define("demo", DEMO);
    place.run(["run", "demo", "-q"]).expect_success();
    place
}

fn run_in(folder: &Path, place: &Place, arguments: &[&str]) -> Outcome {
    Outcome::of(place.command(arguments).current_dir(folder))
}

fn versions(place: &Place) -> usize {
    let entries = fs::read_dir(place.file("output/datasets/demo")).expect("a dataset").flatten();
    entries.filter(|entry| entry.path().join("dataset.json").is_file() && !entry.path().is_symlink()).count()
}

#[test]
fn a_command_finds_the_project_from_any_folder_below_it() {
    let place = published_place();
    let below = place.file("research/notebooks");
    fs::create_dir_all(&below).unwrap();
    let summary = run_in(&below, &place, &["run", "demo"]).expect_success().stdout;
    assert!(summary.contains("../../output/datasets/demo/"), "{summary}");
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    // Retention removed the previous version, through a path with `..`.
    assert_eq!(versions(&place), 1);
    for command in [
        &["list", "runs"][..],
        &["verify"],
        &["check", "demo"],
        &["report", "--text"],
        &["report"],
        &["diff", "demo", "demo"],
        &["audit", "quality", "demo"],
        &["audit", "leak", "demo"],
        &["prune"],
    ] {
        run_in(&below, &place, command).expect_success();
    }
    assert!(place.file("output/reports/demo.html").is_file());
    // Paths are relative to the current folder, including output files.
    run_in(&below, &place, &["build", "../../pipelines/demo.toml", "--output", "rows.parquet"]).expect_success();
    assert!(below.join("rows.parquet").is_file());
}

#[test]
fn a_definition_from_elsewhere_takes_no_dataset_over() {
    let (place, elsewhere) = (published_place(), Place::new());
    let file = elsewhere.file("demo.toml");
    fs::write(&file, DEMO.replace("utilities", "energy")).unwrap();
    let file = file.to_str().unwrap();
    let latest = || fs::read_link(place.file("output/datasets/demo/latest")).unwrap();
    let before = (latest(), place.files().len());
    for command in [&["run", file][..], &["build", file], &["run", file, "--archive", "other"]] {
        let refused = place.run(command).failed_with(2).stderr;
        assert!(refused.contains(&format!("`{file}` is not one of the project's definitions")), "{refused}");
        assert!(refused.contains("hint: put it into `pipelines`, or name the folder to publish in: `--data FOLDER`"));
    }
    assert_eq!((latest(), place.files().len()), before);
    // What publishes nothing takes any file.
    place.run(["check", file]).expect_success();
    place.run(["run", file, "--data", "other", "-q"]).expect_success();
    place.run(["build", file, "--archive", "other/archive", "--output", "rows.csv"]).expect_success();
    // Where it is told to, it publishes, and says what is different.
    let told = place.run(["run", file, "--data", "output"]).expect_success().stdout;
    assert!(told.contains("the definition changed since version"), "{told}");
    assert!(told.contains("signals.sectors"), "{told}");
    assert_ne!(latest(), before.0);
}

#[test]
fn the_project_option_overrides_the_variable() {
    let (place, other) = (published_place(), Place::new());
    let root = place.path().to_str().unwrap();
    // A heading, a run, and the digest of the past.
    let listed = |outcome: Outcome| outcome.expect_success().stdout.lines().count();
    assert_eq!(listed(place.run(["list", "runs"])), 3);
    assert_eq!(listed(other.run(["-C", root, "list", "runs"])), 3);
    assert_eq!(listed(other.run(["list", "runs", "--directory", root])), 3);
    assert_eq!(listed(Outcome::of(other.command(["list", "runs"]).env("BELLWETHER_ROOT", root))), 3);
    assert_eq!(listed(Outcome::of(other.command(["list", "runs", "-C", root]).env("BELLWETHER_ROOT", "nowhere"))), 3);
    assert_eq!(listed(Outcome::of(place.command(["list", "runs"]).env("BELLWETHER_ROOT", ""))), 3);
    let missing = Outcome::of(other.command(["list", "runs"]).env("BELLWETHER_ROOT", "nowhere")).failed_with(2).stderr;
    assert!(missing.starts_with("error: no project in `nowhere`\n"), "{missing}");
    assert!(missing.contains("hint: name an existing folder with `--directory` or `BELLWETHER_ROOT`"), "{missing}");
}

#[test]
fn a_project_of_another_user_is_not_discovered() {
    let place = published_place();
    let below = place.file("below");
    fs::create_dir(&below).unwrap();
    if chown(place.file("pipelines"), Some(12_345), None).is_err() {
        // Only root can change the owner of a folder.
        return;
    }
    let shown = run_in(&below, &place, &["run", "demo"]).failed_with(2).stderr;
    assert!(shown.contains("belongs to another user\nhint: if you trust it, name it: `--directory /"), "{shown}");
    run_in(&below, &place, &["-C", "..", "check", "demo"]).expect_success();
    place.run(["check", "demo"]).expect_success();
}

#[test]
fn the_data_and_the_archive_can_be_elsewhere() {
    let place = published_place();
    place.run(["run", "demo", "-q", "--data", "elsewhere", "--archive", "kept"]).expect_success();
    assert!(place.file("elsewhere/datasets/demo/latest/demo.parquet").is_file());
    assert!(place.file("kept").is_dir() && !place.file("elsewhere/archive").exists());
    place.run(["audit", "revisions", "--data", "output"]).expect_success();
    place.run(["audit", "revisions", "--data", "elsewhere"]).failed_with(1);
    place.run(["diff", "demo", "demo", "--data", "elsewhere"]).expect_success();
}

#[test]
fn a_build_to_a_file_uses_the_format_of_its_extension_and_overwrites_nothing() {
    let place = published_place();
    let rows = read(&place.file("output/datasets/demo/latest/demo.parquet"));
    place.run(["build", "demo", "--output", "rows.parquet"]).expect_success();
    let written = read(&place.file("rows.parquet"));
    assert!(written.columns() == rows.columns());
    place.run(["build", "demo", "--output", "rows.arrow"]).expect_success();
    let file = fs::File::open(place.file("rows.arrow")).unwrap();
    let batches = arrow::ipc::reader::FileReader::try_new(file, None).expect("an Arrow file");
    assert_eq!(batches.map(|batch| batch.expect("rows").num_rows()).sum::<usize>(), rows.num_rows());
    place.run(["build", "demo", "--format", "csv", "--output", "rows.txt"]).expect_success();
    assert_eq!(fs::read_to_string(place.file("rows.txt")).unwrap().lines().count(), rows.num_rows() + 1);
    let shown = place.run(["build", "demo", "--output", "rows.parquet"]).failed_with(1).stderr;
    assert!(shown.starts_with("error: `rows.parquet` already exists\n"), "{shown}");
    assert_eq!(versions(&place), 1);
}

#[test]
fn a_folder_is_no_file_to_build() {
    let place = published_place();
    let before = place.files();
    for folder in ["elsewhere", "output"] {
        let shown = place.run(["build", "demo", "--output", folder]).failed_with(2).stderr;
        assert!(shown.contains("`--data`"), "{folder}: {shown}");
    }
    assert_eq!(place.files(), before);
}
