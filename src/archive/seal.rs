//! The seal of a run: what it is, and what every file of it must be.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::file::FileRecord;
use crate::tables::Drift;
use crate::time::as_record;

/// The version of the layout; readers refuse a later one.
pub const LAYOUT: u32 = 1;

/// Whose a run is, and since when: what `unfinished.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) layout: u32,
    pub(super) run: String,
    pub(super) definition: String,
    pub(super) definition_digest: String,
    #[serde(with = "as_record")]
    pub(super) started_at: DateTime<Utc>,
}

/// Where a run is when it is sealed.
pub(super) fn sealed_path(archive: &Path, run: &str) -> PathBuf {
    archive.join(format!("run={run}"))
}

/// What `run.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The version of the layout.
    pub layout: u32,
    /// The run's name.
    pub run: String,
    /// The version of the program that wrote it.
    pub bellwether: String,
    /// The definition's name.
    pub definition: String,
    /// The SHA-256 of the definition's text.
    pub definition_digest: String,
    /// When the run began.
    #[serde(with = "as_record")]
    pub started_at: DateTime<Utc>,
    /// When the run was sealed.
    #[serde(with = "as_record")]
    pub sealed_at: DateTime<Utc>,
    /// Fields of the answers that the interface does not know.
    pub drift: Vec<Drift>,
    /// Every file of the run.
    pub files: Vec<FileRecord>,
}
