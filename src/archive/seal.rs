//! The seal of a run: what it is, and what every file of it must be.

use serde::{Deserialize, Serialize};

use crate::file::FileRecord;
use crate::tables::Drift;

/// The version of the layout; readers refuse a later one.
pub const LAYOUT: u32 = 1;

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
    pub started_at: String,
    /// When the run was sealed.
    pub sealed_at: String,
    /// Fields of the answers that the interface does not know.
    pub drift: Vec<Drift>,
    /// Every file of the run.
    pub files: Vec<FileRecord>,
}
