//! The command line: one file a command, and what they share.
//!
//! Standard output is data, standard error is talk. A reader that closes the pipe has seen enough: that is no failure.

mod aligned;
mod archive;
mod audit;
mod build;
mod check;
mod diff;
mod folders;
mod log;
mod plan;
mod report;
mod rows;
mod run;
mod runs;
mod schema;
mod serve;
mod summary;
mod timings;
mod typed;
mod verify;

use std::error::Error as _;
use std::io;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::error::{EXIT_CODES, Error, Result};
use crate::meter;
use crate::talk::{escaped, note, say};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Turns a vendor's trading signals and news scores into research data that can be trusted.
#[derive(Debug, Parser)]
#[command(name = "bellwether", version, styles = STYLES, arg_required_else_help = true, after_help = exit_codes())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Build(build::Build),
    Report(report::Report),
    Summary(summary::Summary),
    Runs(runs::Runs),
    Verify(verify::Verify),
    Audit(audit::Audit),
    Diff(diff::Diff),
    Archive(archive::Archive),
    Check(check::Check),
    Plan(plan::Plan),
    Schema(schema::Schema),
    Serve(serve::Serve),
}

fn exit_codes() -> String {
    let lines = EXIT_CODES.iter().map(|(code, meaning)| format!("  {code:>3}  {meaning}\n"));
    format!("Exit codes:\n{}", lines.collect::<String>().trim_end())
}

/// The number of the signal that a terminal sends when it closes.
const HANGUP: u32 = 1;

/// Parses the arguments, does what they say, and tells how it went.
pub fn main() -> ExitCode {
    let result = match parsed().command {
        Command::Run(command) => command.execute(),
        Command::Build(command) => command.execute(),
        Command::Report(command) => command.execute(),
        Command::Summary(command) => command.execute(),
        Command::Runs(command) => command.execute(),
        Command::Verify(command) => command.execute(),
        Command::Audit(command) => command.execute(),
        Command::Diff(command) => command.execute(),
        Command::Archive(command) => command.execute(),
        Command::Check(command) => command.execute(),
        Command::Plan(command) => command.execute(),
        Command::Schema(command) => command.execute(),
        Command::Serve(command) => command.execute(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// The command line. What is wrong with it is told of its escaped words, for the message repeats them.
fn parsed() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let words = std::env::args_os().map(|word| escaped(&word.to_string_lossy()).into_owned());
        Cli::try_parse_from(words).err().unwrap_or(error).exit()
    })
}

/// Tells what failed, why, and what can be done about it.
fn complain(error: &Error) {
    match error {
        Error::BrokenPipe | Error::Told { .. } => return,
        // The problems of a file carry their own heads and hints.
        Error::Definition(problems) => return note(&problems.to_string()),
        _ => note(&format!("error: {}", escaped(&error.to_string()))),
    }
    let mut reason = error.source();
    while let Some(source) = reason {
        note(&format!("  because: {}", escaped(&source.to_string())));
        reason = source.source();
    }
    if let Some(hint) = error.hint() {
        note(&format!("hint: {}", escaped(&hint)));
    }
}

/// Runs asynchronous work that a signal can stop: the first asks it to, the second does not ask.
///
/// One thread is enough for the network, since bodies are read and decoded by others; with more, a connection and its
/// reader would wake one another across threads.
fn interruptible<T>(work: impl AsyncFnOnce(CancellationToken) -> Result<T>) -> Result<T> {
    // Begun here, where a system that gives no threads is an error and not a panic somewhere.
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global()
        && let Some(source) = error.source().and_then(|source| source.downcast_ref::<io::Error>())
    {
        return Err(Error::Start {
            source: source.raw_os_error().map_or_else(|| source.kind().into(), io::Error::from_raw_os_error),
        });
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|source| Error::Start { source })?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(watch_signals(stop.clone()));
        work(stop).await
    })
}

async fn watch_signals(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    // Whoever starts a program with `nohup` wants it to outlive its terminal.
    let mut hangup = if meter::is_ignored(HANGUP) { None } else { signal(SignalKind::hangup()).ok() };
    let mut hung_up = async || match &mut hangup {
        Some(hangup) => hangup.recv().await,
        None => std::future::pending().await,
    };
    for is_first in [true, false] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up() => {}
        }
        if is_first {
            stop.cancel();
        } else {
            std::process::exit(i32::from(Error::Interrupted.exit_code()));
        }
    }
}
