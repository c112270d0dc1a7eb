//! What takes the room: the size of the files in folders of ours.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::file;

/// Folders are followed this deep; ours have at most five levels.
const DEEPEST: usize = 8;

/// Bytes by what they are for. A file with several names counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Disk {
    /// The archive, with unfinished runs.
    pub archive: u64,
    /// The datasets: versions and ad hoc builds.
    pub datasets: u64,
    /// Bodies and rejected records that were kept for the vendor.
    pub evidence: u64,
    /// Reports that were asked for.
    pub reports: u64,
    /// Journals, and what schedulers remember.
    pub records: u64,
}

impl Disk {
    /// The size of the folders.
    pub(super) fn of(data: &Path, archive: &Path) -> Self {
        let bytes = |name: &str| size(&data.join(name));
        Self {
            archive: size(archive),
            datasets: bytes("datasets"),
            evidence: bytes("evidence"),
            reports: bytes("reports"),
            records: bytes("journal") + bytes("schedule"),
        }
    }

    /// Each part with its name.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        let Self { archive, datasets, evidence, reports, records } = *self;
        [
            ("archive", archive),
            ("datasets", datasets),
            ("evidence", evidence),
            ("reports", reports),
            ("records", records),
        ]
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The size of the files in a folder. Links are not followed, and what cannot be read is left out.
pub(super) fn size(folder: &Path) -> u64 {
    walk(folder, DEEPEST, &mut HashSet::new())
}

fn walk(folder: &Path, depth: usize, seen: &mut HashSet<(u64, u64)>) -> u64 {
    let mut bytes = 0;
    for path in file::entries(folder).unwrap_or_default() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.is_dir() && depth > 0 {
            bytes += walk(&path, depth - 1, seen);
        } else if found.is_file() && (found.nlink() == 1 || seen.insert((found.dev(), found.ino()))) {
            bytes += found.len();
        }
    }
    bytes
}
