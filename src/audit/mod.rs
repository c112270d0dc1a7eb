//! Questions asked of the archive, and of the datasets that came out of it.
//!
//! `leak` tries to make the future reach a dataset's past, and says what it tried. `revisions` counts what a vendor did to
//! its past, `sources` holds its operations against one another, `answers` says what of them could not be used, and
//! `quality` looks for what is missing, stale, repeated, unusual or rejected. Each goes through the archive some whole tickers at a time and delivers what it finds as rows.
//! `diff` says what changed from one version of a dataset to another.

pub mod answers;
mod canaries;
mod cut;
pub mod diff;
mod gathered;
mod leak;
mod observed;
pub mod quality;
pub mod revisions;
pub mod sources;
mod subject;

pub use leak::{Leak, Outcome, Trial, leak};
pub use subject::Subject;
