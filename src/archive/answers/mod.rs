//! The answers of a run, on disk until the run is sealed.

pub(super) mod answer;
pub(super) mod draft;
pub(super) mod lanes;
mod packed;
