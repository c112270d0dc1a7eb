//! Upkeep: merging histories that meet, packing runs, removing folders that a pack replaces, verification, and setting
//! damaged folders aside.

mod contained;
mod copy;
mod incoming;
mod inspect;
mod leftovers;
mod merge;
mod pack;
mod prune;
mod verify;

pub(crate) use copy::copy;
pub(crate) use incoming::{Incoming, missing_folders};
pub(crate) use inspect::{Inspected, inspect, set_aside};
pub use merge::open_merged;
pub(in crate::archive) use merge::open_merged_part;
pub(crate) use merge::open_merged_with_claims;
pub(crate) use pack::compact;
pub(super) use pack::{PackFolder, pack_small};
pub use prune::Removal;
pub(crate) use prune::{Pruning, check_contained, prune};
pub use verify::Verified;
pub(crate) use verify::{difference, fault, verify};
