//! `bellwether verify`: verifies every file of the archive and the datasets.

use bellwether::archive::Verified;
use bellwether::project::Project;
use bellwether::run::verify;
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;

use super::cancellable;
use super::document::AsJson;
use super::folders::Folders;
use super::outcome::{Failure, Result};

/// Verify every file in the archive and the datasets.
///
/// Its size, checksum and row count, and that each pack matches its runs.
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
        self.json.say(|| &verified, || in_words(&verified))?;
        match verified.faults.len() {
            0 => Ok(()),
            count => Err(Failure::Unverified { count }),
        }
    }
}

fn in_words(Verified { files, faults, notes }: &Verified) -> String {
    let faults_and_notes = faults.iter().map(|fault| format!("{}\n", escape(fault)));
    let mut text: String =
        faults_and_notes.chain(notes.iter().map(|note| format!("note: {}\n", escape(note)))).collect();
    if faults.is_empty() {
        text.push_str(&format!("verified {}\n", count_of(*files as u64, "file", "files")));
    }
    text
}
