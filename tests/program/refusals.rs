//! Runs that fail: their messages and leftovers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::scripted::{Scripted, json};

const CANARY: &str = "S3CRET-canary";

fn definition(source: &str) -> String {
    format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n")
}

/// Runs a definition with the canary as its key. It must fail, and the canary must not appear anywhere.
#[track_caller]
fn refusal(place: &Place, code: i32) -> String {
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", CANARY)).failed_with(code);
    assert_eq!(outcome.stdout, "");
    assert!(!outcome.stderr.contains(CANARY), "{}", outcome.stderr);
    for file in place.files().iter().filter(|file| !place.path().join(file).is_symlink()) {
        let bytes = fs::read(place.path().join(file)).expect("a file that can be read");
        assert!(!String::from_utf8_lossy(&bytes).contains(CANARY), "the key is in {}", file.display());
    }
    outcome.stderr
}

#[test]
fn a_missing_key_error_lists_where_a_key_can_come_from() {
    let place = Place::new();
    let service = DemoService::start(&place, &[]);
    place.define("it", &definition(&service.source));
    let host = service.address("base_url").split('/').nth(2).unwrap();
    let expected = format!(
        "error: no API key for {host}\n\
         hint: set `BELLWETHER_API_KEY` or `BELLWETHER_API_KEY_FILE`, or `api_key_file` or `api_key_command` in `[source]`\n"
    );
    assert_eq!(place.run(["run", "it"]).failed_with(1).stderr, expected);
}

#[test]
fn a_key_can_come_from_a_file_or_a_command() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    fs::write(place.file("key"), "demo\n").unwrap();
    let readable = "warning: other users can read the API key in `key`: run `chmod 600 key`\n";
    let ways = [
        ("api_key_file = \"key\"\n", 0o644, readable),
        ("api_key_file = \"key\"\n", 0o600, ""),
        ("api_key_command = [\"cat\", \"key\"]\n", 0o644, ""),
    ];
    for (way, mode, warning) in ways {
        fs::set_permissions(place.file("key"), fs::Permissions::from_mode(mode)).unwrap();
        place.define("it", &definition(&format!("{}{way}", service.source)));
        assert_eq!(place.run(["run", "it", "-q"]).expect_success().stderr, warning);
    }
    let broken = [
        ("api_key_file = \"none\"\n", "error: cannot get the API key from `none`\n  because: No such file"),
        (
            "api_key_command = [\"false\"]\n",
            "error: cannot get the API key from the command `false`\n  because: it failed",
        ),
        (
            "api_key_command = [\"true\"]\n",
            "error: cannot get the API key from the command `true`\n  because: it is empty",
        ),
    ];
    for (way, expected) in broken {
        place.define("it", &definition(&format!("{}{way}", service.source)));
        let shown = place.run(["run", "it"]).failed_with(1).stderr;
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[test]
fn a_wrong_key_fails_at_once_with_an_explanation() {
    let place = Place::new();
    let service = DemoService::start(&place, &[]);
    place.define("it", &definition(&service.source));
    let shown = refusal(&place, 1);
    assert!(shown.contains(" with status 401\n"), "{shown}");
    assert!(shown.contains("hint: check the key in `BELLWETHER_API_KEY`"), "{shown}");
}

#[test]
fn an_invalid_request_quotes_the_service() {
    let place = Place::new();
    let body = r#"{"detail":[{"loc":["query","sector"],"msg":"no such sector","type":"value_error"},
                   {"loc":["query","period",0],"msg":"odd","type":"x"}]}"#;
    let service = Scripted::start(move |_| json("422 Unprocessable Entity", body));
    place.define("it", &definition(&service.source()));
    let expected = format!(
        "error: {} says `signals-history-all sector=energy period=15d regime=neutral` is invalid: \
         `query.sector`: no such sector; `query.period.0`: odd\n",
        service.address()
    );
    assert_eq!(refusal(&place, 1), expected);
    assert_eq!(service.targets().len(), 1, "an invalid request is not repeated");
}

#[test]
fn an_unreachable_service_is_named_by_host_and_port() {
    let place = Place::new();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let source = format!("base_url = \"http://{gone}/a\"\nsentiment_base_url = \"http://{gone}/b\"\n");
    place.define("it", &definition(&source));
    let expected = format!(
        "error: {gone} did not answer `signals-history-all sector=energy period=15d regime=neutral` in 5 attempts\n  \
         because: Connection refused (os error 111)\n\
         hint: run the same command later to resume; what was fetched is kept\n"
    );
    assert_eq!(refusal(&place, 75), expected);
}

#[test]
fn a_failed_run_leaves_the_previous_dataset_untouched() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service.source));
    Outcome::of(place.command(["run", "it", "-q"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    let before = place.files();
    let latest = fs::read_link(place.file("output/datasets/it/latest")).unwrap();
    refusal(&place, 1);
    assert_eq!(place.files(), before);
    assert_eq!(fs::read_link(place.file("output/datasets/it/latest")).unwrap(), latest);
}

#[test]
fn an_unwritable_output_is_reported_before_any_request() {
    let place = Place::new();
    let service = Scripted::start(|_| Vec::new());
    place.define("it", &definition(&service.source()));
    fs::write(place.file("taken"), "").unwrap();
    let mut command = place.command(["run", "it", "--data", "taken"]);
    let outcome = Outcome::of(command.env("BELLWETHER_API_KEY", "demo")).failed_with(1);
    assert!(
        outcome.stderr.starts_with("error: cannot write `taken`\n  because: not a directory\n"),
        "{}",
        outcome.stderr
    );
    assert!(service.targets().is_empty());
}

#[test]
fn a_file_named_latest_is_not_overwritten() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service.source));
    fs::create_dir_all(place.file("output/datasets/it")).unwrap();
    fs::write(place.file("output/datasets/it/latest"), "mine").unwrap();
    let outcome = Outcome::of(place.command(["run", "it", "-q"]).env("BELLWETHER_API_KEY", "demo")).failed_with(1);
    assert!(outcome.stderr.contains("`output/datasets/it/latest` is a file, expected a link"), "{}", outcome.stderr);
    assert_eq!(fs::read_to_string(place.file("output/datasets/it/latest")).unwrap(), "mine");
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let place = Place::new();
    let mut child = place.command(["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The pipe is closed before the program can write all of its output.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
