//! Text from outside is escaped on terminals.

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

/// Colours, a window title, an 8-bit control, reversed letters, an invisible character, and line breaks.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;x\u{7}\u{9b}1m\u{202e}evil\u{2066}\u{200b}\u{2028}\u{7f}\r\nerror: forged";

const SHOWN: &str = "\\u001b[31m\\u001b]0;x\\u0007\\u009b1m\\u202eevil\\u2066\\u200b\\u2028\\u007f\\r\\nerror: forged";

/// Checks that everything printed is visible.
#[track_caller]
fn is_plain(outcome: &Outcome) {
    for text in [&outcome.stdout, &outcome.stderr] {
        let hidden = |letter: &char| match letter {
            '\n' => false,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            other => other.is_control(),
        };
        assert_eq!(text.chars().find(hidden), None, "{text:?}");
        assert!(!text.contains("\nerror: forged"), "{text}");
    }
}

fn define(service: &Scripted, rest: &str) -> Place {
    let place = Place::new();
    let source = service.source();
    place.define("it", &format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n{rest}"));
    place
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    let outcome = Outcome::of(place.command(["run", "it"]).args(arguments).env("BELLWETHER_API_KEY", "S3CRET-canary"));
    is_plain(&outcome);
    outcome
}

#[test]
fn a_service_refusal_is_escaped_on_a_terminal_and_intact_in_json() {
    let quoted = serde_json::json!(HOSTILE);
    let body = format!("{{\"detail\":[{{\"loc\":[\"query\",{quoted}],\"msg\":{quoted},\"type\":\"x\"}}]}}");
    let service = Scripted::start(move |_| json("422 Unprocessable Entity", &body));
    let shown = run(&define(&service, ""), &[]).failed_with(1).stderr;
    assert!(shown.contains(&format!("`query.{SHOWN}`: {SHOWN}\n")), "{shown}");
    let shown = run(&define(&service, ""), &["--log", "json"]).failed_with(1).stderr;
    let event: serde_json::Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert!(event["message"].as_str().unwrap().ends_with(&format!("`query.{HOSTILE}`: {HOSTILE}")), "{event}");
}

#[test]
fn every_command_escapes_names_and_values_of_the_service() {
    let name = serde_json::json!(HOSTILE).to_string();
    let entry = format!("{{\"date\":\"2026-11-20T00:00:00Z\",\"signal\":\"buy\",\"confidence\":0.5,{name}:{name}}}");
    let odd = format!("{{\"date\":\"2026-11-19T00:00:00Z\",\"signal\":{name},\"confidence\":0.5}}");
    let body = format!(
        "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{entry},{odd}]}},{name}:{{}}}}"
    );
    let article = format!("[{{\"date\":\"2026-11-19\",\"title\":{name},\"score\":0.5,\"link\":{name}}}]");
    let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
        true => json("200 OK", &body),
        false => json("200 OK", &article),
    });
    let place = define(&service, "[rejects]\nmax_share = 0.9\n");
    let outcome = run(&place, &[]).expect_success();
    assert!(outcome.stdout.contains(&format!("unknown   /*/predictions/*/{SHOWN}")), "{}", outcome.stdout);
    let runs = place.run(["list", "runs"]).expect_success().stdout;
    let sealed = runs.lines().nth(1).unwrap().split(' ').next().unwrap();
    let commands: [&[&str]; 9] = [
        &["list", "runs"],
        &["list", "runs", sealed],
        &["report", "--text", "it"],
        &["report", "it"],
        &["audit", "quality"],
        &["audit", "sources"],
        &["audit", "revisions"],
        &["verify"],
        &["check", "it"],
    ];
    for command in commands {
        let outcome = place.run(command).expect_success();
        is_plain(&outcome);
        let names_it = matches!(command, ["list", "runs", _] | ["audit", "quality"]);
        assert_eq!(outcome.stdout.contains(SHOWN), names_it, "{command:?}: {}", outcome.stdout);
    }
}

#[test]
fn definition_text_is_escaped_and_marked_at_its_position() {
    let place = Place::new();
    // TOML allows no raw controls except the tab, but all other characters.
    place.define("it", "source.service = \"demo\"\n\t\"\u{202e}\u{9b}\\u001B[31m\\n\" = \"\u{2028}\"\n");
    let outcome = place.run(["check", "it"]).failed_with(2);
    is_plain(&outcome);
    let line = "2 |     \"\\u202e\\u009b\\u001B[31m\\n\" = \"\\u2028\"\n";
    let (_, below) = outcome.stderr.split_once(line).unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(below.starts_with("  |     ^"), "{below}");
}

#[test]
fn command_line_arguments_are_shown_escaped() {
    let place = Place::new();
    for (arguments, code) in
        [(vec!["run", HOSTILE], 2), (vec!["report", HOSTILE], 1), (vec!["list", "datasets", HOSTILE], 1)]
    {
        let outcome = place.run(&arguments).failed_with(code);
        is_plain(&outcome);
        assert!(outcome.stderr.contains("\\u001b[31m"), "{}", outcome.stderr);
    }
}

#[test]
fn a_locale_without_other_characters_gets_those_of_ascii() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    place.run(["run", "it", "-q"]).expect_success();
    let with = |locale: &[(&str, &str)]| {
        Outcome::of(place.command(["report", "--text", "it"]).envs(locale.iter().copied())).expect_success().stdout
    };
    let drawn = with(&[]);
    assert!(!drawn.is_ascii());
    for locale in [[("LANG", "C.UTF-8"), ("LC_ALL", "")], [("LANG", "C"), ("LC_CTYPE", "de_DE.utf8")]] {
        assert_eq!(with(&locale), drawn, "{locale:?}");
    }
    for locale in [[("LANG", "POSIX"), ("LC_ALL", "")], [("LANG", "C.UTF-8"), ("LC_ALL", "de_DE.ISO-8859-1")]] {
        let spelled = with(&locale);
        assert!(spelled.is_ascii() && spelled.lines().count() == drawn.lines().count(), "{locale:?}: {spelled}");
    }
}
