//! The arguments as typed: parsed, or refused with the way to say it.

use std::ffi::OsString;
use std::process;

use bellwether::text::escape::escape;
use bellwether::text::problem::nearest;
use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::help::command;
use super::outcome::{Failure, USAGE};
use super::talk::note;
use super::{Cli, complain};

/// Options that were renamed: what they are called now, and what to do.
const RENAMED: [(&str, &str, &str); 3] = [
    ("--file", "output", "the file to write is `--output`"),
    ("--datasets", "data", "`--data` names the folder that `datasets` is in"),
    ("--output", "data", "the folder of the datasets and the archive is `--data`"),
];

/// Commands that remove something. A guess is never one of them.
const REMOVING: [&str; 2] = ["prune", "remove"];

/// The parsed command line. `--help`, `--version` and errors end the process. Errors are reported for the escaped
/// words, since the message repeats them.
pub(super) fn parse(arguments: Vec<OsString>) -> Cli {
    let parse =
        |words: &[OsString]| command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    parse(&arguments).unwrap_or_else(|error| {
        let words: Vec<String> = arguments.iter().map(|word| escape(&word.to_string_lossy()).into_owned()).collect();
        if let Some((what, hint)) = refusal(&error, &words) {
            note(&format!("error: {what}"));
            note(&format!("hint: {hint}"));
            process::exit(i32::from(USAGE));
        }
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let error = parse(&words).err().unwrap_or(error);
        if !error.use_stderr() {
            process::exit(print(&error));
        }
        note(error.render().to_string().trim_end());
        process::exit(error.exit_code());
    })
}

/// Prints the help or the version, and returns the exit code.
fn print(error: &clap::Error) -> i32 {
    let Err(source) = error.print() else { return 0 };
    let failure = Failure::of_stdout(source);
    complain(&failure);
    failure.exit_code().into()
}

/// A message and a hint, if ours are better than the parser's.
fn refusal(error: &clap::Error, words: &[String]) -> Option<(String, String)> {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let flag = escape(text(error, ContextKind::InvalidArg)?).into_owned();
            let (command, path) = innermost_command(words);
            let has = |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
            let (_, _, hint) = RENAMED.iter().find(|(old, new, _)| *old == flag && has(new))?;
            Some((format!("`{path}` has no option `{flag}`"), (*hint).to_owned()))
        }
        ErrorKind::InvalidSubcommand => {
            let typed = escape(text(error, ContextKind::InvalidSubcommand)?).into_owned();
            let (command, path) = innermost_command(words);
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let flags: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
            let hint = match flags.contains(&typed.as_str()) {
                true => format!("did you mean `{path} --{typed}`?"),
                false => match nearest(&typed, names.iter().copied()).filter(|meant| !REMOVING.contains(meant)) {
                    Some(meant) => format!("did you mean `{path} {meant}`?"),
                    None => format!("`{path} --help` lists the commands"),
                },
            };
            Some((format!("unknown command `{typed}`"), hint))
        }
        _ => None,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// The innermost command that the words name, and how it is called.
fn innermost_command(words: &[String]) -> (clap::Command, String) {
    let mut command = command();
    // Global options and `--help` are only known to subcommands once it is built.
    command.build();
    let mut path = command.get_name().to_owned();
    for word in words.iter().skip(1) {
        if let Some(found) = command.find_subcommand(word) {
            path = format!("{path} {word}");
            command = found.clone();
        }
    }
    (command, path)
}
