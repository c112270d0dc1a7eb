//! Files and folders: how they appear, are named, locked, measured and removed.

pub(crate) mod digest;
pub(crate) mod expansion;
pub mod file;
pub mod footprint;
pub mod links;
pub mod lock;
pub mod names;
pub mod remove;
pub(crate) mod small_csv;
pub(crate) mod table_file;
