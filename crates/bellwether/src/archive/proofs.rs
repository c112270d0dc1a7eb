//! Proofs: what an authority said of when the runs of an archive were known.
//!
//! A seal names the seals of its basis by their digests, and those name theirs. So the seals of the heads, the runs that no
//! other run knew, stand for every run, forgotten ones included. A proof is a *statement*, which is a line for the service
//! and one for each head with the digest of its seal, and a token of RFC 3161 for the SHA-256 of the statement. It is a
//! note beside the runs, `proof=NAME/run.json`, sent and fetched like one; the runs stay as they are. Merges and packs
//! depend on the runs alone, so they are not in a statement. Claims have an archive of their own, and no proofs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::notes::{self, Note};
use super::sealed::catalog::Archive;
use super::sealed::seal::{NO_DIGEST, Parent, SEAL};
use crate::disk::digest;
use crate::disk::file::FileError;
use crate::disk::names::{PROOF_FOLDER, is_unique};
use crate::error::{Reason, Result};

/// Version of the note's layout.
const LAYOUT: u32 = 1;

/// The beginning of a statement.
const FIRST: &str = "bellwether archive ";

/// The contents of `proof=NAME/run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    layout: u32,
    /// Its name.
    pub(crate) proof: String,
    /// What was stamped: the service, and the heads with their seals.
    pub(crate) statement: String,
    /// The nonce of the request, in hexadecimal.
    nonce: String,
    /// The host of the authority.
    pub(crate) authority: String,
    /// The token, in hexadecimal.
    token: String,
    /// Version of the program that wrote it.
    bellwether: String,
    /// The BLAKE3 of the note's text, with 64 zeros in place of this value.
    seal: String,
}

/// What is stored of an answered request.
pub(crate) struct Stamped {
    pub(crate) statement: String,
    pub(crate) nonce: u64,
    pub(crate) authority: String,
    pub(crate) token: Vec<u8>,
}

impl Proof {
    pub(crate) fn of(name: String, stamped: &Stamped) -> Self {
        let Stamped { statement, nonce, authority, token } = stamped;
        let mut proof = Self {
            layout: LAYOUT,
            proof: name,
            statement: statement.clone(),
            nonce: format!("{nonce:016x}"),
            authority: authority.clone(),
            token: token.iter().map(|byte| format!("{byte:02x}")).collect(),
            bellwether: env!("CARGO_PKG_VERSION").to_owned(),
            seal: NO_DIGEST.to_owned(),
        };
        proof.seal = digest::of(proof.text().as_bytes());
        proof
    }

    /// The nonce of the request.
    pub(crate) fn nonce(&self) -> u64 {
        u64::from_str_radix(&self.nonce, 16).expect("it was parsed")
    }

    /// The token.
    pub(crate) fn token(&self) -> Vec<u8> {
        bytes(&self.token).expect("it was parsed")
    }

    /// The service and the heads of its statement.
    pub(crate) fn service_and_heads(&self) -> (String, Vec<Parent>) {
        parse_statement(&self.statement).expect("it was parsed")
    }
}

impl Note for Proof {
    const FORM: &'static str = PROOF_FOLDER;
    const WITHOUT: &'static str = "it proves nothing any more";

    fn parse(text: &[u8], folder: &Path) -> Result<Self> {
        let path = folder.join(SEAL);
        let damaged = |source: Reason| FileError::damage(&path, source);
        let proof: Self = serde_json::from_slice(text).map_err(|error| damaged(error.into()))?;
        let found = digest::of(Self { seal: NO_DIGEST.to_owned(), ..proof.clone() }.text().as_bytes());
        if found != proof.seal {
            return Err(damaged(format!("its BLAKE3 checksum is {found}, expected {}", proof.seal).into()));
        }
        if proof.layout != LAYOUT {
            let (layout, bellwether) = (u64::from(proof.layout), Some(proof.bellwether));
            return Err(FileError::Layout { path, layout, known: LAYOUT, bellwether }.into());
        }
        let is_own = folder.file_name().is_some_and(|name| name == proof.folder_name().as_str());
        let is_whole = u64::from_str_radix(&proof.nonce, 16).is_ok()
            && bytes(&proof.token).is_some()
            && parse_statement(&proof.statement).is_some();
        if !is_unique(&proof.proof) || !is_own || !is_whole {
            return Err(damaged("it is not a proof of this name".into()));
        }
        Ok(proof)
    }

    fn name(&self) -> &str {
        &self.proof
    }

    fn folder_name(&self) -> String {
        format!("proof={}", self.proof)
    }

    fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a note is text and numbers")
    }
}

/// What is to be stamped of an archive: its service and its heads, with their seals. None without runs.
pub(crate) fn statement(archive: &Path, service: &str) -> Result<Option<String>> {
    let whole = Archive::open_whole(archive)?;
    let heads: BTreeSet<&Parent> = whole.lineage().heads().iter().collect();
    let lines = heads.iter().map(|head| format!("run {} {}\n", head.run, head.seal));
    Ok((!heads.is_empty()).then(|| format!("{FIRST}{service}\n{}", lines.collect::<String>())))
}

/// The service and the heads of a statement, which must be spelled as [`statement`] does.
fn parse_statement(text: &str) -> Option<(String, Vec<Parent>)> {
    let (first, rest) = text.split_once('\n')?;
    let service = first.strip_prefix(FIRST)?;
    let mut heads = Vec::new();
    for line in rest.strip_suffix('\n')?.split('\n') {
        let (run, seal) = line.strip_prefix("run ")?.split_once(' ')?;
        let is_digest = seal.len() == NO_DIGEST.len() && seal.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_unique(run) || !is_digest {
            return None;
        }
        heads.push(Parent { run: run.to_owned(), seal: seal.to_owned() });
    }
    Some((service.to_owned(), heads))
}

/// The folders of the proofs in an archive, by name: the oldest first.
pub(crate) fn proof_folders(archive: &Path) -> Result<Vec<PathBuf>> {
    notes::folders(archive, PROOF_FOLDER)
}

/// The runs that heads stand for: each head, and all that it knew.
#[derive(Debug)]
pub(crate) struct Chain {
    archive: Archive,
}

/// What an archive has of what heads stand for.
#[derive(Debug, Default)]
pub(crate) struct KnownHistory<'c> {
    /// The runs.
    pub(crate) runs: BTreeSet<&'c str>,
    /// The heads that it does not have: another machine had them, or they are gone.
    pub(crate) missing: Vec<String>,
}

impl Chain {
    /// Of an archive, with the runs that are forgotten.
    pub(crate) fn of(archive: &Path) -> Result<Self> {
        Ok(Self { archive: Archive::open_whole(archive)? })
    }

    /// What the archive has of what heads stand for. Each head speaks for itself. Fails with the name of
    /// a run that the archive has with another seal than was stamped.
    pub(crate) fn known_to(&self, heads: &[Parent]) -> Result<KnownHistory<'_>, String> {
        let mut known = KnownHistory::default();
        for head in heads {
            if self.is_other(head) {
                return Err(head.run.clone());
            }
            let Some(seals) = self.archive.known_to(&head.run) else {
                known.missing.push(head.run.clone());
                continue;
            };
            // Each names the seals that it knew: none of them may have become another one.
            if let Some(other) = seals.iter().flat_map(|seal| &seal.basis).find(|parent| self.is_other(parent)) {
                return Err(other.run.clone());
            }
            known.runs.extend(seals.iter().map(|seal| seal.run.as_str()));
        }
        Ok(known)
    }

    /// Whether the archive has a run of this name with another seal.
    fn is_other(&self, parent: &Parent) -> bool {
        let runs = self.archive.runs().iter().map(|run| run.seal());
        runs.filter(|seal| seal.run == parent.run).any(|seal| seal.seal != parent.seal)
    }
}

/// Bytes in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}
