//! `bellwether report`: the report of a dataset, as a page or as text.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bellwether::disk::file::{self, TargetFile};
use bellwether::error::{Context as _, Error, ErrorKind};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{self, FetchItem, ReportOptions};
use bellwether::time::Clock;
use chrono::{DateTime, Utc};

use super::interruptible;
use super::options::{FolderOptions, Folders, Force, OUTPUT, StoreOption, instant, usage};
use super::talk::{AsJson, Result, columns, say};

/// The width of lines outside a terminal.
const WIDTH: usize = 80;

/// How long a browser may take to fail. One that still runs has opened the page, or soon will.
const PATIENCE: Duration = Duration::from_secs(2);

/// Report on a published dataset, as a page or as text.
///
/// The report is one HTML file that loads nothing from elsewhere. With `report = true` in `[output]`, `run` and `build` draw it, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether report demo --open
      write reports/demo.html, and open it in your browser
  bellwether report demo --text
      the same in the terminal")]
pub(super) struct Report {
    /// A dataset: NAME for its latest version, or NAME/VERSION. Default: the newest.
    #[arg(value_name = "DATASET")]
    name: Option<String>,

    /// Report what was known at this instant: `2026-03-31` (the end of that day in UTC) or `2026-03-31T18:00:00Z`.
    /// Default: the instant of the version.
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    as_of: Option<DateTime<Utc>>,

    /// Open the page in the browser.
    ///
    /// `BROWSER` may name the browser, with arguments, or several to try, with colons between them; `%s` stands for the
    /// path.
    #[arg(long, conflicts_with = "text")]
    open: bool,

    /// Print the report as text instead of writing a page; with `--json`, its numbers.
    #[arg(long, conflicts_with_all = ["output", "force"])]
    text: bool,

    /// The width of lines. Default: that of the terminal, or 80.
    #[arg(long, value_name = "COLUMNS", requires = "text")]
    width: Option<usize>,

    /// Write the page to this file, or with `-` to standard output. Default: `reports/NAME.html` in the data folder, which
    /// is replaced.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Report {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        if self.json.is_wanted() && !self.text {
            return Err(usage(
                "no room for `--json` beside the path of a page",
                "add `--text`: `--text --json` prints the numbers",
            ));
        }
        let is_stdout = self.output.as_deref() == Some(Path::new("-"));
        if is_stdout && self.open {
            return Err(usage("`--open` needs a page in a file", "leave out `--output -`"));
        }
        let target = self.output.as_ref().filter(|_| !is_stdout).map(|file| self.force.file(file.clone()));
        target.as_ref().map(TargetFile::check).transpose()?;
        let folders = self.folders.of_project(project);
        let report = self.build(&folders, project)?;
        if self.text {
            let width = self.width.or_else(columns).unwrap_or(WIDTH);
            return self.json.say(|| report.summary(), || report.text(width));
        }
        if is_stdout {
            return say(&report.page());
        }
        let file = match target {
            Some(target) => {
                let file = target.check()?;
                file::create_folders(file::folder_of(&file))?;
                file::replace(&file, report.page().as_bytes())?;
                file
            }
            None => run::draw(&report, &folders.data)?,
        };
        say(&format!("report    {}\n", file.display()))?;
        if !self.open {
            return Ok(());
        }
        // The browser may be in another folder.
        browse(&file.canonicalize().context(ErrorKind::Read, || format!("cannot read `{}`", file.display()))?)
    }

    /// Builds the report, from the store if there is one.
    fn build(&self, folders: &Folders, project: &Project) -> Result<bellwether::report::Report> {
        let (name, as_of, root) = (self.name.clone(), self.as_of, project.root().to_owned());
        if let Some(name) = &self.name {
            self.store.fetch_version(name, folders, project)?;
            let plan = Plan::find(name.split('/').next().unwrap_or(name), project).ok();
            self.store.fetch(plan.as_ref(), folders, &[FetchItem::Runs(as_of)])?;
        }
        let Folders { data, archive, .. } = folders.clone();
        Ok(interruptible(None, async |control| {
            run::report(ReportOptions { name, data, archive, root, as_of, clock: Clock::System, control }).await
        })?)
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
    let what = format!("cannot open the report with `{}`", browser.display());
    Err(Error::new(ErrorKind::Storage, what)
        .with_hint(format!("name a browser in `BROWSER`, or open `{}` yourself", page.display()))
        .with_source(source)
        .into())
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
    let mut browser = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = Instant::now();
    loop {
        match browser.try_wait()? {
            Some(status) if !status.success() => return Err(io::Error::other(format!("it failed with {status}"))),
            // One that still runs may do so for days.
            None if begun.elapsed() <= PATIENCE => thread::sleep(Duration::from_millis(10)),
            _ => return Ok(()),
        }
    }
}
