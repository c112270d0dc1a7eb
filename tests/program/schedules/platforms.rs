//! The configuration printed for each platform, checked with the platform's own tools where available.

use std::fs;
use std::process::Command;

use crate::support::program::Place;
use crate::support::python;

const PLATFORMS: [&str; 6] = ["systemd", "crontab", "launchd", "kubernetes", "airflow", "github-actions"];

fn place() -> Place {
    let place = Place::new();
    for (name, cron) in [("nightly", "30 18 * * MON-FRI"), ("Weekly_report", "@weekly")] {
        place.define(
            name,
            &format!(
                "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[schedule]\ncron = \"{cron}\"\n\
                 timezone = \"America/New_York\"\n"
            ),
        );
    }
    place.define("unscheduled", "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n");
    place
}

fn printed(place: &Place, platform: &str) -> String {
    place.run(["schedule", "print", "--for", platform]).succeeded().stdout
}

#[test]
fn every_platform_gets_absolute_paths_time_zones_a_key_file_and_exit_codes() {
    let place = place();
    let root = place.path().canonicalize().unwrap();
    for platform in PLATFORMS {
        let text = printed(&place, platform);
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
    let actions = printed(&place, "github-actions");
    for cron in ["\"30 22 * * 1,2,3,4,5\"", "\"30 23 * * 1,2,3,4,5\"", "\"0 4 * * 0\"", "\"0 5 * * 0\""] {
        assert!(actions.contains(&format!("- cron: {cron}\n")), "{actions}");
    }
}

#[test]
fn airflow_loads_a_dag_for_each_definition() {
    let place = place();
    let dags = place.file("dags");
    fs::create_dir(&dags).unwrap();
    fs::write(dags.join("bellwether.py"), printed(&place, "airflow")).unwrap();
    python::check_with_airflow("check_airflow.py", [dags, place.file("airflow")]);
}

#[test]
fn systemd_accepts_the_unit_and_cron_the_line() {
    let place = place();
    let unit = place.file("bellwether.service");
    fs::write(&unit, printed(&place, "systemd")).unwrap();
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
    fs::write(&line, printed(&place, "crontab")).unwrap();
    // The option of Debian's cron, and that of other crons.
    let test = |option: &str| {
        Command::new("crontab").arg(option).arg(&line).output().expect("crontab: `tests/run` installs it")
    };
    assert!(["-n", "-T"].iter().any(|option| test(option).status.success()), "{:?}", test("-n"));
}

#[test]
fn a_scheduler_run_by_cron_prints_nothing_when_nothing_is_due() {
    let place = place();
    let text = printed(&place, "crontab");
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
    place.run(["schedule", "print", "--for", "systemd"]).succeeded();
}
