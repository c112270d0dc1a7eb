//! What claims have to be in order with.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};

use super::error::ImportError;
use super::{ClaimedAnswer, claimed_files};
use crate::archive::{Archive, ClaimedFile, SealedRun};
use crate::error::{ErrorKind, Result};
use crate::time::Clock;

/// How long before its instant a claim is sealed at most: claims of one instant are sealed one after another, and all count as
/// of it.
const BEFORE: TimeDelta = TimeDelta::microseconds(999);

/// What claims have to be in order with.
pub(super) struct KnownRuns {
    pub(super) now: DateTime<Utc>,
    /// Since when the service is watched; none if it is not.
    since: Option<DateTime<Utc>>,
    /// The claims, in the order of their instants.
    claims: Vec<SealedRun>,
    /// When claims were sealed that are forgotten.
    forgotten: Vec<DateTime<Utc>>,
}

impl KnownRuns {
    pub(super) fn of(folder: &Path, claims: &Path) -> Result<Self> {
        let opened = |path: &Path| match Archive::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            archive => archive.map(Some),
        };
        let since = opened(folder)?.and_then(|archive| archive.runs().iter().map(|run| run.seal().started_at).min());
        let claims = opened(claims)?;
        let forgotten = claims.iter().flat_map(Archive::forgotten_runs).filter_map(|run| run.sealed_at).collect();
        let claims = claims.map_or_else(Vec::new, |claims| claims.runs().to_vec());
        Ok(Self { now: Clock::System.now(), since, claims, forgotten })
    }

    /// Checks the instant of some answers. Returns the run that has them already, if there is one.
    pub(super) fn check(&self, at: DateTime<Utc>, answers: &[ClaimedAnswer]) -> Result<Option<String>, ImportError> {
        let path = answers[0].path.clone();
        if at > self.now {
            return Err(ImportError::Future { path, at });
        }
        if let Some(since) = self.since.filter(|since| at >= *since) {
            return Err(ImportError::Witnessed { path, at, since });
        }
        let of_instant = self.claims.iter().filter(|run| run.seal().started_at == at);
        let known: Vec<(&str, &ClaimedFile)> = of_instant
            .flat_map(|run| run.seal().claimed.iter().flat_map(|claim| &claim.files).map(|file| (run.name(), file)))
            .collect();
        let mut runs = Vec::new();
        for (answer, file) in answers.iter().zip(claimed_files(answers)) {
            let Some((run, other)) = known.iter().find(|(_, other)| other.request == file.request) else { continue };
            if other.blake3 != file.blake3 {
                let (path, request, other) = (answer.path.clone(), answer.request.target(), PathBuf::from(&other.name));
                return Err(ImportError::Contradiction { path, other, request, at });
            }
            runs.push((*run).to_owned());
        }
        if runs.len() == answers.len() {
            return Ok(runs.pop());
        }
        if let Some(run) = runs.pop() {
            return Err(ImportError::Order { path, at, run, newest: at });
        }
        match self.claims.iter().map(SealedRun::seal).find(|seal| seal.started_at > at) {
            Some(newest) => {
                let (run, newest) = (newest.run.clone(), newest.started_at);
                Err(ImportError::Order { path, at, run, newest })
            }
            None => Ok(None),
        }
    }

    /// When a claim of an instant is sealed: a little before it, after the other claims of that instant.
    pub(super) fn sealing(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        let newest = self.claims.iter().map(|run| run.seal().sealed_at).max();
        let mut sealing = newest.map_or(at - BEFORE, |newest| (at - BEFORE).max(newest + TimeDelta::microseconds(1)));
        while self.forgotten.contains(&sealing) {
            sealing += TimeDelta::microseconds(1);
        }
        sealing
    }
}
