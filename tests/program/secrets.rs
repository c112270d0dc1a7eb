//! The key is never seen, however badly things go and however much is logged.

use std::fs;

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, Step, json, reply};

/// With what an address escapes in two ways.
const CANARY: &str = "S3CRET canary/ü&+";

/// The ways in which it, or a telling part of it, may be written.
const SPELLINGS: [&str; 6] =
    ["S3CRET", CANARY, "S3CRET+canary%2F%C3%BC%26%2B", "S3CRET%20canary%2F%C3%BC%26%2B", "canary%2F", "canary/ü"];

/// What a service does, given the target that it was asked for, which holds the key.
type Script = fn(&str) -> Vec<Step>;

fn page(asked: &str) -> Vec<Step> {
    reply("200 OK", "", format!("<html>you asked for {asked}, with {CANARY}</html>").as_bytes())
}

fn refusal(asked: &str) -> Vec<Step> {
    let problem = format!("{{\"loc\":[\"query\",\"{asked}\"],\"msg\":\"{CANARY} {asked}\",\"type\":\"x\"}}");
    json("422 Unprocessable Entity", &format!("{{\"detail\":[{problem}]}}"))
}

fn reject(asked: &str) -> Vec<Step> {
    json("200 OK", &format!("{{\"{asked}\":{{\"ticker\":\"{CANARY}\"}}}}"))
}

fn redirect(asked: &str) -> Vec<Step> {
    reply("302 Found", &format!("Location: {asked}\r\n"), asked.as_bytes())
}

const SCRIPTS: [(&str, i32, Script); 8] = [
    ("a page that shows its address", 1, page),
    ("a refusal that repeats it", 1, refusal),
    ("a redirect with it", 1, redirect),
    ("a record that holds it", 1, reject),
    ("a wrong key", 1, |asked| json("401 Unauthorized", asked)),
    ("a busy service", 75, |asked| json("503 Service Unavailable", asked)),
    ("a reset", 75, |_| vec![Step::Reset]),
    ("an answer that is none", 75, |asked| vec![Step::Send(asked.as_bytes().to_vec())]),
];

#[test]
fn a_canary_key_is_in_nothing_that_a_failing_run_prints_or_writes_at_the_finest_level() {
    for (name, code, script) in SCRIPTS {
        for form in ["text", "json"] {
            let place = Place::new();
            let service = Scripted::start(move |asked| script(&asked.target));
            place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
            let mut command = place.command(["run", "it", "--log-level", "trace", "--log", form]);
            let outcome = Outcome::of(command.env("BELLWETHER_API_KEY", CANARY)).failed_with(code);
            assert!(service.targets()[0].contains("S3CRET"), "the key was sent, or there is nothing to look for");
            assert!(outcome.stderr.len() > 1000, "{name}: a trace is long: {}", outcome.stderr);
            let printed = [
                ("stdout".to_owned(), outcome.stdout.into_bytes()),
                ("stderr".to_owned(), outcome.stderr.into_bytes()),
            ];
            let written = place.files().into_iter().filter(|file| !place.path().join(file).is_symlink()).map(|file| {
                let bytes = fs::read(place.path().join(&file)).expect("a file that can be read");
                (file.display().to_string(), bytes)
            });
            for (source, bytes) in printed.into_iter().chain(written) {
                let text = String::from_utf8_lossy(&bytes);
                for spelling in SPELLINGS {
                    assert!(!text.contains(spelling), "{name}: `{spelling}` is in {source}: {text}");
                }
            }
        }
    }
}
