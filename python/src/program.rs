//! The program `bellwether`, as the package installs it.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| bellwether_cli::main_with(arguments))
}
