//! Commands that people wait for answer at once.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::program::Place;

/// Far above what they take, which is in docs/speed.md: this is the program as it is built for tests, on a busy machine. A
/// command that reads every row takes longer still.
const LONGEST: Duration = Duration::from_millis(700);

/// How often a command is tried; once it must be quick.
const TRIES: usize = 8;

#[test]
fn the_commands_used_most_answer_at_once_on_the_archive_of_the_demo() {
    let place = Place::new();
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/demo.toml");
    place.define("demo", &std::fs::read_to_string(definition).expect("the demo"));
    place.run(["run", "demo", "-q"]).succeeded();
    let commands: [&[&str]; 10] = [
        &["check", "demo"],
        &["plan", "demo"],
        &["doctor", "demo"],
        &["show", "demo"],
        &["open", "demo", "--print"],
        &["summary", "demo"],
        &["report", "demo"],
        &["datasets"],
        &["runs"],
        &["status"],
    ];
    for command in commands {
        let is_quick = |_: usize| {
            let begun = Instant::now();
            place.run(command).succeeded();
            begun.elapsed() < LONGEST
        };
        assert!((0..TRIES).any(is_quick), "{command:?} took longer than {LONGEST:?} each time");
    }
}
