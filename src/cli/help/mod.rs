//! The program's help: commands in groups, examples, environment variables and exit codes.

mod examples;

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::Cli;
use super::outcome::EXIT_CODES;
use super::wrap::{columns, wrap};
pub(super) use examples::EXAMPLES;

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The headings of options, in the order in which they appear.
pub(super) const SELECTION: &str = "Selection";
pub(super) const OUTPUT: &str = "Output";
pub(super) const STORAGE: &str = "Storage";
pub(super) const PROGRESS: &str = "Progress and logs";
pub(super) const GLOBAL: &str = "Global options";

/// The width of help outside a terminal, and in a wider one.
const WIDEST: usize = 100;

/// The layout of the program's own help. That of its commands is the usual one.
pub(super) const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The commands in groups, first steps first. Commands outside all groups go to the last one.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["init", "doctor", "run"]),
    ("Datasets", &["show", "open", "summary", "report", "datasets", "diff", "cite", "build", "sql"]),
    ("Archive", &["runs", "verify", "stamp", "audit", "archive", "import"]),
    ("Definitions", &["check", "plan", "schema"]),
    ("Operations", &["schedule", "status", "prune", "store"]),
    ("More", &["serve", "completions", "man"]),
];

pub(super) const ENVIRONMENT: [(&str, &str); 18] = [
    ("BELLWETHER_API_KEY", "the API key of the service"),
    ("BELLWETHER_API_KEY_FILE", "a file with the API key, relative to the project's root"),
    ("BELLWETHER_BASE_URL", "the address of the signals, for definitions without one"),
    ("BELLWETHER_SENTIMENT_BASE_URL", "the address of news and sentiment, likewise"),
    ("BELLWETHER_ROOT", "the root of the project, as `--directory`"),
    ("BELLWETHER_DATA", "the folder of datasets and archive, as `--data`"),
    ("BELLWETHER_ARCHIVE", "the folder of the archive, as `--archive`"),
    ("BELLWETHER_STORE", "the object store, as `--store`"),
    ("BELLWETHER_JOBS", "how many runs `schedule` has at once, as `--jobs`"),
    ("BELLWETHER_LISTEN", "the address of the status page, as `--listen`"),
    ("BELLWETHER_METRICS", "a file for metrics, as `--metrics`"),
    ("BELLWETHER_PRUNE_OLDER_THAN", "an age, as `--older-than` of `prune`"),
    ("BELLWETHER_TRUST", "projects whose definitions are trusted, whoever can write them"),
    ("BELLWETHER_LOG", "the format of events, as `--log`"),
    ("BELLWETHER_LOG_LEVEL", "the level of log messages, as `--log-level`"),
    ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "the proxy to use, and hosts to reach without it"),
    ("SSL_CERT_FILE", "certificates to trust instead of the system's"),
    ("NO_COLOR", "no colors, with any value that is not empty"),
];

/// The option that prints help.
pub(super) fn flag() -> Arg {
    let help = "Print help: a summary with `-h`, everything with `--help`";
    Arg::new("help").long("help").short('h').global(true).action(ArgAction::Help).help_heading(GLOBAL).help(help)
}

/// The command line, with its help.
pub(super) fn command() -> Command {
    let width = columns().map_or(WIDEST, |columns| columns.min(WIDEST));
    let command = Cli::command().term_width(width);
    let (names, summaries) = (names(&command), summaries(&command, width));
    let program = "bellwether";
    let more =
        format!("`{program} COMMAND --help` explains a command, `{program} --help` has exit codes and variables.");
    let command =
        command.before_help(names).before_long_help(summaries).after_help(more).after_long_help(details(width));
    let command = EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let words: Vec<&str> = path.split(' ').collect();
        with_examples(command, &words, examples)
    });
    without_empty_variables(command)
}

/// Without the variables that are empty, which count as not set.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |variable: &OsStr| env::var_os(variable).is_some_and(|value| value.is_empty());
    let unset = |argument: Arg| match argument.get_env().is_some_and(is_empty) {
        true => argument.env(None::<&'static str>),
        false => argument,
    };
    command.mut_args(unset).mut_subcommands(without_empty_variables)
}

fn with_examples(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
        let mut text = format!("{header}Examples:{header:#}\n");
        for (typed, what) in examples {
            let _ = writeln!(text, "  {literal}bellwether {typed}{literal:#}\n      {what}");
        }
        if let Some(own) = command.get_after_help() {
            let _ = write!(text, "\n{}", own.ansi());
        }
        return command.after_help(text);
    };
    // A command that this build does not have.
    if command.find_subcommand(first).is_none() {
        return command;
    }
    command.mut_subcommand(first, |command| with_examples(command, rest, examples))
}

/// The groups, and the commands of each that there are.
fn groups(command: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let mut groups: Vec<(&str, Vec<&Command>)> = GROUPS.iter().map(|(title, _)| (*title, Vec::new())).collect();
    let last = groups.len() - 1;
    for (group, (_, names)) in GROUPS.iter().enumerate() {
        groups[group].1.extend(names.iter().filter_map(|name| command.find_subcommand(name)));
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    groups[last].1.extend(command.get_subcommands().filter(|command| !is_grouped(command.get_name())));
    groups.retain(|(_, commands)| !commands.is_empty());
    groups
}

/// The names of the commands, a line for each group.
fn names(command: &Command) -> String {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = format!("{header}Commands:{header:#}\n");
    for (title, commands) in groups(command) {
        let names: Vec<String> =
            commands.iter().map(|command| format!("{literal}{}{literal:#}", command.get_name())).collect();
        let _ = writeln!(text, "  {title:12}  {}", names.join(", "));
    }
    text
}

/// The commands with what they do.
fn summaries(command: &Command, width: usize) -> String {
    let header = STYLES.get_header();
    let mut text = String::new();
    for (title, commands) in groups(command) {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&row(command.get_name(), 12, &about, width));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// A name with what it means, which is wrapped under itself: a second line would look like another name.
fn row(name: &str, indent: usize, meaning: &str, width: usize) -> String {
    let literal = STYLES.get_literal();
    let line = wrap(&format!("  {name:indent$}  {meaning}"), indent + 4, Some(width));
    let rest = &line[2 + name.len()..];
    // The style does not begin a line: clap would count the line on from the one before, and wrap it again.
    format!("  {literal}{name}{literal:#}{rest}\n")
}

/// Environment variables and exit codes.
fn details(width: usize) -> String {
    let header = STYLES.get_header();
    let mut text = format!("{header}Environment:{header:#}\n");
    for (name, meaning) in ENVIRONMENT {
        text.push_str(&row(name, 32, meaning, width));
    }
    let _ = writeln!(text, "\n{header}Exit codes:{header:#}");
    for (code, meaning) in EXIT_CODES {
        text.push_str(&row(&format!("{code:>3}"), 3, meaning, width));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::super::Cli;
    use super::{EXAMPLES, GROUPS, command};

    /// The lines that a text takes in a terminal.
    fn lines(text: &str, columns: usize) -> usize {
        text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum()
    }

    fn each(command: &Command, path: &str, check: &mut impl FnMut(&Command, &str)) {
        for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
            let path = format!("{path} {}", command.get_name()).trim().to_owned();
            check(command, &path);
            each(command, &path, check);
        }
    }

    #[test]
    fn every_command_has_a_group_and_examples_that_parse() {
        each(&Cli::command(), "", &mut |_, path| {
            let is_grouped = path.contains(' ') || GROUPS.iter().any(|(_, names)| names.contains(&path));
            assert!(is_grouped, "`{path}` is in no group");
            assert!(EXAMPLES.iter().any(|(name, _)| *name == path), "`{path}` has no example");
        });
        for (path, examples) in EXAMPLES {
            for (typed, _) in *examples {
                assert!(typed.starts_with(path), "{typed}");
                let is_there = Cli::command().find_subcommand(path.split(' ').next().unwrap()).is_some();
                let typed = typed.split(" | ").next().unwrap();
                // What is quoted is one word.
                let parts = typed.split('"').enumerate();
                let words = parts.flat_map(|(number, part)| match number % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
                let words = ["bellwether"].into_iter().chain(words);
                assert!(!is_there || command().try_get_matches_from(words).is_ok(), "{typed}");
            }
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let help = command().render_help().to_string();
        assert!(lines(&help, 80) <= 24, "{help}");
        let mut built = command();
        built.build();
        each(&built, "", &mut |command, path| {
            let help = command.clone().render_help().to_string();
            assert!(lines(&help, 100) <= 50, "{path}: {help}");
        });
    }
}
