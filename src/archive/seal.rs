//! The seal of a run: what it is, and what every file of it must be.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::error::{Error, Reason, Result};
use crate::file::{self, FileRecord};
use crate::tables::Drift;
use crate::time::as_record;

/// The version of the layout; readers refuse every other one.
pub const LAYOUT: u32 = 9;

/// The name of the seal's file.
pub(super) const SEAL: &str = "run.json";

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
    /// Whose run it is; none of a run that was compacted out of others.
    pub definition: Option<Definition>,
    /// When the run began: of a compacted run, when the first of those that it replaces did.
    #[serde(with = "as_record")]
    pub started_at: DateTime<Utc>,
    /// When the run was sealed: of a compacted run, when the last of those that it replaces was.
    #[serde(with = "as_record")]
    pub sealed_at: DateTime<Utc>,
    /// The runs that came before it, whose fingerprints it went on from: one, unless several were made at once.
    pub after: Vec<String>,
    /// The run whose fingerprints are those that this run does not list; none when it lists all.
    pub since: Option<String>,
    /// The runs whose place it takes.
    pub replaces: Vec<String>,
    /// The runs whose observations its bundle repeats, with itself among them; none when it has no bundle.
    pub bundles: Vec<String>,
    /// What it changed.
    pub changes: Counts,
    /// Fields of the answers that the interface does not know.
    pub drift: Vec<Drift>,
    /// Every file of the run.
    pub files: Vec<FileRecord>,
    /// The BLAKE3 of the seal's own text, with 64 zeros in the place of this.
    pub seal: String,
}

/// A definition, as far as a run remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The BLAKE3 of its text.
    pub digest: String,
}

/// How many cells, of all tables, and how many series came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Cells that were not there before.
    pub added: u64,
    /// Cells of which something else was said.
    pub revised: u64,
    /// Cells that were no longer there.
    pub withdrawn: u64,
    /// Series that an answer listed for the first time, or again.
    pub listed: u64,
    /// Series that an answer to the same request no longer listed.
    pub delisted: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.revised += other.revised;
        self.withdrawn += other.withdrawn;
        self.listed += other.listed;
        self.delisted += other.delisted;
    }
}

/// What stands for the seal's own digest while it is taken.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

impl Seal {
    /// A seal whose text is not digested yet.
    pub(super) fn undigested() -> String {
        NO_DIGEST.to_owned()
    }

    /// Writes the seal, digest and all, into the run's folder, once the files that it names are durable.
    pub(super) fn write(&mut self, folder: &Path) -> Result<()> {
        file::sync_all(&self.files.iter().map(|file| folder.join(&file.name)).collect::<Vec<_>>())?;
        let file = folder.join(SEAL);
        let encode = |error: serde_json::Error| Error::Encode { path: file.clone(), source: error.into() };
        self.seal = digest::of(serde_json::to_string_pretty(self).map_err(encode)?.as_bytes());
        file::write_bytes(&file, serde_json::to_string_pretty(self).map_err(encode)?.as_bytes())
    }

    pub(super) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(SEAL);
        let text = fs::read_to_string(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
        let damaged = |source: Reason| Error::Damaged { path: file.clone(), source };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.into()))?;
        // Another layout may have another seal: its version is all that can be relied on.
        match value["layout"].as_u64() {
            Some(layout) if layout == u64::from(LAYOUT) => {}
            Some(layout) => return Err(Error::Layout { path: folder.to_owned(), layout, known: LAYOUT }),
            None => return Err(damaged("it names no layout".into())),
        }
        let seal: Self = serde_json::from_value(value).map_err(|error| damaged(error.into()))?;
        let found = digest::of(text.replace(&seal.seal, NO_DIGEST).as_bytes());
        if found != seal.seal {
            return Err(damaged(format!("its BLAKE3 is {found} and should be {}", seal.seal).into()));
        }
        Ok(seal)
    }

    /// The record of one of its files.
    pub fn file(&self, name: &str) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The rows of one of its files; none where it has no such file.
    pub fn rows(&self, name: &str) -> u64 {
        self.file(name).map_or(0, |file| file.rows)
    }

    /// The size of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}
