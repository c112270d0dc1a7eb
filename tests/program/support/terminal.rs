//! The program in a pseudo-terminal.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};

use super::program::Place;
use super::python;
use super::tools::PYTHON;

/// The contents of the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) code: i64,
    /// The lines at the end.
    pub(crate) lines: Vec<String>,
    /// Maximum number of bars shown at once.
    pub(crate) most_bars: u64,
    /// The codes of the colors.
    pub(crate) colors: Vec<String>,
}

/// A window: its successive widths, and the lines typed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) widths: &'a str,
    pub(crate) answers: &'a [&'a str],
}

impl Window<'_> {
    /// A window with a fixed width.
    pub(crate) fn of(widths: &str) -> Window<'_> {
        Window { widths, answers: &[] }
    }

    #[track_caller]
    pub(crate) fn run<I: AsRef<OsStr>>(self, place: &Place, arguments: impl IntoIterator<Item = I>) -> Screen {
        self.start(place, Path::new(env!("CARGO_BIN_EXE_bellwether")), arguments)
    }

    /// Runs a line in a shell that finds the program by name; the browser does nothing.
    #[track_caller]
    pub(crate) fn shell(self, place: &Place, line: &str) -> Screen {
        self.start(place, Path::new("/bin/sh"), ["-c", line])
    }

    #[track_caller]
    fn start<I: AsRef<OsStr>>(self, place: &Place, program: &Path, arguments: impl IntoIterator<Item = I>) -> Screen {
        let programs = Path::new(env!("CARGO_BIN_EXE_bellwether")).parent().expect("a folder of programs").display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut command = python::command(PYTHON, "terminal.py");
        command.arg(self.widths).arg(json!(self.answers).to_string());
        command.arg(program).args(arguments).current_dir(place.path()).env_clear();
        command.env("PATH", path).env("TERM", "xterm-256color").env("BROWSER", "true");
        let output = command.output().expect("python starts");
        let seen: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let texts = |name: &str| {
            let list = seen[name].as_array().expect("a list");
            list.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
        };
        Screen {
            code: seen["code"].as_i64().expect("a number"),
            lines: texts("lines"),
            most_bars: seen["most_bars"].as_u64().expect("a number"),
            colors: texts("colors"),
        }
    }
}

impl Screen {
    #[track_caller]
    pub(crate) fn expect_success(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}
