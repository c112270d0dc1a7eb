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
mod trace;
mod verify;

use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bellwether::error::{self, Error, ErrorKind, causes};
use bellwether::key;
use bellwether::net::address;
use bellwether::process::{child, usage};
use bellwether::project::Project;
use bellwether::run::{Control, Observer};
use bellwether::text::escape::escape;
use bellwether::time::{Clock, to_record};
use chrono::DateTime;
use clap::Parser;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use audit::skill_in_words;
pub use help::command;
use log::LogForm;
use options::COMMON;
use progress::Form;
use talk::{Failure, INTERRUPTED, Result, note};

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
    #[arg(long, short = 'C', value_name = "FOLDER", global = true, help_heading = COMMON)]
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

/// The number of the signal that a terminal sends when it closes.
const HANGUP: u32 = 1;

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
        Err(failure) => {
            match &failure {
                Failure::Failed(error) if is_json => log::CommandEvent::failure(error).print(),
                failure => complain(failure),
            }
            failure.exit_code()
        }
    }
}

/// Refuses a clock before 1970, at which TLS panics.
fn require_clock() -> error::Result<()> {
    let now = Clock::System.now();
    match now < DateTime::UNIX_EPOCH {
        true => Err(Error::new(ErrorKind::Clock, format!("this machine's clock says {}", to_record(now)))
            .with_hint("set the clock, and run the same command again")),
        false => Ok(()),
    }
}

/// Masks the secrets of addresses in the arguments and in the variables for options and proxies: an error may repeat what
/// was typed.
fn mask_addresses(arguments: &[OsString]) {
    let is_ours = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name.starts_with("BELLWETHER_") || name.ends_with("_PROXY")
    };
    let variables = std::env::vars_os().filter(|(name, _)| is_ours(name)).map(|(_, value)| value);
    for text in arguments.iter().cloned().chain(variables) {
        key::mask(address::secrets(&text.to_string_lossy()).into_iter().map(str::to_owned));
    }
}

/// Prints an error with its causes and its hint.
fn complain(failure: &Failure) {
    let Failure::Failed(error) = failure else { return };
    // The problems of a file print their own headers and hints.
    if let Some(problems) = error.problems() {
        return note(&problems.to_string());
    }
    note(&format!("error: {}", escape(&error.to_string())));
    for cause in causes(error) {
        note(&format!("  because: {}", escape(&cause.to_string())));
    }
    // A list of names follows on lines of its own.
    let mut lines = error.hint().unwrap_or_default().lines();
    if let Some(hint) = lines.next() {
        note(&format!("hint: {}", escape(hint)));
    }
    lines.for_each(|line| note(&escape(line)));
}

/// Runs asynchronous work. The first signal cancels it, the second ends the process.
///
/// One thread is enough for the network, since other threads read and decode bodies; with more, a connection and its
/// reader would wake each other across threads.
fn interruptible<T, E: From<Error>>(
    observer: Option<Arc<dyn Observer>>,
    work: impl AsyncFnOnce(Control) -> Result<T, E>,
) -> Result<T, E> {
    interruptible_with(None, observer, work)
}

/// The same, where SIGHUP notifies the work instead of cancelling it, if it is given what to notify.
fn interruptible_with<T, E: From<Error>>(
    hangup: Option<Arc<Notify>>,
    observer: Option<Arc<dyn Observer>>,
    work: impl AsyncFnOnce(Control) -> Result<T, E>,
) -> Result<T, E> {
    // Started here, where a system without threads to spare is an error rather than a panic.
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global()
        && let Some(source) = error.source().and_then(|source| source.downcast_ref::<io::Error>())
    {
        let source = source.raw_os_error().map_or_else(|| source.kind().into(), io::Error::from_raw_os_error);
        return Err(Error::start(source).into());
    }
    // So is a system without files to open: the runtime would panic where it makes its sockets for signals.
    let sockets: io::Result<Vec<_>> = (0..3).map(|_| UnixStream::pair()).collect();
    drop(sockets.map_err(Error::start)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::start)?;
    process::with_threads(|| {
        runtime.block_on(async {
            let stop = CancellationToken::new();
            tokio::spawn(watch_signals(stop.clone(), hangup));
            work(Control { observer, stop }).await
        })
    })
}

/// Runs blocking work. The first signal cancels it, the second ends the process.
fn cancellable<T: Send + 'static>(
    work: impl FnOnce(&Control) -> error::Result<T> + Send + 'static,
) -> error::Result<T> {
    interruptible(progress::observer(Form::Quiet(LogForm::Text)), async |control| {
        let work = tokio::task::spawn_blocking(move || work(&control));
        work.await.unwrap_or_else(|panic| Err(Error::worker(panic)))
    })
}

async fn watch_signals(stop: CancellationToken, hangup: Option<Arc<Notify>>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    // A program started with `nohup` is meant to outlive its terminal.
    let is_ignored = hangup.is_none() && usage::is_ignored(HANGUP);
    let mut hangups = if is_ignored { None } else { signal(SignalKind::hangup()).ok() };
    let mut hung_up = async || loop {
        match &mut hangups {
            Some(hangups) => hangups.recv().await,
            None => std::future::pending().await,
        };
        match &hangup {
            None => return,
            Some(notify) => notify.notify_one(),
        }
    };
    for is_first in [true, false] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = hung_up() => {}
        }
        if is_first {
            stop.cancel();
        } else {
            // The process ends here and drops nothing.
            child::kill_all();
            std::process::exit(i32::from(INTERRUPTED));
        }
    }
}
