//! The API key: where it comes from, and what keeps it from being shown.

pub(crate) mod echo;
mod secret;
pub mod source;

pub use secret::{ApiKey, mask, without_keys};
