//! The folders of a command.

use std::path::{Path, PathBuf};

use bellwether::project::Project;

use super::help::COMMON;
use super::outcome::Result;

/// The folders of the datasets and the archive.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Folders {
    /// The data folder. Default: `output`.
    ///
    /// It has the datasets and the archive; by default it is `output` in the project.
    #[arg(long, value_name = "FOLDER", env = "BELLWETHER_DATA", global = true, help_heading = COMMON)]
    data: Option<PathBuf>,

    /// The archive. Default: `archive` in `--data`.
    #[arg(long, value_name = "FOLDER", env = "BELLWETHER_ARCHIVE", global = true, help_heading = COMMON)]
    archive: Option<PathBuf>,
}

/// The folder of the datasets.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DataFolder {
    /// The data folder. Default: `output`.
    ///
    /// It has the datasets and the archive; by default it is `output` in the project.
    #[arg(long, value_name = "FOLDER", env = "BELLWETHER_DATA", global = true, help_heading = COMMON)]
    data: Option<PathBuf>,
}

impl Folders {
    /// The folder of the datasets and the archive.
    pub(super) fn data(&self, project: &Project) -> PathBuf {
        self.data.clone().unwrap_or_else(|| project.data())
    }

    /// The folder that a definition publishes in.
    pub(super) fn data_of(&self, definition: &Path, project: &Project) -> Result<PathBuf> {
        match &self.data {
            Some(data) => Ok(data.clone()),
            None => Ok(project.data_of(definition)?),
        }
    }

    /// The folder of the archive.
    pub(super) fn archive(&self, project: &Project) -> PathBuf {
        self.archive.clone().unwrap_or_else(|| self.data(project).join("archive"))
    }
}

impl DataFolder {
    /// The folder of the datasets and the archive.
    pub(super) fn data(&self, project: &Project) -> PathBuf {
        self.data.clone().unwrap_or_else(|| project.data())
    }

    /// The folder of the published datasets.
    pub(super) fn datasets(&self, project: &Project) -> PathBuf {
        self.data(project).join("datasets")
    }
}
