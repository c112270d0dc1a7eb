//! Commands for the first hour: their output and their suggestions.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::scripted::{Scripted, json};

pub(crate) const DEMO: &str =
    "description = \"one sector\"\nsource.service = \"demo\"\nsignals.sectors = [\"utilities\"]\n";

pub(crate) fn published_place() -> Place {
    let place = Place::new();
    place.define("demo", DEMO);
    place.run(["run", "demo", "-q"]).expect_success();
    place
}

pub(crate) fn latest(place: &Place) -> String {
    let link = fs::read_link(place.file("output/datasets/demo/latest")).expect("a link");
    link.to_str().expect("a name").to_owned()
}

#[test]
fn a_missing_or_unknown_name_lists_the_definitions() {
    let place = Place::new();
    let shown = place.run(["run"]).failed_with(2).stderr;
    assert!(shown.contains("error: no definitions in `pipelines`\nhint: write one with `bellwether init`"), "{shown}");
    place.define("demo", DEMO);
    place.define("other", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    let list = "definitions in `pipelines`:\n  demo   one sector\n  other\n";
    let shown = place.run(["run"]).failed_with(2).stderr;
    assert!(shown.starts_with("error: no definition given\n") && shown.ends_with(list), "{shown}");
    for command in [&["run", "dmo"][..], &["build", "dmo"], &["check", "dmo"], &["audit", "leak", "dmo"]] {
        let shown = place.run(command).failed_with(2).stderr;
        assert!(shown.contains("hint: did you mean `demo`?\n") && shown.ends_with(list), "{shown}");
    }
}

#[test]
fn a_misspelled_command_or_option_suggests_the_right_one() {
    let place = Place::new();
    for (typed, meant) in [
        (&["scedule"][..], "schedule"),
        (&["lst"], "list"),
        (&["audit", "leek"], "leak"),
        (&["build", "demo", "--tiker", "XOM"], "--ticker"),
    ] {
        let shown = place.run(typed).failed_with(2).stderr;
        assert!(shown.starts_with("error: `bellwether"), "{shown}");
        assert!(shown.ends_with(&format!("hint: did you mean `{meant}`?\n")), "{shown}");
    }
    let shown = place.run(["frob\u{1b}[31mnicate"]).failed_with(2).stderr;
    assert!(shown.contains("has no command `frob") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn the_version_has_the_commit_and_its_date() {
    let shown = Place::new().run(["--version"]).expect_success().stdout;
    let words: Vec<&str> = shown.split_whitespace().collect();
    let ["bellwether", version, commit, date] = words[..] else { panic!("{shown}") };
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert!(commit.starts_with('(') && commit[1..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{shown}");
    assert!(chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d)").is_ok(), "{shown}");
}

#[test]
fn help_starts_with_the_first_steps_and_lists_allowed_values() {
    let place = Place::new();
    let help = place.run(["--help"]).expect_success().stdout;
    let place_of = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(place_of("  init ") < place_of("  run ") && place_of("  run ") < place_of("  store "));
    for text in ["BELLWETHER_API_KEY", "BELLWETHER_ROOT", "Exit codes:", "  75  "] {
        place_of(text);
    }
    let build = place.run(["build", "--help"]).expect_success().stdout;
    for text in ["parquet, csv, csv.gz, csv.zst, arrow", "bear, bull, neutral", "1d to 30d, 1m to 6m", "Examples:"] {
        assert!(build.contains(text), "{text}: {build}");
    }
}

#[test]
fn tickers_are_separated_by_commas_and_invalid_dates_are_explained() {
    let place = Place::new();
    place.define("demo", DEMO);
    place.run(["run", "demo", "-q"]).expect_success();
    place.run(["build", "demo", "--ticker", "NEE,DUK", "--ticker", "SO", "--output", "three.csv"]).expect_success();
    let rows = fs::read_to_string(place.file("three.csv")).unwrap();
    let mut tickers: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    tickers.dedup();
    assert_eq!(tickers, ["DUK", "NEE", "SO"]);
    for (arguments, message) in [
        (["build", "demo", "--from", "2026-13-01"], "there is no month 13"),
        (["build", "demo", "--as-of", "2026/01/01"], "write `2026-01-01`"),
        (["show", "demo", "--to", "2026-02-30"], "2026-02 has no day 30"),
        (["serve", "--demo", "--today", "20260101"], "write `2026-01-01`"),
        (["build", "demo", "--format", "xls"], "`parquet`, `csv`, `csv.gz`, `csv.zst`, `arrow`"),
        (["build", "demo", "--regime", "bulll"], "did you mean `bull`?"),
    ] {
        let shown = place.run(arguments).failed_with(2).stderr;
        assert!(shown.contains(message), "{shown}");
    }
    for arguments in [["build", "demo", "--ticker", "NEE,ZZZZ"], ["show", "demo", "--ticker", "NEE,ZZZZ"]] {
        let outcome = place.run(arguments);
        assert!(outcome.code != Some(0) && outcome.stderr.contains("`ZZZZ`"), "{}", outcome.stderr);
    }
}

#[test]
fn a_report_is_opened_in_the_browser() {
    let place = published_place();
    let browser = place.file("browser");
    fs::write(&browser, "#!/bin/sh\nprintf %s \"$1\" > opened.part && mv opened.part opened\n").unwrap();
    let mut permissions = fs::metadata(&browser).unwrap().permissions();
    permissions.set_mode(0o755);
    fs::set_permissions(&browser, permissions).unwrap();
    let printed =
        Outcome::of(place.command(["report", "demo", "--open"]).env("BROWSER", &browser)).expect_success().stdout;
    let opened = place.file("opened");
    for _ in 0..500 {
        if opened.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let opened = fs::read_to_string(opened).expect("the browser was started");
    assert_eq!(printed, "report    output/reports/demo.html\n");
    assert_eq!(fs::canonicalize(place.file("output/reports/demo.html")).unwrap().to_str(), Some(&*opened));
    assert!(fs::read_to_string(&opened).unwrap().starts_with("<!DOCTYPE html>"));
    let missing = Outcome::of(place.command(["report", "demo", "--open"]).env("BROWSER", "/nowhere/browser"))
        .failed_with(1)
        .stderr;
    assert!(
        missing.contains("error: cannot open the report with `/nowhere/browser`\n")
            && missing.contains("reports/demo.html"),
        "{missing}"
    );
    // A browser that fails, as `xdg-open` does where there is none, has opened nothing; the next one is tried.
    let named = |browsers: &str| Outcome::of(place.command(["report", "demo", "--open"]).env("BROWSER", browsers));
    let failed = named("false --new-window").failed_with(1);
    let hint = format!("hint: name a browser in `BROWSER`, or open `{}` yourself\n", opened);
    assert_eq!(
        failed.stderr,
        format!("error: cannot open the report with `false`\n  because: it failed with exit status: 1\n{hint}")
    );
    assert_eq!(failed.stdout, printed);
    named("false:test -f %s").expect_success();
    named("false:test -d %s").failed_with(1);
    place.run(["report", "nothing", "--open"]).failed_with(1);
    for refused in [&["--json"][..], &["--open", "--output", "-"], &["--open", "--text"], &["--width", "80"]] {
        place.run([&["report", "demo"], refused].concat()).failed_with(2);
    }
}

#[test]
fn init_without_a_terminal_takes_options_and_overwrites_nothing() {
    let place = Place::new();
    let shown = place.run(["init"]).failed_with(2).stderr;
    assert!(shown.contains("hint: add `--base-url` and `--sentiment-base-url`, or `--demo`"), "{shown}");
    place.run(["init", "mine", "--base-url", "https://a.example/v1"]).failed_with(2);
    place.run(["init", "../mine", "--demo"]).failed_with(2);
    place.run(["init", "mine", "--base-url", "https://a.example/v1", "--sentiment-base-url", "https://b.example"]);
    place.run(["check", "mine"]).expect_success();
    place.run(["init", "--demo"]).expect_success();
    let checked = place.run(["check", "signals"]).expect_success().stdout;
    assert!(checked.starts_with("pipelines/signals.toml: ok\n"), "{checked}");
    place.run(["run", "signals", "-q"]).expect_success();
    place.run(["init", "--demo"]).failed_with(1);
}

#[test]
fn doctor_finds_each_problem_and_gives_a_hint() {
    let place = Place::new();
    place.define("demo", DEMO);
    let healthy = place.run(["doctor", "demo"]).expect_success().stdout;
    for check in ["definition", "signals address", "news address", "answers", "clock", "disk", "archive"] {
        assert!(healthy.contains(check), "{check}: {healthy}");
    }
    assert!(!healthy.contains("failed") && !healthy.contains("warning"), "{healthy}");
    assert!(!place.file("output").exists(), "it writes nothing");

    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let remote =
        |source: &str| place.define("it", &format!("[source]\n{source}[signals]\nsectors = [\"utilities\"]\n"));
    let doctor = |key: &str| Outcome::of(place.command(["doctor", "it"]).env("BELLWETHER_API_KEY", key));
    remote(&service.source);
    doctor("demo").expect_success();
    let shown = doctor("wrong").failed_with(1).stdout;
    assert!(shown.contains("failed") && shown.contains("check the key in `BELLWETHER_API_KEY`"), "{shown}");
    let shown = doctor("").failed_with(1).stdout;
    assert!(shown.contains("set `BELLWETHER_API_KEY`"), "{shown}");
    drop(service);
    let shown = doctor("demo").failed_with(1).stdout;
    assert!(shown.contains("Connection refused"), "{shown}");

    let gone = Scripted::start(|request| match request.target.contains("news_articles") {
        true => json("404 Not Found", "{}"),
        false => json("200 OK", "{}"),
    });
    remote(&gone.source());
    let shown = doctor("demo").failed_with(1).stdout;
    assert!(shown.contains("is `sentiment_base_url` correct?"), "{shown}");
    assert!(shown.contains("the service no longer offers news_articles"), "{shown}");

    let skewed = Scripted::start(|_| {
        let headers = "Content-Type: application/json\r\nDate: Fri, 20 Nov 2020 21:30:00 GMT\r\n";
        crate::support::scripted::reply("200 OK", headers, b"{\"A\":{}}")
    });
    remote(&skewed.source());
    let shown = doctor("demo").failed_with(1).stdout;
    assert!(shown.contains("failed   clock") && shown.contains("set `clock = \"ours\"` in `[source]`"), "{shown}");

    let damaged = published_place();
    let run = crate::support::rows::sealed_run(&damaged);
    fs::write(run.join("signals.parquet"), "cut").unwrap();
    let shown = damaged.run(["doctor"]).failed_with(1).stdout;
    assert!(shown.contains("signals.parquet` is missing or has another size"), "{shown}");
}

#[test]
fn a_file_that_exists_is_replaced_by_force_only() {
    let place = published_place();
    let (rows, page) = (place.file("rows.csv"), place.file("page.html"));
    let commands: [(&[&str], &Path); 3] = [
        (&["build", "demo", "--output", "rows.csv"], &rows),
        (&["audit", "revisions", "--output", "rows.csv"], &rows),
        (&["report", "demo", "--output", "page.html"], &page),
    ];
    for (command, file) in commands {
        fs::write(file, "mine").unwrap();
        let refused = place.run(command).failed_with(1).stderr;
        let name = file.file_name().unwrap().to_str().unwrap();
        let expected = format!("`{name}` already exists\nhint: choose another file, or replace it with `--force`");
        assert!(refused.contains(&expected), "{refused}");
        assert_eq!(fs::read_to_string(file).unwrap(), "mine");
        place.run(command.iter().chain(&["--force"])).expect_success();
        assert!(fs::metadata(file).unwrap().len() > 50);
        fs::remove_file(file).unwrap();
        place.run(command.iter().chain(&["--force"])).expect_success();
        fs::remove_file(file).unwrap();
    }
    let built = place.run(["build", "demo", "--output", "rows.csv"]).expect_success().stdout;
    let lines = fs::read_to_string(&rows).unwrap().lines().count() - 1;
    let megabytes = fs::metadata(&rows).unwrap().len() as f64 / 1e6;
    let expected = format!("wrote {},{:03} rows, {megabytes:.1} MB, to rows.csv\n", lines / 1000, lines % 1000);
    assert_eq!(built, expected);
    place.run(["build", "demo", "--force"]).failed_with(2);
    // An error names the file that was asked for.
    let missing = place.run(["build", "demo", "--output", "nowhere/rows.csv"]).failed_with(1).stderr;
    assert!(missing.starts_with("error: cannot write `nowhere/rows.csv`\n"), "{missing}");
}

#[test]
fn only_files_are_replaced_and_stay_where_links_lead() {
    let place = published_place();
    let (real, link) = (place.file("real.html"), place.file("link.html"));
    fs::write(&real, "mine").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.html", &link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(place.file("pipe.csv")).status().expect("`mkfifo` runs");
    assert!(made.success());
    let commands: [&[&str]; 5] = [
        &["build", "demo", "--format", "csv", "--force", "--output"],
        &["audit", "revisions", "--format", "csv", "--force", "--output"],
        &["report", "demo", "--force", "--output"],
        &["status", "--force", "--html"],
        &["run", "demo", "-q", "--metrics"],
    ];
    for command in commands {
        let to = |file: &'static str| command.iter().copied().chain([file]).collect::<Vec<_>>();
        let refused = place.run(to("pipe.csv")).failed_with(1).stderr;
        let expected = "error: `pipe.csv` is a pipe, which is not replaced\nhint: name a file";
        assert!(refused.starts_with(expected), "{refused}");
        assert!(fs::symlink_metadata(place.file("pipe.csv")).unwrap().file_type().is_fifo());
        // Formats are told by the names of files.
        let name = if command.contains(&"csv") { "link.csv" } else { "link.html" };
        fs::rename(&link, place.file(name)).unwrap();
        place.run(to(name)).expect_success();
        fs::rename(place.file(name), &link).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real.html"));
        let replaced = fs::metadata(&real).unwrap();
        assert!(replaced.len() > 50 && replaced.permissions().mode() & 0o777 == 0o640, "{command:?}");
        fs::write(&real, "mine").unwrap();
    }
}

#[test]
fn a_dataset_or_one_of_its_versions_is_reported_as_numbers_and_as_a_page() {
    let place = published_place();
    let first = latest(&place);
    place.define("demo", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    place.run(["run", "demo", "-q"]).expect_success();
    let version = format!("demo/{first}");
    let rows = |name: &str| {
        let summary = place.run(["report", "--text", name, "--json"]).expect_success().stdout;
        serde_json::from_str::<serde_json::Value>(&summary).unwrap()["tickers"].as_u64()
    };
    assert_ne!(rows("demo"), rows(&version));
    let page = place.run(["report", &version, "--output", "-"]).expect_success().stdout;
    assert!(page.contains(&first), "the page is of the version");
    let unknown = place.run(["report", "pipelines/demo.toml"]).failed_with(1).stderr;
    assert!(unknown.contains("did you mean `demo`?"), "{unknown}");
}

#[test]
fn commands_without_a_definition_check_all_or_list_them() {
    let place = published_place();
    place.define("other", "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n");
    let checked = place.run(["check"]).expect_success().stdout;
    let are_ok = ["demo", "other"].map(|name| checked.contains(&format!("pipelines/{name}.toml: ok\n")));
    assert_eq!(are_ok, [true, true], "{checked}");
    for command in [&["run"][..], &["sql"], &["build"], &["audit", "leak"]] {
        let listed = place.run(command).failed_with(2).stderr;
        assert!(listed.starts_with("error: no definition given\n") && listed.contains("\n  other"), "{listed}");
    }
    Place::new().run(["check"]).failed_with(2);
}

#[test]
fn the_beginning_of_the_names_of_several_runs_names_none_of_them() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.tickers = \"XOM\"\ndataset.kind = \"signals\"\n");
    let run = |_| place.run(["run", "it", "-q"]).expect_success();
    (0..2).for_each(|number| drop(run(number)));
    let listed: serde_json::Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).unwrap();
    let names: Vec<&str> = listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    let shown = place.run(["list", "runs", "20"]).failed_with(2);
    assert!(shown.stdout.is_empty(), "{}", shown.stdout);
    assert_eq!(
        shown.stderr,
        format!("error: `20` begins the names of 2 runs\nhint: the candidates are {}, {}\n", names[1], names[0])
    );
    for name in names {
        for given in [name, &name[..name.len() - 1]] {
            let shown = place.run(["list", "runs", given]).expect_success().stdout;
            assert!(shown.starts_with(&format!("run         {name}\n")), "{shown}");
        }
    }
    place.run(["list", "runs", "19"]).failed_with(1);
}
