//! Every call of every command that writes fails, in every way, and the power fails at every instant: the previous version
//! is whole, `verify` passes, the next run gives the same dataset, foreign files are untouched, and nothing is left that
//! no command clears.
//!
//! A few tries of each run here. All of them:
//! `BELLWETHER_WALK=all cargo nextest run --test program walks --no-capture`

use std::fs;

use crate::support::program::{DemoService, Place};
use crate::support::python;
use crate::support::tools::{PYTHON, needs};

/// Prints the counts, visible with `--no-capture`.
#[expect(clippy::print_stdout, reason = "the long version is run to be read")]
fn tell(text: &str) {
    println!("{text}");
}

/// The program's commands on two days of the demo service, disturbed by a script of `tests/python`.
fn walk(script: &str, usually: &str, more: &[&str]) {
    let place = Place::new();
    let days = ["2026-11-19", "2026-11-20"].map(|day| DemoService::start(&place, &["--today", day]));
    let sources = place.file("sources.txt");
    let text: Vec<&str> = days.iter().map(|service| service.source.as_str()).collect();
    fs::write(&sources, text.join("\n")).expect("a file");
    let (folder, count) = (place.file("walk"), std::env::var("BELLWETHER_WALK").unwrap_or_else(|_| usually.to_owned()));
    let program = env!("CARGO_BIN_EXE_bellwether");
    let arguments = [program, &folder.display().to_string(), &sources.display().to_string(), &count];
    let counts = python::output(script, arguments.iter().chain(more));
    tell(&format!("{script}: {counts}"));
}

#[test]
fn whatever_a_call_meets_no_command_loses_damages_or_leaves_anything() {
    needs!(PYTHON);
    walk("walk_calls.py", "1", &[]);
}

#[test]
fn whatever_a_power_cut_leaves_no_command_has_lost_or_damaged_anything() {
    needs!(PYTHON);
    walk("cut_power.py", "6", &["26"]);
}
