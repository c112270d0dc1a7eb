//! Internals of the library for tests, fuzzing and benchmarks; not part of its interface.

/// The archive: unfinished runs and views.
pub mod archive {
    pub use crate::archive::open_merged;
    pub use crate::archive::scope::Scope;
    pub use crate::archive::unfinished::{NewRun, Unfinished};
    pub use crate::archive::view::View;
}

/// Columns as runs.
pub mod columns {
    pub use crate::columns::*;
}

/// Building a dataset.
pub mod dataset {
    pub use crate::dataset::*;
}

/// Decoding, and the harnesses that check it.
pub mod decode {
    pub use crate::decode::harness::*;
    pub use crate::decode::{Answer, AnswerPart, Decoded, Fault, Rules};
}

/// Writing rows.
pub mod export {
    pub use crate::export::row_output::{Destination, RowOutput};
}

/// Numbers that a simulation can repeat.
pub mod time {
    pub use crate::time::seeded;
}

/// The schemas of archived tables.
pub mod tables {
    pub use crate::tables::*;
}

/// What must hold for whatever is read from outside.
pub mod outside;
