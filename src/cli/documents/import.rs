//! Imported files.

use bellwether::run::{self, ImportMode};
use bellwether::time::to_record;
use schemars::JsonSchema;
use serde::Serialize;

/// What was imported, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Imported {
    /// The service whose claims they are.
    service: String,
    /// Whether they were only checked.
    dry_run: bool,
    /// The claims, in the order of their instants.
    claims: Vec<Claim>,
    /// Notes, one line each.
    notes: Vec<String>,
}

/// A claim.
#[derive(Debug, Serialize, JsonSchema)]
struct Claim {
    /// The instant of which it is a claim.
    observed_at: String,
    /// The name of its run; none if it was not imported.
    run: Option<String>,
    /// Whether it was imported before.
    is_known: bool,
    /// Its files.
    files: Vec<File>,
    /// The number of valid records.
    records: u64,
    /// The number of rejected records.
    rejected: u64,
    /// New cells; none if it was not imported now.
    added: Option<u64>,
    /// Cells whose values changed; none if it was not imported now.
    revised: Option<u64>,
    /// Cells that are no longer listed; none if it was not imported now.
    withdrawn: Option<u64>,
}

/// A file.
#[derive(Debug, Serialize, JsonSchema)]
struct File {
    /// Its path.
    path: String,
    /// The request whose answer it is taken for.
    request: String,
}

impl Imported {
    pub(in crate::cli) fn of(imported: &run::Imported) -> Self {
        let file = |(path, request): &(std::path::PathBuf, String)| File {
            path: path.display().to_string(),
            request: request.clone(),
        };
        let claim = |claim: &run::ImportedClaim| Claim {
            observed_at: to_record(claim.observed_at),
            run: claim.run.clone(),
            is_known: claim.is_known,
            files: claim.files.iter().map(file).collect(),
            records: claim.records,
            rejected: claim.rejected,
            added: claim.changes.map(|changes| changes.added),
            revised: claim.changes.map(|changes| changes.revised),
            withdrawn: claim.changes.map(|changes| changes.withdrawn),
        };
        Self {
            service: imported.service.clone(),
            dry_run: imported.mode == ImportMode::Check,
            claims: imported.claims.iter().map(claim).collect(),
            notes: imported.notes.clone(),
        }
    }
}
