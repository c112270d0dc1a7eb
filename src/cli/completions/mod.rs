//! `bellwether completions`: a shell asks the program itself what may come next.
//!
//! The printed script sets a variable and calls the program with the words that were typed. The program then prints
//! candidates instead of running a command: of options and commands by clap's engine, of values by their kind from the
//! project. That touches no network and prints no error: what cannot be read has no candidates.

mod bash;
mod context;
mod kind;
mod values;
mod zsh;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, PathCompleter};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell};

use super::outcome::Result;
use super::talk::data;
use super::{Cli, say};
use bash::Bash;
use context::Context;
use kind::Kind;
use zsh::Zsh;

/// The variable that holds the name of the shell that asks.
const VARIABLE: &str = "_BELLWETHER_COMPLETE";

/// The name that is completed.
const PROGRAM: &str = "bellwether";

/// Print a script that completes commands, options and names in a shell
///
/// It asks the program at each Tab, and so knows the project's definitions, datasets, versions, runs, tickers and columns.
///
/// bash: `source <(bellwether completions bash)` in `~/.bashrc`.
/// zsh: `source <(bellwether completions zsh)` in `~/.zshrc`, after `compinit`.
/// fish: `bellwether completions fish | source` in `~/.config/fish/config.fish`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn execute(self) -> Result<()> {
        let mut script = Vec::new();
        // Writing to memory does not fail.
        let _ = completer(self.shell).write_registration(VARIABLE, PROGRAM, PROGRAM, &program(), &mut script);
        say(&String::from_utf8_lossy(&script))
    }
}

/// How the script calls the program: as it was called, by name or by path.
fn program() -> String {
    let called = env::args_os().next().unwrap_or_else(|| PROGRAM.into());
    match Path::new(&called).components().count() {
        0 | 1 => PROGRAM.to_owned(),
        _ => std::path::absolute(&called).unwrap_or_else(|_| called.into()).to_string_lossy().into_owned(),
    }
}

fn completer(shell: Shell) -> &'static dyn EnvCompleter {
    match shell {
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => &Bash,
    }
}

/// Answers a shell that asks for candidates; none if it does not ask, and a command is to be run.
pub(super) fn answer(arguments: &[OsString]) -> Option<()> {
    let shell = env::var_os(VARIABLE).filter(|shell| !shell.is_empty())?;
    let Ok(shell) = shell.to_string_lossy().parse::<Shell>() else { return Some(()) };
    let words: Vec<OsString> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let mut command = command(Context::of(shell, &words));
    let mut candidates = Vec::new();
    let found =
        completer(shell).write_complete(&mut command, words, env::current_dir().ok().as_deref(), &mut candidates);
    if found.is_ok() {
        // The shell no longer listens.
        let _ = data().write_all(&candidates);
    }
    Some(())
}

/// The command line, with the candidates of its values.
fn command(context: Context) -> Command {
    with_candidates(Cli::command(), "", &Arc::new(context))
}

fn with_candidates(command: Command, path: &str, context: &Arc<Context>) -> Command {
    let command = command.mut_args(|argument| with_candidate(argument, path, context));
    command.mut_subcommands(|command| {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        with_candidates(command, &path, context)
    })
}

fn with_candidate(argument: Arg, path: &str, context: &Arc<Context>) -> Arg {
    // What is hidden is shown where there is nothing else, so that options do not hide the names.
    let argument = if argument.is_positional() { argument } else { argument.hide(true) };
    let completer = match Kind::of(&argument, path) {
        None | Some(Kind::Free) => return argument,
        Some(Kind::File) => ArgValueCompleter::new(PathCompleter::any()),
        Some(Kind::Folder) => ArgValueCompleter::new(PathCompleter::dir()),
        Some(kind) => {
            let context = Arc::clone(context);
            ArgValueCompleter::new(move |current: &OsStr| context.candidates(kind, &current.to_string_lossy()))
        }
    };
    argument.add(completer)
}
