//! Output in a terminal: progress, colors, questions, and tables that fit.

use std::fs;

use crate::support::program::Place;
use crate::support::terminal::Window;
use crate::support::tools::{PYTHON, needs};

const DEMO: &str = "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n\
                    signals.periods = [\"5d\", \"15d\", \"1m\"]\nsignals.regimes = [\"neutral\", \"bear\", \"bull\"]\n";

fn define() -> Place {
    let place = Place::new();
    place.define("demo", DEMO);
    place
}

#[test]
fn a_finished_stage_leaves_one_line_at_any_width() {
    needs!(PYTHON);
    for widths in ["60", "80", "140", "80,140,60,100"] {
        let seen = Window::of(widths).run(&define(), ["run", "demo"]).expect_success();
        assert!(seen.most_bars <= 1, "{widths}: {seen:#?}");
        let stages: Vec<&str> = seen.lines.iter().take(4).map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(stages, ["signals", "articles", "archive", "dataset"], "{widths}: {seen:#?}");
        let requests = seen.lines[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(requests.starts_with("signals 18 requests, "), "{widths}: {seen:#?}");
        assert!(seen.lines[4].starts_with("rows  "), "{widths}: {seen:#?}");
        // A bar's counts and its time left. Paths may hold the same characters, so only the stages' lines are searched.
        let words = seen.lines.iter().take(4).flat_map(|line| line.split(' ')).collect::<Vec<_>>();
        assert!(!words.iter().any(|word| word.contains("0/") || *word == "left"), "{widths}: {seen:#?}");
        let names = seen.lines.iter().skip(4).filter(|line| line.starts_with(char::is_alphabetic)).count();
        assert!(names >= 9, "{widths}: {seen:#?}");
    }
}

#[test]
fn the_summary_of_a_run_fits_a_window_of_80_columns() {
    needs!(PYTHON);
    let place = define();
    let seen = Window::of("80").run(&place, ["run", "demo"]).expect_success();
    // A wrapped line does not start with a name.
    assert!(seen.lines.iter().all(|line| line.len() < 80 || line.starts_with("python")), "{seen:#?}");
    let python = seen.lines.iter().find(|line| line.starts_with("python")).expect("a line of Python");
    assert!(python.ends_with("demo.parquet\")"), "{seen:#?}");
    let report = seen.lines.iter().find(|line| line.starts_with("report")).expect("the report");
    let typed = report.split_whitespace().skip(2).collect::<Vec<_>>();
    place.run(typed).expect_success();
}

#[test]
fn errors_are_in_color_on_a_terminal_and_nowhere_else() {
    needs!(PYTHON);
    let place = define();
    let seen = Window::of("80").run(&place, ["run", "dmo"]);
    assert_eq!(seen.code, 2);
    // Bold, red and cyan.
    for code in ["1", "31", "36"] {
        assert!(seen.colors.iter().any(|color| color.split(';').any(|one| one == code)), "{:?}", seen.colors);
    }
    assert!(seen.lines[0].starts_with("error: no definition `dmo`"), "{seen:#?}");
    let plain = place.run(["run", "dmo"]).failed_with(2).stderr;
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn init_asks_for_two_addresses_and_writes_a_definition_that_passes_check() {
    needs!(PYTHON);
    let place = Place::new();
    let answers = ["http://example.com", "https://signals.example.com/v1", "https://news.example.com/v1"];
    let window = Window { widths: "80", answers: &answers };
    let seen = window.run(&place, ["init", "mine"]).expect_success();
    assert!(seen.lines.iter().any(|line| line.contains("wrote pipelines/mine.toml")), "{seen:#?}");
    let text = fs::read_to_string(place.file("pipelines/mine.toml")).unwrap();
    assert!(text.contains("base_url = \"https://signals.example.com/v1\"\n"), "{text}");
    assert!(text.contains("sentiment_base_url = \"https://news.example.com/v1\"\n"), "{text}");
    place.run(["check", "mine"]).expect_success();
    let again = place.run(["init", "mine", "--demo"]).failed_with(1).stderr;
    assert!(again.starts_with("error: `pipelines/mine.toml` already exists\n"), "{again}");
}

#[test]
fn a_build_to_a_terminal_is_a_table_of_the_first_rows() {
    needs!(PYTHON);
    let place = define();
    place.run(["run", "demo", "-q"]).expect_success();
    let seen = Window::of("120").run(&place, ["build", "demo", "--output", "-"]).expect_success();
    assert!(seen.lines.iter().any(|line| line.contains("ticker")), "{seen:#?}");
    assert!(seen.lines.iter().any(|line| line.contains("`--output FILE`")), "{seen:#?}");
    assert!(seen.lines.len() < 40, "{seen:#?}");
}

#[test]
fn tables_fit_a_window_of_80_columns() {
    needs!(PYTHON);
    let place = define();
    place.run(["run", "demo", "-q"]).expect_success();
    for command in
        [&["list", "runs"][..], &["list", "datasets"], &["check", "demo"], &["--help"], &["report", "--text", "demo"]]
    {
        let seen = Window::of("80").run(&place, command).expect_success();
        assert!(seen.lines.iter().all(|line| line.chars().count() <= 80), "{command:?} {seen:#?}");
    }
}
