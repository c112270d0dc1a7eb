//! Upkeep: packing runs, removing folders that a pack stands for, and verification.

mod contained;
mod copy;
mod leftovers;
mod pack;
mod prune;
mod verify;

pub use copy::copy;
pub use pack::compact;
pub(super) use pack::pack_small;
pub use prune::{Plan, Removal, prune};
pub use verify::{Verified, fault, verify};
