//! What was typed before the word that is completed: the project, and the dataset or definition that is named.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use bellwether::project::Project;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use super::bash::{INDEX, join_assignments, unquote};
use crate::cli::Cli;

/// The words before the one that is completed.
#[derive(Debug)]
pub(super) struct Context {
    words: Vec<String>,
    /// Those that are neither commands nor options nor their values.
    pub(super) names: Vec<String>,
}

impl Context {
    /// The words as a shell passes them on.
    pub(super) fn of(shell: Shell, typed: &[OsString]) -> Self {
        let plain = || typed.iter().map(|word| word.to_string_lossy().into_owned());
        let last = typed.len().saturating_sub(1);
        let (mut words, index) = match shell {
            Shell::Bash => join_assignments(typed),
            Shell::Zsh => {
                let index = env::var(INDEX).ok().and_then(|index| index.parse().ok());
                (plain().map(|word| unquote(&word)).collect(), index.unwrap_or(last))
            }
            _ => (plain().collect(), last),
        };
        words.truncate(index);
        let names = names(&words);
        Self { words, names }
    }

    /// The project: the one that is named, or that of the current folder.
    pub(super) fn project(&self) -> Option<Project> {
        self.value(&["--directory", "-C"]).map_or_else(Project::find, Project::at).ok()
    }

    /// The folder of the datasets and the archive.
    pub(super) fn data(&self) -> Option<PathBuf> {
        let named = self.value(&["--data"]).or_else(|| variable("BELLWETHER_DATA"));
        named.or_else(|| Some(self.project()?.data()))
    }

    /// The folder of the archive.
    pub(super) fn archive(&self) -> Option<PathBuf> {
        let named = self.value(&["--archive"]).or_else(|| variable("BELLWETHER_ARCHIVE"));
        named.or_else(|| Some(self.data()?.join("archive")))
    }

    /// The value of an option, under any of its names.
    fn value(&self, names: &[&str]) -> Option<PathBuf> {
        for (index, word) in self.words.iter().enumerate() {
            for name in names {
                match word.strip_prefix(name) {
                    Some("") => return self.words.get(index + 1).map(|value| below_home(value)),
                    Some(rest) if name.starts_with("--") => {
                        if let Some(value) = rest.strip_prefix('=') {
                            return Some(below_home(value));
                        }
                    }
                    Some(value) => return Some(below_home(value)),
                    None => {}
                }
            }
        }
        None
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A path, whose `~` a shell would have replaced.
fn below_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

/// The words that are neither commands nor options nor their values.
fn names(words: &[String]) -> Vec<String> {
    let mut command = Cli::command();
    // Global options are only known to subcommands once it is built.
    command.build();
    let (mut command, mut names) = (&command, Vec::new());
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("" | "-") => {}
            Some(flag) => {
                if takes_next(command, flag) {
                    words.next();
                }
            }
            None => match command.find_subcommand(word).filter(|_| names.is_empty()) {
                Some(found) => command = found,
                None => names.push(word.clone()),
            },
        }
    }
    names
}

/// Whether the word after an option is its value. The option is without its first hyphen.
fn takes_next(command: &Command, flag: &str) -> bool {
    let argument = command.get_arguments().find(|argument| match flag.strip_prefix('-') {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short().is_some_and(|short| flag.strip_prefix(short) == Some("")),
    });
    argument.is_some_and(|argument| argument.get_action().takes_values() && !argument.is_require_equals_set())
}
