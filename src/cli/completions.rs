//! `bellwether completions`: a shell asks the program itself what may come next.
//!
//! The printed script sets a variable and calls the program with the words that were typed, and clap answers. Names come
//! from the project. That touches no network and prints no error: what cannot be read has no candidates.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;

use bellwether::definition::{self, DefinitionFile};
use bellwether::disk::names::{is_dataset, is_unique};
use bellwether::export::version_of;
use bellwether::plan::{Plan, Shape};
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::help;
use super::prelude::*;

/// The variable that holds the name of the shell that asks.
const VARIABLE: &str = "_BELLWETHER_COMPLETE";

/// Print a script that completes commands and names in a shell
///
/// It asks the program at each Tab, and so knows the project's definitions, datasets, tickers and columns.
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
    pub(super) fn execute(self, _: &Project) -> Result<()> {
        const PROGRAM: &str = "bellwether";
        let (mut script, shells) = (Vec::new(), Shells::builtins());
        let shell = shells.completer(&self.shell.to_string()).expect("clap completes in every shell that it names");
        // Writing to memory does not fail.
        let _ = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        say(&String::from_utf8_lossy(&script))
    }
}

/// Answers a shell that asks for candidates. False if none asks, and a command is to be run.
pub(super) fn answer(arguments: &[OsString]) -> bool {
    let here = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_candidates(help::command().disable_help_flag(true))).var(VARIABLE);
    asked.try_complete(arguments.iter().cloned(), here.as_deref()).unwrap_or(true)
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(with_candidate).mut_subcommands(with_candidates)
}

/// An argument with the candidates of its values, by the name of the value.
fn with_candidate(argument: Arg) -> Arg {
    // What is hidden is shown where there is nothing else, so that options do not hide the names.
    let argument = if argument.is_positional() { argument } else { argument.hide(true) };
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    match name.as_deref() {
        Some("DEFINITION" | "DEFINITION|URL") => argument.add(ArgValueCandidates::new(definitions)),
        Some("DATASET" | "EARLIER" | "LATER" | "NAME/VERSION" | "NAME[/VERSION]") => {
            argument.add(ArgValueCompleter::new(datasets))
        }
        Some("TICKER") => argument.add(ArgValueCandidates::new(tickers)),
        Some("COLUMN") if argument.get_id() == "columns" => argument.add(ArgValueCandidates::new(columns)),
        Some("FOLDER") => argument.add(ArgValueCompleter::new(PathCompleter::dir())),
        _ => argument,
    }
}

/// The words of the command, as the script passes them on.
fn words() -> impl Iterator<Item = String> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    words.map(|word| word.to_string_lossy().into_owned())
}

/// The value of an option, or else of its variable.
fn value_of(options: &[&str], variable: &str) -> Option<PathBuf> {
    let typed = words().skip_while(|word| !options.contains(&&**word)).nth(1).map(PathBuf::from);
    typed.or_else(|| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn project() -> Option<Project> {
    value_of(&["--directory", "-C"], "BELLWETHER_ROOT").map_or_else(Project::find, Project::at).ok()
}

fn data() -> Option<PathBuf> {
    value_of(&["--data"], "BELLWETHER_DATA").or_else(|| Some(project()?.data()))
}

fn definitions() -> Vec<CompletionCandidate> {
    let catalog = project().and_then(|project| definition::catalog(&project.definitions()).ok()).unwrap_or_default();
    let candidates = catalog.into_iter();
    candidates.map(|(name, about)| CompletionCandidate::new(name).help(about.map(Into::into))).collect()
}

/// The datasets, or after a slash the versions of one.
fn datasets(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let (of, within) = current.split_once('/').map_or(("", ""), |(dataset, _)| (dataset, "/"));
    let mut candidates = Vec::new();
    for entry in data().and_then(|data| fs::read_dir(data.join("datasets").join(of)).ok()).into_iter().flatten() {
        let Some(entry) = entry.ok().filter(|entry| entry.path().is_dir()) else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_name = if of.is_empty() { is_dataset(&name) } else { is_unique(&name) };
        let full = format!("{of}{within}{name}");
        if is_name && full.starts_with(&*current) {
            candidates.push(CompletionCandidate::new(full));
        }
    }
    candidates
}

/// The tickers of the published dataset that is named.
fn tickers() -> Vec<CompletionCandidate> {
    let facts = data().and_then(|data| words().find_map(|word| run::latest_facts(&data, &word)));
    facts.into_iter().flat_map(|facts| facts.tickers).map(CompletionCandidate::new).collect()
}

/// The columns of the dataset or definition that is named, or the values of its matrices.
fn columns() -> Vec<CompletionCandidate> {
    let Some(plan) = words().find_map(|word| plan(&word)) else { return Vec::new() };
    let written = &plan.dataset.written;
    match &plan.dataset.shape {
        Shape::Long => written.schema().fields().iter().map(|field| CompletionCandidate::new(field.name())).collect(),
        Shape::Wide(values) => values.iter().map(|value| CompletionCandidate::new(written.names().of(value))).collect(),
    }
}

/// The plan of what is named: of the published version, or else of the definition.
fn plan(name: &str) -> Option<Plan> {
    if let Ok((_, version)) = version_of(&data()?.join("datasets"), Some(name)) {
        let path = Path::new(&version.name).with_extension("toml");
        return Plan::of(DefinitionFile::new(path, version.definition).ok()?).ok();
    }
    Plan::find(name, &project()?).ok()
}
