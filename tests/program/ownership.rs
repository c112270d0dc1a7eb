//! Only Bellwether's own files are removed or overwritten, and links are not followed. Decoys in temporary folders have
//! every name that the program might look for.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::scripted::{Scripted, json, reply};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// The name of an old run.
const RUN: &str = "20201120T213000Z-7f3a";

/// A foreign folder with files two days old.
fn decoy(place: &Place) -> PathBuf {
    let decoy = place.file("decoy");
    for folder in ["old", RUN, ".partial", "sealed", "it", ".locks"] {
        fs::create_dir_all(decoy.join(folder)).expect("a file of the test");
        for name in ["precious", "0.answers", "answers.jsonl", "run.json", "it", "it.csv"] {
            fs::write(decoy.join(folder).join(name), "precious").expect("a file of the test");
            fs::write(decoy.join(name).with_extension("decoy"), "precious").expect("a file of the test");
        }
        age(&decoy.join(folder));
    }
    decoy
}

/// Makes something two days old.
fn age(path: &Path) {
    File::open(path)
        .expect("a file of the test")
        .set_modified(SystemTime::now() - Duration::from_secs(48 * 3600))
        .expect("a file of the test");
}

/// Every file below a folder, with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).expect("a file of the test").map(|entry| entry.expect("a file of the test").path())
    {
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), fs::read(&path).expect("a file of the test"))),
        }
    }
    found.sort();
    found
}

fn run(place: &Place) -> Outcome {
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY]))
}

#[test]
fn a_link_in_place_of_a_folder_is_refused_and_its_target_is_untouched() {
    let service = Scripted::of_histories(|_| json("200 OK", "not JSON"));
    let folders = [
        "archive",
        "archive/vendor",
        "archive/vendor/.partial",
        "archive/vendor/.locks",
        "archive/.locks",
        "datasets",
        "datasets/it",
        "evidence",
        ".partial/RUN",
    ];
    for folder in folders {
        let place = Place::new();
        let decoy = decoy(&place);
        let before = contents(&decoy);
        let link = match folder {
            ".partial/RUN" => place.file("output/archive/vendor/.partial").join(RUN),
            folder => place.file("output").join(folder),
        };
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&decoy, &link).unwrap();
        // These are opened only after the answers.
        let outcome = if folder.starts_with("datasets") || folder == "archive/vendor/.locks" {
            let demo = DemoService::start(&place, &["--today", "2026-11-20"]);
            place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", demo.source));
            run(&place)
        } else {
            place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
            run(&place)
        };
        let stderr = outcome.failed_with(1).stderr;
        let shown = link.strip_prefix(place.path()).unwrap().display();
        let expected = format!("error: `{shown}` is a symbolic link, which is not followed\nhint: remove the link;");
        assert!(stderr.starts_with(&expected), "{folder}: {stderr}");
        assert_eq!(contents(&decoy), before, "{folder}");
        assert!(link.is_symlink(), "{folder}");
    }
}

#[test]
fn no_command_reads_a_service_by_a_link_or_takes_it_for_none() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    run(&place).expect_success();
    let archive = place.file("output/archive");
    fs::rename(archive.join("demo"), place.file("moved")).unwrap();
    symlink("../../moved", archive.join("demo")).unwrap();
    for words in
        ["list runs", "build it", "run it", "verify", "audit revisions it", "verify --repair", "prune --dry-run"]
    {
        let refused = place.run(words.split(' ')).failed_with(1).stderr;
        assert!(
            refused.contains("`output/archive/demo` is a symbolic link, which is not followed"),
            "{words}: {refused}"
        );
    }
}

#[test]
fn the_user_may_link_the_output_and_the_archive() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    for name in ["disk", "tape"] {
        fs::create_dir(place.file(name)).unwrap();
    }
    symlink("disk", place.file("output")).unwrap();
    symlink("tape", place.file("kept")).unwrap();
    let mut command = place.command(["run", "it", "-q", "--archive", "kept"]);
    Outcome::of(command.envs([KEY])).expect_success();
    // Another archive begins another history.
    Outcome::of(place.command(["run", "it", "-q", "--new-archive"]).envs([KEY])).expect_success();
    assert!(place.file("disk/datasets/it/latest/it.parquet").exists());
    assert!(place.file("disk/archive").exists() && place.file("tape/.locks/it").exists());
}

#[test]
fn old_interrupted_runs_lose_only_files_of_known_names() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    let partial = place.file("output/archive/vendor/.partial");
    let old = |name: &str, files: &[&str]| {
        fs::create_dir_all(partial.join(name)).unwrap();
        files.iter().for_each(|file| fs::write(partial.join(name).join(file), "half").unwrap());
        age(&partial.join(name));
    };
    old("somebody-s", &["0.answers", "answers.jsonl"]);
    old(RUN, &["0.answers", "answers.jsonl"]);
    old("20201121T213000Z-7f3a", &["0.answers", "thesis.tex"]);
    old("20201122T213000Z-7f3a", &["17.answers"]);
    let decoy = decoy(&place);
    let before = contents(&decoy);
    symlink(&decoy, partial.join("20201122T213000Z-7f3a/sealed")).unwrap();
    age(&partial.join("20201122T213000Z-7f3a"));
    run(&place).expect_success();
    let left: Vec<PathBuf> = contents(&partial.join("somebody-s")).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!partial.join(RUN).exists());
    assert!(partial.join("20201121T213000Z-7f3a/thesis.tex").exists());
    assert!(!partial.join("20201121T213000Z-7f3a/0.answers").exists());
    assert!(partial.join("20201122T213000Z-7f3a/sealed").is_symlink());
    assert_eq!(contents(&decoy), before);
}

/// A place with an interrupted run that has one answer, the folder of the run, and the service, which works again.
fn interrupted_run() -> (Place, PathBuf, Scripted) {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.target.contains("sector=energy") {
        true => json("200 OK", HISTORY),
        false if request.before == 0 => reply("503 Service Unavailable", "Retry-After: 30\r\n", b""),
        false => json("200 OK", &HISTORY.replace("XOM", "AAPL")),
    });
    let source = format!("[source]\npatience = \"1s\"\nconnections = 1\n{}", service.source());
    place.define(
        "it",
        &format!("{source}[signals]\nsectors = [\"energy\", \"technology\"]\n[sentiment]\narticles = false\n"),
    );
    run(&place).failed_with(75);
    let runs = fs::read_dir(place.file("output/archive/vendor/.partial")).expect("a file of the test");
    let run = runs.map(|entry| entry.expect("a file of the test").path()).next().expect("a file of the test");
    (place, run, service)
}

const HISTORY: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5}]}}"#;

#[test]
fn an_interrupted_run_that_a_clock_dated_that_was_ahead_is_begun_anew() {
    let (place, unfinished, service) = interrupted_run();
    let journal = unfinished.join("answers.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let ahead = text.replace("\"observed_at\":\"2", "\"observed_at\":\"3");
    assert_ne!(ahead, text);
    fs::write(&journal, ahead).unwrap();
    let outcome = run(&place).expect_success();
    assert!(outcome.stderr.contains("the clock was ahead during the interrupted run `"), "{}", outcome.stderr);
    assert_eq!(service.histories(), 4, "everything is requested again");
    run(&place).expect_success();
}

#[test]
fn an_interrupted_run_whose_record_names_another_run_is_not_resumed() {
    for name in ["x/../../../elsewhere", "../../../elsewhere", "/elsewhere", RUN, ""] {
        let (place, unfinished, service) = interrupted_run();
        let record = unfinished.join("unfinished.json");
        let mut origin: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        origin["run"] = name.into();
        fs::write(&record, origin.to_string()).unwrap();
        run(&place).expect_success();
        assert_eq!(service.histories(), 4, "{name}: everything is requested again");
        let published = place.files().into_iter().filter(|file| file.ends_with("run.json")).count();
        assert_eq!(published, 2, "{name}: one of them in part");
        assert!(unfinished.join("0.answers").exists(), "{name}: it stays as it is");
    }
}

#[test]
fn answers_are_read_from_and_written_to_files_of_the_run_only() {
    let (place, unfinished, service) = interrupted_run();
    let journal = unfinished.join("answers.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::rename(unfinished.join("0.answers"), place.file("elsewhere")).unwrap();
    let elsewhere = place.file("elsewhere").display().to_string();
    for name in ["../../../../elsewhere", elsewhere.as_str()] {
        let planted = text.replace("\"0.answers\"", &format!("\"{name}\""));
        assert_ne!(planted, text);
        fs::write(&journal, planted).unwrap();
        let listed = place.run(["list", "runs"]).expect_success().stdout;
        assert!(listed.contains("unfinished"), "{listed}");
    }
    run(&place).expect_success();
    assert_eq!(service.histories(), 4, "what is not in the run's own files is requested again");

    for kind in ["a link", "a hard link"] {
        let (place, unfinished, service) = interrupted_run();
        let (journal, decoy) = (unfinished.join("answers.jsonl"), place.file("decoy"));
        fs::rename(&journal, &decoy).unwrap();
        let before = fs::read(&decoy).unwrap();
        match kind {
            "a link" => symlink(&decoy, &journal).unwrap(),
            _ => fs::hard_link(&decoy, &journal).unwrap(),
        }
        let request = service.count();
        let shown = run(&place).failed_with(1).stderr;
        assert!(shown.contains("answers.jsonl`"), "{shown}");
        assert_eq!(fs::read(&decoy).unwrap(), before, "{kind}");
        assert_eq!(service.count(), request, "{kind}");
    }
}

#[test]
fn a_version_record_that_names_a_file_elsewhere_is_refused() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let format = "[output]\nformat = \"csv\"\n";
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n{format}", service.source));
    run(&place).expect_success();
    fs::write(place.file("precious.csv"), "precious").unwrap();
    let absolute = place.file("precious.csv").display().to_string();
    for name in [&absolute, "../../../../precious.csv", "mine.csv"] {
        let latest = fs::canonicalize(place.file("output/datasets/it/latest")).unwrap();
        let record = latest.join("dataset.json");
        let written = fs::read_to_string(&record).unwrap();
        fs::write(&record, written.replace("\"it.csv\"", &format!("\"{name}\""))).unwrap();
        for command in [&["verify"][..], &["diff", "it", "it"]] {
            let outcome = place.run(command).failed_with(1);
            let told = outcome.stdout + &outcome.stderr;
            assert!(told.contains(&format!("`{name}` is not a file of a version\n")), "{told}");
        }
        // Its files are not reused.
        place.run(["build", "it"]).expect_success();
        fs::write(&record, &written).unwrap();
    }
    assert_eq!(fs::read_to_string(place.file("precious.csv")).unwrap(), "precious");
}

#[test]
fn files_behind_a_link_are_not_reused() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
    run(&place).expect_success();
    let versions = place.file("output/datasets/it");
    let version = fs::canonicalize(versions.join("latest")).unwrap();
    let elsewhere = place.file("elsewhere").join(version.file_name().unwrap());
    fs::create_dir(place.file("elsewhere")).unwrap();
    fs::rename(&version, &elsewhere).unwrap();
    fs::remove_file(versions.join("latest")).unwrap();
    symlink(&elsewhere, versions.join("latest")).unwrap();
    place.run(["build", "it"]).expect_success();
    let rows = fs::metadata(versions.join("latest/it.parquet")).unwrap();
    assert_eq!(rows.nlink(), 1, "it is a file of its own");
    assert_eq!(fs::read_link(versions.join("latest")).unwrap().components().count(), 1);
    assert_eq!(contents(&elsewhere).iter().filter(|(path, _)| path.ends_with("it.parquet")).count(), 1);
}

/// An archive of two packed runs, and the runs' folders.
fn packed_archive() -> (Place, Vec<PathBuf>) {
    let place = Place::new();
    for today in ["2026-11-19", "2026-11-20"] {
        let service = DemoService::start(&place, &["--today", today]);
        place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
        run(&place).expect_success();
    }
    place.pack();
    let runs = folders(&place.file("output/archive/vendor"), "run=");
    assert_eq!(runs.len(), 2);
    (place, runs)
}

/// The folders with a name prefix.
fn folders(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_so = |path: &PathBuf| {
        path.file_name().expect("a file of the test").to_str().expect("a file of the test").starts_with(prefix)
    };
    fs::read_dir(folder)
        .expect("a file of the test")
        .map(|entry| entry.expect("a file of the test").path())
        .filter(is_so)
        .collect()
}

#[test]
fn a_packed_run_that_contains_a_user_file_is_not_pruned() {
    let (place, runs) = packed_archive();
    fs::write(runs[1].join("notes.txt"), "mine").unwrap();
    let before = contents(&runs[1]);
    place.age_packs();
    let stderr = place.run(["prune"]).failed_with(1).stderr;
    assert!(stderr.contains("because: `notes.txt` in it was not made by bellwether\n"), "{stderr}");
    assert!(stderr.ends_with("hint: move your own files to another folder\n"), "{stderr}");
    assert_eq!(contents(&runs[1]), before);
    let left: Vec<&PathBuf> = runs.iter().filter(|run| run.exists()).collect();
    assert_eq!(left, [&runs[1]], "it does not stop the rest");
    fs::rename(runs[1].join("notes.txt"), place.file("notes.txt")).unwrap();
    place.prune_packed();
    assert!(runs.iter().all(|run| !run.exists()));
}

#[test]
fn leftovers_of_a_killed_pack_or_prune_are_removed_by_the_next_one() {
    let (place, runs) = packed_archive();
    let partial = place.file("output/archive/vendor/.partial");
    let names = [
        ".removing-run=20201120T213000Z-7f3a",
        ".removing-pack=20201120T213000Z-7f3a",
        ".packing-20201120T213000Z-7f3a-0123abcd",
        ".packing-20201121T213000Z-7f3a-0123abcd",
        ".packing-20201122T213000Z-7f3a-0123abcd",
        ".packing-of-somebody-else",
        ".removing-run=mine",
    ];
    for command in ["pack", "prune"] {
        for name in names {
            fs::create_dir_all(partial.join(name)).unwrap();
            fs::write(partial.join(name).join("signals.parquet"), "half").unwrap();
            age(&partial.join(name));
        }
        // One is being written, and one was just started.
        let held = File::open(partial.join(names[3])).unwrap();
        held.lock().unwrap();
        File::open(partial.join(names[4])).unwrap().set_modified(SystemTime::now()).unwrap();
        if command == "pack" {
            let service = DemoService::start(&place, &["--today", "2026-11-21"]);
            place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source));
            run(&place).expect_success();
            place.pack();
        } else {
            place.prune_packed();
        }
        let is_there: Vec<bool> = names.iter().map(|name| partial.join(name).exists()).collect();
        assert_eq!(is_there, [false, false, false, true, true, true, true], "{command}");
    }
    assert!(runs.iter().all(|run| !run.exists()));
    place.run(["verify"]).expect_success();
}

#[test]
fn a_run_that_exists_only_in_a_pack_is_not_resumed() {
    let (place, runs) = packed_archive();
    let run_name = runs[1].file_name().unwrap().to_str().unwrap().trim_start_matches("run=").to_owned();
    place.prune_packed();
    // It was killed after renaming its folder, before removing its answers.
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let text = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source);
    place.define("it", &text);
    let unfinished = place.file("output/archive/vendor/.partial").join(&run_name);
    fs::create_dir_all(&unfinished).unwrap();
    let now = chrono::DateTime::<chrono::Utc>::from(SystemTime::now()).to_rfc3339();
    let origin = serde_json::json!({
        "layout": 10, "run": run_name, "definition": "it", "service": { "name": "vendor" },
        "definition_digest": blake3::hash(text.as_bytes()).to_hex().to_string(), "started_at": now,
    });
    fs::write(unfinished.join("unfinished.json"), origin.to_string()).unwrap();
    run(&place).expect_success();
    assert!(!unfinished.exists());
    assert!(
        !folders(&place.file("output/archive/vendor"), "run=")
            .iter()
            .any(|path| path.ends_with(format!("run={run_name}")))
    );
    place.run(["verify"]).expect_success();
}

/// Every file and folder below a folder, with its modification time.
fn times(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = vec![(
        folder.to_owned(),
        fs::symlink_metadata(folder).expect("a file of the test").modified().expect("a file of the test"),
    )];
    for path in fs::read_dir(folder).expect("a file of the test").map(|entry| entry.expect("a file of the test").path())
    {
        match path.is_dir() {
            true => found.extend(times(&path)),
            false => found.push((
                path.clone(),
                fs::symlink_metadata(&path).expect("a file of the test").modified().expect("a file of the test"),
            )),
        }
    }
    found.sort();
    found
}

#[test]
fn readers_write_nothing_to_an_archive_and_take_no_lock() {
    let (place, _) = packed_archive();
    let archive = place.file("output/archive");
    let held = File::open(archive.join(".locks/it")).unwrap();
    held.lock().unwrap();
    let before = times(&archive);
    let readers: [&[&str]; 12] = [
        &["verify"],
        &["list", "runs"],
        &["build", "it"],
        &["build", "it", "--format", "csv", "--output", "-"],
        &["report", "--text", "it"],
        &["show", "it"],
        &["report", "it"],
        &["prune", "--dry-run"],
        &["audit", "leak", "it"],
        &["audit", "quality", "it"],
        &["audit", "revisions", "it"],
        &["audit", "sources", "it"],
    ];
    for reader in readers {
        let outcome = place.run(reader);
        assert!(outcome.code != Some(75), "{reader:?}: {outcome:?}");
        assert_eq!(times(&archive), before, "{reader:?}");
    }
}
