//! What tests need that Rust does not bring. Where `tests/run` runs all tests, it has installed all of it, and what is missing
//! fails. Elsewhere a check without its tool is left out, and so that no one takes it for passed, that is said in a file if
//! one is named.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, thread};

/// `all` if a missing tool fails.
const NEEDED: &str = "BELLWETHER_TOOLS";

/// The file with a line for each check that was left out.
const LEFT_OUT: &str = "BELLWETHER_LEFT_OUT";

/// A program of others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool {
    /// In a folder of `tests`, which `tests/run` makes.
    Installed(&'static str),
    /// A command of the system.
    Command(&'static str),
}

/// Python with the packages that users read datasets with, and a server of S3.
pub(crate) const PYTHON: Tool = Tool::Installed(".venv/bin/python");

impl Tool {
    /// Where it is, or would be.
    pub(crate) fn path(self) -> PathBuf {
        match self {
            Self::Installed(path) => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path),
            Self::Command(name) => name.into(),
        }
    }

    /// Whether it is there. If not, what needs it is left out.
    #[track_caller]
    pub(crate) fn is_there(self) -> bool {
        let path = self.path();
        let is_there = match self {
            Self::Installed(_) => path.exists(),
            Self::Command(_) => {
                env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(&path).exists())
            }
        };
        if !is_there {
            let is_needed = env::var(NEEDED).is_ok_and(|needed| needed == "all");
            assert!(!is_needed, "{} is missing: `tests/run` installs it", path.display());
            self.note_left_out();
        }
        is_there
    }

    fn note_left_out(self) {
        let (Self::Installed(tool) | Self::Command(tool)) = self;
        let thread = thread::current();
        let line = format!("{}: without {tool}\n", thread.name().unwrap_or("a test"));
        if let Some(path) = env::var_os(LEFT_OUT) {
            let mut file =
                OpenOptions::new().create(true).append(true).open(path).expect("the file of what is left out");
            file.write_all(line.as_bytes()).expect("the file of what is left out");
        }
    }
}

/// Ends a test whose tool is missing.
macro_rules! needs {
    ($tool:expr) => {
        if !$tool.is_there() {
            return;
        }
    };
}

pub(crate) use needs;
