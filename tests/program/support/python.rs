//! Python with the packages that users read datasets with, and with Spark.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use super::tools::{PYTHON, Tool};

/// Runs a script of `tests/python`, and panics with its output if it fails. A check whose packages are missing is left out.
#[track_caller]
pub(crate) fn check<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run(PYTHON, script, arguments);
}

/// Runs a script of `tests/python` in the environment with Spark.
#[track_caller]
pub(crate) fn check_with_spark<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) {
    run(Tool::Installed("spark/.venv/bin/python"), script, arguments);
}

#[track_caller]
fn run<I: AsRef<OsStr>>(python: Tool, script: &str, arguments: impl IntoIterator<Item = I>) {
    if !python.is_there() {
        return;
    }
    let output = command(python, script).args(arguments).output().expect("python starts");
    let message = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&message));
}

/// Runs a script of `tests/python`, which must succeed, and returns its output. The test needs [`PYTHON`].
#[track_caller]
pub(crate) fn output<I: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = I>) -> String {
    let output = command(PYTHON, script).args(arguments).output().expect("python starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The command of a script of `tests/python`.
pub(crate) fn command(python: Tool, script: &str) -> Command {
    let mut command = Command::new(python.path());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script));
    command
}
