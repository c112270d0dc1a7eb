//! `bellwether verify`: verifies every file of the archive and the datasets.

use super::folders::Folders;
use super::say;
use crate::archive::{Archive, Verified, fault, verify};
use crate::error::{Error, Result};
use crate::escape::escaped;
use crate::export::versions;
use crate::numbers::counted;

/// Verify the size, checksum and row count of every file in the archive and the datasets, and that each pack matches
/// its runs.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    folders: Folders,
}

impl Verify {
    pub(super) fn execute(self) -> Result<()> {
        let Verified { mut files, mut faults } = verify(&Archive::open(&self.folders.archive())?)?;
        for version in versions(&self.folders.output.join("datasets"))? {
            files += version.file_count();
            faults.extend(version.fault_of_facts());
            faults.extend(version.files.iter().filter_map(|file| fault(&version.path.join(&file.name), file)));
        }
        for fault in &faults {
            say(&format!("{}\n", escaped(&fault.to_string())))?;
        }
        match faults.len() {
            0 => say(&format!("verified {}\n", counted(files as u64, "file", "files"))),
            count => Err(Error::Unverified { count }),
        }
    }
}
