//! Text: made safe to show, and formatted for people.

#[doc(hidden)]
pub mod escape;
#[doc(hidden)]
pub mod human;
pub mod problem;
