//! `bellwether verify`: verifies every file of the archive and the datasets.

use bellwether::archive::Verified;
use bellwether::escape::escaped;
use bellwether::human::counted;
use bellwether::project::Project;
use bellwether::run::verify;

use super::documents::{AsJson, document};
use super::folders::Folders;
use super::outcome::{Failure, Result};
use super::{cancellable, say};

/// Verify the size, checksum and row count of every file in the archive and the datasets, and that each pack matches
/// its runs.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

impl Verify {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (archive, data) = (self.folders.archive(project), self.folders.data(project));
        let verified = cancellable(move |control| verify(&archive, &data, control))?;
        if self.json.is_wanted() {
            say(&document(&verified))?;
            return match verified.faults.len() {
                0 => Ok(()),
                count => Err(Failure::Unverified { count }),
            };
        }
        let Verified { files, faults, notes } = verified;
        for fault in &faults {
            say(&format!("{}\n", escaped(fault)))?;
        }
        for note in &notes {
            say(&format!("note: {}\n", escaped(note)))?;
        }
        match faults.len() {
            0 => say(&format!("verified {}\n", counted(files as u64, "file", "files"))),
            count => Err(Failure::Unverified { count }),
        }
    }
}
