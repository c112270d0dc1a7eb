//! What takes the room: the size of the files in folders of ours.

use std::path::Path;

use bellwether::disk::footprint::size;
use schemars::JsonSchema;
use serde::Serialize;

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
