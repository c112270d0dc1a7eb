//! Retries: a pure verdict and a pure schedule. The loop is in the client.

mod schedule;
mod verdict;

pub(super) use schedule::{Patience, Schedule};
pub(super) use verdict::{Verdict, verdict};
