//! The configuration printed for each platform, checked with the platform's own tools where available.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use bellwether_cli::schedule::print::Platform;

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::tools::{PYTHON, Tool, needs};

const PLATFORMS: [&str; 6] = ["systemd", "crontab", "launchd", "kubernetes", "airflow", "github-actions"];

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
        if platform != "github-actions" {
            assert!(text.contains(env!("CARGO_BIN_EXE_bellwether")), "{platform}: {text}");
            assert!(text.contains(&root.to_string_lossy().into_owned()), "{platform}: {text}");
        }
        fs::write(place.file(platform), text).unwrap();
    }
    python::check("check_platforms.py", [place.path()]);
    // New York's winter and summer time in UTC, including midnight on Sunday.
    let actions = print(&place, "github-actions");
    for cron in ["\"30 22 * * 1-5\"", "\"30 23 * * 1-5\"", "\"0 4 * * 0\"", "\"0 5 * * 0\""] {
        assert!(actions.contains(&format!("- cron: {cron}\n")), "{actions}");
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
    for platform in Platform::ALL.map(Platform::as_str) {
        let mut command = place.command(["schedule", "print", "--for", platform]);
        command.envs(settings.iter().map(|(name, value, _)| (name, value))).envs(secrets);
        command.env("BELLWETHER_API_KEY_FILE", "kept-key");
        let text = Outcome::of(&mut command).expect_success().stdout;
        for (variable, _, shown) in &settings {
            let option = format!("--{}", variable["BELLWETHER_".len()..].to_lowercase().replace('_', "-"));
            let carried = [
                format!("{option} {shown}"),
                format!("\"{option}\", \"{shown}"),
                format!("<string>{option}</string>\n        <string>{shown}"),
            ];
            let is_path = shown.starts_with("kept-");
            let is_there =
                if is_path { text.contains(shown) } else { carried.iter().any(|words| text.contains(words)) };
            assert!(shown.is_empty() || is_there, "{platform} drops {variable}:\n{text}");
        }
        assert!(!text.contains("hidden-value"), "{platform}: {text}");
        // The others have places of their own for secrets.
        let reads_files = ["crontab", "launchd", "airflow"].contains(&platform);
        assert_eq!(text.contains("kept-key"), reads_files, "{platform}: {text}");
        for (name, _) in &secrets[1..] {
            assert!(text.contains(&format!("`{name}`")), "{platform} does not name {name}: {text}");
        }
        fs::write(place.file(platform), text).unwrap();
    }
    python::check("check_platforms.py", [place.path()]);
    // Options say the same as variables.
    let listen = ["--listen", "127.0.0.1:9464", "--listen-host", "status.example"];
    let options = [&["schedule", "--jobs", "4"][..], &listen, &["print", "--for", "systemd"]].concat();
    let text = place.run(options).expect_success().stdout;
    assert!(text.contains("--jobs 4 --listen 127.0.0.1:9464 --listen-host status.example"), "{text}");
    place.run(["schedule", "--once", "print", "--for", "systemd"]).failed_with(2);
}

#[test]
fn kubernetes_names_of_similar_and_of_long_definitions_differ() {
    let place = Place::new();
    let long = "a".repeat(60);
    let names = ["us-eq", "us_eq", "US-EQ", "us-eq-", "_", "__", &format!("{long}-b"), &format!("{long}-c"), &long];
    for name in names {
        place.define(name, &definition("@daily"));
    }
    let text = print(&place, "kubernetes");
    let objects: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(objects.len(), names.len(), "{objects:?}");
    for object in objects {
        let name = object.trim_matches('"');
        // A job has eleven characters more than its CronJob, and at most 63.
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(name.len() <= 52 && name.chars().all(is_plain) && !name.ends_with('-'), "{name}");
    }
}

#[test]
fn a_launchd_agent_is_valid_whatever_its_definitions_are_called() {
    let place = place();
    for name in ["a---b", "c----", "d--"] {
        place.define(name, &definition("@daily"));
    }
    let text = print(&place, "launchd");
    fs::write(place.file("launchd"), text).unwrap();
    python::check("check_agent.py", [place.file("launchd")]);
}

#[test]
fn airflow_loads_a_dag_for_each_definition() {
    let place = place();
    let dags = place.file("dags");
    fs::create_dir(&dags).unwrap();
    fs::write(dags.join("bellwether.py"), print(&place, "airflow")).unwrap();
    python::check_with_airflow("check_airflow.py", [dags, place.file("airflow")]);
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
fn a_github_workflow_has_times_keeps_what_there_is_and_installs_what_can_be_installed() {
    let place = Place::new();
    place.define("leap", &definition("0 6 29 2 *"));
    let text = print(&place, "github-actions");
    assert!(text.contains("    - cron: \"0 6 29 2 *\"\n"), "{text}");
    // Also twice a week, which keeps the cache.
    assert_eq!(text.matches("    - cron: ").count(), 2, "{text}");
    assert!(!text.contains("--path .") && text.contains("vars.BELLWETHER_SOURCE"), "{text}");
    // A project below the top of its repository, and folders elsewhere.
    fs::create_dir(place.file(".git")).unwrap();
    fs::create_dir_all(place.file("sub/pipelines")).unwrap();
    fs::write(place.file("sub/pipelines/nightly.toml"), definition("@daily")).unwrap();
    let arguments = ["schedule", "print", "--for", "github-actions", "-C", "sub", "--data", "sub/kept"];
    let text = place.run(arguments.into_iter().chain(["--archive", "elsewhere"])).expect_success().stdout;
    assert!(text.contains("    working-directory: \"sub\"\n") && text.contains("path: \"sub/kept\"\n"), "{text}");
    assert!(text.contains("bellwether schedule --once --data kept --log json || code=$?"), "{text}");
    assert!(text.contains("# Left out: `--archive ") && text.contains("/elsewhere`, which is outside"), "{text}");
    // Bellwether's own source.
    fs::write(place.file("Cargo.toml"), "[package]\nname = \"bellwether\"\n").unwrap();
    let text = print(&place, "github-actions");
    assert!(text.contains("cargo install --locked --path .\n") && !text.contains("BELLWETHER_SOURCE"), "{text}");
}

#[test]
fn a_github_workflow_runs_a_monthly_definition_after_its_cache_was_removed() {
    needs!(PYTHON);
    let place = Place::new();
    place.define("monthly", &definition("0 6 1 * *"));
    let unreachable = "[source]\nbase_url = \"http://127.0.0.1:9/v1\"\nsentiment_base_url = \"http://127.0.0.1:9/v1\"\n\
                       patience = \"1s\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"0 6 1 * *\"\n";
    place.define("unreachable", unreachable);
    let workflow = place.file("workflow.yml");
    fs::write(&workflow, print(&place, "github-actions")).unwrap();
    let script = python::output("workflow_step.py", [&workflow]);
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_bellwether")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    // As GitHub runs it.
    let start = || {
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]).current_dir(place.path());
        Outcome::of(command.env_clear().env("PATH", &path).env("BELLWETHER_API_KEY", "key"))
    };
    let dataset = place.file("output/datasets/monthly/latest");
    for _ in 0..2 {
        start().failed_with(75);
        assert!(dataset.exists() && place.file("output/schedule/monthly.json").exists());
        assert!(!place.file("output/schedule/unreachable.json").exists(), "what failed is started again");
        fs::remove_dir_all(place.file("output")).unwrap();
    }
    start().failed_with(75);
    let outcome = start().failed_with(75);
    assert!(!outcome.stderr.contains("monthly"), "once, until it is due: {}", outcome.stderr);
    fs::remove_file(place.file("pipelines/unreachable.toml")).unwrap();
    fs::write(&workflow, print(&place, "github-actions")).unwrap();
    let script = python::output("workflow_step.py", [&workflow]);
    assert!(!script.contains("unreachable"));
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
fn a_schedule_that_a_platform_cannot_express_is_refused() {
    let place = Place::new();
    let outcome = place.run(["schedule", "print", "--for", "systemd"]).failed_with(2);
    assert!(outcome.stderr.contains("has a `[schedule]`\nhint: add one"), "{}", outcome.stderr);
    place.define(
        "it",
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"*/5 * * * * *\"\n",
    );
    for platform in ["kubernetes", "airflow"] {
        let outcome = place.run(["schedule", "print", "--for", platform]).failed_with(2);
        assert!(outcome.stderr.starts_with("error: the schedule of `it` has seconds"), "{}", outcome.stderr);
    }
    place.run(["schedule", "print", "--for", "systemd"]).expect_success();
}
