//! The command line as clap sees it, and what became of the words that were typed.
//!
//! The common options stand once, in the program's help. A command has those that make sense for it, hidden, and refuses the
//! others.

use std::env;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::process;

use bellwether::text::problem::suggestion;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _};

use super::Cli;
use super::options::{FolderOptions, StoreOption, usage};
use super::talk::{Failure, Result, USAGE, note};

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The options under [`COMMON`].
const NAMES: [&str; 4] = ["directory", "data", "archive", "store"];

/// The width of help outside a terminal, and in a wider one.
const WIDEST: usize = 100;

const MORE: &str = "Common options, variables and exit codes: see `bellwether --help`";

const DETAILS: &str = "\
Environment:
  BELLWETHER_API_KEY             the API key of the service
  BELLWETHER_API_KEY_FILE        a file with the API key, relative to the project
  BELLWETHER_BASE_URL            where signals are, for definitions that do not say
  BELLWETHER_SENTIMENT_BASE_URL  where news and sentiment are, likewise
  BELLWETHER_ROOT                the root of the project, as `--directory`
  BELLWETHER_DATA                the folder of data, as `--data`
  BELLWETHER_ARCHIVE             the folder of the archive, as `--archive`
  BELLWETHER_STORE               the object store, as `--store`
  BELLWETHER_JOBS                how many runs `schedule` has at once, as `--jobs`
  BELLWETHER_LISTEN              the address of the status page, as `--listen`
  BELLWETHER_METRICS             a file for metrics, as `--metrics`
  BELLWETHER_PRUNE_OLDER_THAN    an age, as `--older-than` of `prune`
  BELLWETHER_TRUST               projects that are trusted, whoever can write to them
  BELLWETHER_LOG                 the format of events, as `--log`
  BELLWETHER_LOG_LEVEL           the level of log messages, as `--log-level`
  HTTPS_PROXY, ALL_PROXY         the proxy to use
  NO_PROXY                       hosts to reach without a proxy
  SSL_CERT_FILE                  certificates to trust instead of the system's
  NO_COLOR                       no colors, with any value that is not empty

Exit codes:
    0  success: everything requested is there
    1  failed; see the error message
    2  invalid arguments or an invalid definition
    3  versions differ, too much was rewritten, or data is stale or failing
    4  the data failed a check or was answered in part, and nothing was published
    5  `status` cannot tell whether data is fresh, or `verify` whether it is proven
   75  temporary failure: run the same command later to resume
  130  interrupted: run the same command to resume";

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
    let with_directory = |command: Command| without_common(command.arg(directory.clone()), &[]);
    let command = command.max_term_width(WIDEST).after_help(MORE).after_long_help(DETAILS);
    let command = command.mut_subcommands(with_directory);
    without_empty_variables(command)
}

/// A command without the common options in its help, which says where they are.
fn without_common(command: Command, above: &[&'static str]) -> Command {
    let is_here =
        |name: &&str| command.get_arguments().any(|argument| argument.get_id() == name && argument.is_global_set());
    let common: Vec<&str> = NAMES.into_iter().filter(|name| above.contains(name) || is_here(name)).collect();
    let listed: Vec<String> = common.iter().map(|name| format!("--{name}")).collect();
    let notice = format!("Common options, see `bellwether --help`: {}", listed.join(", "));
    let own = |text: Option<&StyledStr>| text.map_or_else(String::new, |text| format!("{text}\n\n"));
    let (examples, after) = (own(command.get_after_long_help()), own(command.get_after_help()));
    let hidden = |argument: Arg| {
        let is_common = argument.is_global_set() && common.contains(&argument.get_id().as_str());
        if is_common { argument.hide(true) } else { argument }
    };
    let command = command.mut_args(hidden).after_help(format!("{after}{notice}"));
    let command = command.after_long_help(format!("{examples}{after}{notice}"));
    command.mut_subcommands(|command| without_common(command, &common))
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

/// The parsed command line, or what is wrong with it, in the form of other refusals. `--help` and `--version` end the
/// process.
pub(super) fn parse(arguments: &[OsString]) -> Result<Cli> {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            note(help.render().to_string().trim_end());
            return Err(Failure::Told { code: USAGE });
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
            Some(positional) => positional.trim_end_matches(['>', '.']).to_owned(),
            None => name.split([' ', '=', '[']).next().unwrap_or_default().to_owned(),
        });
        names.collect::<Vec<_>>().join("`, `")
    };
    let (argument, value) = (name(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    // The innermost command that was named.
    let (mut command, mut below) = ("bellwether".to_owned(), command());
    for word in arguments.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|word| below.find_subcommand(word)) else { continue };
        (command, below) = (format!("{command} {}", next.get_name()), next.clone());
    }
    let help = format!("see `{command} --help`");
    let meant = |kind| match &*name(kind) {
        "" => help.clone(),
        meant => format!("did you mean `{meant}`?"),
    };
    let valid = match &*text(ContextKind::ValidValue) {
        "" => help.clone(),
        values => format!("use one of `{values}`"),
    };
    let (what, hint) = match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            (format!("`{command}` has no option `{argument}`"), meant(ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => (format!("`{command}` does not know what `{argument}` is for"), help),
        ErrorKind::InvalidSubcommand => {
            let unknown = text(ContextKind::InvalidSubcommand);
            let names: Vec<&str> = below.get_subcommands().map(Command::get_name).collect();
            (format!("`{command}` has no command `{unknown}`"), suggestion(&unknown, &names, "commands"))
        }
        ErrorKind::InvalidValue if value.is_empty() => (format!("`{argument}` needs a value"), valid),
        ErrorKind::InvalidValue => {
            let hint = match text(ContextKind::SuggestedValue).as_str() {
                "" => valid,
                meant => format!("did you mean `{meant}`?"),
            };
            (format!("invalid value `{value}` for `{argument}`"), hint)
        }
        ErrorKind::ValueValidation => {
            let reason = error.source().map_or(help, ToString::to_string);
            (format!("invalid value `{value}` for `{argument}`"), reason)
        }
        ErrorKind::MissingRequiredArgument => (format!("`{command}` needs `{argument}`"), help),
        ErrorKind::ArgumentConflict => match &*name(ContextKind::PriorArg) {
            prior if prior == argument => (format!("`{argument}` was given twice"), "give it once".to_owned()),
            prior => (format!("`{argument}` and `{prior}` exclude each other"), "give one of them".to_owned()),
        },
        ErrorKind::NoEquals => (format!("`{argument}` takes its value after `=`"), help),
        ErrorKind::TooManyValues => (format!("`{argument}` has no use for `{value}`"), help),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => (format!("`{argument}` needs more values"), help),
        ErrorKind::InvalidUtf8 => ("an argument is not UTF-8".to_owned(), help),
        _ => (error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(), help),
    };
    usage(&what, &hint)
}
