//! `bellwether man`: manual pages.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::help::{ENVIRONMENT, EXAMPLES};
use super::outcome::{EXIT_CODES, Result};
use super::typed::usage;
use super::{Cli, say};

/// What a page begins with: how roff writes an apostrophe.
const QUOTES: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Print a manual page, of the program or of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The command, such as `run`, `audit leak` or `audit-leak`. Default: the program.
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

impl Man {
    pub(super) fn execute(self) -> Result<()> {
        let mut found = Cli::command();
        found.build();
        found = found.mut_subcommands(without_help);
        let typed = self.path.join("-");
        let path = typed.strip_prefix("bellwether").map_or(&*typed, |rest| rest.trim_start_matches('-'));
        let path: Vec<&str> = path.split('-').filter(|word| !word.is_empty()).collect();
        for word in &path {
            let Some(next) = found.find_subcommand(word) else {
                return Err(usage(&format!("unknown command `{word}`"), "`bellwether --help` lists the commands"));
            };
            found = next.clone();
        }
        say(&page(found, &path.join(" ")))
    }
}

/// Hides the commands named `help`, which have no pages.
fn without_help(command: Command) -> Command {
    let is_help = command.get_name() == "help";
    command.hide(is_help).mut_subcommands(without_help)
}

/// The page of a command.
fn page(command: Command, path: &str) -> String {
    let examples = EXAMPLES.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, examples)| *examples);
    let notes = command.get_after_help().map(ToString::to_string);
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let version = concat!("bellwether ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command).title(title).source(version).manual("Bellwether");
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page))
        .and_then(|()| if has_commands { man.render_subcommands_section(&mut page) } else { Ok(()) });
    // Each section begins as if it were the only one.
    let sections = String::from_utf8_lossy(&page).replace(QUOTES, "");
    let mut page = format!("{QUOTES}{sections}");
    let examples: Vec<(String, &str)> =
        examples.iter().map(|(typed, what)| (format!("bellwether {typed}"), *what)).collect();
    push_table(&mut page, "EXAMPLES", &examples);
    if path.is_empty() {
        push_table(&mut page, "ENVIRONMENT", &ENVIRONMENT);
        push_table(&mut page, "EXIT STATUS", &EXIT_CODES.map(|(code, meaning)| (code.to_string(), meaning)));
    }
    if let Some(notes) = notes {
        let _ = writeln!(page, ".SH NOTES\n{}", roff(&notes));
    }
    page
}

/// A section with a table: a name, and below it what it means.
fn push_table<T: AsRef<str>>(page: &mut String, title: &str, rows: &[(T, &str)]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(page, ".SH \"{title}\"");
    for (name, meaning) in rows {
        let _ = writeln!(page, ".TP\n\\fB{}\\fR\n{}", roff(name.as_ref()), roff(meaning));
    }
}

/// A text as roff: no character of it is a command.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    escaped.lines().map(|line| format!("\\&{line}")).collect::<Vec<_>>().join("\n")
}
