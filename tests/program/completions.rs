//! Completions in real shells: bash and zsh in a terminal, and what each of them and fish is offered.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::tools::{PYTHON, Tool, needs};

const BASH: Tool = Tool::Command("bash");
const FISH: Tool = Tool::Command("fish");
const ZSH: Tool = Tool::Command("zsh");

const DEMO: &str = "description = \"Two utilities\"\nsource.service = \"demo\"\nsignals.tickers = [\"NEE\", \"DUK\"]\n\
    signals.periods = [\"5d\", \"1m\"]\nsignals.regimes = \"bull\"\ndataset.kind = \"signals\"\n";

/// A project with a published dataset, and its version.
fn project() -> (Place, String) {
    let place = Place::new();
    let root = place.file("project");
    fs::create_dir_all(root.join("pipelines")).expect("a project");
    for name in ["demo", "daily"] {
        fs::write(root.join("pipelines").join(name).with_extension("toml"), DEMO).expect("a definition");
    }
    place.run(["-C", "project", "run", "demo", "-q"]).expect_success();
    let version = fs::read_link(root.join("output/datasets/demo/latest")).expect("a link");
    (place, version.to_str().expect("a name").to_owned())
}

/// A shell in a folder of a place, which finds the program by its name.
fn shell(place: &Place, folder: &str, name: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_bellwether")).parent().expect("a folder of programs").display();
    let mut command = Command::new(name);
    command.current_dir(place.file(folder)).env_clear().env("HOME", place.path()).env("TERM", "xterm");
    command.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()));
    command
}

/// What is between two words, or two candidates.
const BETWEEN: &str = "\u{1f}";

/// What a shell is offered for the last word of each line.
fn offers(place: &Place, folder: &str, name: &str, lines: &[&[&str]]) -> Vec<Vec<String>> {
    let mut command = shell(place, folder, name);
    match name {
        "bash" => {
            let script = "source <(bellwether completions bash)\n\
                for line in \"$@\"; do\n\
                IFS=$'\\x1f' read -r -a COMP_WORDS <<< \"$line\"; unset 'COMP_WORDS[-1]'\n\
                COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9 COMPREPLY=()\n\
                _clap_complete_bellwether bellwether \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n\
                printf '%s\\x1f' \"${COMPREPLY[@]}\"; echo\n\
                done";
            command.args(["--norc", "-c", script, "bash"]);
            command.args(lines.iter().map(|words| format!("{}{BETWEEN}.", words.join(BETWEEN))));
        }
        "fish" => {
            let script = "bellwether completions fish | source\n\
                for line in $argv\n\
                echo (complete --do-complete $line | string split --fields 1 \\t | string join \\x1f)\n\
                end";
            command.args(["--no-config", "-c", script]).args(lines.iter().map(|words| words.join(" ")));
        }
        other => panic!("{other}"),
    }
    let outcome = Outcome::of(&mut command).expect_success();
    assert_eq!(outcome.stderr, "", "{lines:?}");
    let values = |line: &str| line.split(BETWEEN).filter(|value| !value.is_empty()).map(str::to_owned).collect();
    outcome.stdout.lines().map(values).collect()
}

#[test]
fn a_shell_is_offered_the_names_of_the_project() {
    let (place, version) = project();
    let full = format!("demo/{version}");
    let cases: [(&[&str], &[&str]); 11] = [
        (&["run", ""], &["daily", "demo"]),
        (&["build", "de"], &["demo"]),
        (&["show", ""], &["demo"]),
        (&["show", "demo/"], &[&full]),
        (&["diff", "demo", "de"], &["demo"]),
        (&["show", "demo", "--ticker", ""], &["DUK", "NEE"]),
        (&["show", "demo", "--ticker", "DUK,"], &["DUK,DUK", "DUK,NEE"]),
        (&["show", "demo", "--columns", "ticker,conf"], &["ticker,confidence"]),
        (&["show", "daily", "--columns", "conf"], &["confidence"]),
        (&["build", "demo", "--vintage", ""], &["latest", "first"]),
        (&["show", "demo", "--tai"], &["--tail"]),
    ];
    // From elsewhere, and where there is no project, nothing.
    let elsewhere: [(&[&str], &[&str]); 4] = [
        (&["-C", "project", "show", ""], &["demo"]),
        (&["show", "--directory", "project", "demo", "--ticker", ""], &["DUK", "NEE"]),
        (&["comp"], &["completions"]),
        (&["-C", "nowhere", "show", "d"], &[]),
    ];
    for tool in [BASH, FISH] {
        if !tool.is_there() {
            continue;
        }
        let name = tool.path().display().to_string();
        // The candidates are the same in every shell; how they are asked for is not.
        let cases = if name == "bash" { &cases[..] } else { &cases[..5] };
        for (folder, cases) in [("project/pipelines", cases), (".", &elsewhere)] {
            let lines: Vec<Vec<&str>> = cases.iter().map(|(words, _)| [&["bellwether"], *words].concat()).collect();
            let lines: Vec<&[&str]> = lines.iter().map(Vec::as_slice).collect();
            let found = offers(&place, folder, &name, &lines);
            assert_eq!(found.len(), cases.len(), "{name}: {found:?}");
            for ((words, expected), mut found) in cases.iter().zip(found) {
                let mut expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
                expected.sort();
                found.sort();
                assert_eq!(found, expected, "{name}: {words:?}");
            }
        }
    }
}

#[test]
fn damage_is_no_message_while_a_name_is_completed() {
    needs!(BASH);
    let (place, version) = project();
    let root = place.file("project");
    fs::write(root.join("pipelines/demo.toml"), "[").expect("a broken definition");
    let dataset = root.join("output/datasets/demo").join(&version);
    fs::write(dataset.join("dataset.json"), "{").expect("a broken record");
    let lines: [&[&str]; 3] = [
        &["bellwether", "show", "demo", "--ticker", ""],
        &["bellwether", "show", "demo", "--columns", ""],
        &["bellwether", "run", "de"],
    ];
    assert_eq!(offers(&place, "project", "bash", &lines), [vec![], vec![], vec!["demo"]]);
    // A shell that the program does not know gets no candidates, and no command is run.
    let mut command = place.command(["--", "bellwether", "run", ""]);
    let outcome = Outcome::of(command.env("_BELLWETHER_COMPLETE", "tcsh")).expect_success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
}

#[test]
fn tab_completes_a_line_in_bash_and_zsh() {
    needs!(PYTHON);
    let (place, version) = project();
    let full = format!("demo/{version}");
    let cases: [(&str, &[&str]); 4] = [
        ("bellwether lis", &["bellwether", "list"]),
        ("bellwether show de", &["bellwether", "show", "demo"]),
        ("bellwether show demo/", &["bellwether", "show", &full]),
        ("bellwether show demo --ticker DUK,N", &["bellwether", "show", "demo", "--ticker", "DUK,NEE"]),
    ];
    let shells: [(Tool, &str, &[&str]); 2] = [
        (BASH, "PS1='> '; source <(bellwether completions bash)", &["--norc", "--noprofile", "-i"]),
        (ZSH, "PS1='> '; autoload -Uz compinit; compinit -u -D; source <(bellwether completions zsh)", &["-f", "-i"]),
    ];
    for (tool, setup, arguments) in shells {
        if !tool.is_there() {
            continue;
        }
        let lines: Vec<&str> = cases.iter().map(|(line, _)| *line).collect();
        let name = tool.path();
        let mut command = shell(&place, "project/pipelines", "env");
        let script = python::command(PYTHON, "tab.py");
        command.arg(script.get_program()).args(script.get_args()).arg(setup).arg(json!(lines).to_string());
        let outcome = Outcome::of(command.arg(&name).args(arguments)).expect_success();
        let became: Vec<Vec<String>> = serde_json::from_str(&outcome.stdout).expect("a list");
        let expected: Vec<&[&str]> = cases.iter().map(|(_, expected)| *expected).collect();
        assert_eq!(became, expected, "{}", name.display());
    }
}
