//! Questions asked of the archive.
//!
//! `leak` tries to make the future reach a dataset's past, and says what it tried. `revisions` counts what a vendor did to
//! its past. `sources` holds its operations against one another.

mod gathered;
mod leak;
mod observed;
pub mod revisions;
pub mod sources;
mod subject;

pub use leak::{Leak, Trial, leak};
pub use subject::Subject;
