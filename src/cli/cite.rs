//! `bellwether cite`: the citation of a version.

use bellwether::export::{Citation, CitationFormat};
use bellwether::project::Project;
use bellwether::run::forgotten_run_of;

use super::folders::Folders;
use super::outcome::Result;
use super::typed::one_of;
use super::{note, say};

/// Print the citation of a version.
///
/// It says which data, whose, as of when, and the command that builds it again. Everything in it is from the version itself, and no network is needed. For `croissant`, which asks for SHA-256 digests,
/// the files of the version are read and verified.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether cite demo/20261120T213000Z-7f3a --format croissant
      one version, for Croissant")]
pub(super) struct Cite {
    /// A dataset: NAME for its latest version, NAME/VERSION, NAME/builds/VERSION, or the path of a version.
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// The form: an entry for BibTeX, the metadata of DataCite, or a description for Croissant. Default: `bibtex`.
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<CitationFormat>(CitationFormat::ALL.map(CitationFormat::as_str)))]
    format: Option<CitationFormat>,

    #[command(flatten)]
    folders: Folders,
}

impl Cite {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let citation = Citation::find(&self.folders.data(project).join("datasets"), &self.dataset)?;
        let format = self.format.unwrap_or(CitationFormat::Bibtex);
        say(&citation.text(format)?)?;
        // A version can be cited whatever became of the archive.
        let forgotten = match forgotten_run_of(&self.folders.archive(project), citation.record()) {
            Ok(run) => run.map(|run| {
                format!("run `{run}`, which this version was built from, was forgotten since: the command is refused")
            }),
            Err(error) => Some(format!("whether a run of this version was forgotten since cannot be told: {error}")),
        };
        citation.notes(format).into_iter().chain(forgotten).for_each(|text| note(&format!("note: {text}")));
        Ok(())
    }
}
