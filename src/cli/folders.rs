//! The folders of the archive and the datasets.

use std::path::{Path, PathBuf};

/// The default output folder.
const OUTPUT: &str = "output";

/// The folders of a command.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Folders {
    /// The folder for datasets, and for the archive unless `--archive` is given. `build` accepts `-` for standard
    /// output.
    #[arg(long, default_value = OUTPUT, value_name = "FOLDER", global = true)]
    pub(super) output: PathBuf,

    /// The folder of the archive. Default: `archive` in the output folder.
    #[arg(long, value_name = "FOLDER", global = true)]
    archive: Option<PathBuf>,
}

impl Folders {
    /// The folder of the archive.
    pub(super) fn archive(&self) -> PathBuf {
        let output = if self.is_stdout() { Path::new(OUTPUT) } else { &self.output };
        self.archive.clone().unwrap_or_else(|| output.join("archive"))
    }

    /// Whether the output goes to standard output instead of a folder.
    pub(super) fn is_stdout(&self) -> bool {
        self.output == Path::new("-")
    }
}

/// The archive to audit.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ArchiveFolder {
    /// The folder of the archive.
    #[arg(long = "archive", default_value = "output/archive", value_name = "FOLDER")]
    pub(super) path: PathBuf,
}
