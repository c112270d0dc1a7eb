//! The sources of a key, and the errors of invalid ones.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::program::{DemoService, Outcome, Place};

fn define(place: &Place, service: &DemoService, source: &str) {
    place.define("it", &format!("[source]\n{source}{}[signals]\nsectors = [\"energy\"]\n", service.source));
}

#[test]
fn a_key_file_is_a_regular_file_of_at_most_64_kib() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    fs::create_dir(place.file("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(place.file("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(place.file("socket")).unwrap();
    fs::write(place.file("long"), "x".repeat((64 << 10) + 1)).unwrap();
    fs::write(place.file("binary"), b"\xff\xfed\0e\0m\0o\0").unwrap();
    let cases = [
        ("folder", "it is a folder\nhint: name the file with the key\n"),
        ("pipe", "it is a pipe\nhint: use `api_key_command` for a key that a program prints\n"),
        ("/dev/zero", "it is a device or a socket\nhint: name a regular file\n"),
        ("long", "it is longer than 64 KiB\nhint: put the key on the first line"),
        ("binary", "it is not UTF-8 text\nhint: save the key as plain text\n"),
    ];
    for (path, expected) in cases {
        define(&place, &service, &format!("api_key_file = \"{path}\"\n"));
        let begun = Instant::now();
        let stderr = place.run(["run", "it"]).failed_with(1).stderr;
        let expected = format!("error: cannot get the API key from `{path}`\n  because: {expected}");
        assert!(stderr.contains(&expected), "{stderr}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{path}");
    }
    define(&place, &service, "api_key_file = \"socket\"\n");
    place.run(["run", "it"]).failed_with(1);
}

#[test]
fn a_relative_path_to_a_key_is_below_the_root_of_the_project() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    fs::write(place.file("key"), "demo\n").unwrap();
    let below = place.file("notebooks/old");
    fs::create_dir_all(&below).unwrap();
    fs::write(below.join("key"), "another\n").unwrap();
    define(&place, &service, "api_key_file = \"key\"\n");
    Outcome::of(place.command(["run", "it", "-q"]).current_dir(&below)).expect_success();
    define(&place, &service, "api_key_command = [\"cat\", \"key\"]\n");
    Outcome::of(place.command(["run", "it", "-q"]).current_dir(&below)).expect_success();
    define(&place, &service, "");
    let mut run = place.command(["run", "it", "-q"]);
    Outcome::of(run.current_dir(&below).env("BELLWETHER_API_KEY_FILE", "key")).expect_success();
    assert!(place.file("output/datasets/it/latest").exists() && !below.join("output").exists());
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_key() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    fs::write(place.file("key"), "\u{feff}demo\r\n").unwrap();
    for source in ["api_key_file = \"key\"\n", "api_key_command = [\"cat\", \"key\"]\n"] {
        define(&place, &service, source);
        place.run(["run", "it", "-q"]).expect_success();
    }
}

#[test]
fn a_key_command_sees_no_other_key_and_prints_at_most_64_kib() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let shell = |script: &str| format!("api_key_command = [\"sh\", \"-c\", \"{script}\"]\n");
    define(&place, &service, &shell("cat; echo ${BELLWETHER_API_KEY-demo}"));
    Outcome::of(place.command(["run", "it", "-q"]).env("BELLWETHER_API_KEY", "another")).expect_success();
    define(&place, &service, &shell("yes"));
    let stderr = place.run(["run", "it"]).failed_with(1).stderr;
    assert!(stderr.contains("the command `sh`\n  because: it is longer than 64 KiB\n"), "{stderr}");
}

#[test]
fn a_hanging_key_command_is_killed_when_the_run_is_interrupted() {
    let place = Place::new();
    let service = DemoService::start(&place, &[]);
    define(&place, &service, "api_key_command = [\"sh\", \"-c\", \"echo > began; sleep 25; echo > ended\"]\n");
    let mut child = place.command(["run", "it", "-q"]).spawn().unwrap();
    let begun = Instant::now();
    while !place.file("began").exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the command never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!place.file("ended").exists());
}
