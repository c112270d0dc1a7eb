//! What is sent to a store, or fetched from it.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::Serialize;

/// What was sent to a store, or fetched from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransferCounts {
    /// Runs and packs.
    pub folders: usize,
    /// Versions of datasets.
    pub versions: usize,
    /// Their size.
    pub bytes: u64,
    /// Interrupted uploads that were cleared.
    pub cleared: usize,
    /// Notes on forgotten runs.
    pub notes: usize,
}

impl AddAssign for TransferCounts {
    fn add_assign(&mut self, other: Self) {
        self.folders += other.folders;
        self.versions += other.versions;
        self.bytes += other.bytes;
        self.cleared += other.cleared;
        self.notes += other.notes;
    }
}

/// What was sent to an object store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreUpload {
    /// The store.
    pub url: String,
    /// What was sent.
    #[serde(flatten)]
    pub moved: TransferCounts,
}

#[cfg(test)]
mod tests {
    use super::TransferCounts;

    #[test]
    fn what_was_sent_in_several_steps_adds_up() {
        let mut all = TransferCounts { folders: 1, versions: 2, bytes: 3, cleared: 4, notes: 6 };
        all += TransferCounts { folders: 10, versions: 20, bytes: 30, cleared: 40, notes: 60 };
        let sum = TransferCounts { folders: 11, versions: 22, bytes: 33, cleared: 44, notes: 66 };
        assert_eq!(all, sum);
    }
}
