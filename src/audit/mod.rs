//! Questions asked of the archive.
//!
//! `leak` tries to make the future reach a dataset's past, and says what it tried.

mod leak;

pub use leak::{Leak, Trial, leak};
