//! `bellwether cite`: the citation of a version.

use bellwether::export::{Citation, version_of};

use super::prelude::*;

/// Print the citation of a version.
///
/// It says which data, whose, as of when, and the command that builds it again. Everything in it is from the version itself,
/// and no network is needed.
#[derive(Debug, clap::Args)]
pub(super) struct Cite {
    /// A dataset: NAME for its latest version, NAME/VERSION, NAME/builds/VERSION, or the path of a version.
    dataset: String,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    data: DataFolder,
}

impl Cite {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (_, record) = version_of(&self.data.datasets(project), Some(&self.dataset))?;
        let citation = Citation::new(record);
        citation.notes.iter().for_each(|text| note(&format!("note: {text}")));
        self.json.say(|| &citation, || citation.text())
    }
}
