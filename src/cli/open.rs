//! `bellwether open`: a report in the browser.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bellwether::disk::file::FileError;
use bellwether::error::Error;
use bellwether::export::{REPORT, version_of};
use bellwether::project::Project;

use super::folders::DataFolder;
use super::outcome::{Failure, Result};
use super::say;

/// How long a browser may take to fail. One that still runs has opened the page, or soon will.
const PATIENCE: Duration = Duration::from_secs(2);

/// Open the report of a dataset in the browser, and print its path.
///
/// `BROWSER` may name the browser, with arguments, or several to try, with colons between them; `%s` stands for the path.
#[derive(Debug, clap::Args)]
pub(super) struct Open {
    /// A dataset: NAME for its latest version, or NAME/VERSION. Default: the newest.
    #[arg(value_name = "DATASET")]
    name: Option<String>,

    /// Print the path of the report without opening it.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    folder: DataFolder,
}

impl Open {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let datasets = self.folder.datasets(project);
        let (folder, _) = version_of(&datasets, self.name.as_deref())?;
        let page = folder.join(REPORT);
        let page = page.canonicalize().map_err(|source| Error::from(FileError::Read { path: page, source }))?;
        say(&format!("{}\n", page.display()))?;
        if self.print { Ok(()) } else { browse(&page) }
    }
}

/// Opens a page with the first of the user's browsers that does.
fn browse(page: &Path) -> Result<()> {
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let named = env::var_os("BROWSER").filter(|named| !named.is_empty());
    let browsers = match named {
        Some(named) if Path::new(&named).is_file() => vec![vec![named]],
        Some(named) => named.as_bytes().split(|byte| *byte == b':').map(words).collect(),
        None => vec![vec![usual.into()]],
    };
    let mut failure = None;
    for browser in browsers.iter().filter_map(|words| words.split_first()) {
        match open_with(browser, page) {
            Ok(()) => return Ok(()),
            Err(source) => failure = Some((PathBuf::from(browser.0), source)),
        }
    }
    let (browser, source) = failure.unwrap_or_else(|| (usual.into(), io::ErrorKind::NotFound.into()));
    Err(Failure::Browser { browser, page: page.to_owned(), source })
}

fn words(text: &[u8]) -> Vec<OsString> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

/// Opens a page with a browser: its program and its arguments.
fn open_with((program, arguments): (&OsString, &[OsString]), page: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    let is_page = |argument: &OsString| argument == "%s";
    command.args(arguments.iter().map(|argument| if is_page(argument) { page.as_os_str() } else { argument }));
    if !arguments.iter().any(is_page) {
        command.arg(page);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match exit_of(&mut command.spawn()?)? {
        Some(status) if !status.success() => Err(io::Error::other(format!("it failed with {status}"))),
        _ => Ok(()),
    }
}

/// How a browser ended; none if it still runs, as it may for days.
fn exit_of(browser: &mut Child) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        let status = browser.try_wait()?;
        if status.is_some() || begun.elapsed() > PATIENCE {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
