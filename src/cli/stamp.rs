//! `bellwether stamp`: has a time-stamping authority certify what is known.

use bellwether::project::Project;
use bellwether::run::{Control, Stamp as Stamped, stamp};
use bellwether::time::{Clock, to_record};

use super::document::AsJson;
use super::folders::Folders;
use super::interruptible;
use super::outcome::{Failure, Result};
use super::typed::plan_of;

/// Have an authority certify everything that is sealed of a service.
///
/// The authority, which `tsa` in `[proof]` names, gets a SHA-256 and nothing else. Its token covers every run that is sealed by
/// then, so the next one makes up for one that fails. `verify --proofs` checks the tokens without a network.
#[derive(Debug, clap::Args)]
pub(super) struct Stamp {
    /// A definition: its name in `pipelines/`, or a path. Without one, all are listed.
    definition: Option<String>,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

impl Stamp {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let plan = plan_of(self.definition.as_deref(), project)?;
        let archive = self.folders.archive(project);
        let stamped = interruptible(async |stop| {
            let control = Control { stop, ..Control::default() };
            stamp(&plan, &archive, Clock::System, &control).await
        });
        let stamped = stamped.map_err(Failure::from)?;
        self.json.say(|| &stamped, || in_words(&stamped))
    }
}

fn in_words(Stamped { proof, service, authority, at, is_new }: &Stamped) -> String {
    let already = if *is_new { "" } else { "already " };
    format!("all that is known of {service} was {already}stamped by {authority} at {}: {proof}\n", to_record(*at))
}
