//! Full disks, folders without write permission, and folders that disappear: errors name the file and the reason,
//! existing data is unchanged, and the same command succeeds once the disk is writable again.
//!
//! A full disk is a small tmpfs in its own namespace, so no test needs root.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::support::program::{Outcome, Place, drain};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bellwether");
const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Mounts disks over the output and its subfolders, copies `before` onto them, limits the free space of one of them,
/// runs the program, and copies the result to `left`.
const ON_A_SMALL_DISK: &str = "
    disk() { mount -t tmpfs -o mode=755,size=64m,nr_inodes=10000 none output$1 && cp -a before$1/. output$1/; }
    used() { df -P $1 output$FOLDER | awk 'NR == 2 { print $3 }'; }
    disk && disk /datasets || exit 99
    case $LIMIT in
        pages) mount -o remount,size=$(($(used -k) + 4 * ROOM))k output$FOLDER ;;
        files) mount -o remount,nr_inodes=$(($(used -i) + ROOM)) output$FOLDER ;;
        writing) mount -o remount,ro output$FOLDER ;;
    esac || exit 99
    \"$PROGRAM\" ${COMMAND:-run it -q}
    code=$?
    cp -a output left || exit 99
    exit $code";

/// A command that runs a script in a namespace where it may mount.
fn in_a_namespace(place: &Place, script: &str) -> Command {
    let ways: [&[&str]; 3] = [&["unshare", "-rm"], &["unshare", "-m"], &["sudo", "-nE", "unshare", "-m"]];
    let may_mount = |way: &&&[&str]| {
        let mut probe = Command::new(way[0]);
        probe.args(&way[1..]).args(["mount", "-t", "tmpfs", "none", "/mnt"]).stdout(Stdio::null());
        probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let way = ways.iter().find(may_mount).expect("this test mounts a small disk: it needs user namespaces, or root");
    let mut command = Command::new(way[0]);
    command.args(&way[1..]).args(["sh", "-c", script]).current_dir(place.path());
    command.env("PROGRAM", PROGRAM).envs([KEY]);
    command
}

/// The answers of two days, the second with more and other values.
fn answer(request: &ScriptedRequest, is_second: bool) -> Vec<Step> {
    let days = 40 + usize::from(is_second);
    let body = match request.target.strip_prefix("/b/news_articles/") {
        Some(rest) => {
            let ticker = rest.split('?').next().unwrap_or_default();
            let article = |day: usize| {
                let date = format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
                format!("{{\"date\":\"{date}\",\"title\":\"{ticker}\",\"score\":0.{day},\"link\":\"https://{day}\"}}")
            };
            format!("[{}]", (30..days).rev().map(article).collect::<Vec<_>>().join(","))
        }
        None => {
            let entry = |day: usize| {
                let date = format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
                let signal = if is_second && day == 30 { "sell" } else { "buy" };
                format!("{{\"date\":\"{date}T00:00:00+00:00\",\"signal\":\"{signal}\",\"confidence\":0.{day}}}")
            };
            let entries = (1..days).rev().map(entry).collect::<Vec<_>>().join(",");
            let of_ticker = |ticker: &str| {
                format!(
                    "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\
                     \"predictions\":[{entries}]}}"
                )
            };
            format!("{{{},{}}}", of_ticker("CVX"), of_ticker("XOM"))
        }
    };
    json("200 OK", &body)
}

/// A place with a run of the first day, on the second day.
struct SecondDay {
    place: Place,
    /// The dataset of the second day without failures.
    expected: Vec<u8>,
    // Answers for as long as the test runs.
    _service: Scripted,
}

impl SecondDay {
    fn new() -> Self {
        let is_second = Arc::new(AtomicBool::new(false));
        let of_script = Arc::clone(&is_second);
        let service = Scripted::start(move |request| answer(request, of_script.load(Ordering::SeqCst)));
        let place = Place::new();
        let source = service.source();
        let formats = "[output]\nformat = [\"parquet\", \"arrow\", \"csv\"]\n";
        place.define("it", &format!("[source]\nconnections = 1\n{source}[signals]\nsectors = [\"energy\"]\n{formats}"));
        let mut day = Self { place, expected: Vec::new(), _service: service };
        Outcome::of(&mut day.run()).expect_success();
        day.copy("output", "before");
        is_second.store(true, Ordering::SeqCst);
        Outcome::of(&mut day.run()).expect_success();
        day.expected = day.csv();
        assert_ne!(day.expected, fs::read(day.place.file("before/datasets/it/latest/it.csv")).expect("a dataset"));
        day.begin_again();
        day
    }

    fn run(&self) -> Command {
        let mut command = self.place.command(["run", "it", "-q"]);
        command.envs([KEY]);
        command
    }

    /// The run, as started by another program.
    fn run_under(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(PROGRAM).current_dir(self.place.path()).envs([KEY]);
        command
    }

    fn csv(&self) -> Vec<u8> {
        fs::read(self.place.file("output/datasets/it/latest/it.csv")).expect("a dataset")
    }

    fn copy(&self, from: &str, to: &str) {
        let copied = Command::new("cp").args(["-a", from, to]).current_dir(self.place.path()).status();
        assert!(copied.expect("cp starts").success());
    }

    /// Restores the output of the first day.
    fn begin_again(&self) {
        fs::remove_dir_all(self.place.file("output")).expect("it can be removed");
        self.copy("before", "output");
    }

    /// Runs with a folder that has room for this many more pages or files, and keeps the result as the output.
    fn run_on_a_small_disk(&self, folder: &str, limit: &str, room: usize) -> Outcome {
        let mut command = in_a_namespace(&self.place, ON_A_SMALL_DISK);
        let outcome = Outcome::of(command.env("FOLDER", folder).env("LIMIT", limit).env("ROOM", room.to_string()));
        assert_ne!(outcome.code, Some(99), "{}", outcome.stderr);
        fs::remove_dir_all(self.place.file("output")).expect("it can be removed");
        fs::rename(self.place.file("left"), self.place.file("output")).expect("it was left");
        outcome
    }

    /// Checks that a failed run named the file and the reason, damaged nothing, and resumes on a writable disk.
    #[track_caller]
    fn check_failure(&self, outcome: Outcome, reason: &str) -> PathBuf {
        let stderr = outcome.failed_with(1).stderr;
        let lines: Vec<&str> = stderr.lines().collect();
        let path = lines[0].strip_prefix("error: cannot write `").and_then(|rest| rest.strip_suffix('`'));
        let path = PathBuf::from(path.unwrap_or_else(|| panic!("{stderr}")));
        assert_eq!(lines[1], format!("  because: {reason}"), "{stderr}");
        assert!(lines[2..].iter().all(|line| line.starts_with("hint: ")) && lines.len() <= 3, "{stderr}");

        let before = self.place.file("before");
        // Each run rewrites the lock holder.
        let is_lock = |file: &&Path| file.starts_with("archive/.locks") || file.starts_with("archive/vendor/.locks");
        let files = self.place.files();
        for file in files.iter().filter_map(|file| file.strip_prefix("before").ok()).filter(|file| !is_lock(file)) {
            let (was, is) = (before.join(file), self.place.file("output").join(file));
            if was.is_symlink() {
                assert_eq!(fs::read_link(was).ok(), fs::read_link(is).ok(), "{}", file.display());
                continue;
            }
            let (was, is) = (fs::read(was).expect("it was there"), fs::read(is).expect("it is there"));
            // Each run adds a line to its journal.
            let is_kept = if file.starts_with("journal") { is.starts_with(&was) } else { is == was };
            assert!(is_kept, "{}", file.display());
        }
        let hidden = |path: &&PathBuf| path.starts_with("output/datasets") && path.to_string_lossy().contains("/.");
        assert_eq!(self.place.files().iter().find(hidden), None, "{stderr}");
        self.place.run(["verify"]).expect_success();
        self.check_success(Outcome::of(&mut self.run()));
        path
    }

    #[track_caller]
    fn check_success(&self, outcome: Outcome) {
        outcome.expect_success();
        assert!(self.csv() == self.expected, "the dataset is not what it is where nothing fails");
    }
}

/// A path without the names of runs, answers and versions.
fn kind(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_of = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
    match name {
        _ if is_of(".locks") => "a lock".to_owned(),
        _ if is_of(".partial") => "an unfinished run".to_owned(),
        _ if name.ends_with(".answers") => "answers".to_owned(),
        _ if name.starts_with(".partial-") => "a version".to_owned(),
        _ if name.starts_with(".latest-") => "latest".to_owned(),
        name if name.starts_with("run=") => "a sealed run".to_owned(),
        name => name,
    }
}

/// The paths that a run creates in the archive and in the dataset.
const FILES: [&[&str]; 2] = [
    &[
        "unfinished.json",
        "answers",
        "answers.jsonl",
        "signals.parquet",
        "articles.parquet",
        "summaries.parquet",
        "sentiment_history.parquet",
        "listings.parquet",
        "answers.parquet",
        "rejects.parquet",
        "requests.parquet",
        "run.json",
    ],
    &["it.parquet", "it.arrow", "it.csv", "dataset.json"],
];

#[test]
fn a_full_disk_fails_the_run_at_any_file_and_damages_nothing() {
    let day = SecondDay::new();
    let full = "No space left on device (os error 28)";
    // Folders and links need no page.
    let no_pages: [&[&str]; 2] = [&["an unfinished run", "sealed"], &["a version", "latest"]];
    for (folder, limit) in [("", "pages"), ("", "files"), ("/datasets", "pages"), ("/datasets", "files")] {
        let mut failed = BTreeSet::new();
        for room in 0.. {
            let outcome = day.run_on_a_small_disk(folder, limit, room);
            if outcome.code == Some(0) {
                day.check_success(outcome);
                break;
            }
            failed.insert(kind(&day.check_failure(outcome, full)));
            day.begin_again();
        }
        day.begin_again();
        let of = usize::from(folder == "/datasets");
        let no_pages = if limit == "files" { no_pages[of] } else { &[] };
        let missed: Vec<_> = FILES[of].iter().chain(no_pages).filter(|file| !failed.contains(**file)).collect();
        assert!(missed.is_empty(), "{missed:?} never failed for want of {limit}, only {failed:?}");
    }
}

#[test]
fn a_read_only_disk_fails_the_run_and_damages_nothing() {
    let day = SecondDay::new();
    for (folder, expected) in [("", "a lock"), ("/datasets", "a version")] {
        let outcome = day.run_on_a_small_disk(folder, "writing", 0);
        assert_eq!(kind(&day.check_failure(outcome, "Read-only file system (os error 30)")), expected);
        day.begin_again();
    }
}

#[test]
fn a_full_disk_can_be_pruned_and_only_what_is_gone_is_printed() {
    let day = SecondDay::new();
    Outcome::of(&mut day.run()).expect_success();
    let definition = day.place.file("pipelines/it.toml");
    let text = fs::read_to_string(&definition).unwrap();
    fs::write(&definition, text.replace("[output]", "[output]\nkeep = 1")).unwrap();
    // What was just replaced would stay.
    let an_hour_ago = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    for version in fs::read_dir(day.place.file("output/datasets/it")).unwrap().flatten() {
        let record = File::open(version.path().join("dataset.json"));
        record.and_then(|record| record.set_modified(an_hour_ago)).unwrap();
    }
    day.copy("output", "before-pruning");
    let versions = || {
        let entries = fs::read_dir(day.place.file("output/datasets/it")).unwrap().flatten();
        entries.filter(|entry| entry.path().is_dir() && !entry.path().is_symlink()).count()
    };
    assert_eq!(versions(), 2);
    let prune = |limit: &str| {
        let mut command = in_a_namespace(&day.place, &ON_A_SMALL_DISK.replace("before$1", "before-pruning$1"));
        command.envs([("FOLDER", ""), ("LIMIT", limit), ("ROOM", "0"), ("COMMAND", "prune")]);
        let outcome = Outcome::of(&mut command);
        assert_ne!(outcome.code, Some(99), "{}", outcome.stderr);
        fs::remove_dir_all(day.place.file("output")).expect("it can be removed");
        fs::rename(day.place.file("left"), day.place.file("output")).expect("it was left");
        outcome
    };
    for (limit, reason) in [("writing", "Read-only file system"), ("files", "No space left on device")] {
        let outcome = prune(limit).failed_with(1);
        assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
        assert_eq!((outcome.stdout.as_str(), versions()), ("nothing was removed\n", 2));
    }
    let pruned = prune("pages").expect_success().stdout;
    assert!(pruned.starts_with("removed ") && pruned.contains("\nfreed "), "{pruned}");
    assert_eq!(versions(), 1);
}

#[test]
fn a_file_size_limit_fails_the_run_and_damages_nothing() {
    let day = SecondDay::new();
    let mut failed = BTreeSet::new();
    // In blocks of 512 bytes.
    for limit in (0..).step_by(4) {
        let script = format!("ulimit -f {limit}; exec \"$0\" run it -q");
        let outcome = Outcome::of(&mut day.run_under(&["sh", "-c", &script]));
        if outcome.code == Some(0) {
            day.check_success(outcome);
            break;
        }
        failed.insert(kind(&day.check_failure(outcome, "File too large (os error 27)")));
        day.begin_again();
    }
    // In ascending order.
    let larger = ["it.arrow", "answers", "a lock"];
    assert!(larger.iter().all(|file| failed.contains(*file)), "{failed:?}");
}

/// A prefix that drops root's permission to write anywhere; empty if the tests are not run as root.
fn without_power() -> &'static [&'static str] {
    let folder = tempfile::tempdir().expect("a folder for a test");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).expect("it is ours");
    match fs::write(folder.path().join("file"), "") {
        Ok(()) => &["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"],
        Err(_) => &[],
    }
}

#[test]
fn an_unwritable_folder_fails_the_run_and_damages_nothing() {
    let day = SecondDay::new();
    for (folder, expected) in [
        ("archive/vendor/.partial", "an unfinished run"),
        ("archive/vendor", "a sealed run"),
        ("datasets/it", "a version"),
    ] {
        let path = day.place.file("output").join(folder);
        fs::set_permissions(&path, Permissions::from_mode(0o555)).expect("it is ours");
        let outcome =
            Outcome::of(&mut day.run_under(&[without_power(), &["sh", "-c", "exec \"$0\" run it -q"]].concat()));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
        let hint = "hint: make it writable for you, or choose another folder: `--data` names that of all output\n";
        assert!(outcome.stderr.ends_with(hint), "{}", outcome.stderr);
        assert_eq!(kind(&day.check_failure(outcome, "Permission denied (os error 13)")), expected);
        day.begin_again();
    }
}

#[test]
fn what_may_not_be_entered_is_not_taken_for_absent() {
    let day = SecondDay::new();
    Outcome::of(&mut day.run()).expect_success();
    let output = day.place.file("output");
    let sealed =
        fs::read_dir(output.join("archive/vendor")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let run = sealed.into_iter().find(|path| path.to_string_lossy().contains("/run=")).expect("a run");
    let version = fs::canonicalize(output.join("datasets/it/latest")).expect("a version");
    let (archive, datasets) =
        (["build it --output - --format csv", "list runs", "verify"], ["show it", "list", "verify"]);
    for (folder, commands) in [
        (run, archive),
        (output.join("archive/vendor"), archive),
        (version, datasets),
        (output.join("datasets/it"), datasets),
        (output.join("datasets"), datasets),
    ] {
        fs::set_permissions(&folder, Permissions::from_mode(0o000)).expect("it is ours");
        for words in commands {
            let mut command =
                day.run_under(&[without_power(), &["sh", "-c", &format!("exec \"$0\" {words}")]].concat());
            let refused = Outcome::of(&mut command).failed_with(1);
            let reason = "\n  because: Permission denied (os error 13)\n";
            assert!(refused.stderr.contains(reason), "{words}, {}: {}", folder.display(), refused.stderr);
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    }
    day.place.run(["verify"]).expect_success();
}

/// Waits until a condition holds.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_deleted_output_folder_fails_the_run_and_the_next_one_recreates_it() {
    let is_gone = Arc::new(AtomicBool::new(true));
    let of_script = Arc::clone(&is_gone);
    let service = Scripted::start(move |request| {
        let mut steps = answer(request, false);
        let Some(Step::Send(reply)) = steps.pop() else { return steps };
        wait_until("nothing vanishes", || request.target.starts_with("/a/") || of_script.load(Ordering::SeqCst));
        let (first, rest) = reply.split_at(reply.len() / 2);
        let wait = if of_script.load(Ordering::SeqCst) { 0 } else { 200 };
        vec![Step::Send(first.to_vec()), Step::Wait(Duration::from_millis(wait)), Step::Send(rest.to_vec())]
    });
    let definition =
        format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n[output]\nformat = \"csv\"\n", service.source());
    let csv = |place: &Place| fs::read(place.file("output/datasets/it/latest/it.csv")).expect("a dataset");
    let undisturbed = Place::new();
    undisturbed.define("it", &definition);
    Outcome::of(undisturbed.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    // In the middle of the first answer, and before the second.
    for (folder, requests) in ["output", "output/archive", "output/archive/vendor", "output/archive/vendor/.partial"]
        .map(|it| [(it, 1), (it, 2)])
        .concat()
    {
        let place = Place::new();
        place.define("it", &definition);
        is_gone.store(false, Ordering::SeqCst);
        let before = service.count();
        let mut command = place.command(["run", "it", "-q"]);
        let mut child = command.envs([KEY]).stderr(Stdio::piped()).spawn().expect("it starts");
        wait_until("nothing is requested", || service.count() >= before + requests);
        fs::rename(place.file(folder), place.file("gone")).expect("it is there");
        is_gone.store(true, Ordering::SeqCst);
        let stderr = drain(child.stderr.take());
        assert_eq!(child.wait().expect("it ended").code(), Some(1), "{stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines[0].starts_with("error: cannot write `output/archive/vendor/."), "{stderr}");
        assert_eq!(lines[1..], ["  because: No such file or directory (os error 2)"], "{stderr}");
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
        assert!(csv(&place) == csv(&undisturbed), "{folder}");
    }
}

#[test]
fn a_limit_on_open_files_is_not_reported_as_a_bug() {
    let day = SecondDay::new();
    for limit in [5, 6, 7] {
        let script = format!("ulimit -n {limit}; exec \"$0\" run it -q");
        let outcome = Outcome::of(&mut day.run_under(&["sh", "-c", &script]));
        let is_told = outcome.stderr.is_empty() || outcome.stderr.contains("open files");
        assert!(outcome.code != Some(0) && is_told, "{limit}: {outcome:?}");
    }
    day.check_success(Outcome::of(&mut day.run()));
    day.begin_again();
    for limit in [8, 12, 16, 24, 32] {
        let script = format!("ulimit -n {limit}; exec \"$0\" run it -q");
        let outcome = Outcome::of(&mut day.run_under(&["sh", "-c", &script]));
        if outcome.code == Some(0) {
            day.check_success(outcome);
        } else {
            assert!(outcome.stderr.contains("because: Too many open files (os error 24)\n"), "{}", outcome.stderr);
            assert!(!outcome.stderr.contains("defect"), "{}", outcome.stderr);
            day.check_success(Outcome::of(&mut day.run()));
        }
        day.begin_again();
    }
}

#[test]
fn a_store_in_a_folder_without_space_is_told_as_what_it_is() {
    for size in ["4k", "16k", "200k"] {
        let place = Place::new();
        place.define("it", "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n");
        let script = format!(
            "mkdir store && mount -t tmpfs -o size={size} none store && \
             exec \"$PROGRAM\" run it -q --store \"file://$PWD/store\""
        );
        let outcome = Outcome::of(&mut in_a_namespace(&place, &script));
        assert_ne!(outcome.code, Some(0), "{size}: {outcome:?}");
        assert!(outcome.stderr.contains("storage space"), "{size}: {}", outcome.stderr);
        let is_misled = ["credentials", "conditional"].into_iter().any(|word| outcome.stderr.contains(word));
        assert!(!is_misled, "{size}: {}", outcome.stderr);
    }
}

/// Nobody writes to a pipe of these tests, so whoever opens one waits for ever.
#[test]
fn what_is_no_regular_file_is_never_waited_for() {
    let place = Place::new();
    let service = crate::support::program::DemoService::start(&place, &["--today", "2026-11-20"]);
    let source = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source);
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
    let run = |arguments: &[&str]| {
        let program = place.command(arguments);
        let mut command = Command::new("timeout");
        command.arg("60").arg(program.get_program()).args(program.get_args()).current_dir(place.path());
        Outcome::of(command.env("BELLWETHER_API_KEY", "demo"))
    };
    place.define("it", &source);
    run(&["run", "it", "-q"]).expect_success();
    for name in ["pipe", "pipe.csv", "pipe.json", "pipe.parquet"] {
        pipe(&place.file(name));
    }
    for (name, lines) in [
        ("identity", "[identity]\nfile = \"pipe\"\n"),
        ("sessions", "[calendar]\nsessions = \"pipe\"\n"),
        ("prices", "[prices]\nfile = \"pipe\"\n"),
    ] {
        place.define(name, &format!("{source}{lines}"));
        for command in ["check", "run"] {
            let outcome = run(&[command, name]);
            assert_ne!(outcome.code, Some(124), "{command} {name} waits");
            assert!(name == "prices" || outcome.stderr.contains("pipe"), "{command} {name}: {outcome:?}");
        }
        fs::remove_file(place.file(&format!("pipelines/{name}.toml"))).expect("a definition of the test");
    }
    for name in ["pipe.csv", "pipe.json", "pipe.parquet"] {
        let request = "signals-history-all?sector=energy&period=15d&regime=neutral";
        let at = "2026-11-18T00:00:00Z";
        let outcome = run(&["import", "it", name, "--observed-at", at, "--request", request]).failed_with(1);
        assert!(outcome.stderr.contains("it is a pipe"), "{outcome:?}");
    }
    // In place of a file of a version that was published.
    let version = fs::canonicalize(place.file("output/datasets/it/latest")).expect("a version");
    fs::remove_file(version.join("it.parquet")).expect("a file of the test");
    pipe(&version.join("it.parquet"));
    for command in [&["build", "it"][..], &["run", "it", "-q"], &["verify"], &["show", "it"]] {
        assert_ne!(run(command).code, Some(124), "{command:?} waits");
    }
}
