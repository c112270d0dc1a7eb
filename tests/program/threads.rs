//! A process that may start few threads: what it cannot do is an error with a remedy, never a panic.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::program::{Outcome, Place};

/// A user without other processes. Root has no limit, and the limit counts all threads of a user.
const USER: u32 = 54_322;

/// Gives a folder and everything in it to the user.
fn give(place: &Place) {
    for path in place.files().iter().map(|file| place.file(&file.to_string_lossy())).chain([place.path().to_owned()]) {
        for path in path.ancestors().take_while(|path| path.starts_with(place.path())) {
            chown(path, Some(USER), Some(USER)).expect("root can give folders away");
        }
    }
}

/// A command of the program that may have so many threads, if this test can limit them.
fn limit_threads(place: &Place, threads: u32, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={threads}:{threads}")).arg(env!("CARGO_BIN_EXE_bellwether")).args(arguments);
    command.current_dir(place.path()).env_clear().env("PATH", std::env::var_os("PATH")?).stdin(Stdio::null());
    if is_root() {
        give(place);
        command.uid(USER).gid(USER);
    }
    Some(command)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Whether the program can be started like that here.
fn can_limit(place: &Place) -> bool {
    let version = limit_threads(place, 64, &["--version"]).and_then(|mut command| command.output().ok());
    version.is_some_and(|output| output.status.success())
}

const DEFINITION: &str = "source.service = \"demo\"\nsource.patience = \"1s\"\nsignals.tickers = [\"XOM\"]\nsignals.periods = [\"5d\"]\n\
                          schedule.cron = \"@yearly\"\n";

#[test]
fn too_few_threads_are_an_error_with_a_remedy() {
    let published = Place::new();
    published.define("it", DEFINITION);
    if !can_limit(&published) {
        // Of any other user, all other processes count.
        assert!(!is_root(), "`prlimit` cannot limit the threads of a process");
        return;
    }
    published.run(["run", "it", "-q"]).expect_success();
    let mut refused = 0;
    for threads in 1..=14 {
        let place = Place::new();
        place.define("it", DEFINITION);
        let of_published: [&[&str]; 6] = [
            &["build", "it"],
            &["show", "it"],
            &["verify"],
            &["audit", "quality", "it"],
            &["schedule", "--once"],
            &["report", "it", "--output", "report.html"],
        ];
        let commands = of_published.map(|arguments| (&published, arguments));
        for (place, arguments) in commands.into_iter().chain([(&place, &["run", "it", "-q"][..])]) {
            let _ = fs::remove_file(place.file("report.html"));
            let outcome = Outcome::of(&mut limit_threads(place, threads, arguments).expect("it could be limited"));
            let shown = &outcome.stderr;
            assert!(
                !shown.contains("panicked") && !shown.contains("bug in bellwether"),
                "{threads} {arguments:?}: {shown}"
            );
            if outcome.code != Some(0) {
                refused += 1;
                assert!(matches!(outcome.code, Some(1 | 75)), "{threads} {arguments:?}: {outcome:?}");
                assert!(shown.contains("error: "), "{threads} {arguments:?}: {shown}");
                if outcome.code == Some(1) {
                    assert!(
                        shown.contains("hint: raise the limits of the process"),
                        "{threads} {arguments:?}: {shown}"
                    );
                }
            }
        }
        // In the format of the log.
        let outcome =
            Outcome::of(&mut limit_threads(&place, threads, &["run", "it", "--log", "json"]).expect("as before"));
        for line in outcome.stderr.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{threads}: {line}");
        }
    }
    assert!(refused > 0, "no limit was too low");
}
