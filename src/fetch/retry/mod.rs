//! Asking again: a pure verdict and a pure schedule. The one loop is in the client.

mod schedule;
mod verdict;

pub(super) use schedule::{Patience, Schedule};
pub(super) use verdict::{Verdict, verdict};
