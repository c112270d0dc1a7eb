//! The command line: one file per command, and their shared parts.
//!
//! Standard output is data, standard error is for people. A closed pipe is not a failure.

/// The commands of a group, each in a module of its own.
macro_rules! commands {
    ($group:ident: $($command:ident in $module:ident),+) => {
        #[derive(Debug, clap::Subcommand)]
        enum $group {
            $($command($module::$command),)+
        }

        impl $group {
            fn execute(self, project: &Project) -> Result<()> {
                match self {
                    $(Self::$command(command) => command.execute(project),)+
                }
            }
        }
    };
}

mod audit;
mod build;
mod check;
mod cite;
mod completions;
mod diff;
mod doctor;
mod forget;
mod get;
mod help;
mod import;
mod init;
mod list;
mod log;
mod options;
mod prelude;
mod process;
mod progress;
mod prune;
mod query;
mod report;
mod run;
mod schedule;
mod schema;
mod serve;
mod show;
mod sql;
mod status;
mod store;
mod talk;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bellwether::error::{self, Error, ErrorKind};
use bellwether::key;
use bellwether::net::address;
use bellwether::project::Project;
use bellwether::text::escape::escape;
use bellwether::time::{Clock, to_record};
use chrono::DateTime;
use clap::Parser;

pub use audit::skill_in_words;
pub use help::command;
use talk::{Failure, Result, note};

/// Turns trading signals and news scores into research data you can trust.
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version = env!("BELLWETHER_VERSION"),
    styles = help::STYLES,
    arg_required_else_help = true
)]
struct Cli {
    /// The root of the project. Default: the nearest one upwards.
    ///
    /// It is the folder with `pipelines/`. `BELLWETHER_ROOT` names it as well.
    #[arg(long, short = 'C', value_name = "FOLDER", global = true, help_heading = options::COMMON)]
    directory: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

commands! {
    Command: Init in init, Doctor in doctor, Run in run, Build in build, Get in get, Show in show, Query in query,
    Report in report, Sql in sql, List in list, Status in status, Schedule in schedule, Verify in verify, Audit in audit,
    Import in import, Diff in diff, Cite in cite, Forget in forget, Prune in prune, Check in check, Store in store,
    Schema in schema, Serve in serve, Completions in completions
}

/// Runs the command that the arguments of the process name.
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os().collect()))
}

/// Parses arguments, the first of which is the name of the program, runs the command, and reports the outcome. Returns
/// the exit code. `--help` and `--version` end the process.
///
/// Changes the whole process: it tunes the allocator and ignores the signal of the file size limit.
pub fn main_with(arguments: Vec<OsString>) -> u8 {
    if completions::answer(&arguments) {
        return 0;
    }
    process::prepare();
    talk::decide_on_colors();
    mask_addresses(&arguments);
    let is_json = arguments.iter().any(|word| word == "--json");
    let executed = help::parse(&arguments).and_then(|Cli { directory, command }| {
        require_clock()?;
        let project = directory.map_or_else(Project::find, Project::at)?;
        process::with_threads(|| command.execute(&project))
    });
    match executed {
        Ok(()) => 0,
        Err(Failure::Told(code)) => code,
        Err(Failure::Failed(error)) => {
            if is_json {
                log::CommandEvent::failure(&error).print();
            } else {
                complain(&error);
            }
            error.kind().exit_code()
        }
    }
}

/// Refuses a clock before 1970, at which TLS panics.
fn require_clock() -> error::Result<()> {
    let now = Clock::System.now();
    if now >= DateTime::UNIX_EPOCH {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Clock, format!("this machine's clock says {}", to_record(now)))
        .with_hint("set the clock, and run the same command again"))
}

/// Masks the secrets of addresses in the arguments and in the variables for options and proxies: an error may repeat what
/// was typed.
fn mask_addresses(arguments: &[OsString]) {
    let mut texts = arguments.to_vec();
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy().to_ascii_uppercase();
        if name.starts_with("BELLWETHER_") || name.ends_with("_PROXY") {
            texts.push(value);
        }
    }
    for text in texts {
        key::mask(address::secrets(&text.to_string_lossy()).into_iter().map(str::to_owned));
    }
}

/// Prints an error with its causes and its hint.
fn complain(error: &Error) {
    // The problems of a file print their own headers and hints.
    if let Some(problems) = error.problems() {
        return note(&problems.to_string());
    }
    note(&format!("error: {}", escape(&error.to_string())));
    for cause in error.causes() {
        note(&format!("  because: {}", escape(&cause.to_string())));
    }
    if let Some(hint) = error.hint() {
        // A list of names follows on lines of its own.
        format!("hint: {hint}").lines().for_each(|line| note(&escape(line)));
    }
}
