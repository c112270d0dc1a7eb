//! The command line as clap sees it, and what became of the words that were typed.
//!
//! The common options stand once, in the program's help. A command has those that make sense for it, hidden, and refuses the
//! others.

use std::env;
use std::error::Error as _;
use std::ffi::OsString;
use std::process;

use bellwether::text::problem::suggestion;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _};

use super::Cli;
use super::options::{FolderOptions, StoreOption, usage};
use super::talk::{Failure, Result, USAGE, note};

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The options under [`COMMON`](super::options::COMMON).
const NAMES: [&str; 4] = ["directory", "data", "archive", "store"];

/// The variables and the exit codes.
const DETAILS: &str = include_str!("help.txt");

/// The command line, with its help.
pub fn command() -> Command {
    let command = Cli::command();
    let about = command.get_about().cloned().unwrap_or_default();
    let command = StoreOption::augment_args(FolderOptions::augment_args(command)).about(about);
    // Not global here: clap hands the value on to a command that has the option, and other commands do not get it.
    let command = command.mut_args(|argument| {
        let is_global = argument.get_id() == "directory";
        argument.global(is_global).hide_short_help(true)
    });
    let directory = command.get_arguments().find(|argument| argument.get_id() == "directory");
    let directory = directory.expect("the program has the option").clone();
    // The width of help outside a terminal, and in a wider one.
    let command = command.max_term_width(100).after_long_help(DETAILS.trim_end());
    let command = command.after_help("Common options, variables and exit codes: see `bellwether --help`");
    let command = command.mut_subcommands(|command| without_common(command.arg(directory.clone()), &[]));
    without_empty_variables(command)
}

/// A command without the common options in its help, which says where they are.
fn without_common(command: Command, above: &[&'static str]) -> Command {
    let is_here =
        |name: &str| command.get_arguments().any(|argument| argument.get_id() == name && argument.is_global_set());
    let common: Vec<&str> = NAMES.into_iter().filter(|name| above.contains(name) || is_here(name)).collect();
    let listed: Vec<String> = common.iter().map(|name| format!("--{name}")).collect();
    let notice = format!("Common options, see `bellwether --help`: {}", listed.join(", "));
    let own = |text: Option<&StyledStr>| text.map_or_else(String::new, |text| format!("{text}\n\n"));
    let (examples, after) = (own(command.get_after_long_help()), own(command.get_after_help()));
    let command = command.mut_args(|argument| {
        let is_common = argument.is_global_set() && common.contains(&argument.get_id().as_str());
        if is_common { argument.hide(true) } else { argument }
    });
    let command = command.after_help(format!("{after}{notice}")).after_long_help(format!("{examples}{after}{notice}"));
    command.mut_subcommands(|command| without_common(command, &common))
}

/// Without the variables that are empty, which count as not set.
fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_env().and_then(env::var_os) {
        Some(value) if value.is_empty() => argument.env(None::<&'static str>),
        _ => argument,
    });
    command.mut_subcommands(without_empty_variables)
}

/// The parsed command line, or what is wrong with it, in the form of other refusals. `--help` and `--version` end the
/// process.
pub(super) fn parse(arguments: &[OsString]) -> Result<Cli> {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            note(help.render().to_string().trim_end());
            return Err(Failure::Told(USAGE));
        }
        Err(error) if error.use_stderr() => return Err(refusal(&error, arguments)),
        Err(help) => match help.print() {
            Ok(()) => process::exit(0),
            Err(source) => return Err(Failure::of_stdout(source)),
        },
    };
    refuse_what_does_not_apply(&matches)?;
    Cli::from_arg_matches(&matches).map_err(|error| refusal(&error, arguments))
}

/// Refuses a common option before a command that does not have it.
fn refuse_what_does_not_apply(matches: &ArgMatches) -> Result<()> {
    let (mut innermost, mut path) = (matches, String::new());
    while let Some((name, below)) = innermost.subcommand() {
        path = format!("{path} {name}");
        innermost = below;
    }
    for name in NAMES {
        let is_given = matches.value_source(name) == Some(ValueSource::CommandLine);
        if is_given && !innermost.ids().any(|id| id == name) {
            let what = format!("`--{name}` before the command has no meaning for `bellwether{path}`");
            return Err(usage(&what, "leave it out"));
        }
    }
    Ok(())
}

/// What clap refuses, as a place, a reason and a remedy.
fn refusal(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join("`, `"),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    };
    // `--head <N>` is `--head`, and `<DATASET>` is `DATASET`.
    let name = |kind| {
        let names = text(kind);
        let names = names.split("`, `").map(|name| match name.strip_prefix('<') {
            Some(positional) => positional.trim_end_matches(['>', '.']),
            None => name.split([' ', '=', '[']).next().unwrap_or_default(),
        });
        names.collect::<Vec<_>>().join("`, `")
    };
    // The innermost command that was named.
    let (mut command, mut below) = ("bellwether".to_owned(), command());
    for word in arguments.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|word| below.find_subcommand(word)) else { continue };
        (command, below) = (format!("{command} {}", next.get_name()), next.clone());
    }
    let help = format!("see `{command} --help`");
    let meant = |meant: String| (!meant.is_empty()).then(|| format!("did you mean `{meant}`?"));
    let (argument, value) = (name(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let invalid = format!("invalid value `{value}` for `{argument}`");
    let (what, hint) = match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            (format!("`{command}` has no option `{argument}`"), meant(name(ContextKind::SuggestedArg)))
        }
        ErrorKind::UnknownArgument => (format!("`{command}` does not know what `{argument}` is for"), None),
        ErrorKind::InvalidSubcommand => {
            let unknown = text(ContextKind::InvalidSubcommand);
            let names: Vec<&str> = below.get_subcommands().map(Command::get_name).collect();
            (format!("`{command}` has no command `{unknown}`"), Some(suggestion(&unknown, &names, "commands")))
        }
        ErrorKind::InvalidValue => {
            let what = if value.is_empty() { format!("`{argument}` needs a value") } else { invalid };
            let valid = text(ContextKind::ValidValue);
            let valid = (!valid.is_empty()).then(|| format!("use one of `{valid}`"));
            (what, meant(text(ContextKind::SuggestedValue)).or(valid))
        }
        ErrorKind::ValueValidation => (invalid, error.source().map(ToString::to_string)),
        ErrorKind::MissingRequiredArgument => (format!("`{command}` needs `{argument}`"), None),
        ErrorKind::ArgumentConflict => match &*name(ContextKind::PriorArg) {
            prior if prior == argument => (format!("`{argument}` was given twice"), Some("give it once".to_owned())),
            prior => (format!("`{argument}` and `{prior}` exclude each other"), Some("give one of them".to_owned())),
        },
        ErrorKind::NoEquals => (format!("`{argument}` takes its value after `=`"), None),
        ErrorKind::TooManyValues => (format!("`{argument}` has no use for `{value}`"), None),
        _ => {
            let text = error.to_string();
            (text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(), None)
        }
    };
    usage(&what, &hint.unwrap_or(help))
}
