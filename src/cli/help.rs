//! The command line as clap sees it, and what became of the words that were typed.
//!
//! The common options stand once, in the program's help. A command has those that make sense for it, hidden, and refuses the
//! others.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process;

use bellwether::text::escape::escape;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _};

use super::folders::Folders;
use super::outcome::Failure;
use super::store::StoreOption;
use super::talk::note;
use super::{Cli, complain};

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The headings of options, in the order in which they appear.
pub(super) const SELECTION: &str = "Selection";
pub(super) const OUTPUT: &str = "Output";
pub(super) const PROGRESS: &str = "Progress and logs";
pub(super) const COMMON: &str = "Common options";

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
    let command = StoreOption::augment_args(Folders::augment_args(command)).about(about);
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

/// The parsed command line. `--help`, `--version` and errors end the process.
pub(super) fn parse(arguments: Vec<OsString>) -> Cli {
    let parse = |words: &[OsString]| {
        let matches = command().try_get_matches_from(words)?;
        refuse_what_does_not_apply(&matches)?;
        Cli::from_arg_matches(&matches)
    };
    parse(&arguments).unwrap_or_else(|error| {
        if error.use_stderr() {
            // The message repeats what was typed.
            let words: Vec<OsString> =
                arguments.iter().map(|word| escape(&word.to_string_lossy()).into_owned().into()).collect();
            let error = parse(&words).err().unwrap_or(error);
            note(error.render().to_string().trim_end());
            process::exit(error.exit_code());
        }
        let Err(source) = error.print() else { process::exit(0) };
        let failure = Failure::of_stdout(source);
        complain(&failure);
        process::exit(failure.exit_code().into())
    })
}

/// Refuses a common option before a command that does not have it.
fn refuse_what_does_not_apply(matches: &ArgMatches) -> Result<(), clap::Error> {
    let (mut innermost, mut path) = (matches, String::new());
    while let Some((name, below)) = innermost.subcommand() {
        path = format!("{path} {name}");
        innermost = below;
    }
    for name in NAMES {
        let is_given = matches.value_source(name) == Some(ValueSource::CommandLine);
        if is_given && !innermost.ids().any(|id| id == name) {
            let what = format!("`--{name}` before the command has no meaning for `bellwether{path}`");
            return Err(command().error(ErrorKind::UnknownArgument, what));
        }
    }
    Ok(())
}
