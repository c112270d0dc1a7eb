//! Python, with the packages that the project's users read datasets with, and with Spark and Airflow.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a script of `tests/python`; what it prints when it fails is the failure.
#[track_caller]
pub(crate) fn check<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run(".venv", script, arguments);
}

/// Runs a script of `tests/python` that needs Spark, which has an environment of its own.
#[track_caller]
pub(crate) fn check_with_spark<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run("spark/.venv", script, arguments);
}

/// Runs a script of `tests/python` that needs Airflow, which has an environment of its own.
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
    let told = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&told));
}

/// Runs a script of `tests/python` that must succeed, and returns what it prints.
#[track_caller]
pub(crate) fn output<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut command = Command::new(tests.join(".venv/bin/python"));
    let output = command.arg(tests.join("python").join(script)).args(arguments).output().expect("python starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}
