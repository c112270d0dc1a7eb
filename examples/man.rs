//! Writes a manual page for each command: `cargo run --example man -- FOLDER`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::Command;
use clap_mangen::Man;

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| io::Error::other("no folder given"))?;
    let mut program = bellwether_cli::command();
    program.build();
    write_pages(program, &folder)
}

/// Writes the page of a command, and those of the commands below it.
pub(crate) fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    // What is named `help` has no page.
    let without_help = |below: Command| if below.get_name() == "help" { below.hide(true) } else { below };
    let command = command.mut_subcommands(without_help);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below.clone(), folder)?;
    }
    let (man, mut page) = (Man::new(command), Vec::new());
    man.render(&mut page)?;
    // The lines of examples and tables stay lines.
    let page = String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH NOTES\n.nf\n");
    fs::write(folder.join(man.get_filename()), page.replace("\n.SH VERSION\n", "\n.fi\n.SH VERSION\n"))
}
