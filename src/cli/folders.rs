//! Where archive and datasets are.

use std::path::PathBuf;

/// The folders of a command.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Folders {
    /// The folder for datasets, and for the archive where that is not named.
    #[arg(long, default_value = "output", value_name = "FOLDER", global = true)]
    pub(super) output: PathBuf,

    /// The folder of the archive, `archive` in the folder for datasets if it is not given.
    #[arg(long, value_name = "FOLDER", global = true)]
    archive: Option<PathBuf>,
}

impl Folders {
    /// The folder of the archive.
    pub(super) fn archive(&self) -> PathBuf {
        self.archive.clone().unwrap_or_else(|| self.output.join("archive"))
    }
}
