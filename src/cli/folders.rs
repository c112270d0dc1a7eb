//! Where archive and datasets are.

use std::path::{Path, PathBuf};

/// Where they are unless somebody says otherwise.
const OUTPUT: &str = "output";

/// The folders of a command.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Folders {
    /// The folder for datasets, and for the archive where that is not named. `build` takes `-` for standard output.
    #[arg(long, default_value = OUTPUT, value_name = "FOLDER", global = true)]
    pub(super) output: PathBuf,

    /// The folder of the archive, `archive` in the folder for datasets if it is not given.
    #[arg(long, value_name = "FOLDER", global = true)]
    archive: Option<PathBuf>,
}

impl Folders {
    /// The folder of the archive.
    pub(super) fn archive(&self) -> PathBuf {
        let output = if self.is_stdout() { Path::new(OUTPUT) } else { &self.output };
        self.archive.clone().unwrap_or_else(|| output.join("archive"))
    }

    /// Whether standard output takes the place of the folder.
    pub(super) fn is_stdout(&self) -> bool {
        self.output == Path::new("-")
    }
}

/// The archive that a question is asked of.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ArchiveFolder {
    /// The folder of the archive.
    #[arg(long = "archive", default_value = "output/archive", value_name = "FOLDER")]
    pub(super) path: PathBuf,
}
