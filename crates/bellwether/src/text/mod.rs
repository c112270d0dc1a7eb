//! Text: made safe to show, formatted for people, and read from small files.

#[doc(hidden)]
pub mod escape;
#[doc(hidden)]
pub mod human;
pub mod problem;
pub(crate) mod small_csv;
