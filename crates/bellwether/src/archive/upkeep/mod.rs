//! Upkeep: merging histories that meet, packing runs, removing folders that a pack replaces, and verification.

mod merge;
mod pack;
mod prune;
mod verify;

pub use merge::open_merged;
pub(in crate::archive) use merge::open_merged_part;
pub(crate) use merge::{copy, open_merged_with};
#[cfg(feature = "harness")]
pub(crate) use pack::pack_most;
pub(super) use pack::pack_small;
pub(crate) use pack::{HiddenFolder, missing_folders};
pub use prune::Removal;
pub(crate) use prune::{Pruning, check_contained, prune};
pub(crate) use verify::{Inspected, difference, verify_rows, with_source};
