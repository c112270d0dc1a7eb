//! Interactive commands answer at once.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::program::Place;

/// Far above the times in docs/how-it-works.md: test builds are unoptimized, and the machine may be busy. A command that reads
/// every row takes even longer.
const LONGEST: Duration = Duration::from_millis(700);

/// Number of attempts, one of which must be fast.
const TRIES: usize = 8;

#[test]
fn the_commands_used_most_answer_at_once_on_the_archive_of_the_demo() {
    let place = Place::new();
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/demo.toml");
    place.define("demo", &std::fs::read_to_string(definition).expect("the demo"));
    place.run(["run", "demo", "-q"]).expect_success();
    let commands: [&[&str]; 6] = [
        &["check", "demo"],
        &["doctor", "demo"],
        &["show", "demo"],
        &["list", "datasets"],
        &["list", "runs"],
        &["status"],
    ];
    for command in commands {
        let is_quick = |_: usize| {
            let begun = Instant::now();
            place.run(command).expect_success();
            begun.elapsed() < LONGEST
        };
        assert!((0..TRIES).any(is_quick), "{command:?} took longer than {LONGEST:?} each time");
    }
}
