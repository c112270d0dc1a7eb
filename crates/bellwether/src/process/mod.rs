//! Processes: cancelling, work in order, children, and what is used.

pub mod cancel;
pub mod child;
pub(crate) mod in_order;
pub mod trace;
pub mod usage;
