//! `bellwether completions` and `bellwether man`: shell completions and manual pages.

use clap_complete::Shell;

use super::help::command;
use super::outcome::Result;
use super::say;
use super::typed::usage;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn execute(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "bellwether", &mut script);
        say(&String::from_utf8_lossy(&script))
    }
}

/// Print a manual page, of the program or of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The command, such as `run` or `audit leak`. Default: the program.
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

impl Man {
    pub(super) fn execute(self) -> Result<()> {
        let mut found = command();
        found.build();
        for word in &self.path {
            let Some(next) = found.find_subcommand(word) else {
                return Err(usage(&format!("unknown command `{word}`"), "`bellwether --help` lists the commands"));
            };
            found = next.clone();
        }
        let mut page = Vec::new();
        // Writing to memory does not fail.
        let _ = clap_mangen::Man::new(found).render(&mut page);
        say(&String::from_utf8_lossy(&page))
    }
}
