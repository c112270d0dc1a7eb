//! `bellwether verify`: verifies every file of the archive and the datasets.

use std::path::PathBuf;

use bellwether::archive::Verified;
use bellwether::project::Project;
use bellwether::run::{CheckedProof, ProofOutcome, Proven, ProvenVersion, proven, verify};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;
use bellwether::time::to_record;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{AsJson, document};
use super::folders::Folders;
use super::outcome::{Failure, Result};
use super::{cancellable, say};

/// Verify every file in the archive and the datasets.
///
/// Its size, checksum and row count, and that each pack matches its runs.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    /// Also check the proofs that `bellwether stamp` made, against the certificates in this PEM file.
    ///
    /// They are those of the authorities that you trust, which issued the ones that signed. Nothing is asked over a network,
    /// so a certificate that was revoked is not noticed.
    #[arg(long, value_name = "PEM")]
    proofs: Option<PathBuf>,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: Folders,
}

impl Verify {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (archive, data) = (self.folders.archive(project), self.folders.data(project));
        let authorities = self.proofs.clone();
        let (verified, proven) = cancellable(move |control| {
            // What a proof is about is only as sound as the files.
            let proven = authorities.map(|authorities| proven(&archive, &data, &authorities, control)).transpose()?;
            Ok((verify(&archive, &data, control)?, proven))
        })?;
        if self.json.is_wanted() {
            let count = verified.faults.len();
            let verification = Verification { verified, proven };
            say(&document(&verification))?;
            return outcome(count, verification.proven.as_ref());
        }
        let Verified { files, faults, notes } = verified;
        for fault in &faults {
            say(&format!("{}\n", escape(fault)))?;
        }
        for note in &notes {
            say(&format!("note: {}\n", escape(note)))?;
        }
        if let Some(proven) = &proven {
            say(&in_words(proven))?;
        }
        if faults.is_empty() {
            say(&format!("verified {}\n", count_of(files as u64, "file", "files")))?;
        }
        outcome(faults.len(), proven.as_ref())
    }
}

/// What was verified, and what is proven.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Verification {
    #[serde(flatten)]
    verified: Verified,
    /// The proofs and what they prove, with `--proofs`.
    proven: Option<Proven>,
}

/// Whether everything is as it should be: proofs that cannot be checked are not fine, and neither is having none.
fn outcome(faults: usize, proven: Option<&Proven>) -> Result<()> {
    let count = |outcome| proven.map_or(0, |proven| proven.count(outcome));
    match (faults + count(ProofOutcome::Invalid), count(ProofOutcome::Unknown)) {
        (0, 0) if proven.is_some_and(|proven| proven.proofs.is_empty()) => {
            Err(Failure::Unproven { what: "there are no proofs: `bellwether stamp NAME` makes one".to_owned() })
        }
        (0, 0) => Ok(()),
        (0, unknown) => {
            let proofs = count_of(unknown as u64, "proof", "proofs");
            Err(Failure::Unproven { what: format!("{proofs} cannot be checked here") })
        }
        (count, _) => Err(Failure::Unverified { count }),
    }
}

fn in_words(proven: &Proven) -> String {
    let of_proof = |proof: &CheckedProof| {
        let CheckedProof { proof, service, authority, at, runs, missing, outcome, reason } = proof;
        let by = authority.as_deref().map(|host| format!(" by {}", escape(host))).unwrap_or_default();
        let at = at.map(|at| format!(" at {}", to_record(at))).unwrap_or_default();
        let reason = escape(reason.as_deref().unwrap_or_default()).into_owned();
        match outcome {
            ProofOutcome::Valid => {
                let runs = count_of(*runs as u64, "run", "runs");
                let missing = match &missing[..] {
                    [] => String::new(),
                    some => format!("; not in the archive: {}", escape(&some.join(", "))),
                };
                format!("proof {proof}: {runs} of {service} known{at}, certified{by}{missing}\n")
            }
            ProofOutcome::Invalid => format!("proof {proof} is invalid: {reason}\n"),
            ProofOutcome::Unknown => format!("proof {proof} cannot be checked: {reason}\n"),
        }
    };
    let of_version = |version: &ProvenVersion| match version {
        ProvenVersion { version, since: Some(since), .. } => {
            format!("{version} is proven since {}\n", to_record(*since))
        }
        ProvenVersion { version, unproven, .. } => match &unproven[..] {
            [] => format!("{version} is not proven: it names no runs\n"),
            [only] => format!("{version} is not proven: run `{}` is in no valid proof\n", escape(only)),
            [first, rest @ ..] => {
                format!(
                    "{version} is not proven: run `{}` and {} more are in no valid proof\n",
                    escape(first),
                    rest.len()
                )
            }
        },
    };
    proven.proofs.iter().map(of_proof).chain(proven.versions.iter().map(of_version)).collect()
}
