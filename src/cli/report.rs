//! `bellwether report`: the report of a dataset, as a page or as text.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bellwether::disk::file::{self, TargetFile};
use bellwether::error::Context as _;
use bellwether::plan::Plan;
use bellwether::run::ReportOptions;

use super::prelude::*;

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
            let hint = "add `--text`: `--text --json` prints the numbers";
            return Err(usage("no room for `--json` beside the path of a page", hint));
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
            // Outside a terminal, lines are 80 wide.
            let width = self.width.or_else(columns).unwrap_or(80);
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
        if self.open {
            // The browser may be in another folder.
            browse(&file.canonicalize().context(ErrorKind::Read, || format!("cannot read `{}`", file.display()))?)?;
        }
        Ok(())
    }

    /// Builds the report, from the store if there is one.
    fn build(&self, folders: &Folders, project: &Project) -> Result<bellwether::report::Report> {
        let (name, as_of, root) = (self.name.clone(), self.as_of, project.root().to_owned());
        if let Some(name) = &name {
            self.store.fetch_version(name, folders, project)?;
            let plan = Plan::find(name.split('/').next().unwrap_or(name), project).ok();
            self.store.fetch(plan.as_ref(), folders, &[FetchItem::Runs(as_of)])?;
        }
        let Folders { data, archive, .. } = folders.clone();
        interruptible(None, async |control| {
            Ok(run::report(ReportOptions { name, data, archive, root, as_of, clock: Clock::System, control }).await?)
        })
    }
}

/// Opens a page with the first of the user's browsers that does.
fn browse(page: &Path) -> error::Result<()> {
    let usual = OsString::from(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    let browsers = match env::var_os("BROWSER").filter(|named| !named.is_empty()) {
        Some(named) if Path::new(&named).is_file() => vec![vec![named]],
        Some(named) => named.as_bytes().split(|byte| *byte == b':').map(words).collect(),
        None => vec![vec![usual.clone()]],
    };
    let mut failure = (usual, io::Error::from(io::ErrorKind::NotFound));
    for words in browsers {
        let [program, arguments @ ..] = &words[..] else { continue };
        match open_with(program, arguments, page) {
            Ok(()) => return Ok(()),
            Err(source) => failure = (program.clone(), source),
        }
    }
    let what = format!("cannot open the report with `{}`", failure.0.display());
    Err(Error::new(ErrorKind::Storage, what)
        .with_hint(format!("name a browser in `BROWSER`, or open `{}` yourself", page.display()))
        .with_source(failure.1))
}

fn words(text: &[u8]) -> Vec<OsString> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

fn open_with(program: &OsStr, arguments: &[OsString], page: &Path) -> io::Result<()> {
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
            // One that still runs after two seconds has opened the page, or soon will, and may run for days.
            None if begun.elapsed() <= Duration::from_secs(2) => thread::sleep(Duration::from_millis(10)),
            _ => return Ok(()),
        }
    }
}
