//! Since when it is proven what an archive knew: its proofs, checked without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::observer::Control;
use crate::archive::{Archive, Chain, Note, Proof, open_all, proof_folders};
use crate::disk::file::FileError;
use crate::error::{Error, Result};
use crate::export::published_versions;
use crate::process::cancel;
use crate::time::as_record;
use crate::timestamp::{Authorities, StampRequest, Token, TokenFault};

/// The proofs of an archive, and what they prove.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Proven {
    /// The proofs, by service and name.
    pub proofs: Vec<CheckedProof>,
    /// The published versions, and since when each is proven.
    pub versions: Vec<ProvenVersion>,
}

/// A proof, and whether it is one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckedProof {
    /// Its name.
    pub proof: String,
    /// The service.
    pub service: String,
    /// The host of the authority that was asked; none if the proof cannot be read.
    pub authority: Option<String>,
    /// When the authority saw it, as the token says; none if that cannot be read.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub at: Option<DateTime<Utc>>,
    /// How many runs it proves.
    pub runs: usize,
    /// Runs that it names and the archive does not have: another machine had them, or they are gone.
    pub missing: Vec<String>,
    /// Whether it proves them.
    pub outcome: ProofOutcome,
    /// Why it does not.
    pub reason: Option<String>,
}

/// Whether a proof proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProofOutcome {
    /// It proves its runs.
    Valid,
    /// It is wrong.
    Invalid,
    /// It cannot be checked here.
    Unknown,
}

/// A published version, and since when it is proven.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProvenVersion {
    /// The name that commands take.
    pub version: String,
    /// Since when it is proven that all of its runs were known; none if some are not proven.
    #[serde(serialize_with = "as_record::serialize_if_any")]
    #[schemars(with = "Option<String>")]
    pub since: Option<DateTime<Utc>>,
    /// Its runs that are not proven.
    pub unproven: Vec<String>,
}

impl Proven {
    /// How many proofs have an outcome.
    pub fn count(&self, outcome: ProofOutcome) -> usize {
        self.proofs.iter().filter(|proof| proof.outcome == outcome).count()
    }
}

/// Checks the proofs of an archive with the certificates of the authorities that the caller trusts, in a PEM file, and says
/// since when the versions in an output folder are proven. Nothing is asked over a network, and no data file is read:
/// [`verify`](super::verify) compares those with the seals that are proven here.
///
/// # Errors
///
/// If the certificates, a folder or a record cannot be read.
pub fn proven(archive: &Path, data: &Path, authorities: &Path, control: &Control) -> Result<Proven> {
    let text = std::fs::read(authorities).map_err(FileError::read(authorities))?;
    let trusted = Authorities::of_pem(&text).map_err(|reason| {
        let what = format!("`{}` is not the certificate of an authority: {reason}", authorities.display());
        Error::usage(what, "give the PEM file of the certificate that issued the authority's own, or of its root")
    })?;
    let mut found = Proven::default();
    // When each run of a service was known at the latest.
    let mut since: BTreeMap<(String, String), DateTime<Utc>> = BTreeMap::new();
    for (service, archive) in open_all(archive)? {
        cancel::check(&control.stop)?;
        for (proof, runs) in of_archive(&archive, &service, &trusted)? {
            if let Some(at) = proof.at.filter(|_| proof.outcome == ProofOutcome::Valid) {
                for run in runs {
                    let known = since.entry((service.clone(), run)).or_insert(at);
                    *known = at.min(*known);
                }
            }
            found.proofs.push(proof);
        }
    }
    for version in published_versions(&data.join("datasets"))? {
        let service = version.service.clone().unwrap_or_default();
        let of_run = |run: &String| since.get(&(service.clone(), run.clone())).copied();
        let unproven: Vec<String> = version.runs.iter().filter(|run| of_run(run).is_none()).cloned().collect();
        let last = version.runs.iter().filter_map(of_run).max();
        let since = last.filter(|_| unproven.is_empty());
        found.versions.push(ProvenVersion { version: version.name, since, unproven });
    }
    Ok(found)
}

/// The proofs of a service's archive, each with the runs that it is about.
fn of_archive(
    archive: &Archive,
    service: &str,
    trusted: &Authorities,
) -> Result<Vec<(CheckedProof, BTreeSet<String>)>> {
    let folders = proof_folders(archive.path())?;
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    let chain = Chain::of(archive.path())?;
    let mut checked = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().trim_start_matches("proof=").to_owned();
        let mut proof = CheckedProof {
            proof: name,
            service: service.to_owned(),
            authority: None,
            at: None,
            runs: 0,
            missing: Vec::new(),
            outcome: ProofOutcome::Valid,
            reason: None,
        };
        let mut runs = BTreeSet::new();
        let read = match Proof::read(&folder) {
            Ok(read) => read,
            Err(error) => {
                proof.outcome = ProofOutcome::Invalid;
                let words = std::iter::once(error.to_string()).chain(error.causes().map(ToString::to_string));
                proof.reason = Some(words.collect::<Vec<_>>().join(": "));
                checked.push((proof, runs));
                continue;
            }
        };
        proof.authority = Some(read.authority.clone());
        proof.at = Token::read(&read.token()).ok().map(|token| token.at);
        match check(&read, service, &chain, trusted) {
            Ok(stood_for) => {
                runs = stood_for.runs;
                proof.missing = stood_for.missing;
            }
            Err(fault) => {
                proof.outcome = match &fault {
                    TokenFault::Invalid(_) => ProofOutcome::Invalid,
                    TokenFault::Unsupported(_) => ProofOutcome::Unknown,
                };
                proof.reason = Some(fault.to_string());
            }
        }
        proof.runs = runs.len();
        checked.push((proof, runs));
    }
    Ok(checked)
}

/// The runs that a proof proves, and those of its heads that are not here.
struct StoodFor {
    runs: BTreeSet<String>,
    missing: Vec<String>,
}

/// What a proof proves.
fn check(proof: &Proof, service: &str, chain: &Chain, trusted: &Authorities) -> Result<StoodFor, TokenFault> {
    let (stated, heads) = proof.service_and_heads();
    if stated != service {
        return Err(TokenFault::Invalid(format!("it is about another service, `{stated}`")));
    }
    let bytes = proof.token();
    let token = Token::read(&bytes)?;
    token.check_answers(&StampRequest::of(&proof.statement, proof.nonce()))?;
    token.check_signed(Some(trusted))?;
    let known = chain
        .known_to(&heads)
        .map_err(|run| TokenFault::Invalid(format!("the archive has another run `{run}` than it is about")))?;
    if known.runs.is_empty() {
        return Err(TokenFault::Unsupported("the archive has none of the runs that it is about".to_owned()));
    }
    Ok(StoodFor { runs: known.runs.into_iter().map(str::to_owned).collect(), missing: known.missing })
}
