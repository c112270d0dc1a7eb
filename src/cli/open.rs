//! `bellwether open`: a report in the browser.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bellwether::error::Error;
use bellwether::export::{REPORT, version_of};
use bellwether::file::FileError;
use bellwether::project::Project;

use super::folders::DataFolder;
use super::outcome::{Failure, Result};
use super::say;

/// Open the report of a dataset in the browser.
#[derive(Debug, clap::Args)]
pub(super) struct Open {
    /// A dataset: NAME for its latest version, or NAME/VERSION. Default: the newest.
    name: Option<String>,

    /// Print the path of the report instead of opening it.
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
        if !self.print {
            browse(&page)?;
        }
        say(&format!("{}\n", page.display()))
    }
}

/// Opens a page with the user's browser.
fn browse(page: &Path) -> Result<()> {
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let browser = env::var_os("BROWSER").filter(|name| !name.is_empty()).map_or_else(|| usual.into(), PathBuf::from);
    let mut command = Command::new(&browser);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It may stay open for as long as the browser does, so it is not waited for.
    command.spawn().map(drop).map_err(|source| Failure::Browser { browser, page: page.to_owned(), source })
}
