//! Upkeep: merging histories that meet, packing runs, removing folders that a pack replaces, and verification.

mod contained;
mod copy;
mod incoming;
mod leftovers;
mod merge;
mod pack;
mod prune;
mod verify;

pub(crate) use copy::copy;
pub(crate) use incoming::{Incoming, missing_folders};
pub use merge::open_merged;
pub(in crate::archive) use merge::open_merged_part;
pub(crate) use merge::open_merged_with_claims;
#[cfg(feature = "harness")]
pub(crate) use pack::pack_most;
pub(super) use pack::{PackFolder, pack_small};
pub use prune::Removal;
pub(crate) use prune::{Pruning, check_contained, prune};
pub(crate) use verify::{Inspected, difference, verify_rows, with_source};
