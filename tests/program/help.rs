//! Help, the common options, and manual pages.

use std::fs;

use clap::Command;

#[path = "../../examples/man.rs"]
#[expect(dead_code, reason = "the example calls the rest")]
mod man;

use crate::support::program::{Outcome, Place};

/// Every command with the words that call it, those of groups too.
pub(crate) fn commands() -> Vec<(Vec<String>, Command)> {
    let mut program = bellwether_cli::command();
    program.build();
    let (mut found, mut left) = (Vec::new(), vec![(Vec::new(), program)]);
    while let Some((words, command)) = left.pop() {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            left.push(([&words[..], &[below.get_name().to_owned()]].concat(), below.clone()));
        }
        found.push((words, command));
    }
    found
}

#[test]
fn the_short_help_of_every_command_fits_forty_lines_and_says_where_common_options_are() {
    let place = Place::new();
    let all = commands();
    assert!(all.len() > 20, "{}", all.len());
    for (words, _) in all {
        let mut command = place.command(words.iter().map(String::as_str).chain(["-h"]));
        let shown = Outcome::of(command.env("COLUMNS", "80")).expect_success().stdout;
        assert!(shown.lines().count() <= 40, "{words:?} has {} lines:\n{shown}", shown.lines().count());
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{words:?}:\n{shown}");
        assert!(!shown.contains("\nCommon options:\n"), "{words:?}:\n{shown}");
        let last = shown.lines().last().expect("help");
        assert!(last.starts_with("Common options") && last.contains("see `bellwether --help`"), "{words:?}: {last}");
    }
    let help = place.run(["--help"]).expect_success().stdout;
    let (_, common) = help.split_once("\nCommon options:\n").expect("the common options");
    assert!(["--directory", "--data", "--archive", "--store"].iter().all(|option| common.contains(option)), "{common}");
}

#[test]
fn the_examples_in_the_help_are_commands() {
    let mut examples = Vec::new();
    for (words, command) in commands() {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let typed = help.lines().filter_map(|line| line.trim_start().strip_prefix("bellwether "));
        for typed in typed {
            assert!(typed.starts_with(&words.join(" ")), "{typed}");
            examples.push(typed.split(['|', '#']).next().expect("a command").trim().to_owned());
        }
    }
    assert!(examples.len() > 10, "{examples:?}");
    for typed in examples {
        // What is quoted is one word.
        let parts = typed.split('"').enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let parsed = bellwether_cli::command().try_get_matches_from(["bellwether"].into_iter().chain(words));
        assert!(parsed.is_ok(), "{typed}: {parsed:?}");
    }
}

#[test]
fn a_common_option_stands_before_or_after_a_command_that_has_it_and_is_refused_elsewhere() {
    let place = Place::new();
    place.define("demo", "source.service = \"demo\"\nsignals.tickers = [\"XOM\"]\ndataset.kind = \"signals\"\n");
    place.run(["--data", "kept", "run", "demo", "-q"]).expect_success();
    assert!(place.file("kept/datasets/demo/latest").exists() && !place.file("output").exists());
    let before = place.run(["--data", "kept", "list", "runs"]).expect_success().stdout;
    assert_eq!(place.run(["list", "runs", "--data", "kept"]).expect_success().stdout, before);
    // The option counts more than the variable, wherever it stands.
    let mut command = place.command(["--data", "kept", "list", "runs"]);
    assert_eq!(Outcome::of(command.env("BELLWETHER_DATA", "elsewhere")).expect_success().stdout, before);
    for words in [&["--store", "file:///nowhere", "schema"][..], &["schema", "--store", "file:///nowhere"]] {
        let refused = place.run(words).failed_with(2).stderr;
        assert!(refused.starts_with("error: ") && refused.contains("--store"), "{refused}");
    }
    // A variable that a command does not read is no reason to refuse it.
    Outcome::of(place.command(["schema"]).env("BELLWETHER_STORE", "nonsense")).expect_success();
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let place = Place::new();
    man::write_pages(commands().swap_remove(0).1, place.path()).unwrap();
    let page = |words: &[String]| {
        let name = [&["bellwether".to_owned()], words].concat().join("-");
        fs::read_to_string(place.file(&format!("{name}.1"))).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for (words, _) in commands() {
        assert!(page(&words).contains(&format!(".TH bellwether{}", if words.is_empty() { " 1" } else { "-" })));
    }
    let program = page(&[]);
    for row in ["BELLWETHER_LOG_LEVEL", "temporary failure", "bellwether\\-audit(1)"] {
        assert!(program.contains(row), "{row}: {program}");
    }
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    let place = Place::new();
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"], &["status"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let code = place.command(arguments).stdout(full).status().unwrap().code();
        assert_eq!(code, Some(1), "{arguments:?}");
    }
}
