//! Retries: a pure verdict and a pure schedule. The loop is in the client.

mod schedule;
mod verdict;

pub(super) use schedule::{Patience, RetrySchedule};
pub(super) use verdict::{RetryVerdict, verdict};
