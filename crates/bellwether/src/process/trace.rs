//! Where the time goes: pieces of work per thread.
//!
//! A piece of work is a `tracing` span with the target [`WORK`]. It costs nothing unless someone records them.

/// The target of spans that are pieces of work.
pub const WORK: &str = "bellwether::work";

/// Starts a piece of work, which ends when the value is dropped.
macro_rules! work {
    ($name:literal) => {
        tracing::debug_span!(target: $crate::process::trace::WORK, $name).entered()
    };
}

pub(crate) use work;
