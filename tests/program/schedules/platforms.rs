//! What is printed for systemd and cron, checked with their own tools where available, and the templates for other platforms.

use std::fs;
use std::process::Command;

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::tools::{PYTHON, Tool, needs};

const PLATFORMS: [&str; 2] = ["systemd", "crontab"];

/// A definition of the demo service with a schedule.
fn definition(cron: &str) -> String {
    format!("[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"{cron}\"\n")
}

fn place() -> Place {
    let place = Place::new();
    for (name, cron) in [("nightly", "30 18 * * MON-FRI"), ("Weekly_report", "@weekly")] {
        place.define(name, &format!("{}timezone = \"America/New_York\"\n", definition(cron)));
    }
    place.define("unscheduled", "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n");
    place
}

fn print(place: &Place, platform: &str) -> String {
    place.run(["schedule", "print", "--for", platform]).expect_success().stdout
}

#[test]
fn every_platform_gets_absolute_paths_time_zones_a_key_file_and_exit_codes() {
    let place = place();
    let root = place.path().canonicalize().unwrap();
    for platform in PLATFORMS {
        let text = print(&place, platform);
        assert!(text.contains("75 a temporary failure"), "{platform}: {text}");
        assert!(text.contains("America/New_York"), "{platform}: {text}");
        assert!(text.contains("BELLWETHER_API_KEY"), "{platform}: {text}");
        assert!(text.contains(env!("CARGO_BIN_EXE_bellwether")), "{platform}: {text}");
        assert!(text.contains(&root.to_string_lossy().into_owned()), "{platform}: {text}");
    }
}

/// The variables of `docs/operations.md` that `schedule` reads, each with a value and what of it must be found.
fn settings(place: &Place) -> Vec<(String, String, &'static str)> {
    let docs = include_str!("../../../docs/operations.md");
    let (_, table) = docs.split_once("<!-- variables -->").expect("the table of variables");
    let (table, _) = table.split_once("<!-- end of variables -->").expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| `BELLWETHER_"));
    let ours = rows.filter(|row| row.contains("every command") || row.contains("`schedule`"));
    let below = |name: &str| place.path().canonicalize().expect("a folder").join(name).display().to_string();
    let setting = |row: &str| {
        let variable = row.split('`').nth(1).expect("a variable");
        let (value, shown) = match variable {
            "BELLWETHER_ROOT" => (below(""), ""),
            "BELLWETHER_DATA" => (below("kept-data"), "kept-data"),
            "BELLWETHER_ARCHIVE" => (below("kept-archive"), "kept-archive"),
            "BELLWETHER_STORE" => (format!("file://{}", below("kept-store")), "kept-store"),
            "BELLWETHER_METRICS" => (below("kept-metrics.prom"), "kept-metrics"),
            "BELLWETHER_LOG" => ("json".to_owned(), "json"),
            "BELLWETHER_LOG_LEVEL" => ("debug".to_owned(), "debug"),
            "BELLWETHER_LISTEN" => ("127.0.0.1:9464".to_owned(), "127.0.0.1:9464"),
            "BELLWETHER_JOBS" => ("4".to_owned(), "4"),
            _ => panic!("{variable}: carry it over or name it as left out, and add it here"),
        };
        (variable.to_owned(), value, shown)
    };
    ours.map(setting).collect()
}

#[test]
fn every_setting_is_carried_over_or_named_as_left_out_and_no_secret_is_printed() {
    let place = place();
    let settings = settings(&place);
    assert!(settings.len() >= 9, "{settings:?}");
    let secrets = [
        ("BELLWETHER_API_KEY", "hidden-value"),
        ("HTTPS_PROXY", "http://user:hidden-value@proxy:8080"),
        ("AWS_SECRET_ACCESS_KEY", "hidden-value"),
    ];
    for platform in PLATFORMS {
        let mut command = place.command(["schedule", "print", "--for", platform]);
        command.envs(settings.iter().map(|(name, value, _)| (name, value))).envs(secrets);
        command.env("BELLWETHER_API_KEY_FILE", "kept-key");
        let text = Outcome::of(&mut command).expect_success().stdout;
        for (variable, _, shown) in &settings {
            let option = format!("--{}", variable["BELLWETHER_".len()..].to_lowercase().replace('_', "-"));
            let is_path = shown.starts_with("kept-");
            let is_there = text.contains(&if is_path { (*shown).to_owned() } else { format!("{option} {shown}") });
            assert!(shown.is_empty() || is_there, "{platform} drops {variable}:\n{text}");
        }
        assert!(!text.contains("hidden-value"), "{platform}: {text}");
        // systemd has a place of its own for secrets.
        assert_eq!(text.contains("kept-key"), platform == "crontab", "{platform}: {text}");
        for (name, _) in &secrets[1..] {
            assert!(text.contains(&format!("`{name}`")), "{platform} does not name {name}: {text}");
        }
    }
    // Options say the same as variables.
    let listen = ["--listen", "127.0.0.1:9464", "--listen-host", "status.example"];
    let options = [&["schedule", "--jobs", "4"][..], &listen, &["print", "--for", "systemd"]].concat();
    let text = place.run(options).expect_success().stdout;
    assert!(text.contains("--jobs 4 --listen 127.0.0.1:9464 --listen-host status.example"), "{text}");
    place.run(["schedule", "--once", "print", "--for", "systemd"]).failed_with(2);
}

#[test]
fn systemd_accepts_the_unit_and_cron_the_line() {
    needs!(Tool::Command("crontab"));
    needs!(Tool::Command("systemd-analyze"));
    let place = place();
    let unit = place.file("bellwether.service");
    fs::write(&unit, print(&place, "systemd")).unwrap();
    // The data folder does not exist yet, and systemd starts no service whose writable paths are missing.
    let text = fs::read_to_string(&unit).unwrap();
    let writable = text.lines().find_map(|line| line.strip_prefix("ReadWritePaths=")).unwrap();
    assert!(
        !place.file("output").exists() && writable == place.path().canonicalize().unwrap().to_str().unwrap(),
        "{text}"
    );
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
    let verify = verify.expect("systemd-analyze: `tests/run` installs it");
    let message = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(verify.status.success() && !message.contains("bellwether.service"), "{message}");
    let line = place.file("crontab");
    fs::write(&line, print(&place, "crontab")).unwrap();
    // The option of Debian's cron, and that of other crons.
    let test = |option: &str| {
        Command::new("crontab").arg(option).arg(&line).output().expect("crontab: `tests/run` installs it")
    };
    assert!(["-n", "-T"].iter().any(|option| test(option).status.success()), "{:?}", test("-n"));
}

#[test]
fn systemd_takes_paths_with_spaces_and_signs_without_a_warning() {
    needs!(Tool::Command("systemd-analyze"));
    let place = Place::new();
    let folder = place.file("My Projekt 50% \"x\" $HOME; y");
    for name in ["pipelines", "output", "metrics of all"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("pipelines/nightly.toml"), definition("@daily")).unwrap();
    let mut command = place.command(["schedule", "print", "--for", "systemd", "-C"]);
    command.arg(&folder).env("BELLWETHER_METRICS", folder.join("metrics of all/it.prom"));
    let text = Outcome::of(&mut command).expect_success().stdout;
    let unit = place.file("bellwether.service");
    fs::write(&unit, &text).unwrap();
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().unwrap();
    let message = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(verify.status.success() && !message.contains("bellwether.service"), "{message}\n{text}");
    let writable = text.lines().find_map(|line| line.strip_prefix("ReadWritePaths=")).unwrap();
    assert_eq!(writable.matches("My Projekt 50%% \\\"x\\\" $HOME; y/").count(), 2, "{writable}");
    assert!(text.contains("After=time-sync.target network-online.target\n"), "{text}");
}

#[test]
fn a_scheduler_run_by_cron_prints_nothing_when_nothing_is_due() {
    let place = place();
    let text = print(&place, "crontab");
    let command = text.lines().last().unwrap().strip_prefix("*/5 * * * * ").unwrap();
    for _ in 0..2 {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    assert!(place.file("output/schedule/nightly.json").exists());
}

#[test]
fn a_project_without_a_schedule_has_nothing_to_print() {
    let place = Place::new();
    let outcome = place.run(["schedule", "print", "--for", "systemd"]).failed_with(2);
    assert!(outcome.stderr.contains("has a `[schedule]`\nhint: add one"), "{}", outcome.stderr);
    place.define("it", &definition("*/5 * * * * *"));
    place.run(["schedule", "print", "--for", "systemd"]).expect_success();
}

#[test]
fn the_templates_for_other_platforms_are_valid_and_call_commands_that_exist() {
    needs!(PYTHON);
    let place = Place::new();
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let commands: Vec<Vec<String>> =
        serde_json::from_str(&python::output("check_templates.py", [page.as_path(), place.path()])).unwrap();
    assert_eq!(commands.len(), 4);
    for command in commands {
        place.run(command.into_iter().chain(["--help".to_owned()])).expect_success();
    }
}
