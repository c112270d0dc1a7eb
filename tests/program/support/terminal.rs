//! The program in a pseudo-terminal, as a person sees it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::program::Place;

/// What a person saw.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: i64,
    /// The lines that were there in the end.
    pub(crate) lines: Vec<String>,
    /// The most bars that were there at once.
    pub(crate) most_bars: u64,
    /// The codes of the colors.
    pub(crate) colors: Vec<String>,
}

/// A window: its widths, one after the other, and the lines that are typed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) widths: &'a str,
    pub(crate) answers: &'a [&'a str],
}

impl Window<'_> {
    /// A window that keeps its width.
    pub(crate) fn of(widths: &str) -> Window<'_> {
        Window { widths, answers: &[] }
    }

    #[track_caller]
    pub(crate) fn run<I: AsRef<OsStr>>(self, place: &Place, arguments: impl IntoIterator<Item = I>) -> Seen {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut command = Command::new(tests.join(".venv/bin/python"));
        command.arg(tests.join("python/terminal.py")).arg(self.widths).arg(json!(self.answers).to_string());
        command.arg(env!("CARGO_BIN_EXE_bellwether")).args(arguments).current_dir(place.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm-256color");
        let output = command.output().expect("python starts");
        let seen: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let texts = |name: &str| {
            let list = seen[name].as_array().expect("a list");
            list.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
        };
        Seen {
            code: seen["code"].as_i64().expect("a number"),
            lines: texts("lines"),
            most_bars: seen["most_bars"].as_u64().expect("a number"),
            colors: texts("colors"),
        }
    }
}

impl Seen {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}
