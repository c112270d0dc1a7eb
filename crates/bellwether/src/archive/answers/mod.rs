//! The answers of a run, on disk until the run is sealed.

pub(super) mod answer;
pub(super) mod answer_files;
pub(super) mod draft;
mod row_codec;
