//! The kinds of values that arguments take.

use clap::Arg;

/// What a value is a name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Definition,
    /// A dataset, or one of its versions after a slash.
    Dataset,
    /// A version with its dataset.
    Version,
    Run,
    /// A version of the dataset that is named before, or a run.
    VersionOrRun,
    Service,
    Ticker,
    Sector,
    Period,
    Regime,
    Column,
    /// A command with a manual page.
    Command,
    Folder,
    File,
    /// Something that no list has: a number, a date, a text.
    Free,
}

impl Kind {
    /// The kind of an argument of a command, by the name of its value; none if it takes no value, or if clap knows its
    /// values.
    pub(super) fn of(argument: &Arg, path: &str) -> Option<Self> {
        if !argument.get_action().takes_values() {
            return None;
        }
        let name = argument.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        let kind = Self::by_name(name, path);
        // A regime is one of a dataset's before it is one of all.
        let is_known = !argument.get_possible_values().is_empty() && kind.is_none();
        if is_known { None } else { Some(kind.unwrap_or(Self::Free)) }
    }

    fn by_name(name: &str, path: &str) -> Option<Self> {
        Some(match (name, path) {
            ("DEFINITION", _) | ("NAME", "status") => Self::Definition,
            ("DATASET" | "EARLIER" | "LATER" | "NAME[/VERSION]", _) => Self::Dataset,
            ("VERSION", _) => Self::Version,
            ("RUN", _) => Self::Run,
            ("INSTANT|VERSION", _) => Self::VersionOrRun,
            ("SERVICE", _) | ("NAME", "serve" | "archive migrate" | "store migrate") => Self::Service,
            ("TICKER", _) => Self::Ticker,
            ("SECTOR", _) => Self::Sector,
            ("PERIOD", _) => Self::Period,
            ("REGIME", _) => Self::Regime,
            ("COLUMN", "show") => Self::Column,
            ("COMMAND", "man") => Self::Command,
            ("FOLDER" | "FOLDER|URL", _) => Self::Folder,
            ("FILE" | "FILES" | "FILE|URL" | "PEM", _) => Self::File,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory as _};

    use super::Kind;
    use crate::cli::Cli;

    /// The names of values that no list has. A column of `import` is one of a table, and a name of `init` is new.
    const FREE: &str = "ADDRESS COLUMN COLUMNS COUNT DAY DAYS DIALECT HOST INSTANT N NAME NUMBER OWN=NAME PATTERN PORT \
        REQUEST RUNS SEED SESSIONS SET SHARE TEXT TIME URL VINTAGE";

    fn add(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        let free = command.get_arguments().filter(|argument| Kind::of(argument, path) == Some(Kind::Free));
        found.extend(free.flat_map(|argument| argument.get_value_names()).flatten().map(|name| name.to_string()));
        for command in command.get_subcommands() {
            add(command, format!("{path} {}", command.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn every_value_has_candidates_or_is_one_of_none() {
        let mut found = BTreeSet::new();
        add(&Cli::command(), "", &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), FREE);
    }
}
