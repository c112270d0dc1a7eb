//! Python with the packages that users read datasets with, and with Spark and Airflow.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a script of `tests/python`, and panics with its output if it fails.
#[track_caller]
pub(crate) fn check<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run(".venv", script, arguments);
}

/// Runs a script of `tests/python` in the environment with Spark.
#[track_caller]
pub(crate) fn check_with_spark<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run("spark/.venv", script, arguments);
}

/// Runs a script of `tests/python` in the environment with Airflow.
#[track_caller]
pub(crate) fn check_with_airflow<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run("airflow/.venv", script, arguments);
}

#[track_caller]
fn run<I: AsRef<OsStr>>(environment: &str, script: &str, arguments: impl IntoIterator<Item = I>) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let python = tests.join(environment).join("bin/python");
    assert!(python.exists(), "{} is missing: `tests/run` installs it", python.display());
    let output =
        Command::new(python).arg(tests.join("python").join(script)).args(arguments).output().expect("python starts");
    let message = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&message));
}

/// Runs a script of `tests/python`, which must succeed, and returns its output.
#[track_caller]
pub(crate) fn output<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut command = Command::new(tests.join(".venv/bin/python"));
    let output = command.arg(tests.join("python").join(script)).args(arguments).output().expect("python starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}
