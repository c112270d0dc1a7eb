//! Sealed folders: their contents, and how they are written and read.
//!
//! Everything in a folder is checked before it is used; see `folder` for files and `seal` for the seal.

pub(super) mod answers;
pub(super) mod by_ticker;
pub(super) mod catalog;
pub(super) mod folder;
pub(super) mod layout;
pub(super) mod rows;
pub(super) mod seal;
pub(super) mod sealed_run;
